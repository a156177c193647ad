"""A bounded cache of what was computed for two objects, such as a query and a domain.

A query is decided, drawn from and recorded in quick succession, and each step needs its likelihood
on the domain. That is a function of query and domain, so it may be forgotten at any time. The cache
is bounded by the size of the results, not by the length of a history.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["IdentityCache"]

T = TypeVar("T")


class IdentityCache(Generic[T]):
    """Results for pairs of objects, told apart by identity; the least recently used go first."""

    def __init__(self, measure: Callable[[T], int], max_size: int) -> None:
        """Make an empty cache for results of this total size, as ``measure`` returns it."""
        self._measure = measure
        self._max_size = max_size
        self._size = 0
        # Entries hold the objects, so that no new object can have their identities.
        self._entries: OrderedDict[tuple[int, int], tuple[object, object, int, T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, first: object, second: object, compute: Callable[[], T]) -> T:
        """Return the result for two objects, computed again if the cache does not have it.

        Args:
            first: One of the objects.
            second: The other one.
            compute: Makes the result.
        """
        key = id(first), id(second)
        entry = self._entries.get(key)
        if entry is not None:
            try:  # noqa: SIM105 (it would take longer than all of this)
                self._entries.move_to_end(key)
            except KeyError:
                pass  # another thread dropped it just now
            return entry[-1]
        result = compute()
        size = self._measure(result)
        with self._lock:
            if key not in self._entries:
                self._entries[key] = first, second, size, result
                self._size += size
            while self._size > self._max_size and len(self._entries) > 1:
                *_, dropped_size, _ = self._entries.popitem(last=False)[1]
                self._size -= dropped_size
        return result
