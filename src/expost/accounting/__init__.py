"""Filters and the odometer: pure functions of a transcript."""

from expost.accounting.approximate import ApproximateFilter
from expost.accounting.basic import BasicFilter, basic_prefix
from expost.accounting.bayesian import BayesianFilter
from expost.accounting.composition import CompositionFilter
from expost.accounting.decision import Decision
from expost.accounting.filter import Filter
from expost.accounting.kinds import filter_of
from expost.accounting.odometer import Odometer
from expost.accounting.replay import Replay, replay, replayed
from expost.accounting.simplified import SimplifiedFilter

__all__ = [
    "ApproximateFilter",
    "BasicFilter",
    "BayesianFilter",
    "CompositionFilter",
    "Decision",
    "Filter",
    "Odometer",
    "Replay",
    "SimplifiedFilter",
    "basic_prefix",
    "filter_of",
    "replay",
    "replayed",
]
