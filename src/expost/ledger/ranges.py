"""Whole numbers, such as those of commits, as the ranges that they make up."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

__all__ = ["Ranges"]


class Ranges:
    """Some numbers. Ranges are in order, and do not touch each other."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def add(self, first: int, last: int) -> None:
        """Add all numbers from the first to the last."""
        # Those that overlap the new one or touch it become one with it.
        start, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if start < end:
            first, last = min(first, self._firsts[start]), max(last, self._lasts[end - 1])
        self._firsts[start:end], self._lasts[start:end] = [first], [last]

    def missing(self, first: int, last: int) -> Ranges:
        """The numbers from the first to the last that are not there."""
        result, start = Ranges(), first
        for begin, end in self:
            if start < begin and start <= last:
                result.add(start, min(begin - 1, last))
            start = max(start, end + 1)
        if start <= last:
            result.add(start, last)
        return result

    def numbers(self) -> list[int]:
        """Each of them."""
        return [number for first, last in self for number in range(first, last + 1)]

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self._lasts, number)
        return place < len(self._lasts) and self._firsts[place] <= number

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __len__(self) -> int:
        """How many ranges there are."""
        return len(self._firsts)
