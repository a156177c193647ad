"""The ledger as users see it: its verbs, and how it is created, opened and recovered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost._types import Ints
from expost.answers import Answers, Subject, response_position
from expost.answers.columns import listed, read_each
from expost.domains import Domain
from expost.errors import ExpostError, InvalidInput, at, expect
from expost.files.durable import followed
from expost.filters import Filter
from expost.ledger.audit import StudyAudit, audit_ledger
from expost.ledger.backend import Backend, Tip
from expost.ledger.batch import Batch, subject_of
from expost.ledger.checkpoint import Checkpoint, CheckpointFile, CheckpointStore
from expost.ledger.digests import first_root
from expost.ledger.engine import Engine
from expost.ledger.errors import Behind, Damaged
from expost.ledger.export import export_ledger
from expost.ledger.history import TURN, Round
from expost.ledger.messages import Receipt, SyncAnswer
from expost.ledger.policy import StudyPolicy
from expost.ledger.postgres import Postgres, checkpoint_path, on_server, shown_url
from expost.ledger.reader import Progress, Reader, Status
from expost.ledger.receive import Incoming, Receive, Sync
from expost.ledger.recovery import Recovery, recover
from expost.ledger.reserve import (
    DEVICE,
    IMPORTED,
    KINDS,
    SIMULATED,
    Outcome,
    Record,
    Register,
    Reserve,
    end_study,
    read_key,
    shown_state,
)
from expost.ledger.simulate import Simulation, replies_of
from expost.ledger.sqlite import Sqlite
from expost.ledger.tables import ACTIVE, BARRED, SUSPENDED, QuarantineRow, SubjectRow
from expost.ledger.verify import Verification, verify_ledger
from expost.panel.naming import check_name, subjects_of
from expost.panel.results import Decisions, Replies
from expost.panel.saturating import Wanted
from expost.panel.searching import Search
from expost.panel.values import values_of
from expost.queries import Query
from expost.sampling import Source, SystemSource, uniform_bytes
from expost.session._secret import Secret
from expost.transcript import Transcript

__all__ = ["Ledger"]

Path_ = str | os.PathLike[str]

# Rows of one commit, for calls that have more.
_ROWS = 1 << 14


class Ledger:
    """Opens an existing ledger; :meth:`create` makes a new one.

    A ledger records the exchanges of a study. Devices draw their responses themselves: the ledger
    reserves an exchange (:meth:`reserve`), hands the reservation to the device when that syncs
    (:meth:`sync`), and records what it sends (:meth:`receive`). Nothing is returned before it is
    durable. A request has an idempotency key: the same key again returns what became of it.

    Any number of processes may read a ledger. One process at a time writes; it claims the ledger
    with its first write. Threads may share one ledger. ``checkpoint`` is the file that reveals a
    rollback, by default next to the database.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "study.db"
    ...     smokes = xp.FiniteSet(["no", "yes"])
    ...     with xp.Ledger.create(place, smokes, filter=xp.BayesianFilter(epsilon=1)) as ledger:
    ...         _ = ledger.register(["ann", "bob"], kind="simulated")
    ...         query = xp.randomized_response(epsilon=1)
    ...         first = ledger.ask(query, ["no", "yes"], key="week 1")
    ...     with xp.Ledger(place) as ledger:
    ...         again = ledger.ask(query, ["no", "yes"], key="week 1")
    ...         first.responses == again.responses, ledger.decide(query).accepted.tolist()
    (True, [False, False])
    """

    def __init__(
        self,
        place: Path_,
        *,
        checkpoint: Path_ | None = None,
        source: Source | None = None,
        search: Search | None = None,
    ) -> None:
        _check_options(source, search)
        store = _checkpoint_store(place, checkpoint)
        backend = _open_backend(place)
        try:
            self._start(backend, store, source, search)
            self._engine.check()
        except BaseException:
            backend.close()
            raise

    @classmethod
    def create(
        cls,
        place: Path_,
        domain: Domain,
        *,
        filter: Filter,
        study: str = "",
        queries: Mapping[str, Query] | None = None,
        checkpoint: Path_ | None = None,
        source: Source | None = None,
        search: Search | None = None,
    ) -> Ledger:
        """Make a new ledger and open it. Its domain and filter never change.

        ``study`` is a title for people. ``queries`` names queries; others are identified by their
        content ids.
        """
        _check_options(source, search)
        random = source or SystemSource()
        policy = StudyPolicy(domain, filter, study, uniform_bytes(random, 16).hex())
        store = _checkpoint_store(place, checkpoint)
        if store.size() is not None or store.ticket_key() is not None:
            raise InvalidInput("already exists; checkpoints are never overwritten", str(store))
        document, root = policy.to_json(), first_root(policy.content_id)
        with at(_shown(place), ": "):
            if on_server(place):
                Postgres.create(str(place), document, root)
            else:
                Sqlite.create(Path(place), document, root)
        create_checkpoint(store, policy, uniform_bytes(SystemSource(), 32))
        ledger = cls(place, checkpoint=checkpoint, source=source, search=search)
        if queries:
            ledger.name_queries(queries)
        return ledger

    @classmethod
    def on(
        cls,
        backend: Backend,
        store: CheckpointStore,
        *,
        source: Source | None = None,
        search: Search | None = None,
        step: Callable[[str], None] = lambda name: None,
    ) -> Ledger:
        """Open the ledger of a backend of your own."""
        ledger = object.__new__(cls)
        ledger._start(backend, store, source, search, step)
        ledger._engine.check()
        return ledger

    def _start(
        self,
        backend: Backend,
        store: CheckpointStore,
        source: Source | None,
        search: Search | None,
        step: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._engine = Engine(backend, store, search, step=step)
        self._reader = Reader(self._engine)
        self._source = source or SystemSource()

    @classmethod
    def recover(
        cls, place: Path_, *, checkpoint: Path_ | None = None, lost: bool = False
    ) -> Recovery:
        """Make a ledger usable whose database is behind its checkpoint, as a restored backup is.

        Every subject is then unconfirmed: it is asked nothing until its device has synced, which
        restores what the database has forgotten. ``lost`` says that the checkpoint or the ticket
        key is lost too; then registrations and suspensions after the backup are forgotten.
        """
        store = _checkpoint_store(place, checkpoint)
        return cls.recover_on(_open_backend(place), store, lost=lost)

    @classmethod
    def recover_on(
        cls, backend: Backend, store: CheckpointStore, *, lost: bool = False
    ) -> Recovery:
        """Recover the ledger of a backend of your own."""
        ledger = object.__new__(cls)
        ledger._start(backend, store, None, None)
        with ledger:
            if not lost and store.ticket_key() is not None:
                try:
                    ledger._engine.check()
                except Behind:
                    pass
                else:
                    reason = "the database is not behind it: there is nothing to recover"
                    raise InvalidInput(reason, str(store))
            return recover(ledger._engine, lost=lost, ticket_key=uniform_bytes(SystemSource(), 32))

    # -- writing

    def register(self, subjects: Any, *, kind: str = DEVICE) -> int:
        """Add subjects of one kind, and return how many are new.

        A subject answers with a device, was asked elsewhere (``"imported"``), or is simulated.
        Registering a subject again changes nothing: no budget is ever reset.
        """
        if kind not in KINDS:
            raise InvalidInput(f"{kind!r} is not one of {', '.join(KINDS)}", "kind")
        names = [_written(subject) for subject in subjects_of(subjects)]
        return sum(
            self._engine.run(Register(self._engine, names[start : start + _ROWS], kind))
            for start in range(0, len(names), _ROWS)
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
                        known = batch.catalog.queries.get(name)
                        if known is not None and known != query:
                            raise InvalidInput("is the name of another query")
                        self._engine.check_query(query)
                        number = batch.catalog.add_query(query, batch.number, name)
                        first = batch.catalog.query_name(number)
                        if first != name:
                            raise InvalidInput(f"is a second name: this query is called {first!r}")

            self._engine.run(job)

    def saturating(
        self, question: Any, *, cap: Any, seeds: Any = None, subjects: Any = None
    ) -> NDArray[np.object_]:
        """Return the saturating query of every subject, as a column of names for the other verbs.

        As :meth:`Panel.saturating`; new queries are recorded. The name is None, which asks nothing,
        if no query ends at the cap.
        """
        names = self._names(subjects)
        with self._reader.reading() as engine:
            tallies = [row.tally for row in self._reader.rows(engine, names)]
            wanted = Wanted.read(question, cap, seeds, engine.kernel, len(names))
            queries, which = engine.saturating.queries(wanted, tallies)

        def job(batch: Batch) -> list[str | None]:
            numbers = [query and batch.catalog.add_query(query, batch.number) for query in queries]
            return [batch.catalog.query_name(number) if number else None for number in numbers]

        return np.array(self._engine.run(job), dtype=object)[which]

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
        """
        key, names = read_key(key), self._names(subjects, DEVICE)
        queries, which = self._queries(query, len(names))
        outcomes: dict[int, Outcome] = {}

        def run(rows: list[int]) -> None:
            some, asked = [names[row] for row in rows], [queries[which[row]] for row in rows]
            job = Reserve(self._engine, DEVICE, key, some, asked, rows)
            outcomes.update(zip(rows, self._engine.run(job), strict=True))

        _run_parts(np.flatnonzero(which >= 0), key, progress, run)
        return tuple(
            outcomes.get(row) or Outcome(subject_of(name), "") for row, name in enumerate(names)
        )

    def receive(
        self, messages: Iterable[bytes | str], *, dry_run: bool = False
    ) -> tuple[Receipt, ...]:
        """Record messages of devices, and return a receipt for each.

        A message that does not fit is quarantined and its subject suspended; what it revealed
        counts. A dry run changes nothing.
        """
        job = Receive(self._engine, [Incoming(content) for content in _contents(messages)])
        return tuple(self._engine.try_out(job) if dry_run else self._engine.run(job))

    def sync(self, requests: Iterable[bytes | str]) -> tuple[SyncAnswer | Receipt, ...]:
        """Answer syncs of devices: record their messages, confirm them, hand out reservations.

        A request that cannot be read is quarantined, and its answer is a receipt.
        """
        return tuple(self._engine.run(Sync(self._engine, _contents(requests))))

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
        """
        key, names = read_key(key), self._names(subjects, IMPORTED, repeated=True)
        queries, which = self._queries(query, len(names))
        positions = _positions(self.domain, queries, which, responses)
        accepted = np.ones(len(names), dtype=np.bool_)
        for turn, own in enumerate(_turns(names), 1):
            turn_key = key if turn == 1 else f"{key}{TURN}{turn}"

            def run(rows: list[int], turn_key: str = turn_key) -> None:
                some, asked = [names[row] for row in rows], [queries[which[row]] for row in rows]
                given = [positions[row] for row in rows]
                job = Record(self._engine, IMPORTED, turn_key, some, asked, rows, given)
                accepted[rows] = self._engine.run(job)

            _run_parts(own, key, progress, run)
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

        For simulated subjects. ``values`` has the value of every subject, as for
        :meth:`Panel.ask`; only the draw of a response looks at them.
        """
        secret = Secret(values)
        del values  # so that no traceback that prints local variables can show it
        key, names = read_key(key), self._names(subjects, SIMULATED)
        queries, which = self._queries(query, len(names))
        held = values_of(self.domain, secret, len(names), queries)
        simulation = Simulation(self._engine, key, queries, held)
        responses = np.zeros(len(names), dtype=np.int64)

        def run(rows: list[int]) -> None:
            own = np.array(rows, dtype=np.int64)
            responses[own] = simulation.ask(names, which, own, self._source)

        _run_parts(np.flatnonzero(which >= 0), key, progress, run)
        subjects_ = tuple(map(subject_of, names))
        return replies_of(self._engine, subjects_, queries, which, responses)

    def resolve(self, subjects: Any, *, suspend: bool = False) -> tuple[Subject, ...]:
        """Decide about suspended subjects, and return those that changed.

        A resolved subject is unconfirmed until its device syncs with a chain that extends the
        recorded one. What its quarantined messages revealed still counts. ``suspend`` instead
        suspends subjects whose messages were held for an operator.
        """
        names = self._names(subjects)

        def job(batch: Batch) -> tuple[Subject, ...]:
            batch.load(SubjectRow, [(name,) for name in names])
            held: set[str] = set()
            if suspend:
                rows = self._engine.backend.scan(QuarantineRow)
                held = {row.subject for row in rows if row.held}
            change = partial(_suspend_held, held=held) if suspend else _resolve
            return tuple(subject_of(name) for name in names if change(batch, name))

        return self._engine.run(job)

    def end(self) -> None:
        """End the study, permanently: nothing more is registered, reserved or imported.

        Answers to open reservations are still recorded: they were released.
        """
        self._engine.run(end_study)

    # -- reading

    @property
    def policy(self) -> StudyPolicy:
        """What was fixed when the ledger was created."""
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
        return tuple(map(subject_of, self._reader.names()))

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
        names = self._names(subjects)
        return self._reader.decide(names, *self._queries(query, len(names)))

    def status(self, subjects: Any = None) -> Status:
        """Return where subjects stand: losses, what remains, states."""
        return self._reader.status(None if subjects is None else self._names(subjects))

    def transcript(self, subject: Subject) -> Transcript:
        """Return what one subject was asked and answered, after checking its chain."""
        (name,) = self._names([subject])
        return self._reader.transcript(name)

    def answers(self) -> Answers:
        """Return what all subjects answered, and who was refused what, for estimates."""
        return self._reader.answers()

    def rounds(self) -> tuple[Round, ...]:
        """Return what became of every query, by key, in the order of first requests."""
        return self._reader.rounds()

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

    def export(self, path: Path_, *, progress: Progress | None = None) -> None:
        """Write everything to a new text file that a stand-alone checker can verify."""
        expect(path, (str, os.PathLike), "the name of a file")
        with self._reader.reading() as engine:
            export_ledger(engine, Path(path), progress or _no_progress)

    def backup(self, path: Path_) -> None:
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

    # -- arguments

    def _names(
        self, subjects: Any, kind: str | None = None, *, repeated: bool = False
    ) -> list[str]:
        """Return the names of subjects (JSON); all, or all of one kind, if none are given."""
        if subjects is None:
            return self._reader.names(kind)
        names = [json.dumps(subject) for subject in subjects_of(subjects)]
        if not repeated and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{twice} appears twice", "subjects")
        return names

    def _queries(self, query: Any, count: int) -> tuple[list[Query], Ints]:
        """Return the distinct queries, and which of them each row is asked; -1 for none."""
        with at("query"):
            if isinstance(query, Query | str):
                one = query if isinstance(query, Query) else self._named(query)
                self._engine.check_query(one)
                return [one], np.zeros(count, dtype=np.int64)
            try:
                column = listed(query)
            except InvalidInput:
                reason = "must be a query, the name of one, or a column of names"
                raise InvalidInput(reason) from None
            if len(column) != count:
                raise InvalidInput(f"got {len(column):,} names for {count:,} subjects")
        which, found = read_each(
            column, lambda name: None if name is None else self._named(name), "query"
        )
        queries = [each for each in found if each is not None]
        for each in queries:
            self._engine.check_query(each)
        numbers = iter(range(len(queries)))
        places = [-1 if each is None else next(numbers) for each in found]
        return queries, np.array(places, dtype=np.int64)[which]

    def _named(self, name: Any) -> Query:
        known = self._engine.catalog.queries
        if str(name) not in known:
            with self._reader.reading():  # which loads what another process has added
                pass
        return self._engine.catalog.named(name)


