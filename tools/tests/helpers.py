# SPDX-License-Identifier: GPL-2.0
"""What several tests of the tools use."""
import contextlib
import importlib.machinery
import importlib.util
import io
import sys
import time
from pathlib import Path

from blkscale import paths


def program(path):
    """A program without suffix, as a module."""
    path = paths.ROOT / path
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(path.name, loader))
    sys.modules[path.name] = module		# dataclasses look there
    loader.exec_module(module)
    return module


def error_of(function, *args, **kwargs):
    """(what it printed on stderr, exit status) of a call that must end."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            function(*args, **kwargs)
    except SystemExit as end:
        return said.getvalue(), end.code
    raise AssertionError("it did not end the program")


def gone(pid, seconds=10):
    """Whether a process ends; a killed one may take a moment."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
