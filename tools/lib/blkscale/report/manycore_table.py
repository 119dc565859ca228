# SPDX-License-Identifier: GPL-2.0
"""What tools/manycore/run prints: the table of its cells, and profiles."""
from ..measure import results
from ..measure.manycore import KernelCell

COLUMNS = [("I/Os per Mtick", "ios_per_mtick", ".1f"),
           ("misses/IO", "misses_per_io", ".1f"),
           ("rescued", "rescued", "d"),
           ("merged", "merged", ".3f"), ("KiB", "kib", ".1f"),
           ("first group", "share", ".2f")]


def _text(values, name, form):
    value = (values or {}).get(name)
    if value is None:
        return ""
    wide = results.wide(values) if name == COLUMNS[0][1] else ""
    return format(value, form) + wide


def rows(outcome, kernels):
    """Header and rows; one row a workload, scheduler and number of vCPUs."""
    shown = [(title, name, form) for title, name, form in COLUMNS
             if any((o.values or {}).get(name) is not None
                    for o in outcome.values())]
    header = ["workload", "vCPUs", "scheduler"]
    for title, _, _ in shown:
        header += [f"{kernel} {title}" for kernel in kernels]
        if title == COLUMNS[0][0] and len(kernels) == 2:
            header.append("ratio")
    table = []
    for workload, cpus, sched in dict.fromkeys(
            (c.workload, c.cpus, c.sched) for c in outcome):
        of = [outcome.get(KernelCell(workload, sched, cpus, k)) for k in kernels]
        values = [o.values if o and not o.trouble else None for o in of]
        row = [workload, str(cpus), sched]
        for title, name, form in shown:
            row += ["FAILED" if o and o.trouble and name == "ios_per_mtick"
                    else _text(v, name, form) for o, v in zip(of, values)]
            if title == COLUMNS[0][0] and len(kernels) == 2:
                row.append(ratio(values))
        table.append(row)
    return header, table


def ratio(values):
    base, other = (v and v["ios_per_mtick"] for v in values)
    return f"{other / base:.2f}" if base and other else ""


def text(header, table):
    """Columns side by side; a header of several words takes several lines."""
    heads = [h.split(" ", 1) if h.startswith(("base ", "patched ")) else [h]
             for h in header]
    deep = max(map(len, heads))
    lines = [[(h + [""] * deep)[i] for h in heads] for i in range(deep)]
    lines += table
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(word.ljust(w) if i in (0, 2) else word.rjust(w)
                  for i, (word, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines)


def profile_text(cell, outcome, top=25):
    """Misses and ticks per I/O by function."""
    ios = sum(run["ios"] for run in outcome.runs)
    head = (f"{cell.kernel}, {cell.workload}, {cell.sched}, "
            f"{cell.cpus} vCPUs: misses and ticks per I/O")
    lines = [head, f"{'misses':>9} {'ticks':>9}  function"]
    rest = [0, 0]
    for i, (name, (misses, ticks)) in enumerate(outcome.profile.items()):
        if i < top:
            lines.append(f"{misses / ios:9.2f} {ticks / ios:9.1f}  {name}")
        else:
            rest = [rest[0] + misses, rest[1] + ticks]
    lines.append(f"{rest[0] / ios:9.2f} {rest[1] / ios:9.1f}  (others)")
    return "\n".join(lines)
