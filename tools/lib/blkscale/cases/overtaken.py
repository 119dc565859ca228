# SPDX-License-Identifier: GPL-2.0
"""Who overtook whom, from the trace of a disk's requests.

A request comes with its first event: it is inserted into the scheduler, or is
about to be issued without that (block_rq_direct; its issue where the kernel has
no such event). It waits until the driver keeps it: until its last issue.

A request that was inserted is overtaken by each request that came after it and
was issued before it:
- `direct`: by those that the scheduler has never held. They did not wait for
  its choice, so it cannot have put them first;
- `all`: by those, and by those that the scheduler has chosen. Its order of
  sectors, priorities and budgets is in this figure: base is what it compares
  with.

Left out: flushes, which have no sectors; a request that was merged into another
one and so was never issued; requests that begin at the same sector at the same
time, since an event may be of either.
What a request waits for in a software queue before it is inserted is not seen.
"""
import math
import re
from bisect import bisect_left, insort
from dataclasses import dataclass

EVENTS = ("block_rq_insert", "block_rq_direct", "block_rq_issue",
          "block_rq_requeue", "block_rq_complete", "block_rq_merge",
          "block_bio_frontmerge")
LOST = re.compile(r"\[LOST .*EVENTS\]")
LINE = re.compile(r" (\d+): (block_\w+): .* (\d+) \+ (\d+) ")
UNCLEAR = 0.01	# the share of requests that may be left out


class BadTrace(ValueError):
    """A trace that says too little to be judged."""


@dataclass
class Request:
    came: int
    inserted: bool = False
    issued: int = None		# the place of its last issue
    ended: int = None
    returned: bool = False	# by the driver, and not issued again yet
    twins: int = 0		# others that began at the same sector meanwhile
    unclear: bool = False	# which of them an event was of


class Reader:
    """The requests of a trace: `live` by sector, then `ended`."""

    def __init__(self):
        self.live, self.ended, self.unclear = {}, [], 0
        self.place = self.clock = 0

    def feed(self, line):
        if LOST.search(line):
            raise BadTrace("events were lost")
        found = LINE.search(line)
        if not found:
            return
        clock, event, sector, sectors = found.groups()
        if int(clock) < self.clock:
            raise BadTrace("events are not in the order of time")
        self.clock = int(clock)
        self.place += 1
        if int(sectors):
            getattr(self, event)(int(sector), int(sectors))

    def _request(self, sector, another):
        """That of a sector; another(rq): an event of rq it cannot be."""
        rq = self.live.get(sector)
        if not rq:
            rq = self.live[sector] = Request(self.place)
        elif another(rq):
            rq.twins += 1
            rq.unclear = True
        return rq

    def block_rq_insert(self, sector, _):
        self._request(sector, lambda rq: not rq.returned).inserted = True

    def block_rq_direct(self, sector, _):
        self._request(sector, lambda rq: True)

    def block_rq_issue(self, sector, _):
        rq = self._request(sector, lambda rq: rq.issued and not rq.unclear)
        rq.issued, rq.returned = self.place, False

    def block_rq_requeue(self, sector, _):
        rq = self.live.get(sector)
        if rq:
            rq.issued, rq.returned = None, True

    def block_rq_complete(self, sector, _):
        rq = self.live.get(sector)
        if not rq:
            return
        self.unclear += rq.unclear
        if rq.twins:
            rq.twins -= 1
            return
        del self.live[sector]
        rq.ended = self.place
        if not rq.unclear:
            self.ended.append(rq)

    def block_rq_merge(self, sector, _):
        self.live.pop(sector, None)

    def block_bio_frontmerge(self, sector, sectors):
        """The request that begins where the bio ends begins with the bio."""
        if sector + sectors in self.live:
            self.live[sector] = self.live.pop(sector + sectors)

    def requests(self):
        """All of them in the order in which they came."""
        if self.live:
            raise BadTrace(f"{len(self.live)} requests have no end")
        found = sorted(self.ended, key=lambda rq: rq.came)
        if not all(rq.issued for rq in found):
            raise BadTrace("requests have ended that were not issued")
        if self.unclear > UNCLEAR * (len(found) + self.unclear):
            raise BadTrace(f"{self.unclear} of {len(found) + self.unclear} "
                           "requests began where others did")
        return found


def read(lines, ios=None):
    """The requests of a trace that tells all; BadTrace if it does not.  ios: how
    many requests the disk says that it has done."""
    reader = Reader()
    for line in lines:
        reader.feed(line)
    requests = reader.requests()
    seen = len(requests) + reader.unclear
    if ios not in (None, seen):
        raise BadTrace(f"the disk has done {ios} requests, the trace has {seen}")
    return requests


def counts(requests):
    """[(direct, all)]: by how many each inserted request was overtaken.  The
    requests are in the order in which they came."""
    found, direct, every = [], [], []
    for rq in reversed(requests):	# in the lists: who came later
        if rq.inserted:
            found.append((bisect_left(direct, rq.issued),
                          bisect_left(every, rq.issued)))
        else:
            insort(direct, rq.issued)
        insort(every, rq.issued)
    return found[::-1]


def newcomers(requests):
    """How many were issued directly while one that was inserted before them
    waited."""
    latest = number = 0
    for rq in requests:
        if rq.inserted:
            latest = max(latest, rq.issued)
        else:
            number += rq.issued < latest
    return number


def in_flight(requests):
    """How many the driver has after each issue."""
    ends = sorted(rq.ended for rq in requests)
    return [number - bisect_left(ends, issued) for number, issued in
            enumerate(sorted(rq.issued for rq in requests), 1)]


def percentile(values, share):
    """The least of the values that as many are not above."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else 0


def figures(requests):
    """What is told of a cell, of the half of the requests that came last: the
    load has settled by then."""
    in_driver = percentile(in_flight(requests), .5)
    requests = requests[len(requests) // 2:]
    found = counts(requests)
    waited = len(found)
    told = {"requests": len(requests), "in_flight": in_driver,
            "inserted": _share(waited, len(requests)),
            "newcomers": _share(newcomers(requests), waited)}
    for place, who in enumerate(("direct", "all")):
        values = [count[place] for count in found]
        told |= {f"{who}_most": max(values, default=0),
                 f"{who}_p99": percentile(values, .99),
                 f"{who}_share": _share(sum(map(bool, values)), waited)}
    return told


def _share(part, whole):
    return round(part / whole, 4) if whole else 0
