"""Logistic queries: one bit about the probability that a logistic regression predicts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, FiniteSet
from expost.queries.base import BoxLikelihood, Columns, FiniteLikelihood, Query, read_epsilon
from expost.queries.one_bit import one_bit_weights
from expost.queries.portable_exp import SIGMOID_ERROR, sigmoid
from expost.queries.score import Score, WeightsLike, read_score, weights_from_json
from expost.queries.score_likelihood import ScoreLikelihood
from expost.queries.score_term import Link
from expost.reading import members
from expost.rounding import ExactLike, decimal_text

__all__ = ["Logistic", "logistic"]

_RESPONSES = (0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(Query):
    r"""One bit about σ(s) = 1/(1 + e^-s), s = intercept + Σ weight·coordinate.

    .. math:: P[1 \mid s] = \frac{1}{e^\varepsilon + 1}
              + \sigma(s) \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "logistic"
    score: Score
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def __repr__(self) -> str:
        return f"Logistic({self.score}, epsilon={decimal_text(self.epsilon)})"

    def tree(self) -> dict[str, Any]:
        return {**self.score.tree(), "epsilon": self.epsilon}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Logistic:
        fields = members(fields, required=("weights", "epsilon"), optional=("intercept",))
        return logistic(
            weights_from_json(fields["weights"]),
            intercept=fields.get("intercept", 0),
            epsilon=fields["epsilon"],
        )

    def with_epsilon(self, epsilon: Fraction) -> Logistic:
        return Logistic(self.score, epsilon)

    def _on(self, domain: FiniteSet) -> FiniteLikelihood:
        shares = sigmoid(self.score.on_set(domain).values)
        return Columns(domain, _RESPONSES, one_bit_weights(shares, self.epsilon))

    def _on_box(self, domain: Box) -> BoxLikelihood:
        return _LogisticOnBox(domain, _RESPONSES, self.score.on_box(domain), self.epsilon)


class _LogisticOnBox(ScoreLikelihood):
    link = Link.LOGISTIC
    # The logistic function, and one product.
    share_error = SIGMOID_ERROR + Fraction(2, 2**53)

    def _shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return sigmoid(scores)

    def _form(self, sign: int, epsilon: float) -> tuple[Fraction, Fraction]:
        return Fraction(sign), Fraction(epsilon) / 2

    def _slope(self, growth: Fraction) -> Fraction:
        # tanh(e/4) with e = log(1 + growth), which is at most epsilon.
        return min(self._epsilon / 4, Fraction(1))


def logistic(weights: WeightsLike, *, intercept: float = 0, epsilon: ExactLike) -> Logistic:
    """A one-bit query about a logistic regression; the response is 0 or 1.

    ``weights`` go by name where the coordinates have names, and by position in a plain box.

    >>> logistic({"age": -0.059, "sex": -1.456}, intercept=6.177, epsilon="1")
    Logistic(2 weights, epsilon=1)
    """
    return Logistic(read_score(weights, intercept), read_epsilon(epsilon))
