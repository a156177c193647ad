"""Frames of pandas and polars as users hand them over; neither is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expost.errors import expect

__all__ = ["as_array", "as_lists", "column_names", "is_frame"]


def is_frame(table: Any) -> bool:
    """Whether something is a frame of pandas or polars."""
    # In this order: the columns of a lazy frame, which is none yet, would have to be worked out.
    return hasattr(table, "to_numpy") and hasattr(table, "columns")


def column_names(table: Any) -> list[Any]:
    """The names of the columns of a frame, or of a mapping of columns."""
    if is_frame(table):
        return list(table.columns)
    expect(table, Mapping, "a frame or a mapping of columns")
    return list(table)


def as_array(values: Any) -> Any:
    """A frame, or a column of one, as an array of numpy; anything else as it is."""
    return values.to_numpy() if hasattr(values, "to_numpy") else values


def as_lists(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Columns in plain numbers and texts, which JSON can hold; the opposite of :func:`as_array`."""
    return {
        name: column if isinstance(column, list) else column.tolist()
        for name, column in columns.items()
    }
