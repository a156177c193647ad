"""Verification: recompute everything in a ledger from its exchanges, and compare.

Chains, tallies, states, every decision, and the root of every commit. Opening a ledger has compared
it with the checkpoint before.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from expost.audits._decisions import replay_subjects
from expost.audits._plan import Plan
from expost.errors import InvalidInput
from expost.ledger._batch import PERMANENT_REASONS, ROLLBACKS, UNCONFIRMED, subject_from_json
from expost.ledger._digests import first_head, first_root, next_head, next_root
from expost.ledger._engine import CommitEngine
from expost.ledger._history import StudyHistory
from expost.ledger._reader import Progress
from expost.ledger._requests import IMPORTED
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import (
    ACTIVE,
    BARRED,
    SUSPENDED,
    TABLES,
    CommitRow,
    DeclineRow,
    ExchangeRow,
    ExtraRow,
    MarkRow,
    RequestRow,
    StateRow,
    SubjectRow,
    root_line,
)
from expost.tally import pack_counts

__all__ = ["Verification", "verify_ledger"]

_SHOWN = 20
_BLOCK = 1 << 13
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification."""

    subjects: int
    exchanges: int
    commits: int
    #: The first problems that were found.
    problems: tuple[str, ...]
    #: Subjects with an exchange that a search on a box could not decide about.
    undecided: int

    @property
    def good(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        counts = f"{self.subjects:,} subjects, {self.exchanges:,} exchanges"
        counts += f", {self.commits:,} commits"
        if not self.good:
            return "\n".join([f"NOT as recorded: {counts}", *self.problems])
        text = f"verified: {counts}; chains, tallies, decisions and roots are right"
        less = f", except that decisions about {self.undecided:,} subjects are undecided"
        return text + less if self.undecided else text


def verify_ledger(engine: CommitEngine, progress: Progress) -> Verification:
    """Verify a ledger; ``progress`` is called with the subjects done, and all."""
    tip = engine.backend.tip()
    problems: list[str] = []
    subjects = exchanges = undecided = 0
    try:
        problems += engine.backend.check()
        problems += _keys_in_order(engine)
        engine.subject_numbers()
        history = StudyHistory.read(engine)
        subjects, exchanges = len(history.subjects), len(history.responses)
        problems += _chains(engine, history, progress)
        states = _States.read(engine)
        problems += _subject_rows(engine, history, states)
        undecided, over_budget = _decisions(engine, history, states)
        problems += over_budget
        cases = _cases(engine, history, states)
        while block := list(islice(cases, _BLOCK)):
            problems += _wrong_decisions(engine, block)
        problems += _roots(engine)
    except LedgerDamaged as error:
        problems.append(str(error))
    except (InvalidInput, LookupError, TypeError, ValueError, struct.error):
        problems.append("rows contradict each other, so not everything could be verified")
    return Verification(subjects, exchanges, tip.commit_number, tuple(problems[:_SHOWN]), undecided)


def _keys_in_order(engine: CommitEngine) -> list[str]:
    """Check that primary keys are unique, by the rows and not by the database's index."""
    problems = []
    for row, table in TABLES.items():
        keys = (scanned[: table.keys] for scanned in engine.backend.scan(row))
        if any(key >= following for key, following in pairwise(keys)):
            problems.append(f"the keys of {table.name} are not in order, or one appears twice")
    return problems


def _chains(engine: CommitEngine, history: StudyHistory, progress: Progress) -> list[str]:
    """Recompute the head after every exchange."""
    problems = []
    by_subject = groupby(engine.backend.scan(ExchangeRow), lambda row: row.subject)
    for index, (name, rows) in enumerate(by_subject, 1):
        head = first_head(engine.policy.content_id, subject_from_json(name))
        for row in rows:
            recorded = 1 <= row.response <= engine.catalog.size
            if not recorded or engine.catalog.response(row.response).query != row.query:
                problems.append(f"{name}: exchange {row.sequence} has no such response")
                break
            head = next_head(head, engine.catalog.response(row.response).chain_prefix, row.sequence)
            if head != row.head:
                problems.append(f"{name}: the chain is broken at exchange {row.sequence}")
                break
        if index % _BLOCK == 0:
            progress(index, len(history.subjects))
    for subject in history.subjects:
        start = first_head(engine.policy.content_id, subject_from_json(subject.name))
        if not subject.sequence and subject.head != start:
            problems.append(f"{subject.name}: the chain does not start with its name")
    progress(len(history.subjects), len(history.subjects))
    return problems


def _subject_rows(engine: CommitEngine, history: StudyHistory, states: _States) -> list[str]:
    """Compare the rows of subjects with what their other rows say."""
    declined = {row[:2] for row in engine.backend.scan(DeclineRow)}
    opened: dict[str, list[RequestRow]] = {}
    lengths = {row.name: row.sequence for row in history.subjects}
    for request in engine.backend.scan(RequestRow):
        if request.subject not in lengths:
            return ["a request belongs to no subject"]
        if request.sequence > lengths[request.subject] and request[:2] not in declined:
            opened.setdefault(request.subject, []).append(request)
    problems = []
    for subject in history.subjects:
        waiting = [(request.key, request.query) for request in opened.get(subject.name, ())]
        empty = not (subject.reserved or subject.query)
        if waiting != ([] if empty else [(subject.reserved, subject.query)]):
            problems.append(f"{subject.name}: the open reservation is not what was recorded")
        if not states.explain(subject):
            problems.append(f"{subject.name}: the state is not what was recorded")
        extras = Counter(extra.response for extra in history.extras.get(subject.name, ()))
        if pack_counts(extras) != subject.extras:
            problems.append(f"{subject.name}: the extras are not what was recorded")
    return problems


def _decisions(
    engine: CommitEngine, history: StudyHistory, states: _States
) -> tuple[int, list[str]]:
    """Decide about every exchange again, on those before it."""
    if not len(history.responses):
        return 0, []
    catalog = engine.catalog
    policy, effort = engine.policy, engine.kernel.search.effort
    plan = Plan(policy.domain, catalog.queries, policy.filter, effort)
    entries = [catalog.response(response_number) for response_number in range(1, catalog.size + 1)]
    responses = [(catalog.query(entry.query), entry.position) for entry in entries]
    replayed = replay_subjects(
        responses, history.responses - 1, history.starts, plan, lambda done: None
    )
    problems = []
    for index in np.flatnonzero(replayed.respected == 0).tolist():
        subject, refused = history.subjects[index], int(replayed.first_refused[index])
        commit = int(history.commits[int(history.starts[index]) + refused - 1])
        # An answer that is not within the budget suspends its subject in the same commit.
        if not refused or states.first_suspensions.get(subject.name, _NEVER) > commit:
            problems.append(f"{subject.name}: exchange {refused} is not within the budget")
    return int((replayed.respected < 0).sum()), problems


class _States(NamedTuple):
    """The changes of subjects' states that explain their rows, and the commits of rollbacks."""

    #: The commit in which each subject was first suspended.
    first_suspensions: dict[str, int]
    #: The last suspension or resolution of each subject.
    suspensions: dict[str, StateRow]
    #: The last confirmation or resolution of each subject.
    confirmations: dict[str, StateRow]
    rollbacks: list[int]

    @classmethod
    def read(cls, engine: CommitEngine) -> _States:
        states = cls({}, {}, {}, [])
        for row in engine.backend.scan(StateRow):
            if row.state == SUSPENDED:
                states.first_suspensions.setdefault(row.subject, row.commit)
            if row.state != "confirmed":
                states.suspensions[row.subject] = row
            if row.state != SUSPENDED:
                states.confirmations[row.subject] = row
        marks = engine.backend.scan(MarkRow)
        states.rollbacks.extend(mark.commit for mark in marks if mark.what in ROLLBACKS)
        return states

    def explain(self, subject: SubjectRow) -> bool:
        """Return whether the row of a subject has the state and generation that it should have."""
        change = self.suspensions.get(subject.name)
        state = ACTIVE
        if change is not None and change.state == SUSPENDED:
            state = BARRED if change.reason in PERMANENT_REASONS else SUSPENDED
        last = self.confirmations.get(subject.name)
        commit = subject.commit if last is None else last.commit
        # Other jobs of the same commit may have come before or after.
        earliest = sum(rollback < commit for rollback in self.rollbacks)
        latest = sum(rollback <= commit for rollback in self.rollbacks)
        plausible = earliest <= subject.generation <= latest
        if last is None or last.state == "resolved":
            unconfirmed = subject.generation == UNCONFIRMED
            plausible = unconfirmed or (plausible and last is None)
        return plausible and subject.state == state


def _cases(engine: CommitEngine, history: StudyHistory, states: _States) -> Iterator[_Case]:
    """Yield the refusals and reservations that a filter can decide about again."""
    indices = {row.name: index for index, row in enumerate(history.subjects)}
    with_extras = {row.subject for row in engine.backend.scan(ExtraRow)}
    for request in engine.backend.scan(RequestRow):
        if request.subject not in indices:
            continue  # which is a problem that was found before
        subject = history.subjects[indices[request.subject]]
        suspended = states.first_suspensions.get(subject.name, _NEVER) <= request.commit
        if subject.kind == IMPORTED or suspended:
            continue  # what was given counts, whatever the filter says
        exchanges = slice(*history.starts[indices[subject.name] : indices[subject.name] + 2])
        responses, commits = history.responses[exchanges], history.commits[exchanges]
        if request.sequence:
            before = responses[: request.sequence - 1]
        elif subject.name in with_extras or (commits == request.commit).any():
            continue  # extras may explain a refusal, or an exchange of the same commit
        else:
            before = responses[commits < request.commit]
        yield _Case(request, pack_counts(Counter(before.tolist())))


class _Case(NamedTuple):
    """A request, and the tally of the exchanges before it."""

    request: RequestRow
    tally: bytes


def _wrong_decisions(engine: CommitEngine, cases: Sequence[_Case]) -> list[str]:
    """Decide about refusals and reservations again, on the exchanges before each."""
    kernel_indices = engine.catalog.kernel_indices(np.array([case.request.query for case in cases]))
    state = engine.decider.state([case.tally for case in cases])
    verdicts = engine.kernel.decide(state, kernel_indices)
    reserved = np.array([case.request.sequence > 0 for case in cases])
    problems = []
    for index in np.flatnonzero((verdicts.accepted != reserved) & ~verdicts.undecided).tolist():
        over = "a reservation was not within the budget"
        problem = over if reserved[index] else "a refusal was not due"
        problems.append(f"{cases[index].request.subject}: {problem}")
    return problems


def _roots(engine: CommitEngine) -> list[str]:
    """Chain all commits again, from the rows that each of them added."""
    lines_of_tables = [_lines(engine, row) for row in TABLES if row is not CommitRow]
    added = heapq.merge(*lines_of_tables, key=lambda item: item[0])
    by_commit = groupby(added, lambda item: item[0])
    waiting = next(by_commit, None)
    if waiting is not None and waiting[0] < 1:
        return ["a row belongs to no commit"]
    root = first_root(engine.policy.content_id)
    for commit_number, commit in enumerate(engine.backend.scan(CommitRow)):
        if commit.number != commit_number:
            return [f"commit {commit_number:,} is missing"]
        if commit_number:
            lines = [json.dumps(["events", json.loads(commit.events)]).encode() + b"\n"]
            if waiting is not None and waiting[0] == commit_number:
                lines += [line for _, line in waiting[1]]
                waiting = next(by_commit, None)
            root = next_root(root, lines)
        if root != commit.root:
            return [f"commit {commit_number:,} has another root"]
    return [f"commit {waiting[0]:,} is missing"] if waiting is not None else []


def _lines(engine: CommitEngine, row: type[Any]) -> Iterator[tuple[int, bytes]]:
    table = TABLES[row]
    for scanned in engine.backend.scan(row, after=-_NEVER):
        yield (scanned.commit, root_line(table, scanned))
