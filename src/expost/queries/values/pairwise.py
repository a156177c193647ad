"""Likelihoods under which two values are told apart fully or not at all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import FiniteSet
from expost.numbers import Nats, scaled_exp
from expost.queries.likelihood import FiniteLikelihood
from expost.terms import Powers, Term, Weights, as_weights

__all__ = ["Bits", "Pairwise", "two_weights"]


def two_weights(epsilon: Fraction, steps: int = 1) -> tuple[int, int]:
    """Weights (heavy, light) with heavy/light just below e^epsilon, for one of so many equal steps.

    light = 2^B and heavy = ⌊2^B e^epsilon⌋ with B = 40 + max(0, ⌈log₂ 1/epsilon⌉): the loss
    log(heavy/light) is at most epsilon, exactly, and misses it by less than 2^-40 of itself.
    """
    top, bottom = epsilon.as_integer_ratio()
    return _two_weights(top, bottom * steps)


@lru_cache(maxsize=1 << 14)
def _two_weights(top: int, bottom: int) -> tuple[int, int]:
    # Epsilon is given by its parts, for the hash of a fraction takes long.
    bits = 40
    while top << (bits - 40) < bottom:
        bits += 1
    return scaled_exp(Fraction(top, bottom), bits), 1 << bits


@dataclass(frozen=True, slots=True)
class Bits:
    """How likely bits are; the same for all inputs, because values are alike."""

    own: Fraction
    """The bit of the input."""
    other: Fraction
    """Any other bit."""
    right: Fraction
    """The bit of the input without that of a certain other value."""
    wrong: Fraction
    """The bit of a certain other value without that of the input."""
    independent: bool


class Pairwise(FiniteLikelihood):
    r"""A likelihood whose responses each speak for some values, and against all others equally.

    .. math:: \log P[y \mid x] = c(y) + \varepsilon 1[x \in A_y]

    So D(x, x') is epsilon where some response tells the two values apart, and zero where none does.
    Being told apart by none must be an equivalence.
    """

    def __init__(self, domain: FiniteSet, heavy: int, light: int) -> None:
        self.domain = domain
        self._heavy = heavy
        self._light = light

    @abstractmethod
    def speaks_for(self, position: int) -> NDArray[np.bool_]:
        """The values, A_y, that are likelier than all others given this response."""

    @abstractmethod
    def telling(self, value: int, other: int) -> int:
        """A response that speaks for a value, and against another that is told apart from it."""

    @property
    def chances(self) -> tuple[Fraction, Fraction] | None:
        """How likely a response speaks for the true value, and for a value told apart from it.

        None if that is not the same for all values.
        """
        return None

    def bits(self, place: int) -> Bits | None:
        """How likely the bits of a response are, for the value at this place.

        None if responses do not consist of a bit for each value.
        """
        return None

    @property
    def merging(self) -> Fraction:
        """How likely two values are not told apart, over all seeds that the query could have."""
        return Fraction(0)

    def told_from(self, value: int) -> NDArray[np.bool_]:
        """The values that some response tells from this one: all others by default."""
        others = np.ones(len(self.domain), dtype=np.bool_)
        others[value] = False
        return others

    def weights(self, position: int) -> Weights:
        weights = np.repeat(as_weights([self._light], self._heavy), len(self.domain))
        weights[self.speaks_for(position)] = self._heavy
        return weights

    def _term(self, position: int) -> Term:
        return self._two.for_classes(self.speaks_for(position))

    @cached_property
    def _two(self) -> Term:
        return Term(as_weights([self._light, self._heavy], self._heavy))

    def alike(self, position: int) -> NDArray[Any]:
        return self.speaks_for(position)

    def powers(self, position: int, places: Sequence[int]) -> list[Powers]:
        heavy, light = ((self._heavy, 1),), ((self._light, 1),)
        return [heavy if spoken else light for spoken in self.speaks_for(position)[places].tolist()]

    @cached_property
    def epsilon(self) -> Nats:
        return Nats(ratio=Fraction(self._heavy, self._light)) if self.told_from(0).any() else Nats()

    def delta(self, ratio: Fraction) -> Fraction:
        if self.chances is None:
            return super().delta(ratio)
        # Of responses that speak for one value and not for the other, with probability a and
        # a·light/heavy: a·(1 - light/heavy) is the difference of the chances.
        own, other = self.chances
        over = max(Fraction(0), self._heavy - ratio * self._light)
        apart = self.epsilon > Nats()
        return (own - other) * over / (self._heavy - self._light) if apart else Fraction(0)
