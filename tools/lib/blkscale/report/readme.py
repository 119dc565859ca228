# SPDX-License-Identifier: GPL-2.0
"""README.md: text from README.in, with two tables; RESULTS.md: text from RESULTS.in,
with all tables. Figures come from measured.json only.

Whoever edits the text edits README.in or RESULTS.in; whoever has measured runs
`tools/report/report --readme`.  check() proves that nothing else got in.
"""
import json
import os
import re

from .. import paths, ui
from ..measure import results
from . import origin, sections, svg, verdicts

FOLDER = paths.ROOT / "tools/report"
TEXT = FOLDER / "README.in"
RESULTS_TEXT = FOLDER / "RESULTS.in"
FIGURES = FOLDER / "measured.json"
README = paths.ROOT / "README.md"
RESULTS = FOLDER / "RESULTS.md"
SCALING = "scaling.svg"
ALT = {SCALING: "Throughput over CPUs, by scheduler and kernel"}
for device, name in svg.STUDIED.items():
    ALT[f"{name}-iops.svg"] = f"IOPS of {device} over the depth"
    ALT[f"{name}-p99.svg"] = f"Latency of {device} over the depth"
# Lines of README.in, in whose place what is gained and what is worse stand
MARK, WORSE = "<!-- measured -->", "<!-- worse -->"
# Lines of RESULTS.in: its list of contents, and all tables
CONTENTS, TABLES = "<!-- contents -->", "<!-- tables -->"
HOW = "run tools/report/report --readme"
NOTE = "<!-- Written by tools/report/report --readme; edit tools/report/{} instead. -->\n"


def shown(names, folder):
    """Pictures as Markdown in a file of a folder."""
    return [f"![{ALT[name]}]({os.path.relpath(FOLDER / name, folder)})\n"
            for name in names]


def gained(records):
    """What is gained, and the picture of it."""
    table = sections.gained(records)
    return "\n".join(([table.markdown(2)] if table else []) + shown(
        [name for name in svg.pictures(records) if name == SCALING], README.parent)) \
        or "Nothing measured yet: `make scaletest`.\n"


def worse(records):
    """What is worse."""
    return "\n".join(table.markdown(2) for table in verdicts.losses(records)) \
        or "No figure is worse than on 7.3.4.\n"


def contents(text):
    """A list of the sections of a Markdown text, with links."""
    titles = re.findall(r"(?m)^## (.*)$", text)
    return "".join(f"- [{title.removesuffix(', base -> patched')}](#{anchor(title)})\n"
                   for title in titles)


def anchor(title):
    """What GitHub calls a section."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def everything(records):
    """The pictures and all tables, for RESULTS.md."""
    return "\n".join([*shown(svg.pictures(records), RESULTS.parent),
                      *(table.markdown(2) for table in sections.tables(records))])


def filled(name, text, parts):
    """The text with parts {mark: content} in place of its marks."""
    for mark, part in parts.items():
        if text.count(mark) != 1:
            ui.die(f"{name} has not exactly one line {mark}",
                   "put it where the figures belong")
        text = text.replace(mark, part.rstrip())
    return NOTE.format(name) + text


def render(text, results_text, records):
    """{file: content} of README.md, RESULTS.md and the pictures, from the texts
    and the figures."""
    found = {FOLDER / name: picture
             for name, picture in svg.pictures(records).items()}
    whole = filled("RESULTS.in", results_text, {TABLES: everything(records)})
    found[RESULTS] = whole.replace(CONTENTS, contents(whole).rstrip())
    found[README] = filled("README.in", text, {MARK: gained(records), WORSE: worse(records)})
    return found


def lines(records):
    """JSON with a record a line: a new measurement can be read as a diff."""
    text = ",\n".join(json.dumps(rec, sort_keys=True) for rec in records)
    return f"[\n{text}\n]\n"


def write(records):
    kept = [r for r in records if r["kernel"] in ("base", "patched")
            and verdicts.is_steady(r)]
    kept.sort(key=lambda rec: (*results.cell(rec), rec["kernel"]))
    files = render(TEXT.read_text(), RESULTS_TEXT.read_text(), kept)
    FIGURES.write_text(lines(kept))
    for path, text in files.items():
        path.write_text(text)
    ui.note(f"wrote {README} and {RESULTS}")


def check():
    """0 if README.md, RESULTS.md and the pictures are what the figures give."""
    records = results.load(FIGURES) if FIGURES.exists() else []
    for path, text in render(TEXT.read_text(), RESULTS_TEXT.read_text(), records).items():
        if not path.exists() or path.read_text() != text:
            ui.die(f"{path.name} differs from {path.stem}.in and the measured "
                   "figures", HOW)
    return 0
