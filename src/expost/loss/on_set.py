"""ℓ over a finite set: one double per value, up to a common constant, with one bound on all errors.

What was summed is tallied, so that the likelihood ratio of two values can be worked out exactly if
doubles are too coarse. Proof: docs/theory/realized_loss.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.filters import WorstCase
from expost.loss.exact import ExactSums
from expost.loss.extremes import Apart
from expost.loss.pairs import exact_spread_apart, widest_pair
from expost.loss.shares import capped, share_of
from expost.loss.tallied import Tallied
from expost.numbers import UNIT, Enclosure, Nats, down, up
from expost.queries import Query
from expost.queries.likelihood import BySufficientTerms
from expost.queries.values.pairwise import Pairwise
from expost.solver import Effort
from expost.terms.on_set import Term
from expost.transcript import Exchange, Summand, Tally

__all__ = ["SetLogLikelihood", "enclose", "rounded_sum_error"]

Floats = NDArray[np.float64]

# A block of two operands and a result stays in the second-level cache, so a pass reads each
# operand from memory once and writes nothing back.
_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class SetLogLikelihood(Tallied[FiniteSet]):
    """ℓ at every value of a finite set; minus infinity where some response was impossible."""

    searched: ClassVar[bool] = False
    values: Floats
    error: float
    """Every value is within this of ℓ plus one common constant."""
    highest: float
    lowest: float

    @classmethod
    def flat(cls, domain: FiniteSet) -> SetLogLikelihood:
        """Before anything is asked all values are alike."""
        values = np.zeros(len(domain))
        values.setflags(write=False)
        return cls(domain, Tally(), None, values, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, domain: FiniteSet, exchanges: Iterable[Exchange]) -> SetLogLikelihood:
        """ℓ of some exchanges."""
        kept = list(exchanges)
        start = cls.flat(domain)
        values, error, highest, lowest = start.values, 0.0, 0.0, 0.0
        for exchange in kept:
            term = exchange.query.on(domain).term(exchange.position)
            values, error, highest, lowest = _sum(values, error, term)
        values.setflags(write=False)
        return cls(domain, Tally.of(kept), None, values, error, highest, lowest)

    def add(self, query: Query, position: int) -> SetLogLikelihood:
        term = query.on(self.domain).term(position)
        values, error, highest, lowest = _sum(self.values, self.error, term)
        values.setflags(write=False)
        tally, charged = self.tally.plus(query, position), self._charged_with(query)
        return SetLogLikelihood(self.domain, tally, charged, values, error, highest, lowest)

    @property
    def different(self) -> int:
        return len(self.tally)

    @property
    def spread(self) -> Enclosure:
        """An enclosure of max ℓ - min ℓ, without a pass over the domain."""
        return enclose(self.highest, self.lowest, self.error)

    def loss(self, effort: Effort) -> Enclosure:
        return self._loss

    @cached_property
    def _loss(self) -> Enclosure:
        return capped(self.spread, self.spent)

    def closest(self, effort: Effort) -> Enclosure:
        return self.exact_loss.enclosure

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        return self._loss

    @cached_property
    def exact_loss(self) -> Nats:
        return self._exact.spread

    @property
    def _exact(self) -> ExactSums:
        return ExactSums(self.domain, self.values, self.error, list(self.tally))

    def spread_with(self, term: Term, times: int = 1) -> Enclosure:
        """An enclosure of the spread of ℓ + times · term, in one pass over the domain."""
        if self.lowest == -math.inf:
            return Enclosure(math.inf, math.inf)
        logs, error = _repeated(term, times)
        highest, lowest = _extremes_of_sum(self.values, logs)
        return enclose(highest, lowest, rounded_sum_error(self.error, error, highest, lowest))

    def exact_spread_with(self, extra: Summand) -> Nats:
        """The same, exactly."""
        logs, error = _repeated(extra.query.on(self.domain).term(extra.position), extra.times)
        sums = self.values + logs
        error = rounded_sum_error(self.error, error, float(sums.max()), float(sums.min()))
        return ExactSums(self.domain, sums, error, [*self.tally, extra]).spread

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        # D of several responses is the sum of theirs, so the worst case is one response
        # over and over.
        likelihood = query.on(self.domain)
        if isinstance(likelihood, Pairwise):
            return self._worst_pair(likelihood, times)
        assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
        return self._worst_term(query, likelihood, times)

    def _worst_pair(self, likelihood: Pairwise, times: int) -> WorstCase:
        # D is epsilon for values that can be told apart, and zero for others.
        high, low = widest_pair(self.values, likelihood.told_from)
        # The difference is not negative: of a pair and its reverse, one is not.
        widest = enclose(float(self.values[high]), float(self.values[low]), self.error)
        now, epsilon = self._loss, likelihood.epsilon
        apart = capped(widest, now) + epsilon.enclosure * times
        return WorstCase(
            Enclosure(max(now.lower, apart.lower), max(now.upper, apart.upper)),
            exact=lambda: exact_spread_apart(self._exact, likelihood.told_from, epsilon * times),
            response=likelihood.responses[likelihood.telling(high, low)],
        )

    def _worst_term(self, query: Query, likelihood: BySufficientTerms, times: int) -> WorstCase:
        losses = {i: self.spread_with(likelihood.term(i), times) for i in likelihood.sufficient}
        lower = max(loss.lower for loss in losses.values())
        upper = max(loss.upper for loss in losses.values())

        def exact() -> Nats:
            # Skip responses whose loss is surely below that of another one.
            candidates = [i for i, loss in losses.items() if loss.upper >= lower]
            return max(self.exact_spread_with(Summand(query, i, times)) for i in candidates)

        worst = next(i for i, loss in losses.items() if loss.upper == upper)
        return WorstCase(Enclosure(lower, upper), exact, likelihood.responses[worst])

    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        epsilon = query.on(self.domain).epsilon
        before = WorstCase(self._loss, exact=lambda: self.exact_loss)
        if times > 1:
            before = self.worst_after(query, times - 1, budget, effort)
        exact = before.exact
        assert exact is not None, "over a finite domain everything is exact"
        return WorstCase(before.loss + epsilon.enclosure, exact=lambda: exact() + epsilon)

    def most_apart(self, effort: Effort) -> Apart | None:
        if self.highest == -math.inf or self.highest - self.lowest <= 2 * self.error:
            return None
        top = np.flatnonzero(self.values >= self.highest - 2 * self.error)
        bottom = np.flatnonzero(self.values <= self.lowest + 2 * self.error)
        return Apart(
            self.domain.values[top[0]],
            self.domain.values[bottom[0]],
            self.highest - self.lowest,
            (len(top) - 1, len(bottom) - 1),
        )

    def epsilon_of(self, query: Query) -> Enclosure:
        return query.on(self.domain).epsilon.enclosure

    def utilization(self, loss: Enclosure) -> Enclosure:
        return share_of(self.exact_loss, self.exact_spent)

    def utilization_of(self, query: Query) -> Enclosure:
        likelihood = query.on(self.domain)
        return share_of(likelihood.least_loss, likelihood.epsilon)


def _sum(values: Floats, error: float, term: Term) -> tuple[Floats, float, float, float]:
    """ℓ with one more term: its values, their error, and the largest and the smallest of them."""
    values = values + term.logs
    highest, lowest = float(np.maximum.reduce(values)), float(np.minimum.reduce(values))
    error = rounded_sum_error(error, term.error, highest, lowest)
    middle = (highest + lowest) / 2
    if math.isfinite(middle) and abs(middle) > 1 + highest - lowest:
        # A common constant says nothing; without it the sums, and so their errors, stay small.
        # Every value is between middle/2 and 2·middle: the differences are exact (Sterbenz).
        values -= middle
        highest, lowest = highest - middle, lowest - middle
    return values, error, highest, lowest


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


def _repeated(term: Term, times: int) -> tuple[Floats, float]:
    """The logarithms of a response that is given ``times`` times, and their error."""
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
