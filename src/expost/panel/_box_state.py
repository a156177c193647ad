"""Many subjects on a box: every loss is searched for, once for each tally.

Linear queries alone are worked out for all tallies of the same queries at once. Then every
log-likelihood is concave: its smallest value is at a corner, so those of all tallies are one matrix
product; its largest one takes a few gradients each. Proof: docs/theory/extrema.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import shorten
from expost._types import Bools, Floats, Indices, Progress
from expost.domains import Box
from expost.errors import InvalidInput
from expost.filters._account import WorstCase
from expost.filters._many_accounts import Accounts, BudgetComparison, LossBounds
from expost.loss import Odometer
from expost.numbers import UNIT, Enclosure, Nats, blocks, up
from expost.panel._compiled_query import CompiledQuery, QueryRegistry
from expost.panel._log import Counted
from expost.panel._selection import Selection
from expost.panel._state import State, StateAccounts
from expost.queries import Query
from expost.solver import (
    ROUNDING_ALONE,
    BoxColumns,
    Effort,
    TermArrays,
    load_kernels,
    pack_both_directions,
)
from expost.solver.kernels.layout import FOOT, H, PackedProblem
from expost.tally import distinct_integers
from expost.terms import ScoreTerm
from expost.transcript import Transcript

__all__ = ["BoxState", "Search", "Task", "concave_spreads"]


# Preparing to compute all at once takes as long as two searches.
_MIN_BATCH = 3


class BoxState(State):
    """The answers of many subjects on a box, and the results of all searches by tally."""

    domain: Box

    def __init__(self, domain: Box, registry: QueryRegistry, count: int, search: Search) -> None:
        super().__init__(domain, registry, count)
        self.search = search
        self.effort = search.effort

    def _absorb(self, compiled: CompiledQuery, codes: Indices, selection: Selection) -> None:
        pass

    def _absorb_counted(self, counted: Counted) -> None:
        pass

    def accounts(self, selection: Selection) -> Accounts:
        return _BoxAccounts(self, selection)

    def losses(self, selection: Selection) -> tuple[Floats, Floats]:
        lower, upper = self.bounds("loss", self.tallies.of_subject[selection.subscript])
        _, spent = self.spent.around(selection, None)
        return lower, np.maximum(lower, np.minimum(upper, spent))

    def peaks(self, selection: Selection) -> tuple[Floats, Floats]:
        """Bound the largest realized losses along the way: one search for each tally."""
        assert self.log.counted is None, "a tally has no order"
        lower, upper = np.zeros((2, self.count))
        tallies = np.zeros(self.count, dtype=np.intp)
        wanted = np.zeros(self.count, dtype=np.bool_)
        wanted[selection.subscript] = True
        indices, prefixes = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
        for compiled, answering, codes in self.log.single_responses:
            rows = np.flatnonzero(wanted[answering])
            subjects, responses = answering[rows], compiled.response_indices[codes[rows]]
            tallies[subjects] = self.tallies.extended(tallies[subjects], responses)
            indices.append(subjects)
            prefixes.append(tallies[subjects])
        subjects = np.concatenate(indices)
        ends = self.bounds("loss", np.concatenate(prefixes))
        np.maximum.at(lower, subjects, ends[0])
        np.maximum.at(upper, subjects, ends[1])
        _, spent = self.spent.around(selection, None)
        lower, upper = lower[selection.subscript], upper[selection.subscript]
        return lower, np.maximum(lower, np.minimum(upper, spent))

    def bounds(
        self,
        method: str,
        tallies: Indices,
        query: Query | None = None,
        budget: Nats | None = None,
    ) -> tuple[Floats, Floats]:
        """Return bounds of what a method of odometers returns for these tallies."""
        distinct, index_of = distinct_integers(tallies)
        query_index = None if query is None else self.registry.of(query).index
        known = self.tallies.results((method, query_index))
        new = [tally for tally in distinct.tolist() if tally not in known]
        if self.search.batched and method in ("loss", "worst_after"):
            known.update(self._compute_batch(new, query, budget))
            new = [tally for tally in new if tally not in known]
        tasks = [
            Task(self.registry.transcript(self.tallies.packed[tally]), method, query, budget)
            for tally in new
        ]
        known.update(zip(new, self.search.all(tasks), strict=True))
        ends = [known[tally] for tally in distinct.tolist()]
        lower = np.array([end.lower for end in ends], dtype=np.float64)
        upper = np.array([end.upper for end in ends], dtype=np.float64)
        return lower[index_of], upper[index_of]

    def _compute_batch(
        self, tallies: Sequence[int], query: Query | None, budget: Nats | None
    ) -> dict[int, Enclosure]:
        """Compute the bounds of all tallies of the same linear queries at once."""
        bounds_by_tally: dict[int, Enclosure] = {}
        by_queries: dict[tuple[int, ...], dict[int, list[int]]] = {}
        for tally in tallies:
            rows = [
                (compiled.index, position)
                for compiled, position, times in self.registry.in_order(self.tallies.packed[tally])
                for _ in range(times)
            ]
            query_indices = tuple(index for index, _ in rows)
            by_queries.setdefault(query_indices, {})[tally] = [position for _, position in rows]
        limit = None if budget is None else budget.enclosure
        for query_indices, positions in by_queries.items():
            if not query_indices or len(positions) < _MIN_BATCH:
                continue
            ends = self._spreads(query_indices, list(positions.values()), query)
            if ends is None:
                continue
            for tally, lower, upper in zip(positions, *ends.tolist(), strict=True):
                # Around the budget, a search goes on until it is on one side.
                if limit is None or lower > limit.upper or upper <= limit.lower:
                    bounds_by_tally[tally] = Enclosure(lower, upper)
        return bounds_by_tally

    def _spreads(
        self, query_indices: Sequence[int], positions: list[list[int]], query: Query | None
    ) -> Floats | None:
        """Return bounds for tallies of the same queries, now or at worst after one more."""
        queries = [self.registry[index].query for index in query_indices]
        rows, gap = np.array(positions), self.search.effort.gap
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
class _BoxAccounts(StateAccounts):
    """The accounts of some subjects on a box."""

    state: BoxState

    def loss(self) -> LossBounds:
        return _searched_bounds(*self.state.losses(self.selection))

    def worst_after(self, query: Query, budget: Nats) -> LossBounds:
        return self._unless_surely("worst_after", query, budget)

    def plus_epsilon(self, query: Query, budget: Nats) -> LossBounds:
        return self._unless_surely("plus_epsilon", query, budget)

    def _unless_surely(self, method: str, query: Query, budget: Nats) -> LossBounds:
        """Skip the search where the epsilons fit: neither number is above their sum."""
        basic = self.spent(query)
        surely = basic.against(budget).within
        if surely.all():
            return _at_most(basic)
        tallies = self.state.tallies.of_subject[self.selection.subscript][~surely]
        searched = _searched_bounds(*self.state.bounds(method, tallies, query, budget))
        return _at_most(basic).where(surely, searched)


def _at_most(amounts: LossBounds) -> LossBounds:
    """Make loss bounds that are known from above only."""
    return LossBounds(np.zeros(len(amounts.upper)), amounts.upper, amounts.settle)


def _searched_bounds(lower: Floats, upper: Floats) -> LossBounds:
    """Return searched bounds; where the budget is between them, the comparison is undecided."""

    def settle(rows: Indices, budget: Nats) -> BudgetComparison:
        cases = [
            WorstCase(Enclosure(float(lower[row]), float(upper[row]))) for row in rows.tolist()
        ]
        return BudgetComparison.of_cases(cases, budget)

    return LossBounds(lower, upper, settle)


# With fewer searches than this another process takes longer to start than they do.
_MIN_PARALLEL = 32


@dataclass(frozen=True, slots=True)
class Task:
    """A search for the result of a method or property of an odometer, by its name."""

    transcript: Transcript
    method: str
    query: Query | None = None
    budget: Nats | None = None

    def run(self, effort: Effort) -> Enclosure:
        """Return bounds of the result."""
        result: Any = getattr(Odometer(self.transcript, effort=effort), self.method)
        if self.query is not None:
            result = result(self.query, 1, self.budget).loss
        assert isinstance(result, Enclosure)
        return result


@dataclass(frozen=True, slots=True)
class Search:
    """The effort of searches on a box, and the number of processes.

    ``progress`` is called with the number of searches done and their total.

    >>> Search(processes=2).processes
    2
    """

    effort: Effort = field(default_factory=Effort)
    processes: int = 1
    progress: Progress | None = field(default=None, repr=False)
    #: Whether the losses of many tallies of linear queries are computed at once.
    #:
    #: This is faster, but the last digits depend on which subjects are computed together.
    batched: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.processes, int) or self.processes < 1:
            raise InvalidInput(
                f"must be an integer of at least 1, not {shorten(repr(self.processes))}",
                "processes",
            )

    def all(self, tasks: Sequence[Task]) -> list[Enclosure]:
        """Run independent searches and return their results in order."""
        bounds_by_tally = []
        for index, transcript in enumerate(self._results(tasks), 1):
            bounds_by_tally.append(transcript)
            if self.progress is not None:
                self.progress(index, len(tasks))
        return bounds_by_tally

    def _results(self, tasks: Sequence[Task]) -> Iterator[Enclosure]:
        if self.processes == 1 or len(tasks) < _MIN_PARALLEL:
            return (task.run(self.effort) for task in tasks)
        size = 1 + len(tasks) // (8 * self.processes)
        pool = _pool(self.processes)
        return pool.map(Task.run, tasks, [self.effort] * len(tasks), chunksize=size)


@lru_cache(maxsize=1)
def _pool(processes: int) -> ProcessPoolExecutor:
    """Start processes and keep them for the next query, as each takes seconds to start."""
    # A forked process would have the locks of threads that are not there.
    return ProcessPoolExecutor(processes, get_context("spawn"))


_MOST_COORDINATES = 12
_BLOCK = 1024


def concave_spreads(
    box: Box, queries: Sequence[Query], positions: NDArray[np.integer[Any]], gap: float
) -> Floats | None:
    """Lower and upper ends of many spreads at once; None if the queries do not allow it."""
    if box.groups:
        return None  # and a query about categories may have any number of responses
    load_kernels()
    pairs = [(query.on(box).term(0), query.on(box).term(1)) for query in queries]
    side = concave_side([high for _, high in pairs], box)
    if side is None or not all(_are_mirrored(low, high) for low, high in pairs):
        return None
    error = math.fsum(max(low.error, high.error) for low, high in pairs)
    return np.array(many_spreads(side, positions == 1, up(error), gap))


def _are_mirrored(low: ScoreTerm, high: ScoreTerm) -> bool:
    """Return whether two responses differ only in sign; a term may be flat in hopeless cases."""
    return (low.weights, low.offset) == (tuple(-weight for weight in high.weights), -high.offset)


def concave_side(terms: Sequence[ScoreTerm], box: Box) -> PackedProblem | None:
    """Return the terms as a side, if they are linear, not clipped and have few corners."""
    columns = range(len(box.columns))
    sides = BoxColumns.of(box, columns)
    if sides.integer.any() or len(columns) > _MOST_COORDINATES:
        return None
    side, _ = pack_both_directions(TermArrays.of([(term, 1) for term in terms], columns), sides)
    return side if side.clipped_rising < ROUNDING_ALONE else None


def many_spreads(
    packed: PackedProblem, high: Bools, error: float, gap: float
) -> tuple[Floats, Floats]:
    """Lower and upper bounds, for rows that say which responses were the high ones.

    The side has the terms of the high responses; a low one has the same with its score negated.
    ``error`` is how far the terms are from what is sampled.
    """
    from expost.solver.kernels import entries  # brings a compiler along

    side = packed.views
    corners = np.array(list(itertools.product(*zip(side.lo, side.hi, strict=True)))).T
    scores = side.A @ corners + side.c[:, None]
    foot, h = side.par[:, FOOT], side.par[:, H]
    both = np.vstack([scores, -scores])
    sums = np.log1p((1 + both) / np.tile(foot, 2)[:, None]) - np.tile(h, 2)[:, None]
    responses = np.hstack([high, ~high]).astype(np.float64)
    lowest = np.empty(len(responses))
    for rows in blocks(len(responses), _BLOCK):
        lowest[rows] = (responses[rows] @ sums).min(axis=1)
    highest, gaps, _ = entries.climb(packed, np.where(high, 1.0, -1.0), gap / 2)
    # Both ends are within the error of an evaluation; twice the terms were summed in the product.
    slack = 2 * error + 6 * packed.total_error + 2 * packed.clipped_rising
    width = highest - lowest
    lower, upper = np.maximum(0.0, width - slack), (width + gaps + slack) * (1 + 4 * UNIT)
    return lower, np.where(np.isnan(upper), np.inf, upper)
