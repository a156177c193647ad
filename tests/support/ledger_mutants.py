"""Ledgers and devices with a fault: the simulator has to notice each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import apsw

from expost.errors import ExpostError
from expost.ledger import (
    LedgerBehind,
    Tip,
    _batch,
    _device_messages,
    _engine,
    _history,
    _recovery,
    _requests,
    _sqlite,
)
from expost.ledger._checkpoint import Checkpoint
from expost.ledger._protocol import Receipt
from expost.ledger.backend import Commit
from expost.ledger.errors import LedgerBroken
from expost.ledger.tables import ExchangeRow, RequestRow, SubjectRow
from support.ledger_sites import template, template_records
from support.memory_backend import MemoryBackend
from support.model_device import ModelDevice
from support.simulated_studies import KINDS, SimulatedStudy, Violation

__all__ = ["MUTANTS", "caught"]

Mutant = Callable[[], AbstractContextManager[Any]]


def normal_instead_of_full() -> Any:
    """Commits are not synchronized."""
    weak = _sqlite.RequiredPragma("NORMAL", (1,), "")
    return patch.dict(_sqlite.REQUIRED, {"synchronous": weak})


@contextmanager
def release_before_commit() -> Iterator[None]:
    """A batch is written when the next request comes."""
    write = _engine.CommitEngine._make_durable
    waiting: dict[int, _batch.Batch] = {}

    def make_durable(self: _engine.CommitEngine, new: _batch.Batch) -> None:
        waiting[id(self)] = new

    def new_batch(self: _engine.CommitEngine) -> _batch.Batch:
        late = waiting.pop(id(self), None)
        if late is not None:
            write(self, late)
        return _batch.Batch(self)

    with (
        patch.object(_engine.CommitEngine, "_make_durable", make_durable),
        patch.object(_engine, "Batch", new_batch),
    ):
        yield


@contextmanager
def line_before_commit() -> Iterator[None]:
    """The checkpoint line is written before the database commit."""
    append = Checkpoint.append

    def make_durable(self: _engine.CommitEngine, new: _batch.Batch) -> None:
        if not new.empty:
            commit = new.build_commit()
            self._stopped = True
            self._on_step("prepared")
            append(self.checkpoint, commit.tip, new.events)
            self._on_step("committed")
            self.backend.commit(commit)
            self._on_step("checkpointed")
            self._stopped = False
            self.catalog.mark_durable()
            self._remember(new, commit.added)

    with patch.object(_engine.CommitEngine, "_make_durable", make_durable):
        yield


@contextmanager
def key_not_permanent() -> Iterator[None]:
    """A key can be used again, and is decided about again."""

    def insert(rows: dict[Any, Any], key: Any, row: Any) -> None:
        rows[key] = row

    statement = _sqlite._INSERT[RequestRow].replace("INSERT", "INSERT OR IGNORE")
    with (
        patch.object(_requests.ReserveJob, "request", lambda self, batch, place: None),
        patch.object(MemoryBackend, "_insert", staticmethod(insert)),
        patch.dict(_sqlite._INSERT, {RequestRow: statement}),
    ):
        yield


def refusal_not_recorded() -> Any:
    """A refusal is returned and not written."""
    add = _batch.Batch.add

    def add_others(self: _batch.Batch, row: Any) -> Any:
        refusal = isinstance(row, RequestRow) and not row.sequence
        return row if refusal else add(self, row)

    return patch.object(_batch.Batch, "add", add_others)


@contextmanager
def checkpoint_ignored() -> Iterator[None]:
    """Any database is opened."""
    with (
        patch.object(_engine.CommitEngine, "_check_tail", lambda self, tail: None),
        patch.object(_engine.CommitEngine, "is_covered", lambda self: True),
    ):
        yield


@contextmanager
def numbers_compared_only() -> Iterator[None]:
    """A reader compares the numbers of commits with the checkpoint, and not their roots."""

    def check(self: _engine.CommitEngine) -> None:
        last = self.checkpoint.tail().last
        if last is None or last.tip.commit_number > self.backend.tip().commit_number:
            raise LedgerBehind("the database is an older copy")
        self.ensure_covered()

    def covers(self: Checkpoint, tip: Tip) -> bool:
        return f'"commit": {tip.commit_number}, '.encode() in self.store.read(0)

    with (
        patch.object(_engine.CommitEngine, "check_checkpoint", check),
        patch.object(Checkpoint, "covers", covers),
    ):
        yield


@contextmanager
def subjects_outside_of_the_transaction() -> Iterator[None]:
    """The rows of subjects change in a transaction of their own, after the commit."""
    write = _sqlite.Sqlite.commit

    def commit(self: _sqlite.Sqlite, whole: Commit) -> None:
        write(self, replace(whole, changed=()))
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
            if whole.changed:
                self._cursor.executemany(_sqlite._CHANGE, whole.changed)
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise LedgerBroken(str(error)) from None

    with patch.object(_sqlite.Sqlite, "commit", commit):
        yield


def answers_unchecked() -> Any:
    """Exchanges are shown as they are."""
    return patch.object(_history._Exchanges, "check", lambda self, subject: None)


@contextmanager
def epoch_not_compared() -> Iterator[None]:
    """A writer continues although another one has claimed the ledger."""
    write = _sqlite.Sqlite.commit

    def commit(self: _sqlite.Sqlite, whole: Commit) -> None:
        ((self._epoch,),) = self._cursor.execute("SELECT epoch FROM study").fetchall()
        write(self, whole)

    with (
        patch.object(_sqlite.Sqlite, "commit", commit),
        patch.object(MemoryBackend, "compares_epoch", False),
    ):
        yield


def appends_without_a_ticket() -> Any:
    """Any ticket is valid."""
    return patch.object(_device_messages, "has_ticket", lambda batch, message: True)


def forgets_tickets_of_confirmed_subjects() -> Any:
    """A ticket restores nothing once its subject is confirmed."""
    restore = _device_messages._MessageReceiver._restore

    def restored(self: Any, subject: SubjectRow) -> Any:
        if subject.generation == self.batch.generation:
            return _device_messages._Misfit("nothing is reserved", subject.name)
        return restore(self, subject)

    return patch.object(_device_messages._MessageReceiver, "_restore", restored)


def confirms_too_early() -> Any:
    """A subject is confirmed by any sync of its device, even if that has more to send."""
    compare = _device_messages.SyncJob._compare

    def compared(self: Any, batch: _batch.Batch, request: Any, subject: SubjectRow) -> SubjectRow:
        subject = compare(self, batch, request, subject)
        if _requests.subject_state(subject, batch.generation) == "unconfirmed":
            return batch.confirm(subject, "too early")
        return subject

    return patch.object(_device_messages.SyncJob, "_compare", compared)


@contextmanager
def recovers_without_confirming() -> Iterator[None]:
    """After a recovery every subject is confirmed as it is."""
    with (
        patch.object(_batch, "ROLLBACKS", ("rollback",)),
        patch.object(_engine, "ROLLBACKS", ("rollback",)),
    ):
        yield


def recover_without(*events: str) -> Mutant:
    """A recovery ignores some events of the checkpoint."""
    found = _recovery._lost_events

    def some(*given: Any) -> Iterator[tuple[int, list[str]]]:
        for number, lines in found(*given):
            yield number, [line for line in lines if line.split(" ")[0] not in events]

    return lambda: patch.object(_recovery, "_lost_events", some)


def repeated_message_recorded_twice() -> Any:
    """A message that comes again is one more exchange."""
    repeat = _device_messages._MessageReceiver._repeat

    def repeated(self: Any, subject: SubjectRow) -> Any:
        found = repeat(self, subject)
        if isinstance(found, Receipt):
            row = self.batch.get(ExchangeRow, subject.name, self.message.sequence)
            self.batch.append_exchange(subject, row.key, row.query, row.response)
        return found

    return patch.object(_device_messages._MessageReceiver, "_repeat", repeated)


def extras_not_counted() -> Any:
    """What a quarantined message revealed is ignored."""
    return patch.object(_device_messages, "_count_extra", lambda batch, subject, *rest: subject)


def quarantine_without_suspension() -> Any:
    """A message that does not fit has no consequence."""
    return patch.object(_batch.Batch, "suspend", lambda self, subject, reason: subject)


def rollback_not_marked() -> Any:
    """A ticket that the ledger does not remember proves nothing."""
    mark = _batch.Batch.add_mark

    def others(self: _batch.Batch, what: str, detail: str = "") -> None:
        if what != "rollback":
            mark(self, what, detail)

    return patch.object(_batch.Batch, "add_mark", others)


@contextmanager
def draws_although_the_ledger_is_ahead() -> Iterator[None]:
    """A device stores its reservation, and draws under it even if it is an old copy."""
    answer = ModelDevice.answer
    stored: dict[int, dict[str, Any]] = {}

    def answered(self: ModelDevice, reservation: dict[str, Any]) -> str:
        stored[id(self)] = reservation
        return answer(self, reservation)

    def draw_again(self: ModelDevice, reservation: Any) -> str:
        known = stored.get(id(self))
        if known is None or known["sequence"] != len(self.stored) + 1:
            return ""
        return answer(self, known)

    with (
        patch.object(ModelDevice, "answer", answered),
        patch.object(ModelDevice, "found_old", draw_again),
    ):
        yield


def accepts_stale_answers() -> Any:
    """A device takes any answer, however old."""
    return patch.object(ModelDevice, "is_current", lambda self, answer: True)


def _in(kinds: Sequence[str], name: str, mutant: Mutant) -> dict[str, tuple[Mutant, str]]:
    where = {"disk": "in SQLite", "file": "in SQLite", "memory": "in memory"}
    return {f"{name}, {where[kind]}": (mutant, kind) for kind in kinds}


MUTANTS: dict[str, tuple[Mutant, str]] = {
    "NORMAL instead of FULL": (normal_instead_of_full, "disk"),
    **_in(("disk", "memory"), "release before commit", release_before_commit),
    **_in(("disk", "memory"), "writes the line before the commit", line_before_commit),
    **_in(("disk", "memory"), "key not permanent", key_not_permanent),
    **_in(("disk", "memory"), "refusal not recorded", refusal_not_recorded),
    **_in(("disk", "memory"), "checkpoint ignored", checkpoint_ignored),
    **_in(("disk", "memory"), "readers compare numbers and not roots", numbers_compared_only),
    "subjects outside of the transaction": (subjects_outside_of_the_transaction, "disk"),
    **_in(("disk", "memory"), "answers unchecked", answers_unchecked),
    **_in(("file", "memory"), "epoch not compared", epoch_not_compared),
    "appends without a ticket": (appends_without_a_ticket, "memory"),
    "forgets tickets of confirmed subjects": (forgets_tickets_of_confirmed_subjects, "memory"),
    "confirms a subject before its device did": (confirms_too_early, "memory"),
    "recover confirms everyone": (recovers_without_confirming, "memory"),
    "recover forgets suspensions": (recover_without("suspended", "extra"), "memory"),
    "recover forgets registrations": (recover_without("registered"), "memory"),
    "recover forgets imports": (recover_without("imported"), "memory"),
    "recover forgets the end": (recover_without("ended"), "memory"),
    "a repeated message is recorded twice": (repeated_message_recorded_twice, "memory"),
    "extras not counted": (extras_not_counted, "memory"),
    "quarantine without suspension": (quarantine_without_suspension, "memory"),
    "a rollback is not marked": (rollback_not_marked, "memory"),
    "a device draws although the ledger is ahead": (draws_although_the_ledger_is_ahead, "memory"),
    "a device accepts stale answers": (accepts_stale_answers, "memory"),
}
"""Every mutant, with the kind of world in which it is looked for."""


def caught(name: str, most: int) -> tuple[int, str] | None:
    """Return the first seed that notices a mutant, and how; None if no seed does."""
    mutant, kind = MUTANTS[name]
    assert kind in KINDS
    template(), template_records()  # later worlds need those of a ledger without a fault
    with mutant():
        for seed in range(most):
            try:
                SimulatedStudy(seed, kind).run()
            except Violation as violation:
                return seed, str(violation)
            except (ExpostError, apsw.Error) as error:
                return seed, repr(error)
    return None
