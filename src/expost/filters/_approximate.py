"""The (epsilon, delta) filter that continues where composition ends."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from expost.filters._account import Account, WorstCase
from expost.filters._bayesian import BayesianFilter
from expost.filters._composition import CompositionFilter
from expost.filters._filter import Filter
from expost.filters.rules import Mixture, Rule
from expost.numbers import ExactLike, Nats
from expost.queries import Query, read_delta

__all__ = ["ApproximateFilter"]


class ApproximateFilter(CompositionFilter):
    """A filter that accepts what a composition rule or the Bayesian filter does (Algorithm 4).

    The rule counts every query that was answered, including those that only the Bayesian filter
    accepted: from the first such query on, the Bayesian filter decides alone. While the rule
    accepts, losses are its costs; after that they are realized losses. Proof:
    docs/theory/approximate.md.

    Args:
        epsilon: The ε of the budget in nats, exact as written.
        delta: The δ of the budget.
        inner: The composition rule, by default :meth:`Mixture.for_budget`.
        ratio: The budget as e^epsilon, instead of ``epsilon``.

    >>> import expost as xp
    >>> filter_ = xp.ApproximateFilter(epsilon=1, delta="1e-6")
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    >>> filter_.inner, bool(filter_.decide(start, xp.randomized_response(epsilon="0.1")))
    (Mixture(4 lambdas from 21.1), True)
    """

    kind: ClassVar[str] = "approximate"
    compares: ClassVar[str] = (
        f"{CompositionFilter.compares} and, if that is too large, {BayesianFilter.compares}"
    )
    by_responses: ClassVar[bool] = True
    named: ClassVar[str] = "inner"

    def __init__(
        self,
        epsilon: ExactLike | None = None,
        delta: ExactLike | None = None,
        inner: Rule | None = None,
        *,
        ratio: ExactLike | None = None,
    ) -> None:
        if inner is None and delta is not None:
            inner = Mixture.for_exact_budget(Nats.budget(epsilon, ratio), read_delta(delta))
        super().__init__(epsilon, delta, inner, ratio=ratio)

    @property
    def inner(self) -> Rule:
        """The composition rule."""
        return self.rule

    @cached_property
    def bayesian(self) -> BayesianFilter:
        """The Bayesian filter that decides where the rule does not accept."""
        return BayesianFilter.of(self.budget)

    def current_case(self, account: Account) -> WorstCase:
        composed = super().current_case(account)
        return composed if composed.within(self.budget) else Filter.current_case(self, account)

    def holds(self, account: Account) -> bool | None:
        return super().current_case(account).within(self.budget) or self.bayesian.holds(account)

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        # Every sum of the rule only grows, so if all fits with the query, all did before.
        composed = super().worst_case(account, query, times)
        if composed.within(self.budget):
            return composed
        return self.bayesian.worst_case(account, query, times)
