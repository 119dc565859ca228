# SPDX-License-Identifier: GPL-2.0
"""Progress lines, one-line errors, running programs."""
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from blkscale import paths, proc, ui
from helpers import error_of, gone


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class StepsTest(unittest.TestCase):
    def steps(self, plan, outer=None):
        self.out, self.clock = io.StringIO(), Clock()
        return ui.Steps(plan, self.out, self.clock, outer or {})

    def lines(self):
        return self.out.getvalue().splitlines()

    def test_step_of_how_many_time_spent_time_left(self):
        steps = self.steps([("fetch", 60), ("build", 480), ("measure", 300)])
        with steps.step("fetch"):
            self.clock.now += 70
        with steps.step("build"):
            pass
        self.assertEqual(self.lines(), [
            "[1/3] fetch (spent 0s, about 14m00s left)",
            "[2/3] build (spent 1m10s, about 13m00s left)"])
        self.assertEqual(steps.took["fetch"], 70)

    def test_a_step_with_nothing_to_do_is_passed_over(self):
        steps = self.steps({"fetch": 60, "build": 10})
        with steps.step("build"):
            pass
        self.assertEqual(self.lines(), ["[2/2] build (spent 0s, about 10s left)"])

    def test_unknown_step(self):
        with self.assertRaises(ValueError):
            self.steps({"fetch": 60}).step("build")

    def test_inside_a_step_the_rate_so_far_counts(self):
        steps = self.steps([("boots", 40), ("report", 5)])
        with steps.step():
            self.clock.now += 30
            steps.tell(1, 4, "boots")
        self.assertEqual(self.lines()[1],
                         "[1/2]   1 of 4 boots (spent 30s, about 1m35s left)")

    def test_a_program_in_a_step_counts_as_part_of_it(self):
        steps = self.steps([("kernels", 100), ("measure", 50)])
        with steps.step():
            environ = steps.environment()
        clock = self.clock
        clock.now += 20
        inner = ui.Steps([("base", 60), ("patched", 20)], self.out, clock, environ)
        with inner.step():
            pass
        inner.finish()
        self.assertEqual(self.lines()[1:],
                         ["[1/2 1/2] base (spent 20s, about 2m10s left)"])

    def test_a_program_that_is_all_of_a_step_does_not_name_it_again(self):
        steps = self.steps([("kernels", 100), ("measure", 50)])
        with steps.step():
            inner = ui.Steps([("base", 60)], self.out, self.clock,
                             steps.environment())
        with inner.step():
            self.clock.now += 20
            inner.tell(1, 2, "files")
        self.assertEqual(self.lines()[1:],
                         ["[1/2]   1 of 2 files (spent 20s, about 1m10s left)"])

    def test_span(self):
        self.assertEqual([ui.span(s) for s in (0, 59.6, 250, 3900)],
                         ["0s", "1m00s", "4m10s", "1h05m"])


class DieTest(unittest.TestCase):
    def test_one_line_and_failure(self):
        said, code = error_of(ui.die, "no\n kernel", "build one")
        self.assertEqual((said, code), ("error: no kernel; build one\n", 1))


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "logs/x.log"

    def test_last_lines_and_place_of_the_log(self):
        said, code = error_of(proc.run, ["sh", "-c", "echo a; echo oops; exit 3"],
                              log=self.log, what="the build failed")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"^error: the build failed \(exit 3\): a / oops; "
                         rf"see {re.escape(str(self.log))}\n$")

    def test_a_missing_program_is_named(self):
        said, _ = error_of(proc.run, ["no-such-program"], what="cannot x")
        self.assertIn("no-such-program is not installed; run tools/setup", said)
        said, _ = error_of(proc.output, ["no-such-program"])
        self.assertEqual(said.count("\n"), 1)

    def test_time_limit_ends_children_too(self):
        said, _ = error_of(proc.run, ["sh", "-c", "sleep 77 & echo $!; wait"],
                           log=self.log, timeout=0.5)
        self.assertIn("no end after", said)
        self.assertTrue(gone(int(self.log.read_text())))

    def test_status_is_given_back_when_asked(self):
        self.assertEqual(proc.run(["sh", "-c", "exit 5"], check=False), 5)

    def test_sigterm_unwinds(self):
        code = ("import sys, time; sys.path.insert(0, sys.argv[1])\n"
                "from blkscale import ui\n"
                "def f():\n"
                "    try:\n        print('up', flush=True); time.sleep(60)\n"
                "    finally:\n        print('unwound')\n"
                "ui.main(f)")
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(paths.ROOT / "tools/lib")],
            stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.communicate(timeout=10)[0], "unwound\n")
        self.assertEqual(child.returncode, 128 + signal.SIGTERM)


class PathsTest(unittest.TestCase):
    def test_fields(self):
        with tempfile.NamedTemporaryFile("w", suffix="base") as file:
            file.write("# x: no\npackage: linux\nversion:  7.3 \n\nnoise\n")
            file.flush()
            self.assertEqual(paths.fields(file.name),
                             {"package": "linux", "version": "7.3"})

    def test_the_base_file_says_what_the_tools_ask_for(self):
        wanted = {"package", "suite", "version", "upstream", "qemu"}
        self.assertLessEqual(wanted, set(paths.base_facts()))

    def test_kernels_by_name_or_folder(self):
        self.assertEqual(paths.bzimage("base"),
                         paths.BUILD / "base/obj-small/arch/x86/boot/bzImage")
        self.assertEqual(paths.system_map("/x", "debug"),
                         Path("/x/obj-debug/System.map"))

    def test_build_elsewhere(self):
        code = "from blkscale import paths; print(paths.RESULTS)"
        said = subprocess.run(
            [sys.executable, "-c", code], text=True, capture_output=True,
            env={**os.environ, "BUILD": "/elsewhere",
                 "PYTHONPATH": str(paths.ROOT / "tools/lib")}, check=True)
        self.assertEqual(said.stdout, "/elsewhere/results\n")
