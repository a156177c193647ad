"""Filters: a budget and its rule, as a transcript file names them.

A filter asks an :class:`Account` of what was answered, and knows nothing else of it.
"""

from __future__ import annotations

from typing import Any

from expost.files.reading import of_kind
from expost.filters.account import OVER_ANY_BUDGET, Account, WorstCase
from expost.filters.approximate import ApproximateFilter
from expost.filters.basic import BasicFilter
from expost.filters.bayesian import BayesianFilter
from expost.filters.by_rule import CompositionFilter
from expost.filters.decision import Decision
from expost.filters.filter import Filter
from expost.filters.repeats import Repeats
from expost.filters.rules import Mixture, Renyi, Rogers, Rule, Sums, Whitehouse
from expost.filters.simplified import SimplifiedFilter

__all__ = [
    "FILTERS",
    "OVER_ANY_BUDGET",
    "Account",
    "ApproximateFilter",
    "BasicFilter",
    "BayesianFilter",
    "CompositionFilter",
    "Decision",
    "Filter",
    "Mixture",
    "Renyi",
    "Repeats",
    "Rogers",
    "Rule",
    "SimplifiedFilter",
    "Sums",
    "Whitehouse",
    "WorstCase",
    "filter_from_json",
]

FILTERS: dict[str, type[Filter]] = {
    each.kind: each
    for each in (
        BasicFilter,
        SimplifiedFilter,
        BayesianFilter,
        CompositionFilter,
        ApproximateFilter,
    )
}


def filter_from_json(value: Any) -> Filter:
    """The filter of a file, by its kind."""
    kind, fields = of_kind(value, FILTERS, "filter")
    return kind.from_json(fields)
