# SPDX-License-Identifier: GPL-2.0
"""What the figures say: tables out of the newest records of each cell."""
import re

from ..measure import results
from . import file_tables, judge, origin, overtaking_tables, promise_tables, verdicts
from .tables import Table, change, number, ratio, times
from .verdicts import (SCHEDS, WORKLOADS, is_slow, is_steady, pairs, rank, rate_counts,
                       rate_name, sides, value)

MAIN = "scaletest"


def judged(cells):
    """[what is found of each cell]"""
    return [verdicts.of_cell(cell, pair) for cell, pair in cells.items()]


def foot(found, text=None):
    """Lines below a table: the rule, and what chance does."""
    return [judge.rule_text(text or verdicts.least_text())] + judge.foot(
        one.verdict for cell in found for one in cell) if any(found) else []


# ------------------------------------------------------------ many CPUs

def figure(pair, kernel, name):
    """A rate, with its spread where that is wide."""
    rate = value(pair, kernel, name)
    return "" if rate is None else \
        number(rate) + results.wide(pair[kernel]["values"])


def figures(pair, name):
    """`84.1 ±7% -> 148`; a side that was not measured is left out."""
    return " -> ".join(filter(None, (figure(pair, kernel, name) for kernel in
                                     ("base", "patched")))) or "-"


def _rate(pair, kernel):
    misses = value(pair, kernel, "misses_per_io")
    return figure(pair, kernel, "ios_per_mtick") + \
        ("" if misses is None else f" ({misses:.0f})")


def manycore_cell(pair, found=()):
    """`84.1 (114) -> 148 (76) x1.76`, and if that is worse, how surely."""
    if not pair:
        return ""
    shown = [text for text in (_rate(pair, "base"), _rate(pair, "patched"))
             if text]
    gain = times(ratio(*reversed(sides(pair, "ios_per_mtick"))))
    return (" -> ".join(shown) + (f" **{gain}**" if gain else "")
            + verdicts.mark(found)).strip()


# What a user has, in the README: (workload, vCPUs, how it is called there)
GAINED = [("scaletest", 1, "4 random reads in flight a CPU"), ("scaletest", 8, ""),
          ("scaletest", 16, ""), ("scaletest", 32, ""),
          ("qd1", 16, "1 in flight a CPU"),
          ("batchtest", 16, "8 writes in flight a CPU, a queue a CPU"),
          ("scsi", 16, "scsi_debug"), ("nvme-scaletest", 16, "nvme-loop"),
          ("one-group", 16, "all in a cgroup"),
          ("two-groups", 16, "in two cgroups"),
          ("saturated", 16, "8 tags, 64 in flight wanted"),
          ("flash8", 8, "flash disk, 8 tags, 32 wanted")]


def shares(pair, of):
    """`2 -> **96**`: in per cent of the rates of `none`."""
    shown = []
    for kernel, form in (("base", "{}{}"), ("patched", "**{}**{}")):
        none = value(of, kernel if kernel in of else "base", "ios_per_mtick")
        share = ratio(value(pair, kernel, "ios_per_mtick"), none)
        if share is not None:
            shown.append(form.format(f"{100 * share:.0f}",
                                     results.wide(pair[kernel]["values"])))
    return " -> ".join(shown)


def gained(records):
    """Of the loads above: what base and patched do, and whether `none` stays."""
    cells = pairs(r for r in records if r["what"] == "manycore")
    rows, used = [], []
    for name, cpus, words in GAINED:
        row = {cell.sched: pair for cell, pair in cells.items()
               if (cell.workload, cell.cpus) == (name, cpus)}
        if not any("patched" in pair for pair in row.values()):
            continue
        used += [rec for sched in ("none", "mq-deadline", "bfq")
                 for rec in row.get(sched, {}).values()]
        of = row.get("none", {})
        rows.append([f"{name}: {words}" if words else name, cpus,
                     *(shares(row.get(sched, {}), of) for sched in ("mq-deadline", "bfq")),
                     times(ratio(*reversed(sides(of, "ios_per_mtick"))))])
    return Table("Gains: per cent of the speed of `none`, 7.3.4 -> **patched**",
                 ["load", "CPUs", "mq-deadline", "bfq", "`none` itself"], rows,
                 spreads(used) + origin.brief(used)) if rows else None


