# SPDX-License-Identifier: GPL-2.0
"""Tables of the files that people use: databases, programs that start."""
from ..cases import files
from ..measure import results
from . import judge, origin, verdicts
from .tables import Table, change, number, ratio

_COLUMNS = {"Databases on ext4": {
    "commits": "commits/s", "commit_p50": "p50 ms", "commit_p99": "p99 ms",
    "commit_longest": "longest ms", "reads": "reads/s", "read_p99": "reads' p99 ms"},
    "Programs that start from ext4": {
    "start": "median ms", "start_worst": "worst ms", "copy": "copy MB/s"}}
NOTE = ("Of none: commits a second, or the median time, as a share of the same "
        "kernel's with none. Direct: the share of the requests that were not "
        "inserted into the scheduler, on the patched kernel; flushes have no part in it.")


def by_cell(records, what="files"):
    """{(what, load, disk, scheduler, CPUs): {kernel: record}}, by disk and load."""
    loads, scheds = list(files.LOADS), list(files.SCHEDS)
    found = results.pairs(rec for rec in records
                          if rec["what"] == what and rec["workload"] in loads)
    return dict(sorted(found.items(), key=lambda item: (
        item[0].device, loads.index(item[0].workload),
        verdicts.rank(item[0].sched, scheds))))


def tables(records):
    """A table of databases, and one of programs that start."""
    cells, found = by_cell(records), []
    for title, columns in _COLUMNS.items():
        first = next(iter(columns))
        mine = {cell: pair for cell, pair in cells.items()
                if any(first in rec["values"] for rec in pair.values())}
        if not mine:
            continue
        said = {cell: verdicts.of_cell(cell, pair) for cell, pair in mine.items()}
        rows = [_row(cell, pair, columns, _none(cells, cell, first), said[cell])
                for cell, pair in mine.items()]
        found.append(Table(
            f"{title}, base -> patched", ["load", "disk", "scheduler", *columns.values(),
                                          "of none", "direct", "verdict"], rows,
            [NOTE, judge.rule_text(f"{judge.LEAST:.0%}"),
             *judge.foot(one.verdict for found in said.values() for one in found),
             *origin.lines(rec for pair in mine.values() for rec in pair.values())]))
    return found


def _none(cells, cell, name):
    """What `none` gives, by kernel, where it was measured."""
    what, load, disk, _, cpus = cell
    pair = cells.get((what, files.LOADS[load].like or load, disk, "none", cpus), {})
    return {kernel: rec["values"].get(name) for kernel, rec in pair.items()}


def _row(cell, pair, columns, none, said):
    values = {kernel: rec["values"] for kernel, rec in pair.items()}

    def both(get):
        return change(*(get(kernel) if kernel in values else None
                        for kernel in ("base", "patched")))
    first = next(iter(columns))
    shown = [both(lambda kernel, name=name: values[kernel].get(name))
             for name in columns]
    of_none = both(lambda kernel: ratio(values[kernel].get(first), none.get(kernel)))
    direct = values.get("patched", {}).get("direct")
    return [*cell[1:4], *shown, of_none if cell.sched != "none" else "",
            "" if direct is None else number(direct), verdicts.words(said)]


def why_table(records):
    """What was issued directly and what was inserted."""
    rows = []
    for cell, pair in by_cell(records, files.WHY).items():
        for rec in pair.values():
            for name in files.REASONS:
                counts = rec["values"].get(f"parts: {name}")
                if counts:
                    rows.append([*cell[1:4], name, *counts, number(files.share(counts))])
    return Table("What is issued directly, by kind of request",
                 ["load", "disk", "scheduler", "requests", "direct", "inserted",
                  "share"], rows, origin.lines(records))
