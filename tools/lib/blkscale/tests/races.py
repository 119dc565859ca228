# SPDX-License-Identifier: GPL-2.0
"""Data races that KCSAN reports, and whose they are."""
import re
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..guest.kernel_log import plain
from ..prepare import git

KNOWN = paths.ROOT / "tools/tests/races"	# those that base has as well
DEPTH = 3		# innermost functions of an access that may count as its place
KERNEL = re.compile(r"block/|lib/sbitmap|include/linux/(?:blk|sbitmap)")
LAYER = "block/*.c"		# the outermost function that counts is in one of these

_HEAD = re.compile(r"BUG: KCSAN: \S.* in (\S+(?: / \S+)?)$")
_RULE = "=" * 20
_ACCESS = re.compile(r"(?:race at unknown origin, with )?(?:read|write|read-write|assert)\b.* "
                     r"(?:to|by) ")
_FRAME = re.compile(r" *([\w.]+)\+0x[0-9a-f]+/0x")
_SUFFIX = re.compile(r"\.(?:isra|part|constprop|cold)\b.*|\+0x.*")
# A definition begins in the first column and is no declaration.
_BEGINS = re.compile(r"(?:[A-Za-z_].*?\b)?([A-Za-z_]\w*)\(")


@dataclass
class Race:
    """One report. pair: the two functions as KCSAN names them; accesses: the innermost
    functions of each access; text: its lines."""
    pair: str
    accesses: list
    text: str

    def places(self, layer):
        """The functions where the accesses are: up to the first one of the layer,
        helpers that it calls included."""
        found = set(self.pair.split(" / "))	# all there is of one that was cut off
        for names in self.accesses:
            for name in names:
                found.add(name)
                if name in layer:
                    break
        return found


def _race(pair, lines):
    accesses, left = [], 0
    for line in lines[1:]:
        frame = _FRAME.match(line)
        if _ACCESS.match(line):
            accesses.append([])
            left = DEPTH
        elif frame and left:
            accesses[-1].append(_SUFFIX.sub("", frame[1]))
            left -= 1
    pair = " / ".join(_SUFFIX.sub("", name) for name in pair.split(" / "))
    return Race(pair, accesses, "\n".join(lines))


def find(text):
    """The reports in a console log, one of each pair of functions."""
    found, pair, lines = {}, None, []
    for line in map(plain, text.replace("\r", "").splitlines()):
        head = _HEAD.match(line)
        if pair and (head or line.startswith(_RULE)):
            found.setdefault(pair, _race(pair, lines))
            pair = None
        if head:
            pair, lines = head[1], []
        if pair and line:
            lines.append(line)
    if pair:		# the guest ended in it
        found.setdefault(pair, _race(pair, lines))
    return list({race.pair: race for race in found.values()}.values())


# ------------------------------------------------ what the series changes

def functions(text):
    """(first line, that of the bracket, last line, name) of the functions that a C
    file defines."""
    found, begun, body = [], None, 0
    for number, line in enumerate(text.splitlines(), 1):
        begins = _BEGINS.match(line)
        if line.startswith("{"):
            body = number
        if line.startswith("}"):
            if begun:
                found.append((begun[0], max(body, begun[0]), number, begun[1]))
            begun = None
        elif line.endswith(";") and not line[:1].isspace():
            begun = None
        elif begins and not line.startswith(("typedef", "struct {")):
            begun = (number, begins[1])
        elif begun and line[:1].isspace() and line.endswith(");") and number == begun[0] + 1:
            begun = None	# the rest of a declaration
    return found


def _changed_lines(diff):
    """{file: numbers of lines in it} that a diff without context adds, or beside
    which it takes some away."""
    found, name = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            name = line[6:]
        at = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if at and name:
            first, count = int(at[1]), int(at[2] or 1)
            found.setdefault(name, set()).update(range(first, first + max(count, 1)))
    return found


def layer(tree):
    """The functions of the block layer."""
    return {name for path in Path(tree).glob(LAYER)
            for *_, name in functions(path.read_text())}


def symbols(kernel_map):
    """The functions that stand in a System.map, so are not inlined, as a whole."""
    return {re.sub(r"\.(?:isra|constprop)\..*", "", name)
            for name in re.findall(r"(?m) [tT] (\S+)$", Path(kernel_map).read_text())}


def changed(tree, outlined=()):
    """The functions whose body the series adds or changes, and those that call one of
    them that may be inlined. outlined: those that are not."""
    lines = _changed_lines(git.git(tree, "diff", "-U0", "base"))
    names, static = set(), set()
    sources = {name: (Path(tree) / name).read_text() for name in lines
               if KERNEL.match(name) and name.endswith((".c", ".h"))}
    for name, text in sources.items():
        rows = text.splitlines()
        for first, body, last, function in functions(text):
            if lines[name].intersection(range(body, last + 1)):
                names.add(function)
                if "static" in rows[first - 1].split("(")[0] and \
                        function not in outlined:
                    static.add(function)
    inlined = re.compile(rf"\b(?:{'|'.join(sorted(static)) or '(?!)'})\(")
    for text in sources.values():
        rows = text.splitlines()
        names |= {function for first, _, last, function in functions(text)
                  if inlined.search("\n".join(rows[first:last]))}
    return names


# ------------------------------------------------------------ the list

def known(path=KNOWN):
    """{pair: text} of the reports that base gives as well: a line with the pair,
    and the text below it, indented."""
    found, pair = {}, None
    for line in Path(path).read_text().splitlines() if Path(path).exists() else []:
        if line[:1].isspace() and pair:
            found[pair] += line[1:] + "\n"
        elif line and not line.startswith("#"):
            pair = line
            found[pair] = ""
    return found


def record(races, path=KNOWN):
    """Add reports of a run on base to the list; returns how many were new."""
    path, there = Path(path), known(path)
    fresh = [race for race in races if race.pair not in there]
    text = path.read_text() if path.exists() else ""
    for race in fresh:
        body = "".join(f"\t{line}\n" for line in race.text.splitlines()[1:])
        text += f"\n{race.pair}\n{body}"
    if fresh:
        path.write_text(text)
    return len(fresh)


def judge(races, ours, there, functions_of_layer):
    """(those in functions of the series, those that base has too, others)."""
    both = [race for race in races if race.pair in there]
    rest = [race for race in races if race.pair not in there]
    bad = [race for race in rest if race.places(functions_of_layer) & ours]
    return bad, both, [race for race in rest if race not in bad]
