# SPDX-License-Identifier: GPL-2.0
"""What schedulers promise: the cases, what they give, and what is judged.

A case is a few groups of processes on one disk (tools/bench/tasks.c). Each
kind of promise has its figures; a figure is judged by the way in which it is
better, and `toward` a value where that is what was promised.
"""
import itertools
from dataclasses import dataclass, field, replace

GROUPS = "/run/promises"	# cgroups, version 2

# of the guest's kernel
APPEND = ("scsi_debug.max_queue=64 scsi_debug.ndelay=100000 "
          "scsi_debug.fake_rw=1 scsi_debug.virtual_gb=64 scsi_debug.delay=0")

PACE = 1.0	# seconds of the host for one of the guest's, about


@dataclass(frozen=True)
class Disk:
    latency_us: int
    depth: int
    seconds: float		# of a case
    shares: float		# of one about shares: bfq's slices take up to 125 ms
    limit: float		# of all start-ups: what has not ended then was cut off
    scsi: bool = False
    rotational: int = 0


# Where all of a slice of 125 ms is used, ten for one and one for the other are
# 1.4 s. On a disk of 100 us the guest's CPUs are busy all the time, which the
# host has to emulate.
DISKS = {
    "null_blk 100 us x 64": Disk(100, 64, .2, 1.5, 5),
    "null_blk 1 ms x 8": Disk(1000, 8, .7, 5, 8),
    "null_blk 1 ms x 64": Disk(1000, 64, .4, 2.5, 5),
    "null_blk 5 ms x 1024": Disk(5000, 1024, 1.5, 5, 8),
    "null_blk 20 ms x 64": Disk(20000, 64, 2, 8, 40),
    "scsi_debug SSD 100 us x 64": Disk(100, 64, .2, 1.5, 5, scsi=True),
    "scsi_debug disk 5 ms x 32": Disk(5000, 32, 1.2, 5, 40, scsi=True,
                                      rotational=1),
}

BOTH = ("mq-deadline", "bfq")
EARLY = 200		# ms of load before what is measured begins


@dataclass(frozen=True)
class Figure:
    title: str
    better: str = ""		# "less", "more", or not judged
    toward: float = 0		# what was promised, instead
    none: float = 0		# a difference that is none


MS = {"p50": Figure("p50 ms"), "p99": Figure("p99 ms", "less", none=.05),
      "p999": Figure("p99.9 ms", "less", none=.05),
      "longest": Figure("longest ms")}
LATENCY = {**MS, "rate": Figure("rate", "more"),
           "others": Figure("the others' rate", "more")}
START = {"median": Figure("median ms", "less", none=2),
         "worst": Figure("worst ms", "less", none=2),
         "cut": Figure("cut off", "less"),
         "others": Figure("the others' rate")}
LONGEST = {"p99": MS["p99"], "longest": Figure("longest ms", "less", none=2),
           "rate": Figure("rate"), "others": Figure("the others' rate")}
FLOOD = {**LATENCY, "longest": LONGEST["longest"]}	# a deadline is for each request


def shares(toward, inner=None):
    found = {"ratio": Figure("share", toward=toward)}
    if inner:
        found["inner"] = Figure("inner share", toward=inner)
    return found | {"sum": Figure("sum of rates", "more")}


@dataclass(frozen=True)
class Case:
    kind: str
    name: str
    groups: tuple		# what tasks is told
    figures: dict = field(hash=False)
    scheds: tuple = BOTH
    cgroups: tuple = ()		# (folder, weight)
    settings: str = ""		# of the scheduler
    time: str = "seconds"	# of the disk
    early: int = EARLY
    none: bool = False		# what `none` gives says something, too
    disks: tuple = ()		# all, or those with one of these in the name
    short: tuple = ()		# (scheduler, disk) in the short form
    half: int = None		# in which half of the disks part 1 has it
    sysctls: tuple = ()		# (name below /proc/sys, value)

    @property
    def full_name(self):
        return f"{self.kind}: {self.name}"

    def tasks(self, disk):
        """The groups for tasks on a disk."""
        busy = min(DISKS[disk].depth, 128) * 3 // 8
        return [group.format(busy=busy, most=4 * busy)
                for group in self.groups]

    def sched(self, name):
        """The scheduler with its settings."""
        scheduler, _, setting = self.settings.partition(":")
        return f"{name}:{setting}" if name == scheduler else name


# ---------------------------------------------------------------- latency

