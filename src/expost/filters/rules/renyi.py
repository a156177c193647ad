"""The Rényi rule, with one order that is fixed in advance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost._format import shorten
from expost.errors import InvalidInput, at, read_at
from expost.filters.rules._martingale import (
    LARGEST,
    SMALLEST,
    Martingale,
    best_exponent,
    read_reserve,
)
from expost.numbers import ExactLike, Nats, exact, positive
from expost.queries import LARGEST_EPSILON, read_delta

__all__ = ["Renyi"]


@dataclass(frozen=True, repr=False)
class Renyi(Martingale):
    r"""Compose by Rényi divergence at one order λ + 1 (Feldman and Zrnic 2021).

    With :math:`K_i` the cumulant of query i, accept while

    .. math:: \frac{\sum_i K_i(\lambda) + \log\frac1\delta + \lambda \log \lambda
              - (\lambda + 1) \log(\lambda + 1)}{\lambda} \le \varepsilon_g ,

    or while the epsilons add up to at most the budget, which is the infinite order. The conversion
    to (epsilon, delta) is the best known (Canonne, Kamath and Steinke 2020). If you know roughly
    how large the queries will be, :meth:`for_plan` picks the order. Proof:
    docs/theory/approximate.md.

    >>> from fractions import Fraction
    >>> import expost as xp
    >>> from expost.filters.rules import Renyi
    >>> rule, answer = Renyi(8), xp.randomized_response(epsilon="0.1")
    >>> price = rule.price(answer, xp.FiniteSet(["no", "yes"]))
    >>> round(rule.cost(price * 100, Fraction("1e-6")).upper, 3)
    5.215
    """

    kind: ClassVar[str] = "renyi"
    required: ClassVar[tuple[str, ...]] = ("order",)
    order: Fraction
    delta_prime: Fraction | None

    def __init__(self, order: ExactLike, *, delta_prime: ExactLike | None = None) -> None:
        with at("order"):
            value = exact(order)
            if value <= 1:
                raise InvalidInput(f"must be greater than 1, not {shorten(str(order))}")
            if not SMALLEST <= value - 1 <= LARGEST:
                raise InvalidInput(f"must be from 1.000001 to 1e9, not {shorten(str(order))}")
        object.__setattr__(self, "order", value)
        object.__setattr__(self, "delta_prime", read_reserve(delta_prime))

    @classmethod
    def for_plan(cls, epsilon: ExactLike, delta: ExactLike, query_epsilon: ExactLike) -> Renyi:
        """Choose the order that accepts the most queries of about ``query_epsilon`` on a budget.

        Args:
            epsilon: The budget.
            delta: The delta of the budget.
            query_epsilon: The typical epsilon of a query.

        >>> Renyi.for_plan(epsilon="5.08", delta="1e-6", query_epsilon="0.1")
        Renyi(order=6.319)
        """
        budget = Nats.budget(epsilon).nearest
        typical = read_at("query_epsilon", positive, query_epsilon, at_most=LARGEST_EPSILON)
        return cls(1 + best_exponent(budget, read_delta(delta), float(typical)))

    @property
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        return ((Fraction(1), self.order - 1),)
