"""Intervals: tables of them, quantiles and score intervals, and the bootstrap.

Proofs: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_confidence, format_number
from expost._types import Floats
from expost.cards import View
from expost.domains import FiniteSet
from expost.estimation._mle import EstimatedMixture
from expost.estimation._validity import Provenance
from expost.files.canonical import plain_tree
from expost.files.tables import ResultTable, as_lists
from expost.numbers import bisect

__all__ = [
    "INCONSISTENT",
    "LEAST_REPETITIONS",
    "Intervals",
    "binomial_interval",
    "bootstrap_intervals",
    "normal_quantile",
    "score_interval",
    "t_quantile",
    "value_cells",
    "value_columns",
    "value_heads",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Intervals(ResultTable):
    """Intervals around estimates, from :meth:`Distribution.intervals`.

    By default they are likelihood-ratio intervals; with ``repetitions``, they have the share
    ``confidence`` of the estimates from resampled subjects. The estimate itself is always inside.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> found = estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> intervals = found.intervals()
    >>> intervals.lower.round(3).tolist(), intervals.upper.round(3).tolist()
    ([0.637, 0.126], [0.874, 0.363])
    """

    #: The estimate that each interval is around.
    estimate: Floats
    lower: Floats
    upper: Floats
    #: Infinite where the responses do not determine the estimate; not a number where the interval
    #: ends where the range does, because its width then says little of the error.
    standard_error: Floats
    confidence: float
    #: How often subjects were resampled; None for likelihood-ratio intervals.
    repetitions: int | None
    #: The domain whose values they are about, in its order; None for the mean of a score.
    domain: FiniteSet | None
    provenance: Provenance
    #: How much too far out an end is at most, because a search has a limit.
    gap: float
    #: Whether a search ended before it had shown where an end is: lower ends, then upper ones.
    #:
    #: Such an end may be much too far out, but not too far in.
    uncertified: NDArray[np.bool_]
    #: Reasons why they may be too narrow, or too wide.
    doubts: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table: a row per value, or one for the mean of a score."""
        estimates = self._estimates()
        values = {} if self.domain is None else value_columns(self.domain, estimates)
        return {**values, **estimates}

    def _estimates(self) -> dict[str, Floats]:
        names = ("estimate", "lower", "upper", "standard_error")
        return {name: getattr(self, name) for name in names}

    def _view(self) -> View:
        estimates, domain = self._estimates(), self.domain
        value_names = [] if domain is None else value_heads(domain, estimates)
        repetitions = self.repetitions
        method = f"{repetitions:,} repetitions" if repetitions else "by the ratio of likelihoods"
        return View(
            f"Intervals({len(self.lower):,})",
            {
                "intervals": f"{format_confidence(self.confidence)}, {method}",
                **({"but": " ".join(self.doubts)} if self.doubts else {}),
            },
            (*value_names, *estimates),
            len(self.lower),
            lambda index: (
                *(() if domain is None else value_cells(domain, index)),
                *(format_number(column[index], 4) for column in estimates.values()),
            ),
        )

    def tree(self) -> dict[str, Any]:
        """Return the intervals as JSON, in lists."""
        values = {} if self.domain is None else {"value": list(self.domain.values)}
        options = {"confidence": self.confidence, "repetitions": self.repetitions, "gap": self.gap}
        uncertified = {"uncertified": self.uncertified_ends()}
        return plain_tree({**values, **as_lists(self._estimates()), **uncertified, **options})

    def uncertified_ends(self) -> list[str]:
        """Name the uncertified ends of each interval: ``lower``, ``upper``, both or none."""
        names = {"lower": self.uncertified[0], "upper": self.uncertified[1]}
        return [
            " ".join(name for name, column in names.items() if column[index])
            for index in range(len(self.estimate))
        ]


