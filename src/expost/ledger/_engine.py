"""The only writer of a ledger: it turns jobs into commits that are durable before anyone hears.

A job is a function of a :class:`Batch`. Threads hand their jobs to a queue; the thread that holds
the lock runs all waiting jobs on one batch, writes it as one commit, and then wakes the others.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from expost.errors import InvalidInput
from expost.ledger._batch import ROLLBACKS, Batch
from expost.ledger._catalog import Catalog
from expost.ledger._checkpoint import Checkpoint, CheckpointStore, CheckpointTail
from expost.ledger._digests import Tickets, first_root
from expost.ledger._policy import StudyPolicy
from expost.ledger._tallies import Decider
from expost.ledger.backend import Backend, Tip
from expost.ledger.errors import (
    LedgerBehind,
    LedgerBroken,
    LedgerDamaged,
    LedgerLocked,
    LedgerReadOnly,
)
from expost.ledger.tables import CommitRow, MarkRow, SubjectRow, check_seal
from expost.panel._box_state import Search
from expost.panel._kernel import Kernel
from expost.queries import Query
from expost.session._secret import without_frames

__all__ = ["CommitEngine"]

T = TypeVar("T")
Job = Callable[[Batch], T]

# How long a reader waits for the line of a commit that it has seen, in seconds.
_LINE_TIMEOUT = 10.0
_RETRY_DELAY = 0.01
_INTERRUPTED = "the process was interrupted; open the ledger again"


@dataclass(slots=True, eq=False)
class _Call:
    """A job, and what became of it."""

    job: Job[Any]
    done: bool = False
    result: Any = None
    #: None once its commit is durable.
    error: Exception | None = field(default_factory=lambda: LedgerBroken(_INTERRUPTED))


class CommitEngine:
    """The database and the checkpoint of a ledger, with caches of their rows and decisions."""

    def __init__(
        self,
        backend: Backend,
        store: CheckpointStore,
        search: Search | None = None,
        *,
        on_step: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.backend = backend
        self.policy = _policy_of(backend)
        self.checkpoint = Checkpoint(store, self.policy.content_id)
        self.kernel = Kernel(self.policy.domain, self.policy.filter, search)
        self.catalog = Catalog(self.kernel)
        self.decider = Decider(self.kernel, self.catalog)
        #: Held by the thread that reads or writes.
        self.lock = threading.RLock()
        self.claimed = False
        #: The number of recoveries and proved rollbacks so far.
        self.generation = 0
        self.ended = False
        self._subject_numbers: dict[str, int] | None = None
        self._on_step = on_step
        self._stopped = False
        self._closed = False
        self._read_only = False
        self._queue: list[_Call] = []
        self._queue_lock = threading.Lock()
        self._process = os.getpid()

    # -- opening

    @cached_property
    def tickets(self) -> Tickets:
        """The ticket key, from the file next to the checkpoint."""
        key = self.checkpoint.store.ticket_key()
        if key is None:
            raise LedgerBehind(
                f"{self.checkpoint.store}.key, the ticket key of the ledger, is missing; restore "
                "it. Only if it is lost, run expost ledger recover --lost"
            )
        return Tickets(self.policy.content_id, key)

    def check_checkpoint(self) -> None:
        """Refuse a database that is not what its checkpoint says."""
        self._check_tail(self.checkpoint.tail())
        self.ensure_covered()

    def ensure_covered(self) -> None:
        """Make sure that the checkpoint covers the last commit, before anything is shown.

        If it does not, a writer is about to write the line, or was killed before it did. In the
        second case the lock is free, and this process writes the line. A ledger that cannot be
        written is shown as it is.
        """
        deadline = time.monotonic() + _LINE_TIMEOUT
        while not self.is_covered():
            try:
                self.claim()
                self._release()
                if not self.is_covered():
                    raise LedgerBehind("the checkpoint is not the one of this database")
            except LedgerLocked:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_DELAY)
            except LedgerReadOnly:
                self._read_only = True

    def is_covered(self) -> bool:
        """Return whether the checkpoint has the last commit with its root."""
        if self.claimed or self._read_only:
            return True
        return self.checkpoint.covers(self.backend.tip())

    def _release(self) -> None:
        self.backend.release()
        self.checkpoint.close()
        self.claimed = False

    def _check_tail(self, tail: CheckpointTail) -> None:
        """Compare the end of the checkpoint with the database."""
        tip, name = self.backend.tip(), self.checkpoint.store
        if tail.last is None:
            raise LedgerBehind(
                f"{name} is missing or empty, so a rollback could go unnoticed. If it is "
                "elsewhere, name it: --checkpoint FILE. Only if it is lost, run expost ledger "
                "recover --lost"
            )
        commit_number, root = tail.last.tip
        behind = commit_number > tip.commit_number
        if behind or (tail.torn and commit_number == tip.commit_number):
            expected = f"{commit_number:,}" if behind else f"more than {commit_number:,}"
            raise LedgerBehind(
                f"the database is an older copy: {tip.commit_number:,} of {expected} commits. "
                "Restore the newer one, or run expost ledger recover, after which every device "
                "confirms its subject"
            )
        if self.root_at(commit_number) != root:
            raise LedgerBehind(
                f"the database is a fork: its commit {commit_number:,} differs from the one in "
                "the checkpoint. Restore the right database, or run expost ledger recover"
            )

    def root_at(self, commit_number: int) -> bytes | None:
        """Return the root after a commit; None if there is no such commit."""
        commit = self.backend.find(CommitRow, [(commit_number,)]).get((commit_number,))
        return None if commit is None else commit.root

    def claim(self, *, recovering: bool = False) -> None:
        """Become the only writer, unless this process is already."""
        self.check_usable()
        if self.claimed:
            return
        try:
            tail = self.checkpoint.claim(create=recovering)
            self.backend.claim()
            if not recovering:
                self._check_tail(tail)
                self._write_missing_lines(tail)
        except BaseException:
            self._release()
            raise
        self._subject_numbers = None
        self.refresh()
        self.claimed = True

    def _write_missing_lines(self, tail: CheckpointTail) -> None:
        """Append the lines of commits after the last line: a crash came in between."""
        assert tail.last is not None
        for row in self.backend.scan(CommitRow, after=tail.last.tip.commit_number):
            self.checkpoint.append(Tip(row.number, row.root), json.loads(row.events))

    def refresh(self) -> None:
        """Load what another writer may have added."""
        with self._stop_on_interrupt():
            self.catalog.discard()
            self.catalog.refresh(self.backend)
        marks = list(self.backend.scan(MarkRow))
        self.generation = sum(mark.what in ROLLBACKS for mark in marks)
        self.ended = any(mark.what == "ended" for mark in marks)

    def check_query(self, query: Query) -> None:
        """Refuse a query that cannot be asked in this study."""
        if self.policy.filter.pure and query.approximate:
            raise InvalidInput("requires a filter with a delta, such as ApproximateFilter")
        self.kernel.query_index(query)

    def check_usable(self) -> None:
        """Refuse to continue in a forked process, or after a write that failed."""
        if os.getpid() != self._process:
            raise InvalidInput(
                "the ledger was opened in another process; open it again in this one"
            )
        if self._closed:
            raise InvalidInput("the ledger is closed; open it again")
        if self._stopped:
            raise LedgerBroken("an earlier write failed; open the ledger again")

    # -- names

    def subject_numbers(self) -> dict[str, int]:
        """Return the numbers of all subjects by their names (JSON), in the order of numbers.

        Every row is read and checked, because an index with a flipped bit would not find a subject
        that is there, and the same person would be registered again.
        """
        if self._subject_numbers is None or not self.claimed:
            rows = [check_seal(row) for row in self.backend.scan(SubjectRow)]
            if [row.name for row in rows] != sorted({row.name for row in rows}):
                raise LedgerDamaged(
                    "the names of subjects are not in order, or a name appears twice"
                )
            by_number = sorted((row.number, row.name) for row in rows)
            if [number for number, _ in by_number] != list(range(1, len(rows) + 1)):
                raise LedgerDamaged("the numbers of subjects have gaps")
            if self.claimed and self._count_registrations() != len(rows):
                raise LedgerDamaged("a subject is missing")
            self._subject_numbers = {name: number for number, name in by_number}
        return self._subject_numbers

    def _count_registrations(self) -> int:
        """Count the registrations of all commits: the last subject could be missing otherwise."""
        recoveries = self.recovery_commits()
        return sum(
            row.events.count('"registered ')
            for row in self.backend.scan(CommitRow)
            if row.number not in recoveries
        )

    def recovery_commits(self) -> set[int]:
        """Return the numbers of recoveries: their events say again what other commits did."""
        return {mark.commit for mark in self.backend.scan(MarkRow) if mark.what == "recovered"}

    # -- writing

    def run_job(self, job: Job[T]) -> T:
        """Run a job in a commit, perhaps with those of other threads; return what it returns."""
        call = _Call(job)
        with self._queue_lock:
            self._queue.append(call)
        with self.lock:
            if not call.done:
                with self._queue_lock:
                    calls, self._queue = self._queue, []
                self._run_calls(calls)
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    def _run_calls(self, calls: list[_Call]) -> None:
        """Run the jobs of several threads on one batch."""
        usable = [*calls]
        try:
            self.claim()
            self._make_durable(self._fill_batch(usable))
            for call in usable:
                call.error = None
        except Exception as problem:
            without_frames(problem)
            for call in usable:
                call.error = copy(problem)  # every thread raises an error of its own
            self.catalog.discard()
        except BaseException as interrupt:
            self._stopped = True
            raise without_frames(interrupt) from None  # frames may hold what a job has drawn
        finally:
            for call in calls:
                call.done = True

    def _fill_batch(self, calls: list[_Call]) -> Batch:
        """Run jobs on a new batch; start again without a call whose request cannot be used."""
        while True:
            batch = Batch(self)
            try:
                for call in calls:
                    call.result = call.job(batch)
                return batch
            except InvalidInput as error:
                call.error = error
                without_frames(error)
                calls.remove(call)
                self.catalog.discard()

    def _make_durable(self, batch: Batch) -> None:
        """Write a batch: the database commit first, then the checkpoint line.

        Both are synchronized. Only after that does anything of the batch leave this process.
        """
        if batch.empty:
            return
        commit = batch.build_commit()
        self._stopped = True
        self._on_step("prepared")
        self.backend.commit(commit)
        self._on_step("committed")
        self.checkpoint.append(commit.tip, batch.events)
        self._on_step("checkpointed")
        self._stopped = False
        self.catalog.mark_durable()
        self._remember(batch, commit.added)

    def _remember(self, batch: Batch, added: Any) -> None:
        self.generation, self.ended = batch.generation, batch.ended
        if self._subject_numbers is not None:
            registered = added.get(SubjectRow, ())
            self._subject_numbers.update({row.name: row.number for row in registered})

    def dry_run(self, job: Job[T]) -> T:
        """Return what a job would return, and write nothing."""
        with self.lock:
            self.check_usable()
            self.ensure_covered()
            if not self.claimed:
                self.refresh()
            with self._stop_on_interrupt():
                try:
                    return job(Batch(self))
                finally:
                    self.catalog.discard()

    @contextmanager
    def _stop_on_interrupt(self) -> Iterator[None]:
        """Stop this ledger if an interrupt leaves what is in memory half changed."""
        stopped, self._stopped = self._stopped, True
        try:
            yield
        except Exception:
            self._stopped = stopped
            raise
        self._stopped = stopped

    def close(self) -> None:
        """Release the database and the lock."""
        if os.getpid() == self._process:
            with self.lock:
                self._closed = True
                try:
                    self.backend.close()
                finally:
                    self.checkpoint.close()


def _policy_of(backend: Backend) -> StudyPolicy:
    """Read the policy that a ledger was created with."""
    try:
        policy = StudyPolicy.from_json(backend.policy())
    except InvalidInput as error:
        raise LedgerDamaged(f"the policy cannot be read ({error})") from None
    first_commit = backend.find(CommitRow, [(0,)]).get((0,))
    if first_commit is None or first_commit.root != first_root(policy.content_id):
        raise LedgerDamaged("the policy is not the one that the ledger was created with")
    return policy
