# SPDX-License-Identifier: GPL-2.0
"""The lockstep plugin: its arguments, and what it says."""
import os
import re
from dataclasses import dataclass, field

from ..cases import loads
from ..ui import die

PLUGIN = loads.path("manycore/lockstep.so")
# Without the flag HYPERVISOR the kernel takes its queued spinlocks; a halted
# vCPU would not tick.  The guest's clock runs on while its ticks crawl, so a
# minute without a grace period is no stall: the plugin looks for hangs.
CPU_MODEL = "max,-hypervisor"
APPEND = "idle=poll mitigations=off nokaslr quiet loglevel=5 "\
    "rcupdate.rcu_cpu_stall_suppress=1"

def build():
    """Compile the plugin and what runs in its guests; fast when done."""
    for name in ("load", "probe", PLUGIN.name):
        loads.build(f"manycore/{name}")


def arguments(log, symbols, **more):
    """The text for QEMU's -plugin.  MANYCORE_MODEL="miss=0,..." changes the
    model, which is for seeing the tests fail."""
    if "," in str(PLUGIN) + str(log):
        die(f"the path {PLUGIN.parent} has a comma in it",
            "QEMU cannot take it: use another folder (BUILD=)")
    words = [str(PLUGIN), f"log={log}", *events(symbols),
             *idle_loop(symbols)]
    words += [f"{name}={value}" for name, value in more.items()]
    words += [w for w in os.environ.get("MANYCORE_MODEL", "").split(",") if w]
    return ",".join(words)


def shared_clock(path):
    """QEMU's words for the page that the plugin's clock=PATH writes and the
    guest reads."""
    return ["-object", "memory-backend-file,id=clock,size=4096,share=on,"
            f"mem-path={path}", "-device", "ivshmem-plain,memdev=clock"]


def events(symbols):
    """What the plugin counts: runs of kblockd, and those a timer began."""
    timer = symbols.address("delayed_work_timer_fn")
    run = symbols.address("blk_mq_run_work_fn")
    if not timer or not run:
        return []
    return [f"event=rescued@{timer:x}@{run:x}", f"event=kblockd@{run:x}"]


def idle_loop(symbols):
    """Where idle vCPUs poll: they need no host time outside the stretch."""
    start, end = symbols.extent("cpu_idle_poll")
    return [f"idle={start:x}-{end:x}"] if start else []


@dataclass
class Stretch:
    """One measured stretch."""
    counts: dict
    sites: list = field(default_factory=list)	# (address, misses, ticks)


@dataclass
class Hang:
    after: int
    at: list			# an address for each vCPU


def _number(text):
    return float(text) if "." in text else int(text)


def parse(text):
    """(stretches, hang or None) of a plugin's log; what was cut off is left
    out."""
    stretches, hang, current = [], None, None
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "cell":
            pairs = re.findall(r"(\w+)=([\d.]+)", rest)
            current = Stretch({name: _number(v) for name, v in pairs})
        elif word == "site" and current:
            address, misses, ticks = rest.split()
            current.sites.append((int(address, 16), int(misses), int(ticks)))
        elif word == "end" and current:
            stretches.append(current)
            current = None
        elif word == "hung":
            facts = dict(pair.split("=") for pair in rest.split())
            hang = Hang(int(facts["after"]),
                        [int(a, 16) for a in facts["at"].split(",")])
    return stretches, hang
