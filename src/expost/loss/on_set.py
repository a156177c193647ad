"""The spread max ℓ - min ℓ over a finite domain: in doubles with certainty, or exactly.

Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.loss.log_likelihood import LogLikelihood, rounded_sum_error
from expost.numbers import INFINITE, UNIT, Enclosure, Nats, down, up
from expost.numbers.exact_sum import ExactSum
from expost.queries import FiniteLikelihood
from expost.terms.on_set import Powers, Term
from expost.transcript import Summand

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

# Weights of values that doubles cannot tell apart: looking at so many takes about a second.
_MOST_NOTED = 1 << 18


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
    sums, error, summands = total.values, total.error, list(total.tally)
    if extra is not None:
        term = extra.query.on(total.domain).term(extra.position)
        logs, extra_error = _repeated(term, extra.times)
        sums = sums + logs
        error = rounded_sum_error(error, extra_error, float(sums.max()), float(sums.min()))
        summands.append(extra)
    if sums.min() == -math.inf:
        return INFINITE
    exact = ExactSums(total.domain, sums, error, summands)
    return exact.apart(exact.extreme(1), exact.extreme(-1))


class Candidate(NamedTuple):
    """A value, and by which powers its likelihood differs from that of another one."""

    value: int
    powers: Counter[int]


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
            if ExactSum.product(_less(other.powers, best.powers)).sign == sign:
                best = other
        return best

    def apart(self, first: Candidate, second: Candidate) -> Nats:
        """By how much ℓ of one value is above that of another.

        Equal weights cancel, and nothing is multiplied out.
        """
        powers: Counter[int] = Counter()
        for summand in self.summands:
            likelihood, places = self._likelihood(summand), [first.value, second.value]
            above, below = likelihood.powers(summand.position, places)
            _multiply(powers, above, summand.times)
            _multiply(powers, below, -summand.times)
        return Nats.of(ExactSum.product(powers))

    def _classes(self, values: NDArray[np.intp]) -> list[Candidate]:
        """Of these values, one for each way in which likelihoods differ from that of the first.

        Nearly all values of a large domain can be tied. Responses that do not tell them apart are
        passed over, and of the others only what differs from the first value is noted.
        """
        if len(values) == 1:
            return [Candidate(int(values[0]), Counter())]
        kinds: dict[tuple[Powers, Powers, int], int] = {}
        noted: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        count = 0
        for summand in self.summands:
            likelihood = self._likelihood(summand)
            alike = likelihood.alike(summand.position)[values]
            places = np.flatnonzero(alike != alike[0])
            if not len(places):
                continue
            count += len(places)
            if count > _MOST_NOTED:
                raise InvalidInput(
                    f"{len(values):,} values are too close for doubles to tell, and too many for "
                    "exact comparison after so many responses; with fewer values it works"
                )
            _, some, code = np.unique(alike[places], return_index=True, return_inverse=True)
            known = likelihood.powers(summand.position, values[[0, *places[some]]].tolist())
            numbers = [
                kinds.setdefault((powers, known[0], summand.times), len(kinds))
                for powers in known[1:]
            ]
            noted.append((places, np.array(numbers, dtype=np.intp)[code]))
        return self._distinct(values, noted, list(kinds))

    @staticmethod
    def _distinct(
        values: NDArray[np.intp],
        noted: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        kinds: list[tuple[Powers, Powers, int]],
    ) -> list[Candidate]:
        """The first value, and one for every other collection of differences from it."""
        result = {b"": Candidate(int(values[0]), Counter())}
        if noted:
            place, kind = (np.concatenate(parts) for parts in zip(*noted, strict=True))
            order = np.lexsort((kind, place))
            place, kind = place[order], kind[order]
            ends = np.flatnonzero(np.diff(place, append=-1)) + 1
            for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
                key = kind[start:end].tobytes()
                if key not in result:
                    powers: Counter[int] = Counter()
                    for number in kind[start:end].tolist():
                        own, first, times = kinds[number]
                        _multiply(powers, own, times)
                        _multiply(powers, first, -times)
                    result[key] = Candidate(int(values[place[start]]), powers)
        return list(result.values())

    def _likelihood(self, summand: Summand) -> FiniteLikelihood:
        return summand.query.on(self.domain)


def _multiply(product: Counter[int], powers: Powers, times: int) -> None:
    for base, power in powers:
        product[base] += power * times


def _less(first: Counter[int], second: Counter[int]) -> Counter[int]:
    difference = first.copy()
    difference.subtract(second)
    return difference
