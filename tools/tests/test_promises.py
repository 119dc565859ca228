# SPDX-License-Identifier: GPL-2.0
"""The promises: cases, verdicts and tables, on made-up figures."""
import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.cases import loads, promises
from blkscale.measure import results, runs
from blkscale.report import promise_tables, readme, verdicts
from blkscale.tests import breaks
from helpers import program
from test_report import rec

PROGRAM = program("tools/bench/promises")
LATENCY = "latency: QD1 reader beside QD512"
SHARES = "shares: 10:1, 4 readers each, QD1, together"
DISK = "null_blk 1 ms x 8"
UNCONFIRMED = "worse, unconfirmed (1 in 20)"


def cell(kernel, runs, workload=LATENCY, sched="bfq"):
    return rec(sched, kernel, 2, results.medians(runs), "promises", workload,
               DISK, runs=runs)


def latencies(kernel, *p99, **more):
    return cell(kernel, [{"p99": v, "p999": 9, "rate": 100, "others": 50}
                         for v in p99], **more)


def shares(kernel, *ratios):
    return cell(kernel, [{"ratio": v, "sum": 200} for v in ratios], SHARES)


def verdict(*records):
    ((name, pair),) = promise_tables.by_cell(records).items()
    return verdicts.words(verdicts.of_cell(name, pair))


class Verdicts(unittest.TestCase):
    def test_worse_and_better(self):
        base = latencies("base", 7, 7.1, 7.2)
        self.assertEqual(verdict(base, latencies("patched", 14, 14.5, 15)),
                         f"{UNCONFIRMED}: p99 ms x2.04")
        self.assertEqual(verdict(base, latencies("patched", 3, 3.1, 3.2)),
                         "better: p99 ms x0.44")

    def test_within_the_spread_is_the_same(self):
        wide = latencies("base", 4, 7, 15)
        self.assertEqual(verdict(wide, latencies("patched", 14, 14.5, 15)),
                         "same")
        self.assertEqual(verdict(latencies("base", 10, 10, 10),
                                 latencies("patched", 10.4, 10.4, 10.4)),
                         "same")

    def test_a_share_is_judged_by_what_was_promised(self):
        base = shares("base", 9.6, 9.7, 9.8)
        for ratios in ((2, 2, 2.1), (49, 50, 51)):
            self.assertRegex(verdict(base, shares("patched", *ratios)),
                             "^worse, unconfirmed .*: share")
        self.assertRegex(verdict(shares("base", 88, 88, 90),
                                 shares("patched", 11, 11, 12)),
                         "^better: share")
        self.assertEqual(verdict(base, shares("patched", 10.2, 10.3, 10.4)),
                         "same")		# as far off on the other side

    def test_one_gets_nothing(self):
        said = {"seconds": 2, "a": {"ios": 100}, "b": {"ios": 0}}
        found = promises.figures(promises.NAMES[SHARES], said)
        self.assertEqual(found, {"ratio": promises.BEST, "sum": 50})
        self.assertRegex(verdict(shares("base", 10, 10.1, 10.2),
                                 cell("patched", [found] * 3, SHARES)),
                         "^worse, unconfirmed .*: share")

    def test_one_side(self):
        self.assertEqual(verdict(latencies("base", 1, 2, 3)), "")

    def test_two_boots_are_no_verdict(self):
        self.assertEqual(verdict(latencies("base", 7, 7.1), latencies("patched", 14, 15)),
                         "2+2 boots")


