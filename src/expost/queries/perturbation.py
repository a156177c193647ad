"""One-bit perturbation: a score between two ends is answered by one of the ends (paper, 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.errors import InvalidInput, at
from expost.queries.base import Columns, Likelihood, Query, read_epsilon
from expost.queries.term import Weights, as_weights
from expost.queries.two_weights import two_weights
from expost.reading import array, double, each, members, number
from expost.rounding import ExactLike, decimal_text

__all__ = ["Perturbation", "one_bit_weights", "perturbation"]


@dataclass(frozen=True, eq=False, repr=False)
class Perturbation(Query):
    r"""One bit about a score s in [a, b] per value (Nguyên et al. 2016).

    .. math:: P[b \mid s] = \frac{1}{e^\varepsilon + 1}
              + \frac{s - a}{b - a} \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "perturbation"
    scores: NDArray[np.float64]
    range: tuple[int | float, int | float]
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{len(self.scores)} scores in [{low}, {high}]"
        return f"Perturbation({shown}, epsilon={decimal_text(self.epsilon)})"

    def tree(self) -> dict[str, Any]:
        low, high = self.range
        return {
            "scores": self.scores.tolist(),
            "range": [float(low), float(high)],
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Perturbation:
        fields = members(fields, required=("scores", "range", "epsilon"))
        with at("scores"):
            scores = array(fields["scores"])
        with at("range"):
            ends = array(fields["range"])
        return perturbation(scores, range=ends, epsilon=fields["epsilon"])

    def with_epsilon(self, epsilon: Fraction) -> Perturbation:
        return Perturbation(self.scores, self.range, epsilon)

    def _on(self, domain: FiniteSet) -> Likelihood:
        if len(domain) != len(self.scores):
            raise InvalidInput(
                f"{len(self.scores)} scores for a domain of {len(domain)} values", "scores"
            )
        low, high = self.range
        share = (self.scores - low) / (high - low)
        return Columns(domain, self.range, one_bit_weights(share, self.epsilon))


def one_bit_weights(share: NDArray[np.float64], epsilon: Fraction) -> tuple[Weights, Weights]:
    """Weights of the low and the high end, for scores at these shares of the way up.

    The weight of the high end is monotone in the share, ``light`` at share 0, and ``heavy`` at
    share 1 (or just below it, where heavy - light is too large for a double); the two weights
    always add up to the same total.
    """
    heavy, light = two_weights(epsilon)
    # Rounded down to a double, so that share 1 gives exactly light + span; less span, less loss.
    span = float(heavy - light)
    span = np.nextafter(span, 0.0) if span > heavy - light else span
    total = 2 * light + int(span)
    steps = np.rint(share * span)
    above = as_weights([int(s) for s in steps] if total >= 2**62 else steps, total)
    high = above + light
    return total - high, high


def perturbation(
    scores: Sequence[float] | NDArray[np.float64],
    *,
    range: Sequence[float] = (0, 1),
    epsilon: ExactLike,
) -> Perturbation:
    """A one-bit query about a score per value of the domain, in the order of its values.

    >>> perturbation([0, 0.5, 1], range=(0, 1), epsilon="1")
    Perturbation(3 scores in [0, 1], epsilon=1)
    """
    ends = each(range, number, "range")
    if len(ends) != 2 or not ends[0] < ends[1] or not np.isfinite(float(ends[1]) - ends[0]):
        raise InvalidInput("must be two ends, the lower one first", "range")
    low, high = ends
    if type(scores) is np.ndarray and scores.dtype == np.float64 and scores.ndim == 1:
        values = scores.copy()
    else:
        values = np.array(each(scores, double, "scores"), dtype=np.float64)
    # Not (low <= s <= high), so that NaN is outside.
    outside = np.flatnonzero(~((values >= low) & (values <= high)))
    if outside.size:
        raise InvalidInput(f"is outside the range [{low}, {high}]", f"scores[{outside[0]}]")
    if not values.size:
        raise InvalidInput("must not be empty", "scores")
    values.setflags(write=False)
    return Perturbation(values, (low, high), read_epsilon(epsilon))
