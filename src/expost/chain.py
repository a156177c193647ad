"""An immutable sequence to which an item can be appended in constant time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, overload

__all__ = ["Chain"]

T = TypeVar("T")

_growing = threading.Lock()


class Chain(Sequence[T]):
    """An immutable sequence: a prefix of a list that it shares with the sequences grown from it.

    So a history of n steps, each an immutable value of its own, takes time and memory
    proportional to n, not to n².

    >>> short = Chain([1, 2])
    >>> long = short.plus(3)
    >>> list(short), list(long)
    ([1, 2], [1, 2, 3])
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def plus(self, item: T) -> Chain[T]:
        """Return the sequence with one more item at the end."""
        longer = object.__new__(Chain)
        with _growing:
            # The first branch off a sequence shares its list; any further one takes a copy.
            shared = self._items if len(self._items) == self._length else list(self)
            shared.append(item)
        longer._items = shared
        longer._length = self._length + 1
        return longer

    def first(self, count: int) -> Chain[T]:
        """Return the first ``count`` items, in the same list."""
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
        return Chain, (list(self),)  # without the items of the sequences grown from this one

    def __repr__(self) -> str:
        return f"Chain({list(self)!r})"
