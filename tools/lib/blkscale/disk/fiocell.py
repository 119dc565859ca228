# SPDX-License-Identifier: GPL-2.0
"""One cell of the fast-device benchmark: fio, and the locks beside it."""
import os
import time

from . import blockdev, fio, lockstat


def measure(job, node, sched, seconds):
    """IOPS, usr %, sys %, and the lock share if the kernel counts it."""
    blockdev.set_scheduler(node, sched)
    counted = lockstat.available()
    if counted:
        lockstat.reset()
    begun = time.monotonic()
    values = fio.run(job, node, seconds)
    if counted:
        values.update(lockstat.share(lockstat.FILE.read_text(),
                                     os.cpu_count(),
                                     time.monotonic() - begun))
    return values
