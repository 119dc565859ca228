# SPDX-License-Identifier: GPL-2.0
"""What the guest tests reach: the lines that the series adds, and which of them run."""
import json
import os
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths, proc
from ..prepare import git
from ..ui import die
from . import races

REASONS = paths.ROOT / "tools/tests/unreached"
COUNTS = "gcov"			# folder with a guest's counts, in what it wrote
CODE = re.compile(r"(?:block/|include/linux/|lib/sbitmap\.c$)")	# macros of tracing are none
WHY, SOMETIMES = "why", "sometimes"


@dataclass
class Line:
    file: str
    function: str
    number: int
    text: str			# without the white space around it
    runs: int

    @property
    def key(self):
        return self.file, self.function, self.text


@dataclass
class Reason:
    """Why lines of a function do not run. sometimes: in some runs they do."""
    file: str
    function: str
    why: str = ""
    sometimes: bool = False
    texts: list = field(default_factory=list)

    @property
    def keys(self):
        return [(self.file, self.function, text) for text in self.texts]


# ------------------------------------------------------------ what ran

def counts(text):
    """{file: {line: how often it ran}} of what gcov prints as JSON: an object a row.

    An inline function and a copy of a function have rows of their own: they add up.
    """
    found = {}
    for row in text.splitlines():
        for file in json.loads(row)["files"]:
            lines = found.setdefault(os.path.normpath(re.sub(r"^(\.\./)+", "", file["file"])),
                                     Counter())
            for line in file["lines"]:
                lines[line["line_number"]] += line["count"]
    return found


def add(total, more):
    for file, lines in more.items():
        total.setdefault(file, Counter()).update(lines)


def read_counts(folders, objects):
    """The counts that guests left, added. objects: the folder the kernel was built in."""
    total = {}
    for folder in folders:
        for data in sorted(Path(folder).glob("*.gcda")):
            notes = list(Path(objects).glob(f"*/{data.stem}.gcno"))
            if len(notes) != 1:
                die(f"{objects} has {len(notes)} files {data.stem}.gcno, not one",
                    "build the kernel anew: tools/kernel/build patched debug+gcov")
            add(total, counts(_gcov(data, notes[0])))
    return total


def _gcov(data, notes):
    with tempfile.TemporaryDirectory() as folder:
        for path in (data, notes):
            (Path(folder) / path.name).symlink_to(path)
        return proc.output(["gcov", "--json-format", "--stdout", data.name], cwd=folder,
                           what=f"gcov cannot read {data}",
                           how="it must be of the gcc that built the kernel")


# ------------------------------------------------------------ what was added

def added(diff):
    """{file: {line in the new file: text}} of what a diff without context adds."""
    found, name, at = {}, None, 0
    for line in diff.splitlines():
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,\d+)? @@", line)
        if line.startswith("diff --git "):
            name = None
        elif name is None and line.startswith("+++ "):
            name = line.removeprefix("+++ b/")
        elif hunk:
            at = int(hunk[1])
        elif name and line.startswith("+"):
            found.setdefault(name, {})[at] = line[1:].strip()
            at += 1
    return found


def function_of(source, number):
    """The function that a line of a C file lies in."""
    return next((name for first, _, last, name in races.functions(source)
                 if first <= number <= last), "-")


def lines_of(tree, runs):
    """The added lines that are code, in order: gcov knows a number for them."""
    found = []
    for file, texts in sorted(added(git.git(tree, "diff", "-U0", "base")).items()):
        known = runs.get(file, {}) if CODE.match(file) else {}
        source = (Path(tree) / file).read_text() if known else ""
        found += [Line(file, function_of(source, number), number, text, known[number])
                  for number, text in sorted(texts.items()) if number in known]
    return found


# ------------------------------------------------------------ reasons

def reasons(text):
    """The reasons of a list:

    FILE FUNCTION
    why: what no test does (or sometimes: ...); more rows with why: go on
    	a line of the function, as it stands in the source
    """
    found = []
    for number, row in enumerate(text.splitlines(), 1):
        word, colon, rest = row.partition(": ")
        if not row.strip() or row.startswith("#"):
            continue
        if row[0].isspace():
            if not (found and found[-1].why):
                _bad(number, row, "a line of code comes after FILE FUNCTION and why:")
            found[-1].texts.append(row.strip())
        elif colon and word in (WHY, SOMETIMES):
            if not found or found[-1].texts:
                _bad(number, row, f"{word}: comes after FILE FUNCTION")
            found[-1].why = f"{found[-1].why} {rest.strip()}".strip()
            found[-1].sometimes |= word == SOMETIMES
        elif len(row.split()) == 2:
            found.append(Reason(*row.split()))
        else:
            _bad(number, row, "it is neither FILE FUNCTION nor why: nor a line of code "
                 "after a tab")
    return found


def _bad(number, row, what):
    die(f"{REASONS}, line {number}: '{row.strip()}': {what}", "mend that line")


@dataclass
class Judgement:
    """Lines that do not run: reasoned, with the Reason beside them, and bare, without.
    stale: (Reason, line of code, what is wrong with it)."""
    reasoned: list
    bare: list
    stale: list


def judge(lines, given):
    """A reason is for one line of code, however often its text comes in the function."""
    left = [(key, reason) for reason in given for key in reason.keys]
    reasoned, bare = [], []
    for line in lines:
        if line.runs:
            continue
        found = next((one for one in left if one[0] == line.key), None)
        if found:
            left.remove(found)
            reasoned.append((line, found[1]))
        else:
            bare.append(line)
    there = {line.key for line in lines}
    stale = [(reason, key[2], "it runs" if key in there else "the series adds no such line")
             for key, reason in left if not (reason.sometimes and key in there)]
    return Judgement(reasoned, bare, stale)


# ------------------------------------------------------------ the report

def _grouped(lines):
    """Lines by function, as text."""
    head, found = None, []
    for line in lines:
        if (line.file, line.function) != head:
            head = line.file, line.function
            found.append(f"{line.file} {line.function}")
        found.append(f"\t{line.text}")
    return found


def report(lines, found):
    """The text that is printed: files, lines that do not run, the sum."""
    text = []
    for file in dict.fromkeys(line.file for line in lines):
        here = [line for line in lines if line.file == file]
        text.append(f"{sum(line.runs > 0 for line in here):5} of {len(here):4} {file}")
    for reason in {id(reason): reason for _, reason in found.reasoned}.values():
        text += ["", f"not run: {reason.why}",
                 *_grouped(line for line, of in found.reasoned if of is reason)]
    if found.bare:
        text += ["", "NOT RUN, and no reason is given:", *_grouped(found.bare)]
    for reason, code, what in found.stale:
        text += ["", f"STALE REASON in {REASONS.name}, {what}:",
                 f"{reason.file} {reason.function}", f"\t{code}"]
    ran = sum(line.runs > 0 for line in lines)
    return "\n".join([*text, "", f"{ran} of {len(lines)} added lines run, "
                      f"{len(found.reasoned)} do not for a reason, "
                      f"{len(found.bare)} without one, {len(found.stale)} stale reasons"])
