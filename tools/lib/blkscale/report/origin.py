# SPDX-License-Identifier: GPL-2.0
"""Where figures come from: lines for below a table."""
import re

from . import judge


def lines(records):
    """Where figures come from: one line for each run behind a table, and one for
    all runs that differ only in the cells they were to be of."""
    groups = {}
    for rec in records:
        command = re.sub(r" --(only|part) ('[^']*'|\S+)", "", rec["command"])
        groups.setdefault((rec.get("release"), rec.get("base"), command,
                           rec.get("clock")), []).append(rec)
    return [_line(*rest, found) for rest, found in groups.items()]


def _line(release, base, command, clock, found):
    dates = sorted({rec["date"] for rec in found})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    cpus = ", ".join(map(str, sorted({rec["cpus"] for rec in found})))
    kernels = sorted({rec["kernel"] for rec in found})
    commands = {rec["command"] for rec in found}
    if len(commands) == 1:
        (command,) = commands
    words = [f"Linux {release} ({', '.join(kernels)})"]
    if base != "-":
        words.append(f"base {base}")
    words += series_of(found)
    if clock == "counted":
        words.append("seconds of counted instructions")
    words += [f"{cpus} vCPUs" if base != "-" else f"{cpus} CPUs", when,
              f"`{command}`"]
    return "Measured: " + "; ".join(words)


def series_of(records):
    """`series ID`, each with the one that it was taken for, if it was."""
    found = {(rec["series"], rec.get("taken", "")) for rec in records
             if rec["kernel"] == "patched"}
    return [f"series {name}" + (f" ({taken})" if taken else "")
            for name, taken in sorted(found)]


def short(records):
    """One line for all, if there are any; RESULTS.md has the commands."""
    if not records:
        return []
    dates = sorted(rec["date"][:10] for rec in records)
    return ["Measured: " + "; ".join([
        f"Linux {', '.join(sorted({rec['release'] for rec in records}))}",
        *series_of(records),
        dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
        "commands below the tables"])]


def brief(records):
    """One line without ids of older series."""
    dates = sorted(rec["date"][:10] for rec in records)
    ids = {rec["series"]: "taken" in rec for rec in records if rec["kernel"] == "patched"}
    older = sum(ids.values())
    words = [f"series {name}" for name, taken in sorted(ids.items()) if not taken]
    words += [f"{judge.counted(older, 'older state')} of the series"] if older else []
    return [f"Measured: Linux {', '.join(sorted({rec['release'] for rec in records}))}; "
            f"{' and '.join(words)}; {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}"] \
        if records else []
