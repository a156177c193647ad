"""The values a subject may have: a finite set, or a box of numbers and categories."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from expost.errors import InvalidInput, at
from expost.reading import array, double, each, items, members, number, scalar, text

__all__ = [
    "Box",
    "Categories",
    "Domain",
    "FiniteSet",
    "Integers",
    "Point",
    "Real",
    "Scalar",
    "Side",
    "Value",
    "by_name",
    "categories",
    "domain_from_json",
    "integers",
    "some",
]

# What a search over a box takes grows with the square of this.
_MOST_COLUMNS = 300
_LISTED = 8

Scalar = int | float | str
Point = tuple[int | float, ...]
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, init=False)
class FiniteSet:
    """Finitely many values: labels, numbers, or numeric vectors with named coordinates.

    Vectors are rows with ``names``, dictionaries, or a pandas or polars frame.

    >>> FiniteSet(["never", "sometimes", "often"])
    FiniteSet(3 values)
    >>> FiniteSet([{"age": 34, "sex": 0}, {"age": 52, "sex": 1}]).names
    ('age', 'sex')
    """

    values: tuple[Value, ...]
    names: tuple[str, ...] | None

    def __init__(self, values: Any, *, names: Sequence[str] | None = None) -> None:
        if hasattr(values, "columns") and hasattr(values, "to_numpy"):
            names = list(values.columns) if names is None else names
            values = values.to_numpy().tolist()
        rows = items(values)
        if not rows:
            raise InvalidInput("a domain needs at least one value")
        if names is None and isinstance(rows[0], Mapping):
            names = list(rows[0])
        checked = None if names is None else _names(names)
        result: Sequence[Value]
        if checked is None:
            place, result = "values", each(rows, _scalar, "values")
        else:
            place, result = "rows", each(rows, lambda row: _point(row, checked), "rows")
        object.__setattr__(self, "values", tuple(result))
        object.__setattr__(self, "names", checked)
        if len(self._index) < len(result):
            repeated = next(i for i, value in enumerate(result) if self._index[value] != i)
            raise InvalidInput("repeats an earlier value", f"{place}[{repeated}]")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        coordinates = "" if self.names is None else f" of {some(self.names)}"
        return f"FiniteSet({len(self)} value{'s' if len(self) > 1 else ''}{coordinates})"

    @cached_property
    def _index(self) -> dict[Value, int]:
        index: dict[Value, int] = {}
        for position, value in enumerate(self.values):
            index.setdefault(value, position)
        return index

    def locate(self, value: Any) -> int | None:
        """The position of a value, or None if it is outside. It never raises, so never leaks."""
        try:
            canonical = _scalar(value) if self.names is None else _point(value, self.names)
        except Exception:  # whatever is wrong with a value, an error could show it
            return None
        return self._index.get(canonical)

    def tree(self) -> dict[str, Any]:
        """The JSON shape, with numbers as doubles."""
        if self.names is None:
            return {"values": [v if isinstance(v, str) else _float(v) for v in self.values]}
        rows = [[_float(x) for x in row] for row in self.values if isinstance(row, tuple)]
        return {"points": {"names": list(self.names), "rows": rows}}


def _float(value: Any) -> float:
    return float(value)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, (tuple, list, np.ndarray)):
        raise InvalidInput("is a vector, and vectors need named coordinates")
    return scalar(value)


def _names(names: Any) -> tuple[str, ...]:
    result = tuple(each(names, text, "names"))
    if not result or "" in result:
        raise InvalidInput("must be non-empty", "names")
    if len(set(result)) < len(result):
        raise InvalidInput("a coordinate is named twice", "names")
    return result


def _point(row: Any, names: tuple[str, ...]) -> Point:
    return tuple(number(x) for x in _coordinates(row, names))


def _coordinates(row: Any, names: tuple[str, ...]) -> list[Any]:
    if isinstance(row, Mapping):
        if set(row) != set(names):
            raise InvalidInput(f"must have the coordinates {some(names)}")
        row = [row[name] for name in names]
    coordinates = items(row)
    if len(coordinates) != len(names):
        raise InvalidInput(f"must have {len(names)} coordinates")
    return coordinates


@dataclass(frozen=True, slots=True)
class Real:
    """A coordinate between two bounds."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, double(getattr(self, name)))
        if self.lower > self.upper:
            raise InvalidInput("the lower bound is above the upper one")

    def locate(self, value: Any) -> Point | None:
        x = number(value)
        return (x,) if self.lower <= x <= self.upper else None


