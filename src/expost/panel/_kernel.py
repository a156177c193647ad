"""Many subjects under one policy, in arrays: decide, and fold what was answered.

Pure in the sense of decisions: they are functions of what was answered and of the query. A state is
changed by :meth:`Kernel.fold` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Floats, Indices
from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.filters import Filter
from expost.filters._many_accounts import current_loss_bounds, worst_loss_bounds
from expost.panel._attributes_state import AttributesState
from expost.panel._box_state import BoxState, Search
from expost.panel._compiled_query import QueryRegistry
from expost.panel._finite_state import SetState
from expost.panel._selection import Selection, groups
from expost.panel._state import State
from expost.queries import Query

__all__ = ["FilterVerdicts", "Kernel", "start_state"]


#: The number of the query that is asked, or one for each subject: -1 for none.
QueryIndices = int | NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class FilterVerdicts:
    """The decisions of a filter, one for each of some subjects."""

    accepted: Bools
    #: Refused because a search could not tell, as only on a box.
    undecided: Bools
    lower: Floats
    #: Bounds of what counts against the budget after the query, at worst.
    upper: Floats

    def both(self, other: FilterVerdicts) -> FilterVerdicts:
        """Return the verdicts of two filters that both have to accept.

        The bounds are those of the filter that refuses, by default of this one.
        """
        refused = ~(other.accepted | other.undecided) & (self.accepted | self.undecided)
        accepted = self.accepted & other.accepted
        can_be = (self.accepted | self.undecided) & (other.accepted | other.undecided)
        return FilterVerdicts(
            accepted,
            can_be & ~accepted,
            np.where(refused, other.lower, self.lower),
            np.where(refused, other.upper, self.upper),
        )


def start_state(registry: QueryRegistry, count: int, *, search: Search | None = None) -> State:
    """Return the state of so many subjects who have answered nothing."""
    domain = registry.domain
    match domain:
        case FiniteSet():
            return SetState(domain, registry, count)
        case Attributes():
            return AttributesState(domain, registry, count)
        case Box():
            return BoxState(domain, registry, count, search or Search())
        case _:
            assert_never(domain)


class Kernel:
    """A domain, a filter, and the queries that were asked under it, by their numbers.

    >>> import numpy as np
    >>> import expost as xp
    >>> kernel = Kernel(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    >>> query = kernel.query_index(xp.randomized_response(epsilon=1))
    >>> state = kernel.start(3)
    >>> kernel.fold(state, query, np.array([0, 1]), np.array([0, 2]))
    >>> kernel.decide(state, query).accepted.tolist()
    [False, True, False]
    """

    def __init__(self, domain: Domain, filter: Filter, search: Search | None = None) -> None:
        filter.check_domain(domain)
        self.domain = domain
        self.search = search or Search()
        self.filter = filter
        self.registry = QueryRegistry(domain)

    def query_index(self, query: Query) -> int:
        """Return the number of a query, which it keeps."""
        return self.registry.of(query).index

    def start(self, count: int) -> State:
        """Return the state of so many subjects who have answered nothing."""
        return start_state(self.registry, count, search=self.search)

    def decide(
        self, state: State, query_indices: QueryIndices, subject_indices: Indices | None = None
    ) -> FilterVerdicts:
        """Decide about a query for some subjects, by default for all; or about one for each.

        Indices are in ascending order, and so are verdicts. Nothing is changed. A filter without a
        delta refuses every query that needs one.
        """
        verdicts = self.decide_by_filter(state, query_indices, subject_indices)
        return reduce(FilterVerdicts.both, (one for _, one in verdicts))

    def decide_by_filter(
        self, state: State, query_indices: QueryIndices, subject_indices: Indices | None = None
    ) -> list[tuple[Filter, FilterVerdicts]]:
        """Return the verdicts of each filter that has to accept."""
        selection = Selection.of(state.count, subject_indices)
        return [
            (filter_, self._decide_all(filter_, state, query_indices, selection))
            for filter_ in self.filter.members
        ]

    def _decide_all(
        self, filter_: Filter, state: State, query_indices: QueryIndices, selection: Selection
    ) -> FilterVerdicts:
        if isinstance(query_indices, int):
            return self._decide(filter_, state, query_indices, selection)
        accepted, undecided = np.empty((2, len(selection)), dtype=np.bool_)
        lower, upper = np.empty((2, len(selection)))
        for query_index, rows in groups(query_indices):
            verdicts = self._decide(filter_, state, query_index, selection.subset(rows))
            accepted[rows], undecided[rows] = verdicts.accepted, verdicts.undecided
            lower[rows], upper[rows] = verdicts.lower, verdicts.upper
        return FilterVerdicts(accepted, undecided, lower, upper)

    def _decide(
        self, filter_: Filter, state: State, query_index: int, selection: Selection
    ) -> FilterVerdicts:
        no_subjects = np.zeros(len(selection), dtype=np.bool_)
        if query_index < 0:
            current = current_loss_bounds(filter_, state.accounts(selection))
            return FilterVerdicts(no_subjects, no_subjects, current.lower, current.upper)
        query = self.registry[query_index].query
        if filter_.pure and query.approximate:
            infinite = np.full(len(selection), np.inf)
            return FilterVerdicts(no_subjects, no_subjects, infinite, infinite)
        worst = worst_loss_bounds(filter_, state.accounts(selection), query)
        settled = worst.against(filter_.budget)
        return FilterVerdicts(settled.within, settled.unknown, worst.lower, worst.upper)

    def remaining(
        self, state: State, suspended: Bools, subject_indices: Indices | None = None
    ) -> Floats:
        """Subtract from the budget what counts against it, rounded down; 0 for suspended subjects.

        If there are several filters, it is the least that remains of a budget.
        """
        every = self.remaining_by_filter(state, suspended, subject_indices)
        return np.asarray(np.minimum.reduce(every))

    def remaining_by_filter(
        self, state: State, suspended: Bools, subject_indices: Indices | None = None
    ) -> list[Floats]:
        """Return what remains of the budget of each filter."""
        accounts = state.accounts(Selection.of(state.count, subject_indices))
        result = []
        for filter_ in self.filter.members:
            upper, budget = current_loss_bounds(filter_, accounts).upper, filter_.budget.enclosure
            remaining = np.maximum(0.0, np.nextafter(budget.lower - upper, -np.inf))
            remaining = np.where(upper == 0, budget.lower, remaining)
            remaining[suspended] = 0.0
            result.append(remaining)
        return result

    def fold(
        self,
        state: State,
        query_indices: QueryIndices,
        positions: NDArray[Any],
        subject_indices: Indices | None = None,
    ) -> None:
        """Add what some subjects answered, by the positions of responses; each subject once.

        Nothing is decided here: what was seen counts.
        """
        selection = Selection.of(state.count, subject_indices)
        if isinstance(query_indices, int):
            state.fold(self.registry[query_indices], positions, selection)
            return
        for query_index, rows in groups(query_indices):
            state.fold(self.registry[query_index], positions[rows], selection.subset(rows))
