"""The base class of filters without a delta, which may protect less than everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from expost.domains import Domain
from expost.errors import expect, read_at
from expost.filters._account import Account, WorstCase
from expost.filters._decision import remaining
from expost.filters._filter import Filter, budget_from_json
from expost.filters._levels import EVERYTHING, Level, level_from_json
from expost.numbers import ExactLike, Nats

__all__ = ["PureFilter"]


@dataclass(frozen=True, init=False, repr=False)
class PureFilter(Filter):
    """A filter whose budget is about the person as a whole, or about a level of protection.

    At a level, the budget bounds the loss about the pairs of values that the level protects, and
    no more: what counts is the loss, the worst case or the sum of epsilons about these pairs.
    """

    protects: Level

    def __init__(
        self,
        epsilon: ExactLike | None = None,
        *,
        ratio: ExactLike | None = None,
        protects: Level = EVERYTHING,
    ) -> None:
        super().__init__(epsilon, ratio=ratio)
        expect(protects, Level, "a level, such as steps(1)", "protects")
        object.__setattr__(self, "protects", protects)

    @classmethod
    def of(cls, budget: Nats, protects: Level = EVERYTHING) -> Self:
        result = super().of(budget)
        object.__setattr__(result, "protects", protects)
        return result

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Filter:
        budget = budget_from_json(cls.kind, fields, optional=("protects",))
        if "protects" not in fields:
            return cls.of(budget)
        return cls.of(budget, read_at("protects", level_from_json, fields["protects"]))

    def tree(self) -> dict[str, Any]:
        tree = super().tree()
        return tree if not self.is_at_level else {**tree, "protects": self.protects.tree()}

    @property
    def level(self) -> Level:
        return self.protects

    @property
    def limit(self) -> str:
        return (
            super().limit
            if not self.is_at_level
            else f"{super().limit} about {self.protects.about}"
        )

    def check_domain(self, domain: Domain) -> None:
        self.protects.check(domain)

    @property
    def loss_limit(self) -> Nats | None:
        return self.budget if not self.is_at_level else None

    def current_case(self, account: Account) -> WorstCase:
        if not self.is_at_level:
            return super().current_case(account)
        at_level = account.at_level(self.protects)
        return WorstCase(at_level.loss, exact=lambda: at_level.exact_loss)

    def remaining_by_unit(self, account: Account) -> dict[str, float]:
        """Return what remains for each group, step or window that a query has touched.

        Every other one has the whole budget. There are none if the budget is about the person as
        a whole.

        >>> import expost as xp
        >>> person = xp.Attributes(smokes=xp.changing(["no", "yes"]))
        >>> week = xp.BayesianFilter(epsilon=1, protects=xp.steps(1))
        >>> query = xp.randomized_response(epsilon="0.25").about("smokes", at=3)
        >>> odometer = xp.Odometer(xp.Transcript(person, week).add(query, "yes"))
        >>> {name: round(left, 6) for name, left in week.remaining_by_unit(odometer).items()}
        {'step 3': 0.75}
        """
        at_level = account.at_level(self.protects)
        by_unit = at_level.losses_by_unit() if self.by_loss else at_level.sums_by_unit()
        return {unit: remaining(self.budget, amount) for unit, amount in by_unit.items()}

    def __repr__(self) -> str:
        start = super().__repr__()
        return start if not self.is_at_level else f"{start[:-1]}, protects={self.protects!r})"
