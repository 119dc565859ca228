# SPDX-License-Identifier: GPL-2.0
"""Who overtook whom: hand-made traces with known answers."""
import contextlib
import io
import subprocess
import tempfile
import unittest
from pathlib import Path

from blkscale import paths
from blkscale.cases import overtaken, overtaking
from blkscale.cases.overtaken import BadTrace
from blkscale.measure import results
from blkscale.report import overtaking_tables
from helpers import program
from test_report import rec

PROGRAM = program("tools/bench/overtaking")
LINES = {	# as the kernel prints them
    "insert": "block_rq_insert: 8,0 R 4096 () {} + {} none,0,0 [tasks]",
    "direct": "block_rq_direct: 8,0 R 4096 () {} + {} none,0,0 [tasks]",
    "issue": "block_rq_issue: 8,0 R 4096 () {} + {} none,0,0 [tasks]",
    "merge": "block_rq_merge: 8,0 R 4096 () {} + {} none,0,0 [tasks]",
    "front": "block_bio_frontmerge: 8,0 R {} + {} [tasks]",
    "requeue": "block_rq_requeue: 8,0 R () {} + {} none,0,0 [0]",
    "complete": "block_rq_complete: 8,0 R () {} + {} none,0,0 [0]",
}
HEAD = "           tasks-61      [003] d..2.  {}: {}"


def lines(*events):
    """'insert 8', 'front 0 4', ...: a request of 8 sectors unless said."""
    found = ["# tracer: nop", "#"]
    for clock, event in enumerate(events, 1000):
        kind, sector, size = (event.split() + ["8"])[:3]
        found.append(HEAD.format(clock, LINES[kind].format(sector, size)))
    return found


def counts(*events):
    """The counts of a trace; what it issues is completed at its end."""
    issued = [e.split()[1:] for e in events if e.startswith("issue")]
    ended = [e.split()[1:] for e in events if e.startswith("complete")]
    rest = [" ".join(["complete", *place]) for place in issued
            if issued.count(place) > ended.count(place)]
    return overtaken.counts(overtaken.read(lines(*events,
                                                 *dict.fromkeys(rest))))


class Counts(unittest.TestCase):
    def test_nobody(self):
        self.assertEqual(counts("insert 8", "issue 8", "insert 16", "issue 16"),
                         [(0, 0), (0, 0)])
        self.assertEqual(counts("insert 8", "insert 16", "issue 8", "issue 16"),
                         [(0, 0), (0, 0)])

    def test_by_one_that_was_issued_directly(self):
        self.assertEqual(counts("insert 8", "direct 16", "issue 16", "issue 8"),
                         [(1, 1)])

    def test_by_one_that_the_scheduler_chose(self):
        self.assertEqual(counts("insert 8", "insert 16", "issue 16", "issue 8"),
                         [(0, 1), (0, 0)])

    def test_by_many(self):
        passed = [f"{what} {sector}" for sector in range(100, 150)
                  for what in ("direct", "issue")]
        self.assertEqual(counts("insert 8", "insert 16", *passed, "insert 24",
                                "issue 24", "issue 16", "issue 8"),
                         [(50, 52), (50, 51), (0, 0)])

    def test_who_came_before_does_not_overtake(self):
        self.assertEqual(counts("insert 16", "direct 24", "insert 8",
                                "issue 24", "issue 16", "issue 8"),
                         [(1, 1), (0, 0)])

    def test_not_issued_in_time(self):
        """What was noticed, but was issued after all."""
        self.assertEqual(counts("insert 8", "direct 16", "issue 8", "issue 16"),
                         [(0, 0)])

    def test_without_the_event_for_direct_issue(self):
        self.assertEqual(counts("insert 8", "issue 16", "issue 8"), [(1, 1)])

    def test_the_same_sector_again(self):
        self.assertEqual(counts("insert 8", "direct 16", "issue 16",
                                "complete 16", "direct 16", "issue 16",
                                "complete 16", "issue 8"), [(2, 2)])

    def test_a_split_batch(self):
        """Two of a batch are issued directly, two are inserted."""
        self.assertEqual(counts("insert 8", "direct 16", "issue 16",
                                "direct 24", "issue 24", "insert 32",
                                "insert 40", "issue 8", "issue 32", "issue 40"),
                         [(2, 2), (0, 0), (0, 0)])

    def test_flushes_are_left_out(self):
        self.assertEqual(counts("insert 8", "issue 0 0", "complete 0 0",
                                "issue 8"), [(0, 0)])
        self.assertEqual(counts("insert 0 0", "insert 8", "issue 8"), [(0, 0)])


