# SPDX-License-Identifier: GPL-2.0
"""Block devices by sysfs and configfs: schedulers, statistics, test disks."""
import fcntl
import os
import struct
import subprocess
import time
from pathlib import Path

from ..ui import die

SYS = Path("/sys")
CONFIG = SYS / "kernel/config"
NULLB = CONFIG / "nullb"
NVMET = CONFIG / "nvmet"
NQN = "nqn.2014-08.org.nvmexpress:blkscale"


def name_of(device):
    return os.path.basename(str(device))


def queue(device, attribute):
    return SYS / "block" / name_of(device) / "queue" / attribute


def put(path, text):
    """Write a kernel attribute; a refusal ends the program in one line."""
    try:
        Path(path).write_text(f"{text}\n")
    except OSError as error:
        die(f"the kernel refused '{text}' for {path}: {error.strerror}",
            "see dmesg, and whether the kernel has the option")


def schedulers(device):
    """All schedulers that the device can use; the first is the one in use."""
    words = queue(device, "scheduler").read_text().split()
    active = [w.strip("[]") for w in words if w.startswith("[")]
    return active + [w for w in words if not w.startswith("[")]


def set_scheduler(device, spec):
    """Use a scheduler, "bfq", or with settings of its own,
    "bfq:low_latency=0"; ends the program if this kernel does not know it."""
    name, *settings = spec.split(":")
    if name not in schedulers(device):
        die(f"{device} cannot use the scheduler {name}",
            f"it has: {' '.join(schedulers(device))}")
    if settings:    # what is in use would keep its own
        put(queue(device, "scheduler"), "mq-deadline")
    put(queue(device, "scheduler"), name)
    for setting in settings:
        attribute, _, value = setting.partition("=")
        put(queue(device, f"iosched/{attribute}"), value)


def is_zoned(device):
    return queue(device, "zoned").read_text().strip() != "none"


def parse_stat(text):
    """/sys/block/X/stat as counted I/Os, merges and sectors."""
    n = [int(word) for word in text.split()]
    return {"read_ios": n[0], "read_merges": n[1], "read_sectors": n[2],
            "write_ios": n[4], "write_merges": n[5], "write_sectors": n[6]}


def stat(device):
    return parse_stat((SYS / "block" / name_of(device) / "stat").read_text())


def watch(trace, event, device):
    """Let a trace instance record a block event of this device, and no other's."""
    major, minor = map(int, queue(device, "../dev").read_text().split(":"))
    folder = trace / "events/block" / event
    put(folder / "filter", f"dev == {major << 20 | minor}")
    put(folder / "enable", 1)


def merging(before, after, way):
    """Merged share of the requests, and KiB a request, between two stats."""
    ios, merges, sectors = (after[f"{way}_{field}"] - before[f"{way}_{field}"]
                            for field in ("ios", "merges", "sectors"))
    if not ios:
        return {"merged": None, "kib": None}
    return {"merged": round(merges / (ios + merges), 4),
            "kib": round(sectors / 2 / ios, 2)}


def writes(device, load):
    """The figures of a load, with what the disk's stat says of its writes."""
    before = stat(device)
    values = load()
    values.update(merging(before, stat(device), "write"))
    return values


def wait_for(path, seconds=10):
    """Nodes appear a moment after the device: wait for one."""
    end = time.monotonic() + seconds
    while not Path(path).exists():
        if time.monotonic() > end:
            die(f"{path} did not appear within {seconds} s",
                "see the guest's console for what the driver said")
        time.sleep(0.02)
    return str(path)


def null_blk(name, **attributes):
    """Make a null_blk disk by configfs; returns its node.

    Every attribute has to be set before `power`.
    """
    folder = NULLB / name
    if not NULLB.is_dir():
        subprocess.run(["modprobe", "null_blk", "nr_devices=0"],
                       stderr=subprocess.DEVNULL, check=False)
    try:
        folder.mkdir()
    except OSError as error:
        die(f"cannot make the null_blk disk {name}: {error.strerror}",
            "the kernel needs CONFIG_BLK_DEV_NULL_BLK and configfs mounted")
    for attribute, value in attributes.items():
        put(folder / attribute, value)
    put(folder / "power", 1)
    node = f"/dev/{name}"
    if not Path(SYS / "block" / name).exists():
        node = f"/dev/nullb{(folder / 'index').read_text().strip()}"
    return wait_for(node)


def fast_null_blk(name):
    """One that costs little, with a queue a CPU."""
    return null_blk(name, irqmode=0, hw_queue_depth=1024,
                    submit_queues=os.cpu_count(), size=4096)


def remove_null_blk(name):
    put(NULLB / name / "power", 0)
    (NULLB / name).rmdir()


def md(name, level, members, chunk_kib=0):
    """Make an array without metadata and without resync; returns its node."""
    node, folder = f"md_{name}", SYS / f"block/md_{name}/md"
    control = SYS / "module/md_mod/parameters/new_array"
    if not control.exists():
        die("this kernel has no md", "it needs CONFIG_BLK_DEV_MD")
    if not folder.is_dir():         # one that was cleared may still be there
        put(control, node)
    size = min(_kib(member) for member in members)
    shape = {"metadata_version": "none", "level": level,
             "raid_disks": len(members)}
    shape.update({"chunk_size": chunk_kib << 10} if chunk_kib else
                 {"component_size": size, "resync_start": "none"})
    for attribute, value in shape.items():
        put(folder / attribute, value)
    for slot, member in enumerate(map(name_of, members)):
        put(folder / "new_dev", (SYS / f"block/{member}/dev").read_text())
        put(folder / f"dev-{member}/slot", slot)
        put(folder / f"dev-{member}/size", size)
    put(folder / "array_state", "active")
    return wait_for(f"/dev/{node}")