_NOISE = {
    "one bulk reader": "n=1,size=65536,depth=32,burst=1,pause=50",
    "4 bulk readers": "n=4,size=65536,depth=32,burst=1,pause=50",
    "QD512": "n=1,depth=512",
    "4 x QD128": "n=4,depth=128",
    "8 x QD64 writers": "n=8,depth=64,write=1",
    "8 sequential writers": "n=8,depth=4,size=131072,write=1,seq=1",
}
_SHORT_LATENCY = {
    "4 bulk readers": (("bfq", "null_blk 1 ms x 64"),),
    "QD512": (("bfq", "null_blk 5 ms x 1024"),),
    "4 x QD128": (("mq-deadline", "null_blk 5 ms x 1024"),
                  ("bfq", "null_blk 5 ms x 1024"),
                  ("mq-deadline", "scsi_debug SSD 100 us x 64")),
    "8 x QD64 writers": (("bfq", "null_blk 1 ms x 8"),),
}
CASES = [Case("latency", f"QD1 reader beside {name}",
              (f"others,{noise},start=-{EARLY}", "reader,n=1"), LATENCY,
              none=True, short=_SHORT_LATENCY.get(name, ()))
         for name, noise in _NOISE.items()]
# Its requests are left to kblockd, which does not get the CPU. On base whoever
# next submits several at once dispatches them, too.
CASES += [Case("latency", f"SCHED_FIFO poller beside {name}",
               (f"others,{noise},burst=1,cpu=0,start=-{EARLY}",
                "reader,n=1,fifo=1,cpu=1"), LONGEST, none=True)
          for name, noise in {"one reader of 16 at once": "n=1,depth=16",
                              "4 readers of 16 at once": "n=4,depth=16"
                              }.items()]

# ---------------------------------------------------------------- start-up

_BESIDE = {
    "4 QD1 readers": "n=4,depth=1", "4 QD32 readers": "n=4,depth=32",
    "4 sequential readers": "n=4,depth=4,size=131072,seq=1",
    "4 sequential writers": "n=4,depth=4,size=131072,write=1,seq=1",
}
_STARTING = {"10 applications": "n=10,gap=100,app=1",
             "a process tree": "n=1,tree=5"}
for _name, _noise in _BESIDE.items():
    for _what, _task in _STARTING.items():
        CASES.append(Case(
            "start", f"{_what} beside {_name}",
            (f"others,{_noise},start=-{EARLY}", f"start,{_task}"), START,
            time="limit", short=(("bfq", "null_blk 1 ms x 8"),)
            if _name == "4 QD32 readers" else ()))

# ---------------------------------------------------------------- shares

# Processes that start together get one queue from bfq, others each its own.
_TOGETHER, _APART = "together", "0.7 s apart"
_SHORT_SHARES = {
    (10, 4, _TOGETHER, 1): ("null_blk 20 ms x 64",),
    (1, 4, _APART, 1): ("null_blk 5 ms x 1024",),
}


def _sharing(name, groups, weights, figures, readers, when, depth, half):
    """groups: the folder of each; in all of them as many readers."""
    gap = 700 if when == _APART else 0
    early = EARLY + gap * (readers - 1 or 1)
    tasks = [f"{task},n={readers},gap={gap},depth={depth},"
             f"cgroup={GROUPS}/{folder},"
             f"start={-EARLY if place and readers == 1 else -early}"
             for place, (task, folder) in enumerate(groups.items())]
    short = _SHORT_SHARES.get((figures["ratio"].toward, readers, when, depth),
                              ()) if len(groups) == 2 else ()
    return Case("shares", f"{name}, {readers} readers each, QD{depth}, {when}",
                tuple(tasks), figures, ("bfq",), weights,
                "bfq:low_latency=0", "shares", early,
                short=tuple(("bfq", disk) for disk in short), half=half)


for _number, (_readers, _when, _depth) in enumerate(itertools.product(
        (1, 4), (_TOGETHER, _APART), (1, 8))):
    _odd = _number.bit_count() % 2
    CASES += [_sharing(f"{weight}:1", {"a": "a", "b": "b"},
                       (("a", 100 * weight), ("b", 100)), shares(weight),
                       _readers, _when, _depth, _odd ^ other)
              for weight, other in ((10, 0), (3, 1), (1, 0))]
    CASES.append(_sharing(
        "2 (1:3) : 1", {"a": "a/1", "a2": "a/2", "b": "b"},
        (("a", 200), ("a/1", 100), ("a/2", 300), ("b", 100)), shares(2, 3),
        _readers, _when, _depth, _odd ^ 1))
