"""What many subjects on one domain answered so far.

Every subject has its exchanges and the sum of its epsilons. What its loss is, a subclass for the
kind of domain knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Domain
from expost.filters.many import Accounts
from expost.panel.asked import Collections
from expost.panel.log import Counted, Log
from expost.panel.places import Chosen
from expost.panel.question import Codes, Question
from expost.panel.questions import Questions
from expost.panel.spent import Spent
from expost.transcript import Exchange

__all__ = ["State"]

Floats = NDArray[np.float64]


class State(ABC):
    """The answers of so many subjects. It grows by :meth:`fold`, and is never made smaller."""

    def __init__(self, domain: Domain, questions: Questions, count: int) -> None:
        self.domain = domain
        self.questions = questions
        self.count = count
        self.exchanges = np.zeros(count, dtype=np.int32)
        """How many responses each subject gave."""
        self.spent = Spent(count, questions.grid)
        self.log = Log()
        self.ordered = True
        """Whether the order of all answers is known, without which there are no peaks."""

    @cached_property
    def collections(self) -> Collections:
        """Which queries each subject was asked how often; kept from its first use on."""
        return Collections.of(self.domain, self.count, self.log)

    def fold(self, question: Question, positions: NDArray[Any], chosen: Chosen) -> None:
        """Add the responses of some subjects, by their positions; everybody is there once."""
        codes = question.codes(positions)
        self._absorb(question, codes, chosen)
        self.exchanges[chosen.index] += 1
        self.spent.add(self.questions.charge(question), chosen)
        self.log.add(question, codes, chosen)
        if "collections" in self.__dict__:
            self.collections.add(question, chosen)

    def load(self, question: Question, positions: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Add how often everybody gave each of some responses, in no order, from a tally.

        ``counts`` has a row for each position, and a column for each subject.
        """
        assert "collections" not in self.__dict__, "tallies come before anything else"
        codes, times = question.codes(positions), counts.sum(axis=0)
        self._absorb_counts(question, codes, counts)
        self.exchanges += times.astype(np.int32)
        self.spent.load(self.questions.charge(question), times)
        self.log.load(question, codes, counts)
        self.ordered = False

    def _absorb_counts(self, question: Question, codes: Codes, counts: NDArray[np.int64]) -> None:
        """Add them to what is known of ℓ, one response of everybody after the other."""
        whose, given = Counted(question, codes, counts).everybody
        order = np.argsort(whose, kind="stable")
        whose, given = whose[order], given[order]
        turn = np.arange(len(whose)) - np.searchsorted(whose, whose)
        for each in range(int(turn.max(initial=-1)) + 1):
            own = np.flatnonzero(turn == each)
            self._absorb(question, given[own], Chosen(self.count, whose[own]))

    def exact_exchanges(self, place: int) -> Iterator[Exchange]:
        """What one subject was asked and answered, in order."""
        for question, position in self.log.exchanges(place):
            yield Exchange(question.query, question.responses[position], position)

    @abstractmethod
    def accounts(self, chosen: Chosen) -> Accounts:
        """What filters ask about some subjects."""

    @abstractmethod
    def losses(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the realized losses now, which are never above the sum of the epsilons."""

    @abstractmethod
    def peaks(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """Bounds of the largest realized losses on the way."""

    @abstractmethod
    def _absorb(self, question: Question, codes: Codes, chosen: Chosen) -> None:
        """Add responses to what is known of ℓ."""
