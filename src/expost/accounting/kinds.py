"""The filters by the names that files have for them."""

from __future__ import annotations

from expost.accounting.approximate import ApproximateFilter
from expost.accounting.basic import BasicFilter
from expost.accounting.bayesian import BayesianFilter
from expost.accounting.composition import CompositionFilter
from expost.accounting.filter import Filter
from expost.accounting.simplified import SimplifiedFilter
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
