"""Filters and the odometer: pure functions of a transcript."""

from expost.accounting.approximate import ApproximateFilter
from expost.accounting.basic import BasicFilter, basic_prefix
from expost.accounting.bayesian import BayesianFilter
from expost.accounting.composition import CompositionFilter
from expost.accounting.decision import Decision
from expost.accounting.filter import Filter
from expost.accounting.odometer import Odometer
from expost.accounting.simplified import SimplifiedFilter
from expost.transcript import FilterSpec

__all__ = [
    "ApproximateFilter",
    "BasicFilter",
    "BayesianFilter",
    "CompositionFilter",
    "Decision",
    "Filter",
    "Odometer",
    "SimplifiedFilter",
    "basic_prefix",
    "filter_of",
]

_KINDS: dict[str, type[Filter]] = {
    kind.kind: kind
    for kind in (
        BasicFilter,
        SimplifiedFilter,
        BayesianFilter,
        CompositionFilter,
        ApproximateFilter,
    )
}


def filter_of(spec: FilterSpec) -> Filter:
    """The filter that a transcript names."""
    return _KINDS[spec.kind].of_spec(spec)
