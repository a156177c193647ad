"""What points outside of a support would change in an estimate on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expost.answers import Answers
from expost.errors import InvalidInput, expect
from expost.estimation.distribution import Distribution, estimate_distribution
from expost.estimation.likeliest import log_up, slopes_of
from expost.estimation.observations import observations_of
from expost.estimation.support import PointAtoms, Points, read_support
from expost.knowledge import Samples

__all__ = ["Beyond", "beyond_support"]


@dataclass(frozen=True, slots=True, eq=False)
class Beyond:
    """How an estimate on some points of a box depends on which points these are."""

    gain: float
    """With the other points too, the log-likelihood is higher by at most this, in nats."""
    point: tuple[Any, ...]
    """The one of them that the likelihood grows most towards."""
    wider: Distribution
    """The estimate on all of these points."""


def beyond_support(answers: Answers, found: Distribution, other: Any) -> Beyond:
    r"""What other points would change in an estimate on a support.

    .. math:: n \log \max_x \frac1n \sum_i \frac{L_i(x)}{\sum_j L_{ij}\, p_j}

    over all points x, those of the support and the others, bounds how much higher the
    log-likelihood is on all of them. If that is a fraction of a nat, points like these change
    nothing that the answers could show. The means of both estimates say what it comes to.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> person = xp.Box(age=(0, 100))
    >>> ill = xp.logistic({"age": 0.1}, intercept=-5, epsilon=2)
    >>> pairs = [(ill, 1)] * 30 + [(ill, 0)] * 70
    >>> found = estimate_distribution(pairs, domain=person, support=[[20], [50], [80]])
    >>> beyond = beyond_support(xp.Answers.of_pairs(person, pairs), found, [[10], [95]])
    >>> beyond.gain < 1e-4
    True
    """
    expect(answers, Answers, "Answers")
    if not isinstance(found.domain, Points) or found.domain.samples.box != answers.domain:
        raise InvalidInput("must be an estimate on a support of the box of the answers", "found")
    own = found.domain.samples
    others = read_support(other, own.box)
    both = Samples(own.box, [*own.points, *others.points])
    observed = observations_of(answers, PointAtoms(both))
    counts, total = observed.counts, float(observed.counts.sum())
    weights = np.bincount(observed.alike[: len(own)], found.probabilities, observed.table.shape[1])
    slopes = slopes_of(observed.table, counts / total / (observed.table @ weights))
    best = len(own) + int(np.argmax(slopes[observed.alike[len(own) :]]))
    return Beyond(
        total * log_up(float(slopes.max()), observed.table.shape),
        both.points[best],
        estimate_distribution(answers, support=both),
    )
