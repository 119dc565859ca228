# SPDX-License-Identifier: GPL-2.0
"""The runner of the tests: counting, and every way a group can go wrong."""
import contextlib
import io
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths, tap
from helpers import gone, program


check = program("tools/check")


class ParseTest(unittest.TestCase):
    def test_results(self):
        for line, wanted in {
                "ok 1 - reads": ("ok", "reads", ""),
                "ok 2 selftests: block: order.sh": ("ok", "selftests: block: order.sh", ""),
                "ok plain words": ("ok", "plain words", ""),
                "not ok 3 order": ("not ok", "order", ""),
                "ok 4 zoned # SKIP no zones": ("skip", "zoned", "no zones"),
                "not ok 4 zoned # SKIP x": ("not ok", "zoned", ""),
                "skip zoned: no zones": ("skip", "zoned", "no zones"),
                "1..7": ("plan", 7, ""),
                "1..0 # SKIP no null_blk": ("skip", "all", "no null_blk"),
                "Bail out! no disk": ("bail", "no disk", "")}.items():
            with self.subTest(line):
                self.assertEqual(tap.parse(line), wanted)

    def test_other_lines(self):
        for line in ("# ok 1 nested", "  ok 1 indented", "okay", "TAP version 13",
                     "error: x", "", "1..x"):
            with self.subTest(line):
                self.assertIsNone(tap.parse(line))