def _known(batch: Batch, name: str) -> SubjectRow:
    subject = batch.subject(name)
    if subject is None:
        raise InvalidInput(f"no subject {name} in this ledger", "subjects")
    return subject


def _suspend_held(batch: Batch, name: str, *, held: set[str]) -> bool:
    """Suspend a subject with a held message; return whether it was not suspended before."""
    subject = _known(batch, name)
    if name not in held:
        raise InvalidInput(f"{name} has no message that is held", "subjects")
    if subject.state == ACTIVE:
        batch.suspend(subject, "by an operator, because of a held message")
    return subject.state == ACTIVE


def _resolve(batch: Batch, name: str) -> bool:
    """End the suspension of a subject; return whether there was one."""
    subject = _known(batch, name)
    if subject.state == BARRED:
        reason = f"{name} cannot be resolved: a restored backup lost what it revealed"
        raise InvalidInput(reason, "subjects")
    unconfirmed = shown_state(subject, batch.generation) == "unconfirmed"
    if subject.kind == IMPORTED and unconfirmed:
        batch.confirm(subject, "by an operator")
        return True
    if subject.state == SUSPENDED and subject.kind != DEVICE:
        raise InvalidInput(f"{name} has no device that could confirm its chain", "subjects")
    if subject.state == SUSPENDED:
        batch.resolve(subject)
    return subject.state == SUSPENDED


