"""The exact spread max ℓ - min ℓ over a finite domain, where doubles are too coarse.

Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.numbers import INFINITE, Nats, down
from expost.numbers._exact_sum import ExactSum
from expost.queries import FiniteLikelihood
from expost.terms import Powers
from expost.transcript import Summand

__all__ = ["Candidate", "ExactExtremes", "ExactSums", "signed"]

# Weights of values that doubles cannot tell apart: comparing this many takes about a second.
_MOST_NOTED = 1 << 18


class Candidate(NamedTuple):
    """A value, and the powers by which its likelihood differs from that of another one."""

    value: int
    powers: Counter[int]


class ExactExtremes(Protocol):
    """The extremes of ℓ as a query sees it, exactly."""

    @property
    def is_infinite(self) -> bool:
        """Whether some value cannot have given the responses."""
        ...

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """A value with the largest ℓ and one with the smallest, of these values, exactly."""
        ...

    def apart(self, first: Candidate, second: Candidate) -> Nats:
        """By how much the largest ℓ of one value is above the smallest of another."""
        ...


def signed(
    sums: NDArray[np.float64], sign: int, among: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """Sums or their negatives; values that are not among these cannot be extreme."""
    result = sums if sign > 0 else -sums
    return result if among is None else np.where(among, result, -np.inf)


@dataclass(frozen=True)
class ExactSums:
    """ℓ in doubles within an error, and as exact ratios where that is too coarse."""

    domain: FiniteSet
    sums: NDArray[np.float64]
    error: float
    summands: Sequence[Summand]

    @property
    def is_infinite(self) -> bool:
        return bool(self.sums.min() == -np.inf)

    @property
    def spread(self) -> Nats:
        """max ℓ - min ℓ.

        Doubles single out the values that can be extreme; of those, one per likelihood class is
        compared exactly.
        """
        if self.is_infinite:
            return INFINITE
        return self.apart(*self.extremes())

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """A value with the largest ℓ and one with the smallest, exactly."""
        return self._extreme(1, among), self._extreme(-1, among)

    def _extreme(self, sign: int, among: NDArray[np.bool_] | None) -> Candidate:
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
        """One value for each way in which a likelihood differs from that of the first value.

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
