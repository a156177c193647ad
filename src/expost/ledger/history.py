"""All that a ledger recorded, in arrays: exchanges in order, and what was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from expost.answers import Answers, Subject
from expost.domains import Domain
from expost.filters import Filter
from expost.ledger.backend import DECLINED, Row
from expost.ledger.core import Core
from expost.ledger.errors import Damaged
from expost.ledger.tallies import Tallies
from expost.ledger.words import Words

__all__ = ["SHIFT", "History", "Rows", "unanswered"]

Ints = NDArray[np.int64]

SHIFT = 32
"""Two numbers in one: the first is shifted by so many bits."""

_TOGETHER = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Requests in columns."""

    keys: tuple[str, ...]
    """The different keys."""
    key: Ints
    subject: Ints
    query: Ints
    sequence: Ints
    response: Ints
    commit: Ints

    @classmethod
    def of(cls, rows: Iterator[Row]) -> Rows:
        """All of some rows, a part at a time."""
        keys: dict[str, int] = {}
        parts = [np.empty((0, 6), dtype=np.int64)]
        while part := list(islice(rows, _TOGETHER)):
            numbered = [(keys.setdefault(row[0], len(keys)), *row[1:]) for row in part]
            try:
                parts.append(np.array(numbered, dtype=np.int64))
            except (TypeError, ValueError, OverflowError):
                raise Damaged("a request is not what was recorded") from None
        table = np.ascontiguousarray(np.concatenate(parts).T)
        return cls(tuple(keys), *table)

    def some(self, own: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        """Some of them."""
        columns = (self.key, self.subject, self.query, self.sequence, self.response, self.commit)
        return Rows(self.keys, *(column[own] for column in columns))

    def paired(self, number: Mapping[str, int], other: Ints) -> Ints:
        """The key of each row by its number, together with something else, in one."""
        own = np.array([number[key] for key in self.keys], dtype=np.int64)
        return np.asarray(own[self.key] << SHIFT | other)

    def check(self, size: int, words: Words) -> None:
        """Refuse rows that are nobody's, or about no query."""
        for column, most in ((self.subject, size), (self.query, words.last_query)):
            if len(column) and not (column.min() >= 1 and column.max() <= most):
                raise Damaged("a request is nobody's, or about no query")

    def __len__(self) -> int:
        return len(self.subject)


def unanswered(reserved: Rows, *requests: Rows) -> Rows:
    """The reservations of which nothing has become so far, among all requests."""
    keys = dict.fromkeys(key for rows in (reserved, *requests) for key in rows.keys)
    number = {key: place for place, key in enumerate(keys)}
    done = np.concatenate([rows.paired(number, rows.subject) for rows in requests])
    return reserved.some(~np.isin(reserved.paired(number, reserved.subject), done))


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The exchanges of everybody, in the order of numbers and sequence; and other requests."""

    size: int
    """How many subjects there are."""
    exchanges: Rows
    starts: Ints
    """Where the exchanges of each subject start; the last entry is where they end."""
    others: Rows
    """Refused or declined."""

    @classmethod
    def read(cls, core: Core) -> History:
        """Everything; an exchange that is missing or there twice is an error."""
        core.learn()
        rows, size, words = Rows.of(core.backend.rows()), core.backend.size(), core.words
        rows.check(size, words)
        answered = rows.sequence > 0
        exchanges = rows.some(answered)
        exchanges = exchanges.some(np.lexsort((exchanges.sequence, exchanges.subject)))
        starts = np.searchsorted(exchanges.subject, np.arange(1, size + 2))
        expected = np.arange(len(exchanges)) - np.repeat(starts[:-1], np.diff(starts)) + 1
        wrong = np.flatnonzero(exchanges.sequence != expected)
        if len(wrong):
            number = int(exchanges.subject[wrong[0]])
            raise Damaged(f"an exchange of subject number {number} is missing, or there twice")
        if len(exchanges):
            least, most = exchanges.response.min(), exchanges.response.max()
            known = least >= 1 and most <= words.last_response
            if not known or (words.query_of(exchanges.response) != exchanges.query).any():
                raise Damaged("an exchange has a response that its query does not have")
        others = rows.some(~answered)
        if not np.isin(others.response, (0, DECLINED)).all():
            raise Damaged("a request that was not answered has a response")
        return cls(size, exchanges, starts, others)

    def check(self, core: Core) -> None:
        """Refuse exchanges that are not those of the tallies, before they are released.

        Rows of requests have no seals, but heads do. Verifying does more, and takes longer.
        """
        responses, starts = self.exchanges.response, self.starts
        for first in range(0, self.size, _TOGETHER):
            end = min(first + _TOGETHER, self.size)
            lengths = np.diff(starts[first : end + 1])
            due = Tallies.counted(responses[starts[first] : starts[end]], lengths)
            heads = core.backend.heads(range(first + 1, end + 1))
            for number, (head, tally) in enumerate(zip(heads, due, strict=True), first + 1):
                if head.tally != tally:
                    raise Damaged(f"the exchanges of subject number {number} are not its tally")

    def answers(
        self, domain: Domain, filter: Filter, words: Words, names: list[Subject]
    ) -> Answers:
        """What everybody answered, and who was refused what, as estimates and audits take it."""
        given, place = np.unique(self.exchanges.response, return_inverse=True)
        pairs = [(words.response(number).query, words.position(number)) for number in given]
        order = sorted(range(len(pairs)), key=lambda code: pairs[code])
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        asked = np.flatnonzero(np.diff(self.starts))
        others = zip(self.others.subject.tolist(), self.others.query.tolist(), strict=True)
        return Answers.of_codes(
            domain,
            words.queries,
            tuple(names[number] for number in asked.tolist()),
            [(words.names[pairs[code][0]], pairs[code][1]) for code in order],
            rank[place],
            np.append(self.starts[asked], len(self.exchanges)),
            filter=filter,
            refused={(names[subject - 1], words.names[query]) for subject, query in others},
        )
