"""Filters of every kind with every composition rule, and three that users could have written.

A filter of your own takes the contract suite by an entry in ``CASES``, and if it is not in the
package one in ``USER_FILTERS``.
"""

from __future__ import annotations

from collections.abc import Callable

import expost as xp
from expost.filters import (
    OVER_ANY_BUDGET,
    Account,
    AllOf,
    ApproximateFilter,
    BasicFilter,
    BayesianFilter,
    CompositionFilter,
    Declared,
    Filter,
    Mixture,
    Renyi,
    Rogers,
    Rule,
    SimplifiedFilter,
    Sums,
    Whitehouse,
    WorstCase,
)
from expost.numbers import Nats
from expost.queries import Query

DELTA = "0.1"

RULE_CASES: dict[str, Rule] = {
    "sums": Sums(),
    "rogers": Rogers(),
    "whitehouse": Whitehouse("0.05"),
    "renyi": Renyi(order=4),
    "mixture": Mixture(["1", "3"], ["0.4", "0.6"]),
    "declared": Declared({"0.1": 4, "0.7": 3}),
}


class Few(Filter):
    """As the Bayesian filter, and at most three queries."""

    kind = "few"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        if len(account) + times > 3:
            return OVER_ANY_BUDGET
        return account.worst_after(query, times, self.budget)


class Half(Filter):
    """As the Simplified filter with half of the budget. The account compares with that half."""

    kind = "half"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.plus_epsilon(query, times, self.half)

    @property
    def half(self) -> Nats:
        epsilon = self.budget.enclosure.lower / 2
        return BayesianFilter(epsilon).budget


class HalfAfter(Half):
    """As the Bayesian filter with half of the budget."""

    kind = "half-after"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.worst_after(query, times, self.half)


MadeFilter = Callable[..., Filter]
"""Makes a filter from ``epsilon`` or ``ratio``."""


def _composed(kind: type[CompositionFilter], rule: Rule) -> MadeFilter:
    def make(epsilon: object = None, *, ratio: object = None) -> Filter:
        return kind(epsilon, DELTA, rule, ratio=ratio)  # type: ignore[arg-type]  # bad budgets too

    return make


def _both(epsilon: object = None, *, ratio: object = None) -> Filter:
    first = SimplifiedFilter(epsilon, ratio=ratio)  # type: ignore[arg-type]  # bad budgets too
    return AllOf(first, BayesianFilter.of(first.budget))


USER_FILTERS: dict[str, type[Filter]] = {kind.kind: kind for kind in (Few, Half, HalfAfter)}

CASES: dict[str, MadeFilter] = {
    "basic": BasicFilter,
    "simplified": SimplifiedFilter,
    "bayesian": BayesianFilter,
    **{f"composition {name}": _composed(CompositionFilter, r) for name, r in RULE_CASES.items()},
    **{f"approximate {name}": _composed(ApproximateFilter, r) for name, r in RULE_CASES.items()},
    "all": _both,
    **USER_FILTERS,
}

DOMAIN = xp.FiniteSet(range(3))

QUERIES: dict[str, Query] = {
    "first": xp.channel([["2/3", "1/3"], ["1/3", "2/3"], ["1/2", "1/2"]]),
    "second": xp.channel([["1/2", "1/2"], ["1/3", "2/3"], ["2/3", "1/3"]]),
    "three responses": xp.channel(
        [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]]
    ),
    "a little": xp.randomized_response(epsilon="0.1"),
    "nothing": xp.channel([["1/2", "1/2"]] * 3),
    "for certain": xp.channel([["0", "1"], ["1/2", "1/2"], ["1/2", "1/2"]]),
}
