"""ℓ over a finite set: one double per value, up to a common constant, with one bound on all errors.

The summands are tallied, so that the likelihood ratio of two values can be computed exactly if
doubles are too coarse. Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.filters import WorstCase
from expost.loss._log_likelihood import ExtremePair, FiniteLogLikelihood
from expost.loss._query_marginal import (
    Candidate,
    QueryMarginal,
    ToldFrom,
    enclose,
    exact_worst_spread,
    repeated,
    rounded_sum_error,
    signed,
)
from expost.numbers import INFINITE, Enclosure, ExactSum, Nats, RunningSum, down, read_only
from expost.queries import FiniteLikelihood, Query
from expost.solver import Effort
from expost.tally import Summand, Tally
from expost.terms import Powers, Term, multiply
from expost.transcript import Exchange

__all__ = ["ExactSums", "SetLogLikelihood", "finite"]


# Weights of values that doubles cannot tell apart: comparing this many takes about a second.
_MOST_NOTED = 1 << 18


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
        return INFINITE if self.is_infinite else self.difference(*self.extremes())

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        """Return a value with the largest ℓ and one with the smallest, exactly."""
        return self._extreme(1, among), self._extreme(-1, among)

    def _extreme(self, sign: int, among: NDArray[np.bool_] | None) -> Candidate:
        sums = signed(self.sums, sign, among)
        band = np.flatnonzero(sums >= down(float(sums.max()) - 2 * self.error))
        best, *rivals = self._classes(band)
        for rival in rivals:
            difference = rival.powers.copy()
            difference.subtract(best.powers)
            if ExactSum.product(difference).sign == sign:
                best = rival
        return best

    def difference(self, first: Candidate, second: Candidate) -> Nats:
        """Return by how much ℓ of one value exceeds that of another.

        Equal weights cancel, and nothing is multiplied out.
        """
        powers: Counter[int] = Counter()
        for summand in self.summands:
            likelihood, indices = summand.query.on(self.domain), [first.value, second.value]
            above, below = likelihood.powers(summand.position, indices)
            multiply(powers, above, summand.times)
            multiply(powers, below, -summand.times)
        return Nats.of(ExactSum.product(powers))

    def _classes(self, values: NDArray[np.intp]) -> list[Candidate]:
        """Return one value for each way in which a likelihood differs from that of the first value.

        Nearly all values of a large domain can be tied. Responses that do not distinguish
        them are skipped, and of the others only differences from the first value are noted.
        """
        if len(values) == 1:
            return [Candidate(int(values[0]), Counter())]
        kinds: dict[tuple[Powers, Powers, int], int] = {}
        noted: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        count = 0
        for summand in self.summands:
            likelihood = summand.query.on(self.domain)
            classes = likelihood.weight_labels(summand.position)[values]
            differing = np.flatnonzero(classes != classes[0])
            if not len(differing):
                continue
            count += len(differing)
            if count > _MOST_NOTED:
                raise InvalidInput(
                    f"got {len(values):,} values that doubles cannot distinguish, too many to "
                    "compare exactly after so many responses. Use fewer values"
                )
            _, representatives, code = np.unique(
                classes[differing], return_index=True, return_inverse=True
            )
            powers_of = likelihood.powers(
                summand.position, values[[0, *differing[representatives]]].tolist()
            )
            kind_numbers = [
                kinds.setdefault((powers, powers_of[0], summand.times), len(kinds))
                for powers in powers_of[1:]
            ]
            noted.append((differing, np.array(kind_numbers, dtype=np.intp)[code]))
        return self._distinct(values, noted, list(kinds))

    @staticmethod
    def _distinct(
        values: NDArray[np.intp],
        noted: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
        kinds: list[tuple[Powers, Powers, int]],
    ) -> list[Candidate]:
        """Return the first value, and one for every other collection of differences from it."""
        result = {b"": Candidate(int(values[0]), Counter())}
        if noted:
            index, kind = (np.concatenate(parts) for parts in zip(*noted, strict=True))
            order = np.lexsort((kind, index))
            index, kind = index[order], kind[order]
            ends = np.flatnonzero(np.diff(index, append=-1)) + 1
            for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False):
                key = kind[start:end].tobytes()
                if key not in result:
                    powers: Counter[int] = Counter()
                    for kind_index in kind[start:end].tolist():
                        powers_here, first, times = kinds[kind_index]
                        multiply(powers, powers_here, times)
                        multiply(powers, first, -times)
                    result[key] = Candidate(int(values[index[start]]), powers)
        return list(result.values())


@dataclass(frozen=True, eq=False)
class SetLogLikelihood(FiniteLogLikelihood):
    """ℓ at every value of a finite set; minus infinity where some response was impossible."""

    domain: FiniteSet
    values: Floats
    #: Every value is within this of ℓ plus one common constant.
    error: float
    highest: float
    lowest: float

    @classmethod
    def flat(cls, domain: FiniteSet) -> SetLogLikelihood:
        """Return ℓ of no responses: all values are equally likely."""
        values = read_only(np.zeros(len(domain)))
        return cls(domain, Tally(), None, values, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, domain: FiniteSet, exchanges: Iterable[Exchange]) -> SetLogLikelihood:
        """Return ℓ of some exchanges."""
        exchange_list = list(exchanges)
        values, error, highest, lowest = cls.flat(domain).values, 0.0, 0.0, 0.0
        for exchange in exchange_list:
            term = exchange.query.on(domain).term(exchange.position)
            values, error, highest, lowest = _sum(values, error, term)
        values.setflags(write=False)
        return cls(domain, Tally.of(exchange_list), None, values, error, highest, lowest)

    def add(self, query: Query, position: int) -> SetLogLikelihood:
        return self._plus(query, position, self._charged_with(query))

    def uncharged(self, query: Query, position: int) -> SetLogLikelihood:
        """Return ℓ after one more response, without the sum of the epsilons."""
        return self._plus(query, position, None)

    def _plus(self, query: Query, position: int, charged: RunningSum | None) -> SetLogLikelihood:
        term = query.on(self.domain).term(position)
        values, error, highest, lowest = _sum(self.values, self.error, term)
        values.setflags(write=False)
        tally = self.tally.extended(query, position)
        return SetLogLikelihood(self.domain, tally, charged, values, error, highest, lowest)

    @property
    def spread(self) -> Enclosure:
        """An enclosure of max ℓ - min ℓ that takes no pass over the domain."""
        return enclose(self.highest, self.lowest, self.error)

    @cached_property
    def exact_loss(self) -> Nats:
        return self._exact.spread

    @property
    def _exact(self) -> ExactSums:
        return ExactSums(self.domain, self.values, self.error, list(self.tally))

    @property
    def marginal(self) -> QueryMarginal:
        """ℓ as queries see it: on a set, they see every value."""

        def exact_worst(told_from: ToldFrom, epsilon: Nats) -> Nats:
            return exact_worst_spread(self._exact, told_from, epsilon)

        return QueryMarginal(
            self.values, self.values, self.error, self._loss, exact_worst, self.exact_spread_with
        )

    def exact_spread_with(self, extra: Summand) -> Nats:
        """Return the exact spread after a response is repeated."""
        logs, error = repeated(extra.query.on(self.domain).term(extra.position), extra.times)
        sums = self.values + logs
        error = rounded_sum_error(self.error, error, float(sums.max()), float(sums.min()))
        return ExactSums(self.domain, sums, error, [*self.tally, extra]).spread

    def _likelihood(self, query: Query) -> FiniteLikelihood:
        return query.on(self.domain)

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        return self.marginal.worst_after(query, query.on(self.domain), times)

    def extreme_pair(self, effort: Effort) -> ExtremePair | None:
        if self.highest == -math.inf or self.highest - self.lowest <= 2 * self.error:
            return None
        top = np.flatnonzero(self.values >= self.highest - 2 * self.error)
        bottom = np.flatnonzero(self.values <= self.lowest + 2 * self.error)
        return ExtremePair(
            self.domain.values[top[0]],
            self.domain.values[bottom[0]],
            self.highest - self.lowest,
            (len(top) - 1, len(bottom) - 1),
        )


def finite(values: Floats) -> Floats:
    """Return the values that are not ruled out."""
    return values[values > -math.inf]


def _sum(values: Floats, error: float, term: Term) -> tuple[Floats, float, float, float]:
    """Add a term to ℓ; return its values, their error, and the largest and the smallest."""
    values = values + term.logs
    highest, lowest = float(np.maximum.reduce(values)), float(np.minimum.reduce(values))
    least = float(finite(values).min(initial=highest)) if lowest == -math.inf else lowest
    error = rounded_sum_error(error, term.error, highest, least)
    middle = (highest + lowest) / 2
    if math.isfinite(middle) and abs(middle) > 1 + highest - lowest:
        # A common constant means nothing; without it the sums, and so their errors, stay small.
        # Every value is between middle/2 and 2·middle: the differences are exact (Sterbenz).
        values -= middle
        highest, lowest = highest - middle, lowest - middle
    return values, error, highest, lowest