def manycore(records):
    """The scaletest, then all other loads: schedulers across."""
    cells = pairs(r for r in records
                  if r["what"] == "manycore" and not is_slow(r))
    main = {cell: pair for cell, pair in cells.items() if cell.workload == MAIN}
    rest = {cell: pair for cell, pair in cells.items() if cell.workload != MAIN}
    return [_manycore(title, part) for title, part in
            (("Scaletest", main), ("Other loads", rest)) if part]


def _manycore(title, cells):
    across = sorted({cell.sched for cell in cells}, key=lambda s: rank(s, SCHEDS))
    by_row, found = {}, {cell: verdicts.of_cell(cell, pair)
                         for cell, pair in cells.items()}
    for cell, pair in cells.items():
        _, workload, device, sched, cpus = cell
        by_row.setdefault((workload, device, cpus), {})[sched] = \
            manycore_cell(pair, found[cell])
    rows = [[*row] + [shown.get(sched, "") for sched in across]
            for row, shown in by_row.items()]
    used = [rec for pair in cells.values() for rec in pair.values()]
    return Table(f"{title} on many CPUs: I/Os per million ticks (coherence "
                 "misses per I/O), base -> patched",
                 ["load", "device", "vCPUs"] + across, rows,
                 foot(found.values()) + spreads(used) + rescues(used) + origin.lines(used))


def spreads(records):
    if not any(results.wide(rec["values"]) for rec in records):
        return []
    return [f"±: two standard errors of the runs' mean, where above "
            f"{results.SPREAD:.0%}"]


def rescues(records):
    found = [f"{r['workload']} at {r['cpus']}, {r['sched']}, {r['kernel']}: "
             f"{r['values']['rescued']:g}"
             for r in records if r["values"].get("rescued")]
    return ["Runs of the queue that a timer began: " + "; ".join(found)] \
        if found else []


# ------------------------------------------------------------ parts

def part_figure(values, name, verdict=None):
    """`229 (28.1 KiB)`"""
    rate = values.get(name)
    if rate is None:
        return ""
    kib = values.get(f"{name} KiB")
    return number(rate) + \
        results.wide({"spread": values.get(f"{name} spread")}) + \
        ("" if kib is None else f" ({kib:.1f} KiB)") + \
        (f" **{verdict}**" if verdict and verdict.way == judge.WORSE else "")


def parts(records):
    """A row for base, then for each part of the series."""
    mine = sorted((r for r in records if r["what"] == "parts"),
                  key=lambda r: r["values"]["number"])
    if len(mine) < 2:		# base, and no part of this series
        return []
    loads = [name for name in mine[0]["values"] if ", " in name
             and not name.endswith((" spread", " KiB"))]
    loads.sort(key=lambda name: (rank(name.split(", ")[0], WORKLOADS),
                                 rank(name.split(", ")[-1], SCHEDS)))
    found = [[judge.verdict(results.boots(mine[0], name), results.boots(rec, name),
                            verdicts.RATE) for name in loads] for rec in mine]
    found[0] = [None for _ in loads]
    rows = [[r["workload"], *(part_figure(r["values"], name, verdict)
                              for name, verdict in zip(loads, row)),
             r["values"]["lines"], r["values"]["sum"]] for r, row in zip(mine, found)]
    return [Table(
        "What each part brings: I/Os per million ticks with the series up to "
        "there", ["part", *loads, "lines added", "in sum"], rows,
        ["Lines of kernel code, comments included, tests left out; in sum: "
         "of all parts so far. Each rate is judged beside base's.",
         *judge.foot(verdict for row in found for verdict in row)] + origin.lines(mine))]


# ------------------------------------------------------------ slow disks

