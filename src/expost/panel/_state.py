"""What many subjects on one domain answered so far.

Every subject has its exchanges and the sum of its epsilons. What its loss is, a subclass for the
kind of domain knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Floats, Indices, Ints
from expost.domains import Domain
from expost.filters._many_accounts import Accounts
from expost.panel._compiled_query import Question, Questions
from expost.panel._log import Counted, Log
from expost.panel._query_costs import QueryOnlyAccount, Spent
from expost.panel._selection import Chosen, groups
from expost.tally import Summand, TallyIndex, pack_counts
from expost.transcript import Exchange

__all__ = ["State"]


# The most counts that are written out as a table, over all subjects of a state.
_LARGEST_COUNTS = 1 << 22


class State(ABC):
    """The answers of so many subjects. It grows by :meth:`fold`, and is never made smaller."""

    def __init__(
        self, domain: Domain, questions: Questions, count: int, *, track_peaks: bool = True
    ) -> None:
        self.domain = domain
        self.questions = questions
        self.count = count
        self.exchanges = np.zeros(count, dtype=np.int32)
        """How many responses each subject gave."""
        self.spent = Spent(count, questions.grid)
        self.log = Log()
        self.track_peaks = track_peaks
        """Whether the loss is computed after every exchange, without which there are no peaks."""

    @cached_property
    def tallies(self) -> TallyIndex:
        """The responses of each subject; maintained from the first use on."""
        responses, owners = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
        for question, places, codes in self.log.turns:
            responses.append(question.response_indices[codes])
            owners.append(places)
        owner_of = np.concatenate(owners)
        order = np.argsort(owner_of, kind="stable")
        starts = np.searchsorted(owner_of[order], np.arange(self.count + 1))
        return TallyIndex.of_rows(np.concatenate(responses)[order], starts)

    @cached_property
    def query_tallies(self) -> TallyIndex:
        """The queries that each subject was asked; maintained from the first use on."""
        tallies = TallyIndex(self.count)
        for question, places, _ in self.log.turns:
            tallies.extend(places, question.number)
        return tallies

    @cached_property
    def _query_accounts(self) -> list[QueryOnlyAccount]:
        return [QueryOnlyAccount(self.domain, None, None)]

    def query_account(self, tally: int) -> QueryOnlyAccount:
        """Return the account of a tally of queries."""
        accounts, tallies = self._query_accounts, self.query_tallies
        for parent, number in tallies.parents[len(accounts) :]:
            query = self.questions[number].query
            accounts.append(QueryOnlyAccount(self.domain, accounts[parent], query))
        return accounts[tally]

    def tally(self, place: int) -> bytes:
        """Return the tally of one subject, packed."""
        if "tallies" in self.__dict__:
            return self.tallies.packed[int(self.tallies.of_subject[place])]
        responses = Counter(
            int(question.response_indices[question.code(position)])
            for question, position in self.log.exchanges(place)
        )
        return pack_counts(responses)

    def summands(self, tally: int) -> list[Summand]:
        """Return the responses of a tally, sorted by query and position."""
        counted = self.questions.in_order(self.tallies.packed[tally])
        return [Summand(question.query, position, times) for question, position, times in counted]

    def different(self, places: Indices) -> tuple[Indices, Indices]:
        """Return one of these subjects for each tally, and for each subject which one.

        Before tallies are maintained, every subject counts as different.
        """
        if "tallies" not in self.__dict__:
            return places, np.arange(len(places))
        _, first, index_of = np.unique(
            self.tallies.of_subject[places], return_index=True, return_inverse=True
        )
        return places[first], index_of

    def fold(self, question: Question, positions: NDArray[Any], chosen: Chosen) -> None:
        """Add the responses of some subjects, by their positions; everybody is there once."""
        codes = question.codes(positions)
        self._absorb(question, codes, chosen)
        self.exchanges[chosen.index] += 1
        self.spent.add(self.questions.charge(question), chosen)
        self.log.add(question, codes, chosen)
        if "query_tallies" in self.__dict__:
            self.query_tallies.extend(chosen.index, question.number)
        if "tallies" in self.__dict__:
            self.tallies.extend(chosen.index, question.response_indices[codes])

    def load(
        self,
        numbers: Indices,
        positions: NDArray[Any],
        responses: Codes,
        owners: Indices,
        times: Ints | None = None,
    ) -> None:
        """Add the tallies of all subjects to a state that has no answers yet.

        Args:
            numbers: For each distinct response, the number of its question.
            positions: For each distinct response, its position.
            responses: For each row, the index of a distinct response.
            owners: For each row, the place of the subject who gave it, ascending.
            times: For each row, how often; by default once.
        """
        assert not self.log.rounds, "tallies come before anything else"
        assert not self.track_peaks, "tallies have no order"
        codes = np.empty(len(numbers), dtype=np.intp)
        for number, rows in groups(numbers):
            codes[rows] = self.questions[number].codes(positions[rows])
        questions = [self.questions[number] for number in numbers.tolist()]
        self.log.counted = counted = Counted(questions, codes, responses, owners, times)
        if len(codes) * self.count > _LARGEST_COUNTS:
            for question, places, given in counted.turns:
                chosen = Chosen(self.count, places)
                self._absorb(question, given, chosen)
                self.exchanges[places] += 1
                self.spent.add(self.questions.charge(question), chosen)
            return
        table = counted.table(self.count)
        for number, rows in groups(numbers):
            question, counts = self.questions[number], table[rows]
            total = counts.sum(axis=0)
            self._absorb_counts(question, codes[rows], counts, total)
            self.exchanges += total.astype(np.int32)
            self.spent.load(self.questions.charge(question), total.astype(np.int64))

    @abstractmethod
    def _absorb_counts(
        self, question: Question, codes: Indices, counts: Floats, total: Floats
    ) -> None:
        """Add counts to what is known of ℓ, with a row for each code; ``total`` is their sum."""

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
        """Bounds of the largest realized losses on the way, if peaks are tracked."""

    @abstractmethod
    def _absorb(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        """Add responses to what is known of ℓ."""
