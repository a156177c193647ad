"""Simulated subjects: reserve, let devices in this process draw, receive.

This is how :meth:`Ledger.ask` works. Its caller holds the values of all subjects, so it is for
simulations and tests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from expost._types import Ints
from expost.answers import Subject
from expost.errors import InvalidInput
from expost.ledger._batch import Batch
from expost.ledger._device_messages import IncomingMessage, ReceiveJob
from expost.ledger._digests import next_head
from expost.ledger._engine import CommitEngine
from expost.ledger._protocol import RECORDED, Message
from expost.ledger._requests import SIMULATED, Outcome, ReserveJob
from expost.ledger.tables import ACTIVE, SubjectRow
from expost.panel._results import Replies
from expost.panel._selection import groups
from expost.panel._values import Values
from expost.queries import Query
from expost.sampling import Source
from expost.session._secret import NotCopyable, scrub_traceback

__all__ = ["SimulatedRound", "replies_of"]

_FINAL = ("reserved", "refused", "recorded", "declined")


@dataclass(frozen=True, slots=True)
class _ReserveAll(ReserveJob):
    """Reserve for all subjects, or for none if one of them cannot be asked now."""

    kind = SIMULATED

    def __call__(self, batch: Batch) -> list[Outcome]:
        outcomes = ReserveJob.__call__(self, batch)
        for row, outcome in zip(self.rows, outcomes, strict=True):
            if outcome.outcome not in _FINAL:
                reason = outcome.reason or f"{outcome.subject!r} is {outcome.outcome}"
                raise InvalidInput(reason, f"row {row + 1}")
        return outcomes


class SimulatedRound(NotCopyable):
    """One call of :meth:`Ledger.ask`: who is asked what, and their values."""

    def __init__(
        self, engine: CommitEngine, key: str, queries: Sequence[Query], values: Sequence[Values]
    ) -> None:
        self._engine = engine
        self._key = key
        self._queries = queries
        self._values = values

    def ask(self, names: Sequence[str], query_indices: Ints, rows: Ints, source: Source) -> Ints:
        """Ask some rows of the call; return the numbers of their responses, 0 if refused."""
        queries = [self._queries[query_index] for query_index in query_indices[rows].tolist()]
        part_names = [names[row] for row in rows.tolist()]
        reserve = _ReserveAll(self._engine, self._key, part_names, queries, rows.tolist())
        outcomes = self._engine.run_job(reserve)
        responses = np.array([outcome.response for outcome in outcomes], dtype=np.int64)
        reserved = np.flatnonzero([outcome.outcome == "reserved" for outcome in outcomes])
        if len(reserved):
            reserved_names = [part_names[index] for index in reserved]
            responses[reserved] = self._draw(reserved_names, query_indices, rows[reserved], source)
        return responses

    @scrub_traceback
    def _draw(
        self, names: Sequence[str], query_indices: Ints, rows: Ints, source: Source
    ) -> list[int]:
        """Draw responses to open reservations, and receive them as messages."""
        drawn = np.empty(len(rows), dtype=object)
        for query_index, members in groups(query_indices[rows]):
            question = self._engine.kernel.registry.of(self._queries[query_index])
            value_indices = self._values[query_index].indices_of(rows[members])
            drawn[members] = question.draw(value_indices, source)
        queries = [self._queries[query_index] for query_index in query_indices[rows].tolist()]
        deliver = _Deliver(self._engine, self._key, names, queries, drawn.tolist())
        return self._engine.run_job(deliver)


@dataclass(frozen=True, slots=True, repr=False)
class _Deliver:
    """Receive the messages of simulated devices; the result has the numbers of responses."""

    engine: CommitEngine
    key: str
    names: Sequence[str]
    queries: Sequence[Query]
    positions: Sequence[int]

    def __call__(self, batch: Batch) -> list[int]:
        batch.load(SubjectRow, [(name,) for name in self.names])
        incoming, responses = [], []
        for name, query, position in zip(self.names, self.queries, self.positions, strict=True):
            subject = batch.subject(name)
            assert subject is not None, "it was reserved before"
            if subject.state != ACTIVE or subject.generation != batch.generation:
                raise InvalidInput(f"{name} was suspended or has to be confirmed")
            query_number = batch.catalog.query_number(query.content_id)
            response = batch.catalog.add_response(query_number, position, batch.commit_number)
            message = self._message(batch, subject, query, response)
            incoming.append(IncomingMessage(b"", message=message))
            responses.append(response)
        receipts = ReceiveJob(self.engine, incoming)(batch)
        if any(receipt.outcome != RECORDED for receipt in receipts):
            raise InvalidInput("another thread has asked the same subjects; repeat the call")
        return responses

    def _message(self, batch: Batch, subject: SubjectRow, query: Query, response: int) -> Message:
        entry, sequence = batch.catalog.response(response), subject.sequence + 1
        head = next_head(subject.head, entry.chain_prefix, sequence)
        answer = query.on(self.engine.policy.domain).responses[entry.position]
        return Message(
            batch.tickets.policy_id, json.loads(subject.name), sequence, subject.head.hex(),
            self.key, query.content_id, "", answer, head.hex(), declined=False,
        )  # fmt: skip


def replies_of(
    engine: CommitEngine,
    names: tuple[Subject, ...],
    queries: Sequence[Query],
    query_indices: Ints,
    responses: Ints,
) -> Replies:
    """Return what subjects answered, as :meth:`Panel.ask` does."""
    answered = responses > 0
    drawn, answered_rows = [], answered.nonzero()[0]
    for query_index, members in groups(query_indices[answered_rows]):
        rows = answered_rows[members]
        positions = engine.catalog.positions_of(responses[rows])
        drawn.append((rows, queries[query_index].on(engine.policy.domain).responses, positions))
    query_numbers = [engine.catalog.query_number(query.content_id) for query in queries]
    ids = [engine.catalog.query_name(query_index) for query_index in query_numbers]
    return Replies(
        names,
        tuple(
            None if query_index < 0 else ids[query_index] for query_index in query_indices.tolist()
        ),
        answered,
        tuple(drawn),
    )
