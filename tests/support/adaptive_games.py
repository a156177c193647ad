"""All adaptive analysts against a filter, in rational numbers.

An analyst sees every response and every decision, and asks the next query or stops. For two values
x and x' the worst event has the excess

    Σ over leaves  max(0, P_x(leaf) - e^ε P_x'(leaf)) ,

a sum over leaves, so that the best analyst is found by backward induction: at every node the query
whose children are worth most. A filter keeps (ε, δ) iff no pair of values is worth more than δ.
Refusals are functions of the transcript, and add nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

Event = tuple[int, int]
"""A query and its response, by their positions."""
History = tuple[Event, ...]
Accepts = Callable[[History, int], bool]
"""Whether a filter accepts a query after a history."""


@dataclass(frozen=True)
class Channel:
    """Pr(response | value) = weight / total: a column per response, with a weight per value."""

    columns: tuple[tuple[int, ...], ...]
    total: int

    @classmethod
    def of(cls, columns: Sequence[Sequence[Fraction]]) -> Channel:
        """The same probabilities over a common denominator."""
        total = math.lcm(*(p.denominator for column in columns for p in column))
        return cls(tuple(tuple(int(p * total) for p in column) for column in columns), total)


@dataclass(frozen=True)
class Game:
    """Queries, each on offer so many times, and e^ε of the budget.

    The filter is told what happened in the order in which it happened if that is ``ordered``, and
    else sorted, which is a much smaller game.
    """

    channels: tuple[Channel, ...]
    times: tuple[int, ...]
    ratio: Fraction
    ordered: bool = False

    def value(self, accepts: Accepts) -> Fraction:
        """The largest excess that any analyst reaches, over all pairs of values."""
        values = range(len(self.channels[0].columns[0]))
        pairs = itertools.permutations(values, 2)
        return max(self.value_for(accepts, value, other) for value, other in pairs)

    def value_for(self, accepts: Accepts, value: int, other: int) -> Fraction:
        """The same for one value against another.

        All numbers are integers over one denominator: the totals of all that may be asked.
        """
        top, bottom = self.ratio.as_integer_ratio()
        known: dict[History, int] = {}

        def worth(history: History, left: tuple[int, ...], p: int, q: int, scale: int) -> int:
            if history in known:
                return known[history]
            # What it is worth to stop. Where something is accepted, to go on is worth no less.
            best = max(0, bottom * p - top * q) * scale
            for query, channel in enumerate(self.channels):
                if not left[query] or not accepts(history, query):
                    continue
                after = (*left[:query], left[query] - 1, *left[query + 1 :])
                total = 0
                for response, column in enumerate(channel.columns):
                    if column[value]:
                        then = self._then(history, (query, response))
                        likely, unlikely = p * column[value], q * column[other]
                        total += worth(then, after, likely, unlikely, scale // channel.total)
                best = max(best, total)
            known[history] = best
            return best

        whole = math.prod(c.total**t for c, t in zip(self.channels, self.times, strict=True))
        return Fraction(worth((), self.times, 1, 1, whole), bottom * whole)

    def _then(self, history: History, event: Event) -> History:
        longer = (*history, event)
        return longer if self.ordered else tuple(sorted(longer))


def coin(odds: Fraction) -> Channel:
    """Randomized response on two values."""
    m, n = odds.as_integer_ratio()
    return Channel(((m, n), (n, m)), m + n)


def repeated(odds: Fraction, times: int, ratio: Fraction) -> Fraction:
    """The excess of so many equal randomized responses, by binomial sums."""
    m, n = odds.as_integer_ratio()
    top, bottom = ratio.as_integer_ratio()
    excess = sum(
        math.comb(times, k)
        * max(0, bottom * m**k * n ** (times - k) - top * n**k * m ** (times - k))
        for k in range(times + 1)
    )
    return Fraction(excess, bottom * (m + n) ** times)


def exponential(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals below and above e^ε, closer than 1e-30, for ε up to 20: its series, cut off."""
    term = total = Fraction(1)
    for n in range(1, 120):
        term *= epsilon / n
        total += term
    # From here on every term is less than a fifth of the one before.
    return total, total + term
