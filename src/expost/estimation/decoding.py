"""Decoders turn a response into an unbiased estimate of the indicator of each value.

A decoder gives numbers c_j(y) with E[c_j(Y) | x] = 1 if x = j, and 0 otherwise. Their mean over
the subjects is the frequency of value j. Proofs: docs/theory/estimates.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from expost._types import Floats
from expost.domains import Part
from expost.errors import InvalidInput
from expost.queries import FiniteLikelihood
from expost.queries.lifted import Lifted
from expost.queries.values.pairwise import Pairwise

__all__ = ["Decoder", "Inverse", "Noise", "SpokenFor", "decoder", "probabilities"]

INSTEAD = "estimate_distribution takes any mixture"
"""What to do where responses do not tell values apart."""


# The probabilities of all responses for all values take up to 32 MiB.
_LARGEST_TABLE = 1 << 22

# The largest bias that an inverse in doubles may have.
_BIAS = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """The variance of c_j(Y) for a subject with value k."""

    true: Floats
    """Where j is k: one number, or one per value."""
    other: Floats
    """Where j is not k: one number, or a row per j and a column per k."""
    shared: float = 0.0
    """A further part of ``other`` that all responses to the same query have in common."""

    typical: float = field(init=False)
    """One number by which queries are compared."""

    def __post_init__(self) -> None:
        typical = float(self.true.mean() + self.other.mean()) + self.shared
        object.__setattr__(self, "typical", typical)


class Decoder(Protocol):
    """How the responses of a query are decoded."""

    @property
    def noise(self) -> Noise: ...

    def decode(self, position: int) -> Floats:
        """The numbers c_j of one response, for all values."""
        ...


@dataclass(frozen=True, slots=True)
class SpokenFor:
    r"""A response counts for the values that it speaks for, the set A_y, and against all others.

    .. math:: c_j(y) = \frac{1[j \in A_y] - q}{p - q}

    p is the probability that a response speaks for the true value, and q that it speaks for a
    given other one. If a random seed merges values, q is the average over seeds.
    """

    likelihood: Pairwise
    pro: Fraction
    contra: Fraction
    noise: Noise

    def decode(self, position: int) -> Floats:
        spoken = self.likelihood.speaks_for(position)
        return np.where(spoken, float(self.pro), float(self.contra))


@lru_cache(maxsize=256)
def _spoken(true: Fraction, apart: Fraction, merging: Fraction) -> tuple[Fraction, Fraction, Noise]:
    other = apart + merging * (true - apart)
    gain = true - other
    drift = merging * (1 - merging) * (true - apart) ** 2
    noise = Noise(
        np.array(float(true * (1 - true) / gain**2)),
        np.array(float((other * (1 - other) - drift) / gain**2)),
        float(drift / gain**2),
    )
    return (1 - other) / gain, -other / gain, noise


@dataclass(frozen=True, slots=True)
class Inverse:
    """Every response has numbers of its own: a left inverse of the channel, by least squares.

    Of all left inverses it has the least variance if all values are equally frequent.
    """

    numbers: Floats
    """A row per value, a column per response."""
    noise: Noise

    def decode(self, position: int) -> Floats:
        return np.asarray(self.numbers[:, position])


def decoder(likelihood: FiniteLikelihood) -> Decoder:
    """The decoder of a query on a domain; an error if its responses do not tell values apart."""
    if isinstance(likelihood, Lifted) and not likelihood.sees_all:
        seen = likelihood.seen.domain
        named = f"{len(seen)} classes of values"
        if isinstance(seen, Part):
            named = f"{', '.join(seen.about)} alone"
        raise InvalidInput(f"is about {named}; {INSTEAD}")
    chances = likelihood.chances if isinstance(likelihood, Pairwise) else None
    if chances is None:
        return _inverse(likelihood)
    assert isinstance(likelihood, Pairwise)
    try:
        return SpokenFor(likelihood, *_spoken(*chances, likelihood.merging))
    except OverflowError:
        raise InvalidInput("is too small for an estimate in doubles", "epsilon") from None


def _inverse(likelihood: FiniteLikelihood) -> Inverse:
    values, count = len(likelihood.domain), len(likelihood.responses)
    reason = f"cannot be told apart by one response; {INSTEAD}"
    if count < values:
        raise InvalidInput(f"has {count} responses: {values} values {reason}")
    if count * values > _LARGEST_TABLE:
        raise InvalidInput(f"has {count:,} responses, which is too many; {INSTEAD}")
    channel = probabilities(likelihood)
    scale = 1 / np.sqrt(channel.mean(axis=0))
    inverse: Floats = np.linalg.pinv((channel * scale).T) * scale
    bias = np.abs(inverse @ channel.T - np.eye(values)).max()
    if not bias < _BIAS:
        raise InvalidInput(f"some values {reason}")
    variance = np.maximum(inverse**2 @ channel.T - np.eye(values), 0.0)
    true = variance.diagonal().copy()
    np.fill_diagonal(variance, 0.0)
    return Inverse(inverse, Noise(true, variance))


def probabilities(likelihood: FiniteLikelihood) -> Floats:
    """Pr(response | value): a row per value, a column per response."""
    pmfs = [likelihood.pmf(place) for place in range(len(likelihood.domain))]
    count = len(likelihood.responses)
    if isinstance(likelihood, Pairwise):
        # Their weights are only known up to a factor that differs between responses.
        rows = [[float(pmf.probability(y)) for y in range(count)] for pmf in pmfs]
        return np.array(rows)
    total = pmfs[0].total
    columns = [[int(w) / total for w in likelihood.weights(y)] for y in range(count)]
    return np.array(columns).T
