# SPDX-License-Identifier: GPL-2.0
"""The judge of all figures, with known answers; and what is judged of which cell."""
import math
import random
import unittest

from blkscale.cases import files
from blkscale.measure import results
from blkscale.report import judge, sections, verdicts
from blkscale.report.judge import BETTER, SAME, WORSE, Rule
from test_report import rec, study

LESS = Rule("less")


def way(base, patched, rule=Rule()):
    return judge.verdict(base, patched, rule).way


class Chance(unittest.TestCase):
    def test_complete_separation(self):
        for n, m in ((1, 1), (2, 2), (3, 3), (3, 8), (8, 8)):
            low, high = range(n), range(100, 100 + m)
            self.assertAlmostEqual(judge.chance(low, high), 1 / math.comb(n + m, n))
            self.assertEqual(judge.chance(high, low), 1)

    def test_one_value_among_the_others(self):
        # of 20 orders of 3 + 3 the two with the highest sums of ranks
        self.assertAlmostEqual(judge.chance([1, 2, 4], [3, 5, 6]), 2 / 20)

    def test_ranges_that_touch(self):
        self.assertAlmostEqual(judge.chance([1, 2, 3], [3, 4, 5]), 2 / 20)
        self.assertEqual(judge.chance([3, 3, 3], [3, 3, 3]), 1)

    def test_any_order_counts_itself(self):
        # as the test is exact, it calls no more than one in twenty worse
        rnd = random.Random(1)
        found = [judge.chance([rnd.random() for _ in range(4)],
                              [rnd.random() for _ in range(5)]) for _ in range(2000)]
        share = sum(p <= judge.CHANCE for p in found) / len(found)
        self.assertLess(share, .07)
        self.assertGreater(share, .02)

    def test_words(self):
        self.assertEqual(judge.odds(1 / 20), "1 in 20")


class Verdicts(unittest.TestCase):
    def test_ways(self):
        base = [100, 101, 102]
        self.assertEqual(way(base, [80, 81, 82]), WORSE)
        self.assertEqual(way(base, [120, 121, 122]), BETTER)
        self.assertEqual(way(base, [80, 81, 82], LESS), BETTER)
        self.assertEqual(way(base, [120, 121, 122], LESS), WORSE)
        self.assertEqual(way(base, base), SAME)

    def test_too_few_boots(self):
        for base, patched in (([100, 101], [50, 51]), ([100], [50]),
                              ([100, 101, 102], [50, 51])):
            found = judge.verdict(base, patched)
            self.assertIsNone(found.way)
            self.assertEqual(found.looks, WORSE)
            self.assertFalse(found.unconfirmed)
            self.assertEqual(str(found), f"{len(base)}+{len(patched)} boots")

    def test_confirmed_with_eight_of_each(self):
        base, patched = [100 + n for n in range(8)], [50 + n for n in range(8)]
        self.assertEqual(str(judge.verdict(base, patched)), "WORSE")
        few = judge.verdict(base[:7], patched)
        self.assertTrue(few.unconfirmed)
        self.assertRegex(str(few), r"^worse, unconfirmed \(1 in 6435\)$")
        self.assertEqual(str(judge.verdict(base[:3], patched[:3])),
                         "worse, unconfirmed (1 in 20)")

    def test_one_boot_among_eight_does_not_hide_a_loss(self):
        base = [100, 101, 102, 103, 104, 105, 106, 107]
        self.assertEqual(way(base, [80, 81, 82, 83, 84, 85, 86, 100.5]), WORSE)
        self.assertEqual(way(base[:3], [80, 81, 100.5]), SAME)

    def test_least_difference(self):
        base = [1000, 1001, 1002]
        self.assertEqual(way(base, [960, 961, 962]), SAME)
        self.assertEqual(way(base, [940, 941, 942]), WORSE)
        self.assertEqual(way(base, [960, 961, 962], Rule(least=.02)), WORSE)

    def test_floor(self):
        base, patched = [.010, .011, .012], [.020, .021, .022]
        self.assertEqual(way(base, patched, LESS), WORSE)
        self.assertEqual(way(base, patched, Rule("less", none=.05)), SAME)

    def test_three_standard_errors(self):
        # apart, but the one side alone scatters as widely
        self.assertEqual(way([100, 150, 220], [90, 92, 94]), SAME)

    def test_order_counts_where_one_side_has_few_boots(self):
        # three that happen to be alike, and two of eight beyond them
        base = [100, 100.1, 100.2]
        self.assertEqual(way(base, [80] * 6 + [101] * 2), SAME)
        self.assertEqual(way(base, [80] * 7 + [101]), WORSE)

    def test_two_modes_are_no_loss(self):
        base, patched = [10] * 4 + [200] * 4, [10] * 5 + [200] * 3
        self.assertEqual(way(base, patched), SAME)

    def test_toward(self):
        rule = Rule("", toward=10)
        base = [9.6, 9.7, 9.8]
        self.assertEqual(way(base, [2, 2, 2.1], rule), WORSE)
        self.assertEqual(way(base, [49, 50, 51], rule), WORSE)
        self.assertEqual(way(base, [10.2, 10.3, 10.4], rule), SAME)
        self.assertEqual(way([88, 88, 90], [11, 11, 12], rule), BETTER)

    def test_nothing_and_something(self):
        self.assertEqual(way([0, 0, 0], [0, 0, 0]), SAME)
        self.assertEqual(way([.5, .5, .5], [0, 0, 0]), WORSE)
        self.assertIsNone(judge.verdict([], [1, 2, 3]))

    def test_chance_calls_few_of_the_same_worse(self):
        rnd = random.Random(2)
        for boots, most in ((3, .035), (8, .015)):
            found = [way([rnd.gauss(100, 20) for _ in range(boots)],
                         [rnd.gauss(100, 20) for _ in range(boots)])
                     for _ in range(2000)]
            self.assertLess(found.count(WORSE) / 2000, most)


