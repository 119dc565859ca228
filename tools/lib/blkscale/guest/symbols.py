# SPDX-License-Identifier: GPL-2.0
"""Kernel addresses and names: System.map, and /proc/kallsyms for modules."""
import bisect
from pathlib import Path

TEXT = "tTwW"


class Symbols:
    """Functions by address."""

    def __init__(self, *files):
        found = {}
        for file in files:
            if Path(file).exists():
                found.update(_read(Path(file).read_text()))
        self.table = sorted(found.items())
        self.starts = [address for address, _ in self.table]
        self.by_name = {}
        for address, name in self.table:
            # The compiler may have made name.isra.0 of it.
            self.by_name.setdefault(name.split(".")[0], address)
            self.by_name[name] = address

    def address(self, name):
        return self.by_name.get(name)

    def extent(self, name):
        """Where a function begins, and where the next one does."""
        start = self.address(name)
        if not start:
            return 0, 0
        i = bisect.bisect_right(self.starts, start)
        return start, self.starts[i] if i < len(self.starts) else start + 4096

    def function(self, address):
        """The function that an address lies in."""
        if not address >> 63:
            return "[user]"
        i = bisect.bisect_right(self.starts, address) - 1
        return self.table[i][1] if i >= 0 else hex(address)


def _read(text):
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or words[1] not in TEXT:
            continue
        module = f" {words[3]}" if len(words) > 3 else ""
        yield int(words[0], 16), words[2] + module


def by_function(sites, symbols):
    """{function: [misses, ticks]} of a stretch's sites, the weightiest first
    by the larger of its shares."""
    total = {}
    for address, misses, ticks in sites:
        entry = total.setdefault(symbols.function(address), [0, 0])
        entry[0] += misses
        entry[1] += ticks
    sums = [max(1, sum(entry[i] for entry in total.values())) for i in (0, 1)]
    return dict(sorted(
        total.items(), reverse=True,
        key=lambda item: max(n / of for n, of in zip(item[1], sums))))