class Cases(unittest.TestCase):
    def test_names_are_unique(self):
        self.assertEqual(len(promises.NAMES), len(promises.CASES))

    def test_the_short_form_is_part_of_the_whole(self):
        whole, short = promises.cells(), promises.cells(short=True)
        self.assertLessEqual(set(short), set(whole))
        named = {(sched, disk) for case in promises.CASES
                 for sched, disk in case.short}
        self.assertEqual({(s, d) for _, d, s in short}, named)
        self.assertEqual({case.kind for case, _, _ in short},
                         set(promises.KINDS))

    def test_two_parts_are_the_whole(self):
        one, two = (promises.cells(part=part) for part in (1, 2))
        self.assertEqual(sorted(map(str, one + two)),
                         sorted(map(str, promises.cells())))
        self.assertEqual({c[0] for c in one}, set(promises.CASES))
        for name, disk in ((SHARES, "null_blk 20 ms x 64"),
                           ("shares: 1:1, 4 readers each, QD1, 0.7 s apart",
                            "null_blk 5 ms x 1024")):
            self.assertIn((promises.NAMES[name], disk, "bfq"), one)

    def test_every_cell_takes_a_while(self):
        for case, disk, _ in promises.cells():
            self.assertGreater(promises.seconds(case, disk), 1)

    def test_what_was_measured_keeps_its_part(self):
        kept = {str(part): {promises.cell_name(*cell)
                            for cell in promises.cells(part=part)}
                for part in (1, 2)}
        seen = [(rec["command"].split("--part ")[1][0],
                 f"{rec['workload']} {rec['device']} {rec['sched']}")
                for rec in results.load(readme.FIGURES)
                if rec["what"] == "promises" and "--part " in rec["command"]
                and rec["workload"] in promises.NAMES and rec["sched"] != "none"]
        if not seen:
            self.skipTest("no half of the promises is in measured.json")
        self.assertEqual([cell for part, cell in seen if cell not in kept[part]],
                         [])

    def test_settings(self):
        case = promises.NAMES["class: IDLE reader ages beside 4 BE readers"]
        self.assertEqual(case.sched("mq-deadline"),
                         "mq-deadline:prio_aging_expire=300")
        self.assertEqual(case.sched("bfq"), "bfq")
        self.assertEqual(promises.NAMES[SHARES].sched("bfq"),
                         "bfq:low_latency=0")

    def test_every_figure_comes_out(self):
        group = {"ios": 10, "p50": 1, "p99": 2, "p999": 3, "longest": 4,
                 "starts": [5, 7, 6], "cut": 0}
        said = {"seconds": 2, **{name: group for name in
                                 ("reader", "others", "start", "a", "a2", "b", "hog")}}
        for case in promises.CASES:
            only = {name: said[name] for name in
                    ["seconds"] + [g.partition(",")[0] for g in case.groups]}
            self.assertLessEqual(set(case.figures),
                                 set(promises.figures(case, only)), case.name)

    def started(self, *times, cut):
        case = next(c for c in promises.CASES if c.kind == "start")
        return promises.figures(case, {
            "seconds": 2, "others": {"ios": 10},
            "start": {"ios": 10, "starts": list(times), "cut": cut}})

    def test_a_start_that_was_cut_off_is_none(self):
        self.assertEqual(self.started(5, 7, 6, cut=0),
                         {"median": 6, "worst": 7, "cut": 0, "others": 5})
        self.assertEqual(self.started(5, 7, 6, cut=2),
                         {"median": 7, "worst": None, "cut": 2, "others": 5})
        for times in ((), (5, 6)):
            self.assertEqual(self.started(*times, cut=5),
                             {"median": None, "worst": None, "cut": 5,
                              "others": 5})

    def test_starts_that_were_cut_off_are_judged_and_shown(self):
        name = "start: a process tree beside 4 QD1 readers"
        base = cell("base", [self.started(*[9] * 5, cut=0)] * 3, name)
        patched = cell("patched", [self.started(cut=5)] * 3, name)
        self.assertRegex(verdict(base, patched), "^worse, unconfirmed .*: cut off")
        (table,) = promise_tables.tables([base, patched])
        self.assertIn("cut off", table.header)

    def test_a_break_for_each_kind_finds_its_cells(self):
        kinds = set()
        for patch in breaks.known(breaks.PROMISE).values():
            found = promises.cells(
                only=breaks.facts(patch, breaks.PROMISE)[1])
            self.assertTrue(found, patch)
            kinds |= {case.kind for case, _, _ in found}
        self.assertEqual(kinds, set(promises.KINDS))


