# SPDX-License-Identifier: GPL-2.0
"""The many-core measurement's pure parts: plans, logs, attribution, table."""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from blkscale import lockstep, manycore, paths, symbols, workloads  # noqa: E402
from blkscale.manycore import Cell, Outcome  # noqa: E402

LOG = """\
cell ticks=2000000 misses=300 atomics=50 skews=1 batches=25 quiet=9000 \
thaws=0 holds=2 wall=1.25 rescued=3 kblockd=10
site ffffffff81000010 200 1000
site ffffffff81000024 100 500
site 0 0 700
end
"""
JOB = """\
begin 0
done 0 ios=100 before=0,0,0,0,0,0,0 after=0,0,0,0,0,0,0
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
        (stretch,), hang = lockstep.parse(LOG)
        self.assertEqual(stretch.counts["ticks"], 2000000)
        self.assertEqual(stretch.counts["wall"], 1.25)
        self.assertEqual(len(stretch.sites), 3)
        self.assertIsNone(hang)

    def test_a_cut_off_stretch_is_left_out(self):
        self.assertEqual(lockstep.parse(LOG[:-5]), ([], None))

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
        (stretch,), _ = lockstep.parse(LOG)
        found = symbols.by_function(stretch.sites, symbol_table())
        self.assertEqual(found, {"one": [200, 1000], "two.isra.0": [100, 500],
                                 "[user]": [0, 700]})
        self.assertEqual(next(iter(found)), "one")


class Work(unittest.TestCase):
    def test_every_workload_has_a_device_and_some_work(self):
        for workload in workloads.WORKLOADS.values():
            for sched in workloads.SCHEDS:
                for cpus in (1, 4, 8, 16, 32):
                    self.assertNotIn("{", workloads.device(workload, cpus))
                    self.assertGreaterEqual(
                        workloads.batches(workload, sched, cpus), 3)

    def test_none_gets_ten_times_the_work_on_many_cpus(self):
        scaletest = workloads.WORKLOADS["scaletest"]
        self.assertGreater(
            workloads.batches(scaletest, "none", 8),
            9 * workloads.batches(scaletest, "mq-deadline", 8))

    def test_what_waits_for_one_lock_is_measured_shorter_not_disks(self):
        for name, kernel, sched, shorter in [
                ("scaletest", "base", "bfq", True),
                ("scaletest", "patched", "kyber", True),
                ("scaletest", "patched", "bfq", False),
                ("scaletest", "base", "none", False),
                ("disk-seq4", "base", "bfq", False)]:
            self.assertEqual(
                workloads.contended(workloads.WORKLOADS[name], sched, kernel),
                shorter, (name, kernel, sched))

    def test_disks_of_the_short_table_are_measured_again_in_their_boot(self):
        cells = [("disk-seq4", "bfq", 4), ("flash8", "bfq", 4)]
        plan = self.run_module().boots(cells, ["base", "patched"], 1, 3)
        for (_, _, mine), kernel in zip(plan, ("base", "patched")):
            self.assertEqual([(c.workload, c.kernel, c.turn) for c in mine],
                             [("disk-seq4", kernel, 0), ("flash8", kernel, 0),
                              ("disk-seq4", kernel, 1),
                              ("disk-seq4", kernel, 2)])

    def test_the_runs_behind_a_median_are_kept(self):
        runs = [{"merged": share} for share in (0.1, 0.3, 0.2)]
        got = self.run_module().combine([Outcome(values) for values in runs])
        self.assertEqual((got.values, got.runs), ({"merged": 0.2}, runs))

    @staticmethod
    def run_module():
        path = str(paths.ROOT / "tools/manycore/run")
        loader = importlib.machinery.SourceFileLoader("manycore_run", path)
        module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader("manycore_run", loader))
        loader.exec_module(module)
        return module

    def test_a_scheduler_may_have_settings(self):
        scaletest = workloads.WORKLOADS["scaletest"]
        of = [workloads.load_arguments(scaletest, sched, 4, kernel="patched")
              for sched in ("bfq", "bfq:low_latency=0")]
        self.assertEqual(*of)

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
        line = manycore.plan_text([Cell("flash8", "none", 4, "base")], 1)
        number, device, sched, load = line.strip().split("|")
        self.assertEqual((number, sched), ("0", "none"))
        self.assertIn("depth=8", device)
        self.assertIn("cpu=4", device)
        self.assertIn("threads=4 batch=4", load)


class Settling(unittest.TestCase):
    cells = [Cell("scaletest", s, 4, "base") for s in ("none", "bfq", "kyber")]

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
        before = "9,0,9,1,5,5,100,1"
        self.assertEqual(manycore.merging(before, "9,0,9,1,15,35,420,2"),
                         {"merged": 0.75, "kib": 16})
        self.assertEqual(manycore.merging(before, before), {})


class Table(unittest.TestCase):
    def outcome(self):
        values = {"ios_per_mtick": 100.0, "misses_per_io": 80.0}
        return {Cell("scaletest", "bfq", 8, "base"): Outcome(values),
                Cell("scaletest", "bfq", 8, "patched"):
                    Outcome({**values, "ios_per_mtick": 170.0}),
                Cell("scaletest", "none", 8, "base"): Outcome(values),
                Cell("scaletest", "none", 8, "patched"):
                    Outcome(trouble="hung")}

    def test_base_beside_patched(self):
        header, table = manycore.rows(self.outcome(), ["base", "patched"])
        self.assertEqual(table[0][:6],
                         ["scaletest", "8", "bfq", "100.0", "170.0", "1.70"])
        self.assertEqual(table[1][3:6], ["100.0", "FAILED", ""])
        self.assertEqual(len(header), len(table[0]))

    def test_one_kernel_has_no_ratio(self):
        header, _ = manycore.rows(self.outcome(), ["base"])
        self.assertNotIn("ratio", header)

    def test_layout_lines_up(self):
        lines = manycore.layout(
            *manycore.rows(self.outcome(), ["base", "patched"])).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertIn("base", lines[0])
        self.assertIn("I/Os per Mtick", lines[1])


if __name__ == "__main__":
    unittest.main()