def slow_row(cell, pair):
    _, workload, device, sched, cpus = cell
    name = rate_name(pair)
    rates = [figures(pair, name), times(ratio(*reversed(sides(pair, name))))] \
        if rate_counts(pair) else ["", ""]
    return [device, workload, cpus, sched, *rates,
            change(*sides(pair, "merged"), lambda v: f"{v:.3f}"),
            change(*sides(pair, "kib")), verdicts.shown(verdicts.of_cell(cell, pair))]


def slowdisk(records):
    tables = []
    for what, title in (("slowdisk", "Slow disks: IOPS"),
                        ("manycore", "Hard disk in tick time: "
                                     "I/Os per million ticks")):
        cells = pairs(r for r in records
                      if r["what"] == what and is_slow(r))
        if not cells:
            continue
        cells = dict(sorted(cells.items(), key=lambda c: (
            c[0].device, c[0].workload, c[0].cpus, rank(c[0].sched, SCHEDS))))
        used = [rec for pair in cells.values() for rec in pair.values()]
        tables.append(Table(
            f"{title}, share of merged requests, KiB per request, "
            "base -> patched",
            ["disk", "load", "vCPUs", "scheduler", "I/Os", "", "merged",
             "KiB", "verdict"],
            [slow_row(cell, pair) for cell, pair in cells.items()],
            foot(judged(cells)) + rescues(used) + origin.lines(used)))
    return tables


# ------------------------------------------------------------ plugs

def natural(text):
    """For sorting: numbers in a text by their value."""
    return [int(word) if word.isdigit() else word
            for word in re.split(r"(\d+)", text)]


def plug(records):
    """What merges in plugs, and how often the device is told."""
    cells = pairs(r for r in records if r["what"] == "plugtest")
    cells = dict(sorted(cells.items(), key=lambda c: (
        natural(c[0].device), natural(c[0].workload), c[0].cpus, rank(c[0].sched, SCHEDS))))
    rung = {cell: pair for cell, pair in cells.items()
            if any("doorbells" in rec["values"] for rec in pair.values())}
    merged = {cell: pair for cell, pair in cells.items() if cell not in rung}
    return ([_plug(merged)] if merged else []) + \
        ([_doorbells(rung)] if rung else [])


def _plug(cells):
    used = [rec for pair in cells.values() for rec in pair.values()]
    return Table(
        "Plugs: IOPS, share of merged writes and KiB per write at a member, "
        "base -> patched",
        ["disk", "load", "vCPUs", "scheduler", "I/Os", "", "merged", "KiB",
         "verdict"],
        [slow_row(cell, pair) for cell, pair in cells.items()],
        ["QEMU's NVMe takes the host's time, so its rate says nothing and is not judged."]
        + foot(judged(cells)) + origin.lines(used))


def _doorbells(cells):
    across = sorted({cell.sched for cell in cells}, key=lambda s: rank(s, SCHEDS))
    by_row = {}
    for cell, pair in cells.items():
        _, workload, device, sched, cpus = cell
        by_row.setdefault((device, workload, cpus), {})[sched] = \
            change(*sides(pair, "doorbells"), lambda v: "" if v is None else f"{v:.3f}") \
            + verdicts.mark(verdicts.of_cell(cell, pair))
    rows = [[*row] + [shown.get(sched, "") for sched in across]
            for row, shown in by_row.items()]
    used = [rec for pair in cells.values() for rec in pair.values()]
    return Table("Doorbells: writes to the submission queue's register per "
                 "request, base -> patched",
                 ["disk", "load", "vCPUs"] + across, rows,
                 foot(judged(cells)) + origin.lines(used))


# ------------------------------------------------------------ NVMe study

LATENCIES = {"lat_min": "min", "lat_mean": "mean", "lat_p99": "99 %",
             "lat_max": "max", "lat_stddev": "stdev"}


STEADY = 5      # per cent: what a study's figures may differ by, unsaid


def nvme_study(records):
    """As published in 2013, with the schedulers in place of two drivers; by
    counted instructions, and by the wall clock."""
    mine = [r for r in records if r["what"] == "nvmestudy"]
    parts = [[r for r in mine if is_steady(r) is steady]
             for steady in (True, False)]
    return [_nvme_study(part) for part in parts if part]


