"""Costs that depend on the queries asked, and on no response: sums of epsilons, costs of rules.

Decimals that people write have a common denominator, so a column of integers holds every sum
exactly. Other costs, such as the logarithm of a ratio, are enclosed next to it.
Proof: docs/theory/audits.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from expost._types import Floats, Indices, Ints
from expost.domains import Attributes, Domain, require_attributes
from expost.errors import InvalidInput
from expost.filters._account import Account, WorstCase
from expost.filters._levels import EVERYTHING, Level
from expost.filters.rules import Rule, Total
from expost.loss._levels import LevelLikelihood, start_level
from expost.numbers import Enclosure, Nats, RunningSum
from expost.panel._selection import Selection
from expost.queries import Query
from expost.solver import Effort
from expost.tally import distinct_integers

__all__ = ["Charge", "Grid", "QueryOnlyAccount", "Spent"]


# Quotients of integers below 2^53 are the nearest doubles.
_MOST = 1 << 53
_LARGEST_DENOMINATOR = 1 << 32


class Grid:
    """A common denominator of the epsilons that were asked so far."""

    __slots__ = ("denominator",)

    def __init__(self) -> None:
        self.denominator = 1

    def admit(self, amount: Nats) -> bool:
        """Return whether an amount is on the grid, which may become finer for it."""
        if not amount.is_rational:
            return False
        finer = math.lcm(self.denominator, amount.rational.denominator)
        if finer > _LARGEST_DENOMINATOR or amount.rational * finer >= 1 << 40:
            return False
        self.denominator = finer
        return True

    def steps(self, amount: Fraction) -> int:
        """Convert an amount into steps of the grid, if it is a whole number of them."""
        finer, remainder = divmod(self.denominator, amount.denominator)
        assert not remainder, "every amount was admitted"
        return amount.numerator * finer


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of a query, and whether it is on the grid."""

    amount: Nats
    on_grid: bool


class Spent:
    """The sums of some subjects, in steps of a grid, and those that are not on it."""

    def __init__(self, count: int, grid: Grid) -> None:
        self._grid = grid
        self._denominator = grid.denominator
        self._steps = np.zeros(count, dtype=np.int64)
        self._off_grid: Floats | None = None

    def steps(self, charges: Sequence[Charge]) -> Ints:
        """Return charges in steps of the grid, 0 for those that are not on it."""
        rationals = [charge.amount.rational if charge.on_grid else Fraction() for charge in charges]
        return np.array([self._grid.steps(amount) for amount in rationals], dtype=np.int64)

    def load(self, steps: Ints) -> None:
        """Charge every subject so many steps of the grid."""
        self._refine()
        self._steps += steps

    def add(self, charge: Charge, selection: Selection) -> None:
        """Charge some subjects for a query."""
        self._refine()
        if charge.on_grid:
            self._steps[selection.subscript] += self._grid.steps(charge.amount.rational)
            return
        if self._off_grid is None:
            self._off_grid = np.zeros((2, len(self._steps)))
        around = charge.amount.enclosure
        lower, upper = self._off_grid[:, selection.subscript]
        self._off_grid[:, selection.subscript] = _sum(lower, upper, around.lower, around.upper)

    def _refine(self) -> None:
        if self._denominator != self._grid.denominator:
            self._steps *= self._grid.denominator // self._denominator
            self._denominator = self._grid.denominator
        if self._steps.max(initial=0) >= _MOST:
            raise InvalidInput("the epsilons of a subject add up to more than can be counted")

    def around(self, selection: Selection, charge: Charge | None) -> tuple[Floats, Floats]:
        """Bound the sums of some subjects by doubles, perhaps with one more query."""
        self._refine()
        added_steps = self._grid.steps(charge.amount.rational) if charge and charge.on_grid else 0
        nearest = (self._steps[selection.subscript] + added_steps) / self._denominator
        lower = np.where(nearest > 0, np.nextafter(nearest, -np.inf), 0.0)
        upper = np.where(nearest > 0, np.nextafter(nearest, np.inf), 0.0)
        if self._off_grid is not None:
            lower, upper = _sum(lower, upper, *self._off_grid[:, selection.subscript])
        if charge and not charge.on_grid:
            added = charge.amount.enclosure
            lower, upper = _sum(lower, upper, added.lower, added.upper)
        return lower, upper

    def exact(
        self, selection: Selection, charge: Charge | None = None
    ) -> tuple[list[Fraction], Indices] | None:
        """Return the distinct exact sums and each subject's; None if some are not on the grid."""
        if self._off_grid is not None or (charge and not charge.on_grid):
            return None
        self._refine()
        added_steps = self._grid.steps(charge.amount.rational) if charge else 0
        distinct, index_of = distinct_integers(self._steps[selection.subscript] + added_steps)
        return [Fraction(total, self._denominator) for total in distinct.tolist()], index_of


