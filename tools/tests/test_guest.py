# SPDX-License-Identifier: GPL-2.0
"""The program that runs the selftests in guests, with no guest."""
import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from blkscale import paths, tap
from blkscale.cases import loads
from helpers import error_of, program

SELFTESTS = paths.ROOT / "tools/testing/selftests/block"


guest = program("tools/tests/guest")


class ReaderTest(unittest.TestCase):
    def read(self, text, **how):
        with contextlib.redirect_stderr(io.StringIO()):
            found = guest.Unprinted()
            reader = guest.Reader(found, **how)
            for i in range(0, len(text), 7):	# as pieces come
                reader.feed(text[i:i + 7])
        return found.results, reader

    def test_results_are_passed_on(self):
        results, reader = self.read(
            "# begin qd1\nTAP version 13\n# 5 ms\nok 1 qd1: a\n"
            "# too late\nnot ok 2 qd1: b\n1..2\n# end qd1 1 12\n")
        self.assertEqual([r[:2] for r in results],
                         [(True, "qd1: a"), (False, "qd1: b")])
        self.assertIn("too late", results[1][2])
        self.assertIn("qd1", reader.done)

    def test_a_test_that_stops_early_has_failed(self):
        for end in ("1..2\n# end qd1 0 1\n", "# end qd1 124 400\n",
                    "Bail out! no\n# end qd1 1 1\n"):
            results, _ = self.read("# begin qd1\nok 1 qd1: a\n" + end)
            self.assertFalse(all(r[0] for r in results), end)

    def test_nothing_at_all_has_failed(self):
        results, _ = self.read("# begin qd1\n# end qd1 0 1\n")
        self.assertFalse(results[0][0])

    def skips(self, text, skips):
        """What is printed of a test that skips."""
        printed = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()), \
                contextlib.redirect_stdout(printed):
            guest.Reader(tap.Writer(), skips).feed(text)
        return printed.getvalue()

    def test_all_skipped(self):
        text = "# begin qd1\n1..0 # SKIP not root\n# end qd1 4 0\n"
        self.assertEqual(self.skips(text, {"qd1: not root": 1}),
                         "ok 1 qd1 # SKIP not root\n")
        said = self.skips(text, {"qd1: no debugfs": 1})
        self.assertIn("not ok 1 qd1\n", said)
        self.assertIn("does not allow: not root\n", said)
        self.assertIn("tools/tests/guest", said)

    def test_what_may_be_skipped_and_how_often(self):
        skip = "ok {0} qd1: bfq on nvme{0} # SKIP no probe\n"
        text = "# begin qd1\n" + "".join(map(skip.format, (1, 2, 3))) + \
            "1..3\n# end qd1 4 1\n"

        def ends(skips):
            return [line.startswith("not ok")
                    for line in self.skips(text, skips).splitlines()
                    if "ok" in line.split()[:2]]
        self.assertEqual(ends({}), [True] * 3)
        self.assertEqual(ends({r"qd1: bfq on nvme\d: no probe": 2}),
                         [False, False, True])
        self.assertEqual(ends({"qd1: bfq on nvme3: no": 3}), [True] * 3)
        # the next test may as often again
        text += text.replace("begin qd1", "begin x").replace("end qd1", "end x")
        self.assertEqual(ends({r"qd1: .*": 1}), [False, True, True] * 2)

    def test_nothing_but_the_log_was_looked_at(self):
        text = "# begin qd1\nok 1 qd1: the log\n1..1\n# end qd1 4 1\n"
        self.assertFalse(all(r[0] for r in self.read(text)[0]))
        self.assertTrue(all(r[0] for r in self.read(text, narrowed=True)[0]))


