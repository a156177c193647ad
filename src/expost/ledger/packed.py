"""A column of byte strings that is also one string: arrays and digests are made of all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["Packed"]


class Packed(Sequence[bytes]):
    """Byte strings of some subjects. What is made of them is made when it is first needed."""

    def __init__(self, each: Sequence[bytes]) -> None:
        self.each = each

    @classmethod
    def of(cls, column: Sequence[bytes]) -> Self:
        """A column, which perhaps is one of these already."""
        return column if type(column) is cls else cls(column)

    @cached_property
    def whole(self) -> bytes:
        """One after the other."""
        return b"".join(self.each)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """In bytes."""
        return np.fromiter(map(len, self.each), np.int64, len(self.each))

    def some(self, places: Sequence[int]) -> Sequence[bytes]:
        """Those at some places, in order and each once."""
        return self.each if len(places) == len(self) else [self.each[place] for place in places]

    def __len__(self) -> int:
        return len(self.each)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.each)

    @overload
    def __getitem__(self, place: int) -> bytes: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[bytes]: ...

    def __getitem__(self, place: int | slice) -> bytes | Sequence[bytes]:
        return self.each[place]
