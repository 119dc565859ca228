# SPDX-License-Identifier: GPL-2.0
"""Whether a figure is worse, the same or better on one kernel than on another.

Every table asks this one judge. A side is a list of values, one of each boot: what a
kernel settles on when it boots all runs of that boot share.
"""
import math
import statistics
from dataclasses import dataclass
from functools import lru_cache

from ..measure.results import error

ENOUGH = 3		# boots of each kernel, or there is no verdict
CONFIRMED = 8		# boots of each kernel that confirm one
LEAST = 0.05		# a relative difference up to which figures are the same
ERRORS = 3		# standard errors by which means have to differ
# The order of the values, by chance. All values of one kernel beyond all of the other
# have this chance with 3 boots of each, so fewer boots can show nothing.
CHANCE = 1 / 20
TINY = 1e-3		# what a figure of 0 counts as in a ratio

WORSE, SAME, BETTER = 1, 0, -1
# How a table names what is worse: with enough boots to confirm it, and with fewer
SAYS_WORSE, SAYS_UNCONFIRMED = "WORSE", "worse, unconfirmed"


@dataclass(frozen=True)
class Rule:
    """What is good for a figure."""
    better: str = "more"	# or "less"
    toward: float = 0		# the value that was promised, instead
    least: float = LEAST
    none: float = 0		# a difference of the figure itself that is none


@dataclass(frozen=True)
class Verdict:
    looks: int			# WORSE, SAME or BETTER, however few the boots are
    boots: tuple		# of each side
    by: float			# how much worse, in logarithms
    chance: float		# of an order as bad, or as good, if nothing differs

    @property
    def enough(self):
        return min(self.boots) >= ENOUGH

    @property
    def confirmed(self):
        return min(self.boots) >= CONFIRMED

    @property
    def way(self):
        """WORSE, SAME or BETTER; None if there are not enough boots."""
        return self.looks if self.enough else None

    @property
    def unconfirmed(self):
        return self.way == WORSE and not self.confirmed

    def __str__(self):
        if not self.enough:
            return f"{self.boots[0]}+{self.boots[1]} boots"
        if self.unconfirmed:
            return f"{SAYS_UNCONFIRMED} ({odds(self.chance)})"
        return {WORSE: SAYS_WORSE, SAME: "same", BETTER: "better"}[self.way]


def odds(chance):
    """A probability in words: 1 in 20."""
    return f"1 in {1 / chance:.0f}"


def cost(rule, value):
    """The figure as a logarithm that is the better the less it is."""
    value = max(value, TINY)
    if rule.toward:
        return abs(math.log(value / rule.toward))
    return math.log(value) * (1 if rule.better == "less" else -1)


@lru_cache(maxsize=None)
def _share(ranks, size, least):
    """The share of all choices of so many ranks whose sum is at least this."""
    sums = [{0: 1}] + [{} for _ in range(size)]	# by number: {sum: choices}
    for rank in ranks:
        for number in range(size, 0, -1):
            for total, ways in sums[number - 1].items():
                total += rank
                sums[number][total] = sums[number].get(total, 0) + ways
    good = sum(ways for total, ways in sums[size].items() if total >= least)
    return good / math.comb(len(ranks), size)


def chance(low, high):
    """How likely the values of the second side are as high among all as they are here,
    if the sides do not differ: the exact rank sum test of Wilcoxon, one-sided. 1 of
    C(n + m, n) if all of them are above all of the first side's."""
    values = sorted([*low, *high])
    # twice the mean rank of equal values, so that all are whole numbers
    rank = {value: 2 * values.index(value) + values.count(value) + 1
            for value in values}
    return _share(tuple(rank[value] for value in values), len(high),
                  sum(rank[value] for value in high))


def verdict(base, patched, rule=Rule()):
    """The verdict on two sides, or None if one is empty.

    Worse or better is what differs by more than the least difference (medians), by more
    than three standard errors (means), and whose order is not by chance. Of two sides
    that do not differ, the last two call 2 in 100 worse with 3 boots each, and fewer
    than 1 in 100 with 8, whether the values scatter evenly or fall on one of two.
    (That no value of a side is among the other's would say the same of 3 boots, but of
    8 hardly anything: the more boots, the less likely.)
    """
    if not base or not patched:
        return None
    old, new = ([cost(rule, value) for value in side] for side in (base, patched))
    by = statistics.median(new) - statistics.median(old)
    shift = statistics.mean(new) - statistics.mean(old)
    if by < 0:
        old, new, shift = new, old, -shift
    found = chance(old, new)
    differs = abs(by) > math.log1p(rule.least) and \
        abs(statistics.median(patched) - statistics.median(base)) > rule.none and \
        shift > ERRORS * math.hypot(error(old), error(new)) and \
        (found <= CHANCE or min(len(old), len(new)) < ENOUGH)
    looks = SAME if not differs else WORSE if by > 0 else BETTER
    return Verdict(looks, (len(base), len(patched)), by, found)


def foot(verdicts):
    """What a table says below of its verdicts."""
    found = [v for v in verdicts if v]
    few = [v for v in found if not v.enough]
    unsure = [v for v in found if v.enough and not v.confirmed]
    lines = []
    if unsure:
        lines.append(
            f"Verdicts of fewer than {CONFIRMED} boots of a kernel are unconfirmed. Of "
            f"{counted(len(unsure), 'figure')} with so few boots, chance alone makes "
            f"{by_chance(len(unsure))} worse and as many better.")
    if few:
        how = sorted({f"{v}" for v in few})
        lines.append(f"{counted(len(few), 'figure')} without a verdict, for want of "
                     f"{ENOUGH} boots of each kernel ({', '.join(how)}).")
    return lines


def by_chance(figures):
    """How many of them the order of the boots makes worse if nothing differs."""
    return f"up to {figures * CHANCE:.1f}"


def counted(number, word):
    return f"{number} {word}{'' if number == 1 else 's'}"


def rule_text(least):
    """The rule in words, for below a table; least: the least difference in words."""
    return (f"Worse or better: medians differ by more than {least}, means by more than "
            f"{ERRORS} standard errors, and the order of the boots has a chance (in "
            f"brackets) of {odds(CHANCE)} at most if nothing differs.")