def create_checkpoint(store: CheckpointStore, policy: StudyPolicy, ticket_key: bytes) -> None:
    """Make the checkpoint and the ticket key of a new ledger."""
    store.create_ticket_key(ticket_key)
    checkpoint = Checkpoint(store, policy.content_id)
    checkpoint.claim(create=True)
    try:
        checkpoint.append(Tip(0, first_root(policy.content_id)), [])
    finally:
        checkpoint.close()


def _check_options(source: Source | None, search: Search | None) -> None:
    with at("source"):
        expect(source, Source | None, "a source of randomness, such as InsecureSource(38)")
    with at("search"):
        expect(search, Search | None, "a Search, such as Search(processes=2)")


def _checkpoint_store(place: Path_, checkpoint: Path_ | None) -> CheckpointFile:
    """Return where the checkpoint is: by default next to the database file.

    For a server it is in a folder of the user.
    """
    expect(place, (str, os.PathLike), "the name of a file")
    expect(checkpoint, (str, os.PathLike, type(None)), "the name of a file")
    if checkpoint is not None:
        return CheckpointFile(Path(checkpoint))
    if on_server(place):
        return CheckpointFile(checkpoint_path(str(place)))
    return CheckpointFile(Path(f"{followed(place, strict=False)}.checkpoint"))


