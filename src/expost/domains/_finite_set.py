"""Finite sets of labels, numbers or vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import shorten
from expost.cards import card
from expost.errors import InvalidInput, did_you_mean
from expost.files.canonical import value_tree
from expost.files.reading import as_list, number, read_list, scalar, text
from expost.files.tables import as_array, column_names, is_frame
from expost.numbers import read_only

if TYPE_CHECKING:
    from expost.domains._attributes import Attribute
    from expost.domains._coordinates import Side

__all__ = [
    "FiniteSet",
    "Point",
    "Scalar",
    "Value",
    "coordinates_of",
    "describe_mismatch",
    "join_names",
    "read_names",
]

_LISTED = 8
Scalar = int | float | str
Point = tuple[int | float, ...]
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, init=False)
class FiniteSet:
    """A domain that lists its values: labels, numbers, or vectors with named coordinates.

    List every value that a subject may have, not only the common ones: the guarantee is about
    telling two of them apart, and a subject with another value cannot be asked.

    Args:
        values: Labels or numbers; or vectors, as dictionaries, as rows with ``names``, or as a
            pandas or polars frame. The order counts: rows of a channel and scores of a perturbation
            follow it. ``1`` and ``1.0`` are the same value, ``1`` and ``"1"`` are not.
        names: The names of the coordinates of vectors.

    Raises:
        InvalidInput: There is no value, one is listed twice, or one cannot be read.

    >>> import expost as xp
    >>> xp.FiniteSet(["never", "sometimes", "often"])
    FiniteSet(3 values: 'never', 'sometimes', 'often')
    >>> xp.FiniteSet([{"age": 34, "sex": 0}, {"age": 52, "sex": 1}]).names
    ('age', 'sex')
    """

    #: A value of it stays the same.
    changes: ClassVar[bool] = False
    #: Coordinates between bounds; here the values say it all.
    sides: ClassVar[tuple[Side, ...]] = ()
    #: Only records have attributes.
    kinds: ClassVar[tuple[Attribute, ...]] = ()
    values: Sequence[Value]
    names: tuple[str, ...] | None

    def __init__(self, values: Any, *, names: Sequence[str] | None = None) -> None:
        if is_frame(values):
            names = column_names(values) if names is None else names
            values = as_array(values).tolist()
        rows = as_list(values, 'a list of values, such as ["no", "yes"]')
        if not rows:
            raise InvalidInput("a domain needs at least one value")
        if names is None and isinstance(rows[0], Mapping):
            names = list(rows[0])
        checked = None if names is None else read_names(names)
        result: Sequence[Value]
        if checked is None:
            name, result = "values", read_list(rows, _scalar, "values")
        else:
            name, result = "rows", read_list(rows, lambda row: _point(row, checked), "rows")
        vars(self).update(values=tuple(result), names=checked)
        if len(self._index) < len(result):
            repeated = next(i for i, value in enumerate(result) if self._index[value] != i)
            reason = f"{shorten(repr(result[repeated]))} appears twice"
            raise InvalidInput(reason, f"{name}[{repeated}]")

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        coordinates = "" if self.names is None else f" of {join_names(self.names)}"
        return f"FiniteSet({len(self)} value{'s' if len(self) > 1 else ''}{coordinates})"

    def __repr__(self) -> str:
        if self.names is not None:
            return str(self)
        first_values = [shorten(repr(value)) for value in self.values[:_LISTED]]
        hidden = len(self) - len(first_values)
        remainder = f" and {hidden:,} more" if hidden else ""
        return f"{str(self)[:-1]}: {', '.join(first_values)}{remainder})"

    def _repr_html_(self) -> str:
        return card(
            type(self).__name__,
            {"values": f"{len(self):,}"},
            columns=("", *(self.names or ("value",))),
            items=self.values,
            row=lambda index, value: (index, *(value if isinstance(value, tuple) else (value,))),
        )

    @cached_property
    def _index(self) -> dict[Value, int]:
        index: dict[Value, int] = {}
        for position, value in enumerate(self.values):
            index.setdefault(value, position)
        return index

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """The values as doubles, a row for each coordinate; labels have none."""
        for index, value in enumerate(self.values):
            if isinstance(value, str):
                raise InvalidInput(f"a score needs numbers, and values[{index}] is a label")
            if isinstance(value, tuple) and any(isinstance(x, str) for x in value):
                names = join_names(self.called(""))
                raise InvalidInput(f"a score needs numbers, and there are labels among {names}")
        rows = np.array(self.values, dtype=np.float64).reshape(len(self), -1)
        return read_only(np.ascontiguousarray(rows.T))

    @cached_property
    def reach(self) -> tuple[float, ...]:
        """The largest absolute value of each coordinate."""
        return tuple(np.abs(self.columns).max(axis=1).tolist())

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The coordinates sorted by name."""
        names = self.names or ("",)
        return tuple(sorted(range(len(names)), key=names.__getitem__))

    def called(self, alone: str) -> tuple[str, ...]:
        """Return the names of the columns in tables; ``alone`` for one without a name."""
        return self.names or (alone,)

    def value(self, position: int) -> Value:
        """Return the value at a position."""
        return self.values[position]

    def locate(self, value: Any) -> int | None:
        """Return the position of a value, or None if it is outside.

        It never raises: an error could show the value.

        >>> FiniteSet(["never", "often"]).locate("often")
        1
        """
        try:
            canonical = _scalar(value) if self.names is None else _point(value, self.names)
        except Exception:  # whatever is wrong with a value, an error could show it
            return None
        return self._index.get(canonical)

    def tree(self) -> dict[str, Any]:
        """Return the set as it is in a transcript file, with its numbers as doubles."""
        if self.names is None:
            return {"values": list(map(value_tree, self.values))}
        return {"points": {"names": list(self.names), "rows": list(map(value_tree, self.values))}}


