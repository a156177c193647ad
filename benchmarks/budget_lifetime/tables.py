"""Rows of the tables of docs/explanation/benchmarks.md."""

from __future__ import annotations

from benchmarks.budget_lifetime.asking import Accepted
from benchmarks.budget_lifetime.population import Population

__all__ = ["AT", "population_row", "row"]

AT = (10, 40, 50, 100, 150, 200, 300)


def row(kind: str, at: str, accepted: Accepted) -> str:
    """Basic composition, and the 10th, 50th and 90th percentile of either filter."""
    ends = " | ".join(
        " / ".join(_count(end, accepted.case.most) for end in accepted.percentiles(filter_))
        for filter_ in ("simplified", "bayesian")
    )
    return f"| {kind} | {at} | {accepted.basic} | {ends} |"


def _count(count: int, most: int) -> str:
    # Asking ended there, not the budget.
    return f"{count:,}" + ("+" if count >= most else "")


def population_row(subjects: Population, queries: int) -> str:
    """How many have answered so many queries: all, and by where their values are."""
    inside, corner = ~subjects.at_corner, subjects.at_corner
    counts = [int((subjects.answered[group] >= queries).sum()) for group in (inside, corner)]
    basic = len(subjects.answered) if queries <= 10 else 0
    return f"| {queries} | {basic:,} | {sum(counts):,} | {counts[0]} | {counts[1]} |"
