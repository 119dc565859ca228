# SPDX-License-Identifier: GPL-2.0
"""The many-core measurement: cells, their boots, and records."""
from dataclasses import dataclass, field

from .. import paths
from ..cases.workloads import (HOST_TAGS, HOST_TAGS_APPEND, HOTPLUG, POSSIBLE,
                               TICK_DISK, WORKLOADS, device, load_arguments, options)
from ..guest import boot, lockstep
from ..guest.symbols import Symbols, by_function
from . import results

JOB = paths.ROOT / "tools/manycore/run-guest"
HANG = 60		# seconds of the host's clock without a batch of I/O


@dataclass(frozen=True)
class KernelCell:
    """A cell on one kernel."""
    workload: str
    sched: str
    cpus: int		# that carry load
    kernel: str

    @property
    def place(self):
        """Cells of one place are measured in one boot."""
        return self.kernel, self.cpus, WORKLOADS[self.workload].machine

    @property
    def cell(self):
        return results.Cell("manycore", self.workload,
                            WORKLOADS[self.workload].device, self.sched, self.cpus)

    def __str__(self):
        return f"{self.workload} {self.sched}"


@dataclass
class Outcome:
    values: dict = None
    profile: dict = field(default_factory=dict)
    trouble: str = None
    runs: list = None		# the values behind the medians
    boots: list = None		# how many of them each boot gave


def places(cells):
    """[(place, cells)] in the order of the first cell of each."""
    found = {}
    for cell in cells:
        found.setdefault(cell.place, []).append(cell)
    return list(found.items())


# ------------------------------------------------------------- one boot

def plan_text(cells, scale):
    """The guest's plan; a cell's name is its number."""
    lines = []
    for number, cell in enumerate(cells):
        workload = WORKLOADS[cell.workload]
        lines.append("|".join([
            str(number), device(workload, cell.cpus), cell.sched,
            workload.weights, options(workload),
            load_arguments(workload, cell.cpus, scale)]))
    return "\n".join(lines) + "\n"


def parse_job(text):
    """({cell: [what was counted in a lap, or None]}, {cell: why}, last cell
    begun) of a job's log."""
    done, failed, begun = {}, {}, None
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        number, _, rest = rest.partition(" ")
        if word not in ("begin", "done", "failed") or not number.isdigit():
            continue
        if word == "begin":
            begun = int(number)
        elif word == "done":
            done[int(number)] = [
                None if lap == "warm-up" else
                dict(zip(COUNTED, map(int, lap.split(","))))
                for lap in rest.split()]
        else:
            failed[int(number)] = rest or "the guest says nothing"
    return done, failed, begun


# What the program load says of a run
COUNTED = ("ticks", "ios", "writes", "merged", "sectors", "first")


def merging(counted):
    """Merged share and KiB a request of the writes."""
    writes, merged = counted["writes"], counted["merged"]
    return {"merged": merged / (writes + merged),
            "kib": counted["sectors"] / 2 / writes} if writes else {}


def figures(cell, counted, counts):
    """The values of a run: what load and what the plugin counted."""
    ios, ticks = counted["ios"], counted["ticks"]
    values = {"ios": ios, "ticks": ticks,
              "ios_per_mtick": ios / ticks * 1e6 if ticks else 0,
              "misses_per_io": counts["misses"] / ios,
              "atomics_per_io": counts["atomics"] / ios,
              "longest_quiet_kticks": counts["quiet"] / 1e3,
              "skews_per_mtick": counts["skews"] / ticks * 1e6 if ticks else 0,
              "wall": counts["wall"]}
    if "rescued" in counts:
        values["rescued"] = counts["rescued"]
        values["kblockd_per_io"] = counts["kblockd"] / ios
    workload = WORKLOADS[cell.workload]
    if workload.merges:
        values.update(merging(counted))
    if len(workload.weights.split()) > 1:
        values["share"] = counted["first"] / ios
    return values


def combine(outcomes):
    """One outcome of a cell that was measured in several boots."""
    failed = [o for o in outcomes if o.trouble]
    if failed:
        return failed[0]
    both = outcome_of([run for o in outcomes for run in o.runs],
                      outcomes[0].profile)
    both.boots = [len(o.runs) for o in outcomes]
    return both


def outcome_of(runs, profile):
    values = results.medians(runs)
    values["spread"] = results.spread([r["ios_per_mtick"] for r in runs])
    return Outcome(values, profile, runs=runs, boots=[len(runs)])


def kernel_symbols(kernel, config, out=None):
    extra = [out / "modules.symbols"] if out else []
    return Symbols(paths.system_map(kernel, config), *extra)


