"""Gaussian noise on a score: the score on a grid, and discrete Gaussian noise on that grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from expost._format import format_integer, format_number
from expost.domains import Box, Domain, FiniteSet
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import LARGEST_INTEGER, members
from expost.numbers import (
    ExactLike,
    Nats,
    decimal_text,
    double_above,
    double_below,
    exact,
    positive,
    quotient,
)
from expost.queries._likelihood import BoxLikelihood, FiniteLikelihood
from expost.queries._query import UnbiasedScore, read_delta, read_epsilon
from expost.queries.noise._discrete_gaussian import (
    LARGEST_REACH,
    ROUNDING,
    GaussianNoise,
    continuous_mu,
    short_above,
    smallest_sigma,
)
from expost.queries.noise._integer_noise import (
    NoisyOnBox,
    NoisyOnSet,
    OnGrid,
    affine_form,
    read_grid,
)
from expost.queries.scores._aligned import FORGIVEN, UNIT
from expost.queries.scores._one_bit import read_range
from expost.queries.scores._score import WeightsLike, read_score
from expost.terms import Link, ScoreTerm

__all__ = ["Gaussian", "gaussian"]

_LEAST_SIGMA = Fraction(1, 20)
_CHARGE_DIGITS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(OnGrid):
    r"""A score s in [a, b], rounded to a grid of step g, plus noise (Canonne et al. 2020).

    .. math:: P[k \mid s] \propto e^{-(k g - \hat s)^2 / 2 \sigma^2}, \quad
              \hat s = g \operatorname{round}(s/g)

    The response is an integer k and means k·g. Both ends of the range are on the grid. Noise that
    leaves the range by more than 9 σ counts as its last step. With ``delta`` the query is charged
    the least ε at which what is sampled is (ε, δ)-LDP.
    """

    kind: ClassVar[str] = "gaussian"
    epsilon = None
    approximate = True
    sigma: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        with at("sigma"):
            object.__setattr__(self, "sigma", positive(self.sigma, at_most=LARGEST_INTEGER))
            if self.sigma < (least := self.least_sigma):
                raise InvalidInput(
                    f"must be at least {format_number(quotient(least))}, a 20th of the range"
                )
        if self.delta != 0:
            object.__setattr__(self, "delta", read_delta(self.delta))

    def __repr__(self) -> str:
        low, high = self.range
        shown = f"{self.score} in [{low}, {high}], grid={decimal_text(self.grid)}"
        delta = f", delta={decimal_text(self.delta)}" if self.delta else ""
        return f"Gaussian({shown}, sigma={decimal_text(self.sigma)}{delta})"

    def tree(self) -> dict[str, Any]:
        tree = {**super().tree(), "sigma": self.sigma}
        return {**tree, "delta": self.delta} if self.delta else tree

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Gaussian:
        required = ("weights", "range", "grid", "sigma")
        fields = members(fields, required=required, optional=("intercept", "delta"))
        query = cls(*read_grid(fields), fields["sigma"])
        return replace(query, delta=read_delta(fields["delta"])) if "delta" in fields else query

    def with_epsilon(self, epsilon: Fraction) -> None:
        return None

    @property
    def least_sigma(self) -> Fraction:
        """The least sigma; noise below it gives hardly any privacy."""
        return _LEAST_SIGMA * self.cells * self.grid

    @cached_property
    def noise(self) -> GaussianNoise:
        noise = GaussianNoise.of(self.first, self.first + self.cells, self.sigma / self.grid)
        if noise.reach > LARGEST_REACH:
            least = math.ceil(noise.reach / Fraction(LARGEST_REACH - 1))
            raise InvalidInput(
                f"is too fine for this sigma; use at least {format_integer(least)} times as much",
                "grid",
            )
        if max(-noise.low, noise.high) > LARGEST_INTEGER:
            raise InvalidInput("is too fine for responses up to 2^53", "grid")
        return noise

    def work(self, domain: Domain) -> int:
        return 2 * self.noise.reach

    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        return NoisyOnSet(domain, self, self.noise)

    def on_box(self, domain: Box) -> BoxLikelihood:
        return _GaussianOnBox(domain, self, self.noise)

    def meaning(self, domain: Domain) -> UnbiasedScore:
        variance = float(self.grid) ** 2 * self.noise.variance
        return UnbiasedScore(
            self.range, lambda response: self.grid * response, lambda _score: variance
        )

    def charge(self, domain: Domain) -> Nats:
        """Return the least epsilon at ``delta``; without it, the largest loss of a response."""
        noise = self.noise
        return _least_epsilon(noise.first, noise.last, noise.deviation, self.delta)

    def ceiling(self, domain: Domain) -> Nats:
        noise = self.noise
        return _least_epsilon(noise.first, noise.last, noise.deviation, Fraction(0))

    def cumulant(self, domain: Domain, exponent: Fraction) -> float:
        r"""Bound the cumulant: that of a real discrete Gaussian, plus a bound on rounding.

        .. math:: \lambda (\lambda + 1) \mu^2/2 + (2 \lambda + 1) 2^{-40}, \quad
                  \mu = (b - a)/\sigma
        """
        mu = self.cells * self.grid / self.sigma
        rounding = (2 * exponent + 1) * ROUNDING
        return double_above(exponent * (exponent + 1) * mu**2 / 2 + rounding)


@lru_cache(maxsize=1024)
def _least_epsilon(first: int, last: int, deviation: Fraction, delta: Fraction) -> Nats:
    """Return the least decimal of six digits at which any two values are (ε, δ)-close."""
    ratio = GaussianNoise.of(first, last, deviation).least_ratio(delta)
    if ratio <= 1:
        return Nats()
    return Nats(short_above(Fraction(Nats(ratio=ratio).enclosure.upper), _CHARGE_DIGITS))


class _GaussianOnBox(NoisyOnBox):
    """Terms are parabolas. Of the two clamped ends, only bounds on their difference are known."""

    query: Gaussian
    noise: GaussianNoise

    @property
    def sufficient(self) -> None:
        # The ends would do, but their terms are loose, so that adding the ceiling is as good.
        return None

    @property
    def largest_loss_responses(self) -> Sequence[int]:
        return 0, len(self.responses) - 1

    @property
    def footprint(self) -> int:
        return super().footprint + 8 * len(self.responses)

    def term(self, position: int) -> ScoreTerm:
        query, noise, score = self.query, self.noise, self.score
        response = noise.low + position
        nearest, farthest = sorted(abs(response - value) for value in self.extremes)
        if self.extremes[0] <= response <= self.extremes[1]:
            nearest = 0
        clamped = noise.tails if response in (noise.low, noise.high) else noise.weights
        most = Nats(ratio=Fraction(clamped[nearest], clamped[farthest])).enclosure.upper
        zeros = (0.0,) * len(score.weights)
        form = affine_form(score, 1 / query.sigma, -response * query.grid / query.sigma)
        if score.is_constant or form is None:
            return ScoreTerm(Link.TENT, most, zeros, 0.0, most / 2)
        # From the form to the grid: half a step, a share that is off by a few roundings, and the
        # tolerance at the ends of the range.
        cells, step = query.cells, query.grid / query.sigma
        moved = Fraction(form.moved) + step * (Fraction(1, 2) + cells * (8 * UNIT + FORGIVEN))
        error = moved * (step * farthest + moved / 2) + ROUNDING
        if clamped is noise.tails:
            # The ratio of a tail to its first weight falls with the distance.
            above = Fraction(noise.tails[nearest] * noise.weights[farthest])
            ratio = above / (noise.weights[nearest] * noise.tails[farthest])
            error += Fraction(Nats(ratio=ratio).enclosure.upper) / 2
        if error >= Fraction(most) / 2:
            return ScoreTerm(Link.TENT, most, zeros, 0.0, most / 2)
        low, high = (step * (value - response) for value in self.extremes)
        window = double_below(low - moved), double_above(high + moved)
        return ScoreTerm(Link.HILL, most, form.weights, form.offset, double_above(error), window)


def gaussian(
    weights: WeightsLike,
    *,
    intercept: float = 0,
    range: Sequence[float],
    grid: ExactLike,
    sigma: ExactLike | None = None,
    epsilon: ExactLike | None = None,
    delta: ExactLike | None = None,
) -> Gaussian:
    """Ask for a weighted sum of coordinates with Gaussian noise, a multiple of the grid.

    All scores must be in the range, whose ends are multiples of the grid. Give either ``sigma``, or
    ``epsilon`` and ``delta``: then sigma is the smallest decimal of four digits at which the
    sampled noise is (ε, δ)-LDP.

    Args:
        weights: The weight of each coordinate by its name; a list on a box without names.
        intercept: The constant of the score.
        range: The least and the largest score.
        grid: The distance between neighboring responses.
        sigma: The standard deviation of the noise before rounding.
        epsilon: The privacy parameter, exact: ``"0.1"`` is 1/10.
        delta: The δ of an (ε, δ) guarantee.

    Raises:
        InvalidInput: Both sigma and epsilon are given, or neither, or epsilon without delta.

    >>> gaussian({"age": 1}, range=(0, 120), grid=1, epsilon="1", delta="1e-6")
    Gaussian(1 weight in [0, 120], grid=1, sigma=507, delta=0.000001)
    """
    step = read_at("grid", exact, grid)
    start = Gaussian(
        read_score(weights, intercept),
        ends := read_range(range),
        step,
        # A placeholder that is large enough.
        Fraction(ends[1]) - Fraction(ends[0]) if sigma is None else read_at("sigma", exact, sigma),
        Fraction(0) if delta is None else read_delta(delta),
    )
    if (sigma is None) == (epsilon is None) or (sigma is None and delta is None):
        raise InvalidInput("give either sigma, or epsilon and delta")
    return start if epsilon is None else _calibrated(start, read_epsilon(epsilon))


def _calibrated(query: Gaussian, epsilon: Fraction) -> Gaussian:
    """Return the query with the smallest sigma that has this epsilon at its delta."""
    target = Nats(epsilon)

    def fits(sigma: Fraction) -> bool:
        # From the weights that would be sampled.
        return Nats(ratio=replace(query, sigma=sigma).noise.least_ratio(query.delta)) <= target

    guess = query.cells * query.grid / continuous_mu(epsilon, query.delta)
    return replace(query, sigma=smallest_sigma(fits, guess, query.least_sigma))
