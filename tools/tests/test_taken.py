# SPDX-License-Identifier: GPL-2.0
"""tools/bench/taken without a guest: its cells, calls and table."""
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.cases import loads, promises
from blkscale.guest import boot
from blkscale.measure import results, runs
from helpers import error_of, program

PROGRAM = program("tools/bench/taken")
CASE, DISK = PROGRAM.CASES[0], PROGRAM.DISKS[0]


class Taken(unittest.TestCase):
    def test_all_cells_are_promises(self):
        plan = PROGRAM.arguments(["--kernels", "base"]).plan
        self.assertEqual(len(plan), 12)
        for case, disk, sched in plan:
            self.assertLessEqual(set(PROGRAM.SHOWN),
                                 set(promises.NAMES[case].figures))
            self.assertIn(disk, promises.DISKS)
            self.assertIn(sched, PROGRAM.SCHEDS)
        only = PROGRAM.arguments(["--only", f"{CASE} {DISK} bfq"]).plan
        self.assertEqual(only, [[CASE, DISK, "bfq"]])

    def test_bad_calls(self):
        for words in (["--boots", "0"], ["--seconds", "0"],
                      ["--host-cpus", "0"], ["--only", "nonsense"]):
            said, code = error_of(PROGRAM.arguments, words)
            self.assertRegex(said, r"^error: .*\n$")
            self.assertEqual(code, 1)

    def measured(self, *argv):
        """main() with a guest in which each boot is slower than the last one."""
        self.calls = []

        def one_boot(kernel, *args, **kwargs):
            self.calls.append((kernel, kwargs["host_cpus"]))
            values = {"rate": 100 / len(self.calls), "p99": 1, "longest": 2,
                      "others": 50}
            return [{"workload": case, "device": disk, "sched": sched,
                     "release": "7", "values": values}
                    for case, disk, sched in json.loads(args[2][0])]
        with tempfile.TemporaryDirectory() as where, \
                mock.patch.object(paths, "RESULTS", Path(where)), \
                mock.patch.object(runs, "one_boot", one_boot), \
                mock.patch.object(loads, "build"), \
                mock.patch.object(boot, "image"), \
                mock.patch("sys.argv", ["taken", *argv]), \
                contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            PROGRAM.main()
            (file,) = Path(where).glob("taken-*.json")
            return out.getvalue(), results.load(file)

    def test_kernels_alternate_on_half_the_cpus(self):
        text, records = self.measured("--boots", "3", "--only", f"{CASE} {DISK} bfq")
        self.assertEqual(self.calls, [
            (kernel, 1) for kernel in ("base", "patched", "patched", "base",
                                       "base", "patched")])
        self.assertIn("2 CPUs of the guest on 1 of the host", text)
        self.assertRegex(text, r"bfq +base +25\.0 \(20\.0 to 100\)")
        self.assertRegex(text, r"bfq +patched +33\.3 \(16\.7 to 50\.0\)")
        self.assertEqual([(rec["kernel"], rec["host_cpus"], rec["clock"])
                          for rec in records],
                         [("base", 1, "host"), ("patched", 1, "host")])

    def test_as_many_cpus_as_it_has(self):
        text, _ = self.measured("--boots", "1", "--host-cpus", "2", "--kernels",
                                "base", "--only", f"{CASE} {DISK} none")
        self.assertEqual(self.calls, [("base", 2)])
        self.assertRegex(text, r"none +base +100 +1\.00 +2\.00 +50\.0\n")


if __name__ == "__main__":
    unittest.main()
