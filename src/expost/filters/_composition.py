"""A filter that follows a composition rule alone, and never looks at a response."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from expost._format import format_number
from expost.errors import InvalidInput, at, expect, read_at
from expost.filters._account import OVER_ANY_BUDGET, Account, WorstCase
from expost.filters._filter import Filter, budget_from_json, checked_budget
from expost.filters._levels import LEVEL_WITH_DELTA
from expost.filters.rules import Rule, Total, rule_from_json
from expost.numbers import INFINITE, Enclosure, ExactLike, Nats, decimal_text
from expost.queries import Query, read_delta

__all__ = ["CompositionFilter"]


@dataclass(frozen=True, init=False, repr=False)
class CompositionFilter(Filter):
    """A filter by a composition rule, for an (epsilon, delta) budget.

    ``loss`` and ``loss_at_worst`` are the least epsilon at which the rule accepts all queries, at
    this delta. Proof: docs/theory/approximate.md.

    >>> import expost as xp
    >>> rule = xp.filters.rules.Renyi(order=8)
    >>> filter_ = xp.filters.CompositionFilter(epsilon=1, delta="1e-6", rule=rule)
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    >>> bool(filter_.decide(start, xp.randomized_response(epsilon="0.1")))
    True
    """

    kind: ClassVar[str] = "composition"
    compares: ClassVar[str] = "the epsilon of all queries under its composition rule"
    pure: ClassVar[bool] = False
    by_loss: ClassVar[bool] = False
    by_responses: ClassVar[bool] = False
    #: The field of a file that has the rule.
    named: ClassVar[str] = "rule"
    delta: Fraction
    rule: Rule

    def __init__(
        self,
        epsilon: ExactLike | None = None,
        delta: ExactLike | None = None,
        rule: Rule | None = None,
        *,
        ratio: ExactLike | None = None,
    ) -> None:
        if delta is None:
            raise InvalidInput("is missing", "delta")
        super().__init__(epsilon, ratio=ratio)
        self._set_up(self.budget, read_delta(delta), rule)

    @classmethod
    def of(cls, budget: Nats) -> Self:
        raise InvalidInput("is missing", "delta")

    @classmethod
    def by(cls, rule: Rule, budget: Nats, delta: Fraction) -> Self:
        """Return the filter with a rule, an exact budget and an exact delta."""
        result = object.__new__(cls)
        result._set_up(checked_budget(budget), read_delta(delta), rule)
        return result

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> CompositionFilter:
        if "protects" in fields:
            raise InvalidInput(LEVEL_WITH_DELTA, "protects")
        budget = budget_from_json(cls.kind, fields, "delta", cls.named)
        delta = read_delta(fields["delta"])
        return cls.by(read_at(cls.named, rule_from_json, fields[cls.named]), budget, delta)

    def _set_up(self, budget: Nats, delta: Fraction, rule: Rule | None) -> None:
        with at(self.named):
            expect(rule, Rule, "a composition rule, such as Renyi(order=8)")
            assert rule is not None
            rule.check(delta)
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "rule", rule)

    def tree(self) -> dict[str, Any]:
        rule = {"kind": self.rule.kind, **self.rule.tree()}
        return {**super().tree(), "delta": self.delta, self.named: rule}

    @property
    def limit(self) -> str:
        return f"{self.budget} at delta {format_number(self.delta)}"

    def current_case(self, account: Account) -> WorstCase:
        return self._case(account.total(self.rule), lambda: account.exact_total(self.rule))

    def surely_accepts(self, account: Account, query: Query) -> bool:
        # A rule never costs more than the sum of the epsilons, which needs no logarithms.
        total = account.total(self.rule) + self.rule.price(query, account.domain)
        within = total.epsilon.enclosure.upper <= self.budget.enclosure.lower
        return within and total.delta <= self.rule.allowance(self.delta)

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        rule, domain = self.rule, account.domain
        total = account.total(rule) + rule.price(query, domain) * times
        charge, _ = rule.charge(query, domain)
        return self._case(total, lambda: account.exact_total(rule) + charge * times)

    def _case(self, total: Total, exact_sum: Callable[[], Nats]) -> WorstCase:
        """Bound the cost of a total; a total that may not fit does not fit."""
        if total.delta > self.rule.allowance(self.delta):
            return OVER_ANY_BUDGET
        cost = self.rule.cost(total, self.delta)
        certain = INFINITE if cost.upper == math.inf else Nats(Fraction(cost.upper))
        added = total.epsilon.enclosure
        least = Enclosure(min(cost.lower, added.lower), min(cost.upper, added.upper))
        return WorstCase(least, exact=lambda: min(certain, exact_sum()))

    def __repr__(self) -> str:
        start = super().__repr__()[:-1]
        return f"{start}, delta={decimal_text(self.delta)}, {self.rule!r})"

    def _card_facts(self) -> dict[str, object]:
        return {**super()._card_facts(), "delta": decimal_text(self.delta), "rule": self.rule}
