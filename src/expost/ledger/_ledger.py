"""The ledger as users see it: its verbs, and how it is created, opened and recovered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost.answers import Answers, Subject
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter
from expost.ledger._arguments import (
    message_contents,
    occurrences,
    parts,
    read_queries,
    response_positions,
    run_in_parts,
    subject_names,
    subject_to_json,
)
from expost.ledger._audit import StudyAudit, audit_ledger
from expost.ledger._batch import Batch, subject_from_json
from expost.ledger._checkpoint import CheckpointStore
from expost.ledger._device_messages import IncomingMessage, ReceiveJob, SyncJob
from expost.ledger._engine import CommitEngine
from expost.ledger._export import export_ledger
from expost.ledger._history import REPEAT_SEPARATOR, Round, StudyHistory, read_rounds
from expost.ledger._opening import (
    PathLike,
    checkpoint_file,
    create_checkpoint,
    create_database,
    open_backend,
)
from expost.ledger._policy import StudyPolicy
from expost.ledger._protocol import Receipt, SyncAnswer
from expost.ledger._reader import LedgerReader, Progress, Status
from expost.ledger._recovery import Recovery, recover
from expost.ledger._requests import (
    DEVICE,
    IMPORTED,
    KINDS,
    SIMULATED,
    Outcome,
    RecordJob,
    RegisterJob,
    ReserveJob,
    end_study,
    read_key,
    resolve,
    suspend_held,
    withdraw,
)
from expost.ledger._simulation import SimulatedRound, SimulationJob, replies_of
from expost.ledger._verification import Verification, verify_ledger
from expost.ledger.backend import Backend, Tip
from expost.ledger.tables import QuarantineRow, RequestRow, SubjectRow
from expost.panel._box_state import Search
from expost.panel._requests import check_name, subjects_of
from expost.panel._results import Decisions, Replies
from expost.panel._saturating import SaturatingRequest
from expost.panel._values import values_of
from expost.queries import Query
from expost.sampling import Source, SystemSource, check_source, uniform_bytes
from expost.session._secret import Secret
from expost.transcript import Transcript

__all__ = ["Ledger"]


class Ledger:
    """Opens an existing ledger; :meth:`create` makes a new one.

    A ledger records the exchanges of a study. Devices draw their responses themselves: the ledger
    reserves an exchange (:meth:`reserve`), hands the reservation to the device when that syncs
    (:meth:`sync`), and records what it sends (:meth:`receive`). Nothing is returned before it is
    durable. A request has an idempotency key: the same key again returns what became of it.

    Any number of processes may read a ledger. One process at a time writes; it claims the ledger
    with its first write. Threads may share one ledger.

    Args:
        database: The SQLite file, or the URL of a PostgreSQL database.
        checkpoint: The file that reveals a rollback, by default next to the database.
        source: The source of randomness of :meth:`ask`, by default that of the operating system.
        search: The effort of searches on a box, and the number of processes for them.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Path(folder) / "study.db"
    ...     smokes = xp.FiniteSet(["no", "yes"])
    ...     with xp.Ledger.create(database, smokes, filter=xp.BayesianFilter(epsilon=1)) as ledger:
    ...         _ = ledger.register(["ann", "bob"], kind="simulated")
    ...         query = xp.randomized_response(epsilon=1)
    ...         first = ledger.ask(query, ["no", "yes"], key="week 1")
    ...     with xp.Ledger(database) as ledger:
    ...         again = ledger.ask(query, ["no", "yes"], key="week 1")
    ...         first.responses == again.responses, ledger.decide(query).accepted.tolist()
    (True, [False, False])
    """

    def __init__(
        self,
        database: PathLike,
        *,
        checkpoint: PathLike | None = None,
        source: Source | None = None,
        search: Search | None = None,
    ) -> None:
        _check_options(source, search)
        store = checkpoint_file(database, checkpoint)
        backend = open_backend(database)
        try:
            self._start(CommitEngine(backend, store, search), source)
        except BaseException:
            backend.close()
            raise

    @classmethod
    def create(
        cls,
        database: PathLike,
        domain: Domain,
        *,
        filter: Filter,
        study: str = "",
        queries: Mapping[str, Query] | None = None,
        checkpoint: PathLike | None = None,
        source: Source | None = None,
        search: Search | None = None,
    ) -> Ledger:
        """Make a new ledger and open it. Its domain and filter never change.

        Args:
            database: The database file, or the URL of a PostgreSQL database.
            domain: The values that a subject may have.
            filter: The privacy filter of every subject, one of expost's.
            study: A title for people.
            queries: Queries by their names; others are identified by their content ids.
            checkpoint: The file that reveals a rollback, by default next to the database.
            source: The source of randomness of simulated subjects.
            search: The limits of searches on a box.

        Raises:
            InvalidInput: The ledger or its checkpoint exists, or an argument cannot be used.
        """
        _check_options(source, search)
        random = source or SystemSource()
        policy = StudyPolicy(domain, filter, study, uniform_bytes(random, 16).hex())
        store = checkpoint_file(database, checkpoint)
        if os.path.lexists(database):
            raise InvalidInput("already exists; ledgers are never overwritten", os.fspath(database))
        if store.size() is not None or store.ticket_key() is not None:
            raise InvalidInput("already exists; checkpoints are never overwritten", str(store))
        create_database(database, policy)
        create_checkpoint(store, policy, uniform_bytes(SystemSource(), 32))
        ledger = cls(database, checkpoint=checkpoint, source=source, search=search)
        if queries:
            ledger.name_queries(queries)
        return ledger

    @classmethod
    def on_backend(
        cls,
        backend: Backend,
        store: CheckpointStore,
        *,
        source: Source | None = None,
        search: Search | None = None,
        on_step: Callable[[str], None] = lambda name: None,
    ) -> Ledger:
        """Open the ledger of a backend of your own."""
        ledger = object.__new__(cls)
        ledger._start(CommitEngine(backend, store, search, on_step=on_step), source)
        return ledger

    def _start(self, engine: CommitEngine, source: Source | None) -> None:
        self._engine = engine
        self._reader = LedgerReader(self._engine)
        self._source = source or SystemSource()
        self._engine.check_checkpoint()

    @classmethod
    def recover(
        cls, database: PathLike, *, checkpoint: PathLike | None = None, lost: bool = False
    ) -> Recovery:
        """Make a ledger usable whose database is behind its checkpoint, as a restored backup is.

        Every subject is then unconfirmed: it is asked nothing until its device has synced, which
        restores what the database has forgotten.

        Args:
            database: The database file, or the URL of a PostgreSQL database.
            checkpoint: The checkpoint file, by default next to the database.
            lost: Whether the checkpoint or the ticket key is also lost. Registrations and
                suspensions after the backup are then forgotten.

        Raises:
            InvalidInput: There is nothing to recover, or a file is missing and ``lost`` is false.
        """
        store = checkpoint_file(database, checkpoint)
        return cls.recover_on_backend(open_backend(database), store, lost=lost)

    @classmethod
    def recover_on_backend(
        cls, backend: Backend, store: CheckpointStore, *, lost: bool = False
    ) -> Recovery:
        """Recover the ledger of a backend of your own."""
        with closing(CommitEngine(backend, store)) as engine:
            return recover(engine, lost=lost, ticket_key=uniform_bytes(SystemSource(), 32))

    # -- writing

    def register(self, subjects: Any, *, kind: str = DEVICE) -> int:
        """Add subjects of one kind, and return how many are new.

        A subject answers with a device, was asked elsewhere (``"imported"``), or is simulated.
        Registering a subject again changes nothing: no budget is ever reset.
        """
        if kind not in KINDS:
            raise InvalidInput(f"{kind!r} is not one of {', '.join(KINDS)}", "kind")
        names = [subject_to_json(subject) for subject in subjects_of(subjects)]
        return sum(
            self._engine.run_job(RegisterJob(names[part], kind)) for part in parts(len(names))
        )

    def name_queries(self, queries: Mapping[str, Query]) -> None:
        """Name queries, durably, before they are asked.

        A query has one name, and a name is never given to another query.
        """
        with at("queries"):
            expect(queries, Mapping, "queries by their names")

            def job(batch: Batch) -> None:
                for name, query in queries.items():
                    check_name(name, query)
                    with at(name):
                        namesake = batch.catalog.queries.get(name)
                        if namesake is not None and namesake != query:
                            raise InvalidInput("is the name of another query")
                        self._engine.check_query(query)
                        existing = batch.catalog.query_name(batch.catalog.add_query(query, name))
                        if existing != name:
                            raise InvalidInput(
                                f"is a second name: this query is called {existing!r}; "
                                "ask it again by that name"
                            )

            self._engine.run_job(job)

    def saturating(
        self,
        question: Any,
        *,
        cap: Any,
        seeds: Any = None,
        subjects: Any = None,
        key: str | None = None,
    ) -> NDArray[np.object_]:
        """Return the saturating query of every subject, as a column of names for the other verbs.

        As :meth:`Panel.saturating`; new queries are recorded. The name is None, which asks nothing,
        if no query ends at the cap.

        Args:
            question: A statement or a partition, as for :func:`saturating`.
            cap: The loss that every response ends at: one for all subjects, or a column.
            seeds: Seeds of questions with more than two answers: one for all, or a column.
            subjects: Subjects, by default all.
            key: The idempotency key of the round. Subjects who were asked under it keep their
                query, so that the round can be repeated.
        """
        names = subject_names(self._reader, subjects)
        with self._reader.reading() as engine:
            earlier = (
                {}
                if key is None
                else engine.backend.find(RequestRow, [(name, read_key(key)) for name in names])
            )
            is_new = [(name, key) not in earlier for name in names]
            new = np.flatnonzero(is_new)
            tallies = [row.tally for row in self._reader.rows(engine, names)]
            wanted = SaturatingRequest.read(question, cap, seeds, engine.kernel, len(names))
            queries, query_indices = engine.decider.saturating_queries(
                wanted.of_rows(new), [tallies[row] for row in new]
            )

        def job(batch: Batch) -> list[str | None]:
            catalog = batch.catalog
            return [
                None if query is None else catalog.query_name(catalog.add_query(query))
                for query in queries
            ]

        result = np.full(len(names), None, dtype=object)
        result[new] = np.array([*self._engine.run_job(job), None], dtype=object)[query_indices]
        for row in np.flatnonzero(~np.array(is_new)):
            result[row] = self._engine.catalog.query_name(earlier[names[row], key].query)
        return result

    def reserve(
        self,
        query: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[Outcome, ...]:
        """Reserve the next exchange of device subjects, and return an outcome for each.

        A device gets its reservation when it syncs. Until it has answered or declined, its subject
        is asked nothing else. The same key again returns what became of the request.

        Args:
            query: A query, its name, or a column of names with an entry for each subject.
            subjects: Device subjects, by default all.
            key: The idempotency key; by default a new one.
            progress: Called with the number of finished subjects and of all.
        """
        key, names = read_key(key), subject_names(self._reader, subjects, DEVICE)
        queries, query_indices = read_queries(self._reader, query, len(names))
        job = ReserveJob(self._engine, key, names, queries, query_indices)
        rows = np.flatnonzero(query_indices >= 0)
        outcomes = dict(zip(rows.tolist(), run_in_parts(rows, key, progress, job.run), strict=True))
        return tuple(
            outcomes.get(row) or Outcome(subject_from_json(name), "")
            for row, name in enumerate(names)
        )

    def receive(
        self, messages: Iterable[bytes | str], *, dry_run: bool = False
    ) -> tuple[Receipt, ...]:
        """Record messages of devices, and return a receipt for each.

        A message that does not fit is quarantined and its subject suspended; what it revealed
        counts. A dry run changes nothing.
        """
        job = ReceiveJob([IncomingMessage(content) for content in message_contents(messages)])
        return tuple(self._engine.dry_run(job) if dry_run else self._engine.run_job(job))

    def sync(self, requests: Iterable[bytes | str]) -> tuple[SyncAnswer | Receipt, ...]:
        """Answer syncs of devices: record their messages, confirm them, hand out reservations.

        A request that cannot be read is quarantined, and its answer is a receipt.
        """
        return tuple(self._engine.run_job(SyncJob(message_contents(requests))))

    def record(
        self,
        query: Any,
        responses: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.bool_]:
        """Record answers that were collected elsewhere, of imported subjects.

        They were given, so they count; the result says which of them the filter accepts. A subject
        may appear more than once.

        Args:
            query: A query, its name, or a column of names with an entry for each subject.
            responses: A column of responses, with an entry for each subject.
            subjects: Imported subjects, by default all.
            key: The idempotency key; by default a new one.
            progress: Called with the number of finished subjects and of all.

        Returns:
            Whether the filter accepts each response.
        """
        key, names = read_key(key), subject_names(self._reader, subjects, IMPORTED, repeated=True)
        queries, query_indices = read_queries(self._reader, query, len(names))
        positions = response_positions(self.domain, queries, query_indices, responses)
        accepted = np.ones(len(names), dtype=np.bool_)
        for occurrence, rows in enumerate(occurrences(names), 1):
            row_key = key if occurrence == 1 else f"{key}{REPEAT_SEPARATOR}{occurrence}"
            job = RecordJob(self._engine, row_key, names, queries, query_indices, positions)
            accepted[rows] = run_in_parts(rows, key, progress, job.run)
        return accepted

    def ask(
        self,
        query: Any,
        values: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> Replies:
        """Simulate a round: reserve, draw responses in this process, record them.

        Args:
            query: A query, its name, or a column of names with an entry for each subject.
            values: The value of every subject, as for :meth:`Panel.ask`. Only the draw reads them.
            subjects: Simulated subjects, by default all.
            key: The idempotency key; by default a new one.
            progress: Called with the number of finished subjects and of all.
        """
        secret = Secret(values)
        del values  # so that no traceback that prints local variables can show it
        key, names = read_key(key), subject_names(self._reader, subjects, SIMULATED)
        queries, query_indices = read_queries(self._reader, query, len(names))
        secret_values = values_of(self.domain, secret, len(names), queries)
        job = SimulationJob(self._engine, key, names, queries, query_indices)
        simulation = SimulatedRound(job, secret_values, self._source)
        responses = np.zeros(len(names), dtype=np.int64)
        rows = np.flatnonzero(query_indices >= 0)
        responses[rows] = run_in_parts(rows, key, progress, simulation.ask)
        return replies_of(job, responses)

    def resolve(self, subjects: Any, *, suspend: bool = False) -> tuple[Subject, ...]:
        """Decide about suspended subjects, and return those that changed.

        A resolved subject is unconfirmed until its device syncs with a chain that extends the
        recorded one. What its quarantined messages revealed still counts. ``suspend`` instead
        suspends subjects whose messages were held for an operator.
        """
        names = subject_names(self._reader, subjects)

        def job(batch: Batch) -> tuple[Subject, ...]:
            batch.load(SubjectRow, [(name,) for name in names])
            decide = resolve
            if suspend:
                held = {row.subject for row in batch.rows(QuarantineRow) if row.held}
                decide = partial(suspend_held, held=held)
            return tuple(subject_from_json(name) for name in names if decide(batch, name))

        return self._engine.run_job(job)

    def withdraw(self, subjects: Any) -> tuple[Subject, ...]:
        """Ask subjects nothing more, permanently, and return those that had not withdrawn before.

        Their answers stay in the record and in audits, but :meth:`answers` leaves them out. An
        answer that a device has drawn before is still recorded.
        """
        names = subject_names(self._reader, subjects)

        def job(batch: Batch) -> tuple[Subject, ...]:
            batch.load(SubjectRow, [(name,) for name in names])
            return tuple(subject_from_json(name) for name in names if withdraw(batch, name))

        return self._engine.run_job(job)

    def end(self) -> None:
        """End the study, permanently: nothing more is registered, reserved or imported.

        Answers to open reservations are still recorded: they were released.
        """
        self._engine.run_job(end_study)

    # -- reading

    @property
    def policy(self) -> StudyPolicy:
        """The policy that was fixed when the ledger was created."""
        return self._engine.policy

    @property
    def domain(self) -> Domain:
        """The possible values of a subject."""
        return self.policy.domain

    @property
    def filter(self) -> Filter:
        """The privacy filter."""
        return self.policy.filter

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The names of all subjects, in the order of their registration."""
        return tuple(map(subject_from_json, self._reader.names()))

    @property
    def withdrawn(self) -> frozenset[Subject]:
        """The names of subjects that have withdrawn."""
        with self._reader.reading() as engine:
            return frozenset(map(subject_from_json, self._reader.withdrawn(engine)))

    def subjects_of_kind(self, kind: str) -> tuple[Subject, ...]:
        """Return the names of subjects of one kind, in the order of their registration."""
        return tuple(map(subject_from_json, self._reader.names(kind)))

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that are known, by their names."""
        with self._reader.reading() as engine:
            return dict(engine.catalog.queries)

    @property
    def tip(self) -> Tip:
        """The number of the last commit, and the root after it."""
        with self._reader.reading() as engine:
            return engine.backend.tip()

    def __len__(self) -> int:
        return len(self._reader.names())

    def decide(self, query: Any, subjects: Any = None) -> Decisions:
        """Decide without changing anything: who would accept a query, and the numbers.

        A subject that is suspended, unconfirmed or waiting for its device does not accept.
        ``query`` is a query, the name of one, or a column of names, with None to ask nothing.
        """
        names = subject_names(self._reader, subjects)
        return self._reader.decide(names, *read_queries(self._reader, query, len(names)))

    def status(self, subjects: Any = None) -> Status:
        """Return where subjects stand: losses, what remains, states."""
        names = None if subjects is None else subject_names(self._reader, subjects)
        return self._reader.status(names)

    def transcript(self, subject: Subject) -> Transcript:
        """Return what one subject was asked and answered, after checking its chain."""
        (name,) = subject_names(self._reader, [subject])
        return self._reader.transcript(name)

    def answers(self) -> Answers:
        """Return what subjects answered, and who was refused what, for estimates.

        Subjects that have withdrawn are left out.
        """
        with self._reader.reading() as engine:
            withdrawn = set(map(subject_from_json, self._reader.withdrawn(engine)))
            return StudyHistory.read(engine).answers(engine, leave_out=withdrawn)

    def rounds(self) -> tuple[Round, ...]:
        """Return what became of every query, by key, in the order of first requests."""
        with self._reader.reading() as engine:
            return read_rounds(engine)

    def audit(self) -> StudyAudit:
        """Decide about every exchange again, and list what is out of the ordinary.

        It needs polars: ``expost[frames]``.
        """
        with self._reader.reading() as engine:
            return audit_ledger(engine)

    def verify(self, progress: Progress | None = None) -> Verification:
        """Recompute everything from the exchanges: chains, tallies, decisions and roots.

        ``progress`` is called with the number of subjects done, and of all.
        """
        with self._reader.reading() as engine:
            return verify_ledger(engine, progress or _no_progress)

    def export(self, path: PathLike, *, progress: Progress | None = None) -> None:
        """Write everything to a new text file that a stand-alone checker can verify."""
        expect(path, (str, os.PathLike), "the name of a file")
        with self._reader.reading() as engine:
            export_ledger(engine, Path(path), progress or _no_progress)

    def backup(self, path: PathLike) -> None:
        """Copy the database to a new file while it is in use.

        The checkpoint is not copied: it has to stay where it is to reveal that a backup was
        restored.
        """
        expect(path, (str, os.PathLike), "the name of a file")
        with self._engine.lock:
            self._engine.check_usable()
            self._engine.backend.backup(Path(path))

    def close(self) -> None:
        """Release the database and the lock."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.policy.study!r}, budget {self.filter.limit})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a ledger is not copied; open it again")


def _check_options(source: Source | None, search: Search | None) -> None:
    check_source(source)
    expect(search, Search | None, "a Search, such as Search(processes=2)", "search")


def _no_progress(done: int, total: int) -> None:
    pass
