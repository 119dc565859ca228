# SPDX-License-Identifier: GPL-2.0
"""README.md: text from README.in, figures only from measured.json.

Whoever edits the text edits README.in; whoever has measured runs
`tools/report/report --readme`.  check() proves that nothing else got in.
"""
import json
import os

from . import paths, report, results, svg, ui

FOLDER = paths.ROOT / "tools/report"
TEXT = FOLDER / "README.in"
FIGURES = FOLDER / "measured.json"
README = paths.ROOT / "README.md"
SCALING = "scaling.svg"
ALT = {SCALING: "Throughput over CPUs, by scheduler and kernel"}
for device, name in svg.STUDIED.items():
    ALT[f"{name}-iops.svg"] = f"IOPS of {device} over the depth"
    ALT[f"{name}-p99.svg"] = f"Latency of {device} over the depth"
MARK = "<!-- measured -->"
HOW = "run tools/report/report --readme"


def measured(records):
    """The measured part: picture and main tables, the rest folded; and the
    pictures."""
    pictures = svg.pictures(records)
    scaling = report.manycore(records)
    first = scaling[:1] + report.slowdisk(records)
    rest = scaling[1:] + report.parts(records) + report.plug(records) \
        + report.fio(records)
    study = report.nvme_study(records)
    shown = {name: f"![{ALT[name]}]"
                   f"({os.path.relpath(FOLDER / name, README.parent)})\n"
             for name in pictures}
    parts = [shown.pop(SCALING)] if SCALING in shown else []
    parts += [table.markdown() for table in first]
    if study:
        parts.append("<details><summary>NVMe study</summary>\n")
        parts += [*shown.values(), study[0].markdown()]
        parts.append("</details>\n")
    if rest:
        parts.append("<details><summary>Other workloads and devices</summary>"
                     "\n")
        parts += [table.markdown() for table in rest]
        parts.append("</details>\n")
    return "\n".join(parts) or "Nothing measured yet: `make scaletest`.\n", \
        pictures


def render(text, records):
    """README.md and the pictures, from the text and the figures."""
    if text.count(MARK) != 1:
        ui.die(f"{TEXT} has not exactly one line {MARK}",
               "put it where the figures belong")
    body, pictures = measured(records)
    note = "<!-- Written by tools/report/report --readme; " \
           "edit tools/report/README.in instead. -->\n"
    return note + text.replace(MARK, body.rstrip()), pictures


def write(records):
    kept = [r for r in records if r["kernel"] in ("base", "patched")
            and report.is_steady(r)]
    text, pictures = render(TEXT.read_text(), kept)
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    README.write_text(text)
    for name, picture in pictures.items():
        (FOLDER / name).write_text(picture)
    ui.note(f"wrote {README}")


def check():
    """0 if README.md and its picture are what the figures give."""
    records = results.load(FIGURES) if FIGURES.exists() else []
    text, pictures = render(TEXT.read_text(), records)
    if not README.exists() or README.read_text() != text:
        ui.die("README.md differs from README.in and the measured figures",
               HOW)
    for name, picture in pictures.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != picture:
            ui.die(f"{name} differs from the measured figures", HOW)
    return 0
