"""Duchi's mechanism for one number: one of two estimates, unbiased."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.files.reading import array_at, members, number
from expost.numbers import ExactLike
from expost.queries._query import UnbiasedScore, read_epsilon
from expost.queries.scores._aligned import Ends
from expost.queries.scores._one_bit import OneBitGrid, read_range
from expost.queries.scores._score import WeightsLike, read_score, score_from_fields
from expost.queries.scores.linear import Linear

__all__ = ["Duchi", "duchi"]


class Duchi(Linear):
    r"""An estimate of a score s, clipped to [a, b] (Duchi, Jordan, Wainwright 2018).

    The bit is that of a linear query. The response is not an end of the range, but what it must be
    for the mean of the responses to be s:

    .. math:: \frac{a + b}{2} \pm \frac{b - a}{2} \cdot \frac{e^\varepsilon + 1}{e^\varepsilon - 1}
    """

    kind: ClassVar[str] = "duchi"
    range: Ends

    def __repr__(self) -> str:
        return super().__repr__().replace("clipped to", "in")

    def tree(self) -> dict[str, Any]:
        return {name: field for name, field in super().tree().items() if name != "clip"}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        fields = members(fields, required=("weights", "range", "epsilon"), optional=("intercept",))
        score = score_from_fields(fields)
        return cls(score, read_range(array_at(fields, "range")), True, fields["epsilon"])

    def _answers(self, ends: Ends) -> Ends:
        # From the sampled weights, so that the mean is right except for one rounding.
        low, high = OneBitGrid.at(self.epsilon).means(ends)
        try:
            return number(float(low)), number(float(high))
        except (OverflowError, InvalidInput):
            raise InvalidInput("is too small for estimates in doubles", "epsilon") from None

    def meaning(self, domain: Domain) -> UnbiasedScore:
        low, high = self._answers(self.range)
        return UnbiasedScore(self.range, Fraction, lambda score: (high - score) * (score - low))


def duchi(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float],
    epsilon: ExactLike,
) -> Duchi:
    """Ask for an unbiased estimate of a weighted sum, clipped to a range.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        range: The two ends that scores are clipped to.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> duchi({"age": 1}, range=(0, 100), epsilon="1")
    Duchi(1 weight in [0, 100], epsilon=1)
    """
    return Duchi(read_score(weights, intercept), read_range(range), True, read_epsilon(epsilon))
