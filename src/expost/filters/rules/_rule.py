"""The interface of composition rules: sums over the accepted queries, and the budget they take.

A rule never looks at a response. It has no budget of its own: whatever its theorem needs fixed in
advance is one of its parameters. Sums can only grow, and so does the budget that they take. So if a
transcript fits, every beginning of it does.
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
from expost.files.reading import members
from expost.numbers import Enclosure, Nats, RunningSum, decimal_text
from expost.queries import Query, read_delta

__all__ = ["UNAFFORDABLE", "Amount", "Rule", "Total", "rounded_up"]

#: An exact sum of doubles; a float only if it is infinite.
Amount = Fraction | float

#: The cost of queries that fit into no budget.
UNAFFORDABLE = Enclosure(math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Total:
    """The sums of a rule over some queries: epsilons, deltas, and other amounts.

    >>> from expost.numbers import Nats
    >>> total = Total(RunningSum.of(Nats(Fraction("0.1"))), Fraction("1e-7"))
    >>> (total * 3 + total).epsilon.exact, (total * 3 + total).delta
    (Fraction(2, 5), Fraction(1, 2500000))
    """

    epsilon: RunningSum = field(default=RunningSum())
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

    A rule is given to :class:`CompositionFilter` or :class:`ApproximateFilter`, which accept a
    query while :meth:`cost` or the sum of the epsilons is within the budget, and the sum of the
    queries' deltas is within :meth:`allowance`. Rules are frozen. Choose one before the first
    response: accepting whatever one of two rules accepts is not a rule.

    >>> import expost as xp
    >>> from expost.filters.rules import Sums
    >>> xp.filters.CompositionFilter(epsilon=1, delta="1e-6", rule=Sums()).rule
    Sums()
    """

    kind: ClassVar[str]
    #: The fields in JSON, which are arguments of the constructor and attributes.
    required: ClassVar[tuple[str, ...]] = ()
    #: Those that may be left out.
    optional: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = [f"{name}={decimal_text(number)}" for name, number in self.tree().items()]
        return f"{type(self).__name__}({', '.join(shown)})"

    def tree(self) -> dict[str, Any]:
        """Return the fields besides ``kind``, as in a transcript file."""
        tree = {name: getattr(self, name) for name in (*self.required, *self.optional)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in tree.items()
            if value is not None
        }

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Rule:
        """Return the rule that has these fields in a transcript file."""
        fields = members(fields, required=cls.required, optional=cls.optional)
        if "delta_prime" in fields:  # null is no number
            read_delta(fields["delta_prime"], "delta_prime")
        return cls(**fields)

    def check(self, delta: Fraction) -> None:
        """Refuse a delta that the theorem does not allow."""
        if self.allowance(delta) < 0:
            raise InvalidInput("must be at most delta", "delta_prime")

    def allowance(self, delta: Fraction) -> Fraction:
        """Return the most that the deltas of the queries may add up to, fixed in advance."""
        return delta

    def charge(self, query: Query, domain: Domain) -> tuple[Nats, Fraction]:
        """Return the epsilon and the delta of a query, as this rule counts them."""
        return query.charge(domain), query.delta

    @abstractmethod
    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        """Return the other amounts that the rule sums up, each rounded up to a double."""

    @abstractmethod
    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        """Enclose the least budget at which the formula of the theorem accepts these sums.

        Act on ``upper``. Both ends are certain, given the sums.
        """

    def price(self, query: Query, domain: Domain) -> Total:
        """Return the sums for one query; multiply and add them for several."""
        epsilon, delta = self.charge(query, domain)
        amounts = tuple(
            amount if amount == math.inf else Fraction(amount)
            for amount in self.amounts(query, domain)
        )
        return Total(RunningSum.of(epsilon), delta, amounts)


def rounded_up(epsilon: Nats) -> Fraction | None:
    """Return the least double that is not below an amount, as a fraction; None if infinite."""
    upper = epsilon.enclosure.upper
    return None if upper == math.inf else Fraction(upper)
