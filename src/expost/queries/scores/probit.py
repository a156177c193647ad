"""Probit queries: one bit about the probability that a probit regression predicts."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from expost.numbers import ExactLike
from expost.numbers.portable import NORMAL_ERROR, normal
from expost.queries._query import read_epsilon
from expost.queries.scores._one_bit import Regression, ScoreLikelihood
from expost.queries.scores._score import WeightsLike, read_score
from expost.terms import Link

__all__ = ["Probit", "probit"]


class _ProbitOnBox(ScoreLikelihood):
    link = Link.PROBIT

    @staticmethod
    def share_error(position: int, growth: Fraction) -> Fraction:
        # Absolute, and the product with the span is rounded once more.
        return (NORMAL_ERROR + Fraction(2, 2**53)) * growth

    def _form(self, sign: int, epsilon: float) -> tuple[int, int, int]:
        return sign, 0, 1

    @staticmethod
    def slope(growth: Fraction, epsilon: Fraction) -> Fraction:
        # The density of the normal distribution is below 2/5.
        return growth * 2 / 5


class Probit(Regression):
    r"""One bit about Φ(s), the normal distribution function of s = intercept + Σ weight·coordinate.

    .. math:: P[1 \mid s] = \frac{1}{e^\varepsilon + 1}
              + \Phi(s) \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "probit"
    likelihood = _ProbitOnBox
    curve = staticmethod(normal)


def probit(weights: WeightsLike, *, intercept: float = 0, epsilon: ExactLike) -> Probit:
    """Ask for one bit about a probit regression; the response is 0 or 1.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> probit({"age": -0.03, "sex": -0.8}, intercept=2.1, epsilon="1")
    Probit(2 weights, epsilon=1)
    """
    return Probit(read_score(weights, intercept), read_epsilon(epsilon))
