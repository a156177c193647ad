"""Estimates for a group from the responses of many subjects: means, frequencies, distributions."""

from expost.estimation.distribution import Distribution, Intervals, estimate_distribution
from expost.estimation.frequencies import Frequencies, estimate_frequencies
from expost.estimation.mean import Mean, estimate_mean

__all__ = [
    "Distribution",
    "Frequencies",
    "Intervals",
    "Mean",
    "estimate_distribution",
    "estimate_frequencies",
    "estimate_mean",
]
