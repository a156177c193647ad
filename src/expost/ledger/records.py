"""What a ledger keeps, as the core hands it to a backend and gets it back."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from operator import itemgetter, ne
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.ledger.packed import Packed
from expost.ledger.tallies import Tallies

__all__ = [
    "NOBODY",
    "Answer",
    "Answered",
    "Change",
    "Head",
    "Heads",
    "Kept",
    "Move",
    "Outcome",
    "QueryWord",
    "ResponseWord",
    "Tip",
    "joined",
]

Ints = NDArray[np.int64]

NOBODY = 0
"""The number of no subject."""


def joined(columns: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """One column after the other; a single one is not copied, for it may be long."""
    return columns[0] if len(columns) == 1 else list(chain.from_iterable(columns))


class Tip(NamedTuple):
    """How far a ledger has come: so many commits, and the root after them."""

    commits: int
    root: bytes


class Head(NamedTuple):
    """Where one subject is."""

    sequence: int
    """How many exchanges there are."""
    digest: bytes
    """The head of the chain."""
    tally: bytes
    """How often which response was given, as :mod:`expost.ledger.tallies` packs it."""
    closed: bool
    reserved: str
    """The key of the open reservation; empty if there is none."""
    last: int
    """Where the last exchange is; a matter of the backend alone."""


class Heads:
    """Where some subjects are, in columns: a round over many has no time for a record of each."""

    def __init__(
        self,
        sequence: Sequence[int],
        digest: Sequence[bytes],
        tally: Sequence[bytes],
        closed: Sequence[bool],
        reserved: Sequence[str],
        last: Sequence[int],
    ) -> None:
        self.sequence = sequence
        self.digest = Packed.of(digest)
        self.tally = Tallies.of(tally)
        self.closed = closed
        self.reserved = reserved
        self.last = last

    @classmethod
    def of(cls, heads: Iterable[Head]) -> Heads:
        """Some heads in columns, as they perhaps are already."""
        return heads if isinstance(heads, Heads) else cls(*_columns(heads, 6))

    @classmethod
    def joined(cls, parts: Sequence[Iterable[Head]]) -> Heads:
        """Those of several collections, one after the other."""
        if len(parts) == 1:
            return cls.of(parts[0])
        return cls(*map(joined, zip(*(cls.of(each).columns for each in parts), strict=True)))

    @cached_property
    def sequences(self) -> Ints:
        """How many exchanges there are, in an array."""
        return _array(self.sequence)

    @property
    def columns(self) -> tuple[Sequence[Any], ...]:
        """In the order of the fields of a head."""
        digest, tally = self.digest.each, self.tally.each
        return self.sequence, digest, tally, self.closed, self.reserved, self.last

    def part(self, start: int, stop: int) -> Heads:
        """Those from one place to another."""
        if not start and stop == len(self):
            return self
        own = slice(start, stop)
        return Heads(
            self.sequence[own], self.digest[own], self.tally[own], self.closed[own],
            self.reserved[own], self.last[own],
        )  # fmt: skip

    def some(self, places: Sequence[int]) -> Heads:
        """Those at some places, in order and each once."""
        if len(places) == len(self):
            return self
        if len(places) == 1:
            return Heads(*([column[places[0]]] for column in self.columns))
        return Heads(*map(itemgetter(*places), self.columns)) if places else Heads.of(())

    def __len__(self) -> int:
        return len(self.sequence)

    def __iter__(self) -> Iterator[Head]:
        return map(Head, *self.columns)

    def __getitem__(self, place: int) -> Head:
        return Head(*(column[place] for column in self.columns))


class QueryWord(NamedTuple):
    """A query that may be asked, by its number."""

    number: int
    content_id: str
    name: str
    document: str


class ResponseWord(NamedTuple):
    """A response to a query that was given, by its number."""

    number: int
    query: int
    response: str
    """As JSON."""


class Outcome(NamedTuple):
    """What became of a request: an exchange, a reservation, or a refusal."""

    query: int
    sequence: int
    """The number of the exchange, also of one that is reserved or was declined; 0 if refused."""
    response: int
    """The number of the response; 0 or less if there is none."""
    commit: int = 0
    """In which commit it came; 0 while it is new."""

    @property
    def answered(self) -> bool:
        return self.response > 0

    @property
    def declined(self) -> bool:
        return self.response < 0

    @property
    def reserved(self) -> bool:
        return self.sequence > 0 and not self.response


class Answer(NamedTuple):
    """An exchange that is added, and the head after it."""

    key: str
    subject: int
    query: int
    response: int
    before: Head
    after: Head


class Answered:
    """Exchanges that are added, in columns."""

    def __init__(
        self,
        keys: Sequence[str],
        subjects: Sequence[int],
        queries: Sequence[int],
        responses: Sequence[int],
        before: Iterable[Head],
        after: Iterable[Head],
    ) -> None:
        self.keys = keys
        self.subjects = subjects
        self.queries = queries
        self.responses = responses
        self.before = Heads.of(before)
        self.after = Heads.of(after)

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> Answered:
        """Some exchanges in columns, as they perhaps are already."""
        return answers if isinstance(answers, Answered) else cls(*_columns(answers, 6))

    @cached_property
    def numbers(self) -> Ints:
        """Of the subjects, in an array."""
        return _array(self.subjects)

    @property
    def closing(self) -> list[int]:
        """The subjects who are closed by these."""
        if not any(self.after.closed):
            return []
        return list(compress(self.subjects, map(ne, self.before.closed, self.after.closed)))

    def __len__(self) -> int:
        return len(self.subjects)

    def __iter__(self) -> Iterator[Answer]:
        numbers = self.subjects, self.queries, self.responses
        return map(Answer, self.keys, *numbers, self.before, self.after)


class Move(NamedTuple):
    """What becomes of a head without an exchange: it is reserved, closed, or stays as it is."""

    key: str
    subject: int
    query: int
    before: Head
    after: Head


class Kept(NamedTuple):
    """A message that did not fit."""

    subject: int
    digest: str
    reason: str
    message: bytes


@dataclass(slots=True)
class Change:
    """What one commit adds. It is added as a whole or not at all.

    A subject is in one of the lists of requests, and there once.
    """

    answers: Sequence[Answer] | Answered = ()
    refused: list[Move] = field(default_factory=list)
    """Nothing changes by a refusal, but it was decided on this head."""
    declined: list[Move] = field(default_factory=list)
    reserved: list[Move] = field(default_factory=list)
    closed: list[Move] = field(default_factory=list)
    """Who is closed without an exchange; such a move has no key, and its query is 0."""
    kept: list[Kept] = field(default_factory=list)
    subjects: list[tuple[int, str, bytes]] = field(default_factory=list)
    """Who is registered: numbers, names as JSON, and first heads."""
    queries: list[QueryWord] = field(default_factory=list)
    responses: list[ResponseWord] = field(default_factory=list)
    """Words that no commit before this one used."""
    end: bool = False

    @property
    def ordinary(self) -> bool:
        """Whether nothing but answers and refusals comes with it, and perhaps words."""
        return not (
            self.declined or self.reserved or self.closed or self.kept or self.subjects or self.end
        )

    @property
    def empty(self) -> bool:
        """Whether it adds nothing but perhaps words."""
        return self.ordinary and not (self.answers or self.refused)


def _array(numbers: Sequence[int]) -> Ints:
    return np.frombuffer(array("q", numbers), dtype=np.int64)


def _columns(records: Iterable[Any], count: int) -> Sequence[Sequence[Any]]:
    return list(zip(*records, strict=True)) or [()] * count
