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

from expost._types import Floats, Indices
from expost.domains import Domain
from expost.filters._account_arrays import Accounts
from expost.panel.asked import Collections
from expost.panel.log import Counted, Log
from expost.panel.places import Chosen
from expost.panel.question import Question
from expost.panel.questions import Questions
from expost.panel.spent import Spent
from expost.panel.tallies import Tallies
from expost.transcript import Exchange

__all__ = ["State"]


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

    @cached_property
    def tallied(self) -> Tallies:
        """What each subject answered how often; kept from its first use on."""
        return Tallies.of(self.count, self.log)

    def different(self, places: Indices) -> tuple[Indices, Indices]:
        """Some of these subjects, with all of their tallies, and for each which of them is like it.

        It is known who is alike once tallies are kept; before that everybody counts as different.
        """
        if "tallied" not in self.__dict__:
            return places, np.arange(len(places))
        _, first, each = np.unique(
            self.tallied.of_subject[places], return_index=True, return_inverse=True
        )
        return places[first], each

    def fold(self, question: Question, positions: NDArray[Any], chosen: Chosen) -> None:
        """Add the responses of some subjects, by their positions; everybody is there once."""
        codes = question.codes(positions)
        self._absorb(question, codes, chosen)
        self.exchanges[chosen.index] += 1
        self.spent.add(self.questions.charge(question), chosen)
        self.log.add(question, codes, chosen)
        if "collections" in self.__dict__:
            self.collections.add(question, chosen)
        if "tallied" in self.__dict__:
            self.tallied.add(question, codes, chosen)

    def load(self, question: Question, positions: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Add how often everybody gave each of some responses, in no order, from a tally.

        ``counts`` has a row for each position, and a column for each subject.
        """
        assert not self.log.rounds, "tallies come before anything else"
        codes, times = question.codes(positions), counts.sum(axis=0)
        self._absorb_counts(question, codes, counts)
        self.exchanges += times.astype(np.int32)
        self.spent.load(self.questions.charge(question), times)
        self.log.counted.append(Counted(question, codes, counts))
        self.ordered = False

    def _absorb_counts(self, question: Question, codes: Indices, counts: NDArray[np.int64]) -> None:
        """Add them to what is known of ℓ, one response of everybody after the other."""
        for places, given in Counted(question, codes, counts).turns:
            self._absorb(question, given, Chosen(self.count, places))

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
    def _absorb(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        """Add responses to what is known of ℓ."""