class GroupTest(unittest.TestCase):
    """run_program() on small shell programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.object(check, "LOGS", Path(folder.name))
        patch.start()
        self.addCleanup(patch.stop)

    def group(self, script, limit=20):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            tally = check.run_program("g", ["sh", "-c", script], limit)
        self.shown = out.getvalue()
        return tally.passed, tally.failed, tally.skipped

    def test_counts(self):
        self.assertEqual(self.group(
            "echo 1..3; echo ok 1 a; echo 'ok 2 b # SKIP none'; "
            "echo not ok 3 c; echo '# since'; echo noise; exit 1"), (1, 1, 1))
        self.assertIn("  # since\n", self.shown)
        self.assertNotIn("noise", self.shown)

    def test_what_failed_is_said_again_at_the_end(self):
        script = "echo ok 1 a; echo '# fine'; echo not ok 2 b; echo '# since'; exit 1"
        total = check.Total()
        with contextlib.redirect_stdout(io.StringIO()):
            total.group("g", check.run_program("g", ["sh", "-c", script], 20), 1)
            total.group("h", check.run_program("h", ["sh", "-c", "echo ok"], 20), 1)
            total.group("i", check.run_program("i", ["true"], 20), 1)
        self.assertRegex(total.wrong(), r"^failed in g:\n  not ok 2 b\n  # since\n"
                         r"failed in i:\n  not ok - group i: no result at all.*\n$")

    def test_fewer_results_than_planned(self):
        self.assertEqual(self.group("echo 1..2; echo ok 1 a"), (1, 1, 0))
        self.assertIn("1 results of 2 planned", self.shown)

    def test_more_results_than_planned(self):
        self.assertEqual(self.group("echo 1..1; echo ok a; echo ok b"), (2, 1, 0))

    def test_killed(self):
        self.assertEqual(self.group("echo ok 1 a; kill -9 $$"), (1, 1, 0))
        self.assertIn("signal 9", self.shown)

    def test_dies_after_good_results(self):
        self.assertEqual(self.group("echo ok 1 a; exit 3"), (1, 1, 0))

    def test_nothing_printed(self):
        self.assertEqual(self.group("true"), (0, 1, 0))

    def test_gives_up(self):
        self.assertEqual(self.group("echo ok a; echo Bail out! no disk"), (1, 1, 0))

    def test_skip_without_a_reason(self):
        self.assertEqual(self.group("echo ok a; echo 'ok b # SKIP'"), (1, 1, 0))

    def test_last_line_without_end(self):
        self.assertEqual(self.group("printf 'ok 1 a'"), (1, 0, 0))

    def test_time_limit(self):
        self.assertEqual(self.group("echo ok a; sleep 30", limit=1), (1, 1, 0))
        self.assertIn("no end after 1s", self.shown)

    def test_a_child_left_behind_does_not_hold_it(self):
        self.assertEqual(self.group("echo ok a; sleep 30 & echo $! >&2"), (1, 0, 0))
        left = int((check.LOGS / "g.log").read_text().split()[-1])
        self.assertTrue(gone(left))

    def test_missing_program(self):
        with contextlib.redirect_stdout(io.StringIO()):
            tally = check.run_program("g", ["/no/such/program"], 5)
        self.assertEqual((tally.passed, tally.failed), (0, 1))


class TotalTest(unittest.TestCase):
    def total(self, *counts):
        total = check.Total()
        for number, (passed, failed, skipped) in enumerate(counts):
            tally = tap.Tally()
            tally.passed, tally.failed, tally.skipped = passed, failed, skipped
            total.group(f"g{number}", tally, 61)
        return total

    def test_line(self):
        self.assertEqual(self.total((3, 0, 0), (2, 0, 0)).line(),
                         "5 passed, 0 failed")
        self.assertEqual(self.total((3, 1, 2)).line(),
                         "3 passed, 1 failed, 2 skipped")

    def test_status(self):
        for counts, status in (((3, 0, 1), 0), ((3, 1, 0), 1), ((0, 0, 0), 1),
                               ((0, 0, 4), 1)):
            with self.subTest(counts):
                self.assertEqual(self.total(counts).status(), status)

    def test_table_has_a_row_and_the_time_of_each_group(self):
        self.assertRegex(self.total((3, 0, 1)).table(),
                         r"\ng0 +3 +0 +1 +1m01s$")


class PlanTest(unittest.TestCase):
    def test_a_part_is_prepared_once(self):
        titles = [title for title, _ in check.plan(list(check.GROUPS))]
        self.assertEqual(len(titles), len(set(titles)))
        # what runs beside the others is waited for at the end
        self.assertEqual(titles[-3:], [f"test {list(check.GROUPS)[-1]}", "test series",
                                       "test backports"])

    def test_a_group_that_cannot_be_prepared_fails(self):
        steps, total = mock.MagicMock(), check.Total()
        with mock.patch.object(check.needs, "run", return_value=1), \
                contextlib.redirect_stdout(io.StringIO()):
            done = {}
            check.run_group("series", steps, done, total)
            check.run_group("guest", steps, done, total)
        self.assertEqual(total.line(), "0 passed, 2 failed")
        self.assertEqual(list(done), ["setup"])


class BesideTest(unittest.TestCase):
    """A group beside the next one, as small shell programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        patch = mock.patch.object(check, "LOGS", self.home)
        patch.start()
        self.addCleanup(patch.stop)

    def run_groups(self, **scripts):
        groups = {}
        for name, script in scripts.items():
            path = self.home / name
            path.write_text(f"#!/bin/sh\ncd {self.home}\n{script}\n")
            path.chmod(0o755)
            groups[name] = check.Group(str(path), [], 1, 20, name, beside=name == "a")
        out = io.StringIO()
        with mock.patch.object(check, "GROUPS", groups), contextlib.redirect_stdout(out), \
                mock.patch.object(check.ui, "Steps", mock.MagicMock()) as steps, \
                mock.patch.object(check, "arguments",
                                  return_value=mock.Mock(groups=list(groups), list=False)):
            steps.return_value.environment.return_value = None
            self.status = check.main()
        return out.getvalue()

    def test_both_at_once_and_what_it_says_is_not_mixed(self):
        said = self.run_groups(a="until [ -e b-ran ]; do sleep .1; done; echo ok 1 in a; nice",
                               b="echo ok 1 in b; touch b-ran; sleep .5; echo ok 2 in b")
        self.assertEqual(self.status, 0)
        self.assertRegex(said, r"(?s)ok 1 in b\n.*ok 2 in b\n.*ok 1 in a\n.*3 passed, 0 failed")
        self.assertIn("\n15", (self.home / "a.log").read_text())

    def test_it_counts(self):
        self.assertIn("1 passed, 1 failed", self.run_groups(a="echo not ok 1 in a; exit 1",
                                                            b="echo ok 1 in b"))
        self.assertEqual(self.status, 1)

    def test_it_ends_with_the_program(self):
        with mock.patch.object(check, "run_group", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.run_groups(a="echo $$ >pid; exec sleep 30", b="true")
        pid = self.home / "pid"		# if it came so far
        self.assertTrue(not pid.exists() or gone(int(pid.read_text())))


class CallTest(unittest.TestCase):
    def test_unknown_group(self):
        done = subprocess.run([paths.ROOT / "tools/check", "nonsense"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: .*'nonsense'.*unit.*\n$")


class PapersTest(unittest.TestCase):
    def test_maintainers_lists_what_is_there(self):
        text = (paths.ROOT / "MAINTAINERS").read_text()
        named = re.findall(r"(?m)^F:\t(\S+)$", text)
        self.assertGreater(len(named), 5)
        self.assertEqual([name for name in named if not (paths.ROOT / name).exists()], [])


class BreaksTest(unittest.TestCase):
    """The deliberate breaks of README.md have to follow the code."""

    @staticmethod
    def applies(patch, *options):
        return not subprocess.run(["git", "apply", "--check", *options, patch],
                                  cwd=paths.ROOT, stderr=subprocess.DEVNULL,
                                  check=False).returncode

    def test_those_of_the_tools_apply(self):
        for patch in sorted((paths.ROOT / "tools/tests/breaks").glob("*.patch")):
            touched = re.findall(r"(?m)^\+\+\+ (?:b/)?(\S+)", patch.read_text())
            if not all(name.startswith("tools/") for name in touched):
                continue		# of the kernel
            with self.subTest(patch.name):
                # or is applied: then another test is to fail, not this
                self.assertTrue(self.applies(patch) or self.applies(patch, "-R"))

    def test_each_is_in_the_readme_and_no_other(self):
        readme = (paths.ROOT / "tools/tests/README.md").read_text()
        there = {path.name for path in (paths.ROOT / "tools/tests/breaks").iterdir()}
        for name in there:
            self.assertIn(name, readme)
        self.assertLessEqual(set(re.findall(r"[\w-]+\.patch", readme)), there)
