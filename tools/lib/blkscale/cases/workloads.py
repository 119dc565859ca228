# SPDX-License-Identifier: GPL-2.0
"""What the many-core measurement can measure: devices and workloads."""
from dataclasses import dataclass

SCHEDS = ("none", "kyber", "mq-deadline", "bfq")

# A disk has no more queues than CPUs are possible; so many are where it is to
# have more queues than CPUs are there.
POSSIBLE = 128
MANY_QUEUES = f"null_blk {POSSIBLE}x1024"

# Machines that are not plain
TICK_DISK = "tick disk"		# one more vCPU, which is the disk
HOTPLUG = "hot-plug"		# more CPUs are possible
HOST_TAGS = "host-wide tags"	# disks share a set of tags, as behind an adapter

# What a kernel with host-wide tags is told when it starts: a set of null_blk's
# and an adapter of scsi_debug's take their shape from nothing else.  192 is
# scsi_debug's most.
HOST_TAGS_APPEND = (
    "null_blk.shared_tag_bitmap=1 null_blk.hw_queue_depth=4096 "
    "null_blk.submit_queues={cpus} scsi_debug.host_max_queue=192 "
    "scsi_debug.submit_queues={cpus}")

# Name in the table -> what the guest makes.  {cpus} is the number of vCPUs
# that carry load, {device} the vCPU that is the tick disk.  disks=N makes N
# of them, over which the threads are spread.
_FLASH = "tickdisk:depth={depth},latency=40,interval=1,cpu={device}"
_HARD = ("tickdisk:depth={depth},latency=0,interval=20,transfer=1,seek=500,"
         "cpu={device}")
DEVICES = {
    "null_blk 1x128": "null:submit_queues=1,hw_queue_depth=128",
    "rotational 1x128":
        "null:submit_queues=1,hw_queue_depth=128,rotational=1",
    "blocking 1x128": "null:submit_queues=1,hw_queue_depth=128,blocking=1",
    "null_blk 1x8": "null:submit_queues=1,hw_queue_depth=8",
    "null_blk 1x32": "null:submit_queues=1,hw_queue_depth=32",
    "null_blk Nx1023": "null:submit_queues={cpus},hw_queue_depth=1023",
    "null_blk Nx1024": "null:submit_queues={cpus},hw_queue_depth=1024",
    MANY_QUEUES:
        f"null:submit_queues={POSSIBLE},hw_queue_depth=1024",
    # The default delay would be a timer's. It says by itself that it is not
    # rotational.
    "scsi_debug 1x128":
        "scsi:delay=0,fake_rw=1,max_queue=128,virtual_gb=64",
    "1 disk of a host": "null:shared_tags=1,disks=1",
    "16 disks of a host": "null:shared_tags=1,disks=16",
    "4 LUNs of a host":
        "scsi:delay=0,fake_rw=1,virtual_gb=64,max_luns=4,disks=4",
    "NVMe loop Nx128": "nvme:",
    "flash 8": _FLASH.replace("{depth}", "8"),
    "flash 32": _FLASH.replace("{depth}", "32"),
    "flash 64": _FLASH.replace("{depth}", "64"),
    # 100 us by a clock of a million ticks a millisecond: a turn takes 65
    "flash 128, 100 us": _FLASH.replace("{depth}", "128").replace(
        "latency=40", "latency=1500"),
    "hard disk 8": _HARD.replace("{depth}", "8"),
    "hard disk 32": _HARD.replace("{depth}", "32"),
}


@dataclass(frozen=True)
class Workload:
    name: str
    device: str
    load: str			# arguments of the program load
    threads: int = 0		# 0: one a vCPU
    batch: int = 4		# I/Os a submit, or in flight one by one
    merges: bool = False	# merged share and KiB per request matter
    weights: str = ""		# of cgroups, with a process in each
    # bfq's low_latency is on from the first request, as users have it: the
    # processes are weight-raised.  Else it is off until the warm-up is over.
    raised: bool = False
    requests: int = 0		# nr_requests of a scheduler, if not its own

    @property
    def machine(self):
        """Cells on one machine are measured in one boot."""
        if "tickdisk" in DEVICES[self.device]:
            return TICK_DISK
        if "host" in self.device:
            return HOST_TAGS
        return HOTPLUG if self.device == MANY_QUEUES else ""


def _disk(name, depth, load, threads):
    short = "disk" if depth == 32 else f"disk{depth}"
    return Workload(f"{short}-{name}", f"hard disk {depth}", load, threads,
                    32, True)


