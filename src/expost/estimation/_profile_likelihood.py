r"""Profile likelihood: intervals of all means that mixtures of sufficient likelihood have.

A mean is in the interval if some mixture that has it is within half the square of Student's
quantile of the maximum. Where probabilities are at zero that alone is too narrow, so the interval
also has the means of mixtures of sufficient likelihood with weights slightly below zero.

The end of an interval is

.. math:: \min_{p \ge 0,\, \sum p = 1} s \cdot p
          \quad\text{subject to}\quad F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j \ge c

with scores between 0 and 1. It lies on the path of the mixtures that maximize, for some tilt κ > 0,

.. math:: F(p) + \kappa \log\, (1 - s) \cdot p

which is the likelihood of one more row, observed κ times. If p is within g of that maximum, no
mixture of sufficient likelihood has a mean below

.. math:: 1 - (1 - s) \cdot p \; e^{(F(p) - c + g) / \kappa}

Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.domains import FiniteSet
from expost.errors import InvalidInput
from expost.estimation._intervals import Intervals, t_quantile
from expost.estimation._mle import STEPS, EstimatedMixture, fit_mixture, observed_information
from expost.estimation._validity import Provenance
from expost.numbers import bisect

__all__ = ["LikelihoodRegion", "ProfileBound", "likelihood_ratio_intervals"]


# How many standard errors a weight may be below zero; and at most how far the weights of a value
# may be, together. Many weights that are free to be negative would fit noise.
_ERRORS_BELOW_ZERO = 4.0
_MOST_BELOW_ZERO = 1.0
_MOST_BELOW_ZERO_TOGETHER = 3.0

# Of the relaxed mixture; in nats, where the interval is cut at about two.
_RELAXED_GAP = 1e-4

# Steps for the two ends of an interval in both regions, and a limit of work: a minute or two.
_STEPS_PER_END = 40
_MOST_PRODUCTS = 300_000_000_000

# The information is computed a little away from the boundary.
_UNIFORM_SHARE = 0.05


def likelihood_ratio_intervals(
    mixture: EstimatedMixture,
    scores: Floats,
    value_index: NDArray[np.intp],
    confidence: float,
    domain: FiniteSet | None,
    provenance: Provenance,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Compute intervals for the means of scores; ``scores`` has a column for each.

    Points with the same number in ``value_index`` belong to the same value.
    """
    observations = mixture.observations
    count = scores.shape[1]
    # The upper end of one share of two is the lower end of the other one.
    are_complements = count == 2 and np.ptp(scores.sum(axis=1)) == 0
    _check_work(observations.table.shape, 1 if are_complements else count)
    quantile = t_quantile(confidence, max(1, int(observations.counts.sum()) - 1))
    region = LikelihoodRegion.around(mixture, quantile**2 / 2)
    relaxed_region = region.relaxed(_members(value_index, observations.groups))
    # A share is only rejected for want of responses if such a want would be rare.
    unseen_region = replace(region, drop=max(region.drop, -math.log(1 - confidence)))
    unidentified, estimate = mixture.unidentified(scores), mixture.probabilities @ scores
    ends, gaps = np.empty((2, count)), np.empty((2, count))
    known: dict[bytes, ProfileBound] = {}
    for column in range(count):
        for side, sign in enumerate((1.0, -1.0)):
            # In a group of values the one with the least score may have all of the probability.
            least_scores = _least_by_group(sign * scores[:, column], observations.groups)
            low, span = float(least_scores.min()), float(np.ptp(least_scores))
            scaled = (least_scores - low) / (span or 1.0)
            key = scaled.tobytes()
            if key not in known:
                known[key] = region.least(scaled)
                if known[key].bound > 0 and not unidentified[column]:
                    known[key] = known[key].or_below(relaxed_region.least(scaled))
                    if scaled @ region.weights > 1 - _NEAR_LIMIT:
                        known[key] = known[key].or_below(unseen_region.least(scaled))
            ends[side, column] = sign * (low + span * known[key].bound)
            gaps[side, column] = span * known[key].gap
        if progress is not None:
            progress(column + 1, count)
    lower, upper = np.minimum(ends[0], estimate), np.maximum(ends[1], estimate)
    ranges = np.ptp(scores, axis=0)
    uncertified = gaps > _LARGEST_GAP * np.abs(ends - estimate) + _DUST * ranges
    dust = _DUST * ranges
    cut = (lower <= scores.min(axis=0) + dust) | (upper >= scores.max(axis=0) - dust)
    errors = np.where(cut, np.nan, (upper - lower) / (2 * quantile))
    errors = np.where(unidentified, np.inf, errors)
    doubt = (
        f"{uncertified.sum():,} of {2 * count:,} ends of intervals are uncertified: the search "
        "ended before it had shown where they are, and they may be much too far out."
    )
    return Intervals(
        estimate, lower, upper, errors, confidence, None, domain, provenance, float(gaps.max()),
        uncertified, (doubt,) if uncertified.any() else (),
    )  # fmt: skip


