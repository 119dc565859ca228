# SPDX-License-Identifier: GPL-2.0
"""Kernel configurations, where a build starts from, and what its log says."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale.prepare import kernel


class Configuration(unittest.TestCase):
    def test_small_is_part_of_all(self):
        names = [path.name for path in kernel.fragments("debug")]
        self.assertEqual(names, ["small.config", "debug.config"])
        self.assertEqual(kernel.fragments("small+debug"), kernel.fragments("debug"))
        with self.assertRaises(SystemExit):
            kernel.fragments("no-such")

    def test_options(self):
        self.assertEqual(kernel.options("# a comment\nCONFIG_A=y\n# CONFIG_B is not set\n"
                                        "CONFIG_C=\"x y\"\nCONFIG_D=64\n"),
                         {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": '"x y"', "CONFIG_D": "64"})

    def test_what_did_not_take_effect_is_named(self):
        wanted = kernel.options("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n")
        self.assertEqual(kernel.not_taken(wanted, {"CONFIG_A": "y", "CONFIG_C": "y"}), [])
        self.assertEqual(kernel.not_taken(wanted, {"CONFIG_A": "y", "CONFIG_B": "m"}),
                         ["CONFIG_B=n (is m)", "CONFIG_C=y (is n)"])

    def test_fragments_do_not_contradict_themselves(self):
        for path in kernel.CONFIGS.glob("*.config"):
            lines = [line for line in path.read_text().splitlines()
                     if kernel.options(line)]
            self.assertEqual(len(lines), len(kernel.options("\n".join(lines))), path.name)


class Seed(unittest.TestCase):
    """Which objects a build starts from."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.trees = {name: Path(folder.name) / name for name in ("base", "patched")}
        for patch in (mock.patch.object(kernel.paths, "TREES", self.trees),
                      mock.patch.object(kernel.git, "rev", lambda tree, name: "1")):
            patch.start()
            self.addCleanup(patch.stop)

    def built(self, *names):
        for name in names:
            tree, config = name.split()
            obj = self.trees[tree] / f"obj-{config}"
            obj.mkdir(parents=True)
            (obj / "vmlinux").touch()

    def found(self, tree, config):
        found = kernel.seed_of(self.trees[tree], config)
        return found and (found[0].name, found[1].name)

    def test_nothing(self):
        self.built("base small")
        self.assertIsNone(self.found("patched", "debug"))

    def test_the_same_configuration_of_another_tree(self):
        self.built("base debug", "base debug+plug", "patched debug")
        self.assertEqual(self.found("patched", "debug+plug"), ("base", "obj-debug+plug"))

    def test_without_the_last_fragment_and_rather_of_the_same_tree(self):
        self.built("base debug")
        self.assertEqual(self.found("patched", "debug+plug"), ("base", "obj-debug"))
        self.built("patched debug")
        self.assertEqual(self.found("patched", "debug+plug"), ("patched", "obj-debug"))

    def test_objects_are_copied_and_the_kernel_is_not(self):
        self.built("base debug")
        (self.trees["base"] / "obj-debug/a.o").touch()
        kernel.seed(self.trees["base"], "debug+plug")
        obj = self.trees["base"] / "obj-debug+plug"
        self.assertEqual([path.name for path in obj.iterdir()], ["a.o"])

    def test_not_of_another_base(self):
        self.built("base debug")
        with mock.patch.object(kernel.git, "rev", lambda tree, name: str(tree)):
            self.assertIsNone(self.found("patched", "debug"))


LOG = """\
  CC      block/elevator.o
../block/elevator.c:20:5: warning: unused variable 'x' [-Wunused-variable]
../block/elevator.c:20:5: warning: unused variable 'x' [-Wunused-variable]
  HOSTCC  scripts/x
../net/core/dev.c:1:1: warning: not ours
  AS      arch/x86/a.o
  LD      vmlinux
make[3]: *** [../scripts/Makefile.build:287: block/bfq-iosched.o] Error 1
../block/bfq-iosched.c:7:1: error: expected ';'
"""


class Log(unittest.TestCase):
    def test_warnings_of_touched_files_only(self):
        self.assertEqual(kernel.warnings(LOG, {"block/elevator.c"}),
                         ["../block/elevator.c:20:5: warning: unused variable 'x' [-Wunused-variable]"])
        self.assertEqual(kernel.warnings(LOG, set()), [])

    def test_first_error_and_count(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            log.write_text(LOG)
            self.assertIn("expected ';'", kernel.first_error(log))
            self.assertEqual(kernel.compiled(log), 3)
            log.write_text("")
            self.assertEqual(kernel.first_error(log), "make said nothing")
