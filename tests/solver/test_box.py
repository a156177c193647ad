"""Losses over boxes, by the public face: no point that an oracle finds is ever above them.

The oracle imports nothing of the library. It searches densely in doubles, and evaluates the
paper's formula, and the weights that are really sampled, at the best points exactly.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.domains import Integers
from expost.loss._on_box import BoxLogLikelihood
from expost.loss._realized import basic_loss
from expost.solver import BoxSpread, _methods, independent_blocks
from support.box_cases import (
    EPSILONS,
    NODES,
    Ask,
    Case,
    Side,
    answered,
    complaints,
    some_ask,
    some_case,
    some_sides,
)


@pytest.mark.parametrize("seed", range(20))
def test_no_point_is_above_the_loss(seed: int) -> None:
    generator = random.Random(seed)
    for step in range(60):
        case = some_case(generator)
        gap, nodes = generator.choice([1e-3, 0.01, 0.1]), generator.choice([*NODES, 300])
        loss = xp.realized_loss(case.transcript, gap=gap, nodes=nodes)
        assert not complaints(case, loss, step), (case, gap, nodes, loss)


@pytest.mark.parametrize("seed", range(4))
def test_nor_above_the_loss_of_many_queries(seed: int) -> None:
    generator = random.Random(1000 + seed)
    for step in range(4):
        case = some_case(generator, queries=generator.choice([40, 150]))
        group = generator.choice([None, 3, 10])
        loss = xp.realized_loss(case.transcript, nodes=generator.choice([5, 100]), group=group)
        assert not complaints(case, loss, step), (case, group, loss)


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_in_groups_is_above_all_points_too(seed: int) -> None:
    generator = random.Random(2000 + seed)
    for step in range(25):
        case = some_case(generator, coordinates=3)
        loss = xp.realized_loss(case.transcript, nodes=50, group=generator.randint(1, 6))
        assert not complaints(case, loss, step), (case, loss)


@pytest.mark.parametrize("nodes", NODES)
def test_a_handful_of_nodes_is_enough_to_be_right(nodes: int) -> None:
    generator = random.Random(3000 + nodes)
    for step in range(40):
        case = some_case(generator, coordinates=4, queries=8)
        loss = xp.realized_loss(case.transcript, gap=1e-6, nodes=nodes)
        assert not complaints(case, loss, step), (case, loss)


@pytest.mark.parametrize("seed", range(4))
def test_the_losses_of_many_subjects_are_right_one_by_one(seed: int) -> None:
    generator = random.Random(4000 + seed)
    for step in range(6):
        sides = tuple(side for side in some_sides(generator, 4) if not side.integer)
        asks = [some_ask(generator, sides, 1.0, "1") for _ in range(5)] if sides else []
        asks = [ask for ask in asks if ask.kind == "linear" and not ask.clip]
        if not asks:
            continue
        box = xp.Box([side.argument for side in sides])
        rows = list(itertools.product((0, 1), repeat=len(asks)))
        losses = xp.realized_losses(answered(box, [ask.query for ask in asks], rows))
        for row, low, high in zip(rows, losses.lower, losses.upper, strict=True):
            asked_again = (
                Ask(**{**a.__dict__, "high": bool(b)}) for a, b in zip(asks, row, strict=True)
            )
            case = Case(sides, tuple(asked_again))
            assert not complaints(case, xp.numbers.Enclosure(low, high), step), case
            one = xp.realized_loss(case.transcript)
            assert max(low, one.lower) <= min(high, one.upper)


def test_the_losses_of_many_subjects_may_repeat_a_query() -> None:
    box = xp.Box([(0, 1), (0, 1)])
    first = xp.linear([1, 1], range=(0, 2), epsilon=1)
    second = xp.linear([1, -1], range=(-1, 1), epsilon=1)
    rows = [(0, 1, 0), (1, 1, 0)]
    losses = xp.realized_losses(answered(box, [first, second, first], rows))
    for row, bound in zip(rows, losses.upper, strict=True):
        transcript = xp.Transcript(box)
        for query, position in zip([first, second, first], row, strict=True):
            transcript = transcript.add(query, query.on(box).responses[position])
        assert xp.realized_loss(transcript).lower <= bound


# -- how narrow ----------------------------------------------------------------------------------


def grid_loss(case: Case) -> tuple[mpmath.mpf, float]:
    """The loss between the best points of a fine grid, and how much more the real one can be."""
    d = len(case.sides)
    count = {1: 4001, 2: 121}[d]
    lines = [
        np.arange(side.lo, side.hi + 1)
        if side.integer
        else np.linspace(side.lo, side.hi, count if side.lo < side.hi else 1)
        for side in case.sides
    ]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*lines)], axis=1)
    values = case.oracle.in_doubles(grid)
    ends = [tuple(grid[k].tolist()) for k in (values.argmax(), values.argmin())]
    missed = 0.0
    for bit in case.oracle.bits:
        if bit.ends is None:
            steepest = float(mpmath.tanh(float(bit.epsilon) / 4))
        else:
            steepest = float(mpmath.expm1(float(bit.epsilon)) / (bit.ends[1] - bit.ends[0]))
        for weight, side, line in zip(bit.weights, case.sides, lines, strict=True):
            if not side.integer and len(line) > 1:
                missed += steepest * abs(weight) * (side.hi - side.lo) / (len(line) - 1)
    with mpmath.workdps(40):
        return case.formula_loss(ends[0], ends[1]), missed + 1e-30  # which mpmath may be off


@pytest.mark.parametrize("coordinates", [1, 2])
@pytest.mark.parametrize("gap", [1e-2, 1e-5])
def test_on_small_boxes_the_enclosure_is_around_the_loss_and_as_narrow_as_asked(
    coordinates: int, gap: float
) -> None:
    generator = random.Random(5000 + coordinates)
    for _ in range(40):
        case = some_case(generator, coordinates=coordinates, queries=6)
        loss = xp.realized_loss(case.transcript, gap=gap)
        result, missed = grid_loss(case)
        assert result <= loss.upper
        # Each end is half a step away from the grid at most.
        assert loss.lower <= result + missed, case
        errors = 4 * sum(term.error for term in case.terms) + 1e-12
        assert loss.width <= gap + errors, case
        assert loss.lower >= result - gap - errors, case


def test_what_is_left_after_contradictions_is_known() -> None:
    box = xp.Box([(0, 1)])
    query = xp.linear([1], range=(0, 1), epsilon="1")
    loss = xp.realized_loss(xp.Transcript(box).add(query, 0).add(query, 1), gap=1e-6)
    with mpmath.workdps(40):
        e = mpmath.e
        exact = mpmath.log(((e + 1) / 2) ** 2 / e)
        assert loss.lower <= exact <= loss.upper
    assert loss.width < 2e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_single_query_never_exceeds_its_epsilon(epsilon: str) -> None:
    generator = random.Random(6)
    for _ in range(20):
        case = some_case(generator, queries=1, epsilon=epsilon)
        upper = xp.realized_loss(case.transcript).upper
        assert xp.numbers.Nats(Fraction(math_below(upper))) <= xp.numbers.Nats(Fraction(epsilon))


def math_below(x: float) -> float:
    """The double before a positive one; a bound is the first double that is not below a sum."""
    return max(0.0, float(np.nextafter(x, -np.inf)))


def test_ten_queries_of_a_tenth_never_exceed_one() -> None:
    box = xp.Box([(0, 1)])
    query = xp.linear([1], range=(0, 1), epsilon="0.1")
    transcript = xp.Transcript(box)
    for _ in range(10):
        transcript = transcript.add(query, 1)
    assert basic_loss(transcript) == xp.numbers.Nats(Fraction(1))
    assert xp.realized_loss(transcript).upper <= 1.0


def test_nothing_asked_is_nothing_lost() -> None:
    box = xp.Box([(0, 1), (2, 2)])
    assert xp.realized_loss(xp.Transcript(box)) == xp.numbers.Enclosure(0.0, 0.0)
    still = xp.logistic([0.0, 5.0], epsilon=2)
    assert xp.realized_loss(xp.Transcript(box).add(still, 1)).upper < 1e-300


# -- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-200, -165, -158, -100, -20, -6, 6, 20, 100, 150])
def test_the_unit_of_a_coordinate_changes_nothing_that_matters(exponent: int) -> None:
    # Squares of the smallest widths are below what doubles hold.
    generator = random.Random(1)
    unit = 10.0**exponent
    sides = (Side(-unit, unit), Side(-unit, unit))
    asks = []
    for _ in range(8):
        weights = (generator.gauss(0, 2) / unit, generator.gauss(0, 2) / unit)
        asks.append(Ask("logistic", weights, generator.gauss(0, 1), "1", generator.random() < 0.5))
    case = Case(sides, tuple(asks))
    loss = xp.realized_loss(case.transcript, gap=1e-3, nodes=500)
    assert not complaints(case, loss, 1, count=2000), loss


# -- the same bits -------------------------------------------------------------------------------


def named(case: Case, order: list[int], names: list[str]) -> xp.Transcript:
    """The same transcript with names for the coordinates, in another order."""
    box = xp.Box(**{names[j]: case.sides[j].argument for j in order})
    transcript = xp.Transcript(box)
    for exchange in case.transcript.exchanges:
        plain: Any = exchange.query
        weights = tuple(plain.score.weights[j] for j in order)
        score = replace(plain.score, names=tuple(names[j] for j in order), weights=weights)
        transcript = transcript.add(replace(plain, score=score), exchange.response)
    return transcript


def test_the_order_of_names_and_the_number_of_threads_change_no_bit() -> None:
    generator = random.Random(7)
    for _ in range(25):
        case = some_case(generator, coordinates=5)
        order = list(range(len(case.sides)))
        names = [f"x{j}" for j in order]
        first = xp.realized_loss(named(case, order, names), nodes=60)
        generator.shuffle(order)
        assert xp.realized_loss(named(case, order, names), nodes=60) == first
        assert xp.realized_loss(named(case, order, names), nodes=60, threads=2) == first


FRESH = """
import json, sys, random
from support.box_cases import some_case
import expost as xp
generator = random.Random(8)
losses = []
for _ in range(15):
    loss = xp.realized_loss(some_case(generator).transcript, nodes=80, threads=int(sys.argv[1]))
    losses.append([loss.lower.hex(), loss.upper.hex()])
