"""A mixture of several Rényi orders, the default rule: it needs no plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost._format import shorten
from expost.errors import InvalidInput
from expost.files.reading import read_list
from expost.filters.rules._martingale import (
    LARGEST,
    Martingale,
    best_exponent_for_small,
    read_exponent,
    read_reserve,
)
from expost.numbers import ExactLike, Nats, decimal_text, exact
from expost.queries import read_delta

__all__ = ["Mixture"]

_MOST = 4

# Measured over many budgets and sizes: an order with nearly all the weight loses little by it, and
# a small weight is enough for larger ones, because a weight w costs log(1/w)/λ.
_WEIGHTS = tuple(map(Fraction, ("0.94", "0.02", "0.02", "0.02")))


@dataclass(frozen=True, repr=False)
class Mixture(Martingale):
    r"""Compose at several Rényi orders at once, with weights that are fixed in advance.

    With :math:`K_i` the cumulant of query i, accept while

    .. math:: 1 - e^{-u} \le \delta \sum_j w_j e^{\lambda_j (\varepsilon_g + u) -
              \sum_i K_i(\lambda_j)} \quad \text{for all } u \ge 0 ,

    or while the epsilons add up to at most the budget. Weights sum to exactly one. Use
    :meth:`for_budget` unless you know better orders. Proof: docs/theory/approximate.md.

    >>> from expost.filters.rules import Mixture
    >>> Mixture(lambdas=[5, 20], weights=["0.9", "0.1"])
    Mixture(2 lambdas from 5)
    """

    kind: ClassVar[str] = "mixture"
    required: ClassVar[tuple[str, ...]] = ("lambdas", "weights")
    lambdas: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]
    delta_prime: Fraction | None

    def __init__(
        self,
        lambdas: Sequence[ExactLike],
        weights: Sequence[ExactLike],
        *,
        delta_prime: ExactLike | None = None,
    ) -> None:
        exponents = tuple(read_list(lambdas, read_exponent, "lambdas"))
        shares = tuple(read_list(weights, _read_weight, "weights"))
        if not 1 <= len(exponents) <= _MOST:
            raise InvalidInput(f"must be from 1 to {_MOST}, not {len(exponents):,}", "lambdas")
        if len(set(exponents)) < len(exponents):
            raise InvalidInput("must be distinct", "lambdas")
        if len(shares) != len(exponents):
            raise InvalidInput(f"{len(shares)} for {len(exponents)} lambdas", "weights")
        if sum(shares) != 1:
            raise InvalidInput("must sum to exactly one", "weights")
        object.__setattr__(self, "lambdas", exponents)
        object.__setattr__(self, "weights", shares)
        object.__setattr__(self, "delta_prime", read_reserve(delta_prime))

    @classmethod
    def for_budget(cls, epsilon: ExactLike, delta: ExactLike) -> Mixture:
        """Return the mixture for a budget if nothing else is known about the queries.

        It accepts everything that Whitehouse accepts, and nearly as much as the best order for the
        queries would.

        >>> Mixture.for_budget(epsilon="5.08", delta="1e-6")
        Mixture(4 lambdas from 5.047)
        """
        return cls.for_exact_budget(Nats.budget(epsilon), read_delta(delta))

    @classmethod
    def for_exact_budget(cls, budget: Nats, delta: Fraction) -> Mixture:
        """Return the mixture for a budget that is already exact."""
        first = best_exponent_for_small(budget.nearest, delta * _WEIGHTS[0])
        first = min(first, Fraction(LARGEST, 2 ** (len(_WEIGHTS) - 1)))
        return cls([first * 2**step for step in range(len(_WEIGHTS))], _WEIGHTS)

    def __repr__(self) -> str:
        return f"Mixture({len(self.lambdas)} lambdas from {decimal_text(min(self.lambdas))})"

    @property
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        return zip(self.weights, self.lambdas, strict=True)


def _read_weight(weight: ExactLike) -> Fraction:
    value = exact(weight)
    if value <= 0:
        raise InvalidInput(f"must be greater than 0, not {shorten(str(weight))}")
    return value
