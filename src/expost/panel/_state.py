"""The answers of many subjects on one domain so far.

Every subject has its exchanges and the sum of its epsilons. What its loss is, a subclass for the
kind of domain knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Codes, Floats, Indices, Ints
from expost.domains import Domain
from expost.filters._account import WorstCase
from expost.filters._many_accounts import Accounts, BudgetComparison, Case, LossBounds
from expost.loss import Odometer
from expost.numbers import Nats
from expost.panel._compiled_query import CompiledQuery, QueryRegistry
from expost.panel._log import Counted, ResponseLog
from expost.panel._query_costs import QueryOnlyAccount, Spent
from expost.panel._selection import Selection, groups
from expost.queries import Query
from expost.solver import Effort
from expost.tally import Summand, TallyIndex, distinct_integers, pack_counts
from expost.transcript import Exchange

__all__ = ["State", "StateAccounts"]


class State(ABC):
    """The answers of so many subjects. It grows by :meth:`fold`, and is never made smaller."""

    #: The effort of a search for the loss of one subject, if losses are searched for.
    effort: Effort | None = None

    def __init__(self, domain: Domain, registry: QueryRegistry, count: int) -> None:
        self.domain = domain
        self.registry = registry
        self.count = count
        #: The number of responses of each subject.
        self.exchanges = np.zeros(count, dtype=np.int32)
        self.spent = Spent(count, registry.grid)
        self.log = ResponseLog()

    @cached_property
    def tallies(self) -> TallyIndex:
        """The responses of each subject; maintained from the first use on."""
        responses, owners = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
        for compiled, indices, codes in self.log.single_responses:
            responses.append(compiled.response_indices[codes])
            owners.append(indices)
        owner_of = np.concatenate(owners)
        order = np.argsort(owner_of, kind="stable")
        starts = np.searchsorted(owner_of[order], np.arange(self.count + 1))
        return TallyIndex.of_rows(np.concatenate(responses)[order], starts)

    @cached_property
    def query_tallies(self) -> TallyIndex:
        """The queries that each subject was asked; maintained from the first use on."""
        tallies = TallyIndex(self.count)
        for compiled, indices, _ in self.log.single_responses:
            tallies.extend(indices, compiled.index)
        return tallies

    @cached_property
    def _query_accounts(self) -> list[QueryOnlyAccount]:
        return [QueryOnlyAccount(self.domain, None, None)]

    def query_account(self, tally: int) -> QueryOnlyAccount:
        """Return the account of a tally of queries."""
        accounts, tallies = self._query_accounts, self.query_tallies
        for parent, query_index in tallies.parents[len(accounts) :]:
            query = self.registry[query_index].query
            accounts.append(QueryOnlyAccount(self.domain, accounts[parent], query))
        return accounts[tally]

    def exact_spent_bounds(self) -> Floats:
        """Return the sum of the epsilons of every subject, rounded up once."""
        exact = self.spent.exact(Selection(self.count))
        if exact is not None:
            sums, index_of = [Nats(total) for total in exact[0]], exact[1]
        else:
            tallies, index_of = distinct_integers(self.query_tallies.of_subject)
            sums = [self.query_account(tally).exact_spent for tally in tallies.tolist()]
        return np.array([total.enclosure.upper for total in sums])[index_of]

    def tally(self, subject_index: int) -> bytes:
        """Return the tally of one subject, packed."""
        if "tallies" in self.__dict__:
            return self.tallies.packed[int(self.tallies.of_subject[subject_index])]
        responses = Counter(
            int(compiled.response_indices[compiled.code(position)])
            for compiled, position in self.log.exchanges(subject_index)
        )
        return pack_counts(responses)

    def summands(self, tally: int) -> list[Summand]:
        """Return the responses of a tally, sorted by query and position."""
        counted = self.registry.in_order(self.tallies.packed[tally])
        return [Summand(compiled.query, position, times) for compiled, position, times in counted]

    def distinct_by_tally(self, indices: Indices) -> tuple[Indices, Indices]:
        """Return one of these subjects for each tally, and for each subject which one.

        Before tallies are maintained, every subject counts as different.
        """
        if "tallies" not in self.__dict__:
            return indices, np.arange(len(indices))
        _, first, index_of = np.unique(
            self.tallies.of_subject[indices], return_index=True, return_inverse=True
        )
        return indices[first], index_of

    def fold(self, compiled: CompiledQuery, positions: NDArray[Any], selection: Selection) -> None:
        """Add the responses of some subjects, by their positions; each subject appears once."""
        codes = compiled.codes(positions)
        self._absorb(compiled, codes, selection)
        self.exchanges[selection.subscript] += 1
        self.spent.add(compiled.charge, selection)
        self.log.add(compiled, codes, selection)
        if "query_tallies" in self.__dict__:
            self.query_tallies.extend(selection.subscript, compiled.index)
        if "tallies" in self.__dict__:
            self.tallies.extend(selection.subscript, compiled.response_indices[codes])

    def load(
        self,
        query_indices: Indices,
        positions: NDArray[Any],
        responses: Codes,
        starts: Indices,
        times: Ints | None = None,
    ) -> None:
        """Add the tallies of all subjects to a state that has no answers yet.

        Args:
            query_indices: For each distinct response, the index of its query.
            positions: For each distinct response, its position.
            responses: For each row, the index of a distinct response.
            starts: The first row of each subject; the last entry is the number of rows.
            times: For each row, how often; by default once.
        """
        assert not self.log.rounds, "tallies come before anything else"
        codes = np.empty(len(query_indices), dtype=np.intp)
        for query_index, rows in groups(query_indices):
            codes[rows] = self.registry[query_index].codes(positions[rows])
        compiled_queries = [self.registry[query_index] for query_index in query_indices.tolist()]
        if times is None:
            times = np.broadcast_to(np.int64(1), len(responses))
        counted = Counted(compiled_queries, codes, responses, starts, times)
        self.log.counted = counted
        self._absorb_counted(counted)
        self.exchanges = counted.exchanges.astype(np.int32)
        charges = [compiled.charge for compiled in compiled_queries]
        self.spent.load(counted.sums(self.spent.steps(charges)))
        off_grid = np.array([not charge.on_grid for charge in charges])
        if off_grid.any():
            for compiled, indices, _ in counted.subset(off_grid).single_responses:
                self.spent.add(compiled.charge, Selection(self.count, indices))

    @abstractmethod
    def _absorb_counted(self, counted: Counted) -> None:
        """Add counted responses to what is known of ℓ."""

    def exact_exchanges(self, subject_index: int) -> Iterator[Exchange]:
        """Return the exchanges of one subject, in order."""
        for compiled, position in self.log.exchanges(subject_index):
            yield Exchange(compiled.query, compiled.responses[position], position)

    @abstractmethod
    def accounts(self, selection: Selection) -> Accounts:
        """Return the accounts of some subjects, as filters need them."""

    @abstractmethod
    def losses(self, selection: Selection) -> tuple[Floats, Floats]:
        """Bound the realized losses now, which are never above the sum of the epsilons."""

    @abstractmethod
    def peaks(self, selection: Selection) -> tuple[Floats, Floats]:
        """Bound the peaks: the largest realized losses. A tally has no order, and no peak."""

    @abstractmethod
    def _absorb(self, compiled: CompiledQuery, codes: Indices, selection: Selection) -> None:
        """Add responses to what is known of ℓ."""


@dataclass(frozen=True, eq=False)
class StateAccounts(Accounts):
    """The accounts of some subjects of a state."""

    state: State
    selection: Selection

    def __len__(self) -> int:
        return len(self.selection)

    def subset(self, mask: Bools) -> Self:
        return type(self)(self.state, self.selection.subset(np.flatnonzero(mask)))

    def spent(self, query: Query | None = None) -> LossBounds:
        """Bound the sums of the epsilons now, or with one more query.

        On a grid they are compared exactly, each sum once; else each collection of queries once.
        """
        state = self.state
        charge = None if query is None else state.registry.of(query).charge
        lower, upper = state.spent.around(self.selection, charge)

        def settle(rows: Indices, budget: Nats) -> BudgetComparison:
            subset = self.selection.subset(rows)
            exact = state.spent.exact(subset, charge)
            if exact is not None:
                sums, index_of = exact
                within = [Nats(total) <= budget for total in sums]
            else:
                added = Nats() if charge is None else charge.amount
                tallies, index_of = distinct_integers(
                    state.query_tallies.of_subject[subset.subscript]
                )
                accounts = map(state.query_account, tallies.tolist())
                within = [account.exact_spent + added <= budget for account in accounts]
            return BudgetComparison.decided(np.array(within, dtype=np.bool_)[index_of])

        return LossBounds(lower, upper, settle)

    def by_queries(self, key: Any, case: Case) -> LossBounds:
        tallies = self.state.query_tallies
        distinct, index_of = distinct_integers(tallies.of_subject[self.selection.subscript])
        cases_by_tally: dict[int, WorstCase] = tallies.results(key)
        for tally in distinct.tolist():
            if tally not in cases_by_tally:
                cases_by_tally[tally] = case(self.state.query_account(tally))
        return LossBounds.of_cases([cases_by_tally[tally] for tally in distinct.tolist()], index_of)

    def one_by_one(self, case: Case) -> LossBounds:
        state = self.state
        distinct, index_of = distinct_integers(state.tallies.of_subject[self.selection.subscript])
        packed = [state.tallies.packed[tally] for tally in distinct.tolist()]
        transcripts = map(state.registry.transcript, packed)
        cases = [case(Odometer(transcript, effort=state.effort)) for transcript in transcripts]
        return LossBounds.of_cases(cases, index_of)
