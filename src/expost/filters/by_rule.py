"""A filter that goes by a composition rule alone, and never looks at a response."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from expost.errors import InvalidInput
from expost.filters.filter import Filter, WorstCase
from expost.filters.rules import Rule, Total
from expost.filters.rules.rule import NEVER
from expost.loss.odometer import Odometer
from expost.loss.realized import total_charge
from expost.numbers import INFINITE, Enclosure, ExactLike, Nats, decimal_text
from expost.queries import Query
from expost.queries.query import read_delta
from expost.transcript import FilterSpec

__all__ = ["CompositionFilter"]


@dataclass(frozen=True, init=False, repr=False)
class CompositionFilter(Filter):
    """Accept while a composition rule says that an (epsilon, delta) budget is kept.

    ``loss`` and ``loss_at_worst`` are the least epsilon on which the rule would have accepted all
    of it, at this delta. Proof: docs/theory/approximate.md.
    """

    kind: ClassVar[str] = "composition"
    pure: ClassVar[bool] = False
    by_loss: ClassVar[bool] = False
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
        self._set_up(FilterSpec(self.kind, self.budget, read_delta(delta), rule))

    @classmethod
    def of_spec(cls, spec: FilterSpec) -> Self:
        result = object.__new__(cls)
        result._set_up(spec)
        return result

    def _set_up(self, spec: FilterSpec) -> None:
        for name in ("budget", "delta", "rule"):
            object.__setattr__(self, name, getattr(spec, name))

    @property
    def spec(self) -> FilterSpec:
        return FilterSpec(self.kind, self.budget, self.delta, self.rule)

    def held(self, odometer: Odometer) -> WorstCase:
        """What is held against the budget so far."""
        return self._case(odometer.total(self.rule), lambda: self._sum(odometer))

    def loss(self, odometer: Odometer) -> Enclosure:
        return self.held(odometer).loss

    def exact_loss(self, odometer: Odometer) -> Nats:
        exact = self.held(odometer).exact
        assert exact is not None, "the costs of a rule are exact, also over a box"
        return exact()

    def holds(self, odometer: Odometer) -> bool | None:
        return self.held(odometer).within(self.budget)

    def worst_case(self, odometer: Odometer, query: Query, times: int = 1) -> WorstCase:
        domain = odometer.transcript.domain
        total = odometer.total(self.rule) + self.rule.price(query, domain) * times
        charge, _ = self.rule.charge(query, domain)
        return self._case(total, lambda: self._sum(odometer) + charge * times)

    def _case(self, total: Total, exact_sum: Callable[[], Nats]) -> WorstCase:
        """The cost of what was summed up; what is not certain to fit does not fit."""
        if total.delta > self.rule.allowance(self.delta):
            return WorstCase(NEVER, exact=lambda: INFINITE)
        cost = self.rule.cost(total, self.delta)
        certain = INFINITE if cost.upper == math.inf else Nats(Fraction(cost.upper))
        added = total.epsilon.enclosure
        least = Enclosure(min(cost.lower, added.lower), min(cost.upper, added.upper))
        return WorstCase(least, exact=lambda: min(certain, exact_sum()))

    def _sum(self, odometer: Odometer) -> Nats:
        """The epsilons that the rule counts, added up exactly."""
        transcript = odometer.transcript
        return total_charge(
            (self.rule.charge(exchange.query, transcript.domain)[0], 1)
            for exchange in transcript.exchanges
        )

    def __repr__(self) -> str:
        start = super().__repr__()[:-1]
        return f"{start}, delta={decimal_text(self.delta)}, {self.rule!r})"
