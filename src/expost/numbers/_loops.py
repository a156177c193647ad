"""Bisection, blocks of rows, and arrays that cannot be written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["bisect", "blocks", "read_only"]

Bound = TypeVar("Bound", float, Fraction)
Array = TypeVar("Array", bound="NDArray[Any]")


def bisect(
    holds: Callable[[Bound], bool], low: Bound, high: Bound, *, steps: int = 60
) -> tuple[Bound, Bound]:
    """Return where a condition that holds for small numbers ends, as two close numbers.

    It holds for the first of them, unless that is ``low``, and not for the second, unless that is
    ``high``.

    >>> bisect(lambda x: x * x < 2, 1.0, 2.0)[0]
    1.414213562373095
    """
    for _ in range(steps):
        middle: Bound = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def blocks(count: int, size: int) -> Iterator[slice]:
    """Split rows into slices of this size; the last one may be smaller."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def read_only(array: Array, *further: NDArray[Any]) -> Array:
    """Return an array, after nobody can write to it and to further ones any more."""
    columns: tuple[NDArray[Any], ...] = (array, *further)
    for column in columns:
        column.setflags(write=False)
    return array
