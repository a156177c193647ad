"""Everything that a ledger has recorded, in arrays: exchanges in order, extras and rounds."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from expost._types import Ints
from expost.answers import Answers, Subject
from expost.ledger.batch import subject_of
from expost.ledger.engine import Engine
from expost.ledger.errors import Damaged
from expost.ledger.tables import (
    DeclineRow,
    ExchangeRow,
    ExtraRow,
    RequestRow,
    SubjectRow,
    check_seal,
)
from expost.ledger.tallies import pack

__all__ = ["TURN", "History", "Round", "read_rounds"]


#: Separates a key from the turn of a subject that is recorded more than once in one call.
#:
#: No key that a caller gives has it.
TURN = "\n"

#: A key that was made up, because the caller gave none.
_GENERATED = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The exchanges of all subjects, in the order of their numbers."""

    subjects: list[SubjectRow]
    #: Numbers of responses, one subject's after the other's.
    responses: Ints
    commits: Ints
    #: Where the exchanges of each subject start; the last entry is where they end.
    starts: Ints
    #: The extras of subjects that have some, by name.
    extras: Mapping[str, list[ExtraRow]]
    #: Subjects, and the names of queries that were refused or declined.
    refused: set[tuple[Subject, str]]
    #: Subjects and keys whose exchange is not what the key was first used for.
    two_outcomes: list[tuple[Subject, str]]

    @classmethod
    def read(cls, engine: Engine) -> History:
        """Read everything, and compare it with the tallies and heads of subjects.

        Exchanges have no checksums, but subjects do: so a flipped bit is noticed here.
        """
        subjects = {row.name: check_seal(row) for row in engine.backend.scan(SubjectRow)}
        exchanges: dict[str, _Exchanges] = {}
        for row in engine.backend.scan(ExchangeRow):
            exchanges.setdefault(row.subject, _Exchanges()).add(row)
        if not exchanges.keys() <= subjects.keys():
            raise Damaged("an exchange belongs to no subject")
        nothing = _Exchanges()
        ordered = sorted(subjects.values(), key=lambda row: row.number)
        own = [exchanges.get(row.name, nothing) for row in ordered]
        for subject, found in zip(ordered, own, strict=True):
            found.check(subject)
        lengths = [len(found.responses) for found in own]
        declined = {row[:2] for row in engine.backend.scan(DeclineRow)}
        refused, two_outcomes = set(), []
        keys = {name: found.by_key for name, found in exchanges.items()}
        for request in engine.backend.scan(RequestRow):
            name = request.subject
            if not request.sequence or request[:2] in declined:
                query = engine.catalog.query_name(request.query)
                refused.add((subject_of(name), query))
            claimed = keys.get(name, {}).get(request.key)
            if claimed is not None and claimed != (request.sequence, request.query):
                two_outcomes.append((subject_of(name), request.key))
        return cls(
            ordered,
            _join(found.responses for found in own),
            _join(found.commits for found in own),
            np.cumsum([0, *lengths]),
            _extras_by_subject(engine, exchanges),
            refused,
            two_outcomes,
        )

    def names(self) -> list[Subject]:
        return [subject_of(row.name) for row in self.subjects]

    def with_extras(self) -> tuple[Ints, Ints]:
        """Return responses and starts with the extras of each subject after its exchanges."""
        if not self.extras:
            return self.responses, self.starts
        parts: list[Ints] = []
        for place, row in enumerate(self.subjects):
            parts.append(self.responses[self.starts[place] : self.starts[place + 1]])
            more = [extra.response for extra in self.extras.get(row.name, ())]
            parts[-1] = np.append(parts[-1], np.array(more, dtype=np.int64))
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)])

    def answers(self, engine: Engine, *, extras: bool = False) -> Answers:
        """Return what all subjects answered, as estimates and audits take it."""
        responses, starts = self.with_extras() if extras else (self.responses, self.starts)
        distinct, place = np.unique(responses, return_inverse=True)
        entries = [engine.catalog.response(number) for number in distinct.tolist()]
        pairs = [(entry.query, entry.position) for entry in entries]
        order = sorted(range(len(pairs)), key=lambda code: pairs[code])
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        names, own = self.names(), np.flatnonzero(np.diff(starts))
        return Answers.of_codes(
            engine.policy.domain,
            engine.catalog.queries,
            tuple(names[number] for number in own.tolist()),
            [(engine.catalog.query_name(pairs[code][0]), pairs[code][1]) for code in order],
            rank[place],
            np.append(starts[own], len(responses)),
            filter=engine.policy.filter,
            refused=self.refused,
        )


