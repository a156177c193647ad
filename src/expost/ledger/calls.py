"""What is given in one call and recorded in several commits: what goes together, and how far."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from expost.errors import ExpostError, InvalidInput, at, expect
from expost.ledger.requests import Part, Request
from expost.queries import Query

__all__ = [
    "Ready",
    "anything_asked",
    "apart",
    "fits",
    "key_of",
    "parts",
    "recorded_in_part",
    "waves",
]

Ints = NDArray[np.int64]

_LONGEST_KEY = 200
# Rows of one commit, of a call that has more.
_TOGETHER = 1 << 14


def key_of(key: str | None) -> str:
    """The key of a call; without one it is made up."""
    if key is None:
        return uuid.uuid4().hex
    with at("key"):
        expect(key, str, "a text")
        if not 1 <= len(key) <= _LONGEST_KEY or not key.isprintable():
            raise InvalidInput(f"must have 1 to {_LONGEST_KEY} printable characters")
    return key


def fits(count: int) -> bool:
    """Whether so many rows are recorded in one commit."""
    return count <= _TOGETHER


def anything_asked(which: Ints) -> NDArray[np.intp]:
    """The rows of who is asked something."""
    return (which >= 0).nonzero()[0]


def parts(
    key: str, numbers: Ints, asked: Sequence[Query], which: Ints, rows: NDArray[np.intp]
) -> Iterator[Part]:
    """Some rows of a call, in parts that are recorded at once."""
    for start in range(0, len(rows), _TOGETHER):
        own = rows[start : start + _TOGETHER]
        yield Part(key, numbers[own], asked, which[own], own)


class Ready:
    """An errand of turns whose requests are there, and know themselves what becomes of them."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests

    def prepare(self) -> Sequence[Request]:
        return self._requests

    def finish(self) -> None:
        pass


def waves(numbers: Ints) -> Iterator[NDArray[np.intp]]:
    """Rows such that nobody is there twice, one such collection after the other."""
    order = np.argsort(numbers, kind="stable")
    turn = np.empty(len(numbers), dtype=np.intp)
    own = numbers[order]
    turn[order] = np.arange(len(own)) - np.searchsorted(own, own)
    for each in range(int(turn.max(initial=-1)) + 1):
        yield np.flatnonzero(turn == each)


def apart(requests: Sequence[Request]) -> list[list[Request]]:
    """Messages in groups such that nobody is in one of them twice, in their order."""
    result: list[list[Request]] = []
    latest: dict[int, int] = {}
    for request in requests:
        number = int(request.subjects[0])
        group = latest.get(number, -1) + 1
        latest[number] = group
        if group == len(result):
            result.append([])
        result[group].append(request)
    return result


def recorded_in_part(error: ExpostError, recorded: int, total: int, key: str) -> ExpostError:
    """The same error, which also says that the call may be repeated."""
    said = f"; {recorded:,} of {total:,} rows are recorded, and the same call with the key {key!r} "
    said += "may be repeated: it records nothing twice"
    if isinstance(error, InvalidInput):
        return type(error)(error.reason + said, error.place)
    return type(error)(f"{error}{said}")
