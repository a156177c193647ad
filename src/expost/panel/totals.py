"""What depends on the queries that were asked, and on no response: sums, and costs of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from expost._types import Floats, Indices
from expost.filters._account import WorstCase
from expost.filters._many_accounts import BudgetComparison, Case, LossBounds
from expost.numbers import Nats
from expost.panel.places import Chosen
from expost.queries import Query
from expost.tally import distinct_integers

if TYPE_CHECKING:
    from expost.panel.state import State

__all__ = ["by_queries", "exact_spent_bounds", "spent"]


def spent(state: State, chosen: Chosen, query: Query | None) -> LossBounds:
    """The sums of the epsilons of some subjects, perhaps with one more query.

    On a grid they are compared exactly, each sum once; else each collection of queries once.
    """
    charge = None
    if query is not None:
        charge = state.questions.charge(state.questions.of(query))
    lower, upper = state.spent.around(chosen, charge)

    def settle(numbers: Indices, budget: Nats) -> BudgetComparison:
        some = chosen.some(numbers)
        exact = state.spent.exact(some, charge)
        if exact is not None:
            sums, index_of = exact
            within = [Nats(each) <= budget for each in sums]
            return BudgetComparison.decided(np.array(within, dtype=np.bool_)[index_of])
        added = Nats() if charge is None else charge.amount
        tallies, index_of = distinct_integers(state.query_tallies.of_subject[some.index])
        accounts = map(state.query_account, tallies.tolist())
        within = [account.exact_spent + added <= budget for account in accounts]
        return BudgetComparison.decided(np.array(within, dtype=np.bool_)[index_of])

    return LossBounds(lower, upper, settle)


def by_queries(state: State, chosen: Chosen, key: Any, case: Case) -> LossBounds:
    """Return what a case makes of the queries of some subjects, remembered under its key."""
    distinct, index_of = distinct_integers(state.query_tallies.of_subject[chosen.index])
    known = state.query_tallies.results(key)
    for tally in distinct.tolist():
        if tally not in known:
            known[tally] = case(state.query_account(tally))
    cases: list[WorstCase] = [known[tally] for tally in distinct.tolist()]

    def settle(numbers: Indices, budget: Nats) -> BudgetComparison:
        needed, which = np.unique(index_of[numbers], return_inverse=True)
        fits = [cases[number].within(budget) for number in needed.tolist()]
        return BudgetComparison.decided(np.array(fits, dtype=np.bool_)[which])

    lower = np.array([worst.loss.lower for worst in cases])[index_of]
    return LossBounds(lower, np.array([worst.loss.upper for worst in cases])[index_of], settle)


def exact_spent_bounds(state: State) -> Floats:
    """Return the sum of the epsilons of every subject, rounded up once."""
    exact = state.spent.exact(Chosen(state.count))
    if exact is not None:
        sums = [Nats(each) for each in exact[0]]
        index_of = exact[1]
    else:
        tallies, index_of = distinct_integers(state.query_tallies.of_subject)
        sums = [state.query_account(tally).exact_spent for tally in tallies.tolist()]
    return np.array([each.enclosure.upper for each in sums])[index_of]
