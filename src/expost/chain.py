"""An immutable sequence that grows at its end in constant time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

__all__ = ["Chain"]

T = TypeVar("T")

_growing = threading.Lock()


class Chain(Sequence[T]):
    """A prefix of a list that is shared with the sequences it grew into.

    A history of n steps, each an immutable value, so costs n and not n² in time and memory.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def plus(self, item: T) -> Chain[T]:
        """The sequence with one more item at the end."""
        longer = object.__new__(Chain)
        with _growing:
            # A second branch off the same sequence takes a copy; the first one goes on sharing.
            shared = self._items if len(self._items) == self._length else list(self)
            shared.append(item)
        longer._items = shared
        longer._length = self._length + 1
        return longer

    def first(self, count: int) -> Chain[T]:
        """The sequence of the first so many items, which shares them too."""
        assert 0 <= count <= self._length
        shorter = object.__new__(Chain)
        shorter._items = self._items
        shorter._length = count
        return shorter

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Chain[T]: ...
    def __getitem__(self, index: int | slice) -> T | Chain[T]:
        positions = range(self._length)[index]
        if isinstance(positions, range):
            return Chain(self._items[position] for position in positions)
        return self._items[positions]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, (Chain, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (list(self),)  # not what other sequences have grown into

    def __repr__(self) -> str:
        return f"Chain({list(self)!r})"