_ONE_BY_ONE = "single=1 size=4096 reads=0 order="
# one task, whose submission of 32 holds several sequential streams in turns
_PLUGGED = "size=4096 reads=0 order=parts"
_ALL = [
    Workload("scaletest", "null_blk 1x128", "size=512"),
    Workload("batchtest", "null_blk Nx1024", "size=4096 reads=0", batch=8),
    Workload("qd1", "null_blk 1x128", "size=512", batch=1),
    Workload("saturated", "null_blk 1x8", "size=512"),
    Workload("rwmix", "null_blk 1x128", "size=512 reads=70"),
    Workload("rotational", "rotational 1x128", "size=512"),
    Workload("raised", "null_blk 1x128", "size=512", raised=True),
    Workload("raised-qd1", "null_blk 1x128", "size=512", batch=1, raised=True),
    # many at work, and a program that starts, which is raised alone
    Workload("raised-one", "null_blk 1x128", "size=512 starts=1"),
    Workload("raised-one-of-8", "null_blk 1x8", "size=512 starts=1"),
    Workload("tags32", "null_blk 1x32", "size=512"),
    Workload("tags1023", "null_blk Nx1023", "size=512"),
    Workload("blocking-qd1", "blocking 1x128", "size=512", batch=1),
    Workload("one-group", "null_blk 1x128", "size=512", weights="100"),
    Workload("two-groups", "null_blk 1x128", "size=512", weights="100 100"),
    Workload("groups-1:3", "null_blk 1x128", "size=512", weights="100 300"),
    Workload("two-groups-4k", "null_blk 1x128", "size=4096",
             weights="100 100"),
    Workload("two-groups-qd32", "null_blk 1x128", "size=512", batch=32,
             weights="100 100"),
    # bfq merges the queues of processes that start within .18 s
    Workload("two-groups-apart", "null_blk 1x128", "size=512 apart=300",
             weights="100 100"),
    Workload("light-group", "null_blk 1x128", "size=512 light=1",
             weights="100 100"),
    Workload("two-groups-100us", "flash 128, 100 us", "size=4096",
             weights="100 100"),
    Workload("host1-32", "1 disk of a host", "size=512", requests=32),
    Workload("host1-254", "1 disk of a host", "size=512", requests=254),
    Workload("host16-32", "16 disks of a host", "size=512", requests=32),
    Workload("host16-254", "16 disks of a host", "size=512", requests=254),
    Workload("host-luns", "4 LUNs of a host", "size=512"),
    Workload("scsi", "scsi_debug 1x128", "size=512"),
    Workload("few-cpus", MANY_QUEUES, "size=512"),
    Workload("nvme-scaletest", "NVMe loop Nx128", "size=512"),
    Workload("nvme-qd1", "NVMe loop Nx128", "size=512", batch=1),
    Workload("flash8", "flash 8", "size=512"),
    Workload("flash32", "flash 32", "size=512"),
    Workload("flash64", "flash 64", "size=512"),
]
for _depth in (32, 8):
    _ALL += [_disk(f"seq{n}", _depth, f"{_ONE_BY_ONE}parts", n)
             for n in (1, 4, 64)]
    _ALL += [_disk("alternate", _depth, f"{_ONE_BY_ONE}alternate", 2),
             _disk("mixed", _depth, "writer=1 size=4096", 4)]
    _ALL += [_disk(f"weave{n}", _depth, f"{_PLUGGED} streams={n}", 1)
             for n in (2, 4)]
WORKLOADS = {w.name: w for w in _ALL}

GROUPS = {
    "null": ["scaletest", "batchtest", "qd1", "saturated", "rwmix"],
    "raised": ["raised", "raised-qd1"],
    "tags": ["tags32", "tags1023"],
    "host": [n for n in WORKLOADS if n.startswith("host")],
    "groups": ["one-group", "two-groups", "groups-1:3", "two-groups-4k",
               "two-groups-qd32", "two-groups-apart", "light-group"],
    "queues": ["few-cpus"],
    "scsi": ["scsi"],
    "nvme": ["nvme-scaletest", "nvme-qd1"],
    "flash": ["flash8", "flash32", "flash64"],
    "disk": [n for n in WORKLOADS if n.startswith("disk-")],
    "disk8": [n for n in WORKLOADS if n.startswith("disk8-")],
}

# How long a lap of a cell is, for every workload, scheduler and kernel: from
# one timer to the next.
TICKS = 4e6


def scheduler(spec):
    """The name of a scheduler that may have settings: bfq:low_latency=0."""
    return spec.partition(":")[0]


def load_arguments(workload, cpus, scale=1.0):
    return (f"threads={workload.threads or cpus} batch={workload.batch} "
            f"{workload.load} ticks={TICKS * scale:.0f}")


def options(workload):
    """Words of the plan: how the scheduler is set up."""
    return " ".join([*(["raised"] if workload.raised else []),
                     *([f"nr_requests={workload.requests}"]
                       if workload.requests else [])])


def device(workload, cpus):
    return DEVICES[workload.device].format(cpus=cpus, device=cpus)
