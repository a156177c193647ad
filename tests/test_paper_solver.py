"""The paper's own solver, a peer of our search: its bounds hold, and agree with ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.instances import Array, Instance, Question, draw, health_table
from benchmarks.paper_solver import compare
from benchmarks.peers.paper import DELTA, Program, branch_and_bound, descend, relax, split

MIXED = (
    Question("logistic", (1.5, -2.0), 0.3, "1"),
    Question("linear", (2.0, 1.0), 0.2, "0.5", (-1.0, 1.0)),
    Question("linear", (1.0, -1.0), 0.0, "2"),
    Question("logistic", (0.0, 0.0), 1.0, "0.1"),
)


def mixed(responses: tuple[int, ...]) -> Instance:
    low, high = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    return Instance("mixed", MIXED, responses, low, high, low > high, 0.02)


INSTANCES = [
    mixed((1, 1, 1, 1)),
    mixed((0, 1, 0, 0)),
    mixed((1, 0, 0, 1)),
    draw("steep", "logistic", n=3, d=2, scale=10, seed=1),
    draw("linear", "linear", n=6, d=3, scale=10, seed=2),
    health_table()[6],
]
by_instance = pytest.mark.parametrize("instance", INSTANCES, ids=range(len(INSTANCES)))


def sample(instance: Instance, size: int, seed: int = 1) -> Array:
    generator = np.random.default_rng(seed)
    shares = generator.random((size, len(instance.lower)))
    # Some on the boundary, where extremes often are.
    shares = np.where(generator.random(shares.shape) < 0.3, np.round(shares), shares)
    return instance.lower + shares * (instance.upper - instance.lower)


@by_instance
def test_the_split_is_two_convex_functions_whose_difference_is_the_log_likelihood(
    instance: Instance,
) -> None:
    f, g = split(instance)
    rows, offsets = instance.affine
    points = sample(instance, 500)
    scores = points @ rows.T + offsets
    values = (f.value(scores) - g.value(scores)).sum(1)
    np.testing.assert_allclose(values, instance.log_likelihood(points), atol=1e-9)
    for function in (f, g):
        u, v = scores[:250], scores[250:]
        tangent = function.value(u) + function.slope(u) * (v - u)
        assert np.all(tangent <= function.value(v) + 1e-9)


@by_instance
@pytest.mark.parametrize("sense", [1, -1])
def test_a_relaxation_is_below_every_point_whose_scores_are_in_its_ranges(
    instance: Instance, sense: int
) -> None:
    f, g = split(instance)[::-sense]
    rows, offsets = instance.affine
    points = sample(instance, 4000)
    scores, values = points @ rows.T + offsets, -sense * instance.log_likelihood(points)
    low, high = instance.ranges
    generator = np.random.default_rng(2)
    without = 0
    for _ in range(12):
        ends = np.sort(generator.random((2, len(low))), axis=0)
        ends = np.where(generator.random(len(low)) < 0.5, ends, [[0], [1]])
        ranges = low + ends * (high - low)
        program = Program(instance, f, ranges)
        bound, point = relax(program, g)
        inside = np.all((ranges[0] <= scores) & (scores <= ranges[1]), axis=1)
        assert bound <= np.min(values[inside], initial=np.inf) + 1e-9
        if point is None:
            without += 1
            continue
        value, better = descend(program, g, point)
        assert value <= -sense * float(instance.log_likelihood(point)) + 1e-9
        assert value == pytest.approx(-sense * float(instance.log_likelihood(better)))
    assert without < 12


def test_ranges_that_no_point_has_are_recognized() -> None:
    instance = draw("steep", "logistic", n=2, d=1, scale=10, seed=3)
    f, g = split(instance)
    rows, offsets = instance.affine
    at_one = rows[:, 0] * np.array([-1.0, 1.0]) + offsets
    bound, point = relax(Program(instance, f, np.stack([at_one - 0.1, at_one + 0.1])), g)
    assert bound == np.inf
    assert point is None


@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("instance", [INSTANCES[0], INSTANCES[4]], ids=["mixed", "linear"])
def test_it_ends_within_its_tolerance_of_the_extreme(instance: Instance, sense: int) -> None:
    found = branch_and_bound(instance, sense)
    assert found.finished
    assert found.bound >= found.value - DELTA
    values = -sense * instance.log_likelihood(sample(instance, 20_000))
    assert found.bound <= values.min()
    assert found.value <= values.min() + DELTA
    assert found.value == pytest.approx(-sense * float(instance.log_likelihood(found.point)))


@pytest.mark.parametrize(
    "instance",
    [INSTANCES[1], INSTANCES[4], draw("smooth", "logistic", n=2, d=2, scale=1, seed=1)],
    ids=["mixed", "linear", "smooth"],
)
def test_it_agrees_with_our_search(instance: Instance) -> None:
    both = compare("", instance, delta=0.02)
    assert both.finished
    assert not both.contradiction
    assert both.their_loss.upper - both.their_loss.lower <= 0.04 + 1e-9
    wrong = replace(both, ours=type(both.ours)(both.their_loss.upper + 1e-6, 5.0))
    assert wrong.contradiction
