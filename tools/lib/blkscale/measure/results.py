# SPDX-License-Identifier: GPL-2.0
"""Measured figures: lists of records in build/results/, one JSON file a run.

A record says what was measured (Cell), where the figure comes from (ORIGIN)
and the figures: `values` are medians, `runs` the single runs behind them.
"""
import datetime
import itertools
import json
import statistics
from typing import NamedTuple

from .. import paths
from ..cases.workloads import scheduler
from ..ui import die

SPREAD = 0.05		# a cell is measured again while its spread is wider
SAME = paths.ROOT / "tools/report/same"
ORIGIN = ("kernel", "release", "base", "series", "date", "command")


class Cell(NamedTuple):
    """What was measured, on whatever kernel."""
    what: str		# which program did
    workload: str
    device: str
    sched: str
    cpus: int


def base_version():
    """The version of the base package that the trees were made from."""
    try:
        return (paths.BUILD / "base.version").read_text().split()[0]
    except (OSError, IndexError):
        return "unknown"


def now():
    return datetime.datetime.now().strftime("%Y-%m-%dT%H:%M")


def record(cell, kernel, values, command, release="", base=None, runs=None, **more):
    """A record with its origin filled in; more: fields of its own."""
    base = base_version() if base is None else base
    rec = {**cell._asdict(), "kernel": kernel,
           "release": release or base.split("-")[0], "base": base,
           "series": paths.series_id(measured=True), "date": now(),
           "command": command, "values": values, **more}
    if runs and len(runs) > 1:
        rec["runs"] = runs
    return rec


def medians(runs):
    """The median of each figure over several runs of one cell."""
    names = dict.fromkeys(name for run in runs for name in run)
    merged = {}
    for name in names:
        seen = [run[name] for run in runs if run.get(name) is not None]
        numbers = all(isinstance(v, (int, float)) for v in seen)
        if numbers and seen:
            counts = all(isinstance(v, int) for v in seen)
            merged[name] = (statistics.median_high if counts
                            else statistics.median)(seen)
        else:
            merged[name] = seen[0] if seen else None
    return merged


def error(values):
    """The standard error of the mean; 0 of a single value."""
    if len(values) < 2:
        return 0.0
    return statistics.stdev(values) / len(values) ** 0.5


def spread(values):
    """Two standard errors of the mean, as a share of it."""
    mean = statistics.mean(values)
    return 2 * error(values) / mean if mean else 0.0


def wide(values):
    """The spread in words, where it is above 5 %."""
    found = values.get("spread") or 0
    return f" ±{100 * found:.0f}%" if found > SPREAD else ""


def runs(rec, name):
    """The single values behind a figure."""
    found = [run.get(name) for run in rec.get("runs", ())]
    found = [value for value in found if value is not None]
    value = rec["values"].get(name)
    return found or ([] if value is None else [value])


def boots(rec, name):
    """The values behind a figure, one of each boot. Runs on many CPUs are laps, several
    in a boot; a record that does not say how many each boot has counts as one boot."""
    found = [run.get(name) for run in rec.get("runs", ())]
    if rec["what"] != "manycore" or not found:
        return runs(rec, name)
    rest, values = iter(found), []
    for laps in rec.get("boots") or [len(found)]:
        lap = [v for v in itertools.islice(rest, laps) if v is not None]
        values += [statistics.median(lap)] if lap else []
    return values


def apart(rec, name):
    """The difference of the largest and the least run, in per cent of their
    median."""
    found = runs(rec, name)
    middle = statistics.median(found) if found else 0
    return 100 * (max(found) - min(found)) / middle if middle else 0


def cell(rec):
    return Cell(*(rec.get(name) for name in Cell._fields))


def pairs(records):
    """{cell: {kernel: record}}"""
    found = {}
    for rec in records:
        found.setdefault(cell(rec), {})[rec["kernel"]] = rec
    return found


def add(records, what):
    """Write a list of records; returns the file."""
    paths.RESULTS.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    path = paths.RESULTS / f"{what}-{stamp}.json"
    text = json.dumps(list(records), indent=1, sort_keys=True)
    partial = path.with_suffix(".part")
    partial.write_text(text + "\n")
    partial.rename(path)
    return path


def load(path):
    """The records of a file; ends the program if it is none of ours."""
    how = "give a file that make scaletest, bench, manycore, slowdisk, " \
        "promises, plugtest or nvme-study wrote"
    try:
        with open(path, encoding="utf-8") as source:
            records = json.load(source)
    except OSError as error:
        die(f"cannot read {path}: {error.strerror}", how)
    except ValueError:
        die(f"{path} is not JSON", how)
    if not isinstance(records, list) or not all(_is_record(r) for r in records):
        die(f"{path} is not a list of results", how)
    return records


def _is_record(rec):
    return isinstance(rec, dict) and isinstance(rec.get("values"), dict) \
        and all(name in rec for name in (*Cell._fields, "kernel"))


def files():
    """Result files, oldest first."""
    found = paths.RESULTS.glob("*-*.json")
    return sorted(found, key=lambda p: (p.stat().st_mtime, p.name))


def newest(older=()):
    """The newest record of each cell and kernel over all files; older: more files,
    of records that count as older than all of those.

    Patched rows of another series and rows on another base are left out: they say
    nothing about the present one, unless tools/report/same says why they do.  A
    base row comes from the run that measured the patched row, if that run measured
    both.
    """
    return of([*older, *files()])


def of(given):
    """The newest record of each cell and kernel in these files, the oldest first."""
    return select([sorted(load(path), key=lambda rec: rec["date"]) for path in given],
                  paths.fields(SAME))


def _last(batches, name, kernels):
    return next((rec.get(name) for batch in reversed(batches)
                 for rec in reversed(batch) if rec["kernel"] in kernels), None)


def select(batches, same=None):
    """As newest(), of lists of records that are sorted oldest first. same: {id of a
    series that is taken for the last one: how they differ}, which its records keep, so
    that each table can say so; with `SCHEDULER: ` before it only records of that one do,
    as the code that the others run is the same."""
    same = same or {}
    base = _last(batches, "base", ("base", "patched"))
    last = _last(batches, "series", ("patched",))
    chosen, paired = {}, set()
    for batch in batches:
        fit = [_taken(rec, last, same) for rec in batch
               if _fits(rec, base, {last, *same})]
        patched = {cell(rec) for rec in fit if rec["kernel"] == "patched"}
        for rec in fit:
            name = cell(rec)
            if name in patched or name not in paired:
                chosen[name, rec["kernel"]] = rec
        both = patched & {cell(rec) for rec in fit if rec["kernel"] == "base"}
        paired = paired - patched | both
    return list(chosen.values())


def _taken(rec, last, same):
    """A record that says which series it is taken for, if not for its own."""
    rec = {name: value for name, value in rec.items() if name != "taken"}
    if rec["kernel"] != "patched" or rec.get("series") == last:
        return rec
    how = same[rec["series"]]
    sched, colon, of_sched = how.partition(": ")
    if colon:
        if scheduler(rec["sched"]) != sched:
            return rec
        how = of_sched
    return {**rec, "taken": f"taken for {last}, which differs: {how}"}


def _fits(rec, base, series):
    if rec["kernel"] not in ("base", "patched"):
        return True         # the running kernel of a real machine
    return rec.get("base") == base and \
        (rec["kernel"] == "base" or rec.get("series") in series)
