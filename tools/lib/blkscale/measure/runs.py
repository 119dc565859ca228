# SPDX-License-Identifier: GPL-2.0
"""Alternating boots of the kernels, and the records of what their guests measured."""
import json
import threading
from pathlib import Path

from .. import ui
from ..disk import writer
from ..guest import boot
from ..ui import die, note
from . import results

SIDES = ("base", "patched")

# counted: the guest's time is the instructions it has executed, on one host
# thread, and idle time is skipped.  A disk of 8 ms then takes 8 ms of the
# guest's work whatever else the host does: figures repeat within 2 % where
# those by the host's clock swing by 40 %.  Only for what a single CPU at a
# time can show: no two vCPUs run at once.
CLOCKS = {"counted": "counted", "host": "auto"}


def merge(boots, what, command, cpus, clock="host"):
    """Records from [(kernel, cells), ...]: medians over the boots."""
    runs, releases = {}, {}
    for kernel, cells in boots:
        for cell in cells:
            name = results.Cell(what, cell["workload"], cell["device"], cell["sched"],
                                cpus)
            runs.setdefault((name, kernel), []).append(cell["values"])
            releases[kernel] = cell["release"]
    return [results.record(cell, kernel, results.medians(values), command,
                           release=releases[kernel], runs=values, clock=clock)
            for (cell, kernel), values in runs.items()]


def order(kernels, boots):
    """base patched, patched base, ...: neither always has the warm machine."""
    turns = []
    for turn in range(boots):
        turns += kernels if turn % 2 == 0 else kernels[::-1]
    return turns


def rounds(kernels, boots, clock):
    """[[kernel, ...], ...]: what runs at the same time, round by round.  With
    counted time the guests do not disturb each other's figures."""
    if clock == "counted":
        return [list(kernels)] * boots
    return [[kernel] for kernel in order(list(kernels), boots)]


def measure(what, job, args, kernels, boots, command, cpus, expected, config,
            clock="host", append="", devices=(), timeout=1200, trace=None):
    """Alternating boots of the kernels; returns the file of the records."""
    plan = [(f"{what}: round {number}, {' and '.join(turn)}", turn)
            for number, turn in enumerate(rounds(kernels, boots, clock), 1)]
    steps = ui.Steps([(title, expected) for title, _ in plan])
    measured = []
    for title, turn in plan:
        with steps.step(title):
            measured += together(turn, lambda kernel: one_boot(
                kernel, config, job, args, cpus, clock, append, devices,
                timeout, trace))
    path = results.add(merge(measured, what, command, cpus, clock), what)
    steps.finish(f"{what}: {path}")
    return path


def together(kernels, work):
    """[(kernel, work(kernel)), ...], all at once; ends as the first that
    fails.  Daemons: an interrupt ends the program and with it the guests."""
    done, failed = {}, []

    def one(kernel):
        try:
            done[kernel] = work(kernel)
        except SystemExit as end:
            failed.append(end)
    threads = [threading.Thread(target=one, args=(kernel,), daemon=True)
               for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not failed:
            thread.join(0.2)
    if failed:
        raise failed[0]
    return [(kernel, done[kernel]) for kernel in kernels]


def one_boot(kernel, config, job, args, cpus, clock="host", append="",
             devices=(), timeout=1200, trace=None, tell=None, accel=None,
             host_cpus=None):
    """Boot a kernel for a guest job that writes cells; returns these."""
    result = boot.run(kernel=kernel, config=config, job=job, args=args,
                      cpus=cpus, accel=accel or CLOCKS[clock], append=append,
                      devices=devices, timeout=timeout, silent=300,
                      trace=trace, host_cpus=host_cpus,
                      on_output=tell or (lambda text: _indent(kernel, text)))
    if result.trouble:
        note(f"error: kernel {kernel}: {result.trouble}")
        raise SystemExit(boot.TROUBLE_STATUS)
    if result.status:
        words = result.log.read_text(errors="replace").strip().splitlines()
        die(f"the guest job failed on kernel {kernel}: "
            f"{words[-1].removeprefix('error: ') if words else 'no output'}",
            f"see {result.log}")
    return json.loads((result.out / writer.FILE).read_text())


def _indent(kernel, text):
    for line in text.splitlines():
        note(f"      {kernel}: {line}")


def kernels(text):
    """--kernels base,patched as a list; ends the program if one is unknown."""
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names
               if name not in SIDES and not Path(name, "Kbuild").exists()]
    if not names or unknown:
        die(f"--kernels {text}: not known",
            f"use {','.join(SIDES)}, one of them, or source trees")
    return names
