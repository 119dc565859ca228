# SPDX-License-Identifier: GPL-2.0
"""What has to be there before something can be measured or tested."""
import subprocess
import sys

from .. import paths, proc

TOOLS = paths.ROOT / "tools"


def _kernel(kernel, config):
    # A second tree starts from the first one's objects.
    cold = {"base debug": 800, "base small": 480, "patched debug+kasan": 1000,
            "patched debug+kcsan": 1200,
            "patched debug+rt": 900}.get(f"{kernel} {config}", 150)
    there = paths.bzimage(kernel, config)
    return (f"build the {kernel} kernel ({config})",
            lambda: 30 if there.exists() else cold,
            ["kernel/build", kernel, config])


def _unless(path, cold, done=2):
    return lambda: done if path.exists() else cold


# name -> (title, expected seconds, program below tools/)
PARTS = {
    "setup": ("install missing packages",
              lambda: 3 if paths.BUILD.exists() else 100, ["setup"]),
    "base": ("fetch and unpack the base kernel",
             _unless(paths.TREES["base"], 180), ["base"]),
    "qemu": ("find or fetch QEMU",
             _unless(paths.SHARED / "qemu", 40), ["qemu"]),
    "tree": ("apply the series", lambda: 5, ["series", "tree"]),
    "base small": _kernel("base", "small"),
    "patched small": _kernel("patched", "small"),
    "base debug": _kernel("base", "debug"),
    "patched debug": _kernel("patched", "debug"),
    "patched debug+kasan": _kernel("patched", "debug+kasan"),
    "patched debug+kcsan": _kernel("patched", "debug+kcsan"),
    "patched debug+rt": _kernel("patched", "debug+rt"),
}


def title(name):
    return PARTS[name][0]


def plan(names):
    """(title, seconds) of parts, for Steps."""
    return [(PARTS[name][0], PARTS[name][1]()) for name in names]


def run(name, steps):
    """Do a part as a step; returns its exit status.  The program has said on
    stderr what was wrong."""
    words = PARTS[name][2]
    with steps.step(title(name)):
        return call(steps, *words)


def call(steps, program, *args, timeout=None, stdout=None):
    """Run one of our programs as part of the present step; its status.

    What it prints is progress (stderr), unless it is our own result."""
    process = subprocess.Popen(
        [sys.executable, TOOLS / program, *map(str, args)],
        stdin=subprocess.DEVNULL, stdout=stdout or sys.stderr,
        env=steps.environment(), start_new_session=True)
    try:
        return process.wait(timeout)
    finally:
        proc.kill_group(process)
