"""The queries that are asked of many subjects, each once, by their numbers."""

from __future__ import annotations

import threading
from typing import assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.panel.question import FiniteQuestion, Question, Responses
from expost.panel.spent import Charge, Grid
from expost.queries import Query, check_query
from expost.tally import unpack_counts
from expost.transcript import Transcript

__all__ = ["Questions"]


class Questions:
    """Queries on one domain, numbered as they come."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.grid = Grid()
        self.responses: Responses = []
        """All responses that occurred, each with its query."""
        self._all: list[tuple[Question, Charge]] = []
        self._lock = threading.Lock()
        self._by_identity: dict[int, Question] = {}
        self._by_content: dict[str, Question] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Question:
        return self._all[number][0]

    def of(self, query: Query) -> Question:
        """The question with this query; equal queries are one."""
        found = self._by_identity.get(id(query))
        if found is not None and found.query is query:
            return found
        check_query(query)
        with self._lock:  # two threads must not give one number to two queries
            found = self._by_content.get(query.content_id)
            if found is None:
                found = self._posed(len(self._all), query)
                ceiling = query.ceiling(self.domain)
                charge = Charge(ceiling, self.grid.admit(ceiling))
                self._all.append((found, charge))  # at once, whatever interrupts this
                self._by_content[query.content_id] = found
                self._by_identity[id(query)] = found
        return found

    def _posed(self, number: int, query: Query) -> Question:
        domain = self.domain
        match domain:
            case FiniteSet():
                return FiniteQuestion(number, query, query.on(domain), self.responses)
            case Attributes():
                return FiniteQuestion(number, query, query.on(domain).on_part, self.responses)
            case Box():
                return Question(number, query, query.on(domain), self.responses)
            case _:
                assert_never(domain)

    def in_order(self, packed: bytes) -> list[tuple[Question, int, int]]:
        """Return the responses of a tally and their counts, sorted by query and position."""
        counted = [
            (*self.responses[response], times) for response, times in unpack_counts(packed).items()
        ]
        return sorted(counted, key=lambda row: (row[0].number, row[1]))

    def transcript(self, packed: bytes) -> Transcript:
        """Return a transcript with the responses of a tally, sorted by query and position."""
        transcript = Transcript(self.domain)
        for question, position, times in self.in_order(packed):
            for _ in range(times):
                transcript = transcript.answered(question.query, position)
        return transcript

    def charge(self, question: Question) -> Charge:
        """What basic composition charges for it."""
        return self._all[question.number][1]
