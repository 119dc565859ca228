# SPDX-License-Identifier: GPL-2.0
"""Which added lines ran: gcov's output, diffs, and the list of reasons."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.prepare import kernel
from blkscale.tests import reach
from helpers import error_of, program

SOURCE = """\
static int small(int a)
{
	return a;
}

int large(int a)
{
	if (a > 5)
		goto out;
	return small(a);
out:
	return 0;
}
"""
# The fourth file is binary, the last one goes; a line that looks like a header is code.
DIFF = """\
diff --git a/block/a.c b/block/a.c
index 1..2 100644
--- a/block/a.c
+++ b/block/a.c
@@ -3 +3 @@ static int small(int a)
-	return 1;
+	return a;
@@ -7,0 +8,2 @@ int large(int a)
+	if (a > 5)
+		goto out;
@@ -20,3 +21,0 @@
-	gone
-	gone
-	gone
@@ -30,0 +32,2 @@ x
+++ counted;
+ last
diff --git a/block/b.h b/block/b.h
new file mode 100644
--- /dev/null
+++ b/block/b.h
@@ -0,0 +1 @@
+int b;
diff --git a/include/trace/events/b.h b/include/trace/events/b.h
--- a/include/trace/events/b.h
+++ b/include/trace/events/b.h
@@ -4,0 +5 @@
+TRACE(b);
diff --git a/x.png b/x.png
Binary files a/x.png and b/x.png differ
diff --git a/old.c b/old.c
--- a/old.c
+++ /dev/null
@@ -1 +0,0 @@
-int old;
"""


def gcov_row(*files):
    return json.dumps({"files": [
        {"file": name, "lines": [{"line_number": n, "count": c} for n, c in lines]}
        for name, lines in files]})


class CountsTest(unittest.TestCase):
    def test_copies_of_a_line_add_up(self):
        text = "\n".join([
            gcov_row(("../block/a.c", [(3, 0), (8, 2), (8, 5)]), ("../block/b.h", [(1, 1)])),
            gcov_row(("../block/c.c", [(1, 0)]), ("../block/../block/b.h", [(1, 3)]))])
        self.assertEqual(reach.counts(text), {"block/a.c": {3: 0, 8: 7}, "block/b.h": {1: 4},
                                              "block/c.c": {1: 0}})

    def test_a_line_that_did_not_run_stays_known(self):
        total = {}
        reach.add(total, {"a.c": reach.Counter({1: 0, 2: 3})})
        reach.add(total, {"a.c": reach.Counter({1: 0, 2: 1}), "b.c": reach.Counter({9: 0})})
        self.assertEqual({name: dict(lines) for name, lines in total.items()},
                         {"a.c": {1: 0, 2: 4}, "b.c": {9: 0}})

    def counted(self, folder, count):
        """A program that counts, and what gcov has to know of it."""
        objects = Path(folder) / "obj"
        (objects / "block").mkdir(parents=True)
        (Path(folder) / "a.c").write_text(
            SOURCE + "int main(int n, char **v) { return large(n); }\n")
        flags = ["-O2", "-fprofile-arcs", "-ftest-coverage", "-fno-early-inlining"]
        subprocess.run(["gcc", *flags, "-c", "../a.c", "-o", "block/a.o"], cwd=objects,
                       check=True)
        subprocess.run(["gcc", "--coverage", "block/a.o", "-o", "a"], cwd=objects, check=True)
        guests = []
        for n in range(count):
            guests.append(Path(folder) / f"guest{n}" / reach.COUNTS)
            guests[-1].mkdir(parents=True)
            subprocess.run([objects / "a"], check=False)
            shutil.move(objects / "block/a.gcda", guests[-1])
        return objects, guests

    @unittest.skipUnless(shutil.which("gcov"), "no gcov here")
    def test_a_real_program_in_two_guests(self):
        with tempfile.TemporaryDirectory() as folder:
            objects, guests = self.counted(folder, 2)
            lines = reach.read_counts(guests, objects)["a.c"]
            self.assertEqual((lines[3], lines[8], lines[9]), (2, 2, 0))
            (objects / "block/a.gcno").rename(objects / "block/b.gcno")
            self.assertIn("0 files a.gcno", error_of(reach.read_counts, guests, objects)[0])

    @unittest.skipUnless(shutil.which("gcov"), "no gcov here")
    def test_counts_of_another_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            objects, guests = self.counted(folder, 1)
            with open(Path(folder) / "a.c", "a") as file:
                file.write("int more(int a) { return a ? large(a) : 3; }\n")
            subprocess.run(["gcc", "-O2", "-fprofile-arcs", "-ftest-coverage", "-c", "../a.c",
                            "-o", "block/a.o"], cwd=objects, check=True)
            self.assertIn("gcov cannot read", error_of(reach.read_counts, guests, objects)[0])


class AddedTest(unittest.TestCase):
    def test_added_lines(self):
        self.assertEqual(reach.added(DIFF), {
            "block/a.c": {3: "return a;", 8: "if (a > 5)", 9: "goto out;", 32: "++ counted;",
                          33: "last"},
            "block/b.h": {1: "int b;"}, "include/trace/events/b.h": {5: "TRACE(b);"}})
        self.assertEqual(reach.added(""), {})

    def test_only_code_counts_and_its_function_is_named(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(reach.git, "git", return_value=DIFF):
            (Path(folder) / "block").mkdir()
            (Path(folder) / "block/a.c").write_text(SOURCE)
            runs = {"block/a.c": {3: 4, 8: 4, 9: 0, 10: 4}, "block/z.c": {3: 0},
                    "include/trace/events/b.h": {5: 0}}
            found = reach.lines_of(folder, runs)
        self.assertEqual([(line.function, line.number, line.text, line.runs) for line in found],
                         [("small", 3, "return a;", 4), ("large", 8, "if (a > 5)", 4),
                          ("large", 9, "goto out;", 0)])


def line(function, text, runs=0, number=1):
    return reach.Line("block/a.c", function, number, text, runs)


LIST = """\
# what it is

