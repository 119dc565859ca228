# SPDX-License-Identifier: GPL-2.0
"""Files that people use: the loads, their figures and tables, on made-up ones."""
import contextlib
import io
import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.cases import files, loads
from blkscale.measure import results
from blkscale.prepare import kernel
from blkscale.report import file_tables
from helpers import program
from test_report import rec

PROGRAM = program("tools/bench/files")
GUEST = program("tools/bench/files-guest")
LOAD, START = "4 databases beside 4 direct readers", "programs start beside a copy"
SAID = {"seconds": .5, "rollback": {"done": 400, "p50": 1, "p99": 2, "longest": 9},
        "direct": {"done": 1000, "p50": .1, "p99": .2, "longest": 3}}
TRACE = """\
# tracer: nop
     files-90 [000] d..1. 7.1: block_rq_direct: 8,0 WS 4096 () 8 + 8 none,0,0 [files]
     files-90 [000] d..1. 7.1: block_rq_insert: 8,0 WS 4096 () 8 + 8 none,0,0 [files]
     files-90 [000] d..1. 7.1: block_rq_insert: 8,0 FF 0 () 0 + 0 none,0,0 [files]
 jbd2/sda-8-9 [000] d..1. 7.1: block_rq_insert: 8,0 WSM 4096 () 8 + 8 be,3,0 [jbd2/sda-8]
 jbd2/sda-8-9 [000] d..1. 7.1: block_rq_insert: 8,0 FWFSM 4096 () 8 + 8 be,3,0 [jbd2/sda-8]
     files-91 [000] d..1. 7.2: block_rq_direct: 8,0 RM 4096 () 8 + 8 none,0,0 [files]
     files-91 [000] d..1. 7.2: block_rq_direct: 8,0 R 4096 () 8 + 8 none,0,0 [files]
kworker/u8:1-7 [001] d..1. 7.2: block_rq_insert: 8,0 W 4096 () 8 + 8 none,0,0 [kworker/u8:1]
     files-91 [000] d..1. 7.2: block_rq_issue: 8,0 R 4096 () 8 + 8 none,0,0 [files]
"""


def cell(side, *commits, sched="bfq", load=LOAD, **more):
    runs = [{"commits": value, **more} for value in commits]
    return rec(sched, side, 2, results.medians(runs), "files", load, files.SCSI,
               runs=runs)


class Figures(unittest.TestCase):
    def test_commits_and_readers(self):
        found = files.figures(SAID, (30, 10), (600, 7))
        self.assertEqual((found["commits"], found["commit_p99"], found["reads"],
                          found["flushes"], found["direct"]), (800, 2, 2000, 7, .75))

    def test_programs_and_copy(self):
        said = {"seconds": 2, "copy": {"done": 800, "p50": 1},
                "start": {"done": 6, "p50": 30, "longest": 80}}
        found = files.figures(said, None, (0, 0))
        self.assertEqual((found["start"], found["start_worst"], found["copy"]),
                         (30, 80, 50))
        self.assertIsNone(found["direct"])

    def test_none_counts_nothing(self):
        self.assertIsNone(files.share((0, 0)))

    def test_what_is_inserted(self):
        self.assertEqual(files.parted(TRACE), {
            "sync write": [1, 1], "flush or FUA": [0, 2], "journal thread": [0, 1],
            "metadata read": [1, 0], "read": [1, 0], "write-back": [0, 1]})


class Tables(unittest.TestCase):
    def table(self, *records):
        (found,) = file_tables.tables(records)
        return found

    def row(self, *records):
        table = self.table(*records)
        return dict(zip(table.header, table.rows[-1]))

    def test_a_row(self):
        row = self.row(cell("base", 400, 420, 410), cell("patched", 800, direct=.5),
                       cell("base", 820, sched="none"),
                       cell("patched", 1000, sched="none"))
        self.assertEqual((row["commits/s"], row["of none"], row["verdict"]),
                         ("410 -> 800", "0.50 -> 0.80", "3+1 boots"))
        self.assertEqual((row["scheduler"], row["direct"]), ("bfq", "0.50"))

    def test_verdict(self):
        row = self.row(cell("base", 400, 410, 420), cell("patched", 200, 201, 203))
        self.assertIn("worse, unconfirmed (1 in 20): commits/s", row["verdict"])
        row = self.row(cell("base", 400, 410, 420), cell("patched", 401, 409, 423))
        self.assertEqual(row["verdict"], "same")

    def test_none_of_a_load_that_is_like_another(self):
        old = next(load for load in files.LOADS.values() if load.like)
        row = self.row(cell("patched", 500, load=old.name),
                       cell("patched", 1000, sched="none", load=old.like))
        self.assertEqual(row["of none"], "0.50")

    def test_each_kind_of_load_has_a_table(self):
        start = rec("bfq", "base", 2, {"start": 30, "start_worst": 80, "copy": 50},
                    "files", START, files.SCSI)
        titles = [table.title for table in
                  file_tables.tables([start, cell("base", 400)])]
        self.assertEqual([title.split()[0] for title in titles],
                         ["Databases", "Programs"])

    def test_traced_records_stand_alone(self):
        traced = rec("bfq", "patched", 2, {"iops": 1, "commits": 5,
                                           "parts: read": [3, 1]}, files.WHY, LOAD,
                     files.SCSI)
        self.assertEqual(file_tables.tables([traced]), [])
        rows = file_tables.why_table([traced, cell("base", 400)]).rows
        self.assertEqual([row[3:] for row in rows], [["read", "3", "1", "0.75"]])


