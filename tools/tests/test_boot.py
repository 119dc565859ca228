# SPDX-License-Identifier: GPL-2.0
"""The boot library and program, with a shell script in QEMU's place."""
import os
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.guest import boot
from blkscale.prepare import kernel
from helpers import error_of, gone, program

GOOD = "echo up >$OUT/console.log; echo hello >>$OUT/job.log; echo 0 >$OUT/status"


class BootTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name) / "out"
        self.image = Path(folder.name) / "bzImage"
        self.image.touch()
        for name, seconds in {"LAST_WORDS": 0.2, "GRACE": 1}.items():
            patch = mock.patch.object(boot, name, seconds)
            patch.start()
            self.addCleanup(patch.stop)

    def boot(self, script, **kwargs):
        """Run script as QEMU; its arguments are kept in $OUT/argv."""
        script = 'printf "%s\\n" "$@" >$OUT/argv; ' + script
        emulator = (["sh", "-c", script, "qemu"], {"OUT": str(self.out)})
        with mock.patch.object(boot.qemu, "command", return_value=emulator):
            return boot.run(kernel=self.image, out=self.out, accel="tcg",
                            **{"job": "true", **kwargs})

    def words(self):
        return (self.out / "argv").read_text().splitlines()

    def test_good(self):
        seen = []
        result = self.boot(GOOD, on_output=seen.append)
        self.assertTrue(result.ok)
        self.assertEqual("".join(seen), "hello\n")
        self.assertEqual(result.log.read_text(), "hello\n")

    def test_the_jobs_status(self):
        result = self.boot("echo up >$OUT/console.log; echo 3 >$OUT/status")
        self.assertEqual((result.status, result.trouble, result.ok),
                         (3, None, False))

    def test_no_result(self):
        result = self.boot("echo last words >$OUT/console.log")
        self.assertIn("guest ended without a result", result.trouble)
        self.assertIn("last words", result.trouble)

    def test_a_status_from_an_earlier_boot_does_not_count(self):
        self.boot(GOOD)
        self.assertIsNone(self.boot("true").status)

    def test_qemu_itself_fails(self):
        result = self.boot("echo qemu: no such device >&2; exit 1")
        self.assertIn("QEMU: qemu: no such device", result.trouble)

    def test_trouble_though_the_job_was_happy(self):
        result = self.boot(GOOD + "; echo '[ 1.0] BUG: x' >>$OUT/console.log")
        self.assertEqual(result.status, 0)
        self.assertFalse(result.ok)
        self.assertTrue(result.trouble.startswith(
            f"{self.out}/console.log:2: BUG: x\n"), result.trouble)

    def test_no_end(self):
        script = "sleep 60 & echo $! >$OUT/pid; while :; do date; sleep .2; done " \
                 ">$OUT/console.log"
        result = self.boot(script, timeout=1)
        self.assertIn("no end after 1s", result.trouble)
        self.assertTrue(gone(int((self.out / "pid").read_text())))

    def test_silence(self):
        result = self.boot("echo up >$OUT/console.log; sleep 60", silent=1)
        self.assertIn("silent for 1s; last line of", result.trouble)
        self.assertLess(result.seconds, 10)

    def test_stuck(self):
        line = "[ 99.0] INFO: task fio:12 blocked for more than 60 seconds."
        result = self.boot(f"echo '{line}' >$OUT/console.log; sleep 60")
        self.assertRegex(result.trouble, "^the guest is stuck; .*console.log:1: ")

    def test_asked_where_it_hangs(self):
        result = self.boot("echo up >$OUT/console.log; read word; "
                           "echo Kernel panic at $word >>$OUT/console.log; sleep 60",
                           silent=1)
        self.assertIn("panic at nmi", result.console.read_text())
        self.assertIn("silent for 1s; last line of", result.trouble)

    def twice(self, first):
        """A guest that is good when it is booted for the second time."""
        (self.out / "again").unlink(missing_ok=True)
        return self.boot(f"if [ -e $OUT/again ]; then {GOOD}; else touch $OUT/again; "
                         f"{first}; fi")

    def lost_timer(self, job):
        stuck = ("INFO: task sh:1 blocked for more than 20 seconds.\n"
                 f"rcu: {boot.LOST_TIMER} on cpu=1")
        return self.twice(f"echo '{job}' >$OUT/job.log; "
                          f"echo '{stuck}' >$OUT/console.log; sleep 60")

    def test_once_more_if_the_emulator_fails(self):
        def fails(job, words):
            return self.twice(f"echo '{job}' >$OUT/job.log; echo '{words}' >&2; exit 1")
        failed = "qemu: x.c:1: f: Assertion `y > 0`"
        self.assertTrue(fails("# vda none", failed).ok)
        self.assertIn("Assertion", fails("ok 1 order", failed).trouble)
        self.assertIn("no such", fails("# vda none", "no such device").trouble)

    def test_once_more_if_a_timer_is_lost(self):
        self.assertTrue(self.lost_timer("# begin order").ok)

    def test_not_once_more_if_there_are_results(self):
        self.assertIn("stuck", self.lost_timer("ok 1 order").trouble)

    def test_qemu_does_not_outlive_us(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "from blkscale.guest import boot\n"
                "boot.qemu.command = lambda: (['sh', '-c', 'echo $$ >$0/pid; "
                "exec sleep 60', sys.argv[2]], {})\n"
                "boot.run(kernel=sys.argv[3], job='true', accel='tcg', "
                "out=sys.argv[2])\n")
        child = subprocess.Popen(["python3", "-c", code, paths.ROOT / "tools/lib",
                                  self.out, self.image])
        pid = self.out / "pid"
        deadline = time.monotonic() + 10
        while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.kill()
        child.wait()
        self.assertTrue(gone(int(pid.read_text())))

    def test_disks(self):
        result = self.boot("ls -s --block-size=1 $OUT/.disk0 >$OUT/size; " + GOOD,
                           devices=["nvme:size=64,queues=3",
                                    "virtio-blk:queues=2,queue-size=16"])
        self.assertTrue(result.ok)
        self.assertIn("nvme,drive=disk0,serial=blkscale0,max_ioqpairs=3",
                      self.words())
        self.assertIn("virtio-blk-pci,drive=disk1,serial=blkscale1,"
                      "num-queues=2,queue-size=16", self.words())
        self.assertEqual((self.out / "size").read_text().split()[0], "0")
        self.assertFalse(list(self.out.glob(".disk*")))

    def test_fewer_cpus_of_the_host(self):
        for wanted in (1, None):
            self.assertTrue(self.boot("nproc >$OUT/cpus; " + GOOD,
                                      host_cpus=wanted).ok)
            self.assertEqual(int((self.out / "cpus").read_text()),
                             wanted or len(os.sched_getaffinity(0)))
        said, _ = error_of(self.boot, GOOD, host_cpus=10000)
        self.assertRegex(said, "^error: QEMU cannot have 10000 CPUs of the host; "
                               r"name \d+ at most")

    def test_namespaces(self):
        self.boot(GOOD, devices=["nvme:size=3,namespaces=2,queues=4"])
        words = self.words()
        self.assertIn("nvme,id=ctrl0,serial=blkscale0,max_ioqpairs=4", words)
        self.assertIn("nvme-ns,bus=ctrl0,drive=disk0", words)
        self.assertIn("nvme-ns,bus=ctrl0,drive=disk0-1", words)
        self.assertFalse(list(self.out.glob(".disk*")))

    def test_a_root_that_outlives_a_suspend(self):
        self.boot(GOOD)
        self.assertNotIn("q35", self.words())
        self.boot(GOOD, pcie=True)
        self.assertIn("q35", self.words())
        self.assertEqual(sum("no-soft-reset=on" in w for w in self.words()), 2)

    def test_a_disk_with_bad_blocks(self):
        self.boot(GOOD, devices=["virtio-blk:size=3,bad=100"])
        drive, = [w for w in self.words() if "id=disk0" in w]
        self.assertTrue(drive.startswith("driver=blkdebug,"), drive)
        self.assertEqual([drive.count(f".sector={n},") for n in (0, 800, 1600)],
                         [1, 1, 1])
        self.assertEqual(drive.count("errno="), 3)

    def test_wrong_disks(self):
        for spec in ("floppy", "nvme:bad=0", "nvme:size=big", "nvme:namespaces=0",
                     "nvme:size=0", "virtio-blk:queues=0"):
            with self.subTest(spec):
                said, _ = error_of(self.boot, GOOD, devices=[spec])
                self.assertRegex(said, f"^error: device '?{spec}.*\n$")
                self.assertFalse(list(self.out.glob(".disk*")))

    def test_job_and_its_arguments_and_variables(self):
        job = self.out.parent / "a job"
        job.write_text('#!/bin/sh\nprintf "%s|" "$@" "$WHO"\n')
        job.chmod(job.stat().st_mode | stat.S_IXUSR)
        self.boot("sh $OUT/.job >$OUT/job.log; echo 0 >$OUT/status", job=job,
                  args=["a b", "$x", 3], env={"WHO": "it's"})
        self.assertEqual((self.out / "job.log").read_text(), "a b|$x|3|it's|")

    def test_a_job_that_cannot_run(self):
        said, _ = error_of(self.boot, GOOD, job=self.image)
        self.assertRegex(said, "^error: .*bzImage is not an executable file.*\n$")

    def test_plugin_means_tcg(self):
        self.boot(GOOD, plugin="x.so,mem=1")
        self.assertIn("tcg,thread=multi", self.words())
        self.assertEqual(self.words()[-2:], ["-plugin", "x.so,mem=1"])

    def test_a_guest_that_never_begins_its_job_boots_once_more(self):
        with mock.patch.object(boot, "START", 1), \
                mock.patch.object(boot, "note") as note:
            result = self.twice("read word; "
                                "echo Kernel panic at $word >$OUT/console.log; sleep 60")
            self.assertTrue(result.ok)
            self.assertIn("at nmi", (self.out / "console.first.log").read_text())
            note.assert_called_once()
            result = self.boot("sleep 60")
        self.assertIn("did not begin its job within 1s", result.trouble)

    def test_a_guest_that_loses_a_timer_boots_once_more(self):
        stall = "echo 'rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:' " \
                ">>$OUT/console.log"
        timer = "; echo 'rcu: Possible timer handling issue on cpu=1' " \
                ">>$OUT/console.log"
        begun = "; echo hello >$OUT/job.log"
        for script, again in ((stall + timer, True), (stall, False),
                              (stall + timer + begun, False)):
            with self.subTest(script), mock.patch.object(boot, "note") as note:
                result = self.twice(script)
                self.assertEqual((result.ok, note.call_count), (again, again))

    def test_trace(self):
        self.boot(GOOD, trace="pci_nvme_mmio_doorbell_sq")
        self.assertEqual(self.words()[-2:], ["-trace",
                         f"pci_nvme_mmio_doorbell_sq,file={self.out}/qemu.trace"])

    def test_missing_kernel(self):
        said, _ = error_of(boot.run, kernel=self.out.parent, job="true")
        self.assertRegex(said, "^error: no kernel at .*; build it: .*\n$")

    def test_a_kernel_of_another_source(self):
        tree = self.out.parent / "tree"
        (tree / "block").mkdir(parents=True)
        source = tree / "block/x.c"
        source.write_text("a\n")
        (tree / "Kbuild").touch()
        for word in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "base"]):
            subprocess.run(["git", "-C", tree, "-c", "user.name=x", "-c", "user.email=x@x",
                            *word], check=True)
        source.write_text("b\n")
        found = paths.bzimage(tree, "small")
        found.parent.mkdir(parents=True)
        found.touch()
        mark = paths.obj(tree, "small") / ".source"
        mark.write_text(kernel.source_id(tree))
        os.utime(source)	# the content counts, and not when it was written
        self.assertEqual(boot.image(tree, "small"), found)
        wrong = "^error: the kernel at .* was not built from the source .*; build it: "
        source.write_text("c\n")
        # a measurement of hours goes on with the kernel that it began with
        self.assertEqual(boot.image(tree, "small"), found)
        os.utime(found, (1, 1))
        self.assertRegex(error_of(boot.image, tree, "small")[0], wrong)
        mark.unlink()
        self.assertRegex(error_of(boot.image, tree, "small")[0], wrong)
        # kernels whose source is elsewhere, as manycore/parts keeps them
        (tree / "Kbuild").unlink()
        self.assertEqual(boot.image(tree, "small"), found)

    def test_the_file_base_is_no_kernel(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(paths.ROOT)
        with mock.patch.object(paths, "bzimage", return_value=self.image), \
                mock.patch.object(boot, "is_of_source", return_value=True):
            self.assertEqual(boot.image("base", "small"), self.image)

    def test_appended_words_come_last(self):
        self.boot(GOOD, append="loglevel=7")
        words = self.words()
        self.assertTrue(words[words.index("-append") + 1].endswith("loglevel=7"))


class ProgramTest(unittest.TestCase):
    def test_what_follows_the_dashes_is_the_jobs(self):
        parse = program("tools/boot/boot").arguments
        args = parse(["--cpus", "3", "--", "job", "--cpus", "7", "--", "-x"])
        self.assertEqual((args.cpus, args.job, args.args),
                         (3, "job", ["--cpus", "7", "--", "-x"]))
        args = parse(["job", "a"])
        self.assertEqual((args.job, args.args), ("job", ["a"]))

    def call(self, *args):
        done = subprocess.run([paths.ROOT / "tools/boot/boot", *args],
                              capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env=os.environ)
        return done.returncode, done.stderr

    def test_mistakes_are_one_line(self):
        for args, words in (((), "no job"), (("--shell",), "terminal"),
                            (("--shell", "--", "true"), "no job"),
                            (("--cpus", "0", "--", "true"), "--cpus"),
                            (("--cpus", "x", "--", "true"), "invalid int"),
                            (("--kernel", "/nowhere", "--", "true"), "no kernel")):
            with self.subTest(args):
                status, said = self.call(*args)
                self.assertEqual(status, 1)
                self.assertRegex(said, rf"^error: .*{words}.*\n$")
