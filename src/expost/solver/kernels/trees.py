"""Best-first search: the open node with the largest bound is split, until the gap is closed.

It can stop after any node and continue later: its whole state is in its frontier.
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
    BoxProblem,
    Frontier,
    NodePool,
    Workspace,
)
from expost.solver.kernels.nodes import grow_node

__all__ = ["DONE", "FULL", "PAUSED", "advance", "make_next_node"]

# Nothing remains to do; there is no room; the steps of the call are used up.
DONE, FULL, PAUSED = 0, 1, 2
_STILL, _NOTHING = 0.999, 1e-9


@compiled
def precedes(frontier: Frontier, i: int, j: int) -> bool:
    """Return whether one open node comes before another: by its bound, its level, its slot."""
    a, b = frontier.bounds[i], frontier.bounds[j]
    if a != b:
        return a > b
    a, b = frontier.levels[i], frontier.levels[j]
    if a != b:
        return a < b
    return frontier.slots[i] < frontier.slots[j]


@compiled
def swap_entries(frontier: Frontier, i: int, j: int) -> None:
    """Exchange two entries of the heap."""
    bounds, levels, slots = frontier.bounds, frontier.levels, frontier.slots
    bounds[i], bounds[j] = bounds[j], bounds[i]
    levels[i], levels[j] = levels[j], levels[i]
    slots[i], slots[j] = slots[j], slots[i]


@compiled
def push_node(frontier: Frontier, bound: float, level: int, slot: int) -> None:
    """Add an open node to the heap."""
    index = frontier.counts[OPEN]
    frontier.counts[OPEN] += 1
    frontier.bounds[index], frontier.levels[index], frontier.slots[index] = bound, level, slot
    while index > 0 and precedes(frontier, index, (index - 1) // 2):
        swap_entries(frontier, index, (index - 1) // 2)
        index = (index - 1) // 2


@compiled
def pop_parent(frontier: Frontier) -> None:
    """Remove the first open node: it becomes the parent, and its halves come next."""
    status, counts = frontier.status, frontier.counts
    status[ABOVE], status[WORSE] = frontier.bounds[0], -math.inf
    counts[LEVEL], counts[PARENT], counts[HALF] = frontier.levels[0], frontier.slots[0], 0
    counts[OPEN] -= 1
    last = counts[OPEN]
    swap_entries(frontier, 0, last)
    index = 0
    while 2 * index + 1 < last:
        child = 2 * index + 1
        if child + 1 < last and precedes(frontier, child + 1, child):
            child += 1
        if not precedes(frontier, child, index):
            break
        swap_entries(frontier, index, child)
        index = child


@compiled
def count_idle_splits(frontier: Frontier) -> None:
    """Count splits in a row that gained nothing.

    If coordinates are so large that scores drown in their rounding, there are hundreds of them,
    and the search is hopeless. Otherwise two in a row are rare.
    """
    status, counts = frontier.status, frontier.counts
    top = frontier.bounds[0] if counts[OPEN] > 0 else -math.inf
    gap = max(status[SETTLED], top) - status[LOWER]
    if gap < _STILL * status[GAP]:
        status[GAP] = gap
        counts[IDLE] = 0
    elif not status[ABOVE] - status[WORSE] > _NOTHING * gap:
        counts[IDLE] += 1


@compiled
def make_next_node(
    problem: BoxProblem, work: Workspace, pool: NodePool, frontier: Frontier, rule: int,
    cutting: bool, tolerance: float,
) -> None:  # fmt: skip
    """Make the next node: the root, or a half of the parent."""
    status, counts, spare = frontier.status, frontier.counts, frontier.spare
    root = counts[NODES] == 0
    half = -1 if root else counts[HALF]
    level = 0 if root else counts[LEVEL] + 1
    above = math.inf if root else status[ABOVE]
    cut = -math.inf if root else status[LOWER] + tolerance
    counts[SPARE] -= 1
    slot = spare[counts[SPARE]]
    bound = grow_node(
        problem, work, pool.node(counts[PARENT]), pool.node(slot), half, rule, cutting, level,
        -1e300 if root else status[LOWER], cut, tolerance, above,
    )  # fmt: skip
    counts[NODES] += 1
    counts[SLOT] = slot
    status[BOUND] = bound
    if work.outcome[VALUE] > status[LOWER]:
        status[LOWER] = work.outcome[VALUE]
        for j in range(len(frontier.point)):
            frontier.point[j] = work.trial[j]
    if work.outcome[TIGHTENED] != 0.0:
        status[SETTLED] = max(status[SETTLED], cut)
    bound = min(bound, above)
    if bound > cut and work.branch[VARIABLE] >= 0.0:
        push_node(frontier, bound, level, slot)
    else:
        status[SETTLED] = max(status[SETTLED], bound)
        spare[counts[SPARE]] = slot
        counts[SPARE] += 1
    if root:
        return
    status[WORSE] = max(status[WORSE], bound)
    counts[HALF] += 1
    if half == 1:
        spare[counts[SPARE]] = counts[PARENT]
        counts[SPARE] += 1
        count_idle_splits(frontier)


@compiled
def advance(
    problem: BoxProblem, work: Workspace, pool: NodePool, frontier: Frontier, rule: int,
    cutting: bool, nodes: int, patience: int, steps: int, tolerance: float, enough: float,
) -> int:  # fmt: skip
    """Take up to ``steps`` steps of a search; return DONE, FULL (its pool) or PAUSED.

    It is done if the gap is closed, ``nodes`` are used up, ``enough`` is exceeded, or nothing moves
    any longer. Both halves of a node are always made.
    """
    status, counts = frontier.status, frontier.counts
    for _ in range(steps):
        if counts[NODES] == 0:
            status[SETTLED] = -math.inf
        elif counts[HALF] == 2:
            closed = max(status[SETTLED], status[LOWER] + tolerance)
            if counts[OPEN] == 0 or not frontier.bounds[0] > closed:
                return DONE
            if counts[NODES] >= nodes or counts[IDLE] >= patience or status[LOWER] > enough:
                return DONE
            if counts[SPARE] < 2:
                return FULL
            pop_parent(frontier)
        make_next_node(problem, work, pool, frontier, rule, cutting, tolerance)
    return PAUSED