class Merges(unittest.TestCase):
    def test_one_that_was_merged_into_another(self):
        """Its bios are in the other one, which has the larger end."""
        self.assertEqual(counts("insert 8", "insert 24", "insert 16",
                                "merge 24", "direct 80", "issue 80", "issue 8",
                                "issue 16"), [(1, 1), (1, 1)])

    def test_one_that_never_was_in_the_scheduler(self):
        self.assertEqual(counts("insert 8", "merge 16", "issue 8 16",
                                "complete 8 16"), [(0, 0)])

    def test_a_front_merge_moves_the_request(self):
        self.assertEqual(counts("insert 8", "front 0 8", "direct 80",
                                "issue 80", "issue 0 16"), [(1, 1)])


class Requeues(unittest.TestCase):
    def test_a_request_that_was_given_back_still_waits(self):
        self.assertEqual(counts("insert 8", "issue 8", "requeue 8", "direct 16",
                                "issue 16", "issue 8"), [(1, 1)])

    def test_inserted_again(self):
        self.assertEqual(counts("insert 8", "issue 8", "requeue 8", "insert 8",
                                "direct 16", "issue 16", "issue 8"), [(1, 1)])

    def test_who_is_given_back_has_not_overtaken(self):
        self.assertEqual(counts("insert 8", "direct 16", "issue 16",
                                "requeue 16", "issue 8", "issue 16"), [(0, 0)])

    def test_who_was_given_back_before_it_was_issued(self):
        self.assertEqual(counts("insert 8", "direct 16", "requeue 16",
                                "issue 16", "issue 8"), [(1, 1)])

    def test_given_back_and_then_held_by_the_scheduler(self):
        self.assertEqual(counts("direct 16", "issue 16", "requeue 16",
                                "direct 24", "issue 24", "insert 16",
                                "issue 16"), [(1, 1)])


class Twins(unittest.TestCase):
    PAIRS = [event for sector in range(1000, 3000, 8)
             for event in (f"insert {sector}", f"issue {sector}")]
    TWINS = {"both inserted": ("insert 8", "insert 8", "issue 8", "issue 8"),
             "one directly": ("insert 8", "direct 8", "issue 8", "issue 8"),
             "no event": ("insert 8", "issue 8", "issue 8")}

    def test_both_are_left_out(self):
        for name, events in self.TWINS.items():
            with self.subTest(name):
                self.assertEqual(counts(
                    *self.PAIRS, "insert 96", *events, "complete 8",
                    "complete 8", "issue 96"), [(0, 0)] * 251)

    def test_few_are_allowed(self):
        with self.assertRaisesRegex(BadTrace, "2 of 2 requests"):
            counts(*self.TWINS["both inserted"], "complete 8", "complete 8")

    def test_the_next_one_counts(self):
        self.assertEqual(counts(
            *self.PAIRS, *self.TWINS["both inserted"], "complete 8",
            "complete 8", "insert 8", "direct 16", "issue 16", "issue 8")[-1],
            (1, 1))


class Bad(unittest.TestCase):
    def refused(self, why, *events, more=()):
        with self.assertRaisesRegex(BadTrace, why):
            overtaken.read([*lines(*events), *more])

    def test_lost_events(self):
        self.refused("events were lost", "insert 8", "issue 8", "complete 8",
                     more=["CPU:2 [LOST 23 EVENTS]"])

    def test_out_of_order(self):
        early = HEAD.format(1, LINES["complete"].format(8, 8))
        self.refused("not in the order", "insert 8", "issue 8", more=[early])

    def test_the_trace_ends_too_early(self):
        self.refused("1 requests have no end", "insert 8")

    def test_a_request_without_events(self):
        events = lines("insert 8", "issue 8", "complete 8")
        self.assertEqual(len(overtaken.read(events, ios=1)), 1)
        with self.assertRaisesRegex(BadTrace, "done 2 requests.* has 1$"):
            overtaken.read(events, ios=2)

    def test_never_issued(self):
        self.refused("not issued", "insert 8", "complete 8")


