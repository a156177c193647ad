"""What happened, in words, tables, figures and pages."""

from __future__ import annotations

from expost.report.comparison import Comparison, Standing, compare
from expost.report.explanation import Explanation, Told, explain

__all__ = [
    "Comparison",
    "Explanation",
    "Standing",
    "Told",
    "compare",
    "explain",
]
