"""Linear queries: one bit about an affine score between two ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from expost._format import format_range
from expost.domains import Box, Domain, FiniteSet
from expost.errors import InvalidInput
from expost.files.reading import array_at, members, number
from expost.numbers import ExactLike, above, below, decimal_text, over_one
from expost.queries._likelihood import BoxLikelihood, FiniteLikelihood
from expost.queries._query import QueryWithEpsilon, UnbiasedScore, read_epsilon
from expost.queries.scores._aligned import (
    AlignedScore,
    Ends,
    between,
    check_within,
)
from expost.queries.scores._one_bit import (
    OneBitOnSet,
    ScoreLikelihood,
    one_bit_meaning,
    read_range,
    relative_share,
)
from expost.queries.scores._score import AffineScore, WeightsLike, read_score, weights_from_json
from expost.terms import Link

__all__ = ["Linear", "linear"]


@dataclass(frozen=True, eq=False, repr=False)
class Linear(QueryWithEpsilon):
    r"""One bit about s = intercept + Σ weight·coordinate, in [a, b] or clipped to it.

    .. math:: P[b \mid s] = \frac{1}{e^\varepsilon + 1}
              + \frac{s - a}{b - a} \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "linear"
    score: AffineScore
    #: None means the exact range of the score on the domain, rounded outward.
    range: Ends | None
    clip: bool
    epsilon: Fraction

    def __repr__(self) -> str:
        ends = ""
        if self.range is not None:
            ends = f" {'clipped to' if self.clip else 'in'} [{self.range[0]}, {self.range[1]}]"
        return f"{type(self).__name__}({self.score}{ends}, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return self._asks(self.score.coordinates)

    def asks_on(self, domain: Domain) -> str:
        return self._asks(self.score.describe(domain))

    def _asks(self, coordinates: str) -> str:
        ends = "" if self.range is None else f" {format_range(*self.range)}"
        return f"a score{ends} of {coordinates}"

    def tree(self) -> dict[str, Any]:
        tree = {**self.score.tree(), "clip": self.clip, "epsilon": self.epsilon}
        if self.range is not None:
            tree["range"] = [float(end) for end in self.range]
        return tree

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Linear:
        optional = ("intercept", "range", "clip")
        fields = members(fields, required=("weights", "epsilon"), optional=optional)
        if "range" in fields:
            array_at(fields, "range")
        return linear(**{**fields, "weights": weights_from_json(fields["weights"])})

    def work(self, domain: Domain) -> int:
        return len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        score = self.score.on_set(domain)
        ends = self._ends(score)
        return OneBitOnSet(
            score, domain, self._answers(ends), self.epsilon, between, *map(float, ends)
        )

    def on_box(self, domain: Box) -> BoxLikelihood:
        score = self.score.on_box(domain)
        ends = self._ends(score)
        return _LinearOnBox(
            score, domain, self._answers(ends), self.epsilon, between, *map(float, ends)
        )

    def meaning(self, domain: Domain) -> UnbiasedScore:
        ends = self._ends(self.score.on(domain))
        return one_bit_meaning(ends, ends, self.epsilon)

    def _answers(self, ends: Ends) -> Ends:
        """Return the two responses of a query with this range."""
        return ends

    def _ends(self, score: AlignedScore) -> Ends:
        """Return the range on a domain, which contains all scores unless they are clipped."""
        if self.range is not None and self.clip:
            return self.range
        if self.range is not None:
            check_within(score, self.range)
            return self.range
        lowest, highest, under = score.ends
        if lowest == highest:
            raise InvalidInput("the score is the same everywhere", "range")
        return number(below(lowest, under)), number(above(highest, under))


class _LinearOnBox(ScoreLikelihood):
    link = Link.CLIPPED

    @staticmethod
    def share_error(position: int, growth: Fraction) -> Fraction:
        # Two differences, a quotient, and a product: (1 + u)^4 - 1 < 5u.
        return relative_share(Fraction(5, 2**53), position, growth)

    def _form(self, sign: int, epsilon: float) -> tuple[int, int, int]:
        # From [low, high] to [-1, 1].
        (low, high), bottom = over_one(self._parameters)
        return sign * 2 * bottom, -sign * (low + high), high - low

    @staticmethod
    def slope(growth: Fraction, epsilon: Fraction) -> Fraction:
        return growth / 2


def linear(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float] | None = None,
    clip: bool = False,
    epsilon: ExactLike,
) -> Linear:
    """Ask for one bit about a weighted sum of coordinates; the response is an end of its range.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        range: The two possible responses; by default the exact range of the score on the domain.
        clip: Whether scores beyond the range count as its nearest end; by default there must be
            none.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> linear({"age": 0.0855, "sex": 0.4617}, range=(0, 12), clip=True, epsilon="1")
    Linear(2 weights clipped to [0, 12], epsilon=1)
    """
    score = read_score(weights, intercept)
    if not isinstance(clip, bool):
        raise InvalidInput("must be true or false", "clip")
    if clip and range is None:
        raise InvalidInput("a clipped score needs one", "range")
    return Linear(score, None if range is None else read_range(range), clip, read_epsilon(epsilon))
