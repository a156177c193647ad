"""Results in words, tables, figures and pages."""

from __future__ import annotations

from expost.report._comparison import Comparison, Standing, compare
from expost.report._explanation import ExplainedExchange, Explanation, explain

__all__ = [
    "Comparison",
    "ExplainedExchange",
    "Explanation",
    "Standing",
    "compare",
    "explain",
]
