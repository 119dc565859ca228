# SPDX-License-Identifier: GPL-2.0
"""Report, compare, picture and README, on made-up figures."""
import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOOLS / "lib"))
from blkscale.measure import results  # noqa: E402
from blkscale.report import readme, sections, svg, tables, verdicts  # noqa: E402


def rec(sched, kernel, cpus, values, what="manycore", workload="scaletest",
        device="null_blk 1x128", **more):
    return {"what": what, "workload": workload, "device": device,
            "sched": sched, "kernel": kernel, "release": "7.3.4",
            "base": "7.3.4-1", "series": "0123abcd", "cpus": cpus,
            "date": "2026-01-02T03:04", "command": "make scaletest",
            "values": values, **more}


def rate(sched, kernel, cpus, value, misses=10):
    return rec(sched, kernel, cpus,
               {"ios_per_mtick": value, "misses_per_io": misses})


SCALING = [rate("none", "base", 1, 321, 0), rate("none", "base", 16, 2800, 7),
           rate("mq-deadline", "base", 1, 226, 0),
           rate("mq-deadline", "base", 16, 84.1, 114),
           rate("mq-deadline", "patched", 1, 232, 0),
           rate("mq-deadline", "patched", 16, 168.2, 76)]


def slow(kernel, iops, merged, kib, runs=None):
    values = {"iops": iops, "merged": merged, "kib": kib}
    runs = [{**values, "iops": i} for i in runs or [iops] * 3]
    return rec("bfq", kernel, 2, values, "slowdisk", "a", "null_blk 1x32", runs=runs)


class Verdicts(unittest.TestCase):
    base = slow("base", 1000, .9, 40)

    def verdict(self, base, patched):
        (table,) = sections.slowdisk([base, patched])
        return table.rows[0][-1]

    def worse(self, words):
        return f"**worse, unconfirmed (1 in 20): {words}**"

    def test_equal(self):
        self.assertEqual(self.verdict(self.base, slow("patched", 1000, .9, 40)), "same")

    def test_lost_merges(self):
        self.assertEqual(self.verdict(self.base, slow("patched", 1000, .88, 40)),
                         self.worse("merged x0.978"))
        self.assertEqual(self.verdict(self.base, slow("patched", 1000, .883, 40)),
                         "same")

    def test_smaller_requests(self):
        self.assertEqual(self.verdict(self.base, slow("patched", 1000, .9, 39)),
                         self.worse("KiB x0.975"))

    def test_slower_only_beyond_noise(self):
        base = slow("base", 1000, .9, 40, [900, 1000, 1100])
        self.assertEqual(
            self.verdict(base, slow("patched", 890, .9, 40, [830, 890, 895])), "same")
        self.assertEqual(
            self.verdict(base, slow("patched", 350, .9, 40, [350, 350, 360])),
            self.worse("rate x0.35"))

    def test_no_merges_at_all(self):
        self.assertEqual(self.verdict(slow("base", 9, .0, 4), slow("patched", 9, .0, 4)),
                         "same")

    def test_one_side_only(self):
        (table,) = sections.slowdisk([self.base])
        self.assertEqual(table.rows[0][-1], "")

    def test_too_few_boots(self):
        self.assertEqual(self.verdict(self.base, {**slow("patched", 1, .1, 4), "runs": []}),
                         "3+1 boots")

    def test_failures_name_the_cell(self):
        lines = verdicts.failures([self.base, slow("patched", 1, .1, 4)])
        self.assertEqual(len(lines), 3)
        for line in lines:
            for word in ("worse", "slow disks", "bfq", "null_blk 1x32"):
                self.assertIn(word, line)


def plugged(kernel, workload, values, sched="none", device="raid1 of 2",
            **more):
    return rec(sched, kernel, 2, values, "plugtest", workload, device, **more)


