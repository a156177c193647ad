"""Read a ledger: statuses and transcripts of subjects, answers, and decisions without effect.

Nothing is shown before the checkpoint covers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_remaining
from expost._types import Floats, Ints, Progress
from expost.answers import Subject
from expost.cards import View
from expost.errors import InvalidInput
from expost.files.tables import ResultTable
from expost.ledger._batch import WITHDRAWN_REASON, subject_from_json
from expost.ledger._digests import first_head, next_head
from expost.ledger._engine import CommitEngine
from expost.ledger._requests import subject_state
from expost.ledger._tallies import increased
from expost.ledger.errors import LedgerDamaged
from expost.ledger.tables import ACTIVE, SUSPENDED, ExchangeRow, StateRow, SubjectRow, check_seal
from expost.numbers import blocks
from expost.panel._results import Bounds, Decisions
from expost.panel._selection import Selection
from expost.queries import Query
from expost.transcript import Transcript

__all__ = ["LedgerReader", "Progress", "Status", "blocks"]


# Subjects whose losses are computed together.
_BLOCK = 1 << 15
# What rounding may leave of a spent budget, in nats.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Status(ResultTable):
    """Losses, remaining budgets and states of subjects, in their order; amounts are in nats."""

    subjects: tuple[Subject, ...]
    #: "device", "imported" or "simulated".
    kinds: tuple[str, ...]
    exchanges: NDArray[np.int64]
    #: The realized loss now, with everything that quarantined messages revealed.
    loss: Bounds
    #: The sum of the epsilons: basic composition.
    spent: Bounds
    #: Budget minus what counts against it, rounded down; 0 unless the subject is active. An open
    #: reservation counts only when its answer arrives.
    remaining: NDArray[np.float64]
    #: "active", "suspended" or "unconfirmed".
    states: tuple[str, ...]
    #: Whether a reservation is open.
    reserved: NDArray[np.bool_]
    #: Whether the study has ended.
    ended: bool

    def __len__(self) -> int:
        return len(self.subjects)

    @property
    def suspended(self) -> NDArray[np.bool_]:
        return np.array([state == "suspended" for state in self.states], dtype=np.bool_)

    @property
    def unconfirmed(self) -> NDArray[np.bool_]:
        return np.array([state == "unconfirmed" for state in self.states], dtype=np.bool_)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        return {
            "subject": list(self.subjects),
            "kind": list(self.kinds),
            "exchanges": self.exchanges,
            "loss": self.loss.upper,
            "basic": self.spent.upper,
            "remaining": self.remaining,
            "state": list(self.states),
            "reserved": self.reserved,
        }

    def _view(self) -> View:
        def row(index: int) -> tuple[object, ...]:
            return (
                self.subjects[index],
                int(self.exchanges[index]),
                self.loss.shown(index),
                format_remaining(float(self.remaining[index])),
                self.states[index] + (", reserved" if self.reserved[index] else ""),
            )

        total = int(self.exchanges.sum())
        title = f"Status({len(self):,} subjects, {total:,} answers"
        title += f", {int(self.suspended.sum()):,} suspended" + (", ended)" if self.ended else ")")
        columns = ("subject", "exchanges", "loss", "remaining", "state")
        return View(title, {}, columns, len(self), row)


class LedgerReader:
    """Reads a ledger through its engine."""

    def __init__(self, engine: CommitEngine) -> None:
        self._engine = engine

    @contextmanager
    def reading(self) -> Iterator[CommitEngine]:
        """Hold the engine while one commit is read, and only if the checkpoint covers it."""
        engine = self._engine
        with engine.lock, ExitStack() as stack:
            engine.check_usable()
            while True:
                engine.ensure_covered()
                snapshot = stack.enter_context(ExitStack())
                snapshot.enter_context(engine.backend.snapshot())
                if engine.is_covered():
                    break
                snapshot.close()  # a writer was faster
            if not engine.claimed:
                engine.refresh()
            yield engine

    def query(self, name: Any) -> Query:
        """Return a query that can be asked in this study; ``name`` is its name, or the query."""
        engine = self._engine
        if isinstance(name, Query):
            query = name
        else:
            if str(name) not in engine.catalog.queries:
                with self.reading():  # loads what another process has added
                    pass
            query = engine.catalog.query_named(name)
        engine.check_query(query)
        return query

    def names(self, kind: str | None = None) -> list[str]:
        """Return the names of subjects (JSON), in the order of registration."""
        with self.reading() as engine:
            if kind is None:
                return list(engine.subject_numbers())
            rows = [check_seal(row) for row in engine.backend.scan(SubjectRow)]
        numbered_names = sorted((row.number, row.name) for row in rows if row.kind == kind)
        return [name for _, name in numbered_names]

    def withdrawn(self, engine: CommitEngine) -> set[str]:
        """Return the names of subjects that have withdrawn (JSON)."""
        states = engine.backend.scan(StateRow)
        return {row.subject for row in states if row.reason == WITHDRAWN_REASON}

    def rows(self, engine: CommitEngine, names: Sequence[str]) -> list[SubjectRow]:
        """Return the rows of subjects."""
        rows_by_key = engine.backend.find(SubjectRow, [(name,) for name in names])
        for row, name in enumerate(names, 1):
            if (name,) not in rows_by_key:
                raise InvalidInput(f"no subject {name} in this ledger", f"subjects: row {row}")
        return [check_seal(rows_by_key[name,]) for name in names]

    def decide(
        self, names: Sequence[str], queries: Sequence[Query], query_indices: Ints
    ) -> Decisions:
        """Decide about a query for each subject, without changing anything."""
        parts = [(np.zeros(0, bool), np.zeros(0, bool), *np.zeros((3, 0)))]
        with self.reading() as engine:
            indices = map(engine.kernel.query_index, queries)
            kernel_indices = np.array([*indices, -1])  # the last one is for being asked nothing
            for block in blocks(len(names), _BLOCK):
                rows = self.rows(engine, names[block])
                state = engine.decider.state([row.tally for row in rows])
                charges = engine.decider.charges([row.extras for row in rows])
                block_indices = kernel_indices[query_indices[block]]
                verdicts = engine.decider.decide(state, charges, block_indices)
                active = self._active(engine, rows)
                free = active & np.array([not row.reserved for row in rows])
                accepted, undecided = verdicts.accepted & free, verdicts.undecided & free
                remaining = _subtract_charges(engine.kernel.remaining(state, ~active), charges)
                parts.append((accepted, undecided, verdicts.lower, verdicts.upper, remaining))
        accepted, undecided, lower, upper, remaining = _concatenate_columns(parts)
        subjects = tuple(map(subject_from_json, names))
        return Decisions(subjects, accepted, undecided, Bounds(lower, upper), remaining)

    def _active(self, engine: CommitEngine, rows: Sequence[SubjectRow]) -> NDArray[np.bool_]:
        """Return which subjects are neither suspended nor unconfirmed."""
        return np.array([subject_state(row, engine.generation) == ACTIVE for row in rows])

    def status(self, names: Sequence[str] | None) -> Status:
        """Return where subjects stand."""
        with self.reading() as engine:
            names = list(engine.subject_numbers()) if names is None else names
            states = engine.backend.scan(StateRow)
            suspended = {row.subject for row in states if row.state == SUSPENDED}
            parts: list[tuple[Any, ...]] = [(*np.zeros((6, 0)), np.zeros(0, dtype=bool))]
            rows: list[SubjectRow] = []
            for block in blocks(len(names), _BLOCK):
                block_rows = self.rows(engine, names[block])
                rows += block_rows
                parts.append(self._block_status(engine, block_rows, suspended))
            generation, ended = engine.generation, engine.ended
        exchanges, lower, upper, least, most, remaining, reserved = _concatenate_columns(parts)
        return Status(
            tuple(subject_from_json(row.name) for row in rows),
            tuple(row.kind for row in rows),
            exchanges.astype(np.int64),
            Bounds(lower, upper),
            Bounds(least, most),
            remaining,
            tuple(subject_state(row, generation) for row in rows),
            reserved.astype(np.bool_),
            ended,
        )

    def _block_status(
        self, engine: CommitEngine, rows: Sequence[SubjectRow], suspended: set[str]
    ) -> tuple[Any, ...]:
        filter_, everyone = engine.policy.filter, Selection(len(rows))
        state = engine.decider.state([row.tally for row in rows])
        # A filter that accepted every exchange bounds what they can have revealed.
        accepted = np.array([row.name not in suspended and not row.extras for row in rows])
        lower, upper = state.losses(everyone)
        least, most = state.spent.around(everyone, None)
        charges = engine.decider.charges([row.extras for row in rows])
        upper = filter_.cap_accepted(lower, upper, accepted)
        most = filter_.cap_spent(least, most, accepted)
        return (
            np.array([row.sequence for row in rows]),
            _subtract_charges(lower, charges),
            increased(upper, charges),
            least,
            increased(most, charges),
            _subtract_charges(engine.kernel.remaining(state, ~self._active(engine, rows)), charges),
            np.array([bool(row.reserved) for row in rows]),
        )

    def transcript(self, name: str) -> Transcript:
        """Return what one subject was asked and answered, after checking its chain."""
        with self.reading() as engine:
            (subject,) = self.rows(engine, [name])
            head = first_head(engine.policy.content_id, subject_from_json(name))
            transcript = Transcript(engine.policy.domain, engine.policy.filter)
            for sequence, row in enumerate(engine.backend.scan(ExchangeRow, (name,)), 1):
                plausible = 1 <= row.response <= engine.catalog.size and row.sequence == sequence
                if not plausible or engine.catalog.response(row.response).query != row.query:
                    raise LedgerDamaged(f"exchange {sequence} of {name} is not what was recorded")
                entry = engine.catalog.response(row.response)
                head = next_head(head, entry.chain_prefix, sequence)
                query = engine.catalog.query(row.query)
                transcript = transcript.add_position(query, entry.position)
            if head != subject.head or len(transcript) != subject.sequence:
                raise LedgerDamaged(f"the chain of subject {name} is broken")
            return transcript


def _subtract_charges(amounts: Floats, charges: Floats) -> Floats:
    """Subtract charges, rounded down, to no less than 0."""
    return np.where(charges > 0, np.fmax(0.0, np.nextafter(amounts - charges, -np.inf)), amounts)


def _concatenate_columns(parts: Sequence[tuple[Any, ...]]) -> Iterator[NDArray[Any]]:
    return (np.concatenate(column) for column in zip(*parts, strict=True))
