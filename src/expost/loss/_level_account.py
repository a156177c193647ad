"""The account of a transcript at a level of protection."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from expost.domains import Attributes, require_attributes
from expost.filters._account import Account, WorstCase
from expost.filters._levels import Level
from expost.filters.rules import Rule, Total
from expost.loss._levels import LevelLikelihood
from expost.numbers import INFINITE, Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort

if TYPE_CHECKING:
    from expost.loss._odometer import Odometer

__all__ = ["LevelAccount"]

_INFINITE = WorstCase(Enclosure(math.inf, math.inf), exact=lambda: INFINITE)


class LevelAccount(Account):
    """The responses so far, as far as they tell the protected pairs of values apart.

    Units cover all variables, so if a response is impossible for one record and not for another,
    it is for some protected pair. Then the loss is infinite at every level.
    """

    __slots__ = ("_level", "_likelihood", "_odometer")

    def __init__(self, odometer: Odometer, level: Level, likelihood: LevelLikelihood) -> None:
        self._odometer = odometer
        self._level = level
        self._likelihood = likelihood

    @property
    def domain(self) -> Attributes:
        return require_attributes(self._odometer.domain, "levels are for records")

    def __len__(self) -> int:
        return len(self._odometer)

    @property
    def effort(self) -> Effort:
        return self._odometer.effort

    @property
    def searched(self) -> bool:
        return False

    @property
    def _is_infinite(self) -> bool:
        return self._odometer.is_infinite

    @property
    def _held(self) -> WorstCase:
        return _INFINITE if self._is_infinite else self._likelihood.loss

    @property
    def loss(self) -> Enclosure:
        return self._held.loss

    @property
    def exact_loss(self) -> Nats:
        exact = self._held.exact
        assert exact is not None, "on records everything is exact"
        return exact()

    @property
    def charged(self) -> RunningSum:
        return RunningSum(enclosed=self._likelihood.spent.loss)

    @property
    def spent(self) -> Enclosure:
        return self._likelihood.spent.loss

    @property
    def exact_spent(self) -> Nats:
        exact = self._likelihood.spent.exact
        assert exact is not None, "on records everything is exact"
        return exact()

    def spent_after(self, query: Query, times: int) -> WorstCase:
        return self._likelihood.spent_after(query, times)

    def losses_by_unit(self) -> dict[str, Enclosure]:
        """Return the losses about each unit that a query has touched, by names for people."""
        if self._is_infinite:
            return {unit.label: _INFINITE.loss for unit in self._likelihood.sums_by_unit()}
        cases = self._likelihood.losses_by_unit()
        return {unit.label: case.loss for unit, case in cases.items()}

    def sums_by_unit(self) -> dict[str, Enclosure]:
        """Return the sums of epsilons about each unit that a query has touched."""
        cases = self._likelihood.sums_by_unit()
        return {unit.label: case.loss for unit, case in cases.items()}

    def at_level(self, level: Level) -> Account:
        return self if level == self._level else self._odometer.at_level(level)

    @property
    def distinct_exchanges(self) -> int:
        return self._odometer.distinct_exchanges

    def total(self, rule: Rule) -> Total:
        return self._odometer.total(rule)

    def exact_total(self, rule: Rule) -> Nats:
        return self._odometer.exact_total(rule)

    def loss_against(self, limit: float) -> Enclosure:
        return self.loss

    def _is_impossible(self, query: Query) -> bool:
        """Return whether some record has, or can have, given an impossible response."""
        return self._is_infinite or query.on(self.domain).on_part.epsilon.is_infinite

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        if self._is_impossible(query):
            return _INFINITE
        return replace(self._likelihood.worst_after(query, times), limit=budget)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        if self._is_impossible(query):
            return _INFINITE
        return replace(self._likelihood.plus_epsilon(query, times), limit=budget)

    def without_last(self) -> tuple[LevelAccount, Query]:
        before, query = self._odometer.without_last()
        return before.level_account(self._level), query

    def with_effort(self, effort: Effort) -> LevelAccount:
        return self._odometer.with_effort(effort).level_account(self._level)
