"""Everything that a ledger has recorded, in arrays: exchanges in order, extras and rounds."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np

from expost._types import Ints
from expost.answers import DECLINED, REFUSED, UNANSWERED, Answers, Subject
from expost.ledger._batch import subject_from_json
from expost.ledger._engine import CommitEngine
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import (
    DeclineRow,
    ExchangeRow,
    ExtraRow,
    RequestRow,
    SubjectRow,
    check_seal,
)
from expost.tally import pack_counts

__all__ = ["REPEAT_SEPARATOR", "Round", "StudyHistory", "read_rounds"]


#: Separates a key from the turn of a subject that is recorded more than once in one call.
#:
#: No key that a caller gives has it.
REPEAT_SEPARATOR = "\n"

#: A key that was made up, because the caller gave none.
_GENERATED = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, eq=False)
class StudyHistory:
    """The exchanges of all subjects, in the order of their numbers."""

    subjects: list[SubjectRow]
    #: Numbers of responses, one subject's after the other's.
    responses: Ints
    commits: Ints
    #: The index of each subject's first exchange, and at the end the number of exchanges.
    starts: Ints
    #: The extras of subjects that have some, by name.
    extras: Mapping[str, list[ExtraRow]]
    #: Subjects and the names of queries that they left unanswered, by outcome.
    unanswered: Mapping[str, set[tuple[Subject, str]]]
    #: Subjects and keys whose exchange is not what the key was first used for.
    two_outcomes: list[tuple[Subject, str]]

    @classmethod
    def read(cls, engine: CommitEngine) -> StudyHistory:
        """Read everything, and compare it with the tallies and heads of subjects.

        Exchanges have no checksums, but subjects do: so a flipped bit is noticed here.
        """
        subjects = {row.name: check_seal(row) for row in engine.backend.scan(SubjectRow)}
        exchanges: dict[str, _Exchanges] = {}
        for row in engine.backend.scan(ExchangeRow):
            exchanges.setdefault(row.subject, _Exchanges()).add(row)
        if not exchanges.keys() <= subjects.keys():
            raise LedgerDamaged("an exchange belongs to no subject")
        no_exchanges = _Exchanges()
        ordered = sorted(subjects.values(), key=lambda row: row.number)
        per_subject = [exchanges.get(row.name, no_exchanges) for row in ordered]
        for subject, subject_exchanges in zip(ordered, per_subject, strict=True):
            subject_exchanges.check(subject)
        lengths = [len(subject_exchanges.responses) for subject_exchanges in per_subject]
        declined = {row[:2] for row in engine.backend.scan(DeclineRow)}
        unanswered = {outcome: set[tuple[Subject, str]]() for outcome in UNANSWERED}
        two_outcomes = []
        for request in engine.backend.scan(RequestRow):
            name = request.subject
            if not request.sequence or request[:2] in declined:
                query = engine.catalog.query_name(request.query)
                outcome = DECLINED if request.sequence else REFUSED
                unanswered[outcome].add((subject_from_json(name), query))
            exchange = exchanges.get(name, no_exchanges).by_key.get(request.key)
            if exchange is not None and exchange != (request.sequence, request.query):
                two_outcomes.append((subject_from_json(name), request.key))
        return cls(
            ordered,
            _join(subject_exchanges.responses for subject_exchanges in per_subject),
            _join(subject_exchanges.commits for subject_exchanges in per_subject),
            np.cumsum([0, *lengths]),
            _extras_by_subject(engine, exchanges),
            unanswered,
            two_outcomes,
        )

    def with_extras(self) -> tuple[Ints, Ints]:
        """Return responses and starts with the extras of each subject after its exchanges."""
        if not self.extras:
            return self.responses, self.starts
        parts: list[Ints] = []
        for index, row in enumerate(self.subjects):
            parts.append(self.responses[self.starts[index] : self.starts[index + 1]])
            extra_responses = [extra.response for extra in self.extras.get(row.name, ())]
            parts[-1] = np.append(parts[-1], np.array(extra_responses, dtype=np.int64))
        return np.concatenate(parts), np.cumsum([0, *map(len, parts)])

    def answers(
        self, engine: CommitEngine, *, extras: bool = False, leave_out: Set[Subject] = frozenset()
    ) -> Answers:
        """Return what subjects answered, as estimates and audits take it."""
        responses, starts = self.with_extras() if extras else (self.responses, self.starts)
        if leave_out:
            stays = [subject_from_json(row.name) not in leave_out for row in self.subjects]
            responses = responses[np.repeat(stays, np.diff(starts))]
            starts = np.append(0, np.cumsum(np.diff(starts) * stays))
        distinct, inverse = np.unique(responses, return_inverse=True)
        entries = [engine.catalog.response(index) for index in distinct.tolist()]
        with_answers = np.flatnonzero(np.diff(starts))
        return Answers.of_codes(
            engine.policy.domain,
            engine.catalog.queries,
            [subject_from_json(self.subjects[index].name) for index in with_answers.tolist()],
            [(engine.catalog.query_name(entry.query), entry.position) for entry in entries],
            inverse,
            np.append(starts[with_answers], len(responses)),
            filters=(engine.policy.filter,),
            unanswered={
                outcome: frozenset(pair for pair in pairs if pair[0] not in leave_out)
                for outcome, pairs in self.unanswered.items()
            },
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
            raise LedgerDamaged(f"an exchange of {row.subject} is missing, or appears twice")

    def check(self, subject: SubjectRow) -> None:
        """Refuse exchanges that do not make up the tally and the head of their subject."""
        tally = pack_counts(Counter(self.responses))
        matches = tally == subject.tally and len(self.responses) == subject.sequence
        if not matches or (self._last or subject.head) != subject.head:
            raise LedgerDamaged(
                f"the exchanges of subject number {subject.number} are not its tally"
            )


def _join(parts: Iterable[array[int]]) -> Ints:
    joined = array("q")
    for part in parts:
        joined.extend(part)
    return np.array(joined, dtype=np.int64)


def _extras_by_subject(
    engine: CommitEngine, exchanges: Mapping[str, _Exchanges]
) -> dict[str, list[ExtraRow]]:
    """Return the extras that no exchange records."""
    result: dict[str, list[ExtraRow]] = {}
    for row in engine.backend.scan(ExtraRow):
        responses = exchanges[row.subject].responses if row.subject in exchanges else ()
        recorded = 1 <= row.sequence <= len(responses)
        if not recorded or responses[row.sequence - 1] != row.response:
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


def read_rounds(engine: CommitEngine) -> tuple[Round, ...]:
    """Return all rounds, in the order of their first requests."""
    declined = {row[:2] for row in engine.backend.scan(DeclineRow)}
    reserved = {(row.name, row.reserved) for row in engine.backend.scan(SubjectRow)}
    counts: dict[tuple[str | None, int], list[int]] = {}
    first_commits: dict[tuple[str | None, int], int] = {}

    def count(key: str, query: int, commit: int, outcome: int) -> None:
        caller_key = key.partition(REPEAT_SEPARATOR)[0]
        round_key = (None if _GENERATED.fullmatch(caller_key) else caller_key), query
        counts.setdefault(round_key, [0, 0, 0, 0])[outcome] += 1
        first_commits[round_key] = min(commit, first_commits.get(round_key, commit))

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
        Round(round_key[0], engine.catalog.query_name(round_key[1]), *counts[round_key])
        for round_key in sorted(counts, key=lambda round_key: first_commits[round_key])
    )
