"""Randomized response: the true value with weight e^epsilon, any other one with weight 1."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.files.reading import members
from expost.numbers import ExactLike, Nats, decimal_text
from expost.queries._likelihood import FiniteLikelihood, Pairwise, two_weights
from expost.queries._query import QueryWithEpsilon, read_epsilon
from expost.sampling import Pmf, Spiked

__all__ = ["RandomizedResponse", "randomized_response"]


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedResponse(QueryWithEpsilon):
    """k-ary randomized response over all values of the domain (Warner 1965, Kairouz et al. 2016).

    .. math:: P[y \\mid x] = e^{\\varepsilon 1[x = y]} / (e^\\varepsilon + k - 1)
    """

    kind: ClassVar[str] = "randomized_response"
    epsilon: Fraction

    def __repr__(self) -> str:
        return f"RandomizedResponse(epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return "the value itself"

    def tree(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> RandomizedResponse:
        return randomized_response(members(fields, required=("epsilon",))["epsilon"])

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        return _RandomizedLikelihood(domain, *two_weights(self.epsilon))


class _RandomizedLikelihood(Pairwise):
    """Responses are the values themselves, and each supports itself."""

    def __init__(self, domain: FiniteSet, heavy: int, light: int) -> None:
        super().__init__(domain, heavy, light)
        self.responses = domain.values

    @property
    def least_loss(self) -> Nats:
        return self.epsilon

    @property
    def support_probabilities(self) -> tuple[Fraction, Fraction]:
        total = self._heavy + (len(self.domain) - 1) * self._light
        return Fraction(self._heavy, total), Fraction(self._light, total)

    def position(self, response: Any) -> int | None:
        return self.domain.locate(response)

    def pmf(self, index: int) -> Pmf:
        return Spiked(len(self.domain), index, self._heavy, self._light)

    def supported_values(self, position: int) -> NDArray[np.bool_]:
        supported = np.zeros(len(self.domain), dtype=np.bool_)
        supported[position] = True
        return supported

    def separating_response(self, value: int, other: int) -> int:
        return value


def randomized_response(epsilon: ExactLike) -> RandomizedResponse:
    """Answer truthfully with odds e^epsilon against any other value of the domain.

    Args:
        epsilon: The guarantee of the query in nats, exact as written.

    >>> randomized_response(epsilon="0.1")
    RandomizedResponse(epsilon=0.1)
    """
    return RandomizedResponse(read_epsilon(epsilon))