# For a guest whose CPUs go in step the host's clock runs a thousand times too
# fast: bfq takes microseconds for the pauses of a process, mq-deadline finds
# every request expired.  Jiffies go with the timers, 4 ms every 4 million ticks.
# The tick disk has a time of its own, in which a seek is some 50,000 ticks:
# beside it the host's clock is about right.
SLOW_CLOCK = "clocksource=jiffies highres=off nohz=off"


def machine(cells):
    """boot.run()'s arguments for the machine that the cells want."""
    _, cpus, kind = cells[0].place
    append = lockstep.APPEND
    if kind == HOST_TAGS:
        append = f"{append} {HOST_TAGS_APPEND.format(cpus=cpus)}"
    if kind == TICK_DISK:
        return {"cpus": cpus + 1, "append": f"{append} isolcpus={cpus}"}
    if kind == HOTPLUG:
        cpus = f"{cpus},maxcpus={POSSIBLE}"
    return {"cpus": cpus, "append": f"{append} {SLOW_CLOCK}"}


def boot_once(cells, config="small", scale=1.0, profile=False, tell=None,
              **plugin):
    """Measure cells of one place in one boot: {cell: outcome} of all that the
    boot settled.  The cell in which a guest hung or died has failed; those
    after it are not in the outcome."""
    kernel = cells[0].kernel
    out = boot.fresh_out("manycore")
    (out / "plan").write_text(plan_text(cells, scale))
    clock = out / "clock"
    arguments = lockstep.arguments(
        out / "plugin.log", kernel_symbols(kernel, config),
        profile=int(profile), clock=clock, **{"hang": HANG, **plugin})
    module = paths.obj(kernel, config) / "ours/tickdisk.ko"
    result = boot.run(
        kernel=kernel, config=config, job=JOB, args=[module],
        plugin=arguments, out=out, cpu_model=lockstep.CPU_MODEL,
        timeout=None, silent=400, on_output=tell,
        more=lockstep.shared_clock(clock), **machine(cells))
    return settle(cells, result, kernel_symbols(kernel, config, out))


def settle(cells, result, symbols):
    text = (result.out / "job.log")
    done, failed, begun = parse_job(
        text.read_text(errors="replace") if text.exists() else "")
    log = result.out / "plugin.log"
    stretches, hang = lockstep.parse(log.read_text() if log.exists() else "")
    outcome, rest = {}, iter(stretches)
    for number in sorted(done):
        cell = cells[number]
        found = [pair for pair in zip(done[number], rest) if pair[0]]
        outcome[cell] = outcome_of(
            [figures(cell, counted, s.counts) for counted, s in found],
            by_function([site for _, s in found for site in s.sites],
                        symbols))
    for number, why in failed.items():
        outcome[cells[number]] = Outcome(trouble=f"{why}; see {result.log}")
    open_cell = begun if begun is not None else 0
    if (result.trouble or hang) and cells[open_cell] not in outcome:
        why = hang_text(hang, symbols) if hang else result.trouble
        outcome[cells[open_cell]] = Outcome(
            trouble=f"{why}; see {result.console}")
    elif result.trouble:	# a complaint of the kernel, after a good cell
        outcome[cells[open_cell]].trouble = result.trouble
    elif result.status:
        outcome.setdefault(cells[open_cell], Outcome(
            trouble=f"the guest's job ended with {result.status}; "
                    f"see {result.log}"))
    return outcome


def hang_text(hang, symbols):
    where = {}
    for address in hang.at:
        name = symbols.function(address)
        where[name] = where.get(name, 0) + 1
    places = ", ".join(f"{n} in {name}" for name, n in
                       sorted(where.items(), key=lambda item: -item[1])[:4])
    return f"no I/O ended for {hang.after}s (vCPUs: {places})"


def measure(cells, tell=None, **how):
    """All cells of a place; a guest that hangs is started again for the rest.
    {cell: outcome}.  tell(cells) gives what is called with a guest's output."""
    outcome, left = {}, list(cells)
    while left:
        settled = boot_once(left, tell=tell and tell(left), **how)
        if not settled:
            settled = {left[0]: Outcome(trouble="the guest did nothing")}
        outcome.update(settled)
        left = [cell for cell in left if cell not in outcome]
    return outcome


# ------------------------------------------------------------- records

def records(outcome, command):
    found = []
    for cell, got in outcome.items():
        if got.trouble or not got.values:
            continue
        record = results.record(cell.cell, cell.kernel, got.values, command,
                                runs=got.runs, boots=got.boots)
        if got.profile:		# of all runs
            record["profile"] = {
                name: {"misses": m, "ticks": t}
                for name, (m, t) in list(got.profile.items())[:60]}
        found.append(record)
    return found
