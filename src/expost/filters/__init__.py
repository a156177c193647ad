"""Filters: they accept queries until a budget is spent, each by its own rule.

========================================  ==========================================================
filter                                    accepts a query if
========================================  ==========================================================
:class:`BasicFilter`                      the sum of the epsilons is within the budget
:class:`SimplifiedFilter`                 the realized loss plus the query's epsilon is
:class:`BayesianFilter`                   the realized loss after any of its responses is
:class:`CompositionFilter`                a composition rule allows it, at a delta
:class:`ApproximateFilter`                a composition rule or the Bayesian filter does
:class:`AllOf`                            all of several filters do
========================================  ==========================================================

A filter is a frozen description, as a query is. It decides on an :class:`Account` of the responses
so far, such as an :class:`~expost.loss.Odometer`. A filter of your own extends :class:`Filter` and
implements :meth:`Filter.worst_case` (docs/how-to/families.md).
"""

from __future__ import annotations

from typing import Any

from expost.errors import at, read_at
from expost.files.reading import array, members, split_kind
from expost.filters._acceptance_limits import Repeats
from expost.filters._account import OVER_ANY_BUDGET, Account, WorstCase
from expost.filters._all_of import AllOf
from expost.filters._approximate import ApproximateFilter
from expost.filters._basic import BasicFilter
from expost.filters._bayesian import BayesianFilter
from expost.filters._composition import CompositionFilter
from expost.filters._decision import Decision
from expost.filters._filter import Filter
from expost.filters._levels import EVERYTHING, Level, attributes, groups, steps
from expost.filters._pure import PureFilter
from expost.filters._simplified import SimplifiedFilter
from expost.filters.rules import Declared, Mixture, Renyi, Rogers, Rule, Sums, Whitehouse

__all__ = [
    "EVERYTHING",
    "FILTERS",
    "OVER_ANY_BUDGET",
    "Account",
    "AllOf",
    "ApproximateFilter",
    "BasicFilter",
    "BayesianFilter",
    "CompositionFilter",
    "Decision",
    "Declared",
    "Filter",
    "Level",
    "Mixture",
    "PureFilter",
    "Renyi",
    "Repeats",
    "Rogers",
    "Rule",
    "SimplifiedFilter",
    "Sums",
    "Whitehouse",
    "WorstCase",
    "attributes",
    "filter_from_json",
    "groups",
    "steps",
]

FILTERS: dict[str, type[Filter]] = {
    filter_class.kind: filter_class
    for filter_class in (
        BasicFilter,
        SimplifiedFilter,
        BayesianFilter,
        CompositionFilter,
        ApproximateFilter,
        AllOf,
    )
}


def _all_of_from_json(fields: dict[str, Any]) -> AllOf:
    members({"kind": AllOf.kind, **fields}, required=("kind", "filters"))
    filters = []
    with at("filters"):
        for index, entry in enumerate(array(fields["filters"])):
            filters.append(read_at(f"[{index}]", filter_from_json, entry))
    return AllOf(*filters)


def filter_from_json(value: Any) -> Filter:
    """Read the filter of a transcript file, by its ``kind``; an error names the field.

    >>> filter_from_json({"kind": "bayesian", "epsilon": "1"})
    BayesianFilter(epsilon=1)
    """
    kind, fields = split_kind(value, FILTERS, "filter")
    return _all_of_from_json(fields) if kind is AllOf else kind.from_fields(fields)
