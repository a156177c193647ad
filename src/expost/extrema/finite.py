"""The spread max ℓ - min ℓ over a finite domain: in doubles with certainty, or exactly.

Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.likelihood import LogLikelihood, Summand, rounded_sum_error
from expost.queries.term import Term, Weights
from expost.rounding import INFINITE, Enclosure, Nats, down, up

__all__ = ["exact_spread", "spread", "spread_with"]

# A block of two operands and a result stays in the second-level cache, so a pass reads each
# operand from memory once and writes nothing back.
_BLOCK = 1 << 15


def spread(total: LogLikelihood) -> Enclosure:
    """An enclosure of max ℓ - min ℓ, without a pass over the domain."""
    return _enclose(total.highest, total.lowest, total.error)


def spread_with(total: LogLikelihood, term: Term) -> Enclosure:
    """An enclosure of the spread of ℓ + term, in one pass over the domain."""
    if total.lowest == -math.inf:
        return Enclosure(math.inf, math.inf)
    highest, lowest = _extremes_of_sum(total.values, term.logs)
    error = rounded_sum_error(total.error, term.error, highest, lowest)
    return _enclose(highest, lowest, error)


def _enclose(highest: float, lowest: float, error: float) -> Enclosure:
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
    """max ℓ - min ℓ as an exact number, after one more response if ``extra`` is given.

    Doubles single out the values that can be extreme; of those, one per likelihood class is
    compared exactly.
    """
    values, error = total.values, total.error
    highest, lowest = total.highest, total.lowest
    summands = list(total.tally.values())
    if extra is not None:
        term = extra.query.on(total.domain).term(extra.position)
        values = values + term.logs
        highest, lowest = float(values.max()), float(values.min())
        error = rounded_sum_error(error, term.error, highest, lowest)
        summands.append(extra)
    if lowest == -math.inf:
        return INFINITE
    times = [summand.times for summand in summands]
    top = np.flatnonzero(values >= down(highest - 2 * error))
    bottom = np.flatnonzero(values <= up(lowest + 2 * error))
    largest, *others = _classes(total.domain, summands, top)
    for likelihoods in others:
        if _ratio(likelihoods, largest, times) > 1:
            largest = likelihoods
    smallest, *others = _classes(total.domain, summands, bottom)
    for likelihoods in others:
        if _ratio(likelihoods, smallest, times) < 1:
            smallest = likelihoods
    return Nats(ratio=_ratio(largest, smallest, times))


def _classes(
    domain: FiniteSet, summands: Sequence[Summand], values: NDArray[np.intp]
) -> list[tuple[int, ...]]:
    """The distinct rows of weights, one weight per summand, that these values have.

    Nearly all values of a large domain can be tied, so classes are refined summand by summand and
    only one value of each is ever written out.
    """

    def weights(summand: Summand) -> Weights:
        return summand.query.on(domain).weights(summand.position)

    label, first = np.zeros(len(values), dtype=np.intp), np.zeros(1, dtype=np.intp)
    if len(values) > 1:
        for summand in summands:
            _, code = np.unique(weights(summand)[values], return_inverse=True)
            joint = label * (code.max() + 1) + code
            _, first, label = np.unique(joint, return_index=True, return_inverse=True)
    columns = [weights(summand)[values[first]].tolist() for summand in summands]
    return list(zip(*columns, strict=True)) or [()]


def _ratio(first: Sequence[int], second: Sequence[int], times: Sequence[int]) -> Fraction:
    """The ratio of two products of powers. Equal weights cancel before anything is multiplied."""
    powers: Counter[int] = Counter()
    for above, below, count in zip(first, second, times, strict=True):
        powers[above] += count
        powers[below] -= count
    numerator = math.prod(weight**power for weight, power in powers.items() if power > 0)
    denominator = math.prod(weight**-power for weight, power in powers.items() if power < 0)
    return Fraction(numerator, denominator)
