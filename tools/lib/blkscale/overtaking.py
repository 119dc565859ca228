# SPDX-License-Identifier: GPL-2.0
"""The cells of tools/bench/overtaking, and the table of their figures."""
from dataclasses import dataclass

from . import results
from .tables import Table, change, number

TAGS = 64
LATENCY_NS = 8_000_000	# of the disks that have a timer
APPEND = (f"scsi_debug.max_queue={TAGS} scsi_debug.ndelay={LATENCY_NS} "
          "scsi_debug.fake_rw=1 scsi_debug.virtual_gb=64 scsi_debug.delay=0 "
          f"virtio_blk.queue_depth={TAGS} nvme.io_queue_depth={TAGS + 1}")
# Sparse files, so large that requests seldom begin at the same sector.
DEVICES = ("virtio-blk:size=65536", "nvme:size=65536")
DISKS = ("null_blk", "scsi_debug", "virtio_blk", "NVMe", "NVMe loop")
SCHEDS = ("mq-deadline", "bfq")

# What tasks is told. Demand is four times the tags. A reader of one I/O at a time
# submits it without a plug.
_BATCHES = "depth=16,burst=1"
LOADS = {
    "saturated: 16 submitters of batches": (f"others,n=16,{_BATCHES}",),
    "mixed: 8 QD1 readers beside 16 submitters of batches":
        (f"others,n=16,{_BATCHES}", "reader,n=8"),
}


def cell_name(load, disk, sched):
    return f"{load} {disk} {sched}"


def cells(only=""):
    """[(load, disk, scheduler)], disk by disk."""
    return [(load, disk, sched) for disk in DISKS for sched in SCHEDS
            for load in LOADS if only in cell_name(load, disk, sched)]


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
    "waited": Column("inserted", _percent),
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
    row = [cell[1].partition(":")[0], cell[2], cell[3], str(some["tags"])]
    for name, column in COLUMNS.items():
        values = [pair[kernel]["values"][name] if kernel in pair else None
                  for kernel in ("base", "patched")]
        row.append(change(*values, column.form))
    return row


def tables(records, origin):
    """A table of overtaking, if there are figures of it."""
    pairs = {}
    for rec in records:
        if rec["what"] == "overtaking":
            pairs.setdefault(results.key(rec), {})[rec["kernel"]] = rec
    if not pairs:
        return []
    rows = [_row(cell, pairs[cell]) for cell in sorted(
        pairs, key=lambda c: (list(LOADS).index(c[1]), DISKS.index(c[2]),
                              SCHEDS.index(c[3])))]
    return [Table(
        "Overtaking: requests that came after one that was inserted and were "
        "issued before it, base -> patched",
        ["load", "disk", "scheduler", "tags",
         *(column.title for column in COLUMNS.values())], rows,
        ["Direct: by requests that the scheduler has never held; newcomers: how "
         "many of them passed a request that waited, for each that was "
         "inserted. In all: by those that the scheduler chose, too. The most is "
         "that of all boots, the rest are medians."]
        + origin([rec for pair in pairs.values() for rec in pair.values()]))]