def _nvme_study(records):
    cells = pairs(records)
    cells = dict(sorted(cells.items(), key=lambda c: (
        c[0].device, natural(c[0].workload), rank(c[0].sched, SCHEDS))))
    rows = []
    for (cell, pair), found in zip(cells.items(), judged(cells)):
        _, workload, device, sched, _ = cell
        rows.append([device, workload, sched, change(*sides(pair, "iops")),
                     times(ratio(*reversed(sides(pair, "iops"))))]
                    + [change(*sides(pair, name), percent)
                       for name in ("usr", "sys")]
                    + [change(*sides(pair, name)) for name in LATENCIES]
                    + [scattered(pair), verdicts.shown(found)])
    clock = "" if is_steady(records[0]) else \
        ", by the wall clock of an emulated machine"
    return Table("NVMe study: 4 KiB random writes, jobs x depth: IOPS, usr %, "
                 f"sys %, latency in microseconds{clock}, base -> patched",
                 ["disk", "load", "scheduler", "IOPS", "", "usr", "sys",
                  *LATENCIES.values(), "spread", "verdict"], rows,
                 [f"Spread: of IOPS and of the mean latency from boot to boot, "
                  f"if it is above {STEADY} %."] + foot(judged(cells)) + origin.lines(records))


def scattered(pair):
    """How far single runs are from one another, where that is much."""
    found = []
    for name, title in (("iops", "IOPS"), ("lat_mean", "mean")):
        worst = max(results.apart(rec, name) for rec in pair.values())
        if worst > STEADY:
            found.append(f"{title} {worst:.0f} %")
    return ", ".join(found)


# ------------------------------------------------------------ fio

def percent(number_):
    return "-" if number_ is None else f"{number_:.1f}"


def fio_row(cell, pair, lock):
    _, workload, device, sched, cpus = cell
    row = [device, workload, cpus, sched, change(*sides(pair, "iops")),
           times(ratio(*reversed(sides(pair, "iops")))),
           change(*sides(pair, "usr"), percent),
           change(*sides(pair, "sys"), percent)]
    if lock:
        shares = [None if v is None else 100 * v for v in sides(pair, "lock")]
        names = [name for name in sides(pair, "lock_name") if name]
        row += [change(*shares, percent), ", ".join(dict.fromkeys(names))]
    return row


def fio(records):
    tables = []
    for what, title in (("fio", "fio by the wall clock"),
                        ("lockstat", "fio on a kernel that counts contention")):
        cells = pairs(r for r in records if r["what"] == what
                      and r["kernel"] != "running")
        if cells:
            lock = what == "lockstat"
            used = [rec for pair in cells.values() for rec in pair.values()]
            tables.append(Table(
                f"{title}: IOPS, usr %, sys %, base -> patched",
                ["device", "job", "vCPUs", "scheduler", "IOPS", "", "usr",
                 "sys"] + (["lock wait %", "worst lock"] if lock else []),
                [fio_row(cell, pair, lock) for cell, pair in cells.items()],
                origin.lines(used)))
    return tables


def running(records):
    """A real machine's disk with its running kernel: no two sides."""
    mine = [r for r in records if r["kernel"] == "running"]
    if not mine:
        return []
    mine.sort(key=lambda r: (r["device"], rank(r["workload"], WORKLOADS),
                             rank(r["sched"], SCHEDS)))
    rows = [[r["device"], r["workload"], r["cpus"], r["sched"],
             number(r["values"].get("iops")), percent(r["values"].get("usr")),
             percent(r["values"].get("sys")), r["release"]] for r in mine]
    return [Table("This machine's disk, running kernel: IOPS, usr %, sys %",
                  ["device", "job", "CPUs", "scheduler", "IOPS", "usr", "sys",
                   "kernel"], rows, origin.lines(mine))]


def tables(records):
    return verdicts.worse(records) \
        + verdicts.summary(records, origin.short(records)) \
        + manycore(records) + parts(records) + slowdisk(records) \
        + promise_tables.tables(records) + file_tables.tables(records) \
        + overtaking_tables.tables(records) + plug(records) \
        + nvme_study(records) + fio(records) + running(records)
