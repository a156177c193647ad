"""ℓ of many subjects over a finite set: a row of doubles for each value, a column for each subject.

Passes go over blocks of subjects, which stay in the cache.
"""

from __future__ import annotations

import numpy as np

from expost._types import Floats, Indices
from expost.domains import FiniteSet
from expost.numbers import UNIT, Nats
from expost.panel.finite import FiniteState
from expost.panel.fixed import FIXED_BITS, wrapped
from expost.panel.places import Chosen
from expost.panel.question import FiniteQuestion
from expost.panel.questions import Questions
from expost.panel.ties import Apart, Compared, compare

__all__ = ["SetState"]


_BLOCK = 1 << 16
# Of so many subjects one has to answer for a pass over all of them.
_MOST = 6
# The most pairs of values, times responses, that are written as a table to compare ties.
_LARGEST_TABLE = 1 << 18


class SetState(FiniteState):
    """ℓ at every value, up to a constant for each subject."""

    domain: FiniteSet

    def __init__(
        self, domain: FiniteSet, questions: Questions, count: int, *, track_peaks: bool = True
    ) -> None:
        super().__init__(domain, questions, count, track_peaks=track_peaks)
        self.values = np.zeros((len(domain), count))
        self._apart: dict[tuple[int, bool] | None, Apart | None] = {}

    def _add(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        logs, size = question.logs, max(1, _BLOCK // len(self.values))
        if chosen.places is not None and len(chosen) * _MOST > self.count:
            # Nothing is added for all others, which takes less than picking these out.
            everybody = np.full(self.count, logs.shape[1], dtype=np.intp)
            everybody[chosen.places] = codes
            logs, codes = np.hstack([logs, np.zeros((len(logs), 1))]), everybody
            chosen = Chosen(self.count)
        spread = self.spread
        for own, index in chosen.blocks(size):
            block = self.values[:, index]
            block += logs.take(codes[own], axis=1)
            if chosen.places is not None:
                self.values[:, index] = block
            spread[index] = block.max(axis=0) - block.min(axis=0)

    def _add_unmeasured(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        self.values[:, chosen.index] += question.logs.take(codes, axis=1)

    def _add_counts(self, question: FiniteQuestion, codes: Indices, counts: Floats) -> None:
        # By one thread: those of linear algebra would spend more than this on waiting.
        self.values += np.einsum("ij,jk->ik", question.logs[:, codes], counts)

    def _measured(self) -> Floats:
        return np.asarray(self.values.max(axis=0) - self.values.min(axis=0))

    def worst(self, question: FiniteQuestion, chosen: Chosen) -> Floats:
        spread = self.spread[chosen.index]
        if question.infinite:
            return np.full(len(chosen), np.inf)
        result = np.empty(len(chosen))
        for own, index in chosen.blocks(max(1, _BLOCK // len(self.values))):
            block = self.values[:, index]
            result[own] = question.differences.worst(block, block, spread[own])
        return result

    def compare(
        self, question: FiniteQuestion | None, simply: bool, places: Indices, budget: Nats
    ) -> Compared:
        apart = self._tables(question, simply)
        if apart is None:
            nobody = np.zeros(len(places), dtype=np.bool_)
            return Compared(nobody, nobody)
        chosen = Chosen(self.count, places)
        more = 0.0 if question is None else question.size
        slack = self.slack(chosen, more) + 4 * UNIT * budget.enclosure.upper
        return compare(self.values.take(places, axis=1), slack, places, self.log, apart, budget)

    def _tables(self, question: FiniteQuestion | None, simply: bool) -> Apart | None:
        """What is added for every pair of values; None if that takes too many of them."""
        key = None if question is None else (question.number, simply)
        if key not in self._apart:
            self._apart[key] = self._table(question, simply)
        return self._apart[key]

    def _table(self, question: FiniteQuestion | None, simply: bool) -> Apart | None:
        shape = len(self.domain), len(self.domain)
        if question is None:
            return Apart(
                np.zeros(shape), np.zeros(shape, dtype=np.int64), lambda one, other: Nats()
            )
        if len(self.domain) ** 2 > _LARGEST_TABLE:
            return None
        if simply:
            epsilon = question.likelihood.epsilon
            words = wrapped(epsilon.scaled(FIXED_BITS))
            doubles = np.full(shape, epsilon.enclosure.upper)
            return Apart(doubles, np.full(shape, words), lambda one, other: epsilon)
        if question.differences.size > _LARGEST_TABLE:
            return None
        found = question.differences
        return Apart(found.doubles(), found.fixed(), found.exact)