def _sum(
    lower: Floats, upper: Floats, lowest: Floats | float, highest: Floats | float
) -> tuple[Floats, Floats]:
    """Add two amounts, rounded outward; zero and infinity are added exactly."""
    low, high = lower + lowest, upper + highest
    exact = (np.asarray(highest) == 0) | np.isinf(low)
    return (
        np.where(exact, low, np.nextafter(low, -np.inf)),
        np.where(exact, high, np.nextafter(high, np.inf)),
    )


class QueryOnlyAccount(Account):
    """An account of queries alone: how often each was asked. It knows of no response."""

    __slots__ = ("_before", "_count", "_domain", "_last", "_levels", "_totals")

    def __init__(self, domain: Domain, before: QueryOnlyAccount | None, last: Query | None) -> None:
        self._domain = domain
        self._before = before
        self._last = last
        self._count: int = 0 if before is None else before._count + 1
        self._totals: dict[Rule, Total] = {}
        self._levels: dict[Level, LevelLikelihood] = {}

    @property
    def domain(self) -> Domain:
        return self._domain

    def __len__(self) -> int:
        return self._count

    def at_level(self, level: Level) -> Account:
        if level == EVERYTHING:
            return self
        domain = require_attributes(self._domain, "levels are for records")
        return _LevelQueries(self, self._sums_at(level, domain))

    def _sums_at(self, level: Level, domain: Attributes) -> LevelLikelihood:
        """Return the sums of epsilons at a level, which count no response."""
        uncounted, total = list[QueryOnlyAccount](), self
        while level not in total._levels and total._before is not None:
            uncounted.append(total)
            total = total._before
        sums = total._levels.setdefault(level, start_level(level, domain))
        for account in reversed(uncounted):
            assert account._last is not None
            sums = account._levels[level] = sums.add(account._last, 0, counted=False)
        return sums

    def total(self, rule: Rule) -> Total:
        total = self._totals.get(rule)
        if total is None:
            total = Total()
            for before in reversed(list(self._uncounted_back_to(rule))):
                if before._last is not None:
                    assert before._before is not None
                    total = before._before._totals[rule] + rule.price(before._last, self._domain)
                before._totals[rule] = total
        return total

    def _uncounted_back_to(self, rule: Rule) -> Iterable[QueryOnlyAccount]:
        """Yield this account and those before it, up to the first whose total is known."""
        total: QueryOnlyAccount | None = self
        while total is not None and rule not in total._totals:
            yield total
            total = total._before

    def exact_total(self, rule: Rule) -> Nats:
        return Nats.total((rule.charge(query, self._domain)[0], 1) for query in self._queries)

    @property
    def exact_spent(self) -> Nats:
        return Nats.total((query.ceiling(self._domain), 1) for query in self._queries)

    @property
    def charged(self) -> RunningSum:
        total = RunningSum()
        for query in self._queries:
            total += RunningSum.of(query.ceiling(self._domain))
        return total

    @property
    def _queries(self) -> Iterable[Query]:
        total: QueryOnlyAccount | None = self
        while total is not None and total._last is not None:
            yield total._last
            total = total._before

    @property
    def effort(self) -> Effort:
        return Effort()

    @property
    def searched(self) -> bool:
        return False

    @property
    def distinct_exchanges(self) -> int:
        return self._count

    @property
    def loss(self) -> Enclosure:
        raise AssertionError("what depends on responses is not asked here")

    @property
    def exact_loss(self) -> Nats:
        raise AssertionError("what depends on responses is not asked here")

    def loss_against(self, limit: float) -> Enclosure:
        return self.loss

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return WorstCase(self.loss)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return WorstCase(self.loss)

    def without_last(self) -> tuple[Self, Query]:
        raise AssertionError("collections have no order")

    def with_effort(self, effort: Effort) -> Self:
        return self


class _LevelQueries(QueryOnlyAccount):
    """An account of queries alone, with the largest sum of the epsilons that touch one unit."""

    __slots__ = ("_sums",)

    def __init__(self, account: QueryOnlyAccount, sums: LevelLikelihood) -> None:
        super().__init__(account._domain, account._before, account._last)
        self._sums = sums

    @property
    def charged(self) -> RunningSum:
        return RunningSum(enclosed=self._sums.spent.loss)

    @property
    def exact_spent(self) -> Nats:
        exact = self._sums.spent.exact
        assert exact is not None, "sums of epsilons are exact"
        return exact()

    def spent_after(self, query: Query, times: int) -> WorstCase:
        return self._sums.spent_after(query, times)
