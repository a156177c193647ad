"""A mixture over several orders, for when nothing is declared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from expost.errors import InvalidInput
from expost.files.reading import each, members
from expost.filters.rules.martingale import (
    LARGEST,
    Martingale,
    read_exponent,
    read_reserve,
    reserve_from_json,
)
from expost.filters.rules.orders import best_exponent_for_small
from expost.numbers import ExactLike, Nats, decimal_text, exact
from expost.queries.query import read_delta

__all__ = ["Mixture"]

_MOST = 4

# Measured over many budgets and sizes: nearly all weight on one order costs it little, and a small
# weight on larger ones is enough, because a weight w costs log(1/w)/λ.
_WEIGHTS = tuple(map(Fraction, ("0.94", "0.02", "0.02", "0.02")))


@dataclass(frozen=True, repr=False)
class Mixture(Martingale):
    r"""Several orders at once, with weights that are fixed in advance.

    .. math:: 1 - e^{-u} \le \delta \sum_j w_j e^{\lambda_j (\varepsilon_g + u) -
              \sum_i K_i(\lambda_j)} \quad \text{for all } u \ge 0

    The epsilons may also add up to the budget. Proof: docs/theory/approximate.md.
    """

    kind: ClassVar[str] = "mixture"
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
        exponents = tuple(each(lambdas, read_exponent, "lambdas"))
        shares = tuple(each(weights, _read_weight, "weights"))
        if not 1 <= len(exponents) <= _MOST:
            raise InvalidInput(f"must be from 1 to {_MOST}", "lambdas")
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
        """Orders for a budget of which nothing else is known.

        It accepts all that Whitehouse accepts, and nearly what the best order does.

        >>> Mixture.for_budget(epsilon="5.08", delta="1e-6")
        Mixture(4 lambdas from 5.047)
        """
        return cls.for_exact_budget(Nats.budget(epsilon), read_delta(delta))

    @classmethod
    def for_exact_budget(cls, budget: Nats, delta: Fraction) -> Mixture:
        """The same for an exact budget."""
        first = best_exponent_for_small(budget.nearest, delta * _WEIGHTS[0])
        first = min(first, Fraction(LARGEST, 2 ** (len(_WEIGHTS) - 1)))
        return cls([first * 2**step for step in range(len(_WEIGHTS))], _WEIGHTS)

    def __repr__(self) -> str:
        return f"Mixture({len(self.lambdas)} lambdas from {decimal_text(min(self.lambdas))})"

    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {"lambdas": list(self.lambdas), "weights": list(self.weights)}
        return tree if self.delta_prime is None else {**tree, "delta_prime": self.delta_prime}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Mixture:
        fields = members(fields, required=("lambdas", "weights"), optional=("delta_prime",))
        lambdas, weights = fields["lambdas"], fields["weights"]
        return cls(lambdas, weights, delta_prime=reserve_from_json(fields))

    @property
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        return zip(self.weights, self.lambdas, strict=True)


def _read_weight(weight: ExactLike) -> Fraction:
    value = exact(weight)
    if value <= 0:
        raise InvalidInput("must be greater than 0")
    return value