def _scalar(value: Any) -> Scalar:
    if isinstance(value, (tuple, list, np.ndarray)):
        raise InvalidInput("is a vector, and vectors need named coordinates")
    return scalar(value)


def read_names(names: Any) -> tuple[str, ...]:
    """Check the names of coordinates: strings, none of them empty, none twice."""
    result = tuple(read_list(names, text, "names"))
    if not result or "" in result:
        raise InvalidInput("must be non-empty", "names")
    if len(set(result)) < len(result):
        raise InvalidInput("a coordinate appears twice", "names")
    return result


def _point(row: Any, names: tuple[str, ...]) -> Point:
    return tuple(number(x) for x in coordinates_of(row, names))


def coordinates_of(row: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the coordinates of a row or of a dictionary, in the order of the names.

    >>> coordinates_of({"sex": 0, "age": 34}, ("age", "sex"))
    [34, 0]
    """
    if isinstance(row, Mapping):
        if set(row) != set(names):
            raise InvalidInput(f"must have the coordinates {join_names(names)}")
        row = [row[name] for name in names]
    coordinates = as_list(row)
    if len(coordinates) != len(names):
        raise InvalidInput(f"must have {len(names)} coordinates")
    return coordinates


def describe_mismatch(value: Any, names: Sequence[str]) -> str:
    """Say what is wrong with the names of a subject's coordinates, or with their number.

    Names are no secret and values are. A name that only the subject has may be a value in the wrong
    place, so it is shown only where it looks like one that is missing.

    >>> describe_mismatch({"agee": 34}, ("age", "sex"))
    "it has no age, sex; 'agee' is not known; did you mean 'age'?"
    >>> describe_mismatch((34,), ("age", "sex"))
    'it has 1 coordinate, not 2'
    """
    if isinstance(value, Mapping):
        missing = [name for name in names if name not in value]
        unknown = [name for name in value if name not in names]
        slips = [f"{name!r} is not known{did_you_mean(name, missing)}" for name in unknown]
        shown = [slip for slip in slips if slip.endswith("?")][:_LISTED]
        hidden = len(unknown) - len(shown)
        parts = [f"it has no {join_names(missing)}"] if missing else []
        parts += shown
        if hidden:
            parts.append(f"{hidden} of its names {'are' if hidden > 1 else 'is'} not known")
        return "; ".join(parts)
    if isinstance(value, (tuple, list, np.ndarray)) and len(value) != len(names):
        return f"it has {len(value)} coordinate{'' if len(value) == 1 else 's'}, not {len(names)}"
    return ""


def join_names(names: Sequence[str]) -> str:
    """Join names on one line: the first eight, and how many more there are.

    >>> join_names(["age", "sex"])
    'age, sex'
    """
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED:,} more"
