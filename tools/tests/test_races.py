# SPDX-License-Identifier: GPL-2.0
"""Data races in console logs: read, told from those of base, and listed."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale.tests import races

RULE = "[    9.1] " + "=" * 66 + "\r\n"
REPORT = RULE + """\
[    9.1] BUG: KCSAN: data-race in dd_has_work / rb_erase\r
[    9.1] \r
[    9.1] write to 0xffff888003f0c2c8 of 8 bytes by task 77 on cpu 1:\r
[    9.1]  rb_erase+0x12/0x40\r
[    9.1]  elv_rb_del+0x12/0x40\r
[    9.1]  dd_insert_request.isra.0+0x3c/0x280\r
[    9.1]  blk_mq_submit_bio+0x3c/0x280\r
[    9.1] \r
[    9.1] read (marked) to 0xffff888003f0c2c8 of 8 bytes by interrupt on cpu 0:\r
[    9.1]  dd_has_work+0x1e/0x60\r
[    9.1] \r
[    9.1] value changed: 0x0000000000000000 -> 0x0000000000000001\r
[    9.1] \r
[    9.1] Reported by Kernel Concurrency Sanitizer on:\r
[    9.1] CPU: 0 UID: 0 PID: 12 Comm: kworker/0:1H Not tainted 7.3.4 #1\r
""" + RULE

SOURCE = """\
static int declared(int a);
int spread(int a,
	   int b);
#define MACRO(x) do { \\
} while (0)
static inline int small(void) { return 0; }

static bool helper(int a)
{
	return a;
}

void
untouched(int a)
{
}

int caller(int a)
{
	return helper(a);
}
"""


class FindTest(unittest.TestCase):
    def test_a_report(self):
        race, = races.find("[ 9.0] fine\n" + REPORT + "[ 9.2] fine\n")
        self.assertEqual(race.pair, "dd_has_work / rb_erase")
        self.assertEqual(race.accesses, [["rb_erase", "elv_rb_del", "dd_insert_request"],
                                         ["dd_has_work"]])
        self.assertEqual(race.places({"elv_rb_del"}),
                         {"rb_erase", "elv_rb_del", "dd_has_work"})
        self.assertTrue(race.text.startswith("BUG: KCSAN"))
        self.assertIn("value changed", race.text)
        self.assertNotIn("fine", race.text)

    def test_each_pair_once(self):
        other = REPORT.replace("dd_has_work / rb_erase", "bfq_x.constprop.0+0x37/0x60")
        pairs = [race.pair for race in races.find(REPORT + other + REPORT)]
        self.assertEqual(pairs, ["dd_has_work / rb_erase", "bfq_x"])

    def test_the_last_one_is_cut_off(self):
        self.assertEqual(len(races.find(REPORT.replace(RULE, ""))), 1)

    def test_no_report(self):
        self.assertEqual(races.find("BUG: x\nkcsan: strict mode configured\n"), [])


class JudgeTest(unittest.TestCase):
    def judge(self, ours, there, layer=()):
        found = races.find(REPORT)
        return [len(group) for group in races.judge(found, ours, there, layer)]

    def test_whose(self):
        self.assertEqual(self.judge({"x"}, {}), [0, 0, 1])
        self.assertEqual(self.judge({"dd_has_work"}, {}), [1, 0, 0])
        # a helper raced, the series called it
        self.assertEqual(self.judge({"dd_insert_request"}, {}), [1, 0, 0])
        self.assertEqual(self.judge({"blk_mq_submit_bio"}, {}), [0, 0, 1])
        # so did another function of the layer, about what is its own
        self.assertEqual(self.judge({"dd_insert_request"}, {}, {"elv_rb_del"}),
                         [0, 0, 1])
        self.assertEqual(self.judge({"elv_rb_del"}, {}, {"elv_rb_del"}), [1, 0, 0])
        # the guest ended before the functions were told
        cut, = races.find(REPORT[:REPORT.index("[    9.1] write")])
        self.assertEqual(cut.places(()), {"dd_has_work", "rb_erase"})
        self.assertEqual(self.judge({"dd_has_work"}, {"dd_has_work / rb_erase": ""}),
                         [0, 1, 0])

    def test_list(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "races"
            self.assertEqual(races.known(path), {})
            path.write_text("# what\n")
            found = races.find(REPORT)
            self.assertEqual(races.record(found, path), 1)
            self.assertEqual(races.record(found, path), 0)
            self.assertEqual(list(races.known(path)), ["dd_has_work / rb_erase"])
            self.assertIn("value changed", races.known(path)["dd_has_work / rb_erase"])
            self.assertTrue(path.read_text().startswith("# what\n"))

    def test_the_list_can_be_read(self):
        for pair, text in races.known().items():
            with self.subTest(pair):
                self.assertRegex(pair, r"^\w+( / \w+)?$")
                self.assertIn("bytes by", text)


class ChangedTest(unittest.TestCase):
    def test_functions(self):
        found = [(body, name) for _, body, _, name in races.functions(SOURCE)
                 if name != "small"]
        rows = SOURCE.splitlines()
        self.assertEqual([name for _, name in found], ["helper", "untouched", "caller"])
        self.assertEqual({rows[body - 1] for body, _ in found}, {"{"})

    def test_symbols(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("0f t dd_a.isra.0\n0f T dd_b\n0f t dd_c.part.0\n0f d dd_d\n")
            file.flush()
            found = races.symbols(file.name)
        self.assertLessEqual({"dd_a", "dd_b"}, found)
        self.assertFalse({"dd_c", "dd_d"} & found)

    def changed(self, diff, *outlined):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(races.git, "git", return_value=diff):
            (Path(folder) / "block").mkdir()
            (Path(folder) / "block/x.c").write_text(SOURCE)
            return races.changed(folder, outlined)

    def test_changed(self):
        head = "--- a/block/x.c\n+++ b/block/x.c\n"
        line = SOURCE.splitlines().index("	return a;") + 1
        self.assertEqual(self.changed(f"{head}@@ -1 +{line} @@ x\n"),
                         {"helper", "caller"})
        self.assertEqual(self.changed(f"{head}@@ -1 +{line} @@ x\n", "helper"),
                         {"helper"})
        # lines that were taken away; what it is called with is not what it does
        line = SOURCE.splitlines().index("untouched(int a)") + 1
        self.assertEqual(self.changed(f"{head}@@ -3,4 +{line + 1},0 @@ x\n"),
                         {"untouched"})
        self.assertEqual(self.changed(f"{head}@@ -3,4 +{line},0 @@ x\n"), set())
        self.assertEqual(self.changed(""), set())


if __name__ == "__main__":
    unittest.main()
