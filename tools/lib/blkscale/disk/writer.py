# SPDX-License-Identifier: GPL-2.0
"""What a guest program leaves behind: a file of cells, and one line a cell.

A cell is one workload on one device with one scheduler.  The host makes records of
them (measure/runs.py).
"""
import json
import os
from pathlib import Path

FILE = "cells.json"	# in $OUT


class Writer:
    """Keeps the file complete after every cell."""

    def __init__(self, out=None, show=True):
        self.path = Path(out or os.environ.get("OUT", ".")) / FILE
        self.cells = []
        self.show = show

    def add(self, workload, device, sched, values):
        self.cells.append({"workload": workload, "device": device,
                           "sched": sched, "values": values,
                           "release": os.uname().release})
        self.path.write_text(json.dumps(self.cells))
        if self.show:
            print(f"{workload}, {device}, {sched}: {brief(values)}",
                  flush=True)


def brief(values):
    """The figures of a cell in one short line."""
    words = [f"{values['iops']:.0f} IOPS"]
    for name, form in (("sys", "sys {:.1f} %"), ("lock", "lock share {:.3f}"),
                       ("merged", "merged {:.3f}"), ("kib", "{:.1f} KiB"),
                       ("doorbells", "{:.3f} doorbells a request")):
        if values.get(name) is not None:
            words.append(form.format(values[name]))
    return ", ".join(words)
