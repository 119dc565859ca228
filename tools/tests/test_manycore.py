# SPDX-License-Identifier: GPL-2.0
"""The many-core measurement's pure parts: plans, logs, attribution, table."""
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from blkscale import paths  # noqa: E402
from blkscale.cases import workloads  # noqa: E402
from blkscale.guest import lockstep, symbols  # noqa: E402
from blkscale.measure import manycore, results  # noqa: E402
from blkscale.measure.manycore import KernelCell, Outcome  # noqa: E402
from blkscale.report import manycore_table  # noqa: E402
from helpers import program  # noqa: E402

WARM_UP = """\
cell ticks=4000000 misses=1 atomics=1 skews=0 batches=25 quiet=9 wall=2.50
end
"""
LAP = """\
cell ticks=2000000 misses=300 atomics=50 skews=1 batches=25 quiet=9000 \
thaws=0 holds=2 wall=1.25 rescued=3 kblockd=10
site ffffffff81000010 200 1000
site ffffffff81000024 100 500
site 0 0 700
end
"""
LOG = WARM_UP + LAP
JOB = """\
begin 0
done 0 warm-up 2000000,100,0,0,0
begin 1
"""
MAP = """\
ffffffff81000000 T one
ffffffff81000020 t two.isra.0
ffffffff81000028 d data
ffffffff81000040 T three
"""
MODULE = "ffffffffc0000000 t td_thread [tickdisk]\n"


def symbol_table():
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("map", "modules")]
        files[0].write_text(MAP)
        files[1].write_text(MODULE)
        return symbols.Symbols(*files)


class Plugin(unittest.TestCase):
    def test_a_stretch_is_read(self):
        (_, stretch), hang = lockstep.parse(LOG)
        self.assertEqual(stretch.counts["ticks"], 2000000)
        self.assertEqual(stretch.counts["wall"], 1.25)
        self.assertEqual(len(stretch.sites), 3)
        self.assertIsNone(hang)

    def test_a_cut_off_stretch_is_left_out(self):
        self.assertEqual(lockstep.parse(LAP[:-5]), ([], None))

    def test_a_hang_is_read(self):
        _, hang = lockstep.parse(
            LOG + "hung after=60 batches=7 at=ffffffff81000010,0\n")
        self.assertEqual(hang.at, [0xffffffff81000010, 0])
        self.assertIn("1 in one", manycore.hang_text(hang, symbol_table()))

    def test_events_name_the_addresses(self):
        table = types.SimpleNamespace(address=lambda name: 0xff)
        self.assertEqual(lockstep.events(table)[1], "event=kblockd@ff")
        table.address = lambda name: None
        self.assertEqual(lockstep.events(table), [])


class Attribution(unittest.TestCase):
    def test_functions(self):
        table = symbol_table()
        self.assertEqual(table.function(0xffffffff81000000), "one")
        self.assertEqual(table.function(0xffffffff8100002a), "two.isra.0")
        self.assertEqual(table.function(0xffffffffc0000010),
                         "td_thread [tickdisk]")
        self.assertEqual(table.function(0x401000), "[user]")
        self.assertEqual(table.address("three"), 0xffffffff81000040)
        self.assertEqual(table.extent("two"),
                         (0xffffffff81000020, 0xffffffff81000040))

    def test_sums_by_function(self):
        (stretch,), _ = lockstep.parse(LAP)
        found = symbols.by_function(stretch.sites, symbol_table())
        self.assertEqual(found, {"one": [200, 1000], "two.isra.0": [100, 500],
                                 "[user]": [0, 700]})
        self.assertEqual(next(iter(found)), "one")