class Program(unittest.TestCase):
    def run_it(self, *argv):
        return subprocess.run([paths.ROOT / "tools/bench/promises", *argv],
                              capture_output=True, text=True, check=False)

    def test_no_such_cell(self):
        done = self.run_it("--only", "nonsense")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: no cell has 'nonsense'.*\n$")

    def test_list(self):
        done = self.run_it("--list", "--only", LATENCY)
        self.assertEqual(len(done.stdout.splitlines()),
                         2 * len(promises.DISKS))

    def test_none_once_a_case(self):
        wanted = promises.cells(only=f"{LATENCY} {DISK}")
        self.assertEqual([c[2] for c in PROGRAM.plan(wanted, True)],
                         ["mq-deadline", "bfq", "none"])
        self.assertEqual(len(PROGRAM.plan(wanted, False)), 2)

    def measured(self, patched):
        """main() with two sides, of which the second gives p99s."""
        def boot(kernel, number, *_):
            value = 7 + number / 10 if kernel == "base" else patched
            return [{"workload": LATENCY, "device": DISK, "sched": "bfq",
                     "release": "7", "values": {"p99": value, "p999": 1,
                                                "rate": 1, "others": 1}}]
        with tempfile.TemporaryDirectory() as where, \
                mock.patch.object(paths, "RESULTS", Path(where)), \
                mock.patch.object(PROGRAM, "boot", boot), \
                mock.patch.object(loads, "build"), \
                mock.patch.object(runs, "kernels", lambda t: t.split(",")), \
                mock.patch("sys.argv", ["promises", "--strict", "--kernels",
                                        "base,/tree", "--only", LATENCY]), \
                contextlib.redirect_stdout(io.StringIO()) as out, \
                contextlib.redirect_stderr(io.StringIO()):
            return PROGRAM.main(), out.getvalue()

    def test_a_broken_tree_stands_beside_base(self):
        status, text = self.measured(70)
        self.assertEqual(status, 1)
        self.assertIn(f"{UNCONFIRMED}: p99 ms x", text)
        self.assertEqual(self.measured(7.2)[0], 0)


class Confirm(unittest.TestCase):
    """--confirm measures what is worse and unconfirmed, and only that."""
    RECORDS = [latencies("base", 7, 7.1, 7.2), latencies("patched", 14, 14.5, 15),
               latencies("base", 7, 7.1, 7.2, sched="mq-deadline"),
               latencies("patched", 7, 7.1, 7.3, sched="mq-deadline"),
               shares("base", *[9.9] * 8), shares("patched", *[50] * 8)]

    def arguments(self, *argv, records=None):
        with mock.patch.object(runs, "kernels", lambda text: text.split(",")), \
                tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(readme.lines(self.RECORDS if records is None else records))
            file.flush()
            return PROGRAM.arguments(["--confirm", file.name, *argv])

    def names(self, *argv, **how):
        return [promises.cell_name(*cell) for cell in self.arguments(*argv, **how).cells]

    def test_what_is_worse_and_unconfirmed(self):
        self.assertEqual(self.names(), [f"{LATENCY} {DISK} bfq"])
        self.assertEqual(self.names("--scheds", "mq-deadline"), [])
        self.assertEqual(self.names("--only", "shares"), [])

    def test_what_two_boots_show_is_measured_too(self):
        self.assertEqual(self.names(records=[latencies("base", 7, 7.1),
                                             latencies("patched", 14, 15)]),
                         [f"{LATENCY} {DISK} bfq"])

    def test_eight_boots_unless_said(self):
        self.assertEqual(self.arguments().boots, 8)
        self.assertEqual(self.arguments("--boots", "9").boots, 9)
        self.assertTrue(self.arguments().no_none)

    def test_latency_and_shares_for_longer(self):
        case, disk, _ = next(cell for cell in promises.cells(False, "shares:", ["bfq"], None)
                             if cell[1] == "null_blk 100 us x 64")
        self.assertEqual(self.arguments().least, promises.LEAST)
        self.assertEqual(self.arguments("--least", "2").least, 2)
        late, start = promises.NAMES[LATENCY], next(
            case for case in promises.NAMES.values() if case.kind == "start")
        for one, least, found in ((case, 0, 1.5), (case, 2, 2), (case, 1, 1.5),
                                  (late, 0, .2), (late, 7.5, 7.5), (start, 7.5, 5)):
            self.assertEqual(promises.guest_seconds(one, disk, least), found)

    def test_nothing_to_confirm(self):
        with mock.patch.object(PROGRAM, "arguments", lambda _argv: mock.Mock(
                list=False, cells=[])), contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(PROGRAM.main(), 0)
        self.assertRegex(err.getvalue(), "^nothing to confirm: ")


