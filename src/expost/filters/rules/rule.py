"""What a composition rule is: sums over the accepted queries, and the budget that they take.

A rule never looks at a response. It has no budget of its own; whatever its theorem needs fixed in
advance is one of its parameters. Every sum can only grow, and so does the budget that it takes: a
transcript that fits has always fitted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query

__all__ = ["NEVER", "Amount", "Rule", "Total", "rounded_up"]

Amount = Fraction | float
"""An exact sum of doubles; a float only where it is infinite."""

NEVER = Enclosure(math.inf, math.inf)
"""The cost of what fits no budget."""


@dataclass(frozen=True, slots=True)
class Total:
    """What a rule has summed up over some queries."""

    epsilon: Added = field(default=Added())
    delta: Fraction = Fraction(0)
    amounts: tuple[Amount, ...] = ()

    def __add__(self, other: Total) -> Total:
        amounts = other.amounts
        if self.amounts:
            amounts = tuple(a + b for a, b in zip(self.amounts, other.amounts, strict=True))
        return Total(self.epsilon + other.epsilon, self.delta + other.delta, amounts)

    def __mul__(self, times: int) -> Total:
        amounts = tuple(amount * times for amount in self.amounts)
        return Total(self.epsilon * times, self.delta * times, amounts)


class Rule(ABC):
    """An (epsilon, delta) composition theorem for queries that are chosen adaptively.

    Frozen. A rule accepts while :meth:`cost`, or else the sum of the epsilons, is within the
    budget, and the deltas of the queries are within :meth:`allowance`.
    """

    kind: ClassVar[str]

    @abstractmethod
    def tree(self) -> dict[str, Any]:
        """The parameters in their JSON shape."""

    @classmethod
    @abstractmethod
    def from_json(cls, fields: dict[str, Any]) -> Rule:
        """Read the parameters, without ``kind``, strictly."""

    def check(self, delta: Fraction) -> None:
        """Refuse a delta that the theorem does not allow."""
        if self.allowance(delta) < 0:
            raise InvalidInput("must be at most delta", "delta_prime")

    def allowance(self, delta: Fraction) -> Fraction:
        """What the deltas of the queries may add up to; fixed in advance."""
        return delta

    def charge(self, query: Query, domain: Domain) -> tuple[Nats, Fraction]:
        """The epsilon and the delta of a query, as this rule counts them."""
        return query.charge(domain), query.delta

    @abstractmethod
    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        """What else is summed up, rounded up to doubles."""

    @abstractmethod
    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        """The least budget on which the formula of the theorem accepts all of this.

        Act on ``upper``. Both ends are certain, given the sums.
        """

    def price(self, query: Query, domain: Domain) -> Total:
        """The sums over one query."""
        epsilon, delta = self.charge(query, domain)
        amounts = tuple(
            amount if amount == math.inf else Fraction(amount)
            for amount in self.amounts(query, domain)
        )
        return Total(Added.of(epsilon), delta, amounts)


def rounded_up(epsilon: Nats) -> Fraction | None:
    """The double that is not below an amount, exactly; None if that is infinite."""
    upper = epsilon.enclosure.upper
    return None if upper == math.inf else Fraction(upper)
