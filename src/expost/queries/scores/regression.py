"""What yes-or-no regressions share: a score, and a curve that turns it into a probability."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Domain, FiniteSet
from expost.files.reading import members
from expost.numbers import decimal_text
from expost.queries.likelihood import BoxLikelihood, FiniteLikelihood
from expost.queries.query import Query, Unbiased, read_epsilon
from expost.queries.scores.one_bit import one_bit_meaning
from expost.queries.scores.one_bit_on_box import ScoreLikelihood
from expost.queries.scores.one_bit_on_set import OneBitOnSet
from expost.queries.scores.score import Score, read_score, weights_from_json

__all__ = ["Regression"]

_RESPONSES = (0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Query):
    """One bit, 0 or 1, about a share between 0 and 1 that rises with a score."""

    likelihood: ClassVar[type[ScoreLikelihood]]
    score: Score
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.score}, epsilon={decimal_text(self.epsilon)})"

    @property
    def asks(self) -> str:
        return f"a yes-or-no prediction from {self.score.coordinates}"

    def asks_on(self, domain: Domain) -> str:
        return f"a yes-or-no prediction from {self.score.told(domain)}"

    def tree(self) -> dict[str, Any]:
        return {**self.score.tree(), "epsilon": self.epsilon}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        fields = members(fields, required=("weights", "epsilon"), optional=("intercept",))
        score = read_score(weights_from_json(fields["weights"]), fields.get("intercept", 0))
        return cls(score, fields["epsilon"])

    def with_epsilon(self, epsilon: Fraction) -> Self:
        return type(self)(self.score, epsilon)

    @staticmethod
    @abstractmethod
    def curve(x: NDArray[np.float64], /) -> NDArray[np.float64]:
        """The shares of scores, in portable doubles."""

    def work(self, domain: Domain) -> int:
        return len(domain.values)

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        score = self.score.on_set(domain)
        return OneBitOnSet(score, domain, _RESPONSES, self.epsilon, self.curve)

    def on_box(self, domain: Box) -> BoxLikelihood:
        return self.likelihood(domain, _RESPONSES, self.score.on_box(domain), self.epsilon)

    def meaning(self, domain: Domain) -> Unbiased:
        return one_bit_meaning(_RESPONSES, _RESPONSES, self.epsilon)
