# SPDX-License-Identifier: GPL-2.0
"""The tick disk, and the page with the ticks: of guests whose vCPUs go in step."""
import contextlib
import subprocess
from pathlib import Path

from ..ui import die
from . import blockdev

MODULE = Path("/sys/module/tickdisk")


def attach(module, settings):
    """Make a tick disk in place of the one that is there, if any; returns its node."""
    detach()
    _call("insmod", module, *settings)
    node = blockdev.wait_for("/dev/td0")
    # It has a CPU of its own: requests end where they came from.
    blockdev.put(blockdev.queue(node, "rq_affinity"), 2)
    return node


def detach():
    if MODULE.exists():
        _call("rmmod", "tickdisk")


def _call(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        die(done.stderr.strip() or f"{words[0]} failed")


@contextlib.contextmanager
def running():
    """The tick disk, if there is one, takes its CPU only meanwhile."""
    there = MODULE.exists()
    if there:
        blockdev.put(MODULE / "parameters/on", 1)
    try:
        yield
    finally:
        if there:
            blockdev.put(MODULE / "parameters/on", 0)


def clock():
    """The page with the ticks: shared memory of QEMU's."""
    return next(device.parent / "resource2" for device in
                Path("/sys/bus/pci/devices").glob("*/device")
                if device.read_text().strip() == "0x1110")
