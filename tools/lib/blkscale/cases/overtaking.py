# SPDX-License-Identifier: GPL-2.0
"""The cells of tools/bench/overtaking."""
from dataclasses import dataclass

from . import workloads

TAGS = 64
LATENCY_NS = 20_000_000	# of the disks that have a timer
SCSI = (f"scsi_debug.max_queue={TAGS} scsi_debug.ndelay={LATENCY_NS} "
        "scsi_debug.fake_rw=1 scsi_debug.virtual_gb=64 scsi_debug.delay=0")
# With low_latency bfq raises the weights of new processes and issues nothing
# directly.
SCHEDS = ("mq-deadline", "bfq:low_latency=0")


@dataclass(frozen=True, eq=False)
class Machine:
    name: str
    cpus: int
    disks: tuple
    loads: dict			# name: what the program is told
    seconds: float		# of a cell, about


# What tasks is told. Demand is eight times the tags. A reader of one I/O at a time
# submits it without a plug.
_BATCHES = "others,n=16,depth=32,burst=1"
SATURATED = "saturated: 16 submitters of batches"
TIMED = Machine("CPUs of the host", 4,
                ("null_blk", "scsi_debug", "virtio_blk", "NVMe", "NVMe loop"),
                {SATURATED: (_BATCHES,),
                 "mixed: 8 QD1 readers beside 16 submitters of batches":
                     (_BATCHES, "reader,n=8")}, 10)
# The tick disk has a vCPU of its own. What load is told: demand is eight times
# the tags here, too.
IN_STEP = Machine("CPUs in step", 8, ("flash 8", "flash 64"),
                  {SATURATED: ("threads=16",)}, 25)
MACHINES = (TIMED, IN_STEP)
# Sparse files, so large that requests seldom begin at the same sector.
DEVICES = ("virtio-blk:size=65536", "nvme:size=65536")
TIMED_APPEND = (f"{SCSI} virtio_blk.queue_depth={TAGS} "
                f"nvme.io_queue_depth={TAGS + 1}")


def tick_disk(disk):
    """The parameters of a tick disk."""
    settings = workloads.DEVICES[disk].partition(":")[2]
    return settings.format(cpus=IN_STEP.cpus, device=IN_STEP.cpus).split(",")


def depth(disk):
    """The tags of a tick disk."""
    return int(disk.rpartition(" ")[2])


def cell_name(load, disk, sched):
    return f"{load} {disk} {sched}"


def cells(machine, only=""):
    """[(load, disk, scheduler)], disk by disk."""
    return [(load, disk, sched) for disk in machine.disks for sched in SCHEDS
            for load in machine.loads if only in cell_name(load, disk, sched)]
