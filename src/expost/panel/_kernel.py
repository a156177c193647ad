"""Many subjects under one policy, in arrays: decide, and fold what was answered.

Pure in the sense of decisions: they are functions of what was answered and of the query. A state is
changed by :meth:`Kernel.fold` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Floats, Indices
from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.filters import Filter
from expost.filters._many_accounts import LossBounds, held_loss_bounds, worst_loss_bounds
from expost.panel._attributes_state import AttributesState
from expost.panel._box_state import BoxState, Search
from expost.panel._compiled_query import Questions
from expost.panel._finite_state import SetState
from expost.panel._selection import Chosen, groups
from expost.panel._state import State
from expost.queries import Query

__all__ = ["Kernel", "Verdicts", "start"]


Numbers = int | NDArray[np.integer[Any]]
"""The number of the query that is asked, or one for each subject: -1 for none."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """Whether a filter accepts, for each of some subjects, in their order."""

    accepted: Bools
    undecided: Bools
    """Refused because a search could not tell, as only on a box."""
    lower: Floats
    upper: Floats
    """What counts against the budget after the query at worst is between these."""


def start(
    questions: Questions, count: int, *, track_peaks: bool = True, search: Search | None = None
) -> State:
    """Return the state of so many subjects who have answered nothing."""
    domain = questions.domain
    match domain:
        case FiniteSet():
            return SetState(domain, questions, count, track_peaks=track_peaks)
        case Attributes():
            return AttributesState(domain, questions, count, track_peaks=track_peaks)
        case Box():
            return BoxState(domain, questions, count, search or Search())
        case _:
            assert_never(domain)


class Kernel:
    """A domain, a filter, and the queries that were asked under it, by their numbers.

    >>> import numpy as np
    >>> import expost as xp
    >>> kernel = Kernel(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    >>> query = kernel.number(xp.randomized_response(epsilon=1))
    >>> state = kernel.start(3)
    >>> kernel.fold(state, query, np.array([0, 1]), np.array([0, 2]))
    >>> kernel.decide(state, query).accepted.tolist()
    [False, True, False]
    """

    def __init__(self, domain: Domain, filter: Filter, search: Search | None = None) -> None:
        self.domain = domain
        self.search = search or Search()
        self.filter = filter
        self.questions = Questions(domain)

    def number(self, query: Query) -> int:
        """The number of a query, which it keeps."""
        return self.questions.of(query).number

    def start(self, count: int, *, track_peaks: bool = True) -> State:
        """Return the state of so many subjects who have answered nothing."""
        return start(self.questions, count, track_peaks=track_peaks, search=self.search)

    def decide(self, state: State, numbers: Numbers, places: Indices | None = None) -> Verdicts:
        """Decide about a query for some subjects, by default for all; or about one for each.

        Indices are in ascending order, and so are verdicts. Nothing is changed. A filter without a
        delta refuses every query that needs one.
        """
        chosen = Chosen(state.count, places)
        if isinstance(numbers, int):
            return self._decide(state, numbers, chosen)
        accepted, undecided = np.empty((2, len(chosen)), dtype=np.bool_)
        lower, upper = np.empty((2, len(chosen)))
        for number, own in groups(numbers):
            found = self._decide(state, number, chosen.some(own))
            accepted[own], undecided[own] = found.accepted, found.undecided
            lower[own], upper[own] = found.lower, found.upper
        return Verdicts(accepted, undecided, lower, upper)

    def _decide(self, state: State, number: int, chosen: Chosen) -> Verdicts:
        if number < 0:
            now = held_loss_bounds(self.filter, state.accounts(chosen))
            nobody = np.zeros(len(chosen), dtype=np.bool_)
            return Verdicts(nobody, nobody, now.lower, now.upper)
        query = self.questions[number].query
        if self.filter.pure and query.approximate:
            never, nobody = np.full(len(chosen), np.inf), np.zeros(len(chosen), dtype=np.bool_)
            return Verdicts(nobody, nobody, never, never)
        worst = worst_loss_bounds(self.filter, state.accounts(chosen), query)
        settled = worst.against(self.filter.budget)
        return Verdicts(settled.within, settled.unknown, worst.lower, worst.upper)

    def losses(self, state: State, places: Indices | None = None) -> LossBounds:
        """What counts against the budget so far, as the filter counts."""
        return held_loss_bounds(self.filter, state.accounts(Chosen(state.count, places)))

    def remaining(self, state: State, suspended: Bools, places: Indices | None = None) -> Floats:
        """Budget minus what counts against it, rounded down; 0 for suspended subjects."""
        upper = self.losses(state, places).upper
        budget = self.filter.budget.enclosure.lower
        left = np.maximum(0.0, np.nextafter(budget - upper, -np.inf))
        left = np.where(upper == 0, budget, left)
        left[suspended] = 0.0
        return np.asarray(left)

    def fold(
        self,
        state: State,
        numbers: Numbers,
        positions: NDArray[Any],
        places: Indices | None = None,
    ) -> None:
        """Add what some subjects answered, by the positions of responses; everybody once.

        Nothing is decided here: what was seen counts.
        """
        chosen = Chosen(state.count, places)
        if isinstance(numbers, int):
            state.fold(self.questions[numbers], positions, chosen)
            return
        for number, own in groups(numbers):
            state.fold(self.questions[number], positions[own], chosen.some(own))
