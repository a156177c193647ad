"""A durable panel: many subjects under one policy, whose budgets outlive crashes and retries."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import Subject
from expost.domains import Domain
from expost.errors import ExpostError, InvalidInput, at, expect
from expost.filters import Filter
from expost.ledger.asking import Asking, Meant
from expost.ledger.backend import Backend
from expost.ledger.book import Book, Progress, check_options
from expost.ledger.calls import (
    Ready,
    anything_asked,
    apart,
    fits,
    key_of,
    parts,
    recorded_in_part,
    waves,
)
from expost.ledger.checkpoint import Place
from expost.ledger.devices import Receipt, Reservation
from expost.ledger.digests import first_head
from expost.ledger.meaning import asked_in, familiar, names_of, positions_of, whom
from expost.ledger.opening import (
    check,
    checkpoint_place,
    cover,
    create_backend,
    open_backend,
)
from expost.ledger.people import written_name
from expost.ledger.policy import StudyPolicy
from expost.ledger.receiving import Received, incoming
from expost.ledger.records import Change
from expost.ledger.recovering import quarantine
from expost.ledger.requests import TURN, Recorded, Request, Reserved
from expost.ledger.turns import Errand
from expost.panel.naming import check_name, subjects_of
from expost.panel.results import Replies
from expost.panel.saturating import Wanted
from expost.panel.searching import Search
from expost.queries import Query
from expost.sampling import Source, SystemSource, uniform_bytes
from expost.session.secret import Secret

__all__ = ["Ledger"]

Path_ = str | os.PathLike[str]
Ints = NDArray[np.int64]

EVERY = 64
"""A checkpoint is written at every so many commits, if nothing else is said."""

# Subjects that are registered in one commit.
_TOGETHER = 1 << 16


class Ledger(Book):
    """Opens a ledger that is there; :meth:`create` makes a new one.

    The verbs are those of a :class:`Panel`, and everything that is answered, refused or reserved is
    on the disk before it is returned. A request has a ``key``: the same key again returns what
    became of it the first time, whatever happened in between.

    ``checkpoint`` is the file that says, outside of the database, how far it had come; by default
    it is beside it. It is written at ``every`` so many commits. A rollback past the last one is
    noticed when the ledger is opened. With ``every=1`` nothing is released before it.

    Several threads may use one ledger, and several processes may open it; a forked process has to
    open its own.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "study.db"
    ...     smokes = xp.FiniteSet(["no", "yes"])
    ...     with xp.Ledger.create(place, smokes, filter=xp.BayesianFilter(epsilon=1)) as ledger:
    ...         _ = ledger.register(["ann", "bob"])
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
        every: int = EVERY,
        source: Source | None = None,
        search: Search | None = None,
    ) -> None:
        kept = checkpoint_place(place, checkpoint)
        backend = open_backend(place)
        try:
            self._start(backend, kept, every, source, search)
            check(backend, self._core.checkpoint)
            cover(self._core)
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
        every: int = EVERY,
        source: Source | None = None,
        search: Search | None = None,
    ) -> Ledger:
        """Make a new ledger and open it. Domain and filter never change after that.

        ``study`` is a text for people, ``queries`` gives queries their names; others go by their
        content ids.
        """
        check_options(every, source, search)
        nonce = uniform_bytes(source or SystemSource(), 16).hex()
        policy = StudyPolicy(domain, filter, study, nonce)
        kept = checkpoint_place(place, checkpoint)
        if kept.read() is not None:
            raise InvalidInput("a checkpoint is there already", str(getattr(kept, "path", "")))
        create_backend(place, policy)
        ledger = object.__new__(cls)
        ledger._start(open_backend(place), kept, every, source, search)
        ledger._core.checkpoint.write(ledger.tip)
        ledger.name_queries(queries or {})
        return ledger

    @classmethod
    def on(
        cls,
        backend: Backend,
        checkpoint: Place,
        *,
        every: int = EVERY,
        source: Source | None = None,
        search: Search | None = None,
        step: Callable[[str], None] = lambda name: None,
    ) -> Ledger:
        """Open the ledger of a backend of your own, which was created and is checked as any."""
        ledger = object.__new__(cls)
        ledger._start(backend, checkpoint, every, source, search, step)
        check(backend, ledger._core.checkpoint)
        cover(ledger._core)
        return ledger

    @classmethod
    def recover(
        cls,
        place: Path_,
        *,
        checkpoint: Path_ | None = None,
        lost: bool = False,
        everybody: bool = False,
    ) -> list[Subject]:
        """Make a ledger usable that is behind its checkpoint, and say who is closed by that.

        Those are the subjects of whom the checkpoint knows more than the database: they may have
        spent more than is recorded, so they are asked nothing any more.

        A process that was killed may have left commits of which the checkpoint does not know whom
        they concern. Then this refuses, unless ``everybody`` is to be closed. Without a checkpoint
        nobody knows anything: close ``everybody``, or say that it is ``lost`` to close nobody.
        """
        kept = checkpoint_place(place, checkpoint)
        return cls.recover_on(open_backend(place), kept, lost=lost, everybody=everybody)

    @classmethod
    def recover_on(
        cls, backend: Backend, checkpoint: Place, *, lost: bool = False, everybody: bool = False
    ) -> list[Subject]:
        """The same for a backend of your own."""
        ledger = object.__new__(cls)
        ledger._start(backend, checkpoint, 1, None, None)
        with ledger:
            closed = quarantine(ledger._core, lost=lost, everybody=everybody)
            return [json.loads(name) for name in closed]

    def register(self, subjects: Any) -> int:
        """Add subjects, durably, and say how many are new.

        Whoever is there already stays as they are: no budget is ever reset.
        """
        names = subjects_of(subjects)
        for name in names:
            if isinstance(name, str) and not name.isprintable():
                raise InvalidInput("a name has characters that cannot be printed", "subjects")
            if isinstance(name, int) and abs(name) >= 1 << 63:
                raise InvalidInput("a number is too large", "subjects")
        total = 0
        for start in range(0, len(names), _TOGETHER):
            total += self._register(names[start : start + _TOGETHER])
        return total

    def _register(self, names: tuple[Subject, ...]) -> int:
        policy_id = self.policy.content_id
        with self._reading() as core:
            core.begin()
            while True:
                core.check_open()
                numbers = core.people.numbers(core.backend, names)
                new = list(dict.fromkeys(names[row] for row in np.flatnonzero(numbers == 0)))
                if not new:
                    return 0
                first = core.backend.size() + 1
                change = Change(
                    subjects=[
                        (number, written_name(name), first_head(policy_id, name))
                        for number, name in enumerate(new, first)
                    ]
                )
                if core.append(change):
                    return len(new)

    def name_queries(self, queries: Mapping[str, Query]) -> None:
        """Give queries their names, durably, before they are asked.

        A query has one name, and a name is never given to another query. One that was asked
        without a name goes by its content id for good.
        """
        with self._reading() as core, at("queries"):
            core.learn()
            expect(queries, Mapping, "queries by their ids")
            called = {query.content_id: name for name, query in core.words.queries.items()}
            for name, query in queries.items():
                check_name(name, query)
                with at(name):
                    known = core.words.queries.get(name)
                    if known is not None and known != query:
                        raise InvalidInput("is the name of another query")
                    first = called.setdefault(query.content_id, name)
                    if first != name:
                        raise InvalidInput(f"is a second name: this query is called {first!r}")
            core.introduce(queries.items())

    def saturating(
        self, question: Any, *, cap: Any, seeds: Any = None, subjects: Any = None
    ) -> NDArray[np.object_]:
        """The saturating query of every subject, as a column of names for the other verbs.

        As :meth:`Panel.saturating`; queries that are new are recorded, durably. The name is None,
        which asks nothing, for whom no query ends at the cap.
        """
        with self._showing() as core:
            core.begin()
            core.check_open()
            names, numbers = whom(core, names_of(subjects))
            wanted = Wanted.read(question, cap, seeds, core.kernel, len(names))
            packed = core.packed(numbers.tolist())
            queries, which = core.saturating.queries(wanted, packed, core.words)
            core.introduce([("", query) for query in queries if query is not None])
            words = core.words
            found = [None if query is None else words.name_of(query) for query in queries]
            return np.array(found, dtype=object)[which]

    def ask(
        self,
        query: Any,
        values: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> Replies:
        """Answer a query with its noise for everybody whose filter accepts it.

        ``values`` has the value of every subject that is named, as for :meth:`Panel.ask`. All of it
        is recorded durably before anything is returned. Who is refused has spent nothing. A column
        of names of queries may have None, for whoever is asked nothing.
        ``progress`` is called with the number of rows done, and of all.
        """
        # What is read as it comes is read by the thread that brought it.
        at_hand = type(values) in (list, tuple, np.ndarray) and isinstance(query, Query | str)
        secret = Secret(values)
        del values  # so that no traceback that prints local variables can show it
        key, given = key_of(key), names_of(subjects)
        asking = Asking(self._core, key, partial(self._meant, query, given), secret)
        if given is not None and fits(len(given)) and at_hand:
            self._take(asking)
            if progress is not None and len(asking):
                progress(len(asking), len(asking))
        else:
            self._take_all([asking.prepare()], progress)
            asking.finish()
        return asking.replies

    def record(
        self,
        query: Any,
        responses: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.bool_]:
        """Take in responses that devices drew and sent themselves, without a reservation.

        As for :meth:`Panel.record`, whatever arrived was seen, so all of it is kept and counts, and
        who answered what the filter refuses is closed. A subject may be named more than once, for
        one response after the other.
        """
        key = key_of(key)
        names, numbers, asked, which = self._meant(query, names_of(subjects), repeated=True)
        positions = positions_of(self.domain, asked, which, responses)
        turns = []
        for turn, own in enumerate(waves(numbers), 1):
            some = parts(key if turn == 1 else f"{key}{TURN}{turn}", numbers, asked, which, own)
            turns.append([Recorded(part, positions[part.rows]) for part in some])
        self._take_all(turns, progress)
        accepted = np.ones(len(names), dtype=np.bool_)
        for request in chain.from_iterable(turns):
            accepted[request.rows] = self._accepted(request)
        return accepted

    def reserve(
        self,
        query: Any,
        subjects: Any = None,
        *,
        key: str | None = None,
        progress: Progress | None = None,
    ) -> tuple[Reservation | None, ...]:
        """Reserve the next exchange of every subject for its device; None for who is refused.

        Each reservation is durable, and the subject is asked nothing else until its device has
        answered: send it :meth:`Reservation.to_json`, and give what comes back to :meth:`receive`.
        The same key again returns the same reservation.
        """
        key = key_of(key)
        names, numbers, asked, which = self._meant(query, names_of(subjects))
        rows = anything_asked(which)
        requests = [Reserved(part) for part in parts(key, numbers, asked, which, rows)]
        self._take_all([requests], progress)
        result: list[Reservation | None] = [None] * len(names)
        with self._reading() as core:
            outcomes = [outcome for request in requests for outcome in request.outcomes]
            for row, outcome in zip(rows.tolist(), outcomes, strict=True):
                name, number = names[row], int(numbers[row])
                assert outcome is not None
                if not outcome.sequence or outcome.declined:
                    continue
                (head,) = core.backend.heads([number])
                digest = head.digest
                if head.sequence != outcome.sequence - 1:
                    digest = core.head_after(number, outcome.sequence - 1)
                query_of = core.words.query(outcome.query)
                result[row] = Reservation(
                    self.policy.content_id, name, outcome.sequence, digest.hex(), key, query_of
                )
        return tuple(result)

    def receive(self, messages: Iterable[bytes | str]) -> tuple[Receipt, ...]:
        """Take in what devices sent, whatever it is, and say what became of each message.

        All of it is durable when this returns. What does not fit is kept, and its subject closed.
        """
        contents = [
            each.encode(errors="surrogatepass") if isinstance(each, str) else each
            for each in messages
        ]
        for content in contents:
            expect(content, bytes, "messages as bytes")
        with self._reading() as core:
            core.learn()
            found = [incoming(core, content) for content in contents]
        requests = [each for each in found if isinstance(each, Received)]
        for own in apart(requests):
            self._take(Ready(own))
        with self._reading() as core:
            core.show()  # what was kept is not looked up by a key
        return tuple(each.receipt if isinstance(each, Received) else each for each in found)

    def end(self) -> None:
        """Close the study, for good: nobody is asked, registered or reserved any more."""
        with self._reading() as core:
            core.begin()
            while not core.backend.ended():
                core.append(Change(end=True))
            core.show()

    def _take_all(self, turns: Sequence[Sequence[Request]], progress: Progress | None) -> None:
        """Serve requests of one call, each turn when those before it are done.

        A long one is recorded in several commits. What can be known to be wrong is found before the
        first of them; whatever else goes wrong says how much is recorded.
        """
        requests = list(chain.from_iterable(turns))
        total, done = sum(map(len, requests)), 0
        if len(requests) > 1:
            with self._reading() as core:
                core.foresee(requests)
        try:
            for turn in turns:
                for request in turn:
                    self._take(Ready([request]))
                    done += len(request)
                    if progress is not None:
                        progress(done, total)
        except ExpostError as error:
            recorded = sum(len(each) for each in requests if each.served and each.error is None)
            if not recorded:
                raise
            raise recorded_in_part(error, recorded, total, requests[0].key) from None

    def _take(self, errand: Errand) -> None:
        self._check_usable()
        self._turns.take(errand)

    def _meant(
        self, query: Any, given: tuple[Subject, ...] | None, *, repeated: bool = False
    ) -> Meant:
        """Who is asked what. Others may write meanwhile, if nothing has to be read for it."""
        self._check_usable()
        free = familiar(self._core, query, given)
        with nullcontext(self._core) if free else self._reading() as core:
            names, numbers = whom(core, given, repeated=repeated)
            return names, numbers, *asked_in(core, query, len(names))

    def _accepted(self, request: Recorded) -> NDArray[np.bool_]:
        """What the filter said, also when a response was first recorded."""
        repeated = [row for row, found in enumerate(request.outcomes) if found and found.commit]
        if repeated:
            with self._reading() as core:
                closures = dict(core.backend.closures())
            for row in repeated:
                outcome = request.outcomes[row]
                assert outcome is not None
                commit = closures.get(int(request.subjects[row]))
                request.accepted[row] = commit is None or commit > outcome.commit
        return request.accepted
