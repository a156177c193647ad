"""ℓ of many subjects on a finite domain, in arrays; on a set a row for each value.

Besides its answers, every subject has the largest difference of its ℓ now and at its peak. Passes
go over blocks of subjects, which stay in the cache. Proof: docs/theory/panels.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from expost._types import Bools, Floats, Indices
from expost.domains import Domain, FiniteSet
from expost.filters._many_accounts import Accounts, BudgetComparison, Case, LossBounds
from expost.loss import LogLikelihood, Odometer, log_likelihood
from expost.numbers import UNIT, Nats
from expost.panel._compiled_query import TERM_ERROR, TINY, FiniteQuestion, Question, Questions
from expost.panel._differences import FIXED_BITS, wrapped
from expost.panel._query_costs import by_queries, spent
from expost.panel._selection import Chosen
from expost.panel._state import State
from expost.panel._ties import Apart, Compared, compare
from expost.queries import Query
from expost.solver import Effort
from expost.tally import distinct_integers

__all__ = ["FiniteAccounts", "FiniteState", "SetState"]


# A sum, a difference and what is added to it round once each, and so do the bounds.
_ROUNDINGS = TERM_ERROR + 8


class FiniteState(State):
    """The answers of so many subjects on a set or on records."""

    roundings: ClassVar[int] = 1
    """How often the sums of a subject are rounded for each of its responses."""

    def __init__(
        self, domain: Domain, questions: Questions, count: int, *, track_peaks: bool = True
    ) -> None:
        super().__init__(domain, questions, count, track_peaks=track_peaks)
        self._spread: Floats | None = np.zeros(count)
        self.peak = np.zeros(count)
        """The largest that ``spread`` was on the way, if peaks are tracked."""
        self.impossible = np.zeros(count, dtype=np.bool_)
        """Whose responses rule some value out: their loss is infinite."""
        self._size = np.zeros(count)

    @property
    def spread(self) -> Floats:
        """max ℓ - min ℓ now, in doubles; :meth:`around` says how far off."""
        if self._spread is None:
            self._spread = self._measured()
        return self._spread

    def accounts(self, chosen: Chosen) -> Accounts:
        return FiniteAccounts(self, chosen)

    def _absorb(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        assert isinstance(question, FiniteQuestion)
        if self.track_peaks:
            self._add(question, codes, chosen)
            self.peak[chosen.index] = np.maximum(self.peak[chosen.index], self.spread[chosen.index])
        else:
            self._add_unmeasured(question, codes, chosen)
            self._spread = None
        self._size[chosen.index] += question.size
        if question.impossible.any():
            self.impossible[chosen.index] |= question.impossible[codes]

    def _absorb_counts(
        self, question: Question, codes: Indices, counts: Floats, total: Floats
    ) -> None:
        # At most as many roundings as responses: a product for each different one, and a sum.
        assert isinstance(question, FiniteQuestion)
        self._add_counts(question, codes, counts)
        self._spread = None
        self._size += question.size * total
        impossible = question.impossible[codes]
        if impossible.any():
            self.impossible |= counts[impossible].any(axis=0)

    def slack(self, chosen: Chosen, more: float = 0.0) -> Floats:
        """What a difference of two sums may be off, perhaps with D of so much added to it."""
        exchanges, size = self.exchanges[chosen.index], self._size[chosen.index]
        # Each of the two ends is a sum of terms, in any order: their errors, and a rounding for
        # each of them. The odd thousandth covers the rounding of this bound.
        slack = (self.roundings * exchanges + float(_ROUNDINGS)) * (size + more)
        slack *= 2.001 * UNIT
        slack += TINY * (2.001 * exchanges + 2)
        return np.asarray(slack)

    def around(self, amounts: Floats, slack: Floats, chosen: Chosen) -> tuple[Floats, Floats]:
        """Lower and upper bounds of losses, from doubles and what they may be off."""
        lower, upper = np.maximum(amounts - slack, 0.0), amounts + slack
        never = self.impossible[chosen.index]
        if never.any():
            lower[never] = upper[never] = np.inf
        nothing = self.exchanges[chosen.index] == 0
        if nothing.any():
            upper[nothing & (amounts == 0)] = 0.0
        return lower, upper

    def losses(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the realized losses now, which are never above the sum of the epsilons."""
        return self._capped(self.spread[chosen.index], chosen)

    def peaks(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the largest realized losses on the way."""
        assert self.track_peaks, "a tally has no order"
        return self._capped(self.peak[chosen.index], chosen)

    def _capped(self, amounts: Floats, chosen: Chosen) -> tuple[Floats, Floats]:
        lower, upper = self.around(amounts, self.slack(chosen), chosen)
        _, most = self.spent.around(chosen, None)
        return lower, np.maximum(lower, np.minimum(upper, most))

    @abstractmethod
    def _add(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        """Add responses to ℓ, and update ``spread`` for these subjects."""

    @abstractmethod
    def _add_unmeasured(self, question: FiniteQuestion, codes: Indices, chosen: Chosen) -> None:
        """Add responses to ℓ alone."""

    @abstractmethod
    def _add_counts(self, question: FiniteQuestion, codes: Indices, counts: Floats) -> None:
        """Add counted responses to ℓ alone: a row for each code, a column for each subject."""

    @abstractmethod
    def _measured(self) -> Floats:
        """Return max ℓ - min ℓ of every subject."""

    @abstractmethod
    def worst(self, question: FiniteQuestion, chosen: Chosen) -> Floats:
        """max ℓ(x) - ℓ(x') + D(x, x') in doubles."""

    @abstractmethod
    def compare(
        self, question: FiniteQuestion | None, simply: bool, places: Indices, budget: Nats
    ) -> Compared:
        """Compare losses with a budget that doubles cannot tell them from.

        Losses now without a question; else after it, or if ``simply`` losses now plus its epsilon.
        What is neither within nor above is left to rationals.
        """


@dataclass(frozen=True, eq=False)
class FiniteAccounts(Accounts):
    """Some subjects of a state."""

    state: FiniteState
    chosen: Chosen

    def __len__(self) -> int:
        return len(self.chosen)

    def subset(self, mask: Bools) -> FiniteAccounts:
        return FiniteAccounts(self.state, self.chosen.some(np.flatnonzero(mask)))

    def _question(self, query: Query) -> FiniteQuestion:
        question = self.state.questions.of(query)
        assert isinstance(question, FiniteQuestion)
        return question

    def loss(self) -> LossBounds:
        lower, upper = self.state.losses(self.chosen)

        def exact(total: LogLikelihood) -> Nats:
            return total.exact_loss

        return LossBounds(lower, upper, self._settled(None, False, exact))

    def worst_after(self, query: Query, budget: Nats) -> LossBounds:
        question, state = self._question(query), self.state
        slack = state.slack(self.chosen, question.size)
        lower, upper = state.around(state.worst(question, self.chosen), slack, self.chosen)

        def exact(total: LogLikelihood) -> Nats:
            worst = total.worst_after(query, 1, budget, Effort()).exact
            assert worst is not None, "over a finite domain everything is exact"
            return worst()

        return LossBounds(lower, upper, self._settled(question, False, exact))

    def plus_epsilon(self, query: Query, budget: Nats) -> LossBounds:
        question, state = self._question(query), self.state
        epsilon = question.likelihood.epsilon.enclosure.upper
        amounts = state.spread[self.chosen.index] + epsilon
        slack = state.slack(self.chosen, question.size)
        lower, upper = state.around(amounts, slack, self.chosen)

        def exact(total: LogLikelihood) -> Nats:
            return total.exact_loss + question.likelihood.epsilon

        return LossBounds(lower, upper, self._settled(question, True, exact))

    def spent(self, query: Query | None = None) -> LossBounds:
        return spent(self.state, self.chosen, query)

    def by_queries(self, key: Any, case: Case) -> LossBounds:
        return by_queries(self.state, self.chosen, key, case)

    def one_by_one(self, case: Case) -> LossBounds:
        state = self.state
        distinct, index_of = distinct_integers(state.tallies.of_subject[self.chosen.index])
        packed = [state.tallies.packed[tally] for tally in distinct.tolist()]
        cases = [case(Odometer(state.questions.transcript(tally))) for tally in packed]

        def settle(rows: Indices, budget: Nats) -> BudgetComparison:
            within = [cases[index].within(budget) for index in index_of[rows].tolist()]
            unknown = [cases[index].undecided(budget) for index in index_of[rows].tolist()]
            return BudgetComparison(
                np.array(within, dtype=np.bool_), np.array(unknown, dtype=np.bool_)
            )

        lower = np.array([worst.loss.lower for worst in cases], dtype=np.float64)
        upper = np.array([worst.loss.upper for worst in cases], dtype=np.float64)
        return LossBounds(lower[index_of], upper[index_of], settle)

    def _settled(
        self, question: FiniteQuestion | None, simply: bool, exact: Callable[[LogLikelihood], Nats]
    ) -> Callable[[Indices, Nats], BudgetComparison]:
        """Ties in words, and what is left in rationals, once for every tally."""

        def settle(numbers: Indices, budget: Nats) -> BudgetComparison:
            state = self.state
            places, each = state.different(self.chosen.of(numbers))
            compared = state.compare(question, simply, places, budget)
            within = compared.within.copy()
            known: dict[Any, bool] = {}
            for number in np.flatnonzero(~(within | compared.above)).tolist():
                place = int(places[number])
                key = state.tally(place)
                if key not in known:
                    total = log_likelihood(state.domain, state.exact_exchanges(place))
                    known[key] = exact(total) <= budget
                within[number] = known[key]
            return BudgetComparison.decided(within[each])

        return settle


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
