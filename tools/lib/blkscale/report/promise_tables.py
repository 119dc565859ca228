# SPDX-License-Identifier: GPL-2.0
"""What the figures of the promises say: tables of them."""
from ..cases import promises
from ..measure import results
from . import judge, origin, verdicts
from .tables import Table, change, number


def spread(rec, names):
    """The widest range of the judged figures, in per cent of the median."""
    return f"{max((results.apart(rec, name) for name in names), default=0):.0f} %"


def by_cell(records):
    """{cell: {kernel: record}} in the order of the cases and disks."""
    disks, cases = list(promises.DISKS), list(promises.NAMES)
    cells = results.pairs(rec for rec in records if rec["what"] == "promises" and
                          rec["workload"] in cases and rec["device"] in disks)
    return dict(sorted(cells.items(), key=lambda item: (
        cases.index(item[0].workload), disks.index(item[0].device), item[0].sched)))


def tables(records):
    """A table for each kind of promise."""
    cells = by_cell(records)
    of_none = {cell[1:3]: pair.get("base") or pair.get("patched")
               for cell, pair in cells.items() if cell.sched == "none"}
    found = []
    for kind in promises.KINDS:
        part = {cell: pair for cell, pair in cells.items()
                if promises.NAMES[cell.workload].kind == kind and cell.sched != "none"}
        if part:
            found.append(_table(kind, part, of_none))
    return found


_TITLES = {"latency": "latency of one reader",
           "start": "time to start up", "shares": "shares of cgroups",
           "class": "I/O priority classes", "expiry": "expiry"}


def _table(kind, cells, of_none):
    shown = {}
    for cell in cells:
        shown.update(promises.NAMES[cell.workload].figures)
    with_none = any(cell[1:3] in of_none for cell in cells)
    rows = [_row(cell, pair, shown, of_none.get(cell[1:3]) if with_none
                 else None, with_none) for cell, pair in cells.items()]
    used = [rec for pair in cells.values() for rec in pair.values()]
    head = ["case", "disk", "scheduler", *(f.title for f in shown.values())]
    return Table(f"Promises: {_TITLES[kind]}, base -> patched",
                 head + ["none: " + ", ".join(_NONE.values())] * with_none
                 + ["spread", "verdict"], rows,
                 ["Spread: the widest range of the judged figures, in per cent of its "
                  "median.", judge.rule_text(f"{judge.LEAST:.0%}"),
                  *judge.foot(one.verdict for cell, pair in cells.items()
                              for one in verdicts.of_cell(cell, pair))]
                 + origin.lines(used))


_NONE = {"p99": "p99", "p999": "p99.9", "rate": "rate", "others": "others"}


def _row(cell, pair, shown, none, with_none):
    case = promises.NAMES[cell.workload]
    row = [cell.workload.partition(": ")[2], cell.device, cell.sched]
    for name in shown:
        sides = [pair[kernel]["values"].get(name) if kernel in pair else None
                 for kernel in ("base", "patched")]
        row.append(change(*sides) if name in case.figures and
                   sides != [None, None] else "")
    if with_none:
        row.append(" / ".join(number(none["values"].get(name))
                              for name in _NONE) if none else "")
    names = verdicts.of_promise(case)
    row.append(" -> ".join(spread(pair[kernel], names)
                           for kernel in ("base", "patched")
                           if kernel in pair))
    row.append(verdicts.shown(verdicts.of_cell(cell, pair)))
    return row