def _check_work(shape: tuple[int, ...], interval_count: int) -> None:
    patterns, values = shape
    # A step adds up a square matrix, pattern by pattern, and factors it.
    step_products = patterns * (values + 20) ** 2 + 2 * values**3
    if interval_count * _STEPS_PER_END * step_products > _MOST_PRODUCTS:
        raise InvalidInput(
            f"got {patterns:,} kinds of responses for {values:,} values, too many for intervals "
            f"of {interval_count:,} numbers. Pass repetitions (--repetitions), or the scores of "
            "one mean (--share)"
        )


def _least_by_group(scores: Floats, groups: NDArray[np.intp]) -> Floats:
    """Return the least score of each group of values."""
    result = np.full(int(groups.max()) + 1, np.inf)
    np.minimum.at(result, groups, scores)
    return result


def _members(value_index: NDArray[np.intp], groups: NDArray[np.intp]) -> Floats:
    """Return the share of each group that belongs to each value: a row per value."""
    result = np.zeros((int(value_index.max()) + 1, int(groups.max()) + 1))
    np.add.at(result, (value_index, groups), 1.0)
    return np.asarray(result / result.sum(axis=0))


# The search ends when the bound is within this share of its distance from the estimate, and an
# end further off than the larger share is reported as uncertified.
_RELATIVE_GAP = 1e-3
_LARGEST_GAP = 1e-2
_ROUNDING = 1e-10
_DUST = 1e-9
_MOST_TILTS = 40

# An estimate that is at most so far from a limit of the range is at it.
_NEAR_LIMIT = 1e-5

# In nats; the interval is cut at about two.
_TILTED_GAP = 4e-4

# A search starts a little inside, where at most this share of the drop of the likelihood is lost.
_START_DROP = 0.3
_INTERIOR_SHARE = 0.1

