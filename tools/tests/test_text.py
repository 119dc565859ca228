# SPDX-License-Identifier: GPL-2.0
"""What strangers read: README.md, RESULTS.md and the letters."""
import re
import unittest

from blkscale import paths
from blkscale.prepare import series
from blkscale.report import readme

LINES = 155		# of README.md: two screens, and tables that may grow
LETTER = 112		# of a letter: two screens
# `84.1 -> 148`: a figure on two kernels
PAIR = re.compile(r"\d[\d.,K%]* -> [\d*]")
MACHINE = re.compile(r"/home/|/root/|/work/|/tmp/(?!bash)|localhost|\d+\.\d+\.\d+\.\d+")


def tables(text):
    """[[the lines of a Markdown table]]"""
    return [block.splitlines() for block in re.findall(r"(?m)(?:^\|.*\n?)+", text)]


class Readme(unittest.TestCase):
    text = readme.README.read_text()

    def test_two_screens(self):
        self.assertLessEqual(len(self.text.splitlines()), LINES)

    def test_the_first_screen_answers(self):
        first = "\n".join(self.text.splitlines()[:45]).lower()
        for word in ("rfc", "not posted", "never", "real hardware", "emulator", "default scheduler",
                     "what you lose", "undo", "direct_issue", "dpkg -p", "data", "kernels",
                     "published"):
            self.assertIn(word, first)

    def test_figures_stand_in_tables(self):
        for line in self.text.splitlines():
            if PAIR.search(line):
                self.assertTrue(line.startswith(("|", "#")), line)

    def test_each_row_is_in_a_table_with_a_head(self):
        for text in (self.text, readme.RESULTS.read_text()):
            for lines in tables(text):
                self.assertGreater(len(lines), 2, lines[0])
                self.assertRegex(lines[1], r"\A(\| --- )+\|\Z")
                self.assertEqual({line.count("|") for line in lines},
                                 {lines[0].count("|")}, lines[0])

    def test_links_lead_somewhere(self):
        for path in (readme.README, readme.RESULTS):
            text = path.read_text()
            there = {f"#{readme.anchor(title)}"
                     for title in re.findall(r"(?m)^#+ (.*)$", text)}
            for target in re.findall(r"\]\(([^)]+)\)", text):
                with self.subTest(f"{path.name}: {target}"):
                    if target.startswith("#"):
                        self.assertIn(target, there)
                    else:
                        self.assertTrue((path.parent / target).exists())

    def test_it_says_which_version_it_is(self):
        named = series.version(paths.SERIES_FILE.read_text().splitlines())
        self.assertIn(f"version {named},", self.text)


class Letters(unittest.TestCase):
    def each(self, check):
        for path in sorted((paths.ROOT / "letters").iterdir()):
            with self.subTest(path.name):
                check(path.read_text())

    def test_two_screens(self):
        self.each(lambda text: self.assertLessEqual(len(text.splitlines()), LETTER))

    def test_the_kernel_without_patches_has_a_name(self):
        self.each(lambda text: self.assertNotRegex(text, r"(?i)\bbase\b(?!-commit)"))

    def test_figures_are_said_to_be_of_an_emulator(self):
        def check(text):
            if re.search(r"(?m)^Figures$", text):
                first = re.search(r"(?s)\n\n(?:Problem\n\n)?(.*?)\n\n", text)[1]
                self.assertIn("emulator", first)
        self.each(check)

    def test_figures_of_two_kernels_stand_in_tables(self):
        """A row of a table is indented, and no item of a list."""
        def check(text):
            for line in filter(PAIR.search, text.splitlines()):
                self.assertRegex(line, r"\A {2,}(?!- )")
        self.each(check)

    def test_nothing_of_this_machine(self):
        for path in (readme.README, readme.RESULTS, paths.ROOT / "CHANGES",
                     paths.ROOT / "CONTRIBUTING", paths.ROOT / "tools/tests/CASES.md"):
            self.assertNotRegex(path.read_text(), MACHINE)
        self.each(lambda text: self.assertNotRegex(text, MACHINE))


if __name__ == "__main__":
    unittest.main()
