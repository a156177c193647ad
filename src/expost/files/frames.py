"""Frames of pandas and polars, as users hand them over and as they get them back.

Neither is needed for anything else, and each is imported when somebody asks for one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from expost.cards import View
from expost.errors import InvalidInput, expect

__all__ = ["Table", "as_array", "as_lists", "column_names", "is_frame"]


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


class Table:
    """A result that is a table: it goes into frames, and its repr and its HTML show numbers.

    ``polars.DataFrame(result)``, ``pyarrow.table(result)`` and whatever else knows the Arrow
    PyCapsule interface take it as it is.
    """

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, Any]:
        """The columns by their names: arrays, or lists."""

    @abstractmethod
    def _view(self) -> View:
        """What is shown of it."""

    def __repr__(self) -> str:
        return str(self._view())

    def _repr_html_(self) -> str:
        return self._view().html()

    def to_polars(self) -> Any:
        """The table as a frame of polars."""
        return _needed("polars", "a frame of polars", "expost[frames]").DataFrame(self._plain())

    def to_pandas(self) -> Any:
        """The table as a frame of pandas."""
        return _needed("pandas", "a frame of pandas", "pandas").DataFrame(self._plain())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table for whatever reads Arrow; polars or pyarrow makes it."""
        try:
            table = import_module("pyarrow").table(self._plain())
        except ModuleNotFoundError:
            table = _needed("polars", "a table of Arrow", "expost[frames]").DataFrame(self._plain())
        return table.__arrow_c_stream__(requested_schema)

    def _plain(self) -> dict[str, Any]:
        return {name: _alike(column) for name, column in self.columns().items()}


def _alike(column: Any) -> Any:
    """A column whose entries have one type: numbers beside labels are texts."""
    if not isinstance(column, list):
        return column
    if any(isinstance(entry, tuple) for entry in column):
        return [list(map(float, entry)) for entry in column]
    types = set(map(type, column))
    if len(types) == 1:
        return column
    return list(map(float if types <= {int, float} else str, column))


def _needed(name: str, what: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise InvalidInput(f"{what} needs {name}: pip install {extra!r}") from None