class _Exchanges:
    """The exchanges of one subject."""

    __slots__ = ("_last", "by_key", "commits", "responses")

    def __init__(self) -> None:
        self.responses, self.commits = array("q"), array("q")
        #: The number and the query of the exchange that each key was used for.
        self.by_key: dict[str, tuple[int, int]] = {}
        self._last: bytes | None = None

    def add(self, row: ExchangeRow) -> None:
        self.responses.append(row.response)
        self.commits.append(row.commit)
        self.by_key[row.key] = row.sequence, row.query
        self._last = row.head
        if row.sequence != len(self.responses):
            raise Damaged(f"an exchange of {row.subject} is missing, or appears twice")

    def check(self, subject: SubjectRow) -> None:
        """Refuse exchanges that do not make up the tally and the head of their subject."""
        counts: dict[int, int] = {}
        for response in self.responses:
            counts[response] = counts.get(response, 0) + 1
        same = pack(counts) == subject.tally and len(self.responses) == subject.sequence
        if not same or (self._last or subject.head) != subject.head:
            raise Damaged(f"the exchanges of subject number {subject.number} are not its tally")


def _join(parts: Iterable[array[int]]) -> Ints:
    whole = array("q")
    for part in parts:
        whole.extend(part)
    return np.array(whole, dtype=np.int64)


def _extras_by_subject(
    engine: Engine, exchanges: Mapping[str, _Exchanges]
) -> dict[str, list[ExtraRow]]:
    """Return the extras that no exchange records."""
    result: dict[str, list[ExtraRow]] = {}
    for row in engine.backend.scan(ExtraRow):
        known = exchanges.get(row.subject)
        recorded = known is not None and 1 <= row.sequence <= len(known.responses)
        if not (recorded and known and known.responses[row.sequence - 1] == row.response):
            result.setdefault(row.subject, []).append(row)
    return result


@dataclass(frozen=True, slots=True)
class Round:
    """One query under one key, over all subjects that were asked."""

    #: None for all requests whose keys the ledger made up.
    key: str | None
    #: The name of the query.
    query: str
    answered: int
    #: By the filter.
    refused: int
    #: By a device, before it had sent anything.
    declined: int
    #: Reserved, and not answered so far.
    waiting: int


def read_rounds(engine: Engine) -> tuple[Round, ...]:
    """Return all rounds, in the order of their first requests."""
    declined = {row[:2] for row in engine.backend.scan(DeclineRow)}
    reserved = {(row.name, row.reserved) for row in engine.backend.scan(SubjectRow)}
    counts: dict[tuple[str | None, int], list[int]] = {}
    first: dict[tuple[str | None, int], int] = {}

    def count(key: str, query: int, commit: int, outcome: int) -> None:
        given = key.partition(TURN)[0]
        own = (None if _GENERATED.fullmatch(given) else given), query
        counts.setdefault(own, [0, 0, 0, 0])[outcome] += 1
        first[own] = min(commit, first.get(own, commit))

    for exchange in engine.backend.scan(ExchangeRow):
        count(exchange.key, exchange.query, exchange.commit, 0)
    for request in engine.backend.scan(RequestRow):
        if not request.sequence:
            count(request.key, request.query, request.commit, 1)
        elif request[:2] in declined:
            count(request.key, request.query, request.commit, 2)
        elif request[:2] in reserved:
            count(request.key, request.query, request.commit, 3)
    return tuple(
        Round(own[0], engine.catalog.query_name(own[1]), *counts[own])
        for own in sorted(counts, key=lambda own: first[own])
    )
