"""Many subjects on a box: every loss is searched for, once for each tally.

Linear queries alone are worked out for all tallies of the same queries at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._types import Bools, Floats, Indices
from expost.domains import Box
from expost.filters._account import WorstCase
from expost.filters._account_arrays import Accounts, Amounts, Case, Settled
from expost.numbers import Enclosure, Nats
from expost.panel.places import Chosen
from expost.panel.question import Question
from expost.panel.questions import Questions
from expost.panel.searching import Given, Search, Task, odometer_of
from expost.panel.state import State
from expost.panel.totals import by_queries, spent
from expost.queries import Query

__all__ = ["BoxState"]

Key = tuple[tuple[int, int], ...]
"""A tally: the numbers of questions and the positions of responses, in their order."""

# Preparing to do all at once takes as long as two searches.
_ENOUGH = 3


class BoxState(State):
    """What was answered; what was searched for is kept."""

    domain: Box

    def __init__(self, domain: Box, questions: Questions, count: int, search: Search) -> None:
        super().__init__(domain, questions, count)
        self.search = search
        self._found: dict[Any, Enclosure] = {}

    def _absorb(self, question: Question, codes: Indices, chosen: Chosen) -> None:
        pass

    def accounts(self, chosen: Chosen) -> Accounts:
        return _BoxAccounts(self, chosen)

    def losses(self, chosen: Chosen) -> tuple[Floats, Floats]:
        return self.bounds("loss", chosen)

    def peaks(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """As for losses, but here the order matters."""
        return self.bounds("peak", chosen, ordered=True)

    def tallies(self, chosen: Chosen, ordered: bool = False) -> tuple[list[Key], Indices]:
        """The different tallies of some subjects, and whose is which."""
        found: dict[Key, int] = {}
        which = []
        for place in chosen.of(np.arange(len(chosen))).tolist():
            own = [(each.number, position) for each, position in self.log.exchanges(place)]
            key = tuple(own if ordered else sorted(own))
            which.append(found.setdefault(key, len(found)))
        return list(found), np.array(which, dtype=np.intp)

    def given(self, key: Key) -> Given:
        """A tally by its queries."""
        return tuple((self.questions[number].query, position) for number, position in key)

    def bounds(
        self,
        what: str,
        chosen: Chosen,
        query: Query | None = None,
        budget: Nats | None = None,
        ordered: bool = False,
    ) -> tuple[Floats, Floats]:
        """Lower and upper bounds of what is searched for."""
        keys, which = self.tallies(chosen, ordered)
        asked = None if query is None else self.questions.of(query).number
        new = [key for key in keys if (what, asked, key) not in self._found]
        if what in ("loss", "worst_after"):
            new = self._together(what, new, query, budget)
        tasks = [Task(self.domain, self.given(key), what, query, budget) for key in new]
        for key, found in zip(new, self.search.all(tasks), strict=True):
            self._found[what, asked, key] = found
        ends = [self._found[what, asked, key] for key in keys]
        lower = np.array([each.lower for each in ends], dtype=np.float64)
        upper = np.array([each.upper for each in ends], dtype=np.float64)
        return lower[which], upper[which]

    def _together(
        self, what: str, keys: Sequence[Key], query: Query | None, budget: Nats | None
    ) -> list[Key]:
        """Work out what can be done for many tallies at once, and return what cannot."""
        left: list[Key] = []
        by_queries: dict[tuple[int, ...], list[Key]] = {}
        for key in keys:
            by_queries.setdefault(tuple(number for number, _ in key), []).append(key)
        asked = None if query is None else self.questions.of(query).number
        for numbers, own in by_queries.items():
            ends = self._spreads(numbers, own, query) if numbers and len(own) >= _ENOUGH else None
            if ends is None:
                left += own
                continue
            for key, lower, upper in zip(own, *ends.tolist(), strict=True):
                limit = None if budget is None else budget.enclosure
                if limit is not None and lower <= limit.upper and upper > limit.lower:
                    left.append(key)  # which is searched for until it is on one side
                else:
                    self._found[what, asked, key] = Enclosure(lower, upper)
        return left

    def _spreads(
        self, numbers: tuple[int, ...], keys: list[Key], query: Query | None
    ) -> Floats | None:
        """Lower and upper ends for tallies of the same queries, now or at worst after a query."""
        from expost.loss.many_concave import concave_spreads  # brings a compiler along

        queries = [self.questions[number].query for number in numbers]
        rows = np.array([[position for _, position in key] for key in keys])
        gap = self.search.effort.gap
        if query is None:
            return concave_spreads(self.domain, queries, rows, gap)
        if len(query.on(self.domain).responses) != 2:
            return None
        both = []
        for response in (0, 1):
            after = np.column_stack([rows, np.full(len(rows), response)])
            ends = concave_spreads(self.domain, [*queries, query], after, gap)
            if ends is None:
                return None
            both.append(ends)
        return np.asarray(np.maximum(*both))


@dataclass(frozen=True, eq=False)
class _BoxAccounts(Accounts):
    """Some subjects of a state."""

    state: BoxState
    chosen: Chosen

    def __len__(self) -> int:
        return len(self.chosen)

    def some(self, chosen: Bools) -> _BoxAccounts:
        return _BoxAccounts(self.state, self.chosen.some(np.flatnonzero(chosen)))

    def loss(self) -> Amounts:
        return _searched(*self.state.losses(self.chosen))

    def spent(self, query: Query | None = None) -> Amounts:
        return spent(self.state, self.chosen, query)

    def by_queries(self, key: Any, case: Case) -> Amounts:
        return by_queries(self.state, self.chosen, key, case)

    def worst_after(self, query: Query, budget: Nats) -> Amounts:
        return self._unless_surely("worst_after", query, budget)

    def plus_epsilon(self, query: Query, budget: Nats) -> Amounts:
        return self._unless_surely("plus_epsilon", query, budget)

    def _unless_surely(self, what: str, query: Query, budget: Nats) -> Amounts:
        """No search for whose epsilons fit: neither number is above their sum."""
        basic = self.spent(query)
        surely = basic.against(budget).within
        if surely.all():
            return _at_most(basic)
        others = self.chosen.some(np.flatnonzero(~surely))
        searched = _searched(*self.state.bounds(what, others, query, budget))
        return _at_most(basic).where(surely, searched)

    def one_by_one(self, case: Case) -> Amounts:
        state = self.state
        keys, which = state.tallies(self.chosen)
        effort = state.search.effort
        cases = [case(odometer_of(state.domain, state.given(key), effort)) for key in keys]
        return _of_cases(cases, which)


def _at_most(amounts: Amounts) -> Amounts:
    """Amounts that are known from above only."""
    return Amounts(np.zeros(len(amounts.upper)), amounts.upper, amounts.settle)


def _searched(lower: Floats, upper: Floats) -> Amounts:
    """What a search found: where the budget is between, nobody knows."""

    def settle(places: Indices, budget: Nats) -> Settled:
        cases = [
            WorstCase(Enclosure(float(lower[place]), float(upper[place])))
            for place in places.tolist()
        ]
        return _settled(cases, budget)

    return Amounts(lower, upper, settle)


def _of_cases(cases: Sequence[WorstCase], which: Indices) -> Amounts:
    def settle(places: Indices, budget: Nats) -> Settled:
        return _settled([cases[number] for number in which[places].tolist()], budget)

    lower = np.array([case.loss.lower for case in cases], dtype=np.float64)
    upper = np.array([case.loss.upper for case in cases], dtype=np.float64)
    return Amounts(lower[which], upper[which], settle)


def _settled(cases: Sequence[WorstCase], budget: Nats) -> Settled:
    within = np.array([case.within(budget) for case in cases], dtype=np.bool_)
    unknown = np.array([case.undecided(budget) for case in cases], dtype=np.bool_)
    return Settled(within, unknown)
