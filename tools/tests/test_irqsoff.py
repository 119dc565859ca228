# SPDX-License-Identifier: GPL-2.0
"""tools/bench/irqsoff without a guest: its arguments, what the tracer says, the
table."""
import subprocess
import sys
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS / "lib"), str(TOOLS / "tests")]
from helpers import program  # noqa: E402

IRQSOFF = TOOLS / "bench/irqsoff"


TRACE = """\
# tracer: irqsoff
# latency: 7 us, #4/4, CPU#0 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:1)
#  => started at: _raw_spin_lock_irq
#  => ended at:   _raw_spin_unlock_irq
#                / _------=> CPU#
     fio-102       0d....    0us : _raw_spin_lock_irq <-bfq_insert_requests
     fio-102       0d....    7us!: _raw_spin_unlock_irq <-bfq_insert_requests
     fio-102       0d....    8us+: tracer_hardirqs_on <-_raw_spin_unlock_irq
     fio-102       0d....    9us : <stack trace>
 => _raw_spin_unlock_irq
"""


def record(kernel, longest, place="a to b"):
    runs = [{"longest": us, "where": f"{place} {us}", "iops": 1}
            for us in longest]
    return {"kernel": kernel, "cpus": 1, "sched": "bfq",
            "workload": "write, irqsoff", "values": runs[0], "runs": runs}


class Arguments(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([IRQSOFF, *words], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 1)
        return done.stderr

    def test_wrong_words(self):
        self.assertIn("at least 1", self.refused("--boots", "0"))
        self.assertIn("no tracer 'x'", self.refused("--tracers", "irqsoff,x"))
        self.assertIn("not known", self.refused("--kernels", "mine"))


class Place(unittest.TestCase):
    def test_first_and_last(self):
        place = program("tools/bench/irqsoff-guest").place
        self.assertEqual(place(TRACE),
                         "_raw_spin_lock_irq<-bfq_insert_requests to "
                         "_raw_spin_unlock_irq<-bfq_insert_requests")
        self.assertEqual(place("# tracer: irqsoff\n"), "")


class Table(unittest.TestCase):
    def setUp(self):
        self.irqsoff = program("tools/bench/irqsoff")

    def test_base_beside_patched(self):
        table = self.irqsoff.table(
            [record("base", [1500, 900, 2500]), record("patched", [800])],
            ["base", "patched"])
        self.assertEqual(table.rows, [
            ["1", "irqsoff", "write", "bfq", "0.90 to 2.50; a to b 2500",
             "0.80; a to b 800"]])

    def test_one_kernel(self):
        rows = self.irqsoff.table([record("base", [10])],
                                  ["base", "patched"]).rows
        self.assertEqual(rows[0][4:], ["0.01; a to b 10", ""])


if __name__ == "__main__":
    unittest.main()