class BootTest(unittest.TestCase):
    ARGS = SimpleNamespace(config="debug", cpus=4, tests=[], kernel="patched",
                           kinds=None)

    def start(self, printed, trouble=None, status=0):
        def run(**kwargs):
            kwargs["on_output"](printed)
            return SimpleNamespace(trouble=trouble, status=status, log="log",
                                   stderr="")
        found = guest.Unprinted()
        with mock.patch.object(guest.boot, "run", run), \
                mock.patch.object(guest.loads, "build"), \
                contextlib.redirect_stderr(io.StringIO()):
            spec = guest.Boot("x", ["order"])
            guest.run_boot(spec, self.ARGS, found)
            red = guest.Unprinted()
            guest.run_red(spec, self.ARGS, red)
        return found.results[-1], red.results[-1]

    RED = ("# begin order\n"
           "# 5 of 9 requests were overtaken by one chosen later\n"
           "not ok 1 order: mq-deadline on null_blk\n"
           "# 5 of 9 requests were overtaken by one chosen later\n"
           "not ok 2 order: bfq on null_blk\n1..2\n# end order 1 3\n")

    def test_red_is_red(self):
        boot, red = self.start(self.RED)
        self.assertTrue(boot[0])
        self.assertTrue(red[0])

    def test_green_is_not_red(self):
        self.assertFalse(self.start(self.RED.replace("not ok", "ok"))[1][0])

    def test_red_for_another_reason(self):
        wrong = self.RED.replace("overtaken by", "no device for")
        self.assertFalse(self.start(wrong)[1][0])

    def test_trouble_and_missing_results(self):
        self.assertFalse(self.start(self.RED, trouble="BUG: x")[0][0])
        self.assertFalse(self.start(self.RED, status=1)[0][0])
        boot, _ = self.start("")
        self.assertIn("no result of order", boot[2])

    def test_an_emulator_that_fails_is_started_again(self):
        runs = []

        def run(**kwargs):
            runs.append(kwargs["args"])
            done = kwargs["args"][0]
            kwargs["on_output"](f"# begin {done}\nok 1 {done}: a\n1..1\n"
                                f"# end {done} 0 3\n")
            bad = len(runs) == 1
            return SimpleNamespace(
                trouble="no result" if bad else None, log="log",
                status=None if bad else 0,
                stderr="x.c:1: Assertion `y' failed.\n" if bad else "")
        found = guest.Unprinted()
        with mock.patch.object(guest.boot, "run", run), \
                mock.patch.object(guest.loads, "build"), \
                contextlib.redirect_stderr(io.StringIO()):
            guest.run_boot(guest.Boot("x", ["order", "qd1"]), self.ARGS, found)
        self.assertEqual(runs, [["order", "qd1"], ["qd1"]])
        self.assertTrue(all(good for good, _, _ in found.results))

    def test_selection(self):
        def pick(*tests):
            return [(b.name, b.tests) for b in guest.selected(
                guest.arguments(list(tests)))]
        self.assertEqual(pick("merge"), [("shallow", ["merge"])])
        self.assertEqual(pick("red"), [("base", ["order"])])
        self.assertEqual(len(pick()), 10)
        kinds = guest.selected(guest.arguments(["merge", "--kinds", "nvme"]))
        self.assertEqual(kinds[0].env, {"TEST_KINDS": "nvme"})
        self.assertEqual(pick("order", "--kinds", "null_blk"),
                         [("quiet", ["order"])])
        long = guest.selected(guest.arguments(["--long"]))
        self.assertEqual([b.name for b in long], ["nvme", "tags", "asleep"])
        self.assertLess({"nvme", "order", "verify"}, set(long[0].tests))
        self.assertIn("TEST_SECS", long[0].env)
        on = guest.selected(guest.arguments(["--on", "rt", "stress"]))
        self.assertEqual([(b.name, b.tests) for b in on],
                         [("rt under changes", ["stress"])])
        self.assertEqual(guest.arguments(["--on", "rt"]).config, "debug+rt")
        kasan = guest.selected(guest.arguments(["--on", "kasan"]))
        self.assertEqual([(b.name, b.tests) for b in kasan], [
            (b.name, b.tests) for b in guest.BOOTS])
        self.assertIn("known are",
                      error_of(guest.arguments, ["nonsense"])[0])

    def test_stress(self):
        def env(*words):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                spec, = guest.selected(guest.arguments(["--stress", *words]))
            return spec, said.getvalue()
        spec, said = env("600", "--seed", "7")
        self.assertEqual(spec.tests, ["stress"])
        self.assertEqual(spec.env["TEST_SECS"], "50")
        self.assertEqual(spec.env["TEST_SEED"], "7")
        self.assertIn("SEED=7 ", said)
        spec, said = env("1")
        self.assertEqual(spec.env["TEST_SECS"], "5")
        self.assertIn(f"SEED={spec.env['TEST_SEED']} ", said)

    def test_data_races_are_judged(self):
        log = Path(tempfile.mkstemp()[1])
        self.addCleanup(log.unlink)
        log.write_text("BUG: KCSAN: data-race in a / b\n\n"
                       "read to 0x1 of 8 bytes by task 1 on cpu 1:\n a+0x1/0x2\n")

        def run(**kwargs):
            self.assertFalse(kwargs["races"])
            self.assertEqual(kwargs["env"]["TEST_RACES"], "1")
            kwargs["on_output"](self.RED.replace("not ok", "ok"))
            return SimpleNamespace(trouble=None, status=0, log="log", stderr="",
                                   console=log)

        def judged(ours):
            found = guest.Unprinted()
            args = SimpleNamespace(config="debug+kcsan", cpus=4, kinds=None,
                                   record=False)
            with mock.patch.object(guest.boot, "run", run), \
                    mock.patch.object(guest.loads, "build"), \
                    mock.patch.object(guest.races, "symbols", return_value=()), \
                    mock.patch.object(guest.races, "layer", return_value={"a", "c"}), \
                    mock.patch.object(guest.races, "changed", return_value=ours), \
                    contextlib.redirect_stderr(io.StringIO()):
                guest.run_boot(guest.Boot("x", ["order"]), args, found)
            return found.results[-1]
        self.assertFalse(judged({"a"})[0])
        good, name, details = judged({"c"})
        self.assertTrue(good)
        self.assertIn("1 elsewhere", name)
        self.assertIn("in no function of the series: BUG: KCSAN", details)

    def test_disks_are_those_of_their_boot(self):
        for spec in [*guest.BOOTS, guest.STRESS, *sum(guest.ON.values(), [])]:
            named = {"TEST_DEVS": guest.DISK_NAMES, **spec.env}
            for var, bad in (("TEST_DEVS", False), ("TEST_BAD_DEVS", True)):
                for n in re.findall(r"disk:(\d+)", named.get(var, "")):
                    with self.subTest(boot=spec.name, disk=n):
                        self.assertEqual("bad=" in spec.disks[int(n)], bad)


