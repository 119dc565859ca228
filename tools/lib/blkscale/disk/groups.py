# SPDX-License-Identifier: GPL-2.0
"""Cgroups of version 2 with bfq's weights."""
import subprocess

from .blockdev import put


def make(top, weights):
    """weights: [(folder below top, weight)], parents first."""
    if not top.is_dir():
        top.mkdir()
        subprocess.run(["mount", "-t", "cgroup2", "none", top], check=True)
        put(top / "cgroup.subtree_control", "+io")
    for name, weight in weights:
        group = top / name
        group.mkdir(exist_ok=True)
        put(group / "io.bfq.weight", weight)
        if any(other.startswith(f"{name}/") for other, _ in weights):
            put(group / "cgroup.subtree_control", "+io")


def remove(top, weights):
    for name, _ in reversed(weights):
        (top / name).rmdir()