class Work(unittest.TestCase):
    def test_every_workload_has_a_device_and_some_work(self):
        for workload in workloads.WORKLOADS.values():
            for cpus in (1, 4, 8, 16, 32):
                self.assertNotIn("{", workloads.device(workload, cpus))
                self.assertRegex(workloads.load_arguments(workload, cpus),
                                 r"^threads=[1-9].* ticks=[1-9]\d{6}$")

    def test_the_work_is_the_same_for_kernels_and_schedulers(self):
        for name in workloads.WORKLOADS:
            plans = {manycore.plan_text([KernelCell(name, sched, 8, kernel)], 1)
                     .replace(f"|{sched}|", "||")
                     for sched in workloads.SCHEDS
                     for kernel in ("base", "patched", "/a/tree")}
            self.assertEqual(len(plans), 1)

    def test_cells_of_a_boot(self):
        cells = [("disk-seq4", "bfq", 4), ("scsi", "bfq", 4),
                 ("few-cpus", "none", 4), ("flash8", "bfq", 4)]
        plan = program("tools/manycore/run").boots(cells, ["base", "patched"], 1)
        self.assertEqual(
            [(title, [c.workload for c in mine]) for title, _, mine in plan],
            [(f"{kernel} kernel, 4 vCPUs{machine}", names)
             for machine, names in [(", tick disk", ["disk-seq4", "flash8"]),
                                    ("", ["scsi"]),
                                    (", hot-plug", ["few-cpus"])]
             for kernel in ("base", "patched")])

    def test_machines(self):
        slow = manycore.SLOW_CLOCK
        host = (f"{workloads.HOST_TAGS_APPEND.format(cpus=4)} {slow}")
        for name, cpus, words in [("scaletest", 4, slow),
                                  ("flash8", 5, "isolcpus=4"),
                                  ("few-cpus", "4,maxcpus=128", slow),
                                  ("host16-32", 4, host)]:
            self.assertEqual(
                manycore.machine([KernelCell(name, "none", 4, "base")]),
                {"cpus": cpus, "append": f"{lockstep.APPEND} {words}"})

    def test_the_runs_behind_a_median_are_kept(self):
        boots = [[{"ios_per_mtick": n} for n in runs]
                 for runs in ((100, 120), (90, 110, 400))]
        got = manycore.combine(
            [manycore.outcome_of(runs, {}) for runs in boots])
        self.assertEqual((got.values["ios_per_mtick"], got.runs, got.boots),
                         (110, boots[0] + boots[1], [2, 3]))
        failed = Outcome(trouble="hung")
        self.assertIs(manycore.combine(
            [manycore.outcome_of(boots[0], {}), failed]), failed)

    def test_spread(self):
        self.assertEqual(results.spread([100]), 0)
        self.assertAlmostEqual(results.spread([90, 110]), 0.2)
        self.assertAlmostEqual(results.spread([95, 100, 105]),
                               2 * 0.05 / 3 ** 0.5)
        self.assertEqual([results.wide({"spread": share})
                          for share in (0.05, 0.061, None)], ["", " ±6%", ""])

    def test_the_short_table_is_part_of_the_full_one(self):
        run = program("tools/manycore/run")
        short, full = ({cell for names, scheds, counts in blocks
                        for cell in itertools.product(names, scheds, counts)}
                       for blocks in (run.QUICK, run.FULL))
        self.assertEqual(short - full, set())

    def test_a_wrong_scheduler_is_named(self):
        done = subprocess.run(
            [paths.ROOT / "tools/manycore/run", "--scheds",
             "bfq,bfk:low_latency=0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no scheduler 'bfk:low_latency=0'",
                      done.stderr)

    def test_groups_name_workloads(self):
        for names in workloads.GROUPS.values():
            self.assertLessEqual(set(names), set(workloads.WORKLOADS))

    def test_plan(self):
        line = manycore.plan_text([KernelCell("flash8", "none", 4, "base")], 1)
        number, device, sched, weights, options, load = \
            line.strip().split("|")
        self.assertEqual((number, sched, weights, options),
                         ("0", "none", "", ""))
        self.assertIn("depth=8", device)
        self.assertIn("cpu=4", device)
        self.assertIn("threads=4 batch=4", load)


    def test_options_of_a_plan(self):
        for name, wanted in [("raised", "raised"), ("scaletest", ""),
                             ("host16-32", "nr_requests=32")]:
            line = manycore.plan_text([KernelCell(name, "bfq", 4, "base")], 1)
            self.assertEqual(line.split("|")[4], wanted)

    def test_raised_is_scaletest_with_raised_processes(self):
        raised, plain = (manycore.plan_text([KernelCell(name, "bfq", 4, "base")], 1)
                         for name in ("raised", "scaletest"))
        self.assertEqual(raised, plain.replace("|||", "||raised|"))


class Load(unittest.TestCase):
    """The program, as far as it runs without the plugin."""

    def setUp(self):
        if not shutil.which("cc"):
            self.skipTest("no C compiler")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program, self.file = self.folder / "load", self.folder / "file"
        subprocess.run(["cc", "-pthread", "-o", self.program,
                        paths.ROOT / "tools/manycore/load.c"], check=True)
        self.file.write_bytes(bytes(4096))

    def run_load(self, *words):
        return subprocess.run([self.program, f"clock={self.file}", *words],
                              capture_output=True, text=True, timeout=20)

    def test_each_disk_has_its_counters(self):
        stat = f"stat={self.file}"
        for words in ([self.file], [self.file, self.file, stat], [stat]):
            done = self.run_load(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: load", done.stderr)

    def test_a_disk_that_is_too_small_is_named(self):
        (self.folder / "none").touch()
        done = self.run_load(self.file, self.folder / "none",
                             *2 * [f"stat={self.file}"])
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"load: {self.folder}/none: ", done.stderr)

    def test_a_wrong_word_is_named(self):
        done = self.run_load("batches=4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("load: cannot use `batches=4`", done.stderr)

    def test_a_process_that_fails_ends_the_others(self):
        # The first process waits for a reader of its cgroup's file.
        os.mkfifo(self.folder / "cgroup.procs")
        done = self.run_load("threads=2", f"stat={self.file}",
                             f"group={self.folder}", "group=/nowhere",
                             self.file)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "load: /nowhere/cgroup.procs: "
                         "No such file or directory\n")


class Settling(unittest.TestCase):
    cells = [KernelCell("scaletest", s, 4, "base") for s in ("none", "bfq", "kyber")]

    def settle(self, log=LOG, job=JOB, trouble=None, status=0):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            (out / "plugin.log").write_text(log)
            (out / "job.log").write_text(job)
            result = types.SimpleNamespace(
                out=out, trouble=trouble, status=status,
                console=out / "console.log", log=out / "job.log")
            return manycore.settle(self.cells, result, symbol_table())

    def test_figures(self):
        values = self.settle()[self.cells[0]].values
        self.assertEqual(values["ios_per_mtick"], 50)
        self.assertEqual(values["misses_per_io"], 3)
        self.assertEqual(values["rescued"], 3)

    def test_the_share_of_the_first_group(self):
        job = JOB.replace("2000000,100,0,0,0", "2000000,100,0,0,0,25")
        self.assertNotIn("share", self.settle(job=job)[self.cells[0]].values)
        with unittest.mock.patch.object(
                self, "cells", [KernelCell("two-groups", "bfq", 4, "base")]):
            values = self.settle(job=job.partition("begin 1")[0])[
                self.cells[0]].values
        self.assertEqual(values["share"], .25)

    def test_a_warm_up_is_no_run(self):
        laps = "".join(LAP.replace("ticks=2000000", f"ticks={n}") for n in
                       (9, 1000000, 2000000, 7, 8, 2000000))
        found = self.settle(log=laps, job="""\
begin 0
done 0 warm-up 1000000,100,0,0,0 2000000,400,0,0,0 
begin 1
done 1 warm-up warm-up 2000000,100,15,5,90 
""")
        self.assertEqual([r["ios_per_mtick"] for r in
                          found[self.cells[0]].runs], [100, 200])
        self.assertEqual(found[self.cells[0]].values["ios_per_mtick"], 150)
        self.assertGreater(found[self.cells[0]].values["spread"], 0.6)
        self.assertEqual(found[self.cells[0]].profile["one"], [400, 2000])
        self.assertEqual(found[self.cells[1]].values["ios_per_mtick"], 50)

    def test_a_hang_fails_its_cell_and_leaves_the_rest(self):
        found = self.settle(log=LOG + "hung after=60 batches=7 at=0\n",
                            trouble="guest ended without a result")
        self.assertIsNone(found[self.cells[0]].trouble)
        self.assertIn("no I/O ended for 60s", found[self.cells[1]].trouble)
        self.assertNotIn(self.cells[2], found)

    def test_a_guest_that_died_fails_its_cell(self):
        found = self.settle(trouble="Kernel panic")
        self.assertIn("Kernel panic", found[self.cells[1]].trouble)

    def test_a_guest_that_died_before_any_cell(self):
        found = self.settle(log="", job="", trouble="no result")
        self.assertIn("no result", found[self.cells[0]].trouble)

    def test_a_failed_cell(self):
        found = self.settle(job=JOB + "failed 1 load: an I/O: EIO\n")
        self.assertIn("EIO", found[self.cells[1]].trouble)

    def test_a_warning_after_a_good_cell_fails_it(self):
        found = self.settle(job=JOB[:JOB.index("begin 1")], trouble="WARNING")
        self.assertEqual(found[self.cells[0]].trouble, "WARNING")

    def test_merging(self):
        counted = {"ticks": 9, "ios": 40, "writes": 10, "merged": 30, "sectors": 320}
        self.assertEqual(manycore.merging(counted),
                         {"merged": 0.75, "kib": 16})
        self.assertEqual(manycore.merging({**counted, "writes": 0}), {})


class Table(unittest.TestCase):
    def outcome(self):
        values = {"ios_per_mtick": 100.0, "misses_per_io": 80.0}
        return {KernelCell("scaletest", "bfq", 8, "base"): Outcome(values),
                KernelCell("scaletest", "bfq", 8, "patched"):
                    Outcome({**values, "ios_per_mtick": 170.0}),
                KernelCell("scaletest", "none", 8, "base"): Outcome(values),
                KernelCell("scaletest", "none", 8, "patched"):
                    Outcome(trouble="hung")}

    def test_base_beside_patched(self):
        header, table = manycore_table.rows(self.outcome(), ["base", "patched"])
        self.assertEqual(table[0][:6],
                         ["scaletest", "8", "bfq", "100.0", "170.0", "1.70"])
        self.assertEqual(table[1][3:6], ["100.0", "FAILED", ""])
        self.assertEqual(len(header), len(table[0]))

    def test_a_wide_spread_is_shown(self):
        outcome = self.outcome()
        outcome[KernelCell("scaletest", "bfq", 8, "base")].values["spread"] = .07
        _, table = manycore_table.rows(outcome, ["base", "patched"])
        self.assertEqual(table[0][3:6], ["100.0 ±7%", "170.0", "1.70"])

    def test_one_kernel_has_no_ratio(self):
        header, _ = manycore_table.rows(self.outcome(), ["base"])
        self.assertNotIn("ratio", header)

    def test_layout_lines_up(self):
        lines = manycore_table.text(
            *manycore_table.rows(self.outcome(), ["base", "patched"])).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("base", lines[0])
        self.assertIn("I/Os per Mtick", lines[1])


if __name__ == "__main__":
    unittest.main()
