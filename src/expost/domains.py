"""The values a subject may have: a finite set, or a box of real and integer coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from expost.errors import InvalidInput, at
from expost.reading import array, double, each, items, members, number, scalar, text

__all__ = [
    "Box",
    "Domain",
    "FiniteSet",
    "Integers",
    "Point",
    "Real",
    "Scalar",
    "Value",
    "domain_from_json",
    "integers",
]

Scalar = int | float | str
Point = tuple[int | float, ...]
Value = Scalar | Point


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
        coordinates = "" if self.names is None else f" of {', '.join(self.names)}"
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
    if isinstance(row, Mapping):
        if set(row) != set(names):
            raise InvalidInput(f"must have the coordinates {', '.join(names)}")
        row = [row[name] for name in names]
    coordinates = items(row)
    if len(coordinates) != len(names):
        raise InvalidInput(f"must have {len(names)} coordinates")
    return tuple(number(x) for x in coordinates)


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

    def holds(self, x: float) -> bool:
        return self.lower <= x <= self.upper


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

    def holds(self, x: float) -> bool:
        return self.lower <= x <= self.upper and x == math.floor(x)


def integers(lower: int, upper: int) -> Integers:
    """An integer coordinate of a :class:`Box`: ``sex=integers(0, 1)``."""
    return Integers(lower, upper)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box:
    """Vectors with real and integer coordinates between bounds, named or plain.

    The order of named coordinates does not matter.

    >>> Box(age=(10, 100), sex=integers(0, 1))
    Box(age=[10, 100], sex=integers[0, 1])
    >>> Box([(-1, 1), (-1, 1)])
    Box([-1, 1], [-1, 1])
    """

    sides: tuple[Real | Integers, ...]
    names: tuple[str, ...] | None

    def __init__(self, sides: Any = None, /, **named: Any) -> None:
        if (sides is None) == (not named):
            raise InvalidInput("a box needs sides, either all named or all plain")
        names = _names(list(named)) if named else None
        entries = list(named.values()) if sides is None else items(sides)
        if not entries:
            raise InvalidInput("a box needs at least one coordinate")
        checked: list[Real | Integers] = []
        for index, side in enumerate(entries):
            with at(names[index] if names else f"[{index}]"):
                checked.append(_side(side))
        object.__setattr__(self, "sides", tuple(checked))
        object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        shown = [
            f"{'integers' if isinstance(side, Integers) else ''}[{side.lower:g}, {side.upper:g}]"
            for side in self.sides
        ]
        if self.names is not None:
            shown = [f"{name}={side}" for name, side in zip(self.names, shown, strict=True)]
        return f"Box({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash(frozenset(self.sides))

    def locate(self, value: Any) -> Point | None:
        """The value as a tuple of coordinates, or None if it is outside. It never raises."""
        names = self.names or tuple(str(i) for i in range(len(self.sides)))
        try:
            point = _point(value, names)
        except Exception:  # as above: no error, no leak
            return None
        inside = all(side.holds(x) for side, x in zip(self.sides, point, strict=True))
        return point if inside else None

    def tree(self) -> dict[str, Any]:
        """The JSON shape, with bounds as doubles."""
        shapes: list[Any] = []
        for side in self.sides:
            bounds = [float(side.lower), float(side.upper)]
            shapes.append({"integers": bounds} if isinstance(side, Integers) else bounds)
        return {"box": shapes if self.names is None else dict(zip(self.names, shapes, strict=True))}


def _side(side: Any) -> Real | Integers:
    if isinstance(side, (Real, Integers)):
        return side
    if not isinstance(side, (tuple, list)) or len(side) != 2:
        raise InvalidInput("must be a pair of bounds, or integers(lower, upper)")
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


def _side_from_json(value: Any, place: str) -> Real | Integers:
    with at(place):
        if isinstance(value, dict):
            return Integers(*_pair(members(value, required=("integers",))["integers"]))
        return Real(*_pair(value))


def _pair(value: Any) -> list[Any]:
    bounds = array(value)
    if len(bounds) != 2:
        raise InvalidInput("must be a pair of bounds")
    return bounds
