# SPDX-License-Identifier: GPL-2.0
"""The NVMe study: how long its cells take, and the parts of its profile."""
import re

MANY = 4096     # requests in flight, from where on a cell takes
LONGER = 3      # times as long: each of them waits for all

# By the beginnings of functions' names.  Many serve both, the disk and the one that
# its target writes to.
PARTS = {
    "fio": r"\[user\]",
    "target": "_*nvmet|nvme_loop",
    "null_blk": "_*null_",
    "NVMe driver": "_*nvme",
    "scheduler": "_*bfq|_*dd_|deadline|elv_|elevator|blk_mq_sched|_*blk_mq_do_disp",
    "block layer, of both disks": "_*blk|_*bio|_*bdev|_*submit_bio|_*sbitmap|sbq_|"
                                  "bvec|iov_iter|_*rq_|ioprio",
    "work queues, task switches": "_*queue_work|_*queue_delayed|insert_work|worker|"
                                  "process_one|_*pwq|_*schedule|try_to_w|ttwu|"
                                  "_*switch|_*enqueue|_*dequeue|pick_|update_|"
                                  "_*set_next|put_prev|kick_pool|_*wake_up|move_l"}


def seconds(least, numjobs, depth):
    """Of a cell."""
    return least * (LONGER if int(numjobs) * int(depth) >= MANY else 1)


def parts(functions):
    """Sums of functions' counts: {part: instructions}."""
    sums = dict.fromkeys([*PARTS, "the rest"], 0)
    for name, count in functions.items():
        sums[next((part for part, pattern in PARTS.items()
                   if re.match(pattern, name)), "the rest")] += count
    return sums
