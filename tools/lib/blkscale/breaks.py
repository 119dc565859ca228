# SPDX-License-Identifier: GPL-2.0
"""The deliberate breaks for the kernel: patches that a guest test must notice."""
from . import paths

FOLDER = paths.ROOT / "tools/tests/breaks"


def facts(patch):
    """(what is broken, tests that must turn red) from the head of a patch;
    None for a patch that is not one for the kernel."""
    head = dict(line.partition(": ")[::2]
                for line in patch.read_text().splitlines()[:2])
    if "Turns red" in head:
        return head["Deliberate break"], head["Turns red"].split()
    return None


def known():
    """{name: patch}"""
    return {p.stem: p for p in sorted(FOLDER.glob("*.patch")) if facts(p)}

