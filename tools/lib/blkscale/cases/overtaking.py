# SPDX-License-Identifier: GPL-2.0
"""The cells of tools/bench/overtaking, and the table of their figures."""
from dataclasses import dataclass

from ..measure import results
from . import workloads
from ..report.tables import Table, change, number

TAGS = 64
LATENCY_NS = 20_000_000	# of the disks that have a timer
SCSI = (f"scsi_debug.max_queue={TAGS} scsi_debug.ndelay={LATENCY_NS} "
        "scsi_debug.fake_rw=1 scsi_debug.virtual_gb=64 scsi_debug.delay=0")
# With low_latency bfq raises the weights of new processes and issues nothing
# directly.
SCHEDS = ("mq-deadline", "bfq:low_latency=0")


@dataclass(frozen=True, eq=False)
class Machine:
    name: str
    cpus: int
    disks: tuple
    loads: dict			# name: what the program is told
    seconds: float		# of a cell, about


# What tasks is told. Demand is eight times the tags. A reader of one I/O at a time
# submits it without a plug.
_BATCHES = "others,n=16,depth=32,burst=1"
SATURATED = "saturated: 16 submitters of batches"
TIMED = Machine("CPUs of the host", 4,
                ("null_blk", "scsi_debug", "virtio_blk", "NVMe", "NVMe loop"),
                {SATURATED: (_BATCHES,),
                 "mixed: 8 QD1 readers beside 16 submitters of batches":
                     (_BATCHES, "reader,n=8")}, 10)
# The tick disk has a vCPU of its own. What load is told: demand is eight times
# the tags here, too.
IN_STEP = Machine("CPUs in step", 8, ("flash 8", "flash 64"),
                  {SATURATED: ("threads=16",)}, 25)
MACHINES = (TIMED, IN_STEP)
# Sparse files, so large that requests seldom begin at the same sector.
DEVICES = ("virtio-blk:size=65536", "nvme:size=65536")
TIMED_APPEND = (f"{SCSI} virtio_blk.queue_depth={TAGS} "
                f"nvme.io_queue_depth={TAGS + 1}")


def tick_disk(disk):
    """The parameters of a tick disk."""
    settings = workloads.DEVICES[disk].partition(":")[2]
    return settings.format(cpus=IN_STEP.cpus, device=IN_STEP.cpus).split(",")


def depth(disk):
    """The tags of a tick disk."""
    return int(disk.rpartition(" ")[2])


def cell_name(load, disk, sched):
    return f"{load} {disk} {sched}"


def cells(machine, only=""):
    """[(load, disk, scheduler)], disk by disk."""
    return [(load, disk, sched) for disk in machine.disks for sched in SCHEDS
            for load in machine.loads if only in cell_name(load, disk, sched)]


# ---------------------------------------------------------------- the table

@dataclass(frozen=True)
class Column:
    title: str
    form: callable


def _percent(share):
    return f"{number(100 * share)} %" if share else "0"


def _count(value):
    return f"{value:.0f}"


COLUMNS = {
    "in_flight": Column("in flight", _count),
    "inserted": Column("inserted", _percent),
    "newcomers": Column("newcomers for each", number),
    "direct_most": Column("direct: most", _count),
    "direct_p99": Column("p99", _count),
    "direct_share": Column("overtaken", _percent),
    "all_most": Column("in all: most", _count),
    "all_p99": Column("p99", _count),
    "all_share": Column("overtaken", _percent),
}


def worst(rec):
    """A record in which the most is that of all boots."""
    values = dict(rec["values"])
    for name in ("direct_most", "all_most"):
        values[name] = max(results.runs(rec, name))
    return {**rec, "values": values}


def _row(cell, pair):
    some = next(iter(pair.values()))["values"]
    row = [cell[1].partition(":")[0], f"{cell[2]}, {cell[4]} vCPUs",
           workloads.scheduler(cell[3]), str(some["tags"])]
    for name, column in COLUMNS.items():
        values = [pair[kernel]["values"][name] if kernel in pair else None
                  for kernel in ("base", "patched")]
        row.append(change(*values, column.form))
    return row


def tables(records, origin):
    """A table of overtaking, if there are figures of it."""
    known = [cell for machine in MACHINES for cell in cells(machine)]
    pairs = {}
    for rec in records:
        cell = results.key(rec)
        if rec["what"] == "overtaking" and cell[1:4] in known:
            pairs.setdefault(cell, {})[rec["kernel"]] = rec
    if not pairs:
        return []
    rows = [_row(cell, pairs[cell]) for cell in
            sorted(pairs, key=lambda cell: known.index(cell[1:4]))]
    return [Table(
        "Overtaking: requests that came after one that was inserted and were "
        "issued before it, base -> patched",
        ["load", "disk", "scheduler", "tags",
         *(column.title for column in COLUMNS.values())], rows,
        ["In flight: the median, after an issue. Direct: by requests that the "
         "scheduler has never held; newcomers: how many of them passed a request "
         "that waited, for each that was inserted. What passes one that is staged, "
         "before it is inserted, is not seen. In all: by those that the scheduler "
         "chose, too. Of the half of the requests that came last; the most is that "
         "of all boots, the rest are medians."]
        + origin([rec for pair in pairs.values() for rec in pair.values()]))]
