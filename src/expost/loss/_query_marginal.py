"""The worst case of a query on a finite domain, from ℓ as the query sees it.

A query about a part of a record sees many records as one. What counts of these are the largest and
the smallest ℓ; on a plain set both are ℓ itself. Values that no response of a query tells apart are
in one class. For randomized response and its relatives four values decide, whatever the number of
classes: the extremes of ℓ, and those outside of the class of the first two. Proofs:
docs/theory/filters.md, docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.filters import WorstCase
from expost.loss._log_likelihood import cap_loss
from expost.numbers import INFINITE, UNIT, Enclosure, Nats, blocks, down, up
from expost.queries import BySufficientTerms, FiniteLikelihood, Pairwise, Query
from expost.tally import Summand
from expost.terms import Term

__all__ = [
    "Candidate",
    "ExactExtremes",
    "QueryMarginal",
    "ToldFrom",
    "enclose",
    "exact_worst_spread",
    "repeated",
    "rounded_sum_error",
    "signed",
    "widest_pair",
]


class Candidate(NamedTuple):
    """The index of a value, and the powers by which its likelihood differs from a reference."""

    value: int
    powers: Counter[int]


class ExactExtremes(Protocol):
    """The exact extremes of ℓ as a query sees it."""

    @property
    def is_infinite(self) -> bool:
        """Whether the responses rule a value out."""

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """Return a value with the largest ℓ and one with the smallest, of these values."""

    def difference(self, first: Candidate, second: Candidate) -> Nats:
        """Return by how much the largest ℓ of one value exceeds the smallest of another."""


def signed(
    sums: NDArray[np.float64], sign: int, among: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """Return sums or their negatives, with values outside ``among`` at minus infinity."""
    result = sums if sign > 0 else -sums
    return result if among is None else np.where(among, result, -np.inf)


#: Returns the values that a query distinguishes from one value: those outside its class.
ToldFrom = Callable[[int], NDArray[np.bool_]]


def widest_pair(
    highs: NDArray[np.float64], lows: NDArray[np.float64], told_from: ToldFrom
) -> tuple[int, int]:
    """Find two distinguishable values whose high and low doubles differ most.

    If no values can be distinguished, return those of the largest high and the smallest low.
    """

    def extremes(among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        if among is None:  # nothing of the size of the domain is copied in the usual case
            high, low = highs.argmax(), lows.argmin()
        else:
            high, low = signed(highs, 1, among).argmax(), signed(lows, -1, among).argmax()
        return Candidate(int(high), Counter()), Candidate(int(low), Counter())

    def width(pair: tuple[int, int]) -> float:
        return float(highs[pair[0]]) - float(lows[pair[1]])

    pairs = _widest_pairs(extremes, told_from)
    return max(((high.value, low.value) for high, low in pairs), key=width)


def exact_worst_spread(exact: ExactExtremes, told_from: ToldFrom, epsilon: Nats) -> Nats:
    """Return max ℓ(x) - ℓ(x') over all pairs, plus epsilon where the query distinguishes them."""
    if exact.is_infinite:
        return INFINITE
    pairs = _widest_pairs(exact.extremes, told_from)
    (high, _), (_, low) = pairs[0], pairs[-1]
    return max(exact.difference(high, low), *(exact.difference(*pair) + epsilon for pair in pairs))


class _Extremes(Protocol):
    def __call__(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """Return a value with the largest ℓ and one with the smallest, of these values."""


def _widest_pairs(extremes: _Extremes, told_from: ToldFrom) -> list[tuple[Candidate, Candidate]]:
    """Return one or two pairs that include a widest distinguishable pair.

    If both extremes are in one class, a pair has one of them and a value outside that class.
    """
    high, low = extremes()
    distinguishable = told_from(high.value)
    if distinguishable[low.value] or not distinguishable.any():
        return [(high, low)]
    highest, lowest = extremes(distinguishable)
    return [(high, lowest), (highest, low)]


# A block of two operands and a result stays in the second-level cache, so a pass reads each
# operand from memory once and writes nothing back.
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class QueryMarginal:
    """The largest and the smallest ℓ of the values that a query cannot distinguish.

    Both are doubles within an error; ``highs`` and ``lows`` are one array on a plain set.
    """

    highs: Floats
    lows: Floats
    error: float
    #: max ℓ - min ℓ now.
    loss: Enclosure
    #: Returns max ℓ(x) - ℓ(x') exactly, plus an epsilon for distinguishable values.
    exact_worst: Callable[[ToldFrom, Nats], Nats]
    #: Returns max ℓ - min ℓ exactly, after a response is repeated.
    exact_with: Callable[[Summand], Nats]

    def worst_after(self, query: Query, likelihood: FiniteLikelihood, times: int) -> WorstCase:
        """Bound the loss after a query is asked several times, at worst over responses.

        D of several responses is the sum of theirs, so one response that repeats is the worst.
        """
        if isinstance(likelihood, Pairwise):
            return self._worst_pair(likelihood, times)
        assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
        return self._worst_term(query, likelihood, times)

    def _worst_pair(self, likelihood: Pairwise, times: int) -> WorstCase:
        # D is epsilon for values that can be distinguished, and zero for others.
        high, low = widest_pair(self.highs, self.lows, likelihood.separated_from)
        # Their difference is not negative: of a pair and its reverse, one is not.
        widest = enclose(float(self.highs[high]), float(self.lows[low]), self.error)
        now, epsilon = self.loss, likelihood.epsilon
        wide = cap_loss(widest, now) + epsilon.enclosure * times
        return WorstCase(
            Enclosure(max(now.lower, wide.lower), max(now.upper, wide.upper)),
            exact=lambda: self.exact_worst(likelihood.separated_from, epsilon * times),
            response=likelihood.responses[likelihood.separating_response(high, low)],
        )

    def _worst_term(self, query: Query, likelihood: BySufficientTerms, times: int) -> WorstCase:
        losses = {i: self.spread_with(likelihood.term(i), times) for i in likelihood.sufficient}
        lower = max(loss.lower for loss in losses.values())
        upper = max(loss.upper for loss in losses.values())

        def exact() -> Nats:
            # A response whose loss is surely below that of another one cannot be the worst.
            candidates = [i for i, loss in losses.items() if loss.upper >= lower]
            return max(self.exact_with(Summand(query, i, times)) for i in candidates)

        worst = next(i for i, loss in losses.items() if loss.upper == upper)
        return WorstCase(Enclosure(lower, upper), exact, likelihood.responses[worst])

    def spread_with(self, term: Term, times: int = 1) -> Enclosure:
        """Enclose the spread of ℓ + times · term, in one pass over the values."""
        if self.loss.lower == math.inf:
            return self.loss
        logs, error = repeated(term, times)
        highest, lowest = _extremes_of_sum(self.highs, logs)
        if self.lows is not self.highs:
            lowest = float(np.min(self.lows + logs))
        return enclose(highest, lowest, rounded_sum_error(self.error, error, highest, lowest))


def rounded_sum_error(first: float, second: float, highest: float, lowest: float) -> float:
    """Bound the error of sums between these extremes, from the errors of their parts."""
    magnitude = max(abs(highest), abs(lowest))
    if magnitude == math.inf:
        magnitude = abs(highest) if math.isfinite(highest) else 0.0
    return 0.0 if first == second == magnitude == 0 else up(up(first + second) + UNIT * magnitude)


def enclose(highest: float, lowest: float, error: float) -> Enclosure:
    """Enclose a difference that is not negative, of two numbers within an error."""
    if lowest == -math.inf:
        return Enclosure(math.inf, math.inf)
    if highest == lowest and error == 0:
        return Enclosure(0.0, 0.0)
    difference = highest - lowest
    return Enclosure(max(0.0, down(down(difference) - 2 * error)), up(up(difference) + 2 * error))


def repeated(term: Term, times: int) -> tuple[Floats, float]:
    """Return the logarithms of a repeated response, and their error."""
    if times == 1 or term.error == 0:  # without an error all logarithms are zero, or none
        return term.logs, term.error
    logs = term.logs * times
    largest = float(np.abs(logs[np.isfinite(logs)]).max())
    return logs, up(up(term.error * times) + UNIT * largest)


def _extremes_of_sum(first: Floats, second: Floats) -> tuple[float, float]:
    size = len(first)
    scratch = np.empty(min(size, _BLOCK))
    highest, lowest = -math.inf, math.inf
    for rows in blocks(size, _BLOCK):
        block = np.add(first[rows], second[rows], out=scratch[: rows.stop - rows.start])
        highest = max(highest, float(block.max()))
        lowest = min(lowest, float(block.min()))
    return highest, lowest
