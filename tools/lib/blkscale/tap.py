# SPDX-License-Identifier: GPL-2.0
"""Reading and writing test results: TAP, the kernel's selftest format.

    1..3
    ok 1 data is read back
    not ok 2 order is kept
    # what was wrong with it
    ok 3 zoned # SKIP the kernel has no zoned null_blk
Lines without number or plan will do (`ok data is read back`), and so does
`skip zoned: the kernel has none`.
"""
import re

_RESULT = re.compile(r"(not )?ok\b(?: +(\d+))?(?:[ :-]+(.*))?$")
_SKIP = re.compile(r"\s*#\s*skip\b:?\s*", re.I)
_PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*skip\b:?\s*(.*))?\s*$", re.I)


def parse(line):
    """(kind, name, why) of a line, kind one of ok, not ok, skip, plan, bail;
    None for any other line.  name is the number for a plan."""
    line = line.rstrip()
    found = _RESULT.match(line)
    if found:
        name, *why = _SKIP.split(found[3] or found[2] or "", maxsplit=1)
        if why and not found[1]:
            return "skip", name.strip() or found[2] or "", why[0]
        return ("not ok" if found[1] else "ok"), name.strip(), ""
    found = _PLAN.match(line)
    if found:
        if found[1] == "0" and found[2] is not None:
            return "skip", "all", found[2]
        return "plan", int(found[1]), ""
    if line.startswith("skip "):
        name, _, why = line[5:].partition(":")
        return "skip", name.strip(), why.strip()
    if line.startswith("Bail out!"):
        return "bail", line[9:].strip(), ""
    return None


class Tally:
    """The results of one program, read line by line."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.planned = None
        self.bailed = None
        self.wrong = []		# lines to show of what failed

    @property
    def seen(self):
        return self.passed + self.failed + self.skipped

    def add(self, line):
        """Count a line; returns parse() of it."""
        result = parse(line)
        kind = result and result[0]
        if kind == "ok":
            self.passed += 1
        elif kind == "not ok":
            self.failed += 1
        elif kind == "skip":
            self.skipped += 1
            if not result[2]:
                self.failed += 1
                self.skipped -= 1
                return "not ok", result[1], "skipped without a reason"
        elif kind == "plan":
            self.planned = (self.planned or 0) + result[1]
        elif kind == "bail":
            self.bailed = result[1] or "no reason given"
        return result

    def missing(self, status):
        """What is wrong with the program as a whole, or None."""
        ended = f"ended by signal {-status}" if status < 0 else \
            f"ended with {status}"
        if self.bailed:
            return f"gave up: {self.bailed}"
        if self.planned is not None and self.seen != self.planned:
            return f"{self.seen} results of {self.planned} planned; it {ended}"
        if status and not self.failed:
            return f"{ended} without a failed result"
        if not self.seen:
            return f"no result at all; it {ended}"
        return None


class Writer:
    """Prints numbered results."""

    def __init__(self, planned=None):
        self.count = self.failed = 0
        if planned is not None:
            print(f"1..{planned}", flush=True)

    def result(self, good, name, details="", skip=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} {name}"
              + (f" # SKIP {skip}" if skip else ""), flush=True)
        for line in str(details).splitlines():
            print(f"# {line}", flush=True)

    def status(self):
        return 1 if self.failed or not self.count else 0
