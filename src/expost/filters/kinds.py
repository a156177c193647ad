"""The filters by the names that files have for them."""

from __future__ import annotations

from expost.filters.approximate import ApproximateFilter
from expost.filters.basic import BasicFilter
from expost.filters.bayesian import BayesianFilter
from expost.filters.by_rule import CompositionFilter
from expost.filters.filter import Filter
from expost.filters.simplified import SimplifiedFilter
from expost.transcript import FilterSpec

__all__ = ["filter_of"]

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