def value_heads(domain: FiniteSet, other_columns: Iterable[str]) -> list[str]:
    """Name the columns of values: as the coordinates or attributes, or ``value``.

    A name that another column of the table has gets ``value_`` in front.

    >>> import expost as xp
    >>> points = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "lower"])
    >>> value_heads(points, other_columns=["lower", "upper"])
    ['age', 'value_lower']
    """
    used_names = set(other_columns)
    heads: list[str] = []
    for name in domain.names or ("value",):
        while name in used_names:
            name = f"value_{name}"
        used_names.add(name)
        heads.append(name)
    return heads


def value_cells(domain: FiniteSet, index: int) -> tuple[Any, ...]:
    """Return one value, as a cell for each column."""
    value: Any = domain.values[index]
    return (value,) if domain.names is None else tuple(value)


def value_columns(domain: FiniteSet, other_columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return all values as columns, next to other columns."""
    rows = (value_cells(domain, index) for index in range(len(domain)))
    columns = map(list, zip(*rows, strict=True))
    return dict(zip(value_heads(domain, other_columns), columns, strict=True))


def normal_quantile(confidence: float) -> float:
    """Return the two-sided quantile of the normal distribution.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def t_quantile(confidence: float, degrees_of_freedom: int) -> float:
    """Return the two-sided quantile of Student's distribution (Hill 1970, Algorithm 396).

    Accurate to about five digits, which is more than the normal approximation deserves.

    >>> round(t_quantile(0.95, degrees_of_freedom=10), 3)
    2.228
    """
    tails, n = 1 - confidence, float(degrees_of_freedom)
    if degrees_of_freedom == 1:
        return 1 / math.tan(tails * math.pi / 2)
    if degrees_of_freedom == 2:
        return math.sqrt(2 / (tails * (2 - tails)) - 2)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y <= 0.05 + a:
        y = (
            (1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1
        ) * (n + 1) / (n + 2) + 1 / y
        return math.sqrt(n * y)
    x = -normal_quantile(confidence)
    y = x * x
    if degrees_of_freedom < 5:
        c += 0.3 * (n - 4.5) * (x + 0.6)
    c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
    y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
    return math.sqrt(n * math.expm1(a * y * y))


def score_interval(
    estimates: Floats, constant: Floats, slope: Floats, subjects: int, quantile: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    r"""Return the range of shares f in [0, 1] that an estimate does not reject (after Wilson).

    .. math:: n\,(\hat f - f)^2 \le z^2\,(c + b f - f^2)

    The variance of one subject's estimate is c + b f - f² for every f. The third array says where
    any share fits; elsewhere the range is all of [0, 1].

    >>> zero, one = np.zeros(1), np.ones(1)  # c = 0 and b = 1: Wilson's own interval
    >>> lower, upper, _ = score_interval(np.array([0.5]), zero, one, subjects=100, quantile=1.96)
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.404], [0.596])
    """
    relative_variance = quantile**2 / subjects
    center = (estimates + relative_variance * slope / 2) / (1 + relative_variance)
    offset = (estimates**2 - relative_variance * constant) / (1 + relative_variance)
    half_width = np.sqrt(np.maximum(center**2 - offset, 0.0))
    lower, upper = center - half_width, center + half_width
    # A share of exactly 0 or 1 fits an estimate of the same without noise, except for rounding.
    dust = 1e-12
    consistent = (center**2 - offset >= -dust) & (lower <= 1 + dust) & (upper >= -dust)
    lower = np.where(consistent, np.clip(lower, 0.0, 1.0), 0.0)
    upper = np.where(consistent, np.clip(upper, 0.0, 1.0), 1.0)
    return lower, upper, consistent


#: A remark where responses reject everything that is possible.
INCONSISTENT = (
    "no number in the range fits some of the responses at this confidence, so the interval is the "
    "whole range"
)


def binomial_interval(count: int, trials: int, level: float) -> tuple[float, float]:
    """Return the shares that an exact test of this level does not reject (Blaker 2000).

    The test rejects a share if responses whose lesser tail is no larger than that of ``count``
    have a probability of at most ``level`` in all.

    >>> lower, upper = binomial_interval(0, trials=5, level=0.05)
    >>> lower, round(upper, 3)
    (0.0, 0.5)
    """
    return _lower_share(count, trials, level), 1 - _lower_share(trials - count, trials, level)


def _lower_share(count: int, trials: int, level: float) -> float:
    """Return the least share of :func:`binomial_interval`, from below."""
    if count == 0:
        return 0.0

    def upper_tail(share: float) -> float:
        return _tail(count, trials, share)

    def lower_tail(most: int, share: float) -> float:
        return _tail(trials - most, trials, 1 - share)

    # The upper tail alone rejects anything below this (Clopper and Pearson 1934).
    least, _ = bisect(lambda share: upper_tail(share) < level / 2, 0.0, count / trials)
    below, above = -1, count
    while above - below > 1:
        middle = (below + above) // 2
        small = lower_tail(middle, least) <= level / 2
        below, above = (middle, above) if small else (below, middle)
    # The lower tail gains a response where the next one is as small as the upper tail; there the
    # test no longer rejects.
    next_, _ = bisect(
        lambda share: lower_tail(above, share) > upper_tail(share), least, count / trials
    )
    share, _ = bisect(
        lambda share: upper_tail(share) + lower_tail(below, share) < level, least, next_
    )
    return share


def _tail(least: int, trials: int, share: float) -> float:
    """Return the probability of at least so many successes."""
    if least <= 0 or share >= 1:
        return 1.0
    if least > trials or share <= 0:
        return 0.0
    if least <= share * trials:
        return 1 - _tail(trials - least + 1, trials, 1 - share)
    # From the mean on, probabilities this many deviations later no longer matter.
    reach = int(20 * math.sqrt(trials * share * (1 - share))) + 100
    counts = np.arange(least, min(trials, least + reach))
    first = (
        math.lgamma(trials + 1) - math.lgamma(least + 1) - math.lgamma(trials - least + 1)
        + least * math.log(share) + (trials - least) * math.log1p(-share)
    )  # fmt: skip
    ratios = np.log((trials - counts) / (counts + 1)) + math.log(share) - math.log1p(-share)
    return min(1.0, math.exp(first) * (1 + float(np.exp(np.cumsum(ratios)).sum())))


#: Repetitions: the ends of a 95 % interval are then not just the two most extreme of them.
LEAST_REPETITIONS = 50

# An interior search is at most this far from an end where the true maximum is.
_NEAR_END = 1e-5


def bootstrap_intervals(
    mixture: EstimatedMixture,
    scores: Floats,
    confidence: float,
    domain: FiniteSet | None,
    provenance: Provenance,
    *,
    repetitions: int,
    generator: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
) -> Intervals:
    """Compute bootstrap intervals for the means of scores; ``scores`` has a column for each.

    Means that the responses do not determine get all of their range.
    """
    replicates = np.empty((repetitions, scores.shape[1]))
    for repetition in range(repetitions):
        replicates[repetition] = mixture.bootstrap_replicate(generator) @ scores
        if progress is not None:
            progress(repetition + 1, repetitions)
    estimate, unidentified = mixture.probabilities @ scores, mixture.unidentified(scores)
    least, most = scores.min(axis=0), scores.max(axis=0)
    tails = (1 - confidence) / 2
    lower, upper = np.quantile(replicates, [tails, 1 - tails], axis=0)
    # The search for a replicate is rougher, and may miss an end where the estimate is.
    lower = np.where(unidentified, least, np.minimum(lower, estimate))
    upper = np.where(unidentified, most, np.maximum(upper, estimate))
    errors = np.where(unidentified, np.inf, replicates.std(axis=0, ddof=1))
    margin = _NEAR_END * (most - least)
    interior = (least + margin < estimate) & (estimate < most - margin)
    at_end = int((~interior & ~unidentified & (most > least)).sum())
    doubt = (
        f"{at_end:,} of {len(estimate):,} estimates are at an end of what is possible, where "
        "intervals from resampled subjects are too narrow, the more so with few subjects."
    )
    certified = np.zeros((2, len(estimate)), dtype=np.bool_)
    return Intervals(
        estimate, lower, upper, errors, confidence, repetitions, domain, provenance, 0.0, certified,
        (doubt,) if at_end else (),
    )  # fmt: skip
