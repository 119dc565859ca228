# SPDX-License-Identifier: GPL-2.0
"""Which figures of which cells are judged, and tables of what is worse than before."""
import statistics
from dataclasses import dataclass, replace

from ..cases import promises, workloads
from ..measure import results
from . import judge
from .judge import BETTER, WORSE, Rule
from .tables import Table, change, nearly, ratio

SCHEDS = ("none", "kyber", "mq-deadline", "bfq")
WORKLOADS = tuple(workloads.WORKLOADS)
# The series means to change nothing for these: the least loss is one.
UNCHANGED = ("none", "kyber")
NOTHING = 0.005

RATE = Rule()
MERGED = Rule(least=0.02, none=0.005)
KIB = Rule(least=0.02)
# Of QEMU's accesses to a register, which are counted
DOORBELLS = Rule("less", least=0.02)
# Its boots differ by a few parts in a thousand, with less than hundreds in flight.
STUDY = {"iops": ("IOPS", Rule(least=0.02)), "lat_p99": ("p99", Rule("less"))}
# Of times, what is small on a disk of 100 us is none.
FILES = {"commits": ("commits/s", Rule()),
         "commit_p99": ("p99 ms", Rule("less", none=.05)),
         "reads": ("reads/s", Rule()),
         "read_p99": ("reads' p99 ms", Rule("less", none=.05)),
         "start": ("median ms", Rule("less", none=2)),
         "start_worst": ("worst ms", Rule("less", none=2))}
OTHERS = {"nvmestudy": STUDY, "files": FILES}
SIZES = {"merged": ("merged", MERGED), "kib": ("KiB", KIB)}


def rank(name, known):
    return (known.index(name) if name in known else len(known), name)


def pairs(records):
    """{cell: {kernel: record}} in the order in which tables show them."""
    return dict(sorted(results.pairs(records).items(), key=lambda item: (
        rank(item[0].workload, WORKLOADS), item[0].device, item[0].cpus,
        rank(item[0].sched, SCHEDS))))


def value(pair, kernel, name):
    rec = pair.get(kernel)
    return rec["values"].get(name) if rec else None


def sides(pair, name):
    return value(pair, "base", name), value(pair, "patched", name)


def is_slow(rec):
    """A cell whose merges are judged, not its scaling."""
    return rec["what"] == "slowdisk" or \
        rec["what"] == "manycore" and "hard disk" in rec["device"]


def is_steady(rec):
    """Not a study by the wall clock."""
    return rec["what"] != "nvmestudy" or rec.get("clock") == "counted"


def rate_name(pair):
    return "ios_per_mtick" if any("ios_per_mtick" in rec["values"]
                                  for rec in pair.values()) else "iops"


# ------------------------------------------------------------ what is judged

def of_promise(case):
    """{name: (title, rule)} of what was promised."""
    return {name: (figure.title, Rule(figure.better, figure.toward, none=figure.none))
            for name, figure in case.figures.items() if figure.better or figure.toward}


def rate_counts(pair):
    """QEMU's NVMe takes the host's time, so its rate says nothing."""
    return all(rec["what"] != "plugtest" or rec.get("clock") == "counted"
               for rec in pair.values())


def _figures(cell, pair):
    what, workload = cell[:2]
    if what == "promises":
        return of_promise(promises.NAMES[workload]) if workload in promises.NAMES else {}
    if what in OTHERS:
        return OTHERS[what]
    rate = {rate_name(pair): ("rate", RATE)} if rate_counts(pair) else {}
    if what == "plugtest":
        return SIZES | {"doorbells": ("doorbells", DOORBELLS)} | rate
    if any(is_slow(rec) for rec in pair.values()):
        return SIZES | rate
    return rate if what == "manycore" else {}


def figures(cell, pair):
    """{name: (title, rule)} of what is judged in a cell."""
    found = _figures(cell, pair)
    if cell.sched not in UNCHANGED:
        return found
    return {name: (title, replace(rule, least=NOTHING) if rule.better == "more" else rule)
            for name, (title, rule) in found.items()}


