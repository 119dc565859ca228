# SPDX-License-Identifier: GPL-2.0
"""What the figures of the promises say: verdicts, and tables of them."""
import math
import statistics

from . import promises, results
from .tables import Table, change, number, ratio, times

LEAST = 0.05		# a difference that is none, whatever the scatter


def cost(figure, value):
    """A figure as what is the better the less it is, in logarithms."""
    value = max(value, 1e-3)
    if figure.toward:
        return abs(math.log(value / figure.toward))
    return math.log(value) * (-1 if figure.better == "more" else 1)


def compared(figure, base, patched):
    """1: worse, -1: better, 0: the same, or not to be told apart: beyond a
    least difference, three standard errors of the means, and with no value of
    one side among the other's."""
    if not base or not patched:
        return 0
    old, new = ([cost(figure, v) for v in side] for side in (base, patched))
    by = statistics.median(new) - statistics.median(old)
    if abs(by) <= math.log1p(LEAST) or abs(
            statistics.median(patched) - statistics.median(base)) <= figure.none:
        return 0
    scatter = 3 * sum(statistics.variance(side) / len(side)
                      for side in (old, new) if len(side) > 1) ** 0.5
    apart = min(new) > max(old) if by > 0 else max(new) < min(old)
    if not apart or abs(by) <= scatter:
        return 0
    return 1 if by > 0 else -1


def judged(case):
    return {name: figure for name, figure in case.figures.items()
            if figure.better or figure.toward}


def differences(cell, pair):
    """{name of a judged figure: (1, 0 or -1, how the medians differ)}"""
    found = {}
    for name, figure in judged(promises.NAMES[cell[1]]).items():
        base, patched = (results.runs(pair[kernel], name)
                         for kernel in ("base", "patched"))
        if base and patched:
            old, new = statistics.median(base), statistics.median(patched)
            found[name] = (compared(figure, base, patched),
                           times(ratio(new, old)) or change(old, new))
    return found


def verdict(cell, pair):
    """WORSE, better or same; empty with one side only."""
    if not {"base", "patched"} <= set(pair):
        return ""
    found = differences(cell, pair)
    figures = promises.NAMES[cell[1]].figures
    words = []
    for way, word in ((1, "WORSE"), (-1, "better")):
        those = [f"{figures[name].title} {by}"
                 for name, (how, by) in found.items() if how == way]
        words += [f"{word}: {', '.join(those)}"] if those else []
    return "; ".join(words) or "same"


def spread(rec, names):
    """The widest range of the judged figures, in per cent of the median."""
    return f"{max((results.apart(rec, name) for name in names), default=0):.0f} %"


def by_cell(records):
    """{cell: {kernel: record}} in the order of the cases and disks."""
    cells = {}
    disks, cases = list(promises.DISKS), list(promises.NAMES)
    for rec in records:
        if rec["what"] == "promises" and rec["workload"] in cases and \
                rec["device"] in disks:
            cells.setdefault(results.key(rec), {})[rec["kernel"]] = rec
    return dict(sorted(cells.items(), key=lambda item: (
        cases.index(item[0][1]), disks.index(item[0][2]), item[0][3])))


def failures(records):
    """Cells in which a promise is worse kept than on base."""
    return [f"{verdict(cell, pair)}: {cell[3]}, {cell[2]}, {cell[1]}"
            for cell, pair in by_cell(records).items()
            if verdict(cell, pair).startswith("WORSE")]


def summary(records, origin):
    """One row a kind and scheduler."""
    counts, used = {}, []
    for cell, pair in by_cell(records).items():
        words = verdict(cell, pair)
        if words and cell[3] != "none":
            used += pair.values()
            row = counts.setdefault(
                (promises.NAMES[cell[1]].kind, cell[3]), [0, 0, 0])
            row[0] += 1
            row[1] += "WORSE" in words
            row[2] += words.startswith("better")
    rows = [[*row, *found] for row, found in counts.items()]
    return [Table("Promises: cells, and how many of them are worse or better "
                  "than base beyond the spread",
                  ["promise", "scheduler", "cells", "worse", "better"], rows,
                  origin(used))] if rows else []


def tables(records, origin):
    """A table for each kind of promise."""
    cells = by_cell(records)
    of_none = {cell[1:3]: pair.get("base") or pair.get("patched")
               for cell, pair in cells.items() if cell[3] == "none"}
    found = []
    for kind in promises.KINDS:
        part = {cell: pair for cell, pair in cells.items()
                if promises.NAMES[cell[1]].kind == kind and cell[3] != "none"}
        if part:
            found.append(_table(kind, part, of_none, origin))
    return found


_TITLES = {"latency": "latency of one reader",
           "start": "time to start up", "shares": "shares of cgroups",
           "class": "I/O priority classes", "expiry": "expiry"}


def _table(kind, cells, of_none, origin):
    shown = {}
    for cell in cells:
        shown.update(promises.NAMES[cell[1]].figures)
    with_none = any(cell[1:3] in of_none for cell in cells)
    rows = [_row(cell, pair, shown, of_none.get(cell[1:3]) if with_none
                 else None, with_none) for cell, pair in cells.items()]
    used = [rec for pair in cells.values() for rec in pair.values()]
    head = ["case", "disk", "scheduler", *(f.title for f in shown.values())]
    return Table(f"Promises: {_TITLES[kind]}, base -> patched",
                 head + ["none: " + ", ".join(_NONE.values())] * with_none
                 + ["spread", "verdict"], rows,
                 ["Worse or better: by more than 5 %, three standard errors "
                  "and the ranges of the boots. Spread: the widest range of "
                  "the judged figures, in per cent of its median."]
                 + origin(used))


_NONE = {"p99": "p99", "p999": "p99.9", "rate": "rate", "others": "others"}


def _row(cell, pair, shown, none, with_none):
    case = promises.NAMES[cell[1]]
    row = [cell[1].partition(": ")[2], cell[2], cell[3]]
    for name in shown:
        sides = [pair[kernel]["values"].get(name) if kernel in pair else None
                 for kernel in ("base", "patched")]
        row.append(change(*sides) if name in case.figures and
                   sides != [None, None] else "")
    if with_none:
        row.append(" / ".join(number(none["values"].get(name))
                              for name in _NONE) if none else "")
    names = judged(case)
    row.append(" -> ".join(spread(pair[kernel], names)
                           for kernel in ("base", "patched")
                           if kernel in pair))
    words = verdict(cell, pair)
    row.append(f"**{words}**" if words.startswith("WORSE") else words)
    return row
