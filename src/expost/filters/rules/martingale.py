"""What the Rényi rule and the mixture share: cumulants that add up along a transcript."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.filters.rules.domination import Component, least_budget
from expost.filters.rules.rule import Rule, Total
from expost.numbers import Enclosure, ExactLike, Nats, exact
from expost.queries import Query
from expost.queries.cumulant import randomized_response_cumulant
from expost.queries.query import read_delta

__all__ = [
    "LARGEST",
    "SMALLEST",
    "Martingale",
    "read_exponent",
    "read_reserve",
    "reserve_from_json",
    "shown_exponent",
]

SMALLEST, LARGEST = Fraction(1, 10**6), 10**9


class Martingale(Rule):
    r"""A rule that bounds the excess of the loss L by a nonnegative supermartingale of mean <= 1.

    .. math:: M = \sum_j w_j e^{\lambda_j L - \sum_i K_i(\lambda_j)}

    Here K_i is the cumulant of query i. The rule also accepts if the epsilons add up to at most
    the budget, because there is no excess then. Of delta, the part ``delta_prime`` is for the
    excess and the rest for the deltas of the queries; by default all of it is for the excess. A
    query with a delta and a cumulant of its own counts by that cumulant.
    """

    delta_prime: Fraction | None

    @property
    @abstractmethod
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        """Pairs of a weight and an exponent lambda."""

    def allowance(self, delta: Fraction) -> Fraction:
        return Fraction(0) if self.delta_prime is None else delta - self.delta_prime

    def charge(self, query: Query, domain: Domain) -> tuple[Nats, Fraction]:
        if query.delta and math.inf not in self._own(query, domain):
            return query.ceiling(domain), Fraction(0)
        return query.charge(domain), query.delta

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        own = self._own(query, domain)
        if not query.delta or math.inf not in own:
            return own
        charge = query.charge(domain)
        return [randomized_response_cumulant(charge, exponent) for _, exponent in self.components]

    def _own(self, query: Query, domain: Domain) -> list[float]:
        return [query.cumulant(domain, exponent) for _, exponent in self.components]

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        sums = total.amounts or (Fraction(0),) * len(list(self.components))
        parts = [
            Component(weight, exponent, sum_)
            for (weight, exponent), sum_ in zip(self.components, sums, strict=True)
            if isinstance(sum_, Fraction)
        ]
        return least_budget(parts, self.delta_prime or delta)


def read_exponent(number: ExactLike) -> Fraction:
    """An exponent lambda, exactly as a person writes it."""
    value = exact(number)
    if value <= 0:
        raise InvalidInput("must be greater than 0")
    if not SMALLEST <= value <= LARGEST:
        raise InvalidInput("must be from 1e-6 to 1e9")
    return value


def read_reserve(delta_prime: ExactLike | None) -> Fraction | None:
    """The part of delta that is for the excess; None for all of it."""
    return None if delta_prime is None else read_delta(delta_prime, "delta_prime")


def reserve_from_json(fields: dict[str, Any]) -> Fraction | None:
    """The same from a file, in which the field may be missing but not null."""
    given = "delta_prime" in fields
    return read_delta(fields["delta_prime"], "delta_prime") if given else None


def shown_exponent(number: float) -> Fraction:
    """An exponent rounded to four digits, as a person would write it, within the limits.

    >>> shown_exponent(5.04712)
    Fraction(5047, 1000)
    """
    return min(Fraction(LARGEST), max(SMALLEST, Fraction(f"{number:.4g}")))
