# SPDX-License-Identifier: GPL-2.0
"""The table of overtaking."""
from dataclasses import dataclass

from ..cases import overtaking
from ..cases.workloads import scheduler
from ..measure import results
from . import origin
from .tables import Table, change, number


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
    row = [cell.workload.partition(":")[0], f"{cell.device}, {cell.cpus} vCPUs",
           scheduler(cell.sched), str(some["tags"])]
    for name, column in COLUMNS.items():
        values = [pair[kernel]["values"][name] if kernel in pair else None
                  for kernel in ("base", "patched")]
        row.append(change(*values, column.form))
    return row


def tables(records):
    """A table of overtaking, if there are figures of it."""
    known = [cell for machine in overtaking.MACHINES for cell in overtaking.cells(machine)]
    pairs = results.pairs(rec for rec in records if rec["what"] == "overtaking"
                          and results.cell(rec)[1:4] in known)
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
        + origin.lines([rec for pair in pairs.values() for rec in pair.values()]))]
