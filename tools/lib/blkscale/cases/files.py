# SPDX-License-Identifier: GPL-2.0
"""Files that people use: the loads on ext4, the disks, and their figures.

A load is a few processes of tools/bench/files.c in one file system. Databases
commit with fdatasync, so with journal, flushes and the kernel's own threads
beside the processes.
"""
from dataclasses import dataclass

SCHEDS = ("none", "mq-deadline", "bfq", "bfq:low_latency=0")
BFQ = ("bfq",)		# with low_latency, as users have it

# Both keep data and do not sleep in their driver, on any kernel. One has a
# cache that is flushed, the other one needs no flush.
SCSI = "scsi_debug SSD 100 us x 64, write through"
NVME = "nvme-loop 100 us x 128, write back"
DISKS = (SCSI, NVME)


@dataclass(frozen=True)
class Load:
    name: str
    tasks: tuple		# what files is told
    seconds: float = .4		# 0: until all programs have started
    warm: int = 200		# ms of load before what is measured begins
    gap: int = 0		# ms between the processes' begins
    scheds: tuple = SCHEDS
    like: str = ""		# another load, of which `none` is that of this one
    options: str = "noatime"	# of mount
    quick: bool = False

    @property
    def host_seconds(self):
        """For a cell, about."""
        return 3 + 3 * (self.warm / 1000 + (self.seconds or 3))


# bfq raises the weight of a new process for some 4 s. Processes that begin
# together get one queue from bfq, others each its own.
LOADS = {load.name: load for load in (
    Load("1 database, rollback journal", ("rollback=1",)),
    Load("4 databases, rollback journal", ("rollback=4",), quick=True),
    Load("4 databases, rollback journal, for 6 s, begun .7 s apart",
         ("rollback=4",), warm=6000, gap=700, scheds=BFQ,
         like="4 databases, rollback journal"),
    # The journal thread has priority 3, processes that ask for none have 4.
    Load("4 databases, rollback journal, journal thread of their priority",
         ("rollback=4",), scheds=BFQ + ("bfq:low_latency=0",),
         like="4 databases, rollback journal", options="noatime,journal_ioprio=4"),
    Load("1 database, log", ("wal=1",)),
    Load("4 databases, log", ("wal=4",)),
    Load("4 databases beside 4 direct readers", ("rollback=4", "direct=4"),
         quick=True),
    Load("4 databases beside 4 buffered readers",
         ("rollback=4", "buffered=4")),
    Load("programs start", ("start=1",), seconds=0),
    Load("programs start beside a copy", ("start=1", "copy=1"), seconds=0,
         warm=1000, quick=True),
)}


def cells(quick=False, only="", scheds=SCHEDS):
    """[(load, disk, scheduler)], disk by disk."""
    return [(load, disk, sched) for disk in DISKS for load in LOADS.values()
            for sched in scheds
            if (sched in load.scheds or load.scheds == SCHEDS)
            and only in f"{load.name}, {disk}, {sched}"
            and (not quick or load.quick and disk == SCSI)]


# ---------------------------------------------------------------- figures

def figures(said, counts, requests):
    """The figures of a cell: what files has said, how many requests were issued
    directly and inserted meanwhile (None: the kernel does not count them), and
    how many reads and writes, and flushes there were, with those of the warm-up."""
    found = {"requests": requests[0], "flushes": requests[1], "direct": share(counts)}
    for load, got in said.items():
        if load in ("rollback", "wal"):
            found.update(commits=_rate(got, said), commit_p50=got.get("p50"),
                         commit_p99=got.get("p99"),
                         commit_longest=got.get("longest"))
        elif load in ("direct", "buffered"):
            found.update(reads=_rate(got, said), read_p99=got.get("p99"))
        elif load == "copy":		# of 128 KiB
            found["copy"] = round(got["done"] / 8 / said["seconds"], 1)
        elif load == "start":
            found.update(start=got["p50"], start_worst=got["longest"])
    return found


def _rate(got, said):
    return round(got["done"] / said["seconds"], 1)


def share(counts):
    """The share of the requests that were issued directly."""
    if not counts or not sum(counts):
        return None
    return round(counts[0] / sum(counts), 4)


# ---------------------------------------------------------------- what is inserted

WHY = "files-why"	# of records; their rates are those of a run that was traced
REASONS = ("flush or FUA", "journal thread", "write-back", "metadata read",
           "read", "sync write", "other")


def reason(rwbs, comm):
    """What a request is, from the trace: operation and flags, and whose."""
    op = rwbs.lstrip("F")[:1]
    if "F" in rwbs:
        return "flush or FUA"
    if comm.startswith("jbd2/"):
        return "journal thread"
    if op == "W":
        return "sync write" if "S" in rwbs else "write-back"
    if op == "R":
        return "metadata read" if "M" in rwbs else "read"
    return "other"


def parted(text):
    """{reason: [issued directly, inserted]} of a trace of both."""
    found = {}
    for line in text.splitlines():
        event = next((name for name in ("block_rq_direct", "block_rq_insert")
                      if f" {name}: " in line), None)
        if event:
            words = line.split(f" {event}: ")[1].split()
            comm = line.rpartition("[")[2].rstrip("]\n")
            counts = found.setdefault(reason(words[1], comm), [0, 0])
            counts[event == "block_rq_insert"] += 1
    return found