class SelftestsTest(unittest.TestCase):
    """What can be seen of the selftests without running them as root."""

    def test_each_is_in_a_boot_and_in_the_makefile(self):
        names = {p.stem[5:] for p in SELFTESTS.glob("test_*.sh")}
        self.assertEqual(names | {"kunit"}, {t for b in guest.BOOTS for t in b.tests})
        listed = re.findall(r"^TEST_PROGS [:+]= test_(\w+)\.sh$",
                            (SELFTESTS / "Makefile").read_text(), re.M)
        self.assertEqual(names, set(listed))

    def test_scripts_are_shell(self):
        for script in SELFTESTS.glob("*.sh"):
            done = subprocess.run(["bash", "-n", script], capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_blkload(self):
        with tempfile.TemporaryDirectory() as folder:
            program, disk = loads.build("selftests/blkload"), Path(folder) / "disk"
            disk.write_bytes(bytes(1 << 20))

            def run(*words):
                done = subprocess.run([program, *words, disk],
                                      capture_output=True, text=True)
                return done.returncode, done.stdout
            status, said = run("-n", "8", "-t", "2", "-r", "0", "-k", "4k",
                               "-p", "alternate", "-z", "64k")
            if status == 2:
                self.skipTest("the file system has no direct I/O")
            self.assertIn("ios=16 errors=0", said)
            self.assertEqual(set(disk.read_bytes()[:65536]), {0x5a})
            self.assertEqual(set(disk.read_bytes()[65536:]), {0})
            self.assertEqual(run("-n", "100", "-d", "8", "-b", "4")[0], 0)
            self.assertEqual(run("-x", "nonsense", "-n", "1")[0], 1)
            self.assertEqual(run()[0], 2)
            for words in ("-d 4 -b 2 -r 50 -z 128k", "-t 2 -p alternate -d 8 -r 0",
                          "-p reverse -d 2 -r 0", "-p seq -k 8k -r 30"):
                self.assertEqual(run("-V", "-n", "200", *words.split())[0], 0, words)
            self.assertEqual(run("-V", "-n", "9", "-d", "9", "-z", "64k")[0], 2)
            self.assertEqual(run("-V", "-n", "9", "-d", "9", "-k", "4k,8k")[0], 2)
            other = subprocess.Popen([program, "-s", "60", "-r", "0", "-z", "64k", disk],
                                     stdout=subprocess.DEVNULL)
            status, said = run("-V", "-s", "1", "-d", "2", "-r", "50", "-z", "64k")
            other.terminate()
            other.wait()
            self.assertEqual(status, 1)
            self.assertRegex(said, " wrong=[1-9]")


class SharedShellTest(unittest.TestCase):
    """Functions of common.sh and the judgement of the order test."""

    # what common.sh uses of a kernel tree's kselftest/ktap_helpers.sh
    KTAP = """
KTAP_TESTNO=1 KSFT_SKIP=4
__ktap_test() { echo $1 $((KTAP_TESTNO++)) $2 ${3:+# $3}; }
ktap_test_pass() { __ktap_test ok "$1"; }
ktap_test_fail() { __ktap_test "not ok" "$1"; }
"""

    def shell(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as ktap:
            ktap.write(self.KTAP)
            ktap.flush()
            done = subprocess.run(
                ["bash", "-c", f'. "{SELFTESTS}/common.sh"\n{text}'],
                capture_output=True, text=True, env={**os.environ, "KTAP": ktap.name})
        return done.returncode, done.stdout

    def test_value_of(self):
        self.assertEqual(
            self.shell('value_of late "pairs=5 late=3"')[1], "3\n")

    def test_settings_are_put_back(self):
        with tempfile.TemporaryDirectory() as folder:
            queue = Path(folder) / "sys/block/d/queue"
            (queue / "iosched").mkdir(parents=True)
            for name in ("scheduler", "rotational", "nr_requests", "iosched/fifo"):
                (queue / name).write_text("1\n")
            found = self.function("settings_of").replace("/sys/", f"{folder}/sys/")

            def changed(then):
                return self.shell(f"{found}\nsettings_of d; cd {queue}\n{then}\n"
                                  "settings_back || echo $reason")[1]
            self.assertEqual(changed("for f in * iosched/*; do echo 2 2>/dev/null >$f; done"),
                             "")
            self.assertEqual([(queue / name).read_text() for name in
                              ("scheduler", "rotational", "iosched/fifo")],
                             ["2\n", "1\n", "1\n"])
            self.assertRegex(changed("rm rotational; mkdir rotational"),
                             "not put back: .*/rotational is '', was '1'$")

    def test_result_lines(self):
        _, said = self.shell("TEST_NAME=t; reason=r; result 0 a; "
                             "reason=r; result 1 b; reason=r; result 4 c")
        self.assertEqual(said, "ok 1 t: a\n# r\nnot ok 2 t: b\n"
                               "ok 3 t: c # SKIP r\n")

    @staticmethod
    def function(name, script="common.sh"):
        text = (SELFTESTS / script).read_text()
        return re.search(rf"^{name}\(\) {{\n.*?^}}\n", text, re.M | re.S)[0]

    def test_merged_since(self):
        said = self.shell("\n".join(
            f"read_stat() {{ writes={writes} merged={merged}; }}\n"
            "merged_since x; echo $percent"
            for writes, merged in ((10, 5), (110, 105), (110, 105))))[1]
        self.assertEqual(said.split()[1:], ["49", "-1"])

    def test_kernel_log(self):
        def judged(*lines, status=0):
            words = " ".join(f"'{line}'" for line in lines)
            return self.shell(
                f"dmesg() {{ printf '%s\\n' {words}; return {status}; }}\n"
                "dmesg_start=mark; dmesg_clean || echo $reason")[1]
        self.assertEqual(judged("BUG: old", "x mark", "all well"), "")
        self.assertIn("BUG: new", judged("BUG: old", "x mark", "BUG: new"))
        self.assertIn("BUG: new", judged("BUG: new", "no more of it"))
        self.assertIn("cannot read", judged("", status=1))

    def test_trace_that_is_not_there_is_not_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            def complete():
                return self.shell(f"TRACE={folder}; trace_complete")[0]
            self.assertEqual(complete(), 1)
            stats = Path(folder) / "per_cpu/cpu0/stats"
            stats.parent.mkdir(parents=True)
            stats.write_text("entries: 5\noverrun: 0\ndropped events: 0\n")
            self.assertEqual(complete(), 0)
            stats.write_text("overrun: 3\n")
            self.assertEqual(complete(), 1)

    def test_files_that_tell_what_is_held(self):
        with tempfile.TemporaryDirectory() as folder:
            debug = Path(folder) / "sys/kernel/debug/block/d"
            queue = Path(folder) / "sys/block/d/queue"
            for path in (debug / "hctx0/cpu0", debug / "sched", queue):
                path.mkdir(parents=True)
            held = self.function("what_is_held").replace("/sys/", f"{folder}/sys/")

            def said(sched):
                (queue / "scheduler").write_text(f"none mq-deadline bfq\n".replace(
                    sched, f"[{sched}]"))
                return self.shell(f"{held}\nwhat_is_held d")[1]
            for name in ("requeue_list", "hctx0/busy", "hctx0/dispatch",
                         "hctx0/tags", "hctx0/active"):
                self.assertIn(f"there is no {debug}/{name}\n", said("none"))
                (debug / name).touch()
            self.assertIn("hctx*/cpu0/default_rq_list", said("none"))
            staged = debug / "hctx0/cpu0/default_rq_list"
            staged.write_text("0 {.op=READ}\n")
            self.assertEqual(said("none"),
                             "hctx0/cpu0/default_rq_list is not empty\n")
            staged.write_text("")
            self.assertEqual(said("none"), "")
            self.assertIn("hctx0/sched_tags", said("bfq"))
            (debug / "hctx0/sched_tags").write_text("busy=3\n")
            self.assertEqual(said("bfq"), "hctx0/sched_tags: 3 tags in use\n")
            self.assertIn("sched/queued", said("mq-deadline"))

    def traced(self, script, *events, call):
        """What a function of a test makes of a trace, an event a word."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "trace").write_text("".join(
                f"blkload-1 [000] ..... {n}.0: block_{what}: 1,2 R 4096 () "
                f"{sector} + 8 be,0,4 [blkload]\n"
                for n, (what, sector) in enumerate(e.split() for e in events)))
            return self.shell(f"HALF=65536\n{self.function(call.split()[0], script)}\n"
                              f"TRACE={folder}; {call}")[1].strip()

    def test_issued_directly(self):
        events = ("rq_insert 8", "rq_issue 8", "rq_issue 64", "rq_requeue 64",
                  "rq_complete 8", "rq_complete 64", "rq_issue 8")
        self.assertEqual(self.traced("common.sh", *events, call="issued_directly"),
                         "issued=3 direct=2 back=1")
        self.assertEqual(self.traced("common.sh", *events, call="issued_directly 9"),
                         "issued=1 direct=1 back=1")

    def test_kinds_of_a_plug(self):
        kept = ("plug 0", "getrq 8", "getrq 16", "rq_issue 8", "rq_insert 16",
                "plug 0", "getrq 24", "rq_issue 24", "rq_issue 16")
        self.assertEqual(self.traced("test_plug.sh", *kept, call="kinds"),
                         "issued=3 direct=2 mixed=1 late=0")
        lost = ("plug 0", "getrq 8", "getrq 16", "rq_issue 16", "rq_issue 8")
        self.assertEqual(self.traced("test_plug.sh", *lost, call="kinds"),
                         "issued=2 direct=2 mixed=0 late=1")

    def test_requests_that_were_passed(self):
        events = ["rq_insert 8"] + [f"rq_issue {n * 65536}" for n in (1, 2, 3)] + \
            ["rq_issue 8", "rq_issue 65536"]
        self.assertEqual(
            self.traced("test_direct.sh", *events, call="passed"),
            "seen=1 worst=3 direct=4")

    def test_events_of_two_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "trace").write_text(
                "x-1 [0] 1.2: block_rq_insert: 1,2 R 4096 () 32768 + 8 be,0,4 [x]\n"
                "x-1 [0] 1.2: block_bio_queue: 1,2 R 98304 + 8 [x]\n")

            def traced(*words):
                return self.shell(f"{self.function('traced', 'test_direct.sh')}\n"
                                  f"TRACE={folder}; traced {' '.join(words)}")[0]
            self.assertEqual(traced("insert", "32768"), 0)
            self.assertEqual(traced("insert", "98304"), 1)
            self.assertEqual(traced("complete", "32768"), 1)

    def test_a_kind_without_a_disk_is_told(self):
        said = self.shell(
            "TEST_NAME=t TEST_SCHEDS=bfq TEST_DEVS=/dev/vdb\n"
            "TEST_KINDS='virtio_blk nvme'; unused() { :; }\n"
            "one() { result 0 \"$2 on $3\"; }; for_each_device f")[1]
        self.assertEqual(said, "ok 1 t: bfq on virtio_blk\n"
                               "ok 2 t: bfq on nvme # SKIP no such disk in TEST_DEVS\n")

    def order(self, events):
        with tempfile.TemporaryDirectory() as folder:
            lines = []
            for n, (what, rq, q, h) in enumerate(events):
                chosen = f" q={q}" if what == "chosen" else ""
                lines.append(f"x-1 [000] d..1. {n}: {what}: (a+0x1/0x2) "
                             f"rq={rq}{chosen} hctx={h}\n")
            (Path(folder) / "trace").write_text("".join(lines))
            script = (SELFTESTS / "test_order.sh").read_text()
            compare = script[script.index("compare() {"):]
            compare = compare[:compare.index("\n}\n") + 3]
            return self.shell(f"{compare}\nTRACE={folder}; compare")[1].strip()

    def test_order_is_kept(self):
        self.assertEqual(self.order([
            ("chosen", "0x1", "0xa", "0xc"), ("chosen", "0x2", "0xa", "0xc"),
            ("chosen", "0x0", "(fault)", "(fault)"),
            ("issued", "0x1", "", "0xc"), ("issued", "0x2", "", "0xc"),
            ("issued", "0x9", "", "0xc")]), "pairs=2 late=0")

    def test_order_is_lost(self):
        self.assertEqual(self.order([
            ("chosen", "0x1", "0xa", "0xc"), ("chosen", "0x2", "0xa", "0xc"),
            ("issued", "0x2", "", "0xc"), ("issued", "0x1", "", "0xc")]),
            "pairs=2 late=1")

    def test_order_is_that_of_a_hardware_queue(self):
        self.assertEqual(self.order([
            ("chosen", "0x1", "0xa", "0xc"), ("chosen", "0x2", "0xa", "0xd"),
            ("issued", "0x2", "", "0xd"), ("issued", "0x1", "", "0xc")]),
            "pairs=2 late=0")


if __name__ == "__main__":
    unittest.main()
