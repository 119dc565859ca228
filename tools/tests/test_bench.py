# SPDX-License-Identifier: GPL-2.0
"""The benchmark programs without a guest: parsing, safety, arguments."""
import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOOLS / "lib"), str(TOOLS / "tests")]
from blkscale.cases import nvme_study  # noqa: E402
from blkscale.disk import blockdev, fio, guard, lockstat  # noqa: E402
from blkscale.measure import runs  # noqa: E402
from helpers import program  # noqa: E402

RUN, SLOWDISK = TOOLS / "bench/run", TOOLS / "bench/slowdisk"
PLUGTEST, NVMESTUDY = TOOLS / "bench/plugtest", TOOLS / "bench/nvmestudy"
COMPARE, REPORT = TOOLS / "report/compare", TOOLS / "report/report"

LOCK_STAT = """\
lock_stat version 0.4
----------------------------------------------------------------------------
    class name    con-bounces    contentions   waittime-min   waittime-max \
waittime-total   waittime-avg    acq-bounces   acquisitions   holdtime-min
----------------------------------------------------------------------------

    &dd->lock:   10   20   0.1   9.0   500000.00   5.0   7   8   0.1   2   3   4
    ---------
    &dd->lock    12    [<ffffffff811502a7>] dd_insert_requests+0x57/0x280
............................................................................
    &q->queue_lock/1:  1  2  0.1  9.0  100000.00  5.0  7  8  0.1  2  3  4
    &mm->mmap_lock-R:  1  2  0.1  9.0  9000000.00  5.0  7  8  0.1  2  3  4
"""


def job(iops_read, iops_write, error=0):
    return {"error": error, "usr_cpu": 2.0, "sys_cpu": 8.0,
            "read": {"iops": iops_read}, "write": {"iops": iops_write}}


class Fio(unittest.TestCase):
    def test_sum_over_jobs(self):
        values = fio.parse(fio.entries("note: x\n" + json.dumps(
            {"jobs": [job(10, 0), job(0, 5)]})))
        self.assertEqual(values, {"iops": 15, "read_iops": 10,
                                  "write_iops": 5, "usr": 2.0, "sys": 8.0})

    def test_errors(self):
        for text in ("", "{}", '{"jobs": []}',
                     json.dumps({"jobs": [job(1, 1, error=5)]})):
            with self.assertRaises(ValueError):
                fio.parse(fio.entries(text))

    def test_latency(self):
        way = {"total_ios": 3, "lat_ns": {"min": 1000, "mean": 2500.04,
                                          "max": 9000, "stddev": 400},
               "clat_ns": {"percentile": {"99.000000": 8000}}}
        one = {"read": {"total_ios": 0}, "write": way}
        self.assertEqual(fio.latency(one),
                         {"lat_min": 1, "lat_mean": 2.5, "lat_max": 9,
                          "lat_stddev": .4, "lat_p99": 8})
        with self.assertRaises(ValueError):
            fio.latency({"read": way, "write": way})

    def test_job_files_stay_as_they_are(self):
        text = (fio.JOBS / "scaletest.fio").read_text()
        wrapped = fio.wrapper(text, {"filename": "/dev/x", "runtime": 3})
        self.assertTrue(wrapped.endswith(text))
        self.assertTrue(wrapped.startswith("[global]\nfilename=/dev/x\n"))

    def test_published_loads(self):
        for name, options in (
                ("scaletest", {"numjobs=32", "bs=512", "rw=randread",
                               "iodepth=4", "iodepth_batch_submit=4",
                               "iodepth_batch_complete=4", "fixedbufs=1",
                               "ioengine=io_uring"}),
                ("batchtest", {"numjobs=16", "bs=4k", "rw=randwrite",
                               "iodepth=32", "iodepth_batch_submit=8",
                               "iodepth_batch_complete=8",
                               "ioengine=io_uring"})):
            lines = (fio.JOBS / f"{name}.fio").read_text().splitlines()
            self.assertLessEqual(options, set(lines))