CASES += [Case("shares", f"priority 0 beside 7 in one group, QD{depth}",
               tuple(f"{name},n=1,depth={depth},class=2,level={level},"
                     f"cgroup={GROUPS}/a,start=-{EARLY}"
                     for name, level in (("a", 0), ("b", 7))),
               shares(8), ("bfq",), (("a", 100),), "bfq:low_latency=0",
               "shares") for depth in (1, 8)]

# ---------------------------------------------------------------- classes

# Half as many again as the disk takes at once, which the scheduler has tags
# for: who waits for a tag waits for it whatever his class.
_BUSY = "n=4,depth={busy}"
CASES += [
    Case("class", "RT reader beside 4 BE readers",
         (f"others,{_BUSY},start=-{EARLY}", "reader,n=1,depth=4,class=1"),
         LATENCY, none=True, short=(("mq-deadline", "null_blk 1 ms x 8"),
                                    ("bfq", "null_blk 1 ms x 8"))),
    Case("class", "BE reader beside 4 IDLE readers",
         (f"others,{_BUSY},class=3,start=-{EARLY}", "reader,n=1,depth=4"),
         {**LATENCY, "others": Figure("the others' rate")}, none=True,
         short=(("mq-deadline", "null_blk 1 ms x 8"),)),
    Case("class", "4 BE readers beside 4 IDLE readers",
         (f"reader,{_BUSY},start=-{EARLY}", f"others,{_BUSY},class=3"),
         {"rate": Figure("rate", "more"),
          "others": Figure("IDLE's rate", "less", none=20)}),
    Case("class", "IDLE reader ages beside 4 BE readers",
         (f"others,{_BUSY},start=-{EARLY}", "reader,n=1,class=3"), LONGEST,
         settings="mq-deadline:prio_aging_expire=300", time="shares",
         disks=("1 ms x 8", "disk 5 ms"),
         short=(("mq-deadline", "null_blk 1 ms x 8"),)),
    Case("expiry", "reads beside a flood of writes",
         (f"others,n=4,depth=64,write=1,start=-{EARLY}",
          "reader,n=4,depth=1"), FLOOD,
         short=(("mq-deadline", "scsi_debug disk 5 ms x 32"),)),
    Case("expiry", "writes beside a flood of reads",
         (f"others,n=4,depth=64,start=-{EARLY}",
          "reader,n=4,depth=1,write=1"), FLOOD),
    # As long as there is something ahead of the last one, what is behind it
    # waits until it expires.
    Case("expiry", "read behind a reader that skips every other block",
         (f"others,n=1,depth={{most}},seq=1,stride=2,from=300,start=-{EARLY}",
          "reader,n=1,depth=1,seq=1"), LONGEST,
         ("mq-deadline",), settings="mq-deadline:read_expire=100",
         time="shares", disks=("1 ms x 8", "disk 5 ms"),
         short=(("mq-deadline", "null_blk 1 ms x 8"),)),
]
# Part 1 has each case on every other disk, part 2 has the rest.
CASES = [case if case.half is not None else replace(case, half=(n + 1) % 2)
         for n, case in enumerate(CASES)]

# ---------------------------------------------------------------- CPUs taken away

# A CPU of the submitters is taken away while a reader has the other one. What
# comes after the cases above leaves their halves as they are.
_HOG = f"hog,cpu=0,start=-{EARLY}"
CASES += [
    Case("latency", f"QD1 reader, and for 5 of 6 ms a SCHED_FIFO task on the CPU of {name}",
         (f"{_HOG},fifo=1,hog=5000,period=6000",
          f"others,{noise},cpu=0,start=-{EARLY}", "reader,n=1,cpu=1"),
         LONGEST, time="shares", none=True, disks=disks, half=half,
         sysctls=(("kernel/sched_rt_runtime_us", -1),))
    for name, noise, disks, half in (
        ("4 readers of 32 at once", "n=4,depth=32,burst=1", ("100 us x 64",), 1),
        ("4 QD32 readers", "n=4,depth=32", ("x 8", "disk 5 ms"), 0))]
