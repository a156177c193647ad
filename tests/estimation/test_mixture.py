"""Mixtures: the gap holds against an independent climber, and no step goes down."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from expost.estimation.mixture import likeliest, nonnegative_minimum

Floats = NDArray[np.float64]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Likelihoods of several kinds, none of them all zero in a row, and counts."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    entries = draw(
        st.sampled_from(
            [
                st.floats(0.01, 1),
                st.sampled_from([0.0, 1.0]),
                st.sampled_from([0.99, 1.0, 1.01]),
                st.floats(-200, 0).map(math.exp),
            ]
        )
    )
    row = st.lists(entries, min_size=columns, max_size=columns).filter(any)
    table = np.array(draw(st.lists(row, min_size=rows, max_size=rows)))
    counts = draw(st.lists(st.integers(1, 10_000), min_size=rows, max_size=rows))
    return table / table.max(axis=1, keepdims=True), np.array(counts, dtype=np.float64)


def log_likelihood(table: Floats, counts: Floats, weights: Floats) -> float:
    return float(counts @ np.log(table @ weights))


def pairwise_climb(table: Floats, counts: Floats, sweeps: int = 40) -> float:
    """The maximum as another way finds it: mass goes between two values at a time, by bisection."""
    size = table.shape[1]
    weights = np.full(size, 1 / size)
    for _ in range(sweeps):
        for a in range(size):
            for b in range(a):
                both, rest = (
                    weights[a] + weights[b],
                    table @ np.where(np.isin(np.arange(size), [a, b]), 0.0, weights),
                )
                low, high = 0.0, 1.0
                for _ in range(45):
                    t = (low + high) / 2
                    mixed = rest + both * (t * table[:, a] + (1 - t) * table[:, b])
                    with np.errstate(divide="ignore", invalid="ignore"):
                        up = float(np.nansum(counts * (table[:, a] - table[:, b]) / mixed))
                    low, high = (t, high) if up > 0 else (low, t)
                weights[a], weights[b] = both * (low + high) / 2, both * (1 - (low + high) / 2)
    with np.errstate(divide="ignore"):
        return log_likelihood(table, counts, weights)


@settings(max_examples=25)
@given(tables())
def test_no_distribution_is_likelier_by_more_than_the_gap(case: tuple[Floats, Floats]) -> None:
    table, counts = case
    other = pairwise_climb(table, counts)
    for steps in (1, 3, 12, 1000):
        found = likeliest(table, counts, gap=1e-6, steps=steps)
        assert (found.weights >= 0).all()
        assert found.weights.sum() == pytest.approx(1, abs=1e-12)
        assert found.log_likelihood == pytest.approx(
            log_likelihood(table, counts, found.weights), rel=1e-12, abs=1e-9
        )
        assert other <= found.log_likelihood + found.gap + 1e-9 * (1 + abs(other))
    assert found.gap <= 1e-6
    assert found.steps < 100


@settings(max_examples=60)
@given(tables())
def test_no_step_goes_down(case: tuple[Floats, Floats]) -> None:
    table, counts = case
    heights = [
        likeliest(table, counts, gap=1e-9, steps=steps).log_likelihood for steps in range(25)
    ]
    slack = 1e-12 * (1 + abs(heights[0]))
    assert all(after >= before - slack for before, after in pairwise(heights))


def test_the_gap_is_the_one_of_the_formula() -> None:
    table = np.array([[1.0, 0.5, 0.25], [0.25, 1.0, 0.5], [1.0, 0.1, 1.0]])
    counts = np.array([3.0, 5.0, 2.0])
    found = likeliest(table, counts, gap=1e-30, steps=2)
    with mpmath.workdps(40):
        weights = [mpmath.mpf(float(w)) for w in found.weights]
        rows = [[mpmath.mpf(float(x)) for x in row] for row in table]
        mixed = [sum(x * w for x, w in zip(row, weights, strict=True)) for row in rows]
        slopes = [
            sum(n * row[j] / m for n, row, m in zip(counts, rows, mixed, strict=True))
            for j in range(3)
        ]
        gap = 10 * mpmath.log(max(slopes) / 10)
    assert found.gap == pytest.approx(float(gap), rel=1e-9)
    assert found.gap <= float(max(slopes)) - 10


@pytest.mark.parametrize("spread", [0.001, 0.1, 3.0])
def test_many_rows_take_few_steps(spread: float) -> None:
    generator = np.random.default_rng(3)
    table = np.exp(generator.normal(0, spread, (3000, 12)))
    found = likeliest(table, np.ones(3000), gap=1e-6, steps=100)
    assert found.gap <= 1e-6
    assert found.steps < 40


def test_columns_that_are_alike_do_no_harm() -> None:
    generator = np.random.default_rng(4)
    half = generator.uniform(0.1, 1, (50, 3))
    twice = np.concatenate([half, half], axis=1)
    one = likeliest(half, np.ones(50), gap=1e-9, steps=100)
    two = likeliest(twice, np.ones(50), gap=1e-9, steps=100)
    assert two.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-8)
    assert two.weights[:3] + two.weights[3:] == pytest.approx(one.weights, abs=1e-4)


def test_the_least_of_a_quadratic_form_satisfies_its_conditions() -> None:
    generator = random.Random(1)
    for _ in range(300):
        size = generator.randint(1, 8)
        root = np.array([[generator.gauss(0, 1) for _ in range(size)] for _ in range(size)])
        curved = root @ root.T + 1e-6 * np.eye(size)
        linear = np.array([generator.gauss(0, 1) for _ in range(size)])
        free = np.array([generator.random() < 0.5 for _ in range(size)])
        x = nonnegative_minimum(curved, linear, free)
        assert x is not None
        slopes = curved @ x - linear
        scale = 1e-7 * (1 + np.abs(x).max()) * (1 + np.abs(curved).max())
        assert (x >= 0).all()
        assert (slopes >= -scale).all()
        assert (np.abs(slopes[x > 0]) <= scale).all()


def test_a_singular_quadratic_form_is_given_up() -> None:
    assert nonnegative_minimum(np.zeros((2, 2)), np.ones(2), np.array([True, True])) is None