class Plugs(unittest.TestCase):
    def test_writes_at_a_member(self):
        base, patched = ({"iops": 100, "merged": share, "kib": kib}
                         for share, kib in ((.469, 7.53), (.938, 64)))
        (table,) = sections.plug([
            plugged("base", "2 streams", base, clock="counted"),
            plugged("patched", "2 streams", patched, clock="counted")])
        self.assertEqual(table.rows, [["raid1 of 2", "2 streams", "2", "none",
                                       "100 -> 100", "x1.00",
                                       "0.469 -> 0.938", "7.53 -> 64.0", "1+1 boots"]])

    def test_time_is_judged_only_where_it_is_steady(self):
        values = {"iops": 100, "merged": .9, "kib": 40}
        for lost, clock, word in (
                ({"merged": .5}, "host", "merged x0.56"),
                ({"iops": 50}, "host", "same"),
                ({"iops": 50}, "counted", "rate x0.50")):
            (table,) = sections.plug([
                plugged("base", "a", values, clock=clock, runs=[values] * 3),
                plugged("patched", "a", {**values, **lost}, clock=clock,
                        runs=[{**values, **lost}] * 3)])
            self.assertIn(word, table.rows[0][-1])
            self.assertEqual(table.rows[0][4] != "", clock == "counted")

    def test_doorbells_by_batch(self):
        found = [plugged(kernel, f"reads, {batch} a submission",
                         {"iops": 9, "doorbells": rung}, "bfq", "NVMe")
                 for batch in (16, 8, 1)
                 for kernel, rung in (("base", 1), ("patched", 1 / batch))]
        (table,) = sections.plug(found)
        self.assertEqual(table.header[-1], "bfq")
        self.assertEqual([row[-1] for row in table.rows],
                         ["1.000 -> 1.000", "1.000 -> 0.125", "1.000 -> 0.062"])

    def test_a_scheduler_that_was_not_measured(self):
        (table,) = sections.plug([
            plugged("base", "1", {"iops": 9, "doorbells": 1}, "bfq"),
            plugged("base", "2", {"iops": 9, "doorbells": 1}, "none")])
        self.assertEqual([row[-2:] for row in table.rows],
                         [["", "1.000"], ["1.000", ""]])

    def test_nothing_measured(self):
        self.assertEqual(sections.plug(SCALING), [])


class Tables(unittest.TestCase):
    def test_scaling_table(self):
        (table,) = sections.manycore(SCALING)
        self.assertEqual(table.header, ["load", "device", "vCPUs", "none",
                                        "mq-deadline"])
        self.assertEqual(table.rows[1],
                         ["scaletest", "null_blk 1x128", "16", "2800 (7)", "84.1 (114) -> 168 (76) **x2.00**"])

    def test_a_wide_spread_is_printed_and_explained(self):
        values = {"ios_per_mtick": 100, "misses_per_io": 9}
        records = [rec("bfq", "base", 8, {**values, "spread": .049}),
                   rec("bfq", "patched", 8, {**values, "spread": .071})]
        (table,) = sections.manycore(records)
        self.assertEqual(table.rows[0][-1],
                         "100 (9) -> 100 ±7% (9) **x1.00**")
        self.assertIn("above 5%", table.notes[-2])
        self.assertNotIn("±", "".join(sections.manycore(records[:1])[0].notes))
        disk = [rec("bfq", r["kernel"], 4, {**r["values"], "merged": .5,
                                            "kib": 8}, device="hard disk 32")
                for r in records]
        self.assertEqual(sections.slowdisk(disk)[0].rows[0][4],
                         "100 -> 100 ±7%")

    def test_origin_is_complete(self):
        line = sections.manycore(SCALING)[0].notes[-1]
        for word in ("7.3.4", "base 7.3.4-1", "0123abcd", "1, 16 vCPUs",
                     "2026-01-02T03:04", "`make scaletest`"):
            self.assertIn(word, line)

    def test_rescued_work_is_shown(self):
        one = rec("bfq", "base", 4, {"rescued": 3})
        found = sections.rescues([one])
        self.assertIn(f"{one['workload']} at 4, bfq, base: 3", found[0])

    def test_hard_disk_is_judged_not_scaled(self):
        records = [rec("bfq", kernel, 4, {"ios_per_mtick": 50, "merged": .5,
                                          "kib": 8}, device="hard disk d32")
                   for kernel in ("base", "patched")]
        self.assertEqual(sections.manycore(records), [])
        (table,) = sections.slowdisk(records)
        self.assertEqual(table.rows[0][-1], "1+1 boots")

    def test_a_loss_on_many_cpus_is_marked_in_its_cell(self):
        runs = [{"ios_per_mtick": value} for value in (100, 101, 102)]
        less = [{"ios_per_mtick": value} for value in (90, 91, 92)]
        found = [rec("none", "base", 8, runs[1], runs=runs, boots=[1, 1, 1]),
                 rec("none", "patched", 8, less[1], runs=less, boots=[1, 1, 1])]
        (table,) = sections.manycore(found)
        self.assertEqual(table.rows[0][-1],
                         "101 -> 91.0 **x0.90** **worse, unconfirmed (1 in 20)**")
        self.assertIn("up to 0.1 worse", table.notes[1])

    def test_markdown_rows_have_equal_columns(self):
        for table in sections.tables(SCALING):
            lines = [line for line in table.markdown().splitlines()
                     if line.startswith("|")]
            self.assertEqual(len({line.count("|") for line in lines}), 1)

    def test_text_has_no_markup(self):
        self.assertNotIn("**", sections.manycore(SCALING)[0].text())

    def test_numbers(self):
        shown = [tables.number(v) for v in (None, .9131, 45.84, 2180.4, 40600)]
        self.assertEqual(shown, ["-", "0.91", "45.8", "2180", "40.6K"])

    def test_ratio_of_nothing(self):
        self.assertIsNone(tables.ratio(5, 0))
        self.assertIsNone(tables.ratio(None, 5))


