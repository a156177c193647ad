r"""The log-likelihood of a transcript over a domain, as a running sum of terms.

.. math:: \ell(x) = \sum_i \log P[Q_i(x) = y_i]

Over a finite domain: one double per value, up to a common constant, with one bound on the error of
them all. What was summed is tallied, so that the exact likelihood ratio of two values can be had
where doubles are too coarse. Over a box: the terms themselves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.chain import Chain
from expost.domains import Box, Domain, FiniteSet
from expost.numbers import UNIT, up
from expost.terms.on_box import ScoreTerm
from expost.transcript import Exchange, Tally

__all__ = ["BoxLogLikelihood", "LogLikelihood", "flat", "rounded_sum_error"]


@dataclass(frozen=True, slots=True, eq=False)
class LogLikelihood:
    """ℓ at every value of a finite set; minus infinity where some response was impossible."""

    domain: FiniteSet
    values: NDArray[np.float64]
    error: float
    """Every value is within this of ℓ plus one common constant."""
    highest: float
    lowest: float
    tally: Tally
    """What was summed."""

    @classmethod
    def flat(cls, domain: FiniteSet) -> LogLikelihood:
        """Before anything is asked all values are alike."""
        values = np.zeros(len(domain))
        values.setflags(write=False)
        return cls(domain, values, 0.0, 0.0, 0.0, Tally())

    def add(self, exchange: Exchange) -> LogLikelihood:
        """ℓ after one more exchange."""
        likelihood = exchange.query.on(self.domain)
        term = likelihood.term(exchange.position)
        values = self.values + term.logs
        highest, lowest = float(values.max()), float(values.min())
        error = rounded_sum_error(self.error, term.error, highest, lowest)
        middle = (highest + lowest) / 2
        if math.isfinite(middle) and abs(middle) > 1 + highest - lowest:
            # A common constant says nothing; without it the sums, and so their errors, stay small.
            # Every value is between middle/2 and 2·middle: the differences are exact (Sterbenz).
            values -= middle
            highest, lowest = highest - middle, lowest - middle
        values.setflags(write=False)
        tally = self.tally.plus(exchange.query, exchange.position)
        return LogLikelihood(self.domain, values, error, highest, lowest, tally)


@dataclass(frozen=True, eq=False)
class BoxLogLikelihood:
    """ℓ over a box: a sum of functions of affine scores, in the order of the exchanges."""

    domain: Box
    terms: Chain[ScoreTerm]
    _counted: Counter[ScoreTerm] | None = field(default=None, repr=False)

    @classmethod
    def flat(cls, domain: Box) -> BoxLogLikelihood:
        """Before anything is asked there is nothing to sum."""
        return cls(domain, Chain())

    @classmethod
    def of(cls, domain: Box, exchanges: Iterable[Exchange]) -> BoxLogLikelihood:
        """ℓ of a whole transcript."""
        return cls(domain, Chain([_box_term(domain, exchange) for exchange in exchanges]))

    def first(self, count: int) -> BoxLogLikelihood:
        """ℓ of the first so many exchanges."""
        different, numbers = self._numbered
        times = np.bincount(numbers[:count]).tolist()
        # Numbers go by first appearance, so those of a beginning are the first ones.
        counted = Counter(dict(zip(different, times, strict=False)))
        return BoxLogLikelihood(self.domain, self.terms.first(count), counted)

    @property
    def counted(self) -> Counter[ScoreTerm]:
        """How often each term is there, in the order of their first appearance."""
        return Counter(self.terms) if self._counted is None else self._counted

    @cached_property
    def _numbered(self) -> tuple[list[ScoreTerm], NDArray[np.intp]]:
        """The different terms, and which of them each is; beginnings are counted often."""
        index: dict[ScoreTerm, int] = {}
        numbers = [index.setdefault(term, len(index)) for term in self.terms]
        return list(index), np.array(numbers, dtype=np.intp)

    def add(self, exchange: Exchange, times: int = 1) -> BoxLogLikelihood:
        """ℓ after one more exchange, or after several that are equal."""
        term, terms = _box_term(self.domain, exchange), self.terms
        for _ in range(times):
            terms = terms.plus(term)
        return BoxLogLikelihood(self.domain, terms)


def flat(domain: Domain) -> LogLikelihood | BoxLogLikelihood:
    """Before anything is asked."""
    if isinstance(domain, FiniteSet):
        return LogLikelihood.flat(domain)
    return BoxLogLikelihood.flat(domain)


def _box_term(box: Box, exchange: Exchange) -> ScoreTerm:
    likelihood = exchange.query.on(box)
    return likelihood.term(exchange.position)


def rounded_sum_error(first: float, second: float, highest: float, lowest: float) -> float:
    """The error of sums between these extremes whose parts have these errors."""
    magnitude = max((abs(x) for x in (highest, lowest) if math.isfinite(x)), default=0.0)
    return 0.0 if first == second == magnitude == 0 else up(up(first + second) + UNIT * magnitude)