@dataclass(frozen=True, slots=True)
class Integers:
    """An integer coordinate between two bounds, both included."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bound = number(getattr(self, name))
            if not isinstance(bound, int):
                # Not rounded to the next integer: a domain never changes by accident.
                raise InvalidInput("the bounds of integers must be integers")
            object.__setattr__(self, name, bound)
        if self.lower > self.upper:
            raise InvalidInput("there is no integer between the bounds")

    def locate(self, value: Any) -> Point | None:
        x = number(value)
        return (x,) if self.lower <= x <= self.upper and x == math.floor(x) else None


@dataclass(frozen=True, slots=True)
class Categories:
    """A coordinate that is one of several labels."""

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        labels = tuple(each(self.labels, text))
        object.__setattr__(self, "labels", labels)
        if not labels or "" in labels:
            raise InvalidInput("must have labels, and none that is empty")
        if len(set(labels)) < len(labels):
            raise InvalidInput("a category is named twice")

    def locate(self, value: Any) -> Point | None:
        """A one for the label, and zeros for all others."""
        place = self.labels.index(text(value))  # an error if there is none
        return tuple(int(k == place) for k in range(len(self.labels)))


def categories(*labels: str) -> Categories:
    """A coordinate of a :class:`Box` that is one of several labels.

    ``region=categories("north", "south")``
    """
    return Categories(labels)


def integers(lower: int, upper: int) -> Integers:
    """An integer coordinate of a :class:`Box`: ``sex=integers(0, 1)``."""
    return Integers(lower, upper)


Side = Real | Integers | Categories


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box:
    """Vectors with real and integer coordinates between bounds and with categories.

    Coordinates are named or plain. The order of named ones does not matter.

    >>> Box(age=(10, 100), sex=integers(0, 1), region=categories("north", "south"))
    Box(age=[10, 100], sex=integers[0, 1], region=categories[north, south])
    >>> Box([(-1, 1), (-1, 1)])
    Box([-1, 1], [-1, 1])
    """

    sides: tuple[Side, ...]
    names: tuple[str, ...] | None

    def __init__(self, sides: Any = None, /, **named: Any) -> None:
        if (sides is None) == (not named):
            raise InvalidInput("a box needs sides, either all named or all plain")
        names = _names(list(named)) if named else None
        entries = list(named.values()) if sides is None else items(sides)
        if not entries:
            raise InvalidInput("a box needs at least one coordinate")
        checked: list[Side] = []
        for index, side in enumerate(entries):
            with at(names[index] if names else f"[{index}]"):
                checked.append(_side(side))
        object.__setattr__(self, "sides", tuple(checked))
        object.__setattr__(self, "names", names)
        if (count := self.places[-1].stop) > _MOST_COLUMNS:
            raise InvalidInput(
                f"a box of {count:,} coordinates, counting each category, is too large: at most "
                f"{_MOST_COLUMNS} are searched; a finite set has no such limit"
            )

    def __repr__(self) -> str:
        shown = [_shown(side) for side in self.sides]
        if self.names is not None:
            shown = [f"{name}={side}" for name, side in zip(self.names, shown, strict=True)]
        return f"Box({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash(frozenset(self.sides))

    @cached_property
    def columns(self) -> tuple[Real | Integers, ...]:
        """The coordinates as numbers: categories have a column each, of which exactly one is 1."""
        result: list[Real | Integers] = []
        for side in self.sides:
            if isinstance(side, Categories):
                alone = len(side.labels) == 1
                result += [Integers(int(alone), 1)] * len(side.labels)
            else:
                result.append(side)
        return tuple(result)

    @cached_property
    def places(self) -> tuple[range, ...]:
        """The columns of each coordinate."""
        result, start = [], 0
        for side in self.sides:
            size = len(side.labels) if isinstance(side, Categories) else 1
            result.append(range(start, start + size))
            start += size
        return tuple(result)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """The columns of each coordinate with categories."""
        pairs = zip(self.sides, self.places, strict=True)
        return tuple(place for side, place in pairs if isinstance(side, Categories))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The columns by name: boxes are equal whatever the order of their coordinates."""
        names = range(len(self.sides)) if self.names is None else self.names
        by_name = sorted(range(len(self.sides)), key=names.__getitem__)
        return tuple(column for side in by_name for column in self.places[side])

    def locate(self, value: Any) -> Point | None:
        """The value as a tuple of columns, or None if it is outside. It never raises."""
        names = self.names or tuple(str(i) for i in range(len(self.sides)))
        try:
            coordinates = _coordinates(value, names)
            parts = [side.locate(x) for side, x in zip(self.sides, coordinates, strict=True)]
        except Exception:  # as above: no error, no leak
            return None
        inside = [part for part in parts if part is not None]
        return tuple(chain.from_iterable(inside)) if len(inside) == len(parts) else None

    def value(self, point: Sequence[float]) -> tuple[Scalar, ...]:
        """The coordinates of a point that is given by its columns."""
        return tuple(
            side.labels[[point[j] for j in place].index(1)]
            if isinstance(side, Categories)
            else point[place[0]]
            for side, place in zip(self.sides, self.places, strict=True)
        )

    def tree(self) -> dict[str, Any]:
        """The JSON shape, with bounds as doubles."""
        shapes: list[Any] = []
        for side in self.sides:
            if isinstance(side, Categories):
                shapes.append({"categories": list(side.labels)})
                continue
            bounds = [float(side.lower), float(side.upper)]
            shapes.append({"integers": bounds} if isinstance(side, Integers) else bounds)
        return {"box": shapes if self.names is None else dict(zip(self.names, shapes, strict=True))}