@dataclass(frozen=True)
class Finding:
    """A figure of a cell on base beside patched."""
    cell: tuple
    title: str
    base: float
    patched: float
    verdict: judge.Verdict

    @property
    def ratio(self):
        return ratio(self.patched, self.base)

    @property
    def by(self):
        """How the medians differ."""
        return nearly(self.ratio) or change(self.base, self.patched)

    @property
    def kind(self):
        """The table that the cell is in."""
        what, workload, device = self.cell[:3]
        if what == "promises":
            return f"promises: {promises.NAMES[workload].kind}"
        if what == "manycore" and "hard disk" in device:
            return "hard disk in ticks"
        return {"manycore": "many CPUs", "slowdisk": "slow disks", "plugtest": "plugs",
                "nvmestudy": "NVMe study"}.get(what, what)

    @property
    def where(self):
        what, workload, device, _, cpus = self.cell
        load = workload.partition(": ")[2] if what == "promises" else workload
        return f"{load}, {device}" + (f", {cpus} vCPUs" if what == "manycore" else "")


def of_cell(cell, pair):
    """What is found of a cell; nothing with one side only."""
    found = []
    for name, (title, rule) in figures(cell, pair).items():
        old, new = (results.boots(pair[kernel], name) if kernel in pair else []
                    for kernel in ("base", "patched"))
        verdict = judge.verdict(old, new, rule)
        if verdict:
            found.append(Finding(cell, title, statistics.median(old),
                                 statistics.median(new), verdict))
    return found


def find(records):
    """What is found of all records."""
    return [finding for cell, pair in pairs(
        rec for rec in records if is_steady(rec)).items()
        for finding in of_cell(cell, pair)]


def words(found):
    """The verdict on a cell: `same`, or what is worse and what is better."""
    if not found:
        return ""
    listed = {}
    for one in found:
        if one.verdict.way in (WORSE, BETTER):
            listed.setdefault(str(one.verdict), []).append(f"{one.title} {one.by}")
    if listed:
        return "; ".join(f"{how}: {', '.join(those)}"
                         for how, those in sorted(listed.items(), key=_worse_first))
    return "same" if found[0].verdict.enough else str(found[0].verdict)


def _worse_first(item):
    return [not item[0].startswith(word) for word in
            (judge.SAYS_WORSE, judge.SAYS_UNCONFIRMED)], item[0]


def is_worse(text):
    return judge.SAYS_WORSE in text or judge.SAYS_UNCONFIRMED in text


def shown(found):
    """The verdict on a cell for a table."""
    text = words(found)
    return f"**{text}**" if is_worse(text) else text


def mark(found):
    """For a table without a column of verdicts: what is worse."""
    return "".join(f" **{one.verdict}**" for one in found if one.verdict.way == WORSE)


# ------------------------------------------------------------ what is worse

def failures(records):
    """Lines of what is worse, the confirmed and the worst first."""
    found = [one for one in find(records) if one.verdict.way == WORSE]
    found.sort(key=lambda one: (one.verdict.unconfirmed, -one.verdict.by))
    return [f"{one.verdict}: {one.kind}, {one.cell.sched}, {one.title} {one.by}: {one.where}"
            for one in found]


def doubtful(records):
    """What is worse, or looks so, and is not confirmed."""
    return [one for one in find(records)
            if one.verdict.looks == WORSE and not one.verdict.confirmed]


COUNTS = {"worse": lambda verdict: verdict.way == WORSE and verdict.confirmed,
          "unconfirmed": lambda verdict: verdict.unconfirmed,
          "better": lambda verdict: verdict.way == BETTER,
          "too few boots": lambda verdict: not verdict.enough}


def _looks_worse(verdict):
    return verdict.looks == WORSE and not verdict.enough


SETS = {f"Worse than before, confirmed by {judge.CONFIRMED} boots of each kernel":
        COUNTS["worse"],
        "Worse than before, unconfirmed": COUNTS["unconfirmed"],
        "Looks worse, with too few boots for a verdict": _looks_worse}


def _groups(found):
    groups = {}
    for one in found:
        groups.setdefault((one.kind, one.cell.sched, one.title), []).append(one)
    return groups


def _unsure(found):
    """Those with boots enough for a verdict, and too few to confirm one."""
    return [one for one in found if one.verdict.enough and not one.verdict.confirmed]


def _by_chance(bad, group):
    if not any(one.verdict.unconfirmed for one in bad):
        return ""
    return f" (by chance {judge.by_chance(len(_unsure(group)))})"


