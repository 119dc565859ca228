# SPDX-License-Identifier: GPL-2.0
"""Trouble in console logs: what counts, what does not, how it is shown."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.guest import kernel_log

BAD = """\
[    1.2] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100
[   12.345678] BUG: kernel NULL pointer dereference, address: 0000000000000010
[   12.345678] BUG: unable to handle page fault for address: ffff888
[    3.0] BUG: KASAN: slab-use-after-free in bfq_exit_icq+0x12/0x90
[    3.0] BUG: sleeping function called from invalid context at block/blk-mq.c:1
[    3.0] BUG: spinlock bad magic on CPU#1, fio/212
[    3.0][  T212] BUG: scheduling while atomic: fio/212/0x00000002
[    3.0] BUG kmalloc-64 (Not tainted): Object already free
[    3.0] kernel BUG at block/bfq-iosched.c:6113!
[    3.0] Oops: general protection fault, probably for non-canonical address
[    3.0] Oops: 0000 [#1] SMP PTI
[    3.0] general protection fault, probably for non-canonical address
[    3.0] WARNING: CPU: 1 PID: 66 at block/mq-deadline.c:594 dd_exit_sched+0x9
[    3.0] WARNING: block/blk-mq.c:2312 at blk_mq_run_hw_queue+0x1, CPU#1: fio/3
[    3.0] WARNING: possible circular locking dependency detected
[    3.0] WARNING: possible recursive locking detected
[    3.0] WARNING: inconsistent lock state
[    3.0] WARNING: suspicious RCU usage
[    3.0] INFO: trying to register non-static key.
[    3.0] INFO: possible recursive locking detected
[  122.9] INFO: task kworker/0:1H:33 blocked for more than 61 seconds.
[   60.1] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [fio:212]
[   60.1] watchdog: Watchdog detected hard LOCKUP on cpu 0
[   60.1] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck
[   60.1] rcu: INFO: rcu_preempt self-detected stall on CPU
[   60.1] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
[   60.1] rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {
[    3.0] UBSAN: shift-out-of-bounds in block/blk-mq.c:12:3
[    3.0] refcount_t: underflow; use-after-free.
[    3.0] list_add corruption. prev->next should be next (ffff), but was
[    3.0] 1 lock held by fio/212 is still held
[    3.0] 2 locks still held by fio/212!
[    3.0] Out of memory: Killed process 212 (fio) total-vm:1kB
[    0.9] VFS: Unable to mount root fs on unknown-block(0,0)
<4>[    3.0] WARNING: CPU: 0 PID: 1 at mm/slub.c:1
BUG: KASAN: out-of-bounds without a time stamp
""".splitlines()
BAD.remove("[    3.0] 1 lock held by fio/212 is still held")

STUCK = ("blocked for more than", "soft lockup", "hard LOCKUP", "stall",
         "workqueue lockup")

GOOD = """\
tsc: Unable to calibrate against PIT
[    0.0] Command line: root=r panic=-1 hung_task_panic=0 oops=panic
[    0.5] clocksource: timekeeping watchdog on CPU1: Marking clocksource
[    1.0] Call Trace:
[    1.0]  <TASK>
[    1.0] rcu: Hierarchical RCU implementation.
[    1.0] rcu: INFO: something else
[    1.0] Running ring buffer tests: no BUG here
[    1.0] scsi_debug:sdebug_driver_probe: scsi_debug: trim poll_queues
[    1.0] I/O error, dev nb0, sector 0 op 0x1:(WRITE) flags 0x800 phys_seg 1
[    1.0] debug: unmapping init memory
guest: job ended with 0
sysrq: Power Off
""".splitlines()


class TroubleTest(unittest.TestCase):
    def test_every_kind_is_found(self):
        for line in BAD:
            with self.subTest(line):
                self.assertEqual(kernel_log.find(f"fine\n{line}\n"), 2)

    def test_what_a_base_says_without_the_patches(self):
        said = "BUG: workqueue leaked atomic, lock or RCU: kworker/1:2H[240]\n"
        freeze = " #0: ffff8880 (io){++++}-{0:0}, at: nvme_start_freeze+0x76/0xc0\n"
        for base, more, found in [("", freeze, 1), ("6.12", freeze, None),
                                  ("6.12", "", 1), ("6.12", 9 * "\n" + freeze, 1)]:
            with self.subTest((base, more)), mock.patch.object(paths, "BASE", base):
                self.assertEqual(kernel_log.find(said + more), found)

    def test_ordinary_lines_are_not(self):
        for line in GOOD:
            with self.subTest(line):
                self.assertIsNone(kernel_log.find(line))

    def test_what_does_not_end_by_itself(self):
        for line in BAD + GOOD:
            with self.subTest(line):
                self.assertEqual(kernel_log.stuck(line),
                                 any(word in line for word in STUCK))

    def test_report_names_the_place_and_shows_the_first_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "console.log"
            log.write_text("booting\r\n[  1.5] WARNING: inconsistent lock state"
                           "\r\n" + "".join(f"[  1.5] l{i}\r\n" for i in range(9)))
            lines = kernel_log.report(log, shown=3).splitlines()
        self.assertEqual(lines[0], f"{log}:2: WARNING: inconsistent lock state")
        self.assertEqual([line.strip() for line in lines[1:]],
                         ["[  1.5] WARNING: inconsistent lock state",
                          "[  1.5] l0", "[  1.5] l1"])

    def test_data_races_may_be_left_to_others(self):
        line = "[    3.0] BUG: KCSAN: data-race in a / b"
        self.assertEqual(kernel_log.find(line), 1)
        self.assertIsNone(kernel_log.find(line, races=False))
        self.assertEqual(kernel_log.find(f"{line}\nBUG: KASAN: x", races=False), 2)

    def test_a_clean_or_missing_log(self):
        self.assertIsNone(kernel_log.report("/no/such/log"))
