"""Boxes: vectors of real, integer and categorical coordinates between bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from expost.domains.coordinates import Categories, Integers, Real, Side
from expost.domains.finite import Point, Scalar, coordinates_of, names_of
from expost.errors import InvalidInput, at
from expost.files.reading import items

__all__ = ["Box", "by_name"]

# What a search over a box takes grows with the square of this.
_MOST_COLUMNS = 300


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Box:
    """Vectors with real and integer coordinates between bounds and with categories.

    Coordinates are named or plain. The order of named ones does not matter.

    >>> from expost import categories, integers
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
        names = names_of(list(named)) if named else None
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
    def column_names(self) -> tuple[str, ...]:
        """The coordinates by name; of one with categories each of its columns."""
        names = self.names or tuple(str(i) for i in range(len(self.sides)))
        return tuple(
            column
            for name, side in zip(names, self.sides, strict=True)
            for column in (
                [f"{name}={label}" for label in side.labels]
                if isinstance(side, Categories)
                else [name]
            )
        )

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
            coordinates = coordinates_of(value, names)
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
