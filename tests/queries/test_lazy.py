"""Sequences that are worked out item by item, and longer than ``len`` can say."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from expost.queries import LazyResponses


def squares(size: int) -> LazyResponses:
    def find(response: Any) -> int | None:
        return next((i for i in range(9) if i * i == response), None)

    return LazyResponses(size, lambda position: position**2, find)


def test_a_short_one_is_like_a_tuple() -> None:
    lazy, plain = squares(5), (0, 1, 4, 9, 16)
    assert tuple(lazy) == plain
    assert len(lazy) == 5
    assert (lazy[0], lazy[-1], lazy[1:4], lazy[::-2]) == (0, 16, (1, 4, 9), (16, 4, 0))
    assert 9 in lazy
    assert 3 not in lazy
    for index in (5, -6):
        with pytest.raises(IndexError):
            lazy[index]


def test_a_long_one_is_asked_for_what_is_needed_only() -> None:
    lazy = squares(2**100)
    assert lazy[2**99] == 2**198
    assert lazy[-1] == (2**100 - 1) ** 2
    assert lazy[:3] == (0, 1, 4)
    assert list(itertools.islice(lazy, 3)) == [0, 1, 4]
    assert lazy.size == 2**100
    with pytest.raises(OverflowError):
        len(lazy)