# A task that is preempted while its plug holds requests has them until it gets the CPU
# again, one task after the other. The RT reader sleeps at times: as long as one of
# its requests is there mq-deadline lets nobody else have driver tags early.
CASES.append(Case(
    "class", "RT reader with pauses, and for 0.9 of 1 ms a SCHED_FIFO task on the "
    "CPU of 8 SCHED_IDLE readers of 32 at once",
    (f"{_HOG},fifo=1,hog=900,period=1000",
     f"others,n=8,depth=32,burst=1,cpu=0,idle=1,class=2,start=-{EARLY}",
     "reader,n=1,class=1,pause=2,cpu=1"), LONGEST, time="shares", none=True,
    disks=("100 us x 64",), half=1,
    short=(("mq-deadline", "null_blk 100 us x 64"),),
    sysctls=(("kernel/sched_rt_runtime_us", -1),)))
# bfq detects a soft real-time process: it reads less than 7000 sectors a second,
# with pauses. Nobody is weight-raised for another reason after some 3 s.
_PLAYED = 4000
CASES.append(Case(
    "latency", "video, 64 KiB each 40 ms, beside 4 QD32 readers",
    (f"others,{_BESIDE['4 QD32 readers']},start=-{_PLAYED}",
     f"reader,n=1,size=65536,seq=1,pause=40,start=-{_PLAYED}"),
    LONGEST, time="shares", early=_PLAYED, none=True,
    disks=("100 us x 64", "1 ms x 64", "disk 5 ms"), half=1))

# Readers and writers that start shortly before a program are weight-raised as it is,
# until they have had 60 MB. These have had it.
_OLD = 2500
CASES += [
    Case("start", f"{what} beside {name} that run for {_OLD / 1000:.1f} s",
         (f"others,{_BESIDE[name]},start=-{_OLD}", f"start,{task}"), START,
         time="limit", early=_OLD, half=1,
         disks=("1 ms x", "5 ms x 1024", "SSD"))
    for name in ("4 QD32 readers", "4 sequential writers")
    for what, task in _STARTING.items()]

NAMES = {case.full_name: case for case in CASES}
KINDS = tuple(dict.fromkeys(case.kind for case in CASES))


def cell_name(case, disk, sched):
    return f"{case.full_name} {disk} {sched}"


def cells(short=False, only="", scheds=BOTH, part=None):
    """[(case, disk, scheduler)], disk by disk."""
    found = []
    for number, disk in enumerate(DISKS):
        for case in CASES:
            if case.disks and not any(word in disk for word in case.disks):
                continue
            if part and (case.half == number % 2) == (part == 1):
                continue
            for sched in case.scheds:
                if sched not in scheds or \
                        only not in cell_name(case, disk, sched):
                    continue
                if not short or (sched, disk) in case.short:
                    found.append((case, disk, sched))
    return found


# ---------------------------------------------------------------- figures

def _ms(us):
    return round(us / 1000, 4)


def _rate(said, name):
    return round(said[name]["ios"] / said["seconds"], 1)


BEST = 1000		# where one has everything


def _ratio(a, b):
    return min(round(a / b, 3), BEST) if b else BEST


def _of_shares(said):
    a, b = _rate(said, "a"), _rate(said, "b")
    found = {}
    if "a2" in said:
        found["inner"] = _ratio(_rate(said, "a2"), a)
        a += _rate(said, "a2")
    return {"ratio": _ratio(a, b), **found, "sum": round(a + b, 1)}


def _of_starts(said):
    """One that was cut off would have taken longer than all that were not."""
    times, cut = sorted(said["starts"]), said["cut"]
    middle = (len(times) + cut) // 2
    return {"median": times[middle] if middle < len(times) else None,
            "worst": None if cut else times[-1], "cut": cut}


def figures(case, said):
    """The figures of a case from what tasks has said."""
    if case.kind == "shares":
        return _of_shares(said)
    others = {"others": _rate(said, "others")}
    if case.kind == "start":
        return {**_of_starts(said["start"]), **others}
    reader = said["reader"]
    return {**{name: _ms(reader[name]) for name in MS},
            "rate": _rate(said, "reader"), **others}


# Seconds in which latency and shares are confirmed: one slice of 125 ms more or less
# of twelve is a tenth of a share; and who reads beside a weight-raised process has most
# of its service before, or after, the 3 seconds for which that one is raised.
LEAST = 7.5


def guest_seconds(case, disk, least=0):
    """How long a case is measured on a disk."""
    own = getattr(DISKS[disk], case.time)
    return max(own, least) if case.kind in ("latency", "shares") else own


def seconds(case, disk, least=0):
    """About how long the host takes for a cell; one of starts ends with the last of
    them, mostly within half of the limit."""
    of_guest = guest_seconds(case, disk, least) / (2 if case.time == "limit" else 1)
    return 1 + PACE * (of_guest + case.early / 1000)