print(json.dumps(losses))
"""


def test_a_fresh_process_gives_the_same_bits() -> None:
    def run(threads: str) -> list[list[str]]:
        tests = str(Path(__file__).parents[1])
        path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", FRESH, threads],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": threads},
            capture_output=True,
            check=True,
            text=True,
        )
        parsed: list[list[str]] = json.loads(done.stdout)
        return parsed

    generator = random.Random(8)
    here = []
    for _ in range(15):
        loss = xp.realized_loss(some_case(generator).transcript, nodes=80)
        here.append([loss.lower.hex(), loss.upper.hex()])
    assert run("1") == run("2") == here


# -- blocks --------------------------------------------------------------------------------------


def test_blocks_are_the_whole_and_share_no_free_coordinate() -> None:
    generator = random.Random(9)
    several = 0
    for _ in range(600):
        case = some_case(generator, queries=5)
        sides, box = case.sides, case.box
        terms = list(Counter(case.terms).items())
        free = [side.lo < side.hi for side in sides]
        varying = [{j for j, w in enumerate(term.weights) if w and free[j]} for term, _ in terms]
        result = list(independent_blocks(terms, box))
        assert sorted(i for _, block in result for i in block) == [
            i for i, used in enumerate(varying) if used
        ]
        for columns, block in result:
            assert all(
                w == 0 for i in block for j, w in enumerate(terms[i][0].weights) if j not in columns
            )
        for (_, first), (_, second) in itertools.combinations(result, 2):
            assert all(varying[i].isdisjoint(varying[k]) for i in first for k in second)
        several += len(result) > 1
    assert several > 20


def test_the_losses_of_independent_queries_add_up() -> None:
    box = xp.Box([(-1, 1), (-1, 1)])
    parts = [xp.logistic([3, 0], epsilon=1), xp.linear([0, 1], range=(-1, 1), epsilon=1)]
    losses = [xp.realized_loss(xp.Transcript(box).add(query, 1), gap=1e-5) for query in parts]
    both = xp.realized_loss(xp.Transcript(box).add(parts[0], 1).add(parts[1], 1), gap=1e-5)
    assert both.lower <= sum(loss.upper for loss in losses)
    assert both.upper >= sum(loss.lower for loss in losses)


def test_a_spread_only_narrows_when_more_is_spent_on_it() -> None:
    generator = random.Random(10)
    for _ in range(15):
        case = some_case(generator, coordinates=4)
        spread = BoxSpread(case.terms, case.box)
        enclosure = spread.enclosure
        for nodes in (1, 4, 30):
            spread.narrow(xp.solver.Effort(gap=1e-4, nodes=nodes))
            assert spread.enclosure.lower >= enclosure.lower
            enclosure = spread.enclosure


def test_a_clipped_score_is_highest_where_it_is_clipped_first() -> None:
    # Past the upper end of its range a term is level, and less its multiplier it falls.
    asks = (
        Ask("logistic", (1.0, 4.0), 0.0, "4", True),
        Ask("linear", (3.0, 4.0), 0.0, "1", False, (1.5, 2.5), clip=True),
        Ask("linear", (-2.0, 0.0), 0.0, "1", False, (-0.5, 0.5), clip=True),
    )
    case = Case((Side(-1.0, 1.0), Side(-1.0, 1.0)), asks)
    loss = xp.realized_loss(case.transcript, gap=1e-3)
    with mpmath.workdps(50):
        assert case.sampled_loss((0.25, 0.1875), (-1.0, -1.0)) <= loss.upper
    assert not complaints(case, loss, 1)


# -- when to stop --------------------------------------------------------------------------------


@pytest.mark.parametrize("steepness", [3.0, 30.0])
def test_a_search_ends_where_rounding_hides_all_that_splits_could_show(steepness: float) -> None:
    # There are some 8,000 doubles between the ends of a coordinate, and scores are sums of them.
    generator, least, width = random.Random(1), 1e18, 1e6
    asks = []
    for _ in range(8):
        weights = tuple(generator.gauss(0, 1) * steepness / width for _ in range(2))
        intercept = -sum(weights) * (least + width / 2)
        asks.append(Ask("logistic", weights, intercept, "1", generator.random() < 0.5))
    case = Case((Side(least, least + width),) * 2, tuple(asks))
    spread = BoxSpread(case.terms, case.box)
    spread.narrow(xp.solver.Effort(gap=0.01, nodes=20_000))
    assert spread.unsettled > 0.01
    assert spread.nodes < 5000
    assert not complaints(case, spread.enclosure, 1)


def test_a_search_that_moves_is_not_ended() -> None:
    generator, hard = random.Random(12), 0
    for step in range(4):
        asks = []
        for _ in range(14):
            weights = tuple(generator.choice([3.0, -3.0, generator.gauss(0, 5)]) for _ in range(6))
            ask = Ask("logistic", weights, generator.gauss(0, 2), "1", generator.random() < 0.5)
            # Contradictions make many parts of the box alike.
            asks += [ask, replace(ask, high=not ask.high)] if step % 2 else [ask]
        case = Case((Side(-1.0, 1.0),) * 6, tuple(asks))
        one, other = BoxSpread(case.terms, case.box), BoxSpread(case.terms, case.box)
        effort = xp.solver.Effort(gap=1e-3, nodes=1500)
        one.narrow(effort)
        with mock.patch.object(_methods, "_PATIENCE", 10**9):
            other.narrow(effort)
        assert (one.nodes, one.enclosure) == (other.nodes, other.enclosure)
        hard += one.nodes > 1000
    assert hard > 1


@pytest.mark.parametrize("seed", range(30))
def test_the_points_that_are_found_are_in_the_box_and_prove_the_lower_end(seed: int) -> None:
    case = some_case(random.Random(seed))
    total = xp.Odometer(case.transcript).log_likelihood
    assert isinstance(total, BoxLogLikelihood)
    spread = BoxSpread(total.terms, case.box)
    spread.narrow(xp.solver.Effort(gap=1e-4, nodes=60))
    above, below = spread.highest_at, spread.lowest_at
    for point in (above, below):
        assert case.box.locate(case.box.value(point)) == point
        integer = [isinstance(column, Integers) for column in case.box.columns]
        assert [isinstance(x, int) for x in point] == integer
    with mpmath.workdps(50):
        assert max(0, case.sampled_loss(above, below)) >= spread.enclosure.lower
