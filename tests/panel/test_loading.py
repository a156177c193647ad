"""States that are loaded from tallies decide as those that were folded, ties included."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import expost as xp
from expost.filters import Filter
from expost.filters._many_accounts import current_loss_bounds
from expost.panel._kernel import Kernel
from expost.panel._selection import Selection
from expost.panel._state import State
from support.panel_cases import EPSILONS, families, play, play_on

PERSON = xp.Attributes(region=["n", "s", "w"], smokes=["no", "yes"])
ABOUT = [
    xp.randomized_response(epsilon).about(*names)
    for epsilon in EPSILONS
    for names in (("region",), ("smokes",), ("region", "smokes"))
]
GUARDS: list[Filter] = [
    xp.BayesianFilter(epsilon="0.6"),
    xp.SimplifiedFilter(epsilon="0.6"),
    xp.BasicFilter(epsilon="0.8"),
    xp.ApproximateFilter(epsilon="0.8", delta="1e-6", inner=xp.filters.Renyi(order=12)),
]


def loaded(kernel: Kernel, state: State) -> State:
    """The same answers from their tallies."""
    again = kernel.start(state.count)
    rows = [
        (question.index, position, place)
        for place in range(state.count)
        for question, position in state.log.exchanges(place)
    ]
    distinct = sorted({row[:2] for row in rows})
    counts = Counter((row[2], distinct.index(row[:2])) for row in rows)
    owners, responses = np.array(sorted(counts)).T
    starts = np.searchsorted(owners, np.arange(state.count + 1))
    numbers, positions = zip(*distinct, strict=True)
    times = np.array([counts[key] for key in sorted(counts)])
    again.load(np.array(numbers), np.array(positions, dtype=object), responses, starts, times)
    return again


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.kind)
@pytest.mark.parametrize("on", ["set", "attributes"])
def test_a_tally_decides_as_the_exchanges_do(guard: Filter, on: str) -> None:
    if on == "set":
        kernel, state, _ = play(guard, subjects=24, seed=5, rounds=10)
        queries = [query for epsilon in EPSILONS for query in families(4, epsilon)]
    else:
        queries = list(ABOUT)
        kernel, state, _ = play_on(PERSON, queries, guard, subjects=24, seed=5, rounds=10)
    again, everyone = loaded(kernel, state), Selection(state.count)
    assert (again.exchanges == state.exchanges).all()
    for query in queries:
        number = kernel.query_index(query)
        one, other = kernel.decide(state, number), kernel.decide(again, number)
        assert (one.accepted == other.accepted).all(), query
        assert (one.lower <= other.upper).all()
        assert (other.lower <= one.upper).all()
        assert np.allclose(one.upper, other.upper, atol=1e-9)
    for first, second in zip(state.losses(everyone), again.losses(everyone), strict=True):
        assert np.allclose(first, second, atol=1e-9)
    for first, second in zip(
        state.spent.around(everyone, None), again.spent.around(everyone, None), strict=True
    ):
        assert (first == second).all()


def test_ties_on_the_budget_are_decided_exactly() -> None:
    """Where a response was given often, its logarithm is multiplied, and not added."""
    values = xp.FiniteSet(range(3))
    query = xp.randomized_response(epsilon="0.1")
    kernel = Kernel(values, xp.BayesianFilter(epsilon="0.3"))
    number = kernel.query_index(query)
    state = kernel.start(3)
    # Two, three and four more of one response than of each other: 0.2, 0.3, 0.4 in nats.
    counts = np.array([[1002, 1003, 1004], [1000, 1000, 1000], [1000, 1000, 1000]])
    responses, starts = np.tile(np.arange(3), 3), np.arange(0, 10, 3)
    state.load(np.full(3, number), np.arange(3), responses, starts, counts.T.ravel())
    assert kernel.decide(state, number).accepted.tolist() == [True, False, False]
    accounts = state.accounts(Selection(state.count))
    within = current_loss_bounds(kernel.filter, accounts).against(kernel.filter.budget).within
    assert within.tolist() == [True, True, False]


def test_a_tally_has_no_peak() -> None:
    kernel = Kernel(xp.FiniteSet(range(3)), xp.BayesianFilter(epsilon=1))
    query = kernel.query_index(xp.randomized_response(epsilon="0.1"))
    state = kernel.start(1)
    starts = np.array([0, 2])
    state.load(np.full(2, query), np.arange(2), np.arange(2), starts, np.array([3, 1]))
    with pytest.raises(AssertionError, match="no order"):
        state.peaks(Selection(1))
    assert len(list(state.exact_exchanges(0))) == 4
