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
from expost.ledger.batch import Batch
from expost.ledger.digests import next_head
from expost.ledger.engine import Engine
from expost.ledger.messages import RECORDED, Message
from expost.ledger.receive import Incoming, Receive
from expost.ledger.reserve import SIMULATED, Outcome, Reserve
from expost.ledger.tables import ACTIVE, SubjectRow
from expost.panel.kernel import groups
from expost.panel.results import Replies
from expost.panel.values import Values
from expost.queries import Query
from expost.sampling import Source
from expost.session._secret import Single, unseen

__all__ = ["Simulation", "replies_of"]

_FINAL = ("reserved", "refused", "recorded", "declined")


@dataclass(frozen=True, slots=True)
class _ReserveAll(Reserve):
    """Reserve for all subjects, or for none if one of them cannot be asked now."""

    def __call__(self, batch: Batch) -> list[Outcome]:
        outcomes = Reserve.__call__(self, batch)
        for row, outcome in zip(self.rows, outcomes, strict=True):
            if outcome.outcome not in _FINAL:
                reason = outcome.reason or f"{outcome.subject!r} is {outcome.outcome}"
                raise InvalidInput(reason, f"row {row + 1}")
        return outcomes


class Simulation(Single):
    """One call of :meth:`Ledger.ask`: who is asked what, and their values."""

    def __init__(
        self, engine: Engine, key: str, queries: Sequence[Query], values: Sequence[Values]
    ) -> None:
        self._engine = engine
        self._key = key
        self._queries = queries
        self._values = values

    def ask(self, names: Sequence[str], which: Ints, rows: Ints, source: Source) -> list[int]:
        """Ask some rows of the call; return the numbers of their responses, 0 if refused."""
        queries = [self._queries[number] for number in which[rows].tolist()]
        some = [names[row] for row in rows.tolist()]
        reserve = _ReserveAll(self._engine, SIMULATED, self._key, some, queries, rows.tolist())
        outcomes = self._engine.run(reserve)
        waiting = np.array(
            [place for place, each in enumerate(outcomes) if each.outcome == "reserved"], np.intp
        )
        if len(waiting):
            drawn = self._draw([some[place] for place in waiting], which, rows[waiting], source)
            for place, response in zip(waiting.tolist(), drawn, strict=True):
                outcomes[place] = Outcome(outcomes[place].subject, RECORDED, response=response)
        return [outcome.response for outcome in outcomes]

    @unseen
    def _draw(self, names: Sequence[str], which: Ints, rows: Ints, source: Source) -> list[int]:
        """Draw responses to open reservations, and receive them as messages."""
        drawn = np.empty(len(rows), dtype=object)
        for number, own in groups(which[rows]):
            question = self._engine.kernel.questions.of(self._queries[number])
            places = Values.joined([self._values[number].some(rows[own])])
            drawn[own] = question.draw(places, source)
        queries = [self._queries[number] for number in which[rows].tolist()]
        return self._engine.run(_Deliver(self._engine, self._key, names, queries, drawn.tolist()))


@dataclass(frozen=True, slots=True, repr=False)
class _Deliver:
    """Receive the messages of simulated devices; the result has the numbers of responses."""

    engine: Engine
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
            number = batch.catalog.number(query.content_id)
            response = batch.catalog.add_response(number, position, batch.number)
            incoming.append(Incoming(b"", message=self._message(batch, subject, query, response)))
            responses.append(response)
        receipts = Receive(self.engine, incoming)(batch)
        if any(receipt.outcome != RECORDED for receipt in receipts):
            raise InvalidInput("another thread has asked the same subjects; repeat the call")
        return responses

    def _message(self, batch: Batch, subject: SubjectRow, query: Query, response: int) -> Message:
        entry, sequence = batch.catalog.response(response), subject.sequence + 1
        head = next_head(subject.head, entry.link, sequence)
        answer = query.on(self.engine.policy.domain).responses[entry.position]
        return Message(
            batch.tickets.policy_id, json.loads(subject.name), sequence, subject.head.hex(),
            self.key, query.content_id, "", answer, head.hex(), declined=False,
        )  # fmt: skip


def replies_of(
    engine: Engine,
    names: tuple[Subject, ...],
    queries: Sequence[Query],
    which: Ints,
    responses: Ints,
) -> Replies:
    """Return what subjects answered, as :meth:`Panel.ask` does."""
    answered = responses > 0
    given, places = [], answered.nonzero()[0]
    for number, own in groups(which[places]):
        rows = places[own]
        positions = engine.catalog.positions_of(responses[rows])
        given.append((rows, queries[number].on(engine.policy.domain).responses, positions))
    called = [engine.catalog.number(query.content_id) for query in queries]
    ids = [engine.catalog.query_name(number) for number in called]
    return Replies(
        names,
        tuple(None if number < 0 else ids[number] for number in which.tolist()),
        answered,
        tuple(given),
    )