class Foot(unittest.TestCase):
    def test_what_chance_gives(self):
        three = judge.verdict([1, 2, 3], [1, 2, 3])
        (line,) = judge.foot([three] * 30)
        self.assertIn("30 figures", line)
        self.assertIn("up to 1.5 worse", line)

    def test_too_few(self):
        two, eight = (judge.verdict([1, 2] * n, [1, 2] * n) for n in (1, 4))
        (line,) = judge.foot([two, eight, None])
        self.assertTrue(line.startswith("1 figure without a verdict"))
        self.assertIn("2+2 boots", line)
        self.assertEqual(judge.foot([eight]), [])


class Boots(unittest.TestCase):
    """Laps of a boot are one value, as what a boot settles on is common to them."""

    def manycore(self, kernel, laps, boots=None, sched="none"):
        return rec(sched, kernel, 8, {"ios_per_mtick": laps[0]},
                   runs=[{"ios_per_mtick": lap} for lap in laps],
                   **({"boots": boots} if boots else {}))

    def test_laps(self):
        laps = [1, 2, 9, 4, 5, 7]
        for boots, values in ((None, [4.5]), ([6], [4.5]), ([3, 1, 2], [2, 4, 6])):
            self.assertEqual(results.boots(self.manycore("base", laps, boots),
                                           "ios_per_mtick"), values)

    def test_other_records_have_a_run_a_boot(self):
        runs = [{"iops": 1}, {"iops": None}, {"iops": 3}]
        self.assertEqual(results.boots({"what": "slowdisk", "values": {"iops": 2},
                                        "runs": runs}, "iops"), [1, 3])
        self.assertEqual(results.boots({"what": "parts", "values": {"iops": 2}},
                                       "iops"), [2])

    def test_many_laps_of_one_boot_are_no_verdict(self):
        found = verdicts.find([self.manycore("base", [100] * 9),
                               self.manycore("patched", [50] * 9)])
        self.assertEqual([str(one.verdict) for one in found], ["1+1 boots"])

    def test_laps_of_three_boots_are(self):
        found = verdicts.find([
            self.manycore("base", [100, 101, 99, 102, 103, 104], [2, 2, 2]),
            self.manycore("patched", [50, 51, 52], [1, 1, 1])])
        self.assertEqual([one.verdict.way for one in found], [WORSE])


