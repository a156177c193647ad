"""What depends on the queries that were asked, and on no response: sums, and costs of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from expost._types import Indices
from expost.filters._account import Account, WorstCase
from expost.filters._account_arrays import Amounts, Case, Settled
from expost.numbers import Nats
from expost.panel.places import Chosen
from expost.queries import Query

if TYPE_CHECKING:
    from expost.panel.state import State

__all__ = ["by_queries", "spent"]


def spent(state: State, chosen: Chosen, query: Query | None) -> Amounts:
    """The sums of the epsilons of some subjects, perhaps with one more query.

    On a grid they are compared exactly, each sum once; else each collection of queries once.
    """
    charge = None
    if query is not None:
        charge = state.questions.charge(state.questions.of(query))
    lower, upper = state.spent.around(chosen, charge)

    def settle(numbers: Indices, budget: Nats) -> Settled:
        sums = state.spent.exact(chosen.of(numbers), charge)
        if sums is not None:
            fits = {each: Nats(each) <= budget for each in set(sums)}
            return Settled.surely(np.array([fits[each] for each in sums], dtype=np.bool_))
        more = Nats() if charge is None else charge.amount
        places = chosen.of(numbers)
        return _per_collection(state, places, lambda known: known.exact_spent + more <= budget)

    return Amounts(lower, upper, settle)


def _per_collection(state: State, places: Indices, within: Callable[[Account], bool]) -> Settled:
    own, each = state.collections.numbers(places)
    fits = [within(state.collections.accounts[number]) for number in own.tolist()]
    return Settled.surely(np.array(fits, dtype=np.bool_)[each])


def by_queries(state: State, chosen: Chosen, key: Any, case: Case) -> Amounts:
    """What a case makes of the queries of some subjects, kept by its key."""
    collections = state.collections
    own, each = collections.numbers(chosen.index)
    known = collections.cases.setdefault(key, [])
    known += [None] * (len(collections.accounts) - len(known))
    cases: list[WorstCase] = []
    for number in own.tolist():
        found = known[number]
        if found is None:
            found = known[number] = case(collections.accounts[number])
        cases.append(found)

    def settle(numbers: Indices, budget: Nats) -> Settled:
        needed, which = np.unique(each[numbers], return_inverse=True)
        fits = [cases[number].within(budget) for number in needed.tolist()]
        return Settled.surely(np.array(fits, dtype=np.bool_)[which])

    lower = np.array([found.loss.lower for found in cases])[each]
    return Amounts(lower, np.array([found.loss.upper for found in cases])[each], settle)
