"""What is asked of a ledger in one call: in each row a subject and a query, and its outcome.

A request is decided about on heads and nothing else. What it does with the verdict is what tells
asking, recording and reserving apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidInput
from expost.ledger.digests import next_heads
from expost.ledger.records import Answered, Change, Heads, Move, Outcome, joined
from expost.ledger.words import Words
from expost.panel.kernel import groups
from expost.panel.values import Values
from expost.queries import Query

__all__ = [
    "TURN",
    "Asked",
    "Given",
    "Part",
    "Recorded",
    "Request",
    "Reserved",
    "Situation",
    "Undrawn",
    "chained",
]

Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Bools = NDArray[np.bool_]
TURN = "\n"
"""Between a key and the turn of somebody who is recorded more than once in one call.

No key that somebody gives has it, so none of them is taken for another.
"""


class Part(NamedTuple):
    """Some rows of a call, which are recorded at once."""

    key: str
    subjects: Ints
    asked: Sequence[Query]
    """The different queries of the call."""
    which: Ints
    """For each row which of them."""
    rows: Places
    """Which rows these are of all that were given."""


class Situation(NamedTuple):
    """Where the subjects of some rows of a request are, and whether the filter accepts."""

    rows: Places
    """The rows that have no outcome yet; all else is in their order."""
    heads: Heads
    accepted: Bools


class Undrawn(NamedTuple):
    """Responses that have to be drawn."""

    query: int
    values: Values
    """Of those who answer."""
    take: Callable[[list[int]], None]
    """Is given the positions of their responses."""


class Given(NamedTuple):
    """Responses to one request, before they are chained."""

    key: str
    subjects: list[int]
    queries: list[int]
    responses: list[int]
    before: Heads
    closed: Sequence[bool]
    """Whether each is closed then."""


def chained(given: Sequence[Given], words: Words) -> Answered:
    """The exchanges of some requests, all at once: for a few it takes little more than for one."""
    keys = joined([[each.key] * len(each.subjects) for each in given])
    subjects, queries, responses, closed = map(
        joined, zip(*([*each[1:4], each.closed] for each in given), strict=True)
    )
    before = Heads.joined([each.before for each in given])
    sequences = [sequence + 1 for sequence in before.sequence]
    digests = next_heads(before.digest, words.links(responses), sequences)
    tallies, none = before.tally.plus(responses), [""] * len(keys)
    after = Heads(sequences, digests, tallies, closed, none, before.last)
    return Answered(keys, subjects, queries, responses, before, after)


class Request(ABC):
    """Rows with a subject and a query each, under one key. A subject is there once."""

    decides: ClassVar[bool] = True
    """Whether the filter is asked."""
    reserves: ClassVar[bool] = False
    """Whether a reservation is what is wanted."""
    hopes: ClassVar[bool] = False
    """Whether it is tried before it is looked up, because its key is new as a rule."""

    def __init__(self, part: Part) -> None:
        self.key, self.subjects, self.asked, self.which, self.rows = part
        self.numbers: list[int] = self.subjects.tolist()
        """Of the subjects, as rows have them."""
        self.served = False
        self.error: BaseException | None = None
        self._added: tuple[Places, Sequence[int]] | None = None

    def start(self, words: Words) -> None:
        """Begin, perhaps again: nothing is known of any row, and new queries have no number."""
        self.outcomes: list[Outcome | None] = [None] * len(self.numbers)
        """What became of each row, but for those that are answered now."""
        self.error = None
        self._added = None
        self._number([words.known(query) for query in self.asked])

    def propose(self, words: Words) -> None:
        """Give new queries their numbers, once nothing is in the way."""
        numbers = [words.propose_query(query) for query in self.asked]
        if numbers != self._numbered:
            self._number(numbers)

    def _number(self, numbers: list[int]) -> None:
        self._numbered = numbers
        self.queries: Ints = np.array(numbers, dtype=np.int64).take(self.which)

    def __len__(self) -> int:
        return len(self.subjects)

    def repeat(self, found: Mapping[int, Outcome], words: Words) -> None:
        """Take over what became of rows when they were first requested."""
        for row, subject in enumerate(self.numbers if found else ()):
            outcome = found.get(subject)
            if outcome is None:
                continue
            if outcome.query != self.queries[row]:
                raise InvalidInput("was used for another query", self._place(row))
            if outcome.reserved and not self.reserves:
                raise _reserved(int(self.rows[row]), self.key)
            self.outcomes[row] = outcome

    @property
    def open(self) -> Places:
        """The rows without an outcome."""
        if not any(self.outcomes):  # as in nearly every request
            return np.arange(len(self.outcomes))
        left = [row for row, found in enumerate(self.outcomes) if found is None]
        return np.array(left, dtype=np.intp)

    def check(self, rows: Places, heads: Heads) -> None:
        """Refuse to go on while somebody has a reservation."""
        if any(heads.reserved):
            row, key = next(each for each in zip(rows, heads.reserved, strict=True) if each[1])
            raise _reserved(int(self.rows[row]), key)

    @property
    def responses(self) -> Ints:
        """The number of the response of each row; 0 or less if there is none."""
        result = np.zeros(len(self.outcomes), dtype=np.int64)
        if any(self.outcomes):
            result[:] = [0 if found is None else found.response for found in self.outcomes]
        if self._added is not None:
            rows, responses = self._added
            result[rows] = responses
        return result

    def _place(self, row: int) -> str:
        return f"key {self.key.partition(TURN)[0]!r}: row {int(self.rows[row]) + 1}"

    def undrawn(self, found: Situation) -> Iterable[Undrawn]:
        """What has to be drawn before it can be changed."""
        return ()

    @abstractmethod
    def add(self, change: Change, found: Situation, words: Words) -> Given | None:
        """Add what was decided, but for answers, which are returned. Outcomes are set."""

    def _refuse(self, change: Change, found: Situation) -> None:
        for number in (~found.accepted).nonzero()[0].tolist():
            row, head = int(found.rows[number]), found.heads[number]
            query = int(self.queries[row])
            change.refused.append(Move(self.key, int(self.subjects[row]), query, head, head))
            self.outcomes[row] = Outcome(query, 0, 0)

    def _given(self, found: Situation, numbers: Places, responses: Ints) -> Given | None:
        """Responses of some of the rows of a situation, by their numbers there."""
        if not len(numbers):
            return None
        before, rows = found.heads.some(numbers.tolist()), found.rows[numbers]
        given: list[int] = responses.tolist()
        closed = before.closed
        if not found.accepted.all():
            refused = ~found.accepted[numbers]
            closed = [bool(each) for each in refused | np.array(closed, dtype=np.bool_)]
        self._added = rows, given
        subjects, queries = self.subjects[rows].tolist(), self.queries[rows].tolist()
        return Given(self.key, subjects, queries, given, before, closed)


def _reserved(row: int, key: str) -> InvalidInput:
    return InvalidInput(
        f"has an open reservation, with the key {key!r}, that its device has to answer first",
        f"subjects: row {row + 1}",
    )


def _numbered(positions: Sequence[int], query: int, words: Words) -> list[int]:
    """The numbers of responses by their positions."""
    known = {
        position: words.propose_response(query, position) for position in dict.fromkeys(positions)
    }
    return list(map(known.__getitem__, positions))


class Answering(NamedTuple):
    """Those who are asked one query, and answer."""

    which: int
    """Of the queries of the request."""
    numbers: Places
    """Of their rows in the situation."""
    rows: list[int]
    heads: Sequence[bytes]
    """After which they answer."""


class Asked(Request):
    """Values are at hand: the ledger draws."""

    hopes = True

    def __init__(self, part: Part, held: Sequence[Values]) -> None:
        super().__init__(part)
        self._held = held
        self._answering: list[Answering] = []
        self._drawn: list[tuple[list[int], Sequence[bytes], list[int]]] = []
        """Rows, the heads that they were drawn after, and the positions of their responses."""

    def undrawn(self, found: Situation) -> Iterator[Undrawn]:
        self._answering = list(self._by_query(found))
        known = self._known() if self._drawn else {}
        for which, _, rows, heads in self._answering:
            if known:
                new = [pair for pair in zip(rows, heads, strict=True) if pair not in known]
                rows, heads = [row for row, _ in new], [head for _, head in new]
            if rows:
                values = self._held[which].some(self.rows[rows])
                take = partial(self._take, rows, heads)
                yield Undrawn(self._numbered[which], values, take)

    def _take(self, rows: list[int], heads: Sequence[bytes], positions: list[int]) -> None:
        self._drawn.append((rows, heads, positions))

    def add(self, change: Change, found: Situation, words: Words) -> Given | None:
        responses = np.empty(len(found.rows), dtype=np.int64)
        for which, numbers, rows, heads in self._answering:
            positions = self._positions(rows, heads)
            responses[numbers] = _numbered(positions, self._numbered[which], words)
        self._refuse(change, found)
        accepted = found.accepted.nonzero()[0]
        return self._given(found, accepted, responses[accepted])

    def _by_query(self, found: Situation) -> Iterator[Answering]:
        accepted = found.accepted.nonzero()[0]
        parts: Iterable[tuple[int, Places]]
        if len(self.asked) == 1:
            parts = [(0, accepted)] if len(accepted) else []
        else:
            asked = groups(self.which[found.rows[accepted]])
            parts = ((which, accepted[own]) for which, own in asked)
        for which, numbers in parts:
            heads = found.heads.digest.some(numbers.tolist())
            yield Answering(which, numbers, found.rows[numbers].tolist(), heads)

    def _positions(self, rows: list[int], heads: Sequence[bytes]) -> list[int]:
        """What was drawn for some rows after these heads."""
        for some, after, positions in self._drawn:
            if some == rows and after == heads:  # as in nearly every first attempt
                return positions
        known = self._known()
        return [known[pair] for pair in zip(rows, heads, strict=True)]

    def _known(self) -> dict[tuple[int, bytes], int]:
        """One draw for each row and head.

        A commit may fail because of what was drawn: two processes that give numbers to new
        responses get in each other's way. Were that drawn again, rare responses would be rarer.
        """
        return {
            (row, head): position
            for drawn in self._drawn
            for row, head, position in zip(*drawn, strict=True)
        }


class Recorded(Request):
    """Devices drew and sent: whatever arrived was seen, so all of it counts."""

    def __init__(self, part: Part, positions: NDArray[Any]) -> None:
        super().__init__(part)
        self._positions = positions
        self.accepted = np.ones(len(positions), dtype=np.bool_)

    def repeat(self, found: Mapping[int, Outcome], words: Words) -> None:
        super().repeat(found, words)
        for row, outcome in enumerate(self.outcomes):
            if outcome is None:
                continue
            place = self._place(row)
            if not outcome.answered:
                raise InvalidInput("was refused or declined; record it under a new key", place)
            if words.position(outcome.response) != self._positions[row]:
                raise InvalidInput("was used for another response", place)

    def add(self, change: Change, found: Situation, words: Words) -> Given | None:
        responses = np.empty(len(found.rows), dtype=np.int64)
        for query, own in groups(self.queries[found.rows]):
            rows = found.rows[own]
            responses[own] = _numbered(self._positions[rows].tolist(), query, words)
        self.accepted[found.rows] = found.accepted
        return self._given(found, np.arange(len(found.rows)), responses)


class Reserved(Request):
    """Devices will draw: the next exchange is theirs."""

    reserves = True

    def add(self, change: Change, found: Situation, words: Words) -> None:
        for number in np.flatnonzero(found.accepted).tolist():
            row, before = int(found.rows[number]), found.heads[number]
            subject, query = int(self.subjects[row]), int(self.queries[row])
            after = before._replace(reserved=self.key)
            change.reserved.append(Move(self.key, subject, query, before, after))
            self.outcomes[row] = Outcome(query, before.sequence + 1, 0)
        self._refuse(change, found)
