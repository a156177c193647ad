"""The search tree in the kernels: a heap, a pool that grows, and bounds that hold at any moment."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from expost.solver import BranchAndBound, SearchTree
from expost.solver.kernels.branching import COORDINATES_ONLY, SCORES_FIRST
from expost.solver.kernels.layout import (
    ABOVE,
    LEVEL,
    LOWER,
    OPEN,
    PARENT,
    SPARE,
    PackedProblem,
    enlarged_frontier,
    new_frontier,
)
from expost.solver.kernels.trees import pop_parent, push_node
from expost.terms import Link, ScoreTerm
from support.optimizer_parts import make_packed

FOREVER = 10**6


def steep(seed: int, n: int = 14, d: int = 4) -> tuple[PackedProblem, PackedProblem]:
    generator = random.Random(seed)
    terms = [
        ScoreTerm(
            Link.LOGISTIC,
            0.5,
            tuple(generator.uniform(-9, 9) for _ in range(d)),
            generator.uniform(-9, 9),
            0.0,
        )
        for _ in range(n)
    ]
    return make_packed(terms, [-1.0] * d, [1.0] * d)


def test_the_heap_gives_the_largest_bound_first_then_the_lowest_level_then_the_first_slot() -> None:
    generator = random.Random(1)
    for _ in range(50):
        frontier = new_frontier(3, 2, 64).views
        entries = [
            (generator.choice([1.0, 2.5, -3.0, math.inf]), generator.randrange(4), slot)
            for slot in generator.sample(range(64), generator.randrange(1, 64))
        ]
        for bound, level, slot in entries:
            push_node(frontier, bound, level, slot)
        taken = []
        while frontier.counts[OPEN]:
            pop_parent(frontier)
            taken.append(
                (float(frontier.status[ABOVE]), *frontier.counts[[LEVEL, PARENT]].tolist())
            )
        assert taken == sorted(entries, key=lambda entry: (-entry[0], entry[1], entry[2]))


def test_an_enlarged_frontier_is_equal_except_for_more_slots() -> None:
    small = new_frontier(3, 2, 8)
    small.view("status")[LOWER] = 1.5
    small.view("point")[:] = 0.25, 0.5
    for slot in (4, 2, 7):
        push_node(small.views, float(slot), 1, slot)
    small.view("counts")[SPARE] = 1
    large = enlarged_frontier(small, 3, 2, 16).views
    assert large.status[LOWER] == 1.5
    assert large.point.tolist() == [0.25, 0.5]
    assert large.bounds[:3].tolist() == small.view("bounds")[:3].tolist() == [7.0, 2.0, 4.0]
    assert large.counts[SPARE] == 9
    assert large.spare[:9].tolist() == [int(small.view("spare")[0]), *range(15, 7, -1)]


@pytest.mark.parametrize("rule", [SCORES_FIRST, COORDINATES_ONLY])
@pytest.mark.parametrize("seed", range(4))
def test_left_after_any_node_it_goes_on_as_if_it_had_not_been(seed: int, rule: int) -> None:
    for problem in steep(seed):
        uninterrupted, parts = SearchTree(problem, rule), SearchTree(problem, rule)
        uninterrupted.advance(1e-3, 400, math.inf, None)
        generator = random.Random(seed)
        while parts._make_nodes(1e-3, 400, math.inf, generator.randrange(1, 9)):
            pass
        assert (uninterrupted.nodes, uninterrupted.lower, uninterrupted.upper) == (
            parts.nodes,
            parts.lower,
            parts.upper,
        )
        assert uninterrupted.point is not None
        assert parts.point is not None
        assert np.array_equal(uninterrupted.point, parts.point)


@pytest.mark.parametrize("seed", range(6))
def test_its_bound_holds_at_any_moment(seed: int) -> None:
    for problem in steep(seed):
        closed = SearchTree(problem, SCORES_FIRST)
        closed.advance(1e-4, FOREVER, math.inf, None)
        tree, upper = SearchTree(problem, SCORES_FIRST), math.inf
        while tree._make_nodes(1e-3, FOREVER, math.inf, 1):
            # What is known to be reached by a point of the box, less the rounding of its value.
            assert tree.upper >= closed.lower - problem.total_error
            assert tree.upper <= upper
            upper = tree.upper


def test_a_pool_that_is_full_grows() -> None:
    largest, _ = steep(3, n=40, d=9)
    tree = SearchTree(largest, SCORES_FIRST)
    tree.advance(1e-6, 700, math.inf, None)
    assert tree.nodes >= 700
    assert len(tree._pool) > 64
    slots = tree._frontier.views.slots[: tree._counts[OPEN]].tolist()
    spare = tree._frontier.views.spare[: tree._counts[SPARE]].tolist()
    assert sorted(slots + spare) == list(range(len(tree._pool)))


def test_a_search_with_hardly_any_nodes_makes_one_root() -> None:
    largest, _ = steep(3, n=40, d=9)
    search = BranchAndBound(largest)
    search.advance(1e-6, 0)
    assert search.nodes == 1
    search.advance(1e-6, 100)
    assert search.nodes > 100
    assert search.upper >= search.lower
