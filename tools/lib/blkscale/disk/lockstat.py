# SPDX-License-Identifier: GPL-2.0
"""The share of CPU time that is spent waiting for spinning locks."""
from pathlib import Path

FILE = Path("/proc/lock_stat")
SWITCH = Path("/proc/sys/kernel/lock_stat")
# Waiting for these is sleep, not CPU time.
SLEEPING = ("mutex", "sem", "mmap_lock", "uring_lock", "i_rwsem", "_rwsem",
            "vm_lock", "elevator_lock", "limits_lock")


def available():
    return FILE.exists()


def reset():
    SWITCH.write_text("1\n")
    FILE.write_text("0\n")


def parse(text):
    """Microseconds waited, by lock class (`-R`, `-W` and `/1` joined)."""
    waited = {}
    for line in text.splitlines():
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        if not colon or len(words) < 10 or "[<" in rest:
            continue
        name = name.strip()
        for suffix in ("-R", "-W"):
            name = name.removesuffix(suffix)
        name = name.split("/")[0]
        try:
            waited[name] = waited.get(name, 0) + float(words[4])
        except ValueError:
            continue
    return waited


def share(text, cpus, seconds):
    """Share of all CPU time spent spinning, and the worst lock's name."""
    spun = {name: us for name, us in parse(text).items()
            if not any(word in name for word in SLEEPING)}
    worst = max(spun, key=spun.get, default=None)
    total = sum(spun.values()) / (cpus * seconds * 1e6)
    return {"lock": round(min(total, 1), 4),
            "lock_name": worst if worst and spun[worst] else None}
