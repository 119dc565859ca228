# SPDX-License-Identifier: GPL-2.0
"""Is a disk free to be overwritten, and its queue's settings kept."""
import errno
import os
import stat
from pathlib import Path

SETTINGS = ("nr_requests", "async_depth", "wbt_lat_usec")


def _devno(folder):
    try:
        return (folder / "dev").read_text().strip()
    except OSError:
        return None


def parts(folder):
    """Names of the partitions of a disk."""
    return sorted(p.parent.name for p in folder.glob("*/partition"))


def mounts(devnos, names, proc):
    """Mount points of these devices, by number and by the source's name."""
    found = []
    for line in (proc / "self/mountinfo").read_text().splitlines():
        words, _, rest = line.partition(" - ")
        fields = words.split()
        source = rest.split()[1] if len(rest.split()) > 1 else ""
        if fields[2] in devnos or os.path.basename(source) in names \
                and source.startswith("/dev/"):
            found.append(fields[4])
    return found


def swaps(names, proc):
    lines = (proc / "swaps").read_text().splitlines()[1:]
    used = {os.path.basename(os.path.realpath(line.split()[0]))
            for line in lines if line.split()}
    return sorted(used & set(names))


def why_not(name, sys=Path("/sys"), proc=Path("/proc")):
    """Why the disk must not be used for a benchmark; None if it may."""
    folder = sys / "class/block" / name
    if not folder.is_dir():
        return f"there is no block device {name}"
    if (folder / "partition").exists():
        return f"{name} is a partition; a scheduler belongs to a whole disk"
    if (folder / "ro").read_text().strip() != "0":
        return f"{name} is read-only"
    if not (folder / "queue/scheduler").exists():
        return f"{name} has no I/O scheduler to choose"
    family = [name] + parts(folder)
    folders = [folder] + [folder / part for part in family[1:]]
    used = mounts({_devno(f) for f in folders} - {None}, set(family), proc)
    if used:
        return f"{name} is mounted on {', '.join(used)}"
    used = swaps(family, proc)
    if used:
        return f"{', '.join(used)} is used for swap"
    for one in folders:
        holders = one / "holders"
        used = sorted(h.name for h in holders.iterdir()) \
            if holders.is_dir() else []
        if used:
            return f"{one.name} is held by {', '.join(used)} (md, dm, bcache)"
    if len(family) > 1:
        return f"{name} holds partitions ({', '.join(family[1:])})"
    return None


def node_trouble(node):
    """The same question put to the kernel: is somebody holding the node?"""
    try:
        if not stat.S_ISBLK(os.stat(node).st_mode):
            return f"{node} is no block device"
        os.close(os.open(node, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return f"{node} is in use (the kernel refuses to open it alone)"
        return f"cannot open {node}: {error.strerror}"
    return None


class Kept:
    """Scheduler and queue settings of a disk, put back at the end."""

    def __init__(self, name, sys=Path("/sys")):
        self.queue = sys / "block" / name / "queue"
        words = self._read("scheduler").split()
        self.scheduler = next((w.strip("[]") for w in words
                               if w.startswith("[")), None)
        self.tunables = {f"iosched/{p.name}": self._read(f"iosched/{p.name}")
                         for p in sorted((self.queue / "iosched").glob("*"))}
        self.tunables.update((s, self._read(s)) for s in SETTINGS)

    def _read(self, attribute):
        try:
            return (self.queue / attribute).read_text().strip()
        except OSError:
            return ""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.scheduler:
            (self.queue / "scheduler").write_text(self.scheduler)
        for attribute, value in self.tunables.items():
            if value and self._read(attribute) != value:
                try:
                    (self.queue / attribute).write_text(value)
                except OSError:
                    pass    # read-only, or the kernel chose it by itself
        return False