class Statistics(unittest.TestCase):
    before = "1 0 8 0 100 10 800 0 0 0 0 0 0 0 0 0 0"
    after = "9 0 72 0 200 310 4000 0 0 0 0 0 0 0 0 0 0"

    def test_merging(self):
        stats = [blockdev.parse_stat(t) for t in (self.before, self.after)]
        self.assertEqual(blockdev.merging(*stats, "write"),
                         {"merged": .75, "kib": 16.0})
        self.assertEqual(blockdev.merging(*stats, "read"),
                         {"merged": 0, "kib": 4.0})

    def test_nothing_happened(self):
        stat = blockdev.parse_stat(self.before)
        self.assertEqual(blockdev.merging(stat, stat, "write"),
                         {"merged": None, "kib": None})

    def test_lock_share(self):
        self.assertEqual(lockstat.share(LOCK_STAT, 4, 1),
                         {"lock": .15, "lock_name": "&dd->lock"})

    def test_lock_stat_of_a_quiet_system(self):
        self.assertEqual(lockstat.share("lock_stat version 0.4\n", 4, 1),
                         {"lock": 0, "lock_name": None})

    def test_boots_alternate(self):
        self.assertEqual(runs.order(["base", "patched"], 3),
                         ["base", "patched", "patched", "base",
                          "base", "patched"])

    def test_only_counted_time_runs_side_by_side(self):
        kernels = ["base", "patched"]
        self.assertEqual(runs.rounds(kernels, 2, "counted"), [kernels] * 2)
        self.assertEqual(runs.rounds(kernels, 1, "host"),
                         [["base"], ["patched"]])

    def test_a_failing_guest_ends_the_round(self):
        def work(kernel):
            if kernel == "patched":
                raise SystemExit(70)
            return 1
        with self.assertRaises(SystemExit) as end:
            runs.together(["base", "patched"], work)
        self.assertEqual(end.exception.code, 70)
        self.assertEqual(runs.together(["base"], work), [("base", 1)])

    def test_medians_and_runs(self):
        def boot(iops):
            return [{"workload": "a", "device": "d", "sched": "bfq",
                     "release": "7.3.4", "values": {"iops": iops}}]
        boots = [("base", boot(1)), ("patched", boot(8)), ("base", boot(5)),
                 ("base", boot(4))]
        base, patched = runs.merge(boots, "slowdisk", "x", 2)
        self.assertEqual(base["values"], {"iops": 4})
        self.assertEqual([r["iops"] for r in base["runs"]], [1, 5, 4])
        self.assertEqual(patched["values"], {"iops": 8})
        self.assertNotIn("runs", patched)


class Disk:
    """A made-up /sys and /proc with one disk, sdx."""

    def __init__(self, folder):
        self.sys, self.proc = Path(folder, "sys"), Path(folder, "proc")
        self.disk = self.sys / "class/block/sdx"
        self.write("queue/scheduler", "none [mq-deadline] bfq")
        for name, text in (("ro", "0"), ("dev", "8:16")):
            self.write(name, text)
        (self.disk / "holders").mkdir()
        (self.proc / "self").mkdir(parents=True)
        self.mounted("")
        self.swap("")

    def write(self, name, text):
        path = self.disk / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def mounted(self, number, source="/dev/root"):
        line = f"36 35 {number or '0:99'} / /mnt rw - ext4 {source} rw\n"
        (self.proc / "self/mountinfo").write_text(line)

    def swap(self, name):
        lines = ["Filename Type Size Used Priority"]
        lines += [f"{name} partition 1 0 -2"] if name else []
        (self.proc / "swaps").write_text("\n".join(lines) + "\n")

    def partition(self):
        self.write("sdx1/partition", "1")
        self.write("sdx1/dev", "8:17")

    def why(self, name="sdx"):
        return guard.why_not(name, self.sys, self.proc)


