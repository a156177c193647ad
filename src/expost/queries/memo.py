"""A memo of recent likelihoods, so that they need not be worked out again.

A query is decided, drawn from and recorded in quick succession, and each step needs its likelihood
on the domain. That is a function of query and domain, so it may be forgotten at any time. The memo
is bounded by the number of values, not by the length of a history.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Recent"]

T = TypeVar("T")


class Recent(Generic[T]):
    """A memo for pairs of objects, told apart by identity, up to a total size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        # The objects are kept with the result, so that no new object can have their identities.
        self._kept: OrderedDict[tuple[int, int], tuple[object, object, int, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, first: object, second: object, make: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        """The result for this pair; made again if it is not in the memo."""
        key = id(first), id(second)
        kept = self._kept.get(key)
        if kept is not None:
            try:  # noqa: SIM105 (it would take longer than all of this)
                self._kept.move_to_end(key)
            except KeyError:
                pass  # another thread dropped it just now
            return kept[-1]
        result = make()
        added = size(result)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = first, second, added, result
                self._size += added
            while self._size > self._most and len(self._kept) > 1:
                *_, dropped, _ = self._kept.popitem(last=False)[1]
                self._size -= dropped
        return result
