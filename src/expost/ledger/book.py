"""What can be read of an open ledger: who is where, what was answered, and whether it holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost.answers import Answers, Subject
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter
from expost.ledger.auditing import StudyAudit, audited
from expost.ledger.backend import Backend
from expost.ledger.checkpoint import Checkpoint, Place
from expost.ledger.core import Core
from expost.ledger.exporting import export
from expost.ledger.history import History
from expost.ledger.meaning import asked_in, names_of, whom
from expost.ledger.opening import policy_of
from expost.ledger.policy import StudyPolicy
from expost.ledger.records import Head, Tip
from expost.ledger.requests import Request
from expost.ledger.rounds import Round, rounds_of
from expost.ledger.status import Status
from expost.ledger.turns import Turns
from expost.ledger.verifying import Verification, verified
from expost.panel.places import Chosen
from expost.panel.results import Bounds, Decisions
from expost.panel.searching import Search
from expost.panel.state import State
from expost.queries import Query
from expost.sampling import Source, SystemSource
from expost.transcript import Transcript

__all__ = ["Book", "Progress", "check_options"]

Progress = Callable[[int, int], None]

# Subjects whose losses are worked out together.
_BLOCK = 1 << 15


class Book:
    """An open ledger, as far as it is read."""

    def _start(
        self,
        backend: Backend,
        kept: Place,
        every: int,
        source: Source | None,
        search: Search | None,
        step: Callable[[str], None] = lambda name: None,
    ) -> None:
        check_options(every, source, search)
        policy = policy_of(backend)
        checkpoint = Checkpoint(kept, policy.content_id, every)
        self._core = Core(backend, policy, checkpoint, source or SystemSource(), search, step)
        self._turns = Turns(self._serve)
        self._process = os.getpid()
        self._closed = False

    @property
    def policy(self) -> StudyPolicy:
        """What was fixed when the ledger was created."""
        return self._core.policy

    @property
    def domain(self) -> Domain:
        """What a subject's value can be."""
        return self.policy.domain

    @property
    def filter(self) -> Filter:
        """What decides who answers what."""
        return self.policy.filter

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The names of all subjects, in the order in which they were registered."""
        with self._reading() as core:
            return tuple(core.people.names(core.backend))

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that are known, by their names."""
        with self._reading() as core:
            core.learn()
            return dict(core.words.queries)

    @property
    def tip(self) -> Tip:
        """How many commits there are, and the root after them."""
        with self._reading() as core:
            return core.backend.tip()

    def __len__(self) -> int:
        with self._reading() as core:
            return core.backend.size()

    def decide(self, query: Any, subjects: Any = None) -> Decisions:
        """A dry run: who would answer, and the numbers. It changes nothing.

        Not accepted is also whoever is closed, or has an open reservation: until its device has
        answered, asking anything else is an error.

        ``query`` is a query, the name of one, or a column of names with an entry for each subject:
        None for whoever is asked nothing.
        ``subjects`` are by default all of them.
        """
        with self._showing() as core:
            names, numbers = whom(core, names_of(subjects))
            asked, which = asked_in(core, query, len(names))
            parts = []
            for start in range(0, len(numbers), _BLOCK):
                own = slice(start, start + _BLOCK)
                heads = core.backend.heads(numbers[own].tolist())
                state = core.state(core.tallies(heads))
                found = core.decide_queries(state, asked, which[own], heads)
                left = self._remaining(state, heads)
                parts.append((found.accepted, found.undecided, found.lower, found.upper, left))
        if not parts:
            parts.append((np.zeros(0, bool), np.zeros(0, bool), *np.zeros((3, 0))))
        accepted, undecided, lower, upper, left = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        return Decisions(names, accepted, undecided, Bounds(lower, upper), left)

    def status(self, subjects: Any = None) -> Status:
        """Where everybody is: losses, what remains, who is closed."""
        with self._showing() as core:
            names, numbers = whom(core, names_of(subjects))
            columns: list[tuple[Any, ...]] = [(*np.zeros((6, 0)), *np.zeros((2, 0), dtype=bool))]
            for start in range(0, len(numbers), _BLOCK):
                heads = core.backend.heads(numbers[start : start + _BLOCK].tolist())
                state = core.state(core.tallies(heads))
                everyone = Chosen(len(heads))
                columns.append(
                    (
                        np.array([head.sequence for head in heads]),
                        *state.losses(everyone),
                        *state.spent.around(everyone, None),
                        self._remaining(state, heads),
                        np.array([head.closed for head in heads], dtype=np.bool_),
                        np.array([bool(head.reserved) for head in heads]),
                    )
                )
            ended = bool(core.backend.ended())
        exchanges, lower, upper, least, most, left, closed, reserved = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )
        closed = closed.astype(np.bool_)
        return Status(
            names,
            exchanges.astype(np.int64),
            Bounds(lower, self.filter.cap_accepted(lower, upper, ~closed)),
            Bounds(least, self.filter.cap_spent(least, most, ~closed)),
            left,
            closed,
            reserved.astype(np.bool_),
            ended,
        )

    def transcript(self, subject: Subject) -> Transcript:
        """What one subject was asked and answered, in order; its chain is checked."""
        with self._showing() as core:
            _, (number,) = whom(core, names_of([subject]))
            exchanges = core.chain(int(number), *core.backend.heads([int(number)]))
            transcript = Transcript(self.domain, self.filter)
            for row in exchanges:
                transcript = transcript.answered(
                    core.words.query(row.query), core.words.position(row.response)
                )
        return transcript

    def answers(self) -> Answers:
        """What everybody answered, and who was refused what, for estimates and losses."""
        with self._showing() as core, core.backend.snapshot():
            history = History.read(core)
            history.check(core)
            names = core.people.names(core.backend)
            return history.answers(self.domain, self.filter, core.words, names)

    def rounds(self) -> tuple[Round, ...]:
        """What became of every question, by its key, in the order of their first requests."""
        with self._showing() as core, core.backend.snapshot():
            return rounds_of(core)

    def audit(self) -> StudyAudit:
        """Decide about every exchange again, and list what did not fit. It needs polars."""
        with self._showing() as core, core.backend.snapshot():
            return audited(core)

    def verify(self, progress: Progress | None = None) -> Verification:
        """Work everything out again from the exchanges: chains, tallies, decisions and roots.

        ``progress`` is called with the number of subjects done, and of all.
        """
        with self._reading() as core, core.backend.snapshot():
            return verified(core, progress or (lambda done, total: None))

    def export(self, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
        """Write everything to a new text file that a stand-alone checker can verify."""
        expect(path, (str, os.PathLike), "the name of a file")
        with self._showing() as core, core.backend.snapshot():
            export(core, Path(path), progress or (lambda done, total: None))

    def close(self) -> None:
        """Write a checkpoint and let go of the database."""
        if os.getpid() != self._process or self._closed:
            return
        with self._turns.lock:
            self._closed = True
            try:
                self._core.finish()
            finally:
                self._core.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "Ledger(closed)"
        if self._core.stopped:
            return "Ledger(stopped by a write that failed)"
        commits = f"{self.tip.commits:,} commits"
        return f"Ledger({len(self):,} subjects, {commits}, budget {self.filter.limit})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a ledger is not copied; open it again")

    @contextmanager
    def _reading(self) -> Iterator[Core]:
        """The core, while no other thread uses it."""
        self._check_usable()
        with self._turns.lock:
            self._check_usable()
            self._core.check_whole()
            yield self._core

    @contextmanager
    def _showing(self) -> Iterator[Core]:
        """The same, for what tells of responses: a rollback past them would be noticed then."""
        with self._reading() as core:
            yield core
            core.show()

    def _serve(self, requests: Sequence[Request]) -> None:
        self._check_usable()  # somebody may have closed it meanwhile
        self._core.serve(requests)

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise InvalidInput("this ledger was opened in another process; open it in this one")
        if self._closed:
            raise InvalidInput("the ledger was closed; open it again")

    def _remaining(self, state: State, heads: Sequence[Head]) -> NDArray[np.float64]:
        closed = np.array([head.closed for head in heads], dtype=np.bool_)
        return self._core.kernel.remaining(state, closed)


def check_options(every: int, source: Source | None, search: Search | None) -> None:
    """Refuse what cannot be used, before anything is made."""
    with at("every"):
        expect(every, int, "a number of commits")
        if every < 1:
            raise InvalidInput("must be at least 1")
    with at("source"):
        expect(source, Source | None, "a source of randomness, such as InsecureSource(38)")
    with at("search"):
        expect(search, Search | None, "a Search, such as Search(processes=2)")
