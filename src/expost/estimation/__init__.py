"""Estimates for a group from the responses of many subjects: means, frequencies, distributions.

- :func:`estimate_mean`: the mean of a score, from one query about that score;
- :func:`estimate_frequencies`: how frequent each value is, from queries that tell values apart;
- :func:`estimate_distribution`: the maximum-likelihood distribution, from any mixture of queries;
  on a box that of some points, and :func:`beyond_support` bounds what others would change;
- :func:`estimate_difference`: the difference between two groups, from their intervals.

The first two are unbiased, but only if who was asked did not depend on responses. Under a filter it
does depend on them, and only the third is valid.

>>> import expost as xp
>>> from expost.estimation import estimate_frequencies
>>> query = xp.randomized_response(epsilon=2)
>>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
>>> found = estimate_frequencies(pairs, domain=xp.FiniteSet(["no", "yes"]))
>>> found.frequency.round(3).tolist()
[0.763, 0.237]
"""

from expost.estimation._differences import estimate_difference
from expost.estimation._intervals import Intervals
from expost.estimation._support import point_scores
from expost.estimation._validity import Provenance, select_for_likelihood
from expost.estimation.distribution import (
    BeyondSupport,
    Distribution,
    beyond_support,
    estimate_distribution,
)
from expost.estimation.frequencies import Frequencies, estimate_frequencies
from expost.estimation.mean import Mean, estimate_mean

__all__ = [
    "BeyondSupport",
    "Distribution",
    "Frequencies",
    "Intervals",
    "Mean",
    "Provenance",
    "beyond_support",
    "estimate_difference",
    "estimate_distribution",
    "estimate_frequencies",
    "estimate_mean",
    "point_scores",
    "select_for_likelihood",
]