block/a.c large
why: no test does that;
why: it takes a day
	goto out;
	return -ENOMEM;

block/a.c large
sometimes: two CPUs have to meet
	cpu_relax();
"""


class ReasonsTest(unittest.TestCase):
    def test_list(self):
        one, two = reach.reasons(LIST)
        self.assertEqual((one.file, one.function, one.why, one.sometimes, one.texts),
                         ("block/a.c", "large", "no test does that; it takes a day", False,
                          ["goto out;", "return -ENOMEM;"]))
        self.assertEqual((two.why, two.sometimes), ("two CPUs have to meet", True))

    def test_mistakes_are_named_by_line(self):
        for text, number in (("\tcode;\n", 1), ("block/a.c large\n\tcode;\n", 2),
                             ("why: x\n", 1), ("block/a.c large more\n", 1),
                             ("block/a.c large\nwhy: x\n\tcode;\nwhy: y\n", 4)):
            with self.subTest(text):
                said, code = error_of(reach.reasons, text)
                self.assertEqual(code, 1)
                self.assertIn(f"line {number}:", said)

    def judge(self, *lines):
        found = reach.judge(lines, reach.reasons(LIST))
        return ([one.text for one, _ in found.reasoned], [one.text for one in found.bare],
                [(text, what) for _, text, what in found.stale])

    def test_good(self):
        lines = [line("large", "goto out;"), line("large", "return -ENOMEM;"),
                 line("large", "cpu_relax();"), line("large", "fine();", 7)]
        self.assertEqual(self.judge(*lines), (
            ["goto out;", "return -ENOMEM;", "cpu_relax();"], [], []))
        lines[2].runs = 1		# sometimes it does
        self.assertEqual(self.judge(*lines)[1:], ([], []))

    def test_no_reason(self):
        lines = [line("large", "goto out;"), line("small", "goto out;"),
                 line("large", "return -ENOMEM;"), line("large", "return -ENOMEM;"),
                 line("large", "cpu_relax();")]
        self.assertEqual(self.judge(*lines)[1:], (["goto out;", "return -ENOMEM;"], []))

    def test_stale(self):
        self.assertEqual(self.judge(line("large", "goto out;", 3))[2], [
            ("goto out;", "it runs"),
            ("return -ENOMEM;", "the series adds no such line"),
            ("cpu_relax();", "the series adds no such line")])

    def test_report(self):
        lines = [line("large", "goto out;"), line("large", "bare();", 0, 2),
                 line("large", "fine();", 7, 3)]
        text = reach.report(lines, reach.judge(lines, reach.reasons(LIST)))
        self.assertIn("    1 of    3 block/a.c", text)
        self.assertIn("not run: no test does that; it takes a day\n"
                      "block/a.c large\n\tgoto out;\n", text)
        self.assertIn("no reason is given:\nblock/a.c large\n\tbare();\n", text)
        self.assertEqual(text.splitlines()[-1], "1 of 3 added lines run, 1 do not for a "
                         "reason, 1 without one, 2 stale reasons")

    def test_the_list_is_of_lines_of_the_series(self):
        added = {row[1:].strip() for patch in paths.patches()
                 for row in patch.read_text().splitlines() if row.startswith("+")}
        for reason in reach.reasons(reach.REASONS.read_text()):
            with self.subTest(f"{reason.file} {reason.function}"):
                self.assertTrue(reason.texts)
                self.assertEqual([text for text in reason.texts if text not in added], [])


class KernelTest(unittest.TestCase):
    def test_what_the_series_changes_counts(self):
        changed = ["block/a.c", "block/a.h", "lib/sbitmap.c", "lib/tests/sbitmap_kunit.c",
                   "drivers/block/b.c"]
        with mock.patch.object(kernel, "changed_files", return_value=changed):
            words = kernel.counted("tree", "debug+gcov")
            self.assertEqual([word for word in words if word.startswith("GCOV")],
                             ["GCOV_PROFILE_a.o=y", "GCOV_PROFILE_sbitmap.o=y"])
            self.assertEqual(kernel.counted("tree", "debug"), [])


class ProgramTest(unittest.TestCase):
    """The program without kernel and guest."""

    def setUp(self):
        self.program = program("tools/tests/reach")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)
        (self.build / "unreached").write_text(LIST)
        (self.build / "bzImage").touch()
        self.calls = []
        self.lines = [line("large", "goto out;"), line("large", "return -ENOMEM;"),
                      line("large", "cpu_relax();"), line("large", "fine();", 7)]
        for target, name, what in (
                (paths, "BUILD", self.build), (reach, "REASONS", self.build / "unreached"),
                (paths, "bzimage", lambda *_: self.build / "bzImage"),
                (reach, "read_counts", lambda folders, _: {}),
                (reach, "lines_of", lambda *_: self.lines),
                (self.program.needs, "call", self.call)):
            patch = mock.patch.object(target, name, what)
            patch.start()
            self.addCleanup(patch.stop)

    def call(self, _steps, program, *args):
        self.calls.append((program, *args))
        if program == "tests/guest" and self.leaves:
            (self.build / "run/boot-1" / reach.COUNTS).mkdir(parents=True, exist_ok=True)
        return self.status if program == "tests/guest" else 0

    def run_it(self, *words, leaves=True, status=0):
        self.leaves, self.status = leaves, status
        with mock.patch("sys.argv", ["reach", *words]), \
                contextlib.redirect_stdout(io.StringIO()):
            return self.program.main()

    def test_all_is_well(self):
        self.assertEqual(self.run_it(), 0)
        self.assertEqual(self.calls, [("kernel/build", "patched", "debug+gcov"),
                                      ("tests/guest", "--on", "gcov")])
        self.assertEqual(self.run_it("--again"), 0)
        self.assertEqual(len(self.calls), 3)
        # what an earlier run has left is no part of a whole one
        self.assertIn("left counts", error_of(self.run_it)[0])

    def test_what_makes_it_fail(self):
        self.assertEqual(self.run_it(status=1), 1)
        self.lines[3].runs = 0
        self.assertEqual(self.run_it("--again"), 1)	# a line without a reason
        self.lines[3].runs = self.lines[0].runs = 1
        self.assertEqual(self.run_it("order"), 1)	# a stale reason
        self.assertEqual(self.calls[-1], ("tests/guest", "--on", "gcov", "order"))

    def test_no_counts(self):
        self.assertIn("left counts", error_of(self.run_it, leaves=False)[0])
        self.assertIn("runs no test", error_of(self.run_it, "--again", "order")[0])

    def test_counts_of_another_kernel_do_not_count(self):
        old = self.build / "run/boot-0" / reach.COUNTS
        old.mkdir(parents=True)
        self.assertEqual(self.program.folders(), {old})
        os.utime(old, (1, 1))
        self.assertEqual(self.program.folders(), set())


if __name__ == "__main__":
    unittest.main()
