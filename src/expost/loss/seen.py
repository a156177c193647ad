"""What a query on a finite domain can lead to at worst, from ℓ as the query sees it.

A query about a part of a record sees many records as one. What counts of these are the largest and
the smallest ℓ; on a plain set both are ℓ itself. Proofs: docs/theory/filters.md,
docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expost._types import Floats
from expost.filters import WorstCase
from expost.loss.pairs import ToldFrom, widest_pair
from expost.loss.shares import capped
from expost.numbers import UNIT, Enclosure, Nats, down, up
from expost.queries import FiniteLikelihood, Query
from expost.queries.likelihood import BySufficientTerms
from expost.queries.values.pairwise import Pairwise
from expost.terms import Term
from expost.transcript import Summand

__all__ = ["Seen", "enclose", "repeated", "rounded_sum_error"]


# A block of two operands and a result stays in the second-level cache, so a pass reads each
# operand from memory once and writes nothing back.
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Seen:
    """ℓ as a query sees it: for all values that it cannot tell apart, the largest and the smallest.

    Both are doubles within an error; ``highs`` and ``lows`` are one array on a plain set.
    """

    highs: Floats
    lows: Floats
    error: float
    loss: Enclosure
    """max ℓ - min ℓ now."""
    exact_apart: Callable[[ToldFrom, Nats], Nats]
    """max ℓ(x) - ℓ(x'), plus an amount for values that can be told apart, exactly."""
    exact_with: Callable[[Summand], Nats]
    """max ℓ - min ℓ after some more responses, exactly."""

    def worst_after(self, query: Query, likelihood: FiniteLikelihood, times: int) -> WorstCase:
        """The loss after a query that is asked so many times, at worst over responses.

        D of several responses is the sum of theirs, so the worst that can happen is one response
        over and over.
        """
        if isinstance(likelihood, Pairwise):
            return self._worst_pair(likelihood, times)
        assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
        return self._worst_term(query, likelihood, times)

    def _worst_pair(self, likelihood: Pairwise, times: int) -> WorstCase:
        # D is epsilon for values that can be told apart, and zero for others.
        high, low = widest_pair(self.highs, self.lows, likelihood.told_from)
        # Their difference is not negative, for of a pair and its reverse one is not.
        widest = enclose(float(self.highs[high]), float(self.lows[low]), self.error)
        now, epsilon = self.loss, likelihood.epsilon
        apart = capped(widest, now) + epsilon.enclosure * times
        return WorstCase(
            Enclosure(max(now.lower, apart.lower), max(now.upper, apart.upper)),
            exact=lambda: self.exact_apart(likelihood.told_from, epsilon * times),
            response=likelihood.responses[likelihood.telling(high, low)],
        )

    def _worst_term(self, query: Query, likelihood: BySufficientTerms, times: int) -> WorstCase:
        losses = {i: self.spread_with(likelihood.term(i), times) for i in likelihood.sufficient}
        lower = max(loss.lower for loss in losses.values())
        upper = max(loss.upper for loss in losses.values())

        def exact() -> Nats:
            # A response whose loss is surely below that of another one need not be looked at.
            candidates = [i for i, loss in losses.items() if loss.upper >= lower]
            return max(self.exact_with(Summand(query, i, times)) for i in candidates)

        worst = next(i for i, loss in losses.items() if loss.upper == upper)
        return WorstCase(Enclosure(lower, upper), exact, likelihood.responses[worst])

    def spread_with(self, term: Term, times: int = 1) -> Enclosure:
        """An enclosure of the spread of ℓ + times · term, in one pass over the values."""
        if self.loss.lower == math.inf:
            return self.loss
        logs, error = repeated(term, times)
        highest, lowest = _extremes_of_sum(self.highs, logs)
        if self.lows is not self.highs:
            lowest = float(np.min(self.lows + logs))
        return enclose(highest, lowest, rounded_sum_error(self.error, error, highest, lowest))


def rounded_sum_error(first: float, second: float, highest: float, lowest: float) -> float:
    """The error of sums between these extremes whose parts have these errors."""
    magnitude = max(abs(highest), abs(lowest))
    if magnitude == math.inf:
        magnitude = abs(highest) if math.isfinite(highest) else 0.0
    return 0.0 if first == second == magnitude == 0 else up(up(first + second) + UNIT * magnitude)


def enclose(highest: float, lowest: float, error: float) -> Enclosure:
    """An enclosure of a difference that is not negative, of two numbers within an error."""
    if lowest == -math.inf:
        return Enclosure(math.inf, math.inf)
    if highest == lowest and error == 0:
        return Enclosure(0.0, 0.0)
    difference = highest - lowest
    lower = down(down(difference) - 2 * error)
    return Enclosure(max(0.0, lower), up(up(difference) + 2 * error))


def repeated(term: Term, times: int) -> tuple[Floats, float]:
    """The logarithms of a response that is given so many times, and their error."""
    if times == 1 or term.error == 0:  # without an error all logarithms are zero, or none
        return term.logs, term.error
    logs = term.logs * times
    largest = float(np.abs(logs[np.isfinite(logs)]).max())
    return logs, up(up(term.error * times) + UNIT * largest)


def _extremes_of_sum(first: Floats, second: Floats) -> tuple[float, float]:
    size = len(first)
    scratch = np.empty(min(size, _BLOCK))
    highest, lowest = -math.inf, math.inf
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        block = np.add(first[start:stop], second[start:stop], out=scratch[: stop - start])
        highest = max(highest, float(block.max()))
        lowest = min(lowest, float(block.min()))
    return highest, lowest
