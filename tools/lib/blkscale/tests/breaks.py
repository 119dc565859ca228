# SPDX-License-Identifier: GPL-2.0
"""The deliberate breaks for the kernel: patches that a guest test, or a row of
the promises, must notice."""
from .. import paths

FOLDER = paths.ROOT / "tools/tests/breaks"
TESTS, PROMISE = "Turns red", "Breaks a promise"


def facts(patch, word=TESTS):
    """(what is broken, what must notice) from the head of a patch; None for
    a patch of another kind."""
    head = dict(line.partition(": ")[::2]
                for line in patch.read_text().splitlines()[:2])
    return (head["Deliberate break"], head[word]) if word in head else None


def known(word=TESTS):
    """{name: patch}: for the patched kernel, or with PROMISE for base."""
    return {p.stem: paths.find(str(p.relative_to(paths.ROOT)))
            for p in sorted(FOLDER.glob("*.patch")) if facts(p, word)}