def _open_backend(place: Path_) -> Backend:
    try:
        with at(_shown(place), ": "):
            return Postgres.open(str(place)) if on_server(place) else Sqlite.open(followed(place))
    except Damaged as error:
        raise Damaged(f"{_shown(place)}: {error}") from None


def _shown(place: Path_) -> str:
    """Return the name of a ledger for messages; a URL may have a password."""
    return shown_url(str(place)) if on_server(place) else os.fspath(place)


def _written(subject: Subject) -> str:
    if isinstance(subject, str) and not subject.isprintable():
        raise InvalidInput("a name has characters that cannot be printed", "subjects")
    if isinstance(subject, int) and abs(subject) > 1 << 53:
        raise InvalidInput("a number is above 2^53", "subjects")
    return json.dumps(subject)


def _contents(messages: Iterable[bytes | str]) -> list[bytes]:
    if isinstance(messages, (str, bytes)):
        raise InvalidInput("must be a list of messages, not a single one")
    contents = [
        each.encode(errors="surrogatepass") if isinstance(each, str) else each for each in messages
    ]
    for content in contents:
        expect(content, bytes, "messages as bytes")
    return contents


def _run_parts(
    rows: NDArray[np.intp],
    key: str,
    progress: Progress | None,
    run: Callable[[list[int]], None],
) -> None:
    """Run rows in parts of one commit each; an error says how many are recorded."""
    for start in range(0, len(rows), _ROWS):
        part: list[int] = rows[start : start + _ROWS].tolist()
        try:
            run(part)
        except ExpostError as error:
            if not start:
                raise
            raise _partial(error, start, len(rows), key) from None
        if progress is not None:
            progress(start + len(part), len(rows))


