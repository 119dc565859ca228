# SPDX-License-Identifier: GPL-2.0
"""The programs that make the load, and the plugin that counts: compiled below build/,
where a guest finds them, too."""
import os
import shutil

from .. import paths, proc
from ..ui import die

# Below build/: the folder of the sources, and what the compiler is told there.
_PROGRAMS = {
    "bench/tasks": ("tools/bench", ["-Wextra", "tasks.c"]),
    "bench/files": ("tools/bench", ["-Wextra", "files.c"]),
    "manycore/load": ("tools/manycore", ["load.c"]),
    "manycore/probe": ("tools/manycore", ["probe.c"]),
    "manycore/lockstep.so": ("tools/manycore", [
        "-shared", "-fPIC", "-fvisibility=hidden", "lockstep.c", "count.c"]),
    "selftests/blkload": ("tools/testing/selftests/block", [
        "-Werror", "blkload.c", "data.c", "io.c", "watch.c"]),
    "selftests/ublkmem": ("tools/testing/selftests/block", ["-Werror", "ublkmem.c"]),
}


def path(name):
    return paths.BUILD / name


def build(name):
    """Compile a program if it is older than its sources; returns its path."""
    compiler = os.environ.get("CC", "gcc")
    if not shutil.which(compiler):
        die(f"no C compiler '{compiler}'", "run tools/setup")
    folder, words = _PROGRAMS[name]
    source, target = paths.ROOT / folder, path(name)
    newest = max(file.stat().st_mtime for file in source.glob("*.[ch]"))
    if target.exists() and target.stat().st_mtime > newest:
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}")
    proc.run([compiler, "-O2", "-Wall", "-pthread", *words, "-o", part], cwd=source,
             log=target.with_name(f"{target.name}.log"), what=f"cannot compile {name}")
    part.rename(target)
    return target