def boots_of(kernel, sched, *iops, **more):
    """A record of the NVMe study, a boot for each."""
    return study(sched, kernel, 1, sorted(iops)[len(iops) // 2],
                 runs=[{"iops": n, "lat_p99": 7} for n in iops], **more)


class Unchanged(unittest.TestCase):
    """`none` and kyber have to lose nothing."""

    def test_a_loss_of_one_per_cent_is_listed(self):
        for sched, listed in (("none", True), ("kyber", True), ("mq-deadline", False)):
            records = [boots_of("base", sched, 1000, 1001, 1002),
                       boots_of("patched", sched, 990, 991, 991.5)]
            lines = verdicts.failures(records)
            self.assertEqual(len(lines), listed, sched)
            self.assertEqual([t.rows[0][:4] for t in verdicts.worse(records)],
                             [["NVMe study", sched, "IOPS", "1 of 1 (by chance up to 0.1)"]] * listed)
            self.assertEqual([t.rows + t.notes for t in verdicts.losses(records)],
                             [["1 of the 2 figures with 3 to 7 boots are worse, unconfirmed; "
                               "chance alone makes up to 0.1: see RESULTS.md."]] * listed)
        self.assertIn("none", verdicts.failures(
            [boots_of("base", "none", 1000, 1001, 1002),
             boots_of("patched", "none", 990, 991, 992)])[0])

    def test_latencies_are_judged_as_all_are(self):
        sides = [study("none", kernel, 1, 9, runs=[{"iops": 9, "lat_p99": n}] * 3)
                 for kernel, n in (("base", 100), ("patched", 103))]
        self.assertEqual(verdicts.failures(sides), [])

    def test_the_summary_says_how_many_are_below(self):
        records = [boots_of("base", "none", 1000, 1001, 1002),
                   boots_of("patched", "none", 998, 1000, 1003)]
        (table,) = verdicts.summary(records)
        self.assertEqual(table.rows, [["NVMe study", "none", "1", "0", "0", "0", "0",
                                       "1 of 1", "x0.999"]])

    def test_what_the_wall_clock_says_is_not_judged(self):
        self.assertEqual(verdicts.find(
            [boots_of("base", "none", 1000, 1001, 1002, clock="host"),
             boots_of("patched", "none", 1, 1, 1, clock="host")]), [])


class Others(unittest.TestCase):
    """Tables with a module of their own are in the report, and what is worse there in its
    list."""

    def test_files(self):
        load, what = next(iter(files.LOADS)), "Databases on ext4, base -> patched"
        records = [rec("bfq", kernel, 2, {"commits": n}, "files", load, files.SCSI,
                       runs=[{"commits": n}] * 3)
                   for kernel, n in (("base", 100), ("patched", 50))]
        self.assertIn(what, [table.title for table in sections.tables(records)])
        (line,) = verdicts.failures(records)
        self.assertIn("files, bfq, commits/s x0.50", line)

    def test_what_nobody_judges(self):
        self.assertEqual(verdicts.find([rec("bfq", kernel, 2, {"iops": 1}, "irqsoff")
                                        for kernel in ("base", "patched")]), [])


class Worse(unittest.TestCase):
    @staticmethod
    def disk(kernel, load, *iops):
        return rec("bfq", kernel, 2, {"iops": iops[1]}, "slowdisk", load, "d",
                   runs=[{"iops": n} for n in iops])

    @staticmethod
    def merges(kernel, boots, merged, kib):
        run = {"iops": 9, "merged": merged, "kib": kib}
        return rec("bfq", kernel, 2, run, "slowdisk", "a", "d", runs=[run] * boots)

    def records(self, load, boots, patched):
        return [self.disk("base", load, *range(100, 100 + boots)),
                self.disk("patched", load, *range(patched, patched + boots))]

    def test_worst_first_and_the_confirmed_apart(self):
        records = [*self.records("a", 3, 80), *self.records("b", 3, 40),
                   *self.records("c", 8, 60), *self.records("d", 2, 10)]
        confirmed, unconfirmed, looks = verdicts.worse(records)
        self.assertIn("confirmed by 8", confirmed.title)
        self.assertEqual([row[3:5] for row in confirmed.rows], [["1 of 4", "c, d"]])
        self.assertEqual([row[3:5] for row in unconfirmed.rows], [["2 of 4 (by chance up to 0.1)", "b, d"]])
        self.assertEqual([row[3:5] for row in looks.rows], [["1 of 4", "d, d"]])
        lines = verdicts.failures(records)
        self.assertEqual([line.rpartition(": ")[2] for line in lines],
                         ["c, d", "b, d", "a, d"])
        self.assertTrue(lines[0].startswith("WORSE: "))
        self.assertTrue(lines[1].startswith("worse, unconfirmed (1 in 20): "))

    def test_the_worst_figure_comes_first(self):
        for patched, order in (((.5, 38), ["merged", "KiB"]), ((.85, 20), ["KiB", "merged"])):
            (table,) = verdicts.worse([self.merges("base", 3, .9, 40),
                                      self.merges("patched", 3, *patched)])
            self.assertEqual([row[2] for row in table.rows], order)

    def test_one_table_for_the_readme(self):
        records = [*self.records("a", 3, 80), *self.records("c", 8, 60),
                   *self.records("d", 2, 10)]
        (table,) = verdicts.losses(records)
        self.assertEqual([[row[0], *row[4:]] for row in table.rows],
                         [["c, d", "x0.61", "1 of 3"]])
        self.assertIn("1 of the 1 figure with 3 to 7 boots", table.notes[0])
        self.assertIn("1 more figure may", table.notes[-1])
        self.assertEqual(verdicts.losses(self.records("a", 3, 100)), [])

    def test_the_readme_has_kib_only_without_merges(self):
        for merged, figures in ((.5, ["merged"]), (.9, ["KiB"])):
            (table,) = verdicts.losses([self.merges("base", 8, .9, 40),
                                       self.merges("patched", 8, merged, 20)])
            self.assertEqual([row[2] for row in table.rows], figures)

    def test_nothing_worse(self):
        self.assertEqual(verdicts.worse(self.records("a", 3, 100)), [])
        self.assertEqual(verdicts.failures(self.records("a", 3, 100)), [])

    def test_doubtful(self):
        records = [*self.records("a", 3, 80), *self.records("b", 3, 100),
                   *self.records("c", 8, 60), *self.records("d", 2, 10)]
        self.assertEqual([one.cell[1] for one in verdicts.doubtful(records)], ["a", "d"])


if __name__ == "__main__":
    unittest.main()