def _partial(error: ExpostError, recorded: int, total: int, key: str) -> ExpostError:
    more = f"; {recorded:,} of {total:,} rows are recorded. Repeat the call with the key {key!r}: "
    more += "nothing is recorded twice"
    if isinstance(error, InvalidInput):
        return type(error)(error.reason + more, error.place)
    return type(error)(f"{error}{more}")


def _turns(names: list[str]) -> Iterator[NDArray[np.intp]]:
    """Yield rows such that no subject is in one part twice, in order."""
    seen: dict[str, int] = {}
    turn = np.array([seen.update({name: seen.get(name, 0) + 1}) or seen[name] for name in names])
    for number in range(1, int(turn.max(initial=0)) + 1):
        yield np.flatnonzero(turn == number)


def _positions(domain: Domain, queries: list[Query], which: Ints, responses: Any) -> list[int]:
    """Return the positions of responses among those of their queries."""
    column = listed(responses)
    if len(column) != len(which):
        reason = f"got {len(column):,} for {len(which):,} subjects"
        raise InvalidInput(reason, "responses")
    if (which < 0).any():
        raise InvalidInput("nothing was asked here", f"query: row {int(np.argmin(which)) + 1}")
    likelihoods, found = [query.on(domain) for query in queries], []
    for row, (number, response) in enumerate(zip(which.tolist(), column, strict=True), 1):
        with at(f"row {row}: response"):
            position = response_position(likelihoods[number], response, queries[number].kind)
        found.append(position)
    return found


def _no_progress(done: int, total: int) -> None:
    pass