def remove_md(name):
    put(SYS / f"block/md_{name}/md/array_state", "clear")


# struct dm_ioctl and struct dm_target_spec of <linux/dm-ioctl.h>
_DM, _TARGET = struct.Struct("=10IQ128s129s7x"), struct.Struct("=2QiI16s")
_DM_CREATE, _DM_REMOVE, _DM_RESUME, _DM_LOAD = (
    3 << 30 | _DM.size << 16 | 0xfd << 8 | number for number in (3, 4, 6, 9))


def _dm(command, name, targets=0, table=b""):
    """An ioctl of the device mapper; returns the device's number."""
    call = bytearray(_DM.pack(4, 0, 0, _DM.size + len(table), _DM.size,
                              targets, 0, 0, 0, 0, 0, name.encode(), b"")
                     + table)
    try:
        with open("/dev/mapper/control", "r+b", buffering=0) as control:
            fcntl.ioctl(control, command, call)
    except OSError as error:
        die(f"the device mapper refused {name}: {error.strerror}",
            "see dmesg, and whether the kernel has CONFIG_BLK_DEV_DM")
    return _DM.unpack_from(call)[10]


def stripe_table(sizes_kib, members, chunk_kib):
    """The table of one striped target over all of the members."""
    words = [len(members), 2 * chunk_kib]
    for member in members:
        words += [member, 0]
    text = " ".join(map(str, words)).encode() + b"\0"
    text = text.ljust(-len(text) % 8 + len(text), b"\0")
    sectors = 2 * chunk_kib * (min(sizes_kib) // chunk_kib) * len(members)
    return _TARGET.pack(0, sectors, 0, _TARGET.size + len(text),
                        b"striped") + text


def dm_stripe(name, members, chunk_kib):
    """Make a striped dm device; returns its node."""
    number = _dm(_DM_CREATE, name)
    _dm(_DM_LOAD, name, 1,
        stripe_table([_kib(member) for member in members], members, chunk_kib))
    _dm(_DM_RESUME, name)
    return wait_for(f"/dev/dm-{os.minor(number)}")


def remove_dm(name):
    _dm(_DM_REMOVE, name)


def _kib(device):
    return int((SYS / "block" / name_of(device) / "size").read_text()) // 2


def nvme_disks():
    """The nodes of all NVMe disks."""
    return [wait_for(f"/dev/{name}") for name in sorted(_namespaces())]


def nvme_loop(backing, **options):
    """An NVMe disk by the loop target on another disk; returns its node.  options:
    of the connection, queue_size for instance."""
    if not NVMET.is_dir():
        die("the kernel has no NVMe target",
            "it needs CONFIG_NVME_TARGET_LOOP, and configfs mounted")
    known = set(_namespaces())
    subsystem = NVMET / "subsystems" / NQN
    subsystem.mkdir()
    put(subsystem / "attr_allow_any_host", 1)
    namespace = subsystem / "namespaces/1"
    namespace.mkdir()
    put(namespace / "device_path", backing)
    put(namespace / "enable", 1)
    port = NVMET / "ports/1"
    port.mkdir()
    put(port / "addr_trtype", "loop")
    (port / "subsystems" / NQN).symlink_to(subsystem)
    with open("/dev/nvme-fabrics", "r+b", buffering=0) as fabrics:
        words = {"transport": "loop", "nqn": NQN, **options}
        fabrics.write(",".join(f"{k}={v}" for k, v in words.items()).encode())
    end = time.monotonic() + 10
    while time.monotonic() < end:
        fresh = sorted(set(_namespaces()) - known)
        if fresh:
            return wait_for(f"/dev/{fresh[0]}")
        time.sleep(0.05)
    die("the NVMe loop disk did not appear within 10 s",
        "see the guest's console for what the driver said")


def nvme_loop_fast():
    """The same where the target costs least: on a null_blk, a queue a CPU."""
    return nvme_loop(fast_null_blk("backing"))


def remove_nvme_loop():
    """Remove what nvme_loop_fast() made."""
    for controller in Path("/sys/class/nvme").glob("nvme*"):
        if (controller / "transport").read_text().strip() == "loop":
            put(controller / "delete_controller", 1)
    subsystem, port = NVMET / "subsystems" / NQN, NVMET / "ports/1"
    (port / "subsystems" / NQN).unlink()
    port.rmdir()
    put(subsystem / "namespaces/1/enable", 0)
    (subsystem / "namespaces/1").rmdir()
    subsystem.rmdir()
    remove_null_blk("backing")


def _namespaces():
    """Namespace disks with a node: nvme0n1, not the hidden nvme0c0n1."""
    for path in (SYS / "block").glob("nvme*n*"):
        if "c" not in path.name and int((path / "size").read_text()):
            yield path.name


def scsi_debug():
    """The node of the first disk of scsi_debug; its parameters are the
    kernel's command line (scsi_debug.max_queue=... )."""
    return scsi_debugs(1)[0]


def scsi_debugs(count):
    """The nodes of all disks of scsi_debug, when there are `count`."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        models = (SYS / "block").glob("sd*/device/model")
        found = sorted(model.parent.parent.name for model in models
                       if model.read_text().strip() == "scsi_debug")
        if len(found) >= count:
            return [wait_for(f"/dev/{name}") for name in found]
        time.sleep(0.05)
    die(f"{count} disks of scsi_debug did not appear within 10 s",
        "the kernel needs CONFIG_SCSI_DEBUG and CONFIG_BLK_DEV_SD")
