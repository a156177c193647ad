"""Best-first search: the open node with the largest bound is split, until the gap is closed.

It can be left after any node and gone on with later: all that it knows is in its frontier.
"""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import (
    ABOVE,
    BOUND,
    GAP,
    HALF,
    IDLE,
    LEVEL,
    LOWER,
    NODES,
    OPEN,
    PARENT,
    SETTLED,
    SLOT,
    SPARE,
    TIGHTENED,
    VALUE,
    VARIABLE,
    WORSE,
    Frontier,
    Pool,
    Problem,
    Work,
)
from expost.solver.kernels.nodes import grow

__all__ = ["DONE", "FULL", "MORE", "pursue", "search_on"]

DONE, FULL, MORE = (
    0,
    1,
    2,
)  # nothing is left to do; there is no room; as many nodes as were asked for
_STILL, _NOTHING = 0.999, 1e-9


@compiled
def before(frontier: Frontier, one: int, other: int) -> bool:
    """Whether an open node comes before another one: by its bound, its level, its slot."""
    a, b = frontier.bounds[one], frontier.bounds[other]
    if a != b:
        return a > b
    a, b = frontier.levels[one], frontier.levels[other]
    if a != b:
        return a < b
    return frontier.slots[one] < frontier.slots[other]


@compiled
def swap(frontier: Frontier, one: int, other: int) -> None:
    """Exchange two places of the heap."""
    bounds, levels, slots = frontier.bounds, frontier.levels, frontier.slots
    bounds[one], bounds[other] = bounds[other], bounds[one]
    levels[one], levels[other] = levels[other], levels[one]
    slots[one], slots[other] = slots[other], slots[one]


@compiled
def push(frontier: Frontier, bound: float, level: int, slot: int) -> None:
    """One more open node."""
    place = frontier.counts[OPEN]
    frontier.counts[OPEN] += 1
    frontier.bounds[place], frontier.levels[place], frontier.slots[place] = bound, level, slot
    while place > 0 and before(frontier, place, (place - 1) // 2):
        swap(frontier, place, (place - 1) // 2)
        place = (place - 1) // 2


@compiled
def pop(frontier: Frontier) -> None:
    """Take the first open node out, as the parent whose halves are next."""
    known, counts = frontier.known, frontier.counts
    known[ABOVE], known[WORSE] = frontier.bounds[0], -math.inf
    counts[LEVEL], counts[PARENT], counts[HALF] = frontier.levels[0], frontier.slots[0], 0
    counts[OPEN] -= 1
    last = counts[OPEN]
    swap(frontier, 0, last)
    place = 0
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and before(frontier, child + 1, child):
            child += 1
        if not before(frontier, child, place):
            break
        swap(frontier, place, child)
        place = child


@compiled
def watch(frontier: Frontier) -> None:
    """Count splits in a row that gained nothing.

    If coordinates are so large that scores drown in their rounding, there are hundreds of them,
    and the search is hopeless. Otherwise there are hardly ever two.
    """
    known, counts = frontier.known, frontier.counts
    top = frontier.bounds[0] if counts[OPEN] > 0 else -math.inf
    gap = max(known[SETTLED], top) - known[LOWER]
    if gap < _STILL * known[GAP]:
        known[GAP] = gap
        counts[IDLE] = 0
    elif not known[ABOVE] - known[WORSE] > _NOTHING * gap:
        counts[IDLE] += 1


@compiled
def search_on(
    problem: Problem, work: Work, pool: Pool, frontier: Frontier, rule: int, cutting: bool,
    tolerance: float,
) -> None:  # fmt: skip
    """Make the next node: the root, or a half of the parent."""
    known, counts, spare = frontier.known, frontier.counts, frontier.spare
    root = counts[NODES] == 0
    half = -1 if root else counts[HALF]
    level = 0 if root else counts[LEVEL] + 1
    above = math.inf if root else known[ABOVE]
    cut = -math.inf if root else known[LOWER] + tolerance
    counts[SPARE] -= 1
    slot = spare[counts[SPARE]]
    bound = grow(
        problem, work, pool.node(counts[PARENT]), pool.node(slot), counts[PARENT], half, rule,
        cutting, level, -1e300 if root else known[LOWER], cut, tolerance, above,
    )  # fmt: skip
    counts[NODES] += 1
    counts[SLOT] = slot
    known[BOUND] = bound
    if work.found[VALUE] > known[LOWER]:
        known[LOWER] = work.found[VALUE]
        for j in range(len(frontier.point)):
            frontier.point[j] = work.trial[j]
    if work.found[TIGHTENED] != 0.0:
        known[SETTLED] = max(known[SETTLED], cut)
    bound = min(bound, above)
    if bound > cut and work.branch[VARIABLE] >= 0.0:
        push(frontier, bound, level, slot)
    else:
        known[SETTLED] = max(known[SETTLED], bound)
        spare[counts[SPARE]] = slot
        counts[SPARE] += 1
    if root:
        return
    known[WORSE] = max(known[WORSE], bound)
    counts[HALF] += 1
    if half == 1:
        spare[counts[SPARE]] = counts[PARENT]
        counts[SPARE] += 1
        watch(frontier)


@compiled
def pursue(
    problem: Problem, work: Work, pool: Pool, frontier: Frontier, rule: int, cutting: bool,
    nodes: int, patience: int, steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    """Up to so many steps of a search; whether it is DONE, its pool FULL, or there is MORE to do.

    It is done if the gap is closed, ``nodes`` are used up, ``enough`` is exceeded, or nothing moves
    any more. Halves of a node are always made both.
    """
    known, counts = frontier.known, frontier.counts
    for _ in range(steps):
        if counts[NODES] == 0:
            known[SETTLED] = -math.inf
        elif counts[HALF] == 2:
            closed = max(known[SETTLED], known[LOWER] + tolerance)
            if counts[OPEN] == 0 or not frontier.bounds[0] > closed:
                return DONE
            if counts[NODES] >= nodes or counts[IDLE] >= patience or known[LOWER] > enough:
                return DONE
            if counts[SPARE] < 2:
                return FULL
            pop(frontier)
        search_on(problem, work, pool, frontier, rule, cutting, tolerance)
    return MORE