def some(names: Sequence[str]) -> str:
    """Names on one line; of many the first ones."""
    shown = ", ".join(names[:_LISTED])
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED:,} more"


def by_name(names: Sequence[str], coordinates: Sequence[Scalar]) -> str:
    """Coordinates on one line, each with its name."""
    return ", ".join(
        f"{name}={x if isinstance(x, str) else format(x, 'g')}"
        for name, x in zip(names, coordinates, strict=True)
    )


def _shown(side: Side) -> str:
    if isinstance(side, Categories):
        return f"categories[{', '.join(side.labels)}]"
    return f"{'integers' if isinstance(side, Integers) else ''}[{side.lower:g}, {side.upper:g}]"


def _side(side: Any) -> Side:
    if isinstance(side, (Real, Integers, Categories)):
        return side
    if not isinstance(side, (tuple, list)) or len(side) != 2:
        raise InvalidInput("must be a pair of bounds, integers(lower, upper) or categories(...)")
    return Real(side[0], side[1])


Domain = FiniteSet | Box


def domain_from_json(value: Any) -> Domain:
    """The domain of a transcript file."""
    fields = members(value, optional=("values", "points", "box"))
    if len(fields) != 1:
        raise InvalidInput("must have exactly one of values, points, box")
    if "values" in fields:
        with at("values"):
            values = array(fields["values"])
        return FiniteSet(values)
    if "points" in fields:
        with at("points"):
            points = members(fields["points"], required=("names", "rows"))
            with at("rows"):
                rows = each(array(points["rows"]), array)
            with at("names"):
                names = [text(name) for name in array(points["names"])]
            return FiniteSet(rows, names=names)
    with at("box"):
        box = fields["box"]
        if isinstance(box, list):
            return Box([_side_from_json(side, f"[{i}]") for i, side in enumerate(box)])
        named = members(box, optional=None)
        return Box(**{name: _side_from_json(side, name) for name, side in named.items()})


def _side_from_json(value: Any, place: str) -> Side:
    with at(place):
        if not isinstance(value, dict):
            return Real(*_pair(value))
        fields = members(value, optional=("integers", "categories"))
        if len(fields) != 1:
            raise InvalidInput("must have exactly one of integers, categories")
        if "categories" in fields:
            with at("categories"):
                return Categories(tuple(array(fields["categories"])))
        return Integers(*_pair(fields["integers"]))


def _pair(value: Any) -> list[Any]:
    bounds = array(value)
    if len(bounds) != 2:
        raise InvalidInput("must be a pair of bounds")
    return bounds
