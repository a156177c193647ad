"""Logistic queries: one bit about the probability that a logistic regression predicts."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from expost.numbers import ExactLike
from expost.numbers.portable import SIGMOID_ERROR, sigmoid
from expost.queries._query import read_epsilon
from expost.queries.scores._one_bit import Regression, ScoreLikelihood, relative_share
from expost.queries.scores._score import WeightsLike, read_score
from expost.terms import Link

__all__ = ["Logistic", "logistic"]


class _LogisticOnBox(ScoreLikelihood):
    link = Link.LOGISTIC

    @staticmethod
    def share_error(position: int, growth: Fraction) -> Fraction:
        # The logistic function, and one product.
        return relative_share(SIGMOID_ERROR + Fraction(2, 2**53), position, growth)

    def _form(self, sign: int, epsilon: float) -> tuple[int, int, int]:
        top, bottom = epsilon.as_integer_ratio()
        return sign * 2 * bottom, top, 2 * bottom

    @staticmethod
    def slope(growth: Fraction, epsilon: Fraction) -> Fraction:
        # tanh(e/4) with e = log(1 + growth), which is at most epsilon.
        return min(epsilon / 4, Fraction(1))


class Logistic(Regression):
    r"""One bit about σ(s) = 1/(1 + e^-s), s = intercept + Σ weight·coordinate.

    .. math:: P[1 \mid s] = \frac{1}{e^\varepsilon + 1}
              + \sigma(s) \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "logistic"
    likelihood = _LogisticOnBox
    curve = staticmethod(sigmoid)


def logistic(weights: WeightsLike, *, intercept: float = 0, epsilon: ExactLike) -> Logistic:
    """Ask for one bit about a logistic regression; the response is 0 or 1.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> logistic({"age": -0.059, "sex": -1.456}, intercept=6.177, epsilon="1")
    Logistic(2 weights, epsilon=1)
    """
    return Logistic(read_score(weights, intercept), read_epsilon(epsilon))
