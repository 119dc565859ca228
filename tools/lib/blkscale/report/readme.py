# SPDX-License-Identifier: GPL-2.0
"""README.md: text from README.in, with two tables; RESULTS.md: all of them.
Figures come from measured.json only.

Whoever edits the text edits README.in; whoever has measured runs
`tools/report/report --readme`.  check() proves that nothing else got in.
"""
import json
import os

from .. import paths, ui
from ..measure import results
from . import origin, sections, svg, verdicts

FOLDER = paths.ROOT / "tools/report"
TEXT = FOLDER / "README.in"
FIGURES = FOLDER / "measured.json"
README = paths.ROOT / "README.md"
RESULTS = FOLDER / "RESULTS.md"
SCALING = "scaling.svg"
ALT = {SCALING: "Throughput over CPUs, by scheduler and kernel"}
for device, name in svg.STUDIED.items():
    ALT[f"{name}-iops.svg"] = f"IOPS of {device} over the depth"
    ALT[f"{name}-p99.svg"] = f"Latency of {device} over the depth"
MARK = "<!-- measured -->"
HOW = "run tools/report/report --readme"


NVME = """The NVMe study's disk is nvme-loop, whose target lies in the guest: target and
driver take 4,900 of the 12,900 instructions of a write without a scheduler, so a
scheduler's part is smaller there than on a null_blk, but not hidden. In tick time
94 % of an I/O are the target's: that hides what the patched schedulers cost, not
what base's do.
"""
LEGEND = """Loads on many CPUs that README.md does not explain: groups-1:3 is in two cgroups
of weights 100 and 300, flash64 on a flash disk with 64 tags; disk-seqN are N sequential
writers of 4 KiB, one a submission, 32 in flight each, on a hard disk with 32 tags, and
disk8-seqN on one with 8. Both disks are one more vCPU, which takes the time that such a
disk would. Shares: `2 (1:3) : 1` are two groups of weights 2 and 1, the first with groups
of 1 and 3 in it, whose rates give the inner share. Nx1024 is a queue of 1024 tags for
each vCPU; QDn is a process with n requests in flight.
"""
NOTE = "<!-- Written by tools/report/report --readme{}. -->\n"


def shown(names, folder):
    """Pictures as Markdown in a file of a folder."""
    return [f"![{ALT[name]}]({os.path.relpath(FOLDER / name, folder)})\n"
            for name in names]


def measured(records):
    """The README's measured part: the picture, what is gained, what is worse, and how
    many verdicts there are."""
    parts = shown([name for name in svg.pictures(records) if name == SCALING],
                  README.parent)
    gained = sections.gained(records)
    if gained:
        parts.append(gained.markdown())
    parts += [table.markdown() for table in
              verdicts.worse(records, short=True)
              + verdicts.summary(records, origin.short(records), short=True)]
    return "\n".join(parts) or "Nothing measured yet: `make scaletest`.\n"


def everything(records):
    """RESULTS.md."""
    tables = [table.markdown(2) for table in sections.tables(records)]
    pictures = shown(svg.pictures(records), RESULTS.parent)
    return "\n".join([NOTE.format(""), "# Measured\n",
                      "All tables; how to read them is in README.md.\n",
                      LEGEND, NVME,
                      *pictures, *tables])


def render(text, records):
    """{file: content} of README.md, RESULTS.md and the pictures, from the text
    and the figures."""
    if text.count(MARK) != 1:
        ui.die(f"{TEXT} has not exactly one line {MARK}",
               "put it where the figures belong")
    note = NOTE.format("; edit tools/report/README.in instead")
    found = {FOLDER / name: picture
             for name, picture in svg.pictures(records).items()}
    found[RESULTS] = everything(records)
    found[README] = note + text.replace(MARK, measured(records).rstrip())
    return found


def lines(records):
    """JSON with a record a line: a new measurement can be read as a diff."""
    text = ",\n".join(json.dumps(rec, sort_keys=True) for rec in records)
    return f"[\n{text}\n]\n"


def write(records):
    kept = [r for r in records if r["kernel"] in ("base", "patched")
            and verdicts.is_steady(r)]
    kept.sort(key=lambda rec: (*results.cell(rec), rec["kernel"]))
    files = render(TEXT.read_text(), kept)
    FIGURES.write_text(lines(kept))
    for path, text in files.items():
        path.write_text(text)
    ui.note(f"wrote {README} and {RESULTS}")


def check():
    """0 if README.md, RESULTS.md and the pictures are what the figures give."""
    records = results.load(FIGURES) if FIGURES.exists() else []
    for path, text in render(TEXT.read_text(), records).items():
        if not path.exists() or path.read_text() != text:
            ui.die(f"{path.name} differs from README.in and the measured "
                   "figures", HOW)
    return 0
