"""One-bit perturbation: the response to a score in a range is one end of the range (paper, 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list, format_number, format_range
from expost.domains import Domain, FiniteSet, Value, format_coordinates
from expost.errors import InvalidInput
from expost.files.reading import array_at, double, members, read_list
from expost.numbers import ExactLike, decimal_text, read_only
from expost.queries._likelihood import FiniteLikelihood
from expost.queries._query import QueryWithEpsilon, UnbiasedScore, read_epsilon
from expost.queries.scores._aligned import Ends
from expost.queries.scores._one_bit import one_bit_meaning, one_bit_weights, read_range
from expost.queries.tables._table import TableLikelihood

__all__ = ["Perturbation", "perturbation"]

# The most scores that are described one by one.
_MOST_DESCRIBED = 5


@dataclass(frozen=True, eq=False, repr=False)
class Perturbation(QueryWithEpsilon):
    r"""One bit about a score s in [a, b] per value (Nguyên et al. 2016).

    .. math:: P[b \mid s] = \frac{1}{e^\varepsilon + 1}
              + \frac{s - a}{b - a} \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}
    """

    kind: ClassVar[str] = "perturbation"
    scores: NDArray[np.float64]
    range: Ends
    epsilon: Fraction

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{len(self.scores)} scores in [{low}, {high}]"
        return f"Perturbation({shown}, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return f"a score {format_range(*self.range)}"

    def asks_on(self, domain: Domain) -> str:
        values, scores = domain.values, self.scores
        if len(values) <= _MOST_DESCRIBED:
            pairs = zip((_name(value, domain) for value in values), scores, strict=True)
            descriptions = [f"{format_number(score, 4)} for {name}" for name, score in pairs]
            return f"{self.asks}: {format_list(descriptions)}"
        low, high = (self._describe(end, domain) for end in (scores.min(), scores.max()))
        return f"{self.asks}, lowest for {low}, highest for {high}"

    def _describe(self, score: float, domain: Domain) -> str:
        """Describe the values with a score; for points, which are long, the first and a count."""
        indices = np.flatnonzero(self.scores == score).tolist()
        if domain.names is None:
            return format_list([_name(domain.values[index], domain) for index in indices])
        suffix = f" and {len(indices) - 1:,} more" if len(indices) > 1 else ""
        return f"{_name(domain.values[indices[0]], domain)}{suffix}"

    def tree(self) -> dict[str, Any]:
        ends = [float(end) for end in self.range]
        return {"scores": self.scores.tolist(), "range": ends, "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Perturbation:
        fields = members(fields, required=("scores", "range", "epsilon"))
        scores, ends = array_at(fields, "scores"), array_at(fields, "range")
        return perturbation(scores, range=ends, epsilon=fields["epsilon"])

    def work(self, domain: Domain) -> int:
        return len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        if len(domain) != len(self.scores):
            reason = f"{len(self.scores)} scores for a domain of {len(domain)} values"
            raise InvalidInput(reason, "scores")
        low, high = self.range
        share = (self.scores - low) / (high - low)
        return TableLikelihood(domain, self.range, one_bit_weights(share, self.epsilon))

    def meaning(self, domain: Domain) -> UnbiasedScore:
        return one_bit_meaning(self.range, self.range, self.epsilon)


def _name(value: Value, domain: Domain) -> str:
    text = str(value)
    if isinstance(value, tuple) and domain.names is not None:
        text = format_coordinates(domain.names, value)
    return format_list([text])


def perturbation(
    scores: Sequence[float] | NDArray[np.float64],
    *,
    range: Sequence[float] = (0, 1),
    epsilon: ExactLike,
) -> Perturbation:
    """Ask for one bit about a score per value of the domain, in the order of its values.

    Args:
        scores: A number for each value of the domain.
        range: The two possible responses, with all scores between them.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.

    >>> perturbation([0, 0.5, 1], range=(0, 1), epsilon="1")
    Perturbation(3 scores in [0, 1], epsilon=1)
    """
    low, high = read_range(range)
    if type(scores) is np.ndarray and scores.dtype == np.float64 and scores.ndim == 1:
        values = scores.copy()
    else:
        values = np.array(read_list(scores, double, "scores"), dtype=np.float64)
    # Not (low <= s <= high), so that NaN is outside.
    outside = np.flatnonzero(~((values >= low) & (values <= high)))
    if outside.size:
        raise InvalidInput(f"is outside the range [{low}, {high}]", f"scores[{outside[0]}]")
    if not values.size:
        raise InvalidInput("must not be empty", "scores")
    return Perturbation(read_only(values), (low, high), read_epsilon(epsilon))
