"""Accounts of many subjects in arrays, as filters ask for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expost._types import Bools, Indices
from expost.filters._many_accounts import Accounts, BudgetComparison, Case, LossBounds
from expost.loss import LogLikelihood, Odometer, log_likelihood
from expost.numbers import Nats
from expost.panel.places import Chosen
from expost.panel.question import FiniteQuestion
from expost.panel.totals import by_queries, spent
from expost.queries import Query
from expost.solver import Effort
from expost.tally import distinct_integers

if TYPE_CHECKING:
    from expost.panel.finite import FiniteState

__all__ = ["FiniteAccounts"]


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
