"""Responses that are worked out from their positions, because they are too many to list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from expost.domains import Value

__all__ = ["Lazy"]


class Lazy(Sequence[Value]):
    """A sequence with an item per position, given by a function and its inverse.

    ``len`` is limited to ``sys.maxsize``; ``size`` is not.
    """

    def __init__(
        self, size: int, item: Callable[[int], Value], find: Callable[[Any], int | None]
    ) -> None:
        self.size = size
        self._item = item
        self._find = find

    def find(self, item: Any) -> int | None:
        """The position of an item, or None if it is not there."""
        return self._find(item)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        positions = range(self.size)[index]
        if isinstance(positions, range):
            return tuple(self._item(position) for position in positions)
        return self._item(positions)

    def __contains__(self, item: object) -> bool:
        return self._find(item) is not None
