"""The page of benchmarks has the numbers that its script prints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.budget_lifetime import analysts
from benchmarks.budget_lifetime.asking import Case, accepted
from benchmarks.budget_lifetime.cases import ANALYSTS, by_analyst, by_dimension, by_epsilon
from benchmarks.budget_lifetime.population import population
from benchmarks.budget_lifetime.tables import population_row, row

import expost as xp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "at", "case"),
    [
        (kind, at, make(kind, at))
        for make, kind, at in (
            (by_dimension, "logistic, weights up to 1", "15"),
            (by_epsilon, "the same half", "0.5"),
            (by_epsilon, "random halves", "0.1"),
            (by_analyst, "unrelated facts in turn", "1,024 values"),
            (by_analyst, "an adversary", "64 values"),
        )
    ],
)
def test_a_row_of_the_page_is_what_its_script_prints(kind: str, at: str, case: Case) -> None:
    assert row(kind, at, *accepted([case])) in PAGE.splitlines()


def test_the_page_counts_the_population_as_its_script_does() -> None:
    assert population_row(population(40), 40) in PAGE.splitlines()


def test_nobody_does_worse_than_basic_composition() -> None:
    names = ANALYSTS.keys() - {"the roomiest of 20"}  # its dry runs take long
    cases = [replace(by_analyst(name, "64 values"), runs=5) for name in sorted(names)]
    for found in accepted(cases):
        assert found.basic == 10
        assert all(10 <= run.simplified <= run.bayesian for run in found.runs)


def test_the_same_half_lasts_as_long_as_a_walk_between_two_ends() -> None:
    runs = 60
    (found,) = accepted([replace(by_epsilon("the same half", "0.1"), runs=runs)])
    counts = np.sort([run.bayesian for run in found.runs])
    # The loss is 0.1 times how far the walk is from its start; at ten steps nothing more fits.
    up = np.exp(0.1) / (1 + np.exp(0.1))
    inside = np.zeros(21)
    inside[10] = 1
    stopped = []
    for _ in range(counts[-1] + 1):
        stopped.append(inside[0] + inside[-1])
        moved = np.zeros(21)
        moved[2:] += up * inside[1:-1]
        moved[:-2] += (1 - up) * inside[1:-1]
        moved[[0, -1]] += inside[[0, -1]]
        inside = moved
    observed = np.searchsorted(counts, np.arange(len(stopped)), side="right") / runs
    assert np.abs(observed - stopped).max() < 1.63 / np.sqrt(runs)


@pytest.mark.parametrize("seed", range(20))
def test_no_set_of_values_drives_the_loss_up_faster_than_the_adversarys(seed: int) -> None:
    size, generator = 6, np.random.default_rng(seed)
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet(range(size))))
    agreed = np.zeros(size)
    stream = analysts.Halves(size).queries(generator)
    for _ in range(seed):
        query, response = next(stream), int(generator.integers(2))
        odometer = odometer.add(query, response)
        agreed += np.array(query.tree()["scores"]) == response

    def losses(scores: list[float]) -> tuple[float, ...]:
        """After the worse and after the better response, in units of epsilon."""
        after = [agreed + (np.array(scores) == response) for response in (0, 1)]
        return tuple(sorted((np.ptp(each) for each in after), reverse=True))

    every = [[float(number >> bit & 1) for bit in range(size)] for number in range(1, 2**size - 1)]
    asked = analysts.adversary(size, generator)(odometer).tree()["scores"]
    assert losses(asked) == max(map(losses, every))
