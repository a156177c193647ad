"""Every decision of many subjects again, on what came before it.

Over sets and attributes all subjects are decided at once, round by round: the first exchange of
everybody, then the second. Over boxes every tally is searched once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._types import Codes, Floats, Indices
from expost.audits.plan import Plan
from expost.audits.tallies import Tallies
from expost.domains import Attributes, Box, FiniteSet
from expost.filters import Filter
from expost.panel.kernel import Kernel
from expost.panel.places import Chosen
from expost.queries import Query

__all__ = ["Verdicts", "verdicts"]

Given = Sequence[tuple[Query, int]]
Tell = Callable[[int], None]

# Subjects that are decided together. Their states stay near the processor.
_TOGETHER = 1 << 15

# On a box, for the sake of progress.
_FEW = 1 << 8


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What an audit finds for each of many subjects."""

    lower: Floats
    upper: Floats
    peak: Floats
    basic: Floats
    respected: NDArray[np.int8]
    """1 where the filter was respected, 0 where not, -1 where a search could not tell."""
    first_refused: NDArray[np.int64]
    """The number of the first exchange that the filter certainly refuses; 0 where there is none."""
    remaining: Floats


def verdicts(given: Given, codes: Codes, starts: Indices, plan: Plan, tell: Tell) -> Verdicts:
    """Replay the exchanges of every subject; ``tell`` is called with how many subjects are done."""
    match plan.domain:
        case FiniteSet() | Attributes():
            return _in_arrays(given, codes, starts, plan, tell)
        case Box():
            return _by_tally(given, codes, starts, plan, tell)
        case _:
            assert_never(plan.domain)


def _in_arrays(given: Given, codes: Codes, starts: Indices, plan: Plan, tell: Tell) -> Verdicts:
    kernel = Kernel(plan.domain, plan.guard)
    # All queries, in the order of the plan: nothing depends on which of them occur here.
    for query in plan.queries.values():
        kernel.number(query)
    number = np.array([kernel.number(query) for query, _ in given], dtype=np.intp)
    position = np.array([position for _, position in given])
    counts = np.diff(starts)
    # Those with the most exchanges come first, so that those who go on are in front.
    longest = np.argsort(-counts, kind="stable")
    table = np.empty((7, len(counts)))
    for start in range(0, len(counts), _TOGETHER):
        own = longest[start : start + _TOGETHER]
        table[:, own] = _block(kernel, number, position, codes, starts[own], counts[own])
        tell(start + len(own))
    return _of(table)


def _block(
    kernel: Kernel,
    number: Indices,
    position: NDArray[Any],
    codes: Codes,
    first: Indices,
    counts: Indices,
) -> Floats:
    """What is found for some subjects, the longest ones first; round by round."""
    state = kernel.start(len(counts))
    refused = np.zeros(len(counts), dtype=np.int64)
    for step in range(int(counts[0]) if len(counts) else 0):
        on = int(np.searchsorted(-counts, -step))
        given = codes[first[:on] + step]
        asked, answered = number[given], position[given]
        so_far = np.flatnonzero(refused[:on] == 0)
        if len(so_far):
            everybody = len(so_far) == len(counts)
            found = kernel.decide(state, asked[so_far], None if everybody else so_far)
            assert not found.undecided.any(), "over a finite domain everything is decided"
            refused[so_far[~found.accepted]] = step + 1
        kernel.fold(state, asked, answered, None if on == len(counts) else np.arange(on))
    everyone = Chosen(len(counts))
    lower, upper = state.losses(everyone)
    least, peak = state.peaks(everyone)
    sums = state.spent.around(everyone, None)
    guard, respected = kernel.filter, refused == 0
    basic = guard.cap_spent(*sums, respected)
    upper = guard.cap_accepted(lower, upper, respected)
    peak = guard.cap_accepted(least, peak, respected)
    left = _remaining(guard, kernel.losses(state).upper)
    return np.array([lower, np.maximum(lower, upper), peak, basic, respected, refused, left])


def _remaining(guard: Filter, held: Floats) -> Floats:
    """The budget minus what is held against it, rounded down; never below zero."""
    whole = guard.budget.enclosure.lower
    with np.errstate(invalid="ignore"):
        left = np.nextafter(whole - held, -np.inf)
    return np.where(held == 0, whole, np.maximum(0.0, left))


def _by_tally(given: Given, codes: Codes, starts: Indices, plan: Plan, tell: Tell) -> Verdicts:
    tallies, guard, counts = Tallies(given, plan), plan.guard, np.diff(starts)
    longest = np.argsort(-counts, kind="stable")
    limit, table = guard.budget.enclosure.upper, np.empty((7, len(counts)))
    for start in range(0, len(counts), _FEW):
        own = longest[start : start + _FEW]
        course = tallies.course(codes, starts[own], counts[own])
        ends = {tally: _end(tallies, tally, guard) for tally in set(course.tally.tolist())}
        rows = np.array([ends[tally] for tally in course.tally.tolist()])
        lower, upper, basic, left = rows.T
        peak, respected = course.peak_upper, np.where(course.unknown, -1, 1)
        respected[course.refused > 0] = 0
        if guard.pure:
            # A loss above the budget at any point broke it, even if no decision is known.
            respected[course.peak_lower > limit] = 0
        upper = guard.cap_accepted(lower, upper, respected == 1)
        peak = guard.cap_accepted(course.peak_lower, peak, respected == 1)
        upper, peak = np.maximum(lower, upper), np.maximum(lower, peak)
        table[:, own] = lower, upper, peak, basic, respected, course.refused, left
        tell(start + len(own))
    return _of(table)


def _end(tallies: Tallies, tally: int, guard: Filter) -> tuple[float, float, float, float]:
    """The loss, the sum of the epsilons and what is left of the budget after all exchanges."""
    odometer = tallies.odometer(tally)
    loss = tallies.loss(tally)
    left = guard.remaining(odometer)
    return loss.lower, loss.upper, odometer.exact_spent.enclosure.upper, left


def _of(table: Floats) -> Verdicts:
    lower, upper, peak, basic, respected, refused, left = np.ascontiguousarray(table)
    verdicts, refusals = respected.astype(np.int8), refused.astype(np.int64)
    return Verdicts(lower, upper, peak, basic, verdicts, refusals, left)
