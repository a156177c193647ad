"""Rows of the tables of docs/explanation/when.md."""

from __future__ import annotations

from benchmarks.beyond.asking import Accepted
from benchmarks.beyond.population import Population

__all__ = ["AT", "population_row", "row"]

AT = (10, 40, 50, 100, 150, 200, 300)


def row(kind: str, at: str, found: Accepted) -> str:
    """Basic composition, and the 10th, 50th and 90th percentile of either filter."""
    ends = " | ".join(
        " / ".join(_count(end, found.case.most) for end in found.percentiles(guard))
        for guard in ("simplified", "bayesian")
    )
    return f"| {kind} | {at} | {found.basic} | {ends} |"


def _count(number: int, most: int) -> str:
    # Asking ended there, not the budget.
    return f"{number:,}" + ("+" if number >= most else "")


def population_row(people: Population, queries: int) -> str:
    """How many have answered so many queries: all, and by where their values are."""
    inside, corner = ~people.at_corner, people.at_corner
    counts = [int((people.answered[group] >= queries).sum()) for group in (inside, corner)]
    basic = len(people.answered) if queries <= 10 else 0
    return f"| {queries} | {basic:,} | {sum(counts):,} | {counts[0]} | {counts[1]} |"