class Figures(unittest.TestCase):
    def test_what_is_told(self):
        passed = [f"{what} {sector}" for sector in range(1000, 1200)
                  for what in ("direct", "issue", "complete")]
        events = ["insert 8", *passed, "issue 8", "complete 8"]
        for sector in range(2000, 2099):
            events += [f"{what} {sector}" for what in
                       ("insert", "issue", "complete")]
        early = [f"{what} {sector}" for sector in range(5000, 5300)
                 for what in ("insert", "issue", "complete")]
        told = overtaken.figures(overtaken.read(lines(*early, *events)))
        self.assertEqual(told, {
            "requests": 300, "in_flight": 1, "inserted": .3333,
            "newcomers": 2.0,
            "direct_most": 200, "direct_p99": 0, "direct_share": .01,
            "all_most": 200, "all_p99": 0, "all_share": .01})

    def test_nothing_waited(self):
        told = overtaken.figures(overtaken.read(lines(
            "direct 8", "issue 8", "complete 8", "direct 8", "issue 8",
            "complete 8")))
        self.assertEqual((told["requests"], told["inserted"],
                          told["direct_most"]), (1, 0, 0))

    def test_what_came_early_is_left_out(self):
        told = overtaken.figures(overtaken.read(lines(
            "insert 8", "direct 16", "issue 16", "issue 8", "complete 8",
            "complete 16", "insert 8", "issue 8", "complete 8", "insert 8",
            "issue 8", "complete 8")))
        self.assertEqual((told["requests"], told["direct_most"]), (2, 0))

    def test_in_flight(self):
        self.assertEqual(overtaken.in_flight(overtaken.read(lines(
            "insert 8", "issue 8", "direct 16", "issue 16", "requeue 16",
            "complete 8", "issue 16", "insert 24", "issue 24", "complete 16",
            "complete 24"))), [1, 1, 2])

    def test_percentile(self):
        self.assertEqual(overtaken.percentile(range(1, 101), .99), 99)
        self.assertEqual(overtaken.percentile([5], .99), 5)

    def test_newcomers_of_those_that_waited(self):
        """One passes two that wait; one passes nobody."""
        self.assertEqual(overtaken.newcomers(overtaken.read(lines(
            "insert 8", "insert 16", "direct 24", "issue 24", "issue 8",
            "issue 16", "direct 32", "issue 32",
            *(f"complete {n}" for n in (8, 16, 24, 32))))), 1)


LOAD, DISK, SCHED = overtaking.cells(overtaking.TIMED)[0]
EVENTS = ("insert 8", "issue 8", "complete 8", "insert 8", "issue 8", "complete 8",
          "insert 8", "direct 16", "issue 16", "issue 8", "complete 8",
          "complete 16")


class Program(unittest.TestCase):
    def judged(self, ios, keep=False):
        """Of a trace of four requests, two of which came early."""
        cell = {"workload": LOAD, "device": DISK, "sched": "bfq", "release": "7",
                "values": {"trace": "1.trace", "ios": ios, "tags": 64}}
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "1.trace")
            trace.write_text("\n".join(lines(*EVENTS)) + "\n")
            found = PROGRAM.judged("patched", cell, Path(folder), keep)
            return found["values"], trace.exists()

    def test_the_figures_of_a_trace(self):
        values, kept = self.judged(4)
        self.assertEqual((values["tags"], values["direct_most"],
                          values["inserted"], kept), (64, 1, .5, False))
        self.assertLessEqual(set(overtaking_tables.COLUMNS), set(values))
        self.assertTrue(self.judged(4, keep=True)[1])

    def test_a_bad_trace_ends_the_program(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            self.judged(5)
        self.assertRegex(said.getvalue(), "^error: kernel patched, .* the disk "
                         "has done 5 requests, the trace has 4; the trace is "
                         ".*1.trace\n$")

    def test_no_such_cell(self):
        done = subprocess.run([paths.ROOT / "tools/bench/overtaking", "--only",
                               "nonsense"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^error: no cell has 'nonsense'.*\n$")

    def test_cells(self):
        found = [overtaking.cell_name(*cell) for machine in overtaking.MACHINES
                 for cell in overtaking.cells(machine)]
        self.assertEqual(len(found), len(set(found)))
        timed = overtaking.TIMED
        self.assertEqual(len(overtaking.cells(timed, "virtio_blk mq")),
                         len(timed.loads))

    def test_tick_disks(self):
        for disk in overtaking.IN_STEP.disks:
            self.assertLessEqual({f"depth={overtaking.depth(disk)}",
                                  f"cpu={overtaking.IN_STEP.cpus}"},
                                 set(overtaking.tick_disk(disk)))


class Tables(unittest.TestCase):
    def records(self, kernel, *most):
        runs = [{"tags": 64, **dict.fromkeys(overtaking_tables.COLUMNS, .25),
                 "direct_most": n, "all_most": n} for n in most]
        return overtaking_tables.worst(rec(SCHED, kernel, 4, results.medians(runs),
                                    "overtaking", LOAD, DISK, runs=runs))

    def test_base_beside_patched(self):
        (table,) = overtaking_tables.tables(
            [self.records("base", 0, 0, 0), self.records("patched", 5, 900, 7)])
        (row,) = table.rows
        self.assertEqual(row[:4], ["saturated", f"{DISK}, 4 vCPUs", SCHED, "64"])
        self.assertIn("0 -> 900", row)		# of all boots
        self.assertIn("25.0 % -> 25.0 %", row)
        self.assertIn("base, patched", table.notes[-1])

    def test_no_figures(self):
        self.assertEqual(overtaking_tables.tables([]), [])
        self.assertEqual(overtaking_tables.tables(
            [{**self.records("base", 1), "device": "gone"}]), [])


if __name__ == "__main__":
    unittest.main()
