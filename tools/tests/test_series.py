# SPDX-License-Identifier: GPL-2.0
"""The patch files: reading, naming, and the way between files and commits."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from blkscale import paths
from blkscale.prepare import git, series


def patch(subject, *files, body="Why.\n\nHow."):
    """A patch text; files are (path, lines added, new)."""
    parts = [f"From 0 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] {subject}\n\n"
             f"{body}\n---\n x | 1 +\n\n"]
    for path, count, new in files:
        mode = "new file mode 100644\n" if new else ""
        parts.append(f"diff --git a/{path} b/{path}\n{mode}index 1..2\n--- a/{path}\n+++ b/{path}\n"
                     f"@@ -1 +1,{count} @@\n" + "+line\n" * count)
    return "".join(parts)


class Reading(unittest.TestCase):
    def test_subject_is_unfolded_and_decoded(self):
        self.assertEqual(series.subject(patch("block: a very long\n subject")),
                         "block: a very long subject")
        self.assertEqual(series.subject(patch("=?UTF-8?q?block:=20=C3=A9?=")), "block: é")

    def test_message_and_diff(self):
        text = patch("block: x", ("block/a.c", 2, False))
        self.assertEqual(series.message(text), "Why.\n\nHow.")
        self.assertTrue(series.diff(text).startswith("diff --git a/block/a.c"))

    def test_files(self):
        text = patch("x", ("block/a.c", 2, False), ("tools/t/new.sh", 5, True))
        self.assertEqual(series.files(text), {"block/a.c": (2, False),
                                              "tools/t/new.sh": (5, True)})
        self.assertEqual(series.whole_files([text]), {"tools/t/new.sh"})

    def test_series_file_mistakes_end_in_one_line(self):
        for line in ("/etc/x.patch", "../x.patch", "block/x.diff", "a b.patch", "no/such.patch"):
            with self.assertRaises(SystemExit):
                series.parse([line], Path("/").joinpath)


class Parts(unittest.TestCase):
    lines = ["# part: one", "a", "b", "", "# part: two and more", "# why", "c"]

    def test_ends_and_those_that_stand_alone(self):
        self.assertEqual(series.ends(self.lines, ["1", "2", "3"]),
                         [("one", "2"), ("two and more", "3")])
        self.assertEqual(series.alone(self.lines), set())
        self.assertEqual(series.alone([*self.lines[:5], "# alone: a reason", "c"]),
                         {"two and more"})

    def test_parts_that_are_not_measured(self):
        self.assertEqual(paths.unmeasured(self.lines), set())
        self.assertEqual(paths.unmeasured(["# part: 0", "# not measured: why", "x", "# more",
                                           "y", *self.lines]), {"x", "y"})

    def test_what_is_not_measured_does_not_change_the_measured_id(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            listing = root / "series"
            for name in "ab":
                (root / name).write_text(f"\ndiff --git {name}")
            with mock.patch.multiple(paths, ROOT=root, SERIES_FILE=listing):
                listing.write_text("# part: 1\na\n")
                one = paths.series_id(measured=True)
                listing.write_text("# part: 1\na\n# part: 2\n# not measured: why\nb\n")
                self.assertEqual(paths.series_id(measured=True), one)
                self.assertNotEqual(paths.series_id(), one)

    def test_parts(self):
        self.assertEqual(series.parts(self.lines),
                         [("one", ["a", "b"]), ("two and more", ["c"])])
        with self.assertRaises(SystemExit):
            series.parts(["a", *self.lines])

    def test_comments_stay_above_their_patch(self):
        for names, listed in [
                ("abc", "1ab23c"), ("axbc", "1axb23c"), ("bc", "1b23c"),
                ("abcd", "1ab23cd"), ("cab", "23c1ab"), ("ab", "1ab23")]:
            short = {"1": "# part: one", "2": "# part: two and more", "3": "# why"}
            self.assertEqual(series.listing(list(names), self.lines),
                             [short.get(one, one) for one in listed])

    def test_every_patch_of_ours_is_in_a_part(self):
        lines = paths.SERIES_FILE.read_text().splitlines()
        self.assertEqual([paths.ROOT / name for _, names in series.parts(lines)
                          for name in names], paths.patches())


    def test_every_part_of_ours_has_a_letter(self):
        lines = paths.SERIES_FILE.read_text().splitlines()
        for part, _ in series.parts(lines):
            with self.subTest(part):
                told = "\n".join(series.letter(part))
                self.assertTrue(told.isascii())
                self.assertLessEqual(max(map(len, told.splitlines())), 72)
                self.assertNotIn("signed-off-by", told.lower())
        self.assertEqual({path.name for path in (paths.ROOT / "letters").iterdir()},
                         {series.OVERVIEW, *(series.file_name(part)
                                             for part, _ in series.parts(lines))})

    def test_the_letter_over_all_names_each_part_and_its_subject(self):
        lines = paths.SERIES_FILE.read_text().splitlines()
        told = " ".join("\n".join(series.letter(series.OVERVIEW)).split())
        for part, names in series.parts(lines):
            with self.subTest(part):
                self.assertIn(f" {part} {len(names)} ", told)

    def test_version_and_series_of_the_parts(self):
        lines = ["# version: v2", "# series: small", "# part: one", "a",
                 "# series: large, RFC", "# part: two", "# part: three"]
        self.assertEqual(series.series_of(lines), {
            "one": ("small", False), "two": ("large", True), "three": ("large", True)})
        self.assertEqual([series.prefix(lines, rfc) for rfc in (False, True)],
                         ["PATCH v2", "RFC PATCH v2"])
        self.assertEqual(series.prefix(self.lines, False), "PATCH")
        self.assertEqual(series.series_of(self.lines)["one"], ("", False))

    def test_the_newest_version_in_changes_is_that_of_the_series(self):
        told = (paths.ROOT / "CHANGES").read_text()
        named = series.version(paths.SERIES_FILE.read_text().splitlines())
        self.assertTrue(named)
        self.assertEqual(re.search(r"(?m)^(v\d+)\b", told)[1], named)

    def test_a_letter_that_is_none_ends_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "letters/a-part")
            place.parent.mkdir()
            for text in (None, "", "No subject\n\nText.\n", "Subject: only\n"):
                if text is not None:
                    place.write_text(text)
                with self.assertRaises(SystemExit):
                    series.letter("a part", Path(folder).joinpath)
            place.write_text("Subject: a\n b\n\nText.\n")
            self.assertEqual(series.letter("a part", Path(folder).joinpath), ("a b", "Text."))


class Backports(unittest.TestCase):
    def test_nothing_is_wrong_with_ours(self):
        for home in paths.backports():
            with self.subTest(home.name):
                self.assertEqual("\n".join(series.backport_faults(home)), "")
                facts = paths.fields(home / "base")
                self.assertLessEqual({"package", "suite", "version", "upstream"}, set(facts))
                self.assertEqual(facts["version"], home.name)

    def test_every_part_of_ours_has_a_letter(self):
        for home in paths.backports():
            lines = (home / "series").read_text().splitlines()
            for part, _ in series.parts(lines):
                with self.subTest(home.name, part=part), mock.patch.object(paths, "HOME", home):
                    told = "\n".join(series.letter(part))
                    self.assertLessEqual(max(map(len, told.splitlines())), 72)

    def test_what_is_left_out(self):
        self.assertEqual(series.left_out(["# part: a", "# without: b/c.patch it is there",
                                          "x.patch", "# without: d.patch"]),
                         {"b/c.patch": "it is there", "d.patch": ""})

    def test_id_of_a_patch(self):
        one = patch("x", ("block/a.c", 2, False))
        self.assertEqual(series.patch_id(one), series.patch_id(one.replace("@@ -1", "@@ -9")
                                                               .replace("Why.", "Because.")))
        self.assertNotEqual(series.patch_id(one), series.patch_id(one.replace("+line", "+l")))


class Naming(unittest.TestCase):
    def test_folder(self):
        for path, folder in (("block/bfq-iosched.c", "block"),
                             ("block/partitions/x.c", "block"),
                             ("drivers/nvme/host/pci.c", "drivers/nvme"),
                             ("include/linux/blkdev.h", "include/linux"),
                             ("tools/testing/selftests/block/a.sh", "tools/testing/selftests/block"),
                             ("Documentation/block/x.rst", "Documentation/block"),
                             ("MAINTAINERS", "")):
            self.assertEqual(series.folder_of(path), folder)

    def test_chief_folder_has_most_lines(self):
        text = patch("x", ("include/linux/a.h", 3, False), ("block/a.c", 2, False),
                     ("block/b.c", 2, False))
        self.assertEqual(series.home(text), "block")

    def test_name_drops_what_the_folder_says(self):
        def name(subject, taken=()):
            return series.new_name(patch(subject, ("block/a.c", 1, False)), taken)
        self.assertEqual(name("block, bfq: use the lock"), "block/bfq-use-the-lock.patch")
        self.assertEqual(name("block/mq-deadline: Use X()"), "block/mq-deadline-use-x.patch")
        self.assertEqual(name("a: b", {"block/a-b.patch"}), "block/a-b-2.patch")
        self.assertLess(len(name("long " * 40)), 70)

    def test_commits_keep_their_files(self):
        one, two = (patch(s, (f"block/{s}.c", 1, False)) for s in ("one", "two"))
        old = [("block/first.patch", one), ("block/second.patch", two)]
        new = patch("three", ("block/three.c", 1, False))
        self.assertEqual(series.names_for([two, new, one], old),
                         ["block/second.patch", "block/three.patch", "block/first.patch"])
        reworded = one.replace("] one", "] uno")
        self.assertEqual(series.names_for([reworded], old), ["block/first.patch"])

    def test_two_equal_subjects_are_refused(self):
        with self.assertRaises(SystemExit):
            series.names_for([patch("x"), patch("x")], [])


class Commits(unittest.TestCase):
    """tools/series on a small tree, in a copy of the repository."""

    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(paths.ROOT / "tools/lib", self.root / "tools/lib",
                        ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy2(paths.ROOT / "tools/series", self.root / "tools/series")
        self.tree = self.root / "build/tree"
        self.make_tree(self.tree)

    def make_tree(self, tree, text="1\n2\n3\n4\n5\n6\n7\n8\n"):
        (tree / "block").mkdir(parents=True)
        for name in ("blk-mq-sched.c", "bfq.c"):
            (tree / "block" / name).write_text(text)
        self.git("init", "-q", "-b", "series", tree=tree)
        self.git("config", "user.name", "A", tree=tree)
        self.git("config", "user.email", "a@b", tree=tree)
        self.commit("base", tree=tree)
        self.git("tag", "base", tree=tree)

    def git(self, *args, tree=None):
        return git.git(tree or self.tree, *args).strip()

    def commit(self, subject, path=None, text="", tree=None):
        tree = tree or self.tree
        if path:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        self.git("add", "-A", tree=tree)
        self.git("commit", "-q", "-m", subject, "-m", "Why.", tree=tree)

    def run_series(self, *args, fails=False, **env):
        env = {**os.environ, "BUILD": "", "KSRC": "", "BRANCH": "", "BASE": "", **env}
        done = subprocess.run([self.root / "tools/series", *args], env=env,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode != 0, fails, done.stderr)
        if fails:
            self.assertRegex(done.stderr, r"\Aerror: [^\n]+; [^\n]+\n\Z")
        return done.stdout + done.stderr

    def listed(self):
        return (self.root / "series").read_text().split()

    def two(self):
        self.commit("block: first", "block/blk-mq-sched.c", "1\n2\n3\nfirst\n5\n6\n7\n8\n")
        self.commit("block: second", "block/bfq.c", "second\n")
        self.run_series("refresh")

    def test_there_and_back(self):
        self.two()
        self.assertEqual(self.listed(), ["block/first.patch", "block/second.patch"])
        self.assertIn("nothing changed", self.run_series("refresh"))
        tip = self.git("rev-parse", "series")
        self.assertIn("as in the files", self.run_series("tree"))
        self.git("reset", "-q", "--hard", "base")
        self.git("update-ref", "-d", "refs/blkscale/written")
        self.git("config", "--unset", "blkscale.files")
        self.assertIn("2 patches applied", self.run_series("tree"))
        self.assertEqual(self.git("rev-parse", f"{tip}^{{tree}}"),
                         self.git("rev-parse", "series^{tree}"))
        self.assertIn("nothing changed", self.run_series("refresh"))

    def test_order_insertion_and_removal(self):
        self.two()
        first, second = self.git("rev-list", "--reverse", "base..series").split()
        self.git("reset", "-q", "--hard", "base")
        self.git("cherry-pick", second)
        self.commit("block: between", "block/new.c", "x\n")
        self.run_series("refresh")
        self.assertEqual(self.listed(), ["block/second.patch", "block/between.patch"])
        self.assertFalse((self.root / "block/first.patch").exists())
        self.assertEqual((self.root / "block/new.c").read_text(), "x\n")

    def test_comments_are_kept(self):
        self.two()
        text = "# part: a\nblock/first.patch\n\n# part: b\nblock/second.patch\n"
        (self.root / "series").write_text(text)
        self.assertIn("as in the files", self.run_series("tree"))
        self.assertIn("nothing changed", self.run_series("refresh"))
        self.assertEqual((self.root / "series").read_text(), text)
        self.commit("block: third", "block/bfq.c", "third\n")
        self.run_series("refresh")
        self.assertEqual((self.root / "series").read_text(),
                         text.replace("\n\n", "\n") + "block/third.patch\n")

    def test_renamed_file_keeps_its_name(self):
        self.two()
        (self.root / "block/first.patch").rename(self.root / "block/other.patch")
        (self.root / "series").write_text("block/other.patch\nblock/second.patch\n")
        self.assertIn("nothing changed", self.run_series("refresh"))

    def test_whole_files_come_and_go(self):
        self.commit("selftests: add one", "tools/testing/selftests/block/a.sh", "echo\n")
        self.run_series("refresh")
        here = self.root / "tools/testing/selftests/block/a.sh"
        self.assertEqual(here.read_text(), "echo\n")
        here.write_text("edited here\n")
        self.assertIn("edited here", self.run_series("refresh", fails=True))
        here.write_text("echo\n")
        self.git("reset", "-q", "--hard", "base")
        self.run_series("refresh")
        self.assertFalse(here.exists())

    def test_new_work_in_the_tree_is_kept(self):
        self.two()
        self.commit("block: third", "block/bfq.c", "third\n")
        self.assertIn("make refresh", self.run_series("tree"))
        self.assertIn("tree only  block/third.patch", self.run_series("status"))
        (self.root / "series").write_text("block/first.patch\n")
        self.assertIn("both", self.run_series("tree", fails=True))

    def test_new_files_reach_the_tree(self):
        self.two()
        (self.root / "series").write_text("block/first.patch\n")
        self.run_series("tree")
        self.assertEqual(self.git("rev-list", "--count", "base..series"), "1")

    def test_am_makes_a_branch_and_nothing_else(self):
        self.two()
        other = self.root / "other"
        self.make_tree(other, "0\n1\n2\n3\n4\n5\n6\n7\n8\n")
        (other / "block/bfq.c").write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
        self.commit("moved on", tree=other)
        (other / "block/bfq.c").write_text("not committed\n")
        self.run_series("am", "--ksrc", str(other))
        self.assertEqual(self.git("branch", "--show-current", tree=other), "series")
        self.assertEqual((other / "block/bfq.c").read_text(), "not committed\n")
        self.assertEqual(self.git("rev-list", "--count", "series..block-scaling", tree=other), "2")
        self.assertIn("already has", self.run_series("am", KSRC=str(other), fails=True))

    def test_am_that_fails_leaves_nothing(self):
        self.two()
        other = self.root / "other"
        self.make_tree(other, "quite\nanother\n")
        before = self.git("for-each-ref", tree=other)
        self.assertIn("block/first.patch does not apply", self.run_series(
            "am", KSRC=str(other), fails=True))
        self.assertEqual(self.git("for-each-ref", tree=other), before)
        self.assertEqual(self.git("status", "--porcelain", tree=other), "")
        self.assertEqual(list((self.root / "build").glob("am-*")), [])

    def test_am_refuses_what_is_no_kernel(self):
        self.two()
        self.run_series("am", fails=True)
        self.run_series("am", KSRC=str(self.root / "nowhere"), fails=True)
        self.run_series("am", KSRC=str(self.root / "block"), fails=True)

    def parted(self):
        """Three patches in three parts, of which the second stands alone."""
        self.two()
        self.commit("block: third", "block/bfq.c", "third\n")
        self.run_series("refresh")
        (self.root / "series").write_text(
            "# version: v3\n# series: a\n# part: one\nblock/first.patch\n# series: b, RFC\n"
            "# part: two and more\n# alone\nblock/second.patch\n"
            "# part: three\nblock/third.patch\n")
        (self.root / "letters").mkdir()
        for part in ("one", "two-and-more", "three", "overview"):
            (self.root / "letters" / part).write_text(f"Subject: block: {part}\n\nWhy {part}.\n")
        (self.root / "base").write_text("upstream: v7.3\n")

    def named(self):
        """The line of `status` that names the series."""
        line = self.run_series("status").splitlines()[0]
        self.assertRegex(line, r"\Aseries: v3, id [0-9a-f]{12}\Z")
        return line

    def test_parts_are_mails_under_their_letters(self):
        self.parted()
        said = self.run_series("parts")
        self.assertIn("git am -s", said)
        home = self.root / "build/parts"
        self.assertEqual(sorted(str(path.relative_to(home)) for path in home.glob("*/*")), [
            "01-one/0000-cover-letter.patch", "01-one/0001-block-first.patch",
            "02-two-and-more/0000-cover-letter.patch", "02-two-and-more/0001-block-second.patch",
            "03-three/0000-cover-letter.patch", "03-three/0001-block-third.patch"])
        cover = (home / "02-two-and-more/0000-cover-letter.patch").read_text()
        for words in ("Subject: [RFC PATCH v3 0/1] block: two-and-more\n\nWhy two-and-more.\n",
                      "A (1):\n  block: second", "1 file changed",
                      f"\nbase: v7.3\n{self.named()}\n"):
            self.assertIn(words, cover)
        self.assertEqual((home / "overview.patch").read_text(), (
            "Subject: [RFC PATCH v3] block: overview\n\nWhy overview.\n\n"
            f"base: v7.3\n{self.named()}\n"))
        self.assertIn("Subject: [PATCH v3 1/1] block: first", (
            home / "01-one/0001-block-first.patch").read_text())
        self.assertNotIn("***", cover)
        self.assertNotIn("prerequisite", cover)
        self.assertEqual((home / "03-three/0000-cover-letter.patch").read_text()
                         .count("prerequisite-patch-id"), 2)
        mail = (home / "03-three/0001-block-third.patch").read_text()
        self.assertIn("Subject: [RFC PATCH v3 1/1] block: third", mail)
        self.assertNotIn("Signed-off-by", mail)
        self.git("checkout", "-q", "--detach", "base")
        for folder in ("02-two-and-more", "03-three"):	# neither touches what the first does
            self.git("am", *(home / folder).glob("0*[1-9]*"))

    def test_parts_name_the_commit_of_upstream(self):
        self.parted()
        self.assertIn("no tag v7.3", self.run_series("parts", KSRC=str(self.tree), fails=True))
        self.git("tag", "v7.3", "base")
        self.run_series("parts", KSRC=str(self.tree))
        self.assertIn(f"\nbase-commit: {self.git('rev-parse', 'base')}\n", (
            self.root / "build/parts/01-one/0000-cover-letter.patch").read_text())

    def test_parts_of_a_patch_whose_message_differs(self):
        self.parted()
        place = self.root / "block/first.patch"
        place.write_text(place.read_text().replace("Why.", "Because."))
        self.assertIn("is not what the patch files say", self.run_series("parts", fails=True))

    def test_parts_that_cannot_be_written(self):
        self.run_series("refresh")
        self.assertIn("empty", self.run_series("parts", fails=True))
        self.parted()
        (self.root / "letters/one").unlink()
        self.assertIn("letters/one", self.run_series("parts", fails=True))
        self.commit("block: fourth", "block/new.c", "x\n")
        self.assertIn("make refresh", self.run_series("parts", fails=True))
        shutil.rmtree(self.tree)
        self.assertIn("make base", self.run_series("parts", fails=True))

    def test_a_part_that_does_not_stand_alone(self):
        self.parted()
        lines = (self.root / "series").read_text()
        (self.root / "series").write_text(lines.replace("three\n", "three\n# alone\n"))
        self.assertIn("block/third.patch does not apply", self.run_series("parts", fails=True))

    def backported(self):
        """Two patches, and a base to which the first does not apply."""
        self.two()
        self.home, self.other = self.root / "backports/0.1", self.root / "build/0.1/tree"
        self.home.mkdir(parents=True)
        (self.root / "base").write_text("upstream: v7.3\nqemu: 9\n")
        (self.home / "base").write_text("upstream: v0.1\n")
        (self.home / "series").write_text("# part: a\nblock/first.patch\nblock/second.patch\n")
        self.make_tree(self.other)
        (self.other / "block/blk-mq-sched.c").write_text("1\n2\nthree\n4\n5\n6\n7\n8\n")
        self.git("commit", "-q", "--amend", "-a", "-m", "older", tree=self.other)
        self.git("tag", "-f", "base", tree=self.other)

    def port(self):
        """The first patch by hand, the second as it is."""
        self.commit("block: first", "block/blk-mq-sched.c",
                    "1\n2\nthree\nfirst\n5\n6\n7\n8\n", tree=self.other)
        self.git("am", "-q", self.root / "block/second.patch", tree=self.other)
        self.run_series("refresh", BASE="0.1")

    def own(self):
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*.patch"))

    def faults(self):
        """What backport_faults() says in the copy."""
        done = subprocess.run(["python3", "-c", "from blkscale import paths\n"
                               "from blkscale.prepare import series\n"
                               "print(chr(10).join(series.backport_faults(paths.HOME)), end='')"],
                              env={**os.environ, "BASE": "0.1", "BUILD": "",
                                   "PYTHONPATH": str(self.root / "tools/lib")},
                              capture_output=True, text=True, check=True)
        return done.stdout

    def test_a_backport_keeps_only_what_differs(self):
        self.backported()
        self.assertIn("block/first.patch does not apply",
                      self.run_series("tree", BASE="0.1", fails=True))
        self.port()
        self.assertEqual(self.own(), ["block/first.patch"])
        self.assertRegex((self.home / "of").read_text(), r"(?m)^block/first.patch [0-9a-f]{40}$")
        self.assertEqual(self.faults(), "")
        self.assertIn("nothing changed", self.run_series("refresh", BASE="0.1"))
        self.assertNotIn("differs", self.run_series("status", BASE="0.1"))
        self.git("reset", "-q", "--hard", "base", tree=self.other)
        self.git("update-ref", "refs/blkscale/written", "base", tree=self.other)
        self.git("config", "--unset", "blkscale.files", tree=self.other)
        self.assertIn("2 patches applied", self.run_series("tree", BASE="0.1"))
        self.assertIn("nothing changed", self.run_series("refresh", BASE="0.1"))
        self.assertIn("nothing changed", self.run_series("refresh"))

    def test_overrides_come_and_go(self):
        self.backported()
        self.port()
        (self.other / "block/bfq.c").write_text("second\nand more\n")
        self.git("commit", "-q", "-a", "--amend", "--no-edit", tree=self.other)
        self.commit("block: only here", "block/new.c", "x\n", tree=self.other)
        self.run_series("refresh", BASE="0.1")
        self.assertEqual(self.own(), ["block/first.patch", "block/only-here.patch",
                                      "block/second.patch"])
        self.assertEqual((self.home / "of").read_text().count("block/"), 2)
        self.assertFalse((self.root / "block/new.c").exists())
        self.git("reset", "-q", "--hard", "HEAD~2", tree=self.other)
        self.git("am", "-q", self.root / "block/second.patch", tree=self.other)
        self.assertIn("block/second.patch (removed)", self.run_series("refresh", BASE="0.1"))
        self.assertEqual(self.own(), ["block/first.patch"])
        self.assertEqual(self.faults(), "")

    def test_an_override_of_an_older_patch_is_told(self):
        self.backported()
        self.port()
        second, = self.git("rev-list", "-1", "HEAD").split()
        self.git("reset", "-q", "--hard", "base")
        self.commit("block: first", "block/blk-mq-sched.c", "1\n2\n3\nFIRST\n5\n6\n7\n8\n")
        self.git("cherry-pick", second)
        self.run_series("refresh")
        self.assertRegex(self.faults(), r"block/first.patch has changed, .* put [0-9a-f]{40} into "
                         "backports/0.1/of\\Z")
        self.run_series("refresh", BASE="0.1")
        self.assertIn("has changed", self.faults())
        # nor is it seen when only other blobs are in its index lines
        text = (self.home / "block/first.patch").read_text()
        (self.home / "block/first.patch").write_text(text.replace("\nindex ", "\nindex 0"))
        self.assertIn("wrote block/first.patch", self.run_series("refresh", BASE="0.1"))
        self.assertIn("has changed", self.faults())
        self.git("reset", "-q", "--hard", "base", tree=self.other)
        self.commit("block: first", "block/blk-mq-sched.c",
                    "1\n2\nthree\nFIRST\n5\n6\n7\n8\n", tree=self.other)
        self.git("am", "-q", self.root / "block/second.patch", tree=self.other)
        self.run_series("refresh", BASE="0.1")
        self.assertEqual(self.faults(), "")

    def test_a_shared_patch_that_has_changed_is_no_override(self):
        self.backported()
        self.port()
        (self.tree / "block/bfq.c").write_text("SECOND\n")
        self.git("commit", "-q", "-a", "--amend", "--no-edit")
        self.run_series("refresh")
        self.assertIn("block/second.patch has changed since",
                      self.run_series("refresh", BASE="0.1", fails=True))
        self.assertIn("2 patches applied", self.run_series("tree", BASE="0.1"))
        self.assertEqual((self.other / "block/bfq.c").read_text(), "SECOND\n")
        self.assertEqual(self.own(), ["block/first.patch"])

    def test_a_patch_that_is_left_out_says_why(self):
        self.backported()
        self.port()
        listing = self.home / "series"
        listing.write_text("# part: a\nblock/first.patch\n")
        self.assertIn("block/second.patch is neither", self.faults())
        listing.write_text("# part: a\n# without: block/second.patch\nblock/first.patch\n")
        self.assertIn("nobody says why", self.faults())
        listing.write_text("# part: a\n# without: block/second.patch moot\nblock/first.patch\n")
        self.assertEqual(self.faults(), "")
        listing.write_text("# part: a\nblock/second.patch\nblock/first.patch\n")
        self.assertIn("another order", self.faults())

    def test_a_series_off_its_base_is_refused(self):
        self.git("checkout", "-q", "--orphan", "new")
        self.commit("root")
        self.git("branch", "-f", "series", "new")
        self.assertIn("not built on base", self.run_series("refresh", fails=True))

    def test_no_tree_yet(self):
        shutil.rmtree(self.tree)
        self.assertIn("make base", self.run_series("tree", fails=True))
        self.assertIn("make base", self.run_series("refresh", fails=True))
