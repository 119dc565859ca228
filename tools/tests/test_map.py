# SPDX-License-Identifier: GPL-2.0
"""The map, tools/README.md: who imports whom, and that it names all programs."""
import ast
import os
import re
import sys
import unittest

from blkscale import paths

TOOLS = paths.ROOT / "tools"
LIBRARY = TOOLS / "lib/blkscale"
MAP = (TOOLS / "README.md").read_text()
ROW = re.compile(r"^\| `([\w-]+)` \| .* \| ?([^|]*)\|$", re.M)
ALLOWED = {name: re.findall(r"`(\w+)`", rest) for name, rest in ROW.findall(MAP)}
COMMON, GUEST = "common", "-guest"


def is_python(path):
    return path.suffix == ".py" or path.is_file() and not path.suffix and \
        path.read_bytes().startswith(b"#!/usr/bin/env python3\n")


def packages():
    return sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))


def programs():
    """All that can be run, but for the selftests, which are the series'."""
    return sorted(str(path.relative_to(TOOLS)) for path in TOOLS.rglob("*")
                  if path.is_file() and os.access(path, os.X_OK)
                  and "testing" not in path.relative_to(TOOLS).parts)


def imports(source, package=None):
    """The packages of the library that a source imports from, `common` for what is in
    none, and the names of other libraries. package: the one that it lies in."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            words = (node.module or "").split(".") if node.module else []
            if node.level:
                inside = [] if package in (None, COMMON) else [package]
                words = ["blkscale", *inside[:len(inside) + 1 - node.level], *words]
            if words[0] != "blkscale":
                found.add(words[0])
            elif len(words) == 1:
                found |= {name.name if name.name in ALLOWED else COMMON
                          for name in node.names}
            else:
                found.add(words[1] if words[1] in ALLOWED else COMMON)
    return found


class ImportsTest(unittest.TestCase):
    def test_each_package_has_a_row(self):
        self.assertEqual(sorted(set(ALLOWED) - {COMMON, GUEST}), packages())

    def test_a_package_imports_from_rows_above_it(self):
        rows = list(ALLOWED)
        for name, allowed in ALLOWED.items():
            self.assertLessEqual(set(allowed), set(rows[:rows.index(name)]), name)

    def test_what_guests_import_needs_no_more(self):
        for name in ALLOWED[GUEST]:
            self.assertLessEqual(set(ALLOWED[name]), set(ALLOWED[GUEST]), name)

    def test_modules(self):
        for path in LIBRARY.rglob("*.py"):
            package = path.parent.name if path.parent != LIBRARY else COMMON
            found = imports(path.read_text(), package) - sys.stdlib_module_names
            with self.subTest(path=str(path.relative_to(LIBRARY))):
                self.assertLessEqual(found, {package, *ALLOWED[package]})

    def test_programs(self):
        for name in filter(lambda name: is_python(TOOLS / name), programs()):
            found = imports((TOOLS / name).read_text()) - sys.stdlib_module_names
            with self.subTest(name=name):
                self.assertLessEqual(found, set(ALLOWED[GUEST] if name.endswith(GUEST)
                                                else ALLOWED))

    def test_an_import_is_seen(self):
        for source, package, wanted in (
                ("from . import boot", "guest", {"guest"}),
                ("from .boot import run", "guest", {"guest"}),
                ("from .. import ui", "guest", {COMMON}),
                ("from ..ui import die", "guest", {COMMON}),
                ("from ..report import judge", "guest", {"report"}),
                ("def f():\n    from ..report.judge import Rule", "cases", {"report"}),
                ("from .ui import die", COMMON, {COMMON}),
                ("from .report import judge", COMMON, {"report"}),
                ("from blkscale import paths, report", None, {COMMON, "report"}),
                ("from blkscale.measure.results import Cell", None, {"measure"}),
                ("import json, requests.api", None, {"json", "requests"})):
            self.assertEqual(imports(source, package), wanted, source)


class MapTest(unittest.TestCase):
    def test_all_programs_are_named(self):
        for name in programs():
            # `-guest` of a program, `bench/X-guest`, is told in a line for all
            self.assertTrue(f"`{name}`" in MAP or f" {name} " in f"{MAP} " or
                            name.endswith(GUEST), name)

    def test_what_is_named_is_there(self):
        known = {path.name for path in TOOLS.rglob("*")}
        for name in re.findall(r"`((?:\w+/)*[\w-]+(?:\.\w+)?)`", MAP.partition("## Words")[0]):
            folders, _, last = name.rpartition("/")
            here = [top / name for top in (TOOLS, LIBRARY, paths.ROOT)]
            if folders and folders.split("/")[0] in {p.name for p in TOOLS.iterdir()}:
                self.assertTrue(any(path.exists() for path in here), name)
            elif last.endswith((".py", ".sh", ".md")):
                self.assertIn(last, known, name)

    def test_links(self):
        for link in re.findall(r"\]\(([^)#]+)\)", MAP):
            self.assertTrue((TOOLS / link).exists(), link)


if __name__ == "__main__":
    unittest.main()
