"""Simulated subjects: reserve, draw responses in this process, record them.

This is how :meth:`Ledger.ask` works. Its caller holds the values of all subjects, so it is for
simulations and tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from expost._types import Ints
from expost.errors import InvalidInput
from expost.ledger._batch import Batch, subject_from_json
from expost.ledger._requests import SIMULATED, Outcome, ReserveJob, subject_state
from expost.ledger.tables import ACTIVE, SubjectRow
from expost.panel._results import Replies
from expost.panel._selection import groups
from expost.panel._values import Values
from expost.sampling import Source
from expost.session._secret import NotCopyable, scrub_traceback

__all__ = ["SimulatedRound", "SimulationJob", "replies_of"]

_FINAL = ("reserved", "refused", "recorded", "declined")


@dataclass(frozen=True, slots=True)
class SimulationJob(ReserveJob):
    """Reserve for all subjects, or for none if one of them cannot be asked now."""

    kind = SIMULATED

    def __call__(self, batch: Batch, rows: Sequence[int]) -> list[Outcome]:
        outcomes = ReserveJob.__call__(self, batch, rows)
        for row, outcome in zip(rows, outcomes, strict=True):
            if outcome.outcome not in _FINAL:
                reason = outcome.reason or f"{outcome.subject!r} is {outcome.outcome}"
                raise InvalidInput(reason, f"row {row + 1}")
        return outcomes

    def record(self, batch: Batch, rows: Sequence[int], positions: Sequence[int]) -> list[int]:
        """Record the responses to open reservations; return their numbers."""
        batch.load(SubjectRow, [(self.names[row],) for row in rows])
        responses = []
        for row, position in zip(rows, positions, strict=True):
            subject = self.subject(batch, row)
            query = batch.catalog.query_number(self.query(row).content_id)
            if subject_state(subject, batch.generation) != ACTIVE:
                raise InvalidInput(f"{subject.name} is suspended or unconfirmed")
            if (subject.reserved, subject.query) != (self.key, query):
                raise InvalidInput("another thread has asked the same subjects; repeat the call")
            responses.append(batch.catalog.add_response(query, position))
            batch.append_exchange(subject, self.key, query, responses[-1])
        return responses


class SimulatedRound(NotCopyable):
    """One call of :meth:`Ledger.ask`: who is asked what, and their values."""

    def __init__(self, job: SimulationJob, values: Sequence[Values], source: Source) -> None:
        self._job = job
        self._values = values
        self._source = source

    def ask(self, rows: Sequence[int]) -> Ints:
        """Ask some rows of the call; return the numbers of their responses, 0 if refused."""
        outcomes: list[Outcome] = self._job.run(rows)
        responses = np.array([outcome.response for outcome in outcomes], dtype=np.int64)
        reserved = np.flatnonzero([outcome.outcome == "reserved" for outcome in outcomes])
        if len(reserved):
            responses[reserved] = self._draw(np.array(rows)[reserved])
        return responses

    @scrub_traceback
    def _draw(self, rows: Ints) -> list[int]:
        """Draw responses to open reservations, and record them."""
        job, positions = self._job, np.empty(len(rows), dtype=object)
        for query_index, members in groups(job.query_indices[rows]):
            compiled = job.engine.kernel.registry.of(job.queries[query_index])
            value_indices = self._values[query_index].indices_of(rows[members])
            positions[members] = compiled.draw(value_indices, self._source)
        record = partial(job.record, rows=rows.tolist(), positions=positions.tolist())
        return job.engine.run_job(record)


def replies_of(job: SimulationJob, responses: Ints) -> Replies:
    """Return what subjects answered, as :meth:`Panel.ask` does."""
    catalog, domain = job.engine.catalog, job.engine.policy.domain
    drawn, answered_rows = [], responses.nonzero()[0]
    for query_index, members in groups(job.query_indices[answered_rows]):
        rows = answered_rows[members]
        positions = catalog.positions_of(responses[rows])
        drawn.append((rows, job.queries[query_index].on(domain).responses, positions))
    query_numbers = [catalog.query_number(query.content_id) for query in job.queries]
    ids = [*map(catalog.query_name, query_numbers), None]  # the last one is at index -1
    subjects = tuple(map(subject_from_json, job.names))
    requests = tuple(ids[query_index] for query_index in job.query_indices.tolist())
    return Replies(subjects, requests, responses > 0, tuple(drawn))
