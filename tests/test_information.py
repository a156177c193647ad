"""The benchmark of information measures what it says."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks.information import (
    DIMENSION,
    basic,
    basic_at_best,
    filtered,
    one_shot,
    query_of,
    regressions,
    traces,
)

import expost as xp

ROOT = Path(__file__).parent.parent
BOX = xp.Box([(-1, 1)] * DIMENSION)


def chance(query: xp.queries.Query, point: list[float]) -> float:
    """Of the upper end, as it is sampled."""
    place = BOX.locate(point)
    assert place is not None
    return float(query.on(BOX).pmf(place).probability(1))


def test_the_information_is_that_of_what_is_sampled() -> None:
    epsilon, step = Fraction(2), 1e-3
    thetas = regressions(np.random.default_rng(1), 3)
    for theta, trace in zip(thetas, traces(thetas, epsilon), strict=True):
        query = query_of(theta, epsilon)
        p = chance(query, [0.0] * DIMENSION)
        ends = (step * np.eye(DIMENSION)).tolist()
        slopes = [
            (chance(query, end) - chance(query, [-x for x in end])) / (2 * step) for end in ends
        ]
        told = sum(slope**2 for slope in slopes) / (p * (1 - p))
        assert trace == pytest.approx(told, rel=1e-6)


def test_one_coordinate_at_the_full_budget_is_the_one_shot_design() -> None:
    coordinates = np.eye(DIMENSION + 1)[1:]
    assert traces(coordinates, Fraction(2)) == pytest.approx(one_shot(2))


def test_basic_composition_gets_its_best_epsilon() -> None:
    assert [basic_at_best(budget, draws=500).median for budget in (1, 2, 4)] == [1, 1, 2]
    assert basic(1, 10, draws=500).information < basic(1, 1, draws=500).information / 5


def rows(page: str) -> list[list[str]]:
    """Of the tables whose rows begin with a budget and an epsilon."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return [line for line in lines if line[0] in ("1", "2", "4") and "±" in line[-2]]


RESULTS, PAGE = (rows(page) for page in ("benchmarks/RESULTS.md", "docs/explanation/benchmarks.md"))


def test_a_row_of_the_results_is_what_the_benchmark_measures() -> None:
    found, best = filtered(2, 2), basic_at_best(2)
    assert min(found.accepted) >= 2
    measured = [
        f"{found.information:.4f} ± {found.error:.4f}",
        f"{found.information / basic(2, 2).information:.1f}",
        f"{found.information / best.information:.2f} ± {found.error / best.information:.2f}",
        f"{found.information / one_shot(2):.2f}",
    ]
    assert ["2", "1", f"2, {found.median:g}", *measured] in RESULTS


def test_the_pages_have_the_figures_of_the_results() -> None:
    assert len(RESULTS) == 9
    assert [row[:2] + row[4:] for row in RESULTS] == PAGE
    tenths = [row for row in RESULTS if row[2].startswith("10, ")]
    gains = [f"{float(row[5].partition(' ')[0]):.1f}" for row in tenths]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{min(gains)} to {max(gains)} times" in readme
