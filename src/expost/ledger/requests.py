"""What is asked of a ledger in one call: in each row a subject and a query, and its outcome.

A request is decided about on heads and nothing else. What it does with the verdict is what tells
asking, recording and reserving apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.errors import InvalidInput
from expost.ledger.digests import next_head
from expost.ledger.records import Answer, Change, Head, Move, Outcome
from expost.ledger.tallies import Tallies
from expost.ledger.words import Words
from expost.panel.kernel import groups
from expost.panel.values import Values
from expost.queries import Query

__all__ = ["TURN", "Asked", "Draw", "Recorded", "Request", "Reserved", "Situation"]

Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Bools = NDArray[np.bool_]
Draw = Callable[[int, Any], NDArray[Any]]
"""Draws responses: the number of a query, and where the values of some subjects are."""

TURN = "\n"
"""Between a key and the turn of somebody who is recorded more than once in one call.

No key that somebody gives has it, so none of them is taken for another.
"""


class Situation(NamedTuple):
    """Where the subjects of some rows of a request are, and whether the filter accepts."""

    rows: Places
    """The rows that have no outcome yet; all else is in their order."""
    heads: Sequence[Head]
    tallies: Tallies
    """Of these and perhaps others."""
    own: Places
    """Where these are among the tallies."""
    accepted: Bools


class Request(ABC):
    """Rows with a subject and a query each, under one key. A subject is there once."""

    decides: ClassVar[bool] = True
    """Whether the filter is asked."""
    reserves: ClassVar[bool] = False
    """Whether a reservation is what is wanted."""

    def __init__(
        self, key: str, subjects: Ints, asked: Sequence[Query], which: Ints, rows: Places
    ) -> None:
        self.key = key
        self.subjects = subjects
        self.asked = asked
        """The different queries."""
        self.which = which
        """For each row which of them."""
        self.rows = rows
        """Which rows these are of all that were given in one call."""
        self.served = False

    def start(self, words: Words) -> None:
        """Begin, perhaps again: nothing is known of any row, and new queries have no number."""
        self.outcomes: list[Outcome | None] = [None] * len(self.subjects)
        self.error: BaseException | None = None
        self.queries = self._numbers(words.known)

    def propose(self, words: Words) -> None:
        """Give new queries their numbers, once nothing is in the way."""
        self.queries = self._numbers(words.propose_query)

    def _numbers(self, number: Callable[[Query], int]) -> Ints:
        return np.array([number(query) for query in self.asked], dtype=np.int64)[self.which]

    def __len__(self) -> int:
        return len(self.subjects)

    def repeat(self, found: Mapping[int, Outcome], words: Words) -> None:
        """Take over what became of rows when they were first requested."""
        for row, subject in enumerate(self.subjects.tolist()):
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
        left = [row for row, found in enumerate(self.outcomes) if found is None]
        return np.array(left, dtype=np.intp)

    def check(self, rows: Places, heads: Sequence[Head]) -> None:
        """Refuse to go on while somebody has a reservation."""
        for row, head in zip(rows.tolist(), heads, strict=True):
            if head.reserved:
                raise _reserved(int(self.rows[row]), head.reserved)

    def _place(self, row: int) -> str:
        return f"key {self.key.partition(TURN)[0]!r}: row {int(self.rows[row]) + 1}"

    @abstractmethod
    def change(self, found: Situation, words: Words, draw: Draw) -> Change:
        """What is to be added, once it was decided. Outcomes are set as if it were."""

    def _refuse(self, change: Change, found: Situation) -> None:
        for number in np.flatnonzero(~found.accepted).tolist():
            row, head = int(found.rows[number]), found.heads[number]
            query = int(self.queries[row])
            change.refused.append(Move(int(self.subjects[row]), query, head, head))
            self.outcomes[row] = Outcome(query, 0, 0)

    def _answer(
        self, change: Change, found: Situation, numbers: Places, responses: Ints, words: Words
    ) -> None:
        """Add exchanges for some of the rows of a situation, by their numbers there."""
        packed = found.tallies.plus(found.own[numbers], responses)
        rows = found.rows[numbers]
        closing = (~found.accepted[numbers]).tolist()
        columns = (rows.tolist(), numbers.tolist(), responses.tolist(), packed, closing,
                   self.subjects[rows].tolist(), self.queries[rows].tolist())  # fmt: skip
        links = {response: words.link(response) for response in set(responses.tolist())}
        heads, outcomes, answers = found.heads, self.outcomes, change.answers
        for row, number, response, tally, closes, subject, query in zip(*columns, strict=True):
            before = heads[number]
            sequence = before.sequence + 1
            digest = next_head(before.digest, links[response], sequence)
            after = Head(sequence, digest, tally, bool(before.closed or closes), "", before.last)
            answers.append(Answer(subject, query, response, before, after))
            outcomes[row] = Outcome(query, sequence, response)


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
    return [known[position] for position in positions]


class Asked(Request):
    """Values are at hand: the ledger draws."""

    def __init__(
        self,
        key: str,
        subjects: Ints,
        asked: Sequence[Query],
        which: Ints,
        rows: Places,
        held: Sequence[Values],
    ) -> None:
        super().__init__(key, subjects, asked, which, rows)
        self._held = held
        self._drawn: dict[int, tuple[bytes, int]] = {}
        """For a row the head that it was drawn after, and the position of the response."""

    def change(self, found: Situation, words: Words, draw: Draw) -> Change:
        change = Change(self.key)
        accepted = np.flatnonzero(found.accepted)
        responses = np.empty(len(found.rows), dtype=np.int64)
        for which, own in groups(self.which[found.rows[accepted]]):
            numbers = accepted[own]
            rows = found.rows[numbers]
            query = int(self.queries[rows[0]])
            heads = [found.heads[number].digest for number in numbers.tolist()]
            drawn = self._draw_once(rows, heads, self._held[which], partial(draw, query))
            responses[numbers] = _numbered(drawn, query, words)
        self._answer(change, found, accepted, responses[accepted], words)
        self._refuse(change, found)
        return change

    def _draw_once(
        self, rows: Places, heads: Sequence[bytes], held: Values, draw: Callable[[Any], Any]
    ) -> list[int]:
        """Positions of responses, one draw for each row and head.

        A commit may fail because of what was drawn: two processes that give numbers to new
        responses get in each other's way. Were that drawn again, rare responses would be rarer.
        """
        own = list(zip(rows.tolist(), heads, strict=True))
        new = [place for place, (row, head) in enumerate(own) if self._last(row) != head]
        fresh = draw(held.some(self.rows[rows[new]])).tolist() if new else []
        for place, position in zip(new, fresh, strict=True):
            row, head = own[place]
            self._drawn[row] = head, position
        return [self._drawn[row][1] for row, _ in own]

    def _last(self, row: int) -> bytes:
        return self._drawn[row][0] if row in self._drawn else b""


class Recorded(Request):
    """Devices drew and sent: whatever arrived was seen, so all of it counts."""

    def __init__(
        self,
        key: str,
        subjects: Ints,
        asked: Sequence[Query],
        which: Ints,
        rows: Places,
        positions: NDArray[Any],
    ) -> None:
        super().__init__(key, subjects, asked, which, rows)
        self._positions = positions
        self.accepted = np.ones(len(subjects), dtype=np.bool_)

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

    def change(self, found: Situation, words: Words, draw: Draw) -> Change:
        change = Change(self.key)
        responses = np.empty(len(found.rows), dtype=np.int64)
        for query, own in groups(self.queries[found.rows]):
            rows = found.rows[own]
            responses[own] = _numbered(self._positions[rows].tolist(), query, words)
        self._answer(change, found, np.arange(len(found.rows)), responses, words)
        self.accepted[found.rows] = found.accepted
        return change


class Reserved(Request):
    """Devices will draw: the next exchange is theirs."""

    reserves = True

    def change(self, found: Situation, words: Words, draw: Draw) -> Change:
        change = Change(self.key)
        for number in np.flatnonzero(found.accepted).tolist():
            row, before = int(found.rows[number]), found.heads[number]
            subject, query = int(self.subjects[row]), int(self.queries[row])
            after = before._replace(reserved=self.key)
            change.reserved.append(Move(subject, query, before, after))
            self.outcomes[row] = Outcome(query, before.sequence + 1, 0)
        self._refuse(change, found)
        return change
