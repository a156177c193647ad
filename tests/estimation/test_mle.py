"""Mixtures: the gap holds against fractions and an independent climber, and is soon small."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from expost.estimation._mle import fit_mixture

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
                both, constant_part = (
                    weights[a] + weights[b],
                    table @ np.where(np.isin(np.arange(size), [a, b]), 0.0, weights),
                )
                low, high = 0.0, 1.0
                for _ in range(45):
                    t = (low + high) / 2
                    mixed = constant_part + both * (t * table[:, a] + (1 - t) * table[:, b])
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
        fit = fit_mixture(table, counts, gap=1e-6, steps=steps)
        assert (fit.weights >= 0).all()
        assert fit.weights.sum() == pytest.approx(1, abs=1e-12)
        assert fit.log_likelihood == pytest.approx(
            log_likelihood(table, counts, fit.weights), rel=1e-12, abs=1e-9
        )
        assert other <= fit.log_likelihood + fit.gap + 1e-9 * (1 + abs(other))
    assert fit.gap <= 1e-6
    assert fit.steps < 100


def exact_gap(table: Floats, counts: Floats, weights: Floats) -> mpmath.mpf:
    """What the formula gives for these weights, in fractions up to the logarithm."""
    rows = [[Fraction(x) for x in row] for row in table.tolist()]
    shares = [Fraction(w) for w in weights.tolist()]
    times = [int(n) for n in counts]
    mixed = [sum(map(operator.mul, row, shares)) for row in rows]
    slopes = [
        sum((n * row[j] / m for n, row, m in zip(times, rows, mixed, strict=True)), Fraction(0))
        for j in range(table.shape[1])
    ]
    largest = max(slopes) / sum(times)
    with mpmath.workdps(40):
        return sum(times) * mpmath.log(mpmath.mpf(largest.numerator) / largest.denominator)


@settings(max_examples=40)
@given(tables(), st.integers(0, 12))
def test_the_gap_is_that_of_the_formula_rounded_up(case: tuple[Floats, Floats], steps: int) -> None:
    table, counts = case
    fit = fit_mixture(table, counts, gap=1e-300, steps=steps)
    exact = exact_gap(table, counts, fit.weights)
    assert fit.gap >= exact
    assert fit.gap <= exact * (1 + 1e-9) + 1e-13 * counts.sum()


@settings(max_examples=40)
@given(tables())
def test_more_steps_never_leave_more(case: tuple[Floats, Floats]) -> None:
    table, counts = case
    gaps = [fit_mixture(table, counts, gap=1e-9, steps=steps).gap for steps in range(15)]
    assert all(after <= before for before, after in pairwise(gaps))


@pytest.mark.parametrize(("subjects", "queries"), [(40, 3), (100, 3), (100, 20), (1000, 5)])
def test_values_that_can_hardly_be_told_apart_take_few_steps(subjects: int, queries: int) -> None:
    table, counts = grid_study(subjects, queries)
    calls: list[tuple[int, float]] = []
    fit = fit_mixture(table, counts, gap=1e-6, steps=30, progress=lambda *at: calls.append(at))
    assert fit.gap <= 1e-6
    assert calls[-1] == (fit.steps, fit.gap)
    assert [step for step, _ in calls] == list(range(fit.steps + 1))
    # The conditions of Karush, Kuhn and Tucker: no slope above one, and one where there is mass.
    slopes = (counts / counts.sum() / (table @ fit.weights)) @ table
    assert slopes.max() <= 1 + 1e-6 / counts.sum()
    assert fit.weights @ (1 - slopes) == pytest.approx(0, abs=1e-12)
    assert float(fit.weights[slopes < 1 - 1e-3].sum()) < 1e-5


def grid_study(subjects: int, queries: int) -> tuple[Floats, Floats]:
    """One-bit queries about linear scores of 12 × 12 points."""
    generator = np.random.default_rng(0)
    points = np.array(list(product(np.linspace(-1, 1, 12), repeat=2)))
    table = np.ones((subjects, len(points)))
    for _ in range(queries):
        weights = generator.uniform(-1, 1, 2)
        scores = (points @ weights / np.abs(weights).sum() + 1) / 2
        high = (1 + scores * (math.e - 1)) / (math.e + 1)
        bits = generator.random(subjects) < high[generator.integers(len(points), size=subjects)]
        table *= np.where(bits[:, None], high, 1 - high)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    return rows / rows.max(axis=1, keepdims=True), counts.astype(np.float64)


def test_rounding_stops_it_in_time() -> None:
    generator = np.random.default_rng(5)
    table = generator.uniform(0.1, 1, (200, 20))
    fit = fit_mixture(table, np.full(200, 1e9), gap=1e-9, steps=1000)
    assert 1e-9 < fit.gap < 0.1
    assert fit.steps < 60


@pytest.mark.parametrize("spread", [0.001, 0.1, 3.0])
def test_many_rows_take_few_steps(spread: float) -> None:
    generator = np.random.default_rng(3)
    table = np.exp(generator.normal(0, spread, (3000, 12)))
    fit = fit_mixture(table, np.ones(3000), gap=1e-6, steps=100)
    assert fit.gap <= 1e-6
    assert fit.steps < 40


def test_columns_that_are_alike_do_no_harm() -> None:
    generator = np.random.default_rng(4)
    half = generator.uniform(0.1, 1, (50, 3))
    twice = np.concatenate([half, half], axis=1)
    unit = fit_mixture(half, np.ones(50), gap=1e-9, steps=100)
    two = fit_mixture(twice, np.ones(50), gap=1e-9, steps=100)
    assert two.log_likelihood == pytest.approx(unit.log_likelihood, abs=1e-8)
    assert two.weights[:3] + two.weights[3:] == pytest.approx(unit.weights, abs=1e-4)
