"""A likelihood of which many values are alike: it sees a part of a record, or classes of values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet, Part
from expost.numbers import Nats
from expost.queries.likelihood import BySufficientTerms, FiniteLikelihood
from expost.queries.values.pairwise import Pairwise
from expost.sampling import Pmf
from expost.terms import Powers, Term, Weights

__all__ = ["Lifted", "lifted", "of_classes"]


def lifted(likelihood: FiniteLikelihood, part: Part) -> FiniteLikelihood:
    """The same on a part that has more attributes, or the same ones in another order."""
    seen = likelihood.domain
    assert isinstance(seen, Part)
    axes = np.unravel_index(np.arange(len(part)), part.sizes)
    own = [axes[part.about.index(name)] for name in seen.about]
    return of_classes(likelihood, part, np.ravel_multi_index(own, seen.sizes).astype(np.intp))


def of_classes(
    likelihood: FiniteLikelihood, domain: FiniteSet, where: NDArray[np.intp]
) -> FiniteLikelihood:
    """The same on a domain each of whose values is like one of these, all of which are there."""
    if isinstance(likelihood, Pairwise):
        return _LiftedPairs(likelihood, domain, where)
    assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
    return _LiftedTerms(likelihood, domain, where)


class Lifted(FiniteLikelihood):
    """What every lifted likelihood has: what it sees, and where each value is in that."""

    def __init__(self, seen: FiniteLikelihood, domain: FiniteSet, where: NDArray[np.intp]) -> None:
        self.domain = domain
        self.seen = seen
        self.responses = seen.responses
        self.where = where

    @property
    def sees_all(self) -> bool:
        """Whether only the order is another one."""
        return len(self.seen.domain) == len(self.domain)

    def position(self, response: Any) -> int | None:
        return self.seen.position(response)

    def pmf(self, place: int) -> Pmf:
        return self.seen.pmf(int(self.where[place]))

    def weights(self, position: int) -> Weights:
        return self.seen.weights(position)[self.where]

    def alike(self, position: int) -> NDArray[Any]:
        return self.seen.alike(position)[self.where]

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        return self.seen.powers(position, self.where[places].tolist())

    def _term(self, position: int) -> Term:
        return self.seen.term(position).take(self.where)

    @property
    def epsilon(self) -> Nats:
        return self.seen.epsilon

    @property
    def least_loss(self) -> Nats:
        return self.seen.least_loss

    def delta(self, ratio: Fraction) -> Fraction:
        return self.seen.delta(ratio)


class _LiftedPairs(Lifted, Pairwise):
    seen: Pairwise

    def speaks_for(self, position: int) -> NDArray[np.bool_]:
        return np.asarray(self.seen.speaks_for(position)[self.where])

    def telling(self, value: int, other: int) -> int:
        return self.seen.telling(int(self.where[value]), int(self.where[other]))

    def told_from(self, value: int) -> NDArray[np.bool_]:
        return np.asarray(self.seen.told_from(int(self.where[value]))[self.where])

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        return self.seen.chances if self.sees_all else None

    @property
    def merging(self) -> Fraction:
        return self.seen.merging


class _LiftedTerms(Lifted, BySufficientTerms):
    seen: BySufficientTerms

    @property
    def sufficient(self) -> Sequence[int]:
        return self.seen.sufficient
