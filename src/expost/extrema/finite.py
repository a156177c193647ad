"""The spread max ℓ - min ℓ over a finite domain: in doubles with certainty, or exactly.

Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.likelihood import LogLikelihood, Summand, rounded_sum_error
from expost.queries.term import Term, Weights
from expost.rounding import INFINITE, UNIT, Enclosure, Nats, down, up

__all__ = [
    "Candidate",
    "ExactSums",
    "enclose",
    "exact_spread",
    "signed",
    "spread",
    "spread_with",
]

# A block of two operands and a result stays in the second-level cache, so a pass reads each
# operand from memory once and writes nothing back.
_BLOCK = 1 << 15


def spread(total: LogLikelihood) -> Enclosure:
    """An enclosure of max ℓ - min ℓ, without a pass over the domain."""
    return enclose(total.highest, total.lowest, total.error)


def spread_with(total: LogLikelihood, term: Term, times: int = 1) -> Enclosure:
    """An enclosure of the spread of ℓ + times · term, in one pass over the domain."""
    if total.lowest == -math.inf:
        return Enclosure(math.inf, math.inf)
    logs, error = _repeated(term, times)
    highest, lowest = _extremes_of_sum(total.values, logs)
    error = rounded_sum_error(total.error, error, highest, lowest)
    return enclose(highest, lowest, error)


def _repeated(term: Term, times: int) -> tuple[NDArray[np.float64], float]:
    """The logarithms of a response that is given so many times, and their error."""
    if times == 1 or term.error == 0:  # without an error all logarithms are zero, or none
        return term.logs, term.error
    logs = term.logs * times
    largest = float(np.abs(logs[np.isfinite(logs)]).max())
    return logs, up(up(term.error * times) + UNIT * largest)


def enclose(highest: float, lowest: float, error: float) -> Enclosure:
    """An enclosure of a difference that is not negative, of two numbers within an error."""
    if lowest == -math.inf:
        return Enclosure(math.inf, math.inf)
    if highest == lowest and error == 0:
        return Enclosure(0.0, 0.0)
    difference = highest - lowest
    lower = down(down(difference) - 2 * error)
    return Enclosure(max(0.0, lower), up(up(difference) + 2 * error))


def _extremes_of_sum(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[float, float]:
    size = len(first)
    scratch = np.empty(min(size, _BLOCK))
    highest, lowest = -math.inf, math.inf
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        block = np.add(first[start:stop], second[start:stop], out=scratch[: stop - start])
        highest = max(highest, float(block.max()))
        lowest = min(lowest, float(block.min()))
    return highest, lowest


def exact_spread(total: LogLikelihood, extra: Summand | None = None) -> Nats:
    """max ℓ - min ℓ as an exact number, after some more responses if ``extra`` is given.

    Doubles single out the values that can be extreme; of those, one per likelihood class is
    compared exactly.
    """
    sums, error, summands = total.values, total.error, list(total.tally.values())
    if extra is not None:
        term = extra.query.on(total.domain).term(extra.position)
        logs, extra_error = _repeated(term, extra.times)
        sums = sums + logs
        error = rounded_sum_error(error, extra_error, float(sums.max()), float(sums.min()))
        summands.append(extra)
    if sums.min() == -math.inf:
        return INFINITE
    exact = ExactSums(total.domain, sums, error, summands)
    return Nats(ratio=exact.ratio(exact.extreme(1), exact.extreme(-1)))


class Candidate(NamedTuple):
    """A value, and its weights for the responses that were given."""

    value: int
    weights: tuple[int, ...] = ()


def signed(
    sums: NDArray[np.float64], sign: int, among: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """Sums or their negatives; what is not among these values is out of the race."""
    result = sums if sign > 0 else -sums
    return result if among is None else np.where(among, result, -np.inf)


@dataclass(frozen=True)
class ExactSums:
    """ℓ in doubles within an error, and as exact ratios where that is too coarse."""

    domain: FiniteSet
    sums: NDArray[np.float64]
    error: float
    summands: Sequence[Summand]

    def extreme(self, sign: int, among: NDArray[np.bool_] | None = None) -> Candidate:
        """A value with the largest (sign 1) or the smallest (sign -1) ℓ, exactly."""
        sums = signed(self.sums, sign, among)
        band = np.flatnonzero(sums >= down(float(sums.max()) - 2 * self.error))
        best, *others = self._classes(band)
        for other in others:
            if self.ratio(other, best) ** sign > 1:
                best = other
        return best

    def ratio(self, first: Candidate, second: Candidate) -> Fraction:
        """The likelihood of one value over that of another.

        Equal weights cancel before anything is multiplied.
        """
        powers: Counter[int] = Counter()
        for above, below, part in zip(first.weights, second.weights, self.summands, strict=True):
            powers[above] += part.times
            powers[below] -= part.times
        numerator = math.prod(weight**power for weight, power in powers.items() if power > 0)
        denominator = math.prod(weight**-power for weight, power in powers.items() if power < 0)
        return Fraction(numerator, denominator)

    def _classes(self, values: NDArray[np.intp]) -> list[Candidate]:
        """One of these values for each distinct row of weights.

        Nearly all values of a large domain can be tied, so classes are refined summand by summand
        and only one value of each is ever written out.
        """
        label, first = np.zeros(len(values), dtype=np.intp), np.zeros(1, dtype=np.intp)
        if len(values) > 1:
            for summand in self.summands:
                _, code = np.unique(self._weights(summand)[values], return_inverse=True)
                joint = label * (code.max() + 1) + code
                _, first, label = np.unique(joint, return_index=True, return_inverse=True)
        columns = [self._weights(summand)[values[first]].tolist() for summand in self.summands]
        rows = zip(*columns, strict=True) if columns else [()]
        return [
            Candidate(int(value), tuple(row))
            for value, row in zip(values[first], rows, strict=True)
        ]

    def _weights(self, summand: Summand) -> Weights:
        return summand.query.on(self.domain).weights(summand.position)
