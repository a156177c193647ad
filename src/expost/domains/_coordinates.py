"""The coordinates of a box: real numbers, integers and categories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from expost._format import format_number
from expost.domains._finite_set import Point
from expost.errors import InvalidInput
from expost.files.reading import double, number, read_list, text

__all__ = ["Categories", "Integers", "Real", "Side", "categories", "integers"]


@dataclass(frozen=True, slots=True)
class Real:
    """A real coordinate between two bounds, both included.

    >>> Real(0, 1).locate(0.5), Real(0, 1).locate(2)
    ((0.5,), None)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, double(getattr(self, name)))
        if self.lower > self.upper:
            raise InvalidInput(
                f"the lower bound, {format_number(self.lower)}, is above the upper one, "
                f"{format_number(self.upper)}"
            )

    def locate(self, value: Any) -> Point | None:
        x = number(value)
        return (x,) if self.lower <= x <= self.upper else None


@dataclass(frozen=True, slots=True)
class Integers:
    """An integer coordinate between two bounds, both included. :func:`integers` makes one.

    >>> Integers(0, 9).locate(3), Integers(0, 9).locate(3.5)
    ((3,), None)
    """

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
    """A coordinate that is one of several labels. :func:`categories` makes one.

    >>> Categories(("north", "south", "islands")).locate("south")
    (0, 1, 0)
    """

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        labels = tuple(read_list(self.labels, text))
        object.__setattr__(self, "labels", labels)
        if not labels or "" in labels:
            raise InvalidInput("must have labels, and none that is empty")
        if len(set(labels)) < len(labels):
            raise InvalidInput("a category appears twice")

    def locate(self, value: Any) -> Point | None:
        """Return a one for the label, and a zero for every other label."""
        index = self.labels.index(text(value))  # raises if there is no such label
        return tuple(int(k == index) for k in range(len(self.labels)))


def categories(*labels: str) -> Categories:
    """Declare a coordinate of a :class:`Box` that is one of several labels.

    A score has a weight for each label; labels that it does not name have weight 0.

    Args:
        labels: The labels.

    >>> import expost as xp
    >>> xp.Box(region=xp.categories("north", "south", "islands"))
    Box(region=categories[north, south, islands])
    """
    return Categories(labels)


def integers(lower: int, upper: int) -> Integers:
    """Declare an integer coordinate of a :class:`Box`, between two bounds, both included.

    Args:
        lower: The smallest value.
        upper: The largest value.

    >>> import expost as xp
    >>> xp.Box(children=xp.integers(0, 20))
    Box(children=integers[0, 20])
    """
    return Integers(lower, upper)


Side = Real | Integers | Categories