class Cells(unittest.TestCase):
    def test_each_load_on_each_disk(self):
        found = files.cells()
        for disk in files.DISKS:
            for load in files.LOADS.values():
                for sched in load.scheds:
                    self.assertIn((load, disk, sched), found)

    def test_quick_has_all_kinds(self):
        named = {word.partition("=")[0] for load, _, _ in files.cells(quick=True)
                 for word in load.tasks}
        self.assertEqual(named, {"rollback", "direct", "start", "copy"})

    def test_like_is_a_load_with_none(self):
        for load in files.LOADS.values():
            if load.like:
                self.assertEqual(files.LOADS[load.like].scheds, files.SCHEDS)

    def test_kernel_configuration_is_there(self):
        kernel.fragments(PROGRAM.CONFIG)


class Program(unittest.TestCase):
    def refused(self, *argv):
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                self.assertRaises(SystemExit) as end:
            PROGRAM.needed(PROGRAM.arguments(list(argv)))
        self.assertEqual((end.exception.code, said.getvalue().count("\n")), (1, 1))
        return said.getvalue()

    def test_bad_options(self):
        self.assertIn("at least 1", self.refused("--boots", "0"))
        self.assertIn("no cell", self.refused("--only", "zebra"))
        self.assertIn("not known", self.refused("--kernels", "mine"))

    def test_missing_program(self):
        with mock.patch("shutil.which", return_value=None):
            self.assertIn("e2fsprogs", self.refused())

    def test_why_is_of_the_patched_kernel(self):
        args = PROGRAM.arguments(["--why"])
        self.assertEqual((args.kernels, args.boots), (["patched"], 1))
        self.assertNotIn("none", {sched for _, _, sched in args.cells})

    def test_counts_of_a_kernel_that_has_none(self):
        self.assertIsNone(GUEST.counts("/dev/nothing-of-this-name"))


class Loads(unittest.TestCase):
    """The load program on a file system of the host."""

    @classmethod
    def setUpClass(cls):
        # A tmpfs, as /tmp may be, has no O_DIRECT before Linux 6.6.
        paths.BUILD.mkdir(exist_ok=True)
        cls.folder = tempfile.TemporaryDirectory(dir=paths.BUILD, prefix="test-files-")
        cls.addClassCleanup(cls.folder.cleanup)
        with mock.patch.object(paths, "BUILD", Path(cls.folder.name)):
            loads.build("bench/files")
        cls.data = Path(cls.folder.name, "data")
        cls.data.mkdir()
        subprocess.run([cls.program(), "prepare", cls.data], check=True)

    @classmethod
    def program(cls):
        return Path(cls.folder.name, "bench/files")

    def run_loads(self, *tasks, seconds=".1"):
        done = subprocess.run([self.program(), "run", self.data, "1", "10", "1",
                               seconds, *tasks], capture_output=True, text=True,
                              check=False)
        return done, json.loads(done.stdout) if done.stdout else None

    def test_each_load_does_something_and_leaves_nothing(self):
        before = sorted(path.name for path in self.data.iterdir())
        for load in ("rollback=2", "wal=2", "direct=2", "buffered=2", "copy=1"):
            for seconds in (".1", "1", "10"):	# what a busy machine needs
                done, said = self.run_loads(load, seconds=seconds)
                self.assertEqual(done.returncode, 0, done.stderr)
                got = said[load.partition("=")[0]]
                if got["done"]:
                    break
            self.assertGreater(got["done"], 0, load)
            self.assertLessEqual(got["p50"], got["p99"])
            self.assertLessEqual(got["p99"], got["longest"])
        self.assertEqual(sorted(path.name for path in self.data.iterdir()), before)

    def test_all_programs_start_however_short_the_time(self):
        _, said = self.run_loads("start=1", "copy=1", seconds="0")
        self.assertEqual(said["start"]["done"], 6)
        self.assertGreater(said["seconds"], 1)

    def test_a_program_that_cannot_start_is_a_failure(self):
        part = next(self.data.glob("program5/0/*"))
        part.rename(self.data / "away")
        done, said = self.run_loads("start=1")
        (self.data / "away").rename(part)
        self.assertEqual((done.returncode, said), (1, None))
        self.assertIn("program5", done.stderr)

    def test_bad_loads(self):
        for load in ("zebra=1", "wal", "wal=0", "wal=5", "start=2"):
            done, _ = self.run_loads(load)
            self.assertEqual(done.returncode, 2, load)
            self.assertIn("cannot use", done.stderr)


if __name__ == "__main__":
    unittest.main()
