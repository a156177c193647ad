"""Boxes: vectors of real, integer and categorical coordinates between bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expost._format import format_number
from expost.cards import card
from expost.domains._attributes import Part
from expost.domains._coordinates import Categories, Integers, Real, Side
from expost.domains._finite_set import (
    FiniteSet,
    Point,
    Scalar,
    Value,
    coordinates_of,
    read_names,
)
from expost.errors import InvalidInput, read_at, unknown_name
from expost.files.reading import as_list
from expost.numbers import read_only, up

if TYPE_CHECKING:
    from expost.domains._attributes import Attribute

__all__ = ["Box", "format_coordinates"]

# The work of a search over a box grows with the square of this number.
_MOST_COLUMNS = 300


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box:
    """A domain of vectors whose coordinates are real, integer or categorical.

    Use a box for queries about a score of the coordinates, such as :func:`linear` or
    :func:`logistic`. Its values are not listed, so their number does not matter. A box has at
    most 300 coordinates, counting each category.

    Args:
        sides: A list with the side of each coordinate: a pair of bounds for a real number,
            :func:`integers` or :func:`categories`. Bounds are included.
        named: Instead of ``sides``, the side of each coordinate by its name. Order does not matter.

    Raises:
        InvalidInput: A side is no such thing, or there are too many coordinates.

    >>> import expost as xp
    >>> xp.Box(age=(10, 100), sex=xp.integers(0, 1), region=xp.categories("north", "south"))
    Box(age=[10, 100], sex=integers[0, 1], region=categories[north, south])
    >>> xp.Box([(-1, 1), (-1, 1)])
    Box([-1, 1], [-1, 1])
    """

    #: A value of it stays the same.
    changes: ClassVar[bool] = False
    #: There are too many to list.
    values: ClassVar[tuple[Value, ...]] = ()
    #: Only records have attributes.
    kinds: ClassVar[tuple[Attribute, ...]] = ()
    sides: tuple[Side, ...]
    names: tuple[str, ...] | None

    def __init__(self, sides: Any = None, /, **named: Any) -> None:
        if (sides is None) == (not named):
            raise InvalidInput("a box needs sides, either all named or all plain")
        if isinstance(sides, Mapping):
            raise InvalidInput("named sides are arguments: Box(age=(10, 100)), or Box(**sides)")
        names = read_names(list(named)) if named else None
        entries = list(named.values()) if sides is None else as_list(sides)
        if not entries:
            raise InvalidInput("a box needs at least one coordinate")
        locations = names or [f"[{index}]" for index in range(len(entries))]
        pairs = zip(locations, entries, strict=True)
        sides = tuple(read_at(location, _side, side) for location, side in pairs)
        vars(self).update(sides=sides, names=names)
        if (count := self.column_slices[-1].stop) > _MOST_COLUMNS:
            reason = f"a box of {count:,} coordinates, counting each category, is too large"
            limit = f"at most {_MOST_COLUMNS} are searched; a finite set has no such limit"
            raise InvalidInput(f"{reason}: {limit}")

    def __repr__(self) -> str:
        shown = [_shown(side) for side in self.sides]
        if self.names is not None:
            shown = [f"{name}={side}" for name, side in zip(self.names, shown, strict=True)]
        return f"Box({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return card(
            "Box",
            {"coordinates": f"{len(self.sides):,}"},
            columns=("coordinate", "from, to"),
            items=list(zip(self.names or range(len(self.sides)), self.sides, strict=True)),
            row=lambda _index, named: (named[0], _shown(named[1])),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash(frozenset(self.sides))

    @cached_property
    def columns(self) -> tuple[Real | Integers, ...]:
        """The coordinates as numbers: each category has a column, and exactly one of them is 1."""
        result: list[Real | Integers] = []
        for side in self.sides:
            if isinstance(side, Categories):
                result += [Integers(int(len(side.labels) == 1), 1)] * len(side.labels)
            else:
                result.append(side)
        return tuple(result)

    @cached_property
    def reach(self) -> tuple[float, ...]:
        """The largest absolute value of each column."""
        return tuple(max(abs(column.lower), abs(column.upper)) for column in self.columns)

    @cached_property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """The lower and upper bounds of the columns, and flags of integer ones, as arrays."""
        result = (
            np.array([column.lower for column in self.columns], dtype=np.float64),
            np.array([column.upper for column in self.columns], dtype=np.float64),
            np.array([isinstance(column, Integers) for column in self.columns], dtype=np.int64),
        )
        read_only(*result)
        return result

    @cached_property
    def grain(self) -> float:
        """By how much a form changes at most if every coefficient is off by the smallest double."""
        # 2^-1074 (1 + Σ reach); the sum itself may be too large for a double.
        return up(up(math.fsum([x / 1024 for x in (1, *self.reach)])) * 2.0**-1064)

    @cached_property
    def column_slices(self) -> tuple[range, ...]:
        """The columns of each coordinate."""
        result, start = [], 0
        for side in self.sides:
            size = len(side.labels) if isinstance(side, Categories) else 1
            result.append(range(start, start + size))
            start += size
        return tuple(result)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The coordinates by name; of one with categories each of its columns."""
        names = self.names or tuple(str(i) for i in range(len(self.sides)))
        result: list[str] = []
        for name, side in zip(names, self.sides, strict=True):
            if isinstance(side, Categories):
                result += [f"{name}={label}" for label in side.labels]
            else:
                result.append(name)
        return tuple(result)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """The columns of each categorical coordinate."""
        pairs = zip(self.sides, self.column_slices, strict=True)
        return tuple(columns for side, columns in pairs if isinstance(side, Categories))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The columns sorted by name: two boxes are equal whatever order their names come in."""
        names = range(len(self.sides)) if self.names is None else self.names
        by_name = sorted(range(len(self.sides)), key=names.__getitem__)
        return tuple(column for side in by_name for column in self.column_slices[side])

    @cached_property
    def _parts(self) -> dict[str, Part]:
        return {}

    def part(self, about: tuple[str, ...]) -> Part:
        """Return the values that a query about a coordinate with categories sees."""
        if self.names is None or len(about) > 1:
            raise InvalidInput(
                "on a box, ask about one coordinate by its name, or use Attributes to ask about "
                "several together"
            )
        (name,) = about
        if name not in self.names:
            raise InvalidInput(unknown_name("coordinate", name, self.names))
        side = self.sides[self.names.index(name)]
        if not isinstance(side, Categories):
            raise InvalidInput(
                f"{name} has no categories; ask about numbers with linear or logistic"
            )
        if name not in self._parts:
            self._parts[name] = Part(about, [FiniteSet(side.labels)])
        return self._parts[name]

    def called(self, alone: str) -> tuple[str, ...]:
        """Return the names of the columns in tables: ``x0``, ``x1``, … without names."""
        return self.names or tuple(f"x{index}" for index in range(len(self.sides)))

    def locate(self, value: Any) -> Point | None:
        """Return the value as a tuple of columns, or None if it is outside.

        It never raises: an error could show the value.

        >>> Box(age=(10, 100), region=Categories(("north", "south"))).locate((34, "south"))
        (34, 0, 1)
        """
        names = self.names or tuple(str(i) for i in range(len(self.sides)))
        try:
            coordinates = coordinates_of(value, names)
            parts = [side.locate(x) for side, x in zip(self.sides, coordinates, strict=True)]
        except Exception:  # an error could show the value
            return None
        inside = [part for part in parts if part is not None]
        return tuple(chain.from_iterable(inside)) if len(inside) == len(parts) else None

    def value(self, point: Sequence[float]) -> tuple[Scalar, ...]:
        """Return the coordinates of a point, from its columns; undoes :meth:`locate`."""
        return tuple(
            side.labels[[point[j] for j in columns].index(1)]
            if isinstance(side, Categories)
            else point[columns[0]]
            for side, columns in zip(self.sides, self.column_slices, strict=True)
        )

    def tree(self) -> dict[str, Any]:
        """Return the box as it is in a transcript file, with its bounds as doubles."""
        shapes: list[Any] = []
        for side in self.sides:
            if isinstance(side, Categories):
                shapes.append({"categories": list(side.labels)})
                continue
            bounds = [float(side.lower), float(side.upper)]
            shapes.append({"integers": bounds} if isinstance(side, Integers) else bounds)
        return {"box": shapes if self.names is None else dict(zip(self.names, shapes, strict=True))}


def format_coordinates(names: Sequence[str], coordinates: Sequence[Scalar]) -> str:
    """Format coordinates on one line, each with its name.

    >>> format_coordinates(["age", "region"], [34, "north"])
    'age=34, region=north'
    """
    return ", ".join(
        f"{name}={x if isinstance(x, str) else format(x, 'g')}"
        for name, x in zip(names, coordinates, strict=True)
    )


def _shown(side: Side) -> str:
    if isinstance(side, Categories):
        return f"categories[{', '.join(side.labels)}]"
    kind = "integers" if isinstance(side, Integers) else ""
    return f"{kind}[{format_number(side.lower)}, {format_number(side.upper)}]"


def _side(side: Any) -> Side:
    if isinstance(side, (Real, Integers, Categories)):
        return side
    if not isinstance(side, (tuple, list)) or len(side) != 2:
        raise InvalidInput("must be a pair of bounds, integers(lower, upper) or categories(...)")
    return Real(side[0], side[1])
