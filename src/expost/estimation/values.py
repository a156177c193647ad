"""The values that an estimate is about, as columns of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expost.domains import FiniteSet

__all__ = ["value_cells", "value_columns", "value_heads"]


def value_heads(domain: FiniteSet, others: Iterable[str]) -> list[str]:
    """What the columns are called: as the coordinates or attributes, or ``value``.

    One that is called as another column of the table gets ``value_`` in front.

    >>> import expost as xp
    >>> points = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "lower"])
    >>> value_heads(points, others=["lower", "upper"])
    ['age', 'value_lower']
    """
    taken = set(others)
    heads: list[str] = []
    for name in domain.names or ("value",):
        while name in taken:
            name = f"value_{name}"
        taken.add(name)
        heads.append(name)
    return heads


def value_cells(domain: FiniteSet, place: int) -> tuple[Any, ...]:
    """One value, a cell for each column."""
    value: Any = domain.values[place]
    return (value,) if domain.names is None else tuple(value)


def value_columns(domain: FiniteSet, others: Iterable[str]) -> dict[str, list[Any]]:
    """All values, beside other columns."""
    rows = (value_cells(domain, place) for place in range(len(domain)))
    return dict(zip(value_heads(domain, others), map(list, zip(*rows, strict=True)), strict=True))
