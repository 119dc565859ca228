# SPDX-License-Identifier: GPL-2.0
"""The load program of the selftests, which a benchmark uses, too."""
from .. import paths, proc

SELFTESTS = paths.ROOT / "tools/testing/selftests/block"
PROGRAM = paths.BUILD / "selftests/blkload"


def build():
    """Compile it below build/; returns its path."""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    proc.run(["cc", "-O2", "-Wall", "-Werror", "-o", PROGRAM,
              *sorted(SELFTESTS.glob("*.c")), "-lpthread"],
             log=PROGRAM.with_suffix(".log"),
             what="cannot compile blkload for the selftests")
    return PROGRAM