class Select(unittest.TestCase):
    def test_newest_of_each_cell(self):
        old, new = rate("bfq", "base", 1, 1), rate("bfq", "base", 1, 2)
        self.assertEqual(results.select([[old], [new]]), [new])

    def test_other_series_and_base_are_left_out(self):
        stale = {**rate("bfq", "patched", 1, 1), "series": "old"}
        foreign = {**rate("bfq", "base", 4, 1), "base": "7.3.1-1"}
        fresh = rate("none", "patched", 1, 2)
        self.assertEqual(results.select([[stale, foreign], [fresh]]), [fresh])

    def test_a_series_that_is_taken_for_the_last_one_says_so(self):
        old = {**rate("bfq", "patched", 1, 1), "series": "old"}
        fresh = rate("none", "patched", 1, 2)
        found = results.select([[old], [fresh]], {"old": "a comment"})
        self.assertEqual(len(found), 2)
        (table,) = sections.manycore(found)
        self.assertIn("series 0123abcd; series old (taken for 0123abcd, which differs: "
                      "a comment); 1 vCPUs", table.notes[-1])
        # what was said of an id once is not said any more when it is the last again
        self.assertEqual(results.select([found[:1]], {"old": "b"}), [old])

    def test_a_series_that_differs_for_one_scheduler(self):
        old = [{**rate(sched, "patched", 1, 1), "series": "old"}
               for sched in ("bfq:low_latency=0", "kyber")]
        fresh = rate("none", "patched", 1, 2)
        bfq, kyber, _ = results.select([old, [fresh]], {"old": "bfq: a comment"})
        self.assertEqual(bfq["taken"], "taken for 0123abcd, which differs: a comment")
        self.assertEqual(kyber, old[1])

    def test_older_files_count_as_older_than_all(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, fresh = Path(folder, "kept.json"), Path(folder, "fresh-1.json")
            fresh.write_text(json.dumps([rate("bfq", "base", 1, 2)]))
            kept.write_text(json.dumps([rate("bfq", "base", 1, 1),
                                        rate("bfq", "base", 4, 1)]))
            with mock.patch.object(results, "files", lambda: [fresh]):
                found = results.newest([kept])
        self.assertEqual(found, [rate("bfq", "base", 1, 2), rate("bfq", "base", 4, 1)])

    def test_base_of_the_same_run_is_kept(self):
        both = [rate("bfq", "base", 1, 1), rate("bfq", "patched", 1, 2)]
        chosen = results.select([both, [rate("bfq", "base", 1, 9)]])
        self.assertEqual(chosen, both)

    def test_base_that_was_measured_alone(self):
        patched, base = rate("bfq", "patched", 1, 2), rate("bfq", "base", 1, 9)
        self.assertEqual(results.select([[patched], [base]]), [patched, base])
        both = [rate("bfq", "base", 1, 1), rate("bfq", "patched", 1, 1)]
        self.assertEqual(results.select([both, [patched], [base]]), [base, patched])

    def test_medians(self):
        self.assertEqual(
            results.medians([{"a": 1, "n": "x"}, {"a": 5, "n": "x"},
                             {"a": 3, "n": None}]), {"a": 3, "n": "x"})


class Picture(unittest.TestCase):
    def test_well_formed_with_a_line_for_each(self):
        root = ET.fromstring(svg.scaling(SCALING))
        lines = root.findall("{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 3)

    def test_base_is_dashed_and_log_scaled(self):
        chart = svg.Chart({("none", "base"): [(1, 10), (2, 100), (4, 1000)]})
        steps = [chart.y(v) for v in (10, 100, 1000)]
        self.assertAlmostEqual(steps[0] - steps[1], steps[1] - steps[2])
        self.assertEqual(svg.scaling(SCALING).count(' base"'), 2)

    def test_labels_keep_their_distance(self):
        placed = svg._spread([(100, "a"), (101, "b"), (399, "c"), (400, "d")],
                             60, 390)
        heights = [y for y, _ in placed]
        self.assertTrue(all(b - a >= svg.LABEL_GAP for a, b in
                            zip(heights, heights[1:])))
        self.assertLessEqual(heights[-1], 390)

    def test_hostile_words_are_escaped(self):
        text = svg.draw({("a<b&c", "base"): [(1, 1), (2, 2)]}, "<t>", "&", "<")
        ET.fromstring(text)

    def test_one_cpu_count_is_no_picture(self):
        self.assertIsNone(svg.scaling(SCALING[:1]))


class Files(unittest.TestCase):
    def ends(self, function, *args):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), \
                self.assertRaises(SystemExit) as end:
            function(*args)
        self.assertNotEqual(end.exception.code, 0)
        text = err.getvalue()
        self.assertEqual(text.count("\n"), 1)
        self.assertTrue(text.startswith("error: "))
        return text

    def test_bad_result_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for text in ("", "{}", '[{"what": 1}]', "not json"):
                path = Path(folder, "a.json")
                path.write_text(text)
                self.ends(results.load, path)
            self.ends(results.load, Path(folder, "missing"))

    def test_add_and_load(self):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(results.paths, "RESULTS", Path(folder)):
            path = results.add(SCALING, "manycore")
            self.assertEqual(results.load(path), SCALING)
            self.assertEqual(results.files(), [path])


def study(sched, kernel, depth, iops, clock="counted", **more):
    return {**rec(sched, kernel, 4, {"iops": iops, "usr": 1.5, "sys": 20.25,
                                     "lat_min": 9.5, "lat_p99": 2 * depth},
                  "nvmestudy", f"4 x {depth}", "nvme-loop"),
            "clock": clock, **more}


class NvmeStudy(unittest.TestCase):
    RECORDS = [study("none", "base", 1, 1000), study("bfq", "base", 16, 500),
               study("bfq", "base", 2, 300), study("bfq", "patched", 16, 1000),
               study("bfq", "patched", 2, 600)]

    def test_rows_by_depth_then_scheduler(self):
        (table,) = sections.nvme_study(self.RECORDS)
        self.assertEqual([row[:4] for row in table.rows],
                         [["nvme-loop", "4 x 1", "none", "1000"],
                          ["nvme-loop", "4 x 2", "bfq", "300 -> 600"],
                          ["nvme-loop", "4 x 16", "bfq", "500 -> 1000"]])
        self.assertEqual([row[4] for row in table.rows],
                         ["", "x2.00", "x2.00"])
        self.assertEqual(table.rows[0][6], "20.2")

    def test_pictures(self):
        drawn = svg.pictures(self.RECORDS)
        self.assertEqual(list(drawn),
                         ["nvme-loop-study-iops.svg", "nvme-loop-study-p99.svg"])
        for text in drawn.values():
            self.assertIn("by counted instructions", text)
            self.assertIn("depth of a job", text)
            ET.fromstring(text)

    def test_in_the_readme(self):
        files = readme.render(readme.MARK + readme.WORSE, readme.CONTENTS + readme.TABLES,
                              self.RECORDS)
        for name in svg.pictures(self.RECORDS):
            self.assertIn(f"]({name})", files[readme.RESULTS])
            self.assertIn(readme.FOLDER / name, files)

    def test_spread_is_told_where_it_is_much(self):
        def row(*iops):
            runs = [{"iops": n, "lat_mean": 7} for n in iops]
            values = {"iops": sorted(iops)[1], "lat_mean": 7}
            (table,) = sections.nvme_study([
                study("bfq", "base", 2, 300) | {"values": values, "runs": runs}])
            return table.rows[0][-2]
        self.assertEqual(row(980, 1000, 1030), "")
        self.assertEqual(row(980, 1000, 1040), "IOPS 6 %")

    def test_what_the_wall_clock_says_is_a_table_of_its_own_and_not_in_the_readme(self):
        wall = [study("bfq", kernel, 4, 500, "host") for kernel in ("base", "patched")]
        counted, by_wall = sections.nvme_study(wall + self.RECORDS)
        self.assertNotIn("wall", counted.title)
        self.assertIn("by the wall clock", by_wall.title)
        self.assertEqual([row[1] for row in by_wall.rows], ["4 x 4"])
        with tempfile.TemporaryDirectory() as where, Readme.folder(None, where), \
                contextlib.redirect_stderr(io.StringIO()):
            readme.write(wall + self.RECORDS)
            self.assertNotIn("4 x 4", readme.README.read_text())
            self.assertEqual(len(json.loads(readme.FIGURES.read_text())),
                             len(self.RECORDS))

    def test_nothing_measured(self):
        self.assertEqual((sections.nvme_study([]), svg.pictures([])), ([], {}))


def part(number, name, rate, lines, **more):
    load = "scaletest, 16 vCPUs, bfq"
    return rec("", "patched" if number else "base", 16,
               {"number": number, "lines": lines, "sum": 10 * lines,
                load: rate, f"{load} spread": 0.01,
                "disk-seq64, 4 vCPUs, bfq": 50.04,
                "disk-seq64, 4 vCPUs, bfq KiB": 8.5, **more},
               "parts", name, "")


class Parts(unittest.TestCase):
    records = [part(2, "issue", 1900.5, 30), part(0, "base", 43, 0),
               part(1, "lock", 45, 7,
                    **{"scaletest, 16 vCPUs, bfq spread": 0.2})]

    def test_in_the_order_of_the_series(self):
        (table,) = sections.parts(self.records)
        self.assertEqual(table.header, [
            "part", "scaletest, 16 vCPUs, bfq", "disk-seq64, 4 vCPUs, bfq",
            "lines added", "in sum"])
        self.assertEqual(table.rows, [
            ["base", "43.0", "50.0 (8.5 KiB)", "0", "0"],
            ["lock", "45.0 ±20%", "50.0 (8.5 KiB)", "7", "70"],
            ["issue", "1900", "50.0 (8.5 KiB)", "30", "300"]])

    def test_a_loss_beside_base_is_marked(self):
        load = "scaletest, 16 vCPUs, bfq"
        found = [{**r, "runs": [{load: r["values"][load]}] * 3} for r in
                 (part(0, "base", 43, 0), part(1, "lock", 35, 7))]
        (table,) = sections.parts(found)
        self.assertEqual([row[1] for row in table.rows],
                         ["43.0", "35.0 **worse, unconfirmed (1 in 20)**"])

    def test_only_this_series(self):
        chosen = results.select([[{**self.records[0], "series": "old"}],
                                 self.records[1:]])
        self.assertEqual([r["workload"] for r in chosen], ["base", "lock"])

    def test_in_report_and_results(self):
        self.assertEqual(len(sections.tables(self.records)), 1)
        self.assertIn("What each part brings",
                      readme.everything(self.records))

    def test_nothing_measured(self):
        self.assertEqual(sections.parts(SCALING), [])
        self.assertEqual(sections.parts([part(0, "base", 43, 0)]), [])


class Readme(unittest.TestCase):
    def folder(self, where):
        where = Path(where)
        (where / "README.in").write_text(
            f"# T\n\n{readme.MARK}\n\n{readme.WORSE}\n\nend\n")
        (where / "RESULTS.in").write_text(
            f"# Measured\n\n{readme.CONTENTS}\n\n{readme.TABLES}\n")
        return mock.patch.multiple(
            readme, TEXT=where / "README.in", README=where / "README.md",
            RESULTS_TEXT=where / "RESULTS.in", RESULTS=where / "RESULTS.md", FIGURES=where / "measured.json",
            FOLDER=where)

    def test_written_then_checked(self):
        with tempfile.TemporaryDirectory() as where, self.folder(where), \
                contextlib.redirect_stderr(io.StringIO()):
            readme.write(SCALING)
            self.assertEqual(readme.check(), 0)
            text = readme.README.read_text()
            self.assertIn("| scaletest | 16 | 3 -> **6** |", text)
            self.assertIn("scaling.svg", text)
            told = readme.RESULTS.read_text()
            for title in re.findall(r"(?m)^## (.*)$", told):
                self.assertIn(f"(#{readme.anchor(title)})", told)
            self.assertEqual(readme.anchor("A table: I/Os (x), base -> patched"),
                             "a-table-ios-x-base---patched")
            self.assertEqual(len(readme.FIGURES.read_text().splitlines()),
                             len(SCALING) + 2)

    def test_a_figure_by_hand_is_found(self):
        with tempfile.TemporaryDirectory() as where, self.folder(where), \
                contextlib.redirect_stderr(io.StringIO()):
            readme.write(SCALING)
            text = readme.README.read_text().replace("**6**", "**60**")
            readme.README.write_text(text)
            with self.assertRaises(SystemExit):
                readme.check()

    def test_the_real_one(self):
        if not readme.FIGURES.exists():
            self.skipTest("nothing measured yet")
        self.assertEqual(readme.check(), 0)

    def test_figures_of_the_running_kernel_stay_out(self):
        with tempfile.TemporaryDirectory() as where, self.folder(where), \
                contextlib.redirect_stderr(io.StringIO()):
            readme.write([rec("bfq", "running", 8, {"iops": 5}, "fio")])
            self.assertEqual(json.loads(readme.FIGURES.read_text()), [])


if __name__ == "__main__":
    unittest.main()
