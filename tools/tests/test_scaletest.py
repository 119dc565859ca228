# SPDX-License-Identifier: GPL-2.0
"""The main job: what a step that fails does to the rest; and the Makefile."""
import contextlib
import io
import re
import subprocess
import unittest
from unittest import mock

from blkscale import paths, ui
from blkscale.prepare import needs
from helpers import program

scaletest = program("tools/scaletest")


class MainTest(unittest.TestCase):
    def main(self, prepared=0, **status):
        """Its exit status and output, with steps that end with these."""
        self.called = []

        def call(_steps, name, *_args, **_kwargs):
            self.called.append(name.split("/")[-1])
            found = status.get(self.called[-1], 0)
            if isinstance(found, Exception):
                raise found
            return found

        said = io.StringIO()
        with mock.patch.object(needs, "run", return_value=prepared), \
                mock.patch.object(needs, "call", call), \
                mock.patch("sys.argv", ["scaletest"]), \
                contextlib.redirect_stderr(said):
            try:
                code = scaletest.main()
            except SystemExit as end:
                code = end.code
        return code, said.getvalue()

    def test_good(self):
        code, said = self.main()
        self.assertEqual((code, self.called), (0, ["run", "slowdisk", "promises", "report"]))
        self.assertNotIn("error", said)

    def test_nothing_is_measured_when_something_is_missing(self):
        self.assertEqual(self.main(prepared=1)[0], 1)
        self.assertEqual(self.called, [])

    def test_a_failed_measurement_leaves_the_others_and_the_report(self):
        code, said = self.main(run=1)
        self.assertEqual((code, self.called), (1, ["run", "slowdisk", "promises", "report"]))
        self.assertRegex(said, r"error: could not measure many cores.*\n$")

    def test_a_measurement_without_end(self):
        code, said = self.main(slowdisk=subprocess.TimeoutExpired("x", 1))
        self.assertEqual((code, self.called[-1]), (1, "report"))
        self.assertIn("no end after 30m00s", said)


class CallTest(unittest.TestCase):
    def test_a_program_learns_of_its_step_and_its_status_counts(self):
        steps = ui.Steps([("x", 5)], io.StringIO(), outer={})
        seen = {}

        def popen(argv, env, **_):
            seen.update(argv=argv, env=env)
            return mock.Mock(pid=2 ** 30, wait=mock.Mock(return_value=3))

        with mock.patch.object(needs.subprocess, "Popen", popen), steps.step():
            self.assertEqual(needs.call(steps, "setup", "--check"), 3)
        self.assertEqual(seen["argv"][1:], [paths.ROOT / "tools/setup", "--check"])
        self.assertRegex(seen["env"]["BLKSCALE_WITHIN"], r"^1/1 ")


class MakefileTest(unittest.TestCase):
    text = (paths.ROOT / "Makefile").read_text()

    def test_every_target_has_a_line_of_help(self):
        done = subprocess.run(["make", "-s", "help"], cwd=paths.ROOT, text=True,
                              capture_output=True, check=True)
        *lines, base = done.stdout.splitlines()
        self.assertIn("BASE=6.12", base)
        told = {line.split()[0] for line in lines}
        targets = set(re.findall(r"(?m)^([a-z-]+):", self.text))
        phony = re.search(r"\.PHONY: ((?:.*\\\n)*.*)", self.text)[1]
        self.assertEqual(told, targets)
        self.assertEqual(set(phony.replace("\\", "").split()), targets)

    def test_every_program_is_there(self):
        for name in re.findall(r"@(tools/\S+)", self.text):
            with self.subTest(name):
                self.assertTrue((paths.ROOT / name).is_file())
