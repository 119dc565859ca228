# SPDX-License-Identifier: GPL-2.0
"""What the many-core measurement can measure: devices, workloads, and how
much work makes a cell long enough."""
from dataclasses import dataclass

SCHEDS = ("none", "kyber", "mq-deadline", "bfq")

# Name in the table -> what the guest makes.  {cpus} is the number of vCPUs
# that carry load, {device} the vCPU that is the tick disk.
_FLASH = "tickdisk:depth={depth},latency=40,interval=1,cpu={device}"
_HARD = ("tickdisk:depth={depth},latency=0,interval=20,transfer=1,seek=500,"
         "cpu={device}")
DEVICES = {
    "null_blk 1x128": "null:submit_queues=1,hw_queue_depth=128",
    "rotational 1x128":
        "null:submit_queues=1,hw_queue_depth=128,rotational=1",
    "null_blk 1x8": "null:submit_queues=1,hw_queue_depth=8",
    "null_blk Nx1024": "null:submit_queues={cpus},hw_queue_depth=1024",
    "flash 8": _FLASH.replace("{depth}", "8"),
    "flash 32": _FLASH.replace("{depth}", "32"),
    "flash 64": _FLASH.replace("{depth}", "64"),
    "hard disk 8": _HARD.replace("{depth}", "8"),
    "hard disk 32": _HARD.replace("{depth}", "32"),
}


@dataclass(frozen=True)
class Workload:
    name: str
    device: str
    load: str			# arguments of the program load
    threads: int = 0		# 0: one a vCPU
    batch: int = 4		# I/Os a submit, or in flight one by one
    share: float = 1.0		# of the scaletest's speed, about
    merges: bool = False	# merged share and KiB per request matter
    in_turns: bool = False	# the scheduler serves one process after another

    @property
    def ticks(self):
        return "tickdisk" in DEVICES[self.device]


def _disk(name, depth, load, threads, share=1.0):
    short = "disk" if depth == 32 else f"disk{depth}"
    return Workload(f"{short}-{name}", f"hard disk {depth}", load, threads,
                    32, share, True)


_ONE_BY_ONE = "warm-up=2 single=1 size=4096 reads=0 order="
# one task, whose submission of 32 holds several sequential streams in turns
_PLUGGED = "warm-up=2 size=4096 reads=0 order=parts"
_ALL = [
    Workload("scaletest", "null_blk 1x128", "size=512"),
    Workload("batchtest", "null_blk Nx1024", "size=4096 reads=0", batch=8),
    Workload("qd1", "null_blk 1x128", "size=512", batch=1, share=0.7),
    Workload("saturated", "null_blk 1x8", "size=512", share=0.7),
    Workload("rwmix", "null_blk 1x128", "size=512 reads=70"),
    Workload("rotational", "rotational 1x128", "size=512"),
    # bfq idles for the process that it serves; if each had to do its part, then
    # most of the time would be idle slices of those that are done
    Workload("weights", "null_blk 1x128",
             "size=512 together=1 groups=/run/groups", in_turns=True),
    Workload("flash8", "flash 8", "size=512"),
    Workload("flash32", "flash 32", "size=512"),
    Workload("flash64", "flash 64", "size=512"),
]
for _depth in (32, 8):
    _ALL += [_disk(f"seq{n}", _depth, f"{_ONE_BY_ONE}parts", n)
             for n in (1, 4, 64)]
    _ALL += [_disk("alternate", _depth, f"{_ONE_BY_ONE}alternate", 2),
             _disk("mixed", _depth, "warm-up=2 writer=1 size=4096", 4)]
    _ALL += [_disk(f"weave{n}", _depth, f"{_PLUGGED} streams={n}", 1, 4)
             for n in (2, 4)]
WORKLOADS = {w.name: w for w in _ALL}

GROUPS = {
    "null": ["scaletest", "batchtest", "qd1", "saturated", "rwmix"],
    "bfq": ["rotational", "weights"],
    "flash": ["flash8", "flash32", "flash64"],
    "disk": [n for n in WORKLOADS if n.startswith("disk-")],
    "disk8": [n for n in WORKLOADS if n.startswith("disk8-")],
}

# Ticks that a cell should last, by vCPUs, and about what is done in a million
# of them: a guess only, so that cells take seconds and not minutes.
_TICKS = {1: 60e6, 4: 50e6, 8: 40e6, 16: 40e6}
_SPEED = {
    "none": {1: 320, 4: 1050, 8: 1900, 16: 2800},
    "kyber": {1: 220, 4: 190, 8: 240, 16: 255},
    "mq-deadline": {1: 226, 4: 107, 8: 95, 16: 84},
    "bfq": {1: 165, 4: 48, 8: 42, 16: 41},
}
# The same for kernels with the series.
_PATCHED_SPEED = {
    "mq-deadline": {1: 250, 4: 800, 8: 1400, 16: 2400},
    "bfq": {1: 190, 4: 600, 8: 1100, 16: 1500},
}
# bfq raises new processes for a while. What comes after that is measured.
_BFQ_WARM_UP = 100
# Where every I/O waits for the same lock, a short cell shows the same as a
# long one.
_CONTENDED_WARM_UP = 8
_CONTENDED_SHARE = 0.5
_FLASH_SPEED = {"none": 200, "kyber": 170, "mq-deadline": 100, "bfq": 40}
_HARD_SPEED = 40


def _nearest(table, cpus):
    return table[min(table, key=lambda known: abs(known - cpus))]


def scheduler(spec):
    """The name of a scheduler that may have settings: bfq:low_latency=0."""
    return spec.partition(":")[0]


def speed(workload, sched, cpus, kernel="base"):
    """I/Os per million ticks to expect, very roughly."""
    sched = scheduler(sched)
    if workload.device.startswith("hard disk"):
        return _HARD_SPEED * workload.share
    if workload.device.startswith("flash"):
        return _FLASH_SPEED[sched]
    if kernel == "base":
        return _nearest(_SPEED[sched], cpus) * workload.share
    table = {**_SPEED, **_PATCHED_SPEED}
    turns = 0.2 if workload.in_turns else 1
    return _nearest(table[sched], cpus) * workload.share * turns


def contended(workload, sched, kernel):
    return not workload.merges and not workload.in_turns and (
        scheduler(sched) == "kyber" or
        kernel == "base" and scheduler(sched) != "none")


def batches(workload, sched, cpus, scale=1.0, kernel="base"):
    """Batches for each thread of a cell."""
    ios = speed(workload, sched, cpus, kernel) * \
        _nearest(_TICKS, cpus) / 1e6 * scale
    if contended(workload, sched, kernel):
        ios *= _CONTENDED_SHARE
    threads = workload.threads or cpus
    return max(3, round(ios / threads / workload.batch))


def load_arguments(workload, sched, cpus, scale=1.0, kernel="base"):
    warm_up = ""
    if contended(workload, sched, kernel):
        warm_up = f"warm-up={_CONTENDED_WARM_UP} "
    elif scheduler(sched) == "bfq" and \
            not (workload.merges or workload.in_turns):
        warm_up = f"warm-up={_BFQ_WARM_UP} "
    return (f"threads={workload.threads or cpus} {warm_up}"
            f"batch={workload.batch} {workload.load} seconds=2 "
            f"batches={batches(workload, sched, cpus, scale, kernel)}")


def device(workload, cpus):
    return DEVICES[workload.device].format(cpus=cpus, device=cpus)