# A tilt that is too weak grows at least and at most by these factors; between two tilts, the next
# one is at least this share of the way from either.
_LEAST_FACTOR = 1.3
_MOST_FACTOR = 10.0
_LEAST_SHARE = 0.05
_HALVINGS = 40
_MOST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True, eq=False)
class ProfileBound:
    """The least mean of mixtures of sufficient likelihood, from both sides."""

    #: The mean of ``witness``, a mixture of sufficient likelihood.
    attained: float
    #: No such mixture has a lower mean.
    bound: float
    witness: Floats

    @property
    def gap(self) -> float:
        """How far the bound is below the least mean, at most."""
        return self.attained - self.bound

    def or_below(self, other: ProfileBound) -> ProfileBound:
        """Return the lower of the least means in two regions."""
        lower = min(self, other, key=lambda end: end.attained)
        return ProfileBound(lower.attained, min(self.bound, other.bound), lower.witness)


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodRegion:
    """All mixtures of sufficient likelihood, if weights may be as much as ``below`` under zero.

    Such weights are (1 + Σ below) · w - below, where w has no weight below zero.
    """

    #: The table of likelihoods, transformed for w.
    table: Floats
    counts: Floats
    #: The maximum-likelihood w.
    weights: Floats
    #: A mixture without zeros near the maximum, of sufficient likelihood.
    start: Floats
    maximum: float
    #: How far below the maximum a likelihood is sufficient, in nats.
    drop: float
    below: Floats
    #: Roughly that of the weights: no bound depends on it.
    covariance: Floats

    @classmethod
    def around(cls, mixture: EstimatedMixture, drop: float) -> LikelihoodRegion:
        """Return the region without weights below zero."""
        table, counts = mixture.observations.table, mixture.observations.counts
        weights, size, total = mixture.fit.weights, table.shape[1], float(counts.sum())
        interior = _interior(weights)
        information = total * observed_information(table, counts / total, table @ interior)
        # As if one more subject had given the value; and the sum of the weights is certain.
        information += np.diag(1 / interior) + float(np.trace(information)) * np.ones((size, size))
        covariance = np.asarray(np.linalg.inv(information))
        maximum = mixture.fit.log_likelihood
        start = _interior_start(table, counts, weights, maximum - _START_DROP * drop)
        return cls(table, counts, weights, start, maximum, drop, np.zeros(size), covariance)

    def relaxed(self, members: Floats) -> LikelihoodRegion:
        """Extend the region to weights that are some standard errors below zero.

        The limits of those that make up a value are in proportion to them.
        """
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        parts = members * _interior(self.weights)
        together = (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0)
        below = np.minimum(
            np.minimum(_ERRORS_BELOW_ZERO * errors, _MOST_BELOW_ZERO),
            _MOST_BELOW_ZERO_TOGETHER * together,
        )
        stretch = 1 + float(below.sum())
        table: Floats = stretch * self.table - (self.table @ below)[:, None]
        start: Floats = (self.start + below) / stretch
        fit = fit_mixture(table, self.counts, gap=_RELAXED_GAP, steps=STEPS, start=start)
        maximum = fit.log_likelihood
        start = _interior_start(table, self.counts, fit.weights, maximum - _START_DROP * self.drop)
        return LikelihoodRegion(
            table, self.counts, fit.weights, start, maximum, self.drop, below, self.covariance
        )

    def least(self, scores: Floats) -> ProfileBound:
        """Return the least mean of scores between 0 and 1, from both sides; 0 if it is below 0."""
        error = math.sqrt(max(0.0, float(scores @ self.covariance @ scores)))
        stretched = (1 + self.below.sum()) * scores - float(scores @ self.below)
        low, span = float(stretched.min()), float(np.ptp(stretched))
        if span == 0:
            return ProfileBound(0.0, 0.0, self.weights)
        error = min(1.0, max(_DUST, error / span))
        end = self._least((stretched - low) / span, error, -low / span)
        attained, bound = (max(0.0, low + span * mean) for mean in (end.attained, end.bound))
        return ProfileBound(attained, bound, end.witness)

    def _least(self, scores: Floats, error: float, nothing: float) -> ProfileBound:
        """Return the least mean of scores between 0 and 1, or one that is at most ``nothing``."""
        gains, floor = 1 - scores, self.maximum - self.drop
        table = np.vstack([self.table, gains])
        estimate = float(scores @ self.weights)
        # If the likelihood is quadratic, the root of its drop is in proportion to the tilt.
        distance = math.sqrt(2 * self.drop) * error
        tilt = distance / error**2 * min(1.0, 1 - estimate + distance)
        weak, strong = (0.0, 0.0), None
        weak_weights, strong_weights = self.weights, None
        attained, bound, witness = estimate, 0.0, self.weights
        for _ in range(_MOST_TILTS):
            guess = (1 - _INTERIOR_SHARE) * witness + _INTERIOR_SHARE * self.start
            fit = fit_mixture(
                table, np.append(self.counts, tilt), gap=_TILTED_GAP, steps=STEPS, start=guess
            )
            log_likelihood, gain = self.log_likelihood(fit.weights), float(gains @ fit.weights)
            exponent = min((log_likelihood - floor + fit.gap) / tilt, _MOST_EXPONENT)
            bound = max(bound, 1 - gain * math.exp(exponent) - _ROUNDING)
            root_drop = math.sqrt(max(0.0, self.maximum - log_likelihood))
            if log_likelihood >= floor:
                weak, weak_weights = (tilt, root_drop), fit.weights
            else:
                strong, strong_weights = (tilt, root_drop), fit.weights
            candidates = [weak_weights, _at_least(weak_weights, scores)]
            if strong_weights is not None:
                candidates.append(self._cut(weak_weights, strong_weights))
            for candidate in candidates:
                if scores @ candidate < attained and self.log_likelihood(candidate) >= floor:
                    attained, witness = float(scores @ candidate), candidate
            tolerance = max(_RELATIVE_GAP * (estimate - bound), 2 * _ROUNDING)
            if attained <= nothing or attained - bound <= tolerance:
                break
            tilt = _next_tilt(weak, strong, math.sqrt(self.drop))
        return ProfileBound(attained, min(bound, attained), witness)

    def log_likelihood(self, weights: Floats) -> float:
        """Return the log-likelihood of a mixture."""
        return _log_likelihood(self.counts, self.table @ weights)

    def _cut(self, inside: Floats, outside: Floats) -> Floats:
        """Return the last mixture of sufficient likelihood on the way from one to the other."""
        mixed, change = self.table @ inside, self.table @ (outside - inside)
        floor = self.maximum - self.drop

        def sufficient(share: float) -> bool:
            return _log_likelihood(self.counts, mixed + share * change) >= floor

        share, _ = bisect(sufficient, 0.0, 1.0, steps=_HALVINGS)
        return np.asarray(inside + share * (outside - inside))


def _interior(weights: Floats) -> Floats:
    return np.asarray((1 - _UNIFORM_SHARE) * weights + _UNIFORM_SHARE / len(weights))


def _log_likelihood(counts: Floats, mixed: Floats) -> float:
    return float(counts @ np.log(mixed)) if (mixed > 0).all() else -math.inf


def _interior_start(table: Floats, counts: Floats, weights: Floats, floor: float) -> Floats:
    """Return a mixture without zeros near the maximum, above the floor."""
    share, size = 0.1, len(weights)
    while True:
        mixture: Floats = (1 - share) * weights + share / size
        if _log_likelihood(counts, table @ mixture) >= floor:
            return mixture
        share /= 4


def _at_least(weights: Floats, scores: Floats) -> Floats:
    """Return the part of a mixture with the least score, or all of it if there is none."""
    part = weights * (scores == 0)
    return np.asarray(part / part.sum()) if part.any() else weights


def _next_tilt(
    weak: tuple[float, float], strong: tuple[float, float] | None, wanted: float
) -> float:
    """Extrapolate from a tilt that is too weak, or interpolate to one that is too strong.

    Each has the root of the drop of the likelihood that it leads to.
    """
    tilt, root_drop = weak
    if strong is None:
        factor = wanted / root_drop if root_drop > 0 else _MOST_FACTOR
        return tilt * min(_MOST_FACTOR, max(_LEAST_FACTOR, factor))
    share = (wanted - root_drop) / (strong[1] - root_drop)
    return tilt + (strong[0] - tilt) * min(1 - _LEAST_SHARE, max(_LEAST_SHARE, share))