class Tables(unittest.TestCase):
    RECORDS = [latencies("base", 7, 7.1, 7.2),
               latencies("patched", 14, 14.5, 15),
               latencies("base", 1, 1, 1, sched="none"),
               shares("base", 9, 9, 9), shares("patched", 9, 9, 9)]

    def test_rows(self):
        first, second = promise_tables.tables(self.RECORDS)
        (row,) = first.rows
        self.assertEqual(row[:3], ["QD1 reader beside QD512", DISK, "bfq"])
        self.assertIn("7.10 -> 14.5", row)
        self.assertIn("1.00 / 9.00 / 100 / 50.0", row)
        self.assertEqual(row[-1], f"**{UNCONFIRMED}: p99 ms x2.04**")
        self.assertEqual(second.rows[0][-1], "same")

    def test_summary_and_failures(self):
        (table,) = verdicts.summary(self.RECORDS)
        self.assertEqual([row[:7] for row in table.rows],
                         [["promises: latency", "bfq", "1", "0", "1", "0", "0"],
                          ["promises: shares", "bfq", "1", "0", "0", "0", "0"]])
        self.assertEqual(verdicts.failures(self.RECORDS),
                         [f"{UNCONFIRMED}: promises: latency, bfq, p99 ms x2.04: "
                          f"QD1 reader beside QD512, {DISK}"])

    def test_old_names_are_left_out(self):
        self.assertEqual(promise_tables.by_cell([cell("base", [{}], "latency: x")]),
                         {})


class Tasks(unittest.TestCase):
    """The load program, on the host."""

    @classmethod
    def setUpClass(cls):
        loads.build("bench/tasks")

    def tasks(self, *argv):
        return subprocess.run([paths.BUILD / "bench/tasks", *argv],
                              capture_output=True, text=True, check=False)

    def test_bad_calls(self):
        self.assertEqual(self.tasks().returncode, 2)
        done = self.tasks("/dev/none", "1", "0", "1", "x")
        self.assertRegex(done.stderr, "^tasks: /dev/none: ")

    def starts(self, seconds, *kinds):
        """What the starts of each kind came to, on a file."""
        with tempfile.NamedTemporaryFile(dir=paths.BUILD) as disk:
            disk.truncate(64 << 20)
            done = self.tasks(disk.name, "1", "0", str(seconds), *kinds)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        return [said[kind.partition(",")[0]] for kind in kinds]

    def test_a_start_that_was_cut_off_does_not_count(self):
        kinds = "trees,tree=3", "apps,app=1,n=3,gap=100"
        for said in self.starts(.15, *kinds):
            self.assertEqual(len(said["starts"]) + said["cut"], 3)
            self.assertGreater(said["cut"], 0)
            # each sleeps for 4 ms at least
            self.assertGreaterEqual(min(said["starts"], default=4), 4)
        for said in self.starts(0, *kinds):
            self.assertEqual((said["starts"], said["cut"]), ([], 3))

    def test_all_starts_count_if_there_is_time(self):
        for said in self.starts(60, "trees,tree=2", "apps,app=1"):
            self.assertEqual(said["cut"], 0)
            self.assertGreaterEqual(min(said["starts"]), 4)

    def test_a_hog_ends_with_the_time(self):
        with tempfile.NamedTemporaryFile(dir=paths.BUILD) as disk:
            disk.truncate(64 << 20)
            done = self.tasks(disk.name, "1", "0", ".02",
                              "hog,cpu=0,hog=5000,period=6000", "reader,idle=1")
        self.assertEqual(json.loads(done.stdout)["hog"]["ios"], 0)


if __name__ == "__main__":
    unittest.main()
