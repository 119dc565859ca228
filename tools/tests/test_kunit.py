# SPDX-License-Identifier: GPL-2.0
"""What KUnit says in the guest, and what becomes of it."""
import contextlib
import io
import unittest
from types import SimpleNamespace
from unittest import mock

from blkscale import tap
from test_check import program

kunit = program("tools/tests/kunit")
SOURCE = "static struct kunit_case c[] = {\n\tKUNIT_CASE(one),\n\tKUNIT_CASE(two),\n\t{}\n};\n"
GOOD = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: s
    1..2
    ok 1 one
    ok 2 two
# s: pass:2 fail:0 skip:0 total:2
ok 1 s
"""


class ReportTest(unittest.TestCase):
    def report(self, text, source=SOURCE):
        """What is printed, and how many results were bad."""
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            out = tap.Writer()
            kunit.report(out, "s", kunit.cases(source), text)
        return shown.getvalue(), out.failed

    def test_good(self):
        self.assertEqual(self.report(GOOD), (
            "ok 1 s: one\nok 2 s: two\nok 3 s: ran to its end\n", 0))

    def test_a_failed_case_says_why(self):
        text = GOOD.replace("    ok 2 two", "    # two: EXPECTATION FAILED at x.c:1\n"
                            "    Expected a == b\n    not ok 2 two")
        shown, failed = self.report(text.replace("ok 1 s\n", "not ok 1 s\n"))
        self.assertEqual(failed, 2)
        self.assertIn("not ok 2 s: two\n# two: EXPECTATION FAILED at x.c:1\n"
                      "# Expected a == b\n", shown)

    def test_skipped(self):
        shown, failed = self.report(GOOD.replace("two\n", "two # SKIP one CPU\n"))
        self.assertEqual(failed, 0)
        self.assertIn("ok 2 s: two # SKIP one CPU\n", shown)

    def test_missing_results_are_failures(self):
        self.assertEqual(self.report(GOOD.replace("    ok 2 two\n", ""))[1], 1)
        self.assertEqual(self.report(GOOD.replace("\nok 1 s\n", "\n"))[1], 1)
        self.assertEqual(self.report("")[1], 3)

    def test_a_source_without_cases_is_a_failure(self):
        self.assertEqual(self.report(GOOD, source="")[1], 1)

    def test_the_worse_of_two_results_counts(self):
        self.assertEqual(self.report(GOOD + "    not ok 1 one\n")[1], 1)
        self.assertEqual(self.report("    not ok 1 one\n" + GOOD)[1], 1)


class MainTest(unittest.TestCase):
    def test_trouble_of_the_boot_is_a_failure(self):
        for trouble, status in ((None, 0), ("no end after 10m", None), (None, 1)):
            log = mock.Mock(**{"read_text.return_value": "", "exists.return_value": True})
            result = SimpleNamespace(trouble=trouble, status=status, log=log)
            shown = io.StringIO()
            with mock.patch.object(kunit.boot, "run", return_value=result), \
                    mock.patch.object(kunit.sys, "argv", ["kunit"]), \
                    contextlib.redirect_stdout(shown):
                self.assertEqual(kunit.main(), 1)	# no case has a result
            said = [line for line in shown.getvalue().splitlines()
                    if "boot: no complaint" in line]
            self.assertEqual([line.startswith("not ok") for line in said],
                             [bool(trouble or status)])