class Arrays(unittest.TestCase):
    """What is written for an array, in a made-up /sys."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sys = Path(folder.name)
        (self.sys / "module/md_mod/parameters").mkdir(parents=True)
        (self.sys / "module/md_mod/parameters/new_array").touch()
        for number, sectors in enumerate((2048, 4096)):
            disk = self.sys / f"block/d{number}"
            disk.mkdir(parents=True)
            (disk / "dev").write_text(f"8:{number}\n")
            (disk / "size").write_text(f"{sectors}\n")
            (self.sys / f"block/md_x/md/dev-d{number}").mkdir(parents=True)

    def make(self, *shape):
        with mock.patch.object(blockdev, "SYS", self.sys), \
                mock.patch.object(blockdev, "wait_for", str):
            return blockdev.md("x", *shape)

    def attributes(self):
        folder = self.sys / "block/md_x/md"
        return {str(path.relative_to(folder)): path.read_text().strip()
                for path in folder.rglob("*") if path.is_file()}

    def test_raid0(self):
        node = self.make("raid0", ["/dev/d0", "/dev/d1"], 64)
        self.assertEqual(node, "/dev/md_x")
        found = self.attributes()
        self.assertLessEqual({"level": "raid0", "raid_disks": "2",
                              "chunk_size": "65536", "dev-d1/slot": "1",
                              "array_state": "active"}.items(), found.items())
        self.assertNotIn("resync_start", found)

    def test_raid1_is_as_large_as_the_smallest_and_in_sync(self):
        self.make("raid1", ["/dev/d0", "/dev/d1"])
        found = self.attributes()
        self.assertLessEqual({"component_size": "1024", "dev-d1/size": "1024",
                              "resync_start": "none"}.items(), found.items())
        self.assertNotIn("chunk_size", found)

    def test_dm_stripe_of_whole_chunks(self):
        table = blockdev.stripe_table([1023, 2048], ["/dev/a", "/dev/b"], 4)
        start, sectors, _, following, kind = struct.unpack_from("2QiI16s", table)
        self.assertEqual((start, sectors, kind.strip(b"\0")),
                         (0, 2 * 2040, b"striped"))
        self.assertEqual((following, len(table) % 8), (len(table), 0))
        self.assertEqual(table[40:].strip(b"\0"), b"2 8 /dev/a 0 /dev/b 0")

    def test_kernel_without_md(self):
        (self.sys / "module/md_mod/parameters/new_array").unlink()
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                self.assertRaises(SystemExit):
            self.make("raid0", ["/dev/d0"], 4)
        self.assertIn("CONFIG_BLK_DEV_MD", said.getvalue())


class Doorbells(unittest.TestCase):
    trace = ("pci_nvme_mmio_doorbell_sq sqid 0 new_tail 3\n"
             "pci_nvme_mmio_doorbell_sq sqid 1 new_tail 1\n"
             "pci_nvme_mmio_doorbell_cq cqid 1 new_head 1\n"
             "pci_nvme_mmio_doorbell_sq sqid 2 new_tail 8\n")

    def test_of_io_queues_since_a_place(self):
        guest = program("tools/bench/plugtest-guest")
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.dict(os.environ, TRACE=f"{folder}/trace"):
            Path(folder, "trace").write_text(self.trace)
            count, place = guest.rings()
            self.assertEqual((count, place), (2, len(self.trace)))
            with open(Path(folder, "trace"), "a") as more:
                more.write(self.trace)
            self.assertEqual(guest.rings(place)[0], 2)


class Study(unittest.TestCase):
    def test_default_is_what_is_steady(self):
        program_ = program("tools/bench/nvmestudy")
        args = program_.arguments([])
        self.assertEqual((args.clock, args.devices), ("counted", "nvme-loop"))
        self.assertEqual(len(args.each), 16)

    def test_cells_with_many_in_flight_take_longer(self):
        self.assertEqual(nvme_study.seconds(2, 1, 2048), 2)
        self.assertEqual(nvme_study.seconds(2, 4, "1024"), 2 * nvme_study.LONGER)

    def test_parts_of_a_profile(self):
        parts = nvme_study.parts({"[user]": 5, "__nvmet_req_init": 1, "nvme_queue_rq": 2,
                             "nvme_loop_queue_rq": 4, "__bfq_x": 8, "dd_y": 16,
                             "blk_mq_z": 32, "memcpy": 64})
        self.assertEqual({name: count for name, count in parts.items() if count},
                         {"fio": 5, "target": 5, "NVMe driver": 2, "scheduler": 24,
                          "block layer, of both disks": 32, "the rest": 64})


class InUse(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.disk = Disk(folder.name)

    def test_free(self):
        self.assertIsNone(self.disk.why())

    def test_unknown(self):
        self.assertIn("no block device", self.disk.why("sdy"))

    def test_mounted_by_number_or_name(self):
        self.disk.mounted("8:16")
        self.assertIn("mounted on /mnt", self.disk.why())
        self.disk.mounted("0:44", "/dev/sdx")
        self.assertIn("mounted on /mnt", self.disk.why())

    def test_mounted_partition(self):
        self.disk.partition()
        self.disk.mounted("8:17")
        self.assertIn("mounted on /mnt", self.disk.why())

    def test_partitions(self):
        self.disk.partition()
        self.assertIn("holds partitions (sdx1)", self.disk.why())

    def test_is_a_partition(self):
        self.disk.write("partition", "1")
        self.assertIn("is a partition", self.disk.why())

    def test_swap(self):
        self.disk.swap("/dev/sdx")
        self.assertIn("swap", self.disk.why())

    def test_holders(self):
        (self.disk.disk / "holders/md0").mkdir()
        self.assertIn("held by md0", self.disk.why())

    def test_read_only(self):
        self.disk.write("ro", "1")
        self.assertIn("read-only", self.disk.why())

    def test_settings_come_back(self):
        queue = self.disk.sys / "block/sdx/queue"
        (queue / "iosched").mkdir(parents=True)
        for name, text in (("scheduler", "none [mq-deadline] bfq"),
                           ("nr_requests", "64"), ("iosched/fifo", "7")):
            (queue / name).write_text(text + "\n")
        with self.assertRaises(KeyboardInterrupt):
            with guard.Kept("sdx", self.disk.sys):
                (queue / "scheduler").write_text("[bfq]\n")
                (queue / "nr_requests").write_text("256\n")
                (queue / "iosched/fifo").write_text("9\n")
                raise KeyboardInterrupt
        self.assertEqual((queue / "scheduler").read_text(), "mq-deadline")
        self.assertEqual((queue / "nr_requests").read_text(), "64")
        self.assertEqual((queue / "iosched/fifo").read_text(), "7")


class Arguments(unittest.TestCase):
    """Every mistake: one line, what and how, no traceback."""

    def refused(self, *cmd):
        done = subprocess.run([*map(str, cmd)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("error: "))
        return done.stderr

    def test_bench(self):
        self.assertIn("not known", self.refused(RUN, "--jobs", "x"))
        self.assertIn("not known", self.refused(RUN, "--devices", ""))
        self.assertIn("not known", self.refused(RUN, "--kernels", "mine"))
        self.assertIn("at least 1", self.refused(RUN, "--boots", "0"))
        self.assertIn("nothing to measure",
                      self.refused(RUN, "--read-only", "--jobs", "batchtest"))
        self.assertIn("unrecognized", self.refused(RUN, "--no-such-option"))

    def test_cells_of_slowdisk(self):
        guest = program("tools/bench/slowdisk-guest")
        full, quick = (list(guest.wanted(form, ""))
                       for form in ("full", "quick"))
        self.assertEqual((len(full), len(quick)), (11, 5))
        self.assertLess(set(quick), set(full))
        self.assertEqual(
            {disk for disk, _ in guest.wanted("full", "a reader of each")},
            {name for name in guest.DISKS if name.startswith("16 of a host")})

    def test_slowdisk(self):
        self.assertIn("at least 1", self.refused(SLOWDISK, "--seconds", "-1"))
        self.assertIn("not known", self.refused(SLOWDISK, "--kernels", ","))

    def test_plugtest(self):
        self.assertIn("at least 1", self.refused(PLUGTEST, "--boots", "0"))
        self.assertIn("not known", self.refused(PLUGTEST, "--parts", "scsi"))
        self.assertIn("not known", self.refused(PLUGTEST, "--kernels", "mine"))

    def test_nvmestudy(self):
        self.assertIn("at least 1", self.refused(NVMESTUDY, "--boots", "0"))
        self.assertIn("use --clock host", self.refused(NVMESTUDY, "--devices", "nvme"))
        self.assertIn("not with", self.refused(NVMESTUDY, "--devices", "x",
                                               "--clock", "host"))

    def test_device_that_is_none(self):
        for device in ("/dev/no-such-disk", "/dev/null"):
            self.refused(RUN, "--device", device)

    def test_compare(self):
        self.assertIn("two result files", self.refused(COMPARE, "", ""))
        self.assertIn("cannot read",
                      self.refused(COMPARE, "/nonexistent", "/nonexistent"))

    def test_report(self):
        self.assertIn("cannot read", self.refused(REPORT, "/nonexistent"))


if __name__ == "__main__":
    unittest.main()