def _worst(found, belongs):
    """[(the worst, those that belong, all)] for each kind of cell, scheduler and
    figure, the worst first."""
    picked = []
    for group in _groups(found).values():
        bad = [one for one in group if belongs(one.verdict)]
        if bad:
            picked.append((max(bad, key=lambda one: one.verdict.by), bad, group))
    return sorted(picked, key=lambda those: -those[0].verdict.by)


def _worse(title, belongs, found, notes):
    rows = [[one.kind, one.cell.sched, one.title,
             f"{len(bad)} of {len(group)}" + _by_chance(bad, group),
             one.where, change(one.base, one.patched), nearly(one.ratio)]
            for one, bad, group in _worst(found, belongs)]
    return [Table(title, ["table", "scheduler", "figure", "cells", "worst cell",
                          "base -> patched", ""], rows, notes)] if rows else []


def worse(records):
    """Tables of what is worse, and of what only looks so."""
    found = find(records)
    verdicts = [one.verdict for one in found]
    (confirmed, unconfirmed, looks) = SETS.items()
    return _worse(*confirmed, found, ()) \
        + _worse(*unconfirmed, found, judge.foot(v for v in verdicts if v.enough)) \
        + _worse(*looks, found, judge.foot(v for v in verdicts if not v.enough))


def losses(records):
    """One table of what is worse, for the README: a row for each kind of cell,
    scheduler and figure, the worst first; KiB only where the merged share, of which
    they are made, has none. What is unconfirmed is counted below."""
    found = find(records)
    worst = _worst(found, COUNTS["worse"])
    merged = {(one.where, one.cell.sched) for one, _, _ in worst if one.title == "merged"}
    rows = [[one.where, one.cell.sched, one.title, change(one.base, one.patched),
             nearly(one.ratio), f"{len(bad)} of {len(group)}"]
            for one, bad, group in worst
            if one.title != "KiB" or (one.where, one.cell.sched) not in merged]
    unsure = _unsure(found)
    bad = [one for one in unsure if COUNTS["unconfirmed"](one.verdict)]
    looks = [one for one in found if _looks_worse(one.verdict)]
    more = []
    if bad:
        more.append(f"{len(bad)} of the {judge.counted(len(unsure), 'figure')} with 3 to "
                    f"{judge.CONFIRMED - 1} boots are worse, unconfirmed; chance alone "
                    f"makes {judge.by_chance(len(unsure))}: see RESULTS.md.")
    if looks:
        more.append(f"{judge.counted(len(looks), 'more figure')} may be worse, with too few "
                    f"boots for a verdict: see RESULTS.md.")
    return [Table("Losses, the worst first",
                  ["load and disk of the worst cell", "scheduler", "figure",
                   "7.3.4 -> patched", "", "cells"],
                  rows, more)] if rows or more else []


def _rates(group):
    """In how many cells the rate is below base's, and the median of the ratios."""
    found = [one.ratio for one in group if one.title in ("rate", "IOPS") and one.ratio
             and one.cell.what != "promises"]
    return [f"{sum(r < 1 for r in found)} of {len(found)}",
            f"x{statistics.median(found):.3f}"] if found else ["", ""]


def _counts(group):
    """How many cells there are, and how many have such a figure."""
    cells = {}
    for one in group:
        cells.setdefault(one.cell, []).append(one.verdict)
    return [len(cells), *(sum(any(map(belongs, cell)) for cell in cells.values())
                          for belongs in COUNTS.values())]


def summary(records, notes=()):
    """All verdicts: a row for each kind of cell and scheduler."""
    groups = {}
    for one in find(records):
        groups.setdefault((one.kind, one.cell.sched), []).append(one)
    rows = [[*names, *_counts(group), *_rates(group)] for names, group in groups.items()]
    return [Table("Verdicts: cells in which a figure is worse or better than before",
                  ["table", "scheduler", "cells", *COUNTS, "rate below base in",
                   "median of rates"], rows,
                  [judge.rule_text(least_text()), *notes])] if rows else []


def least_text():
    return (f"{judge.LEAST:.0%} ({MERGED.least:.0%} of merges, of sizes and of the NVMe "
            f"study's IOPS; {NOTHING:.1%} with {' and '.join(UNCHANGED)})")
