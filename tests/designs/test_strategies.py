"""Every study design is one channel within the budget, and its table is a channel."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.designs import Arrival, Study
from expost.designs._accuracy import ExactOutcomes, SimulatedOutcomes, SubsetOutcomes
from expost.designs.strategies import (
    FixedEpsilon,
    SaturatingCaps,
    Simulation,
    Strategy,
    strategies_for,
)
from expost.saturation import equal_caps, geometric_caps
from support.random_cases import columns

GOALS = ["value < 2", "value == 1 or value > 4", "value == 3 or value == 0"]
STUDIES = {
    "sequential": Study(xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS),
    "rounds": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="up front",
        rounds=4,
    ),
    "open-ended": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="open-ended",
    ),
    "shares and means": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5",
        goals=[{"distribution": "value"}, {"mean": "value"}, "value < 3"],
    ),
}  # fmt: skip
CASES = [
    pytest.param(study, strategy, id=f"{name}: {strategy.name}")
    for name, study in STUDIES.items()
    for strategy in strategies_for(study)
]


@pytest.mark.parametrize(("study", "strategy"), CASES)
def test_whatever_a_subject_shows_is_within_the_budget(study: Study, strategy: Strategy) -> None:
    outcomes = strategy.outcomes(study.model, study.epsilon, Simulation(8, 1))
    assert outcomes.weights.sum() == pytest.approx(1)
    assert all(0 <= share <= 1 for share in outcomes.answering)
    assert strategy.description
    if isinstance(outcomes, SubsetOutcomes):
        assert outcomes.ratio == pytest.approx(math.exp(1.5))
        return
    assert isinstance(outcomes, ExactOutcomes | SimulatedOutcomes)
    if isinstance(outcomes, ExactOutcomes):
        assert np.allclose(outcomes.table.sum(axis=0), 1, atol=1e-9)
    spread = outcomes.table.max(axis=1) / outcomes.table.min(axis=1)
    assert spread.max() <= math.exp(1.5) * (1 + 1e-9)
    assert spread.max() > 1.05
    # The mean of a subject's scores is one at every cell.
    assert np.allclose(outcomes.information @ outcomes.weights, 1, atol=0.15)


def test_questions_that_come_when_nothing_is_left_are_not_asked() -> None:
    goals = [f"value < {1 + index % 3}" for index in range(100)]
    study = Study(
        xp.FiniteSet(range(4)), subjects=100, epsilon=2, goals=goals, arrival="open-ended"
    )
    shown = SaturatingCaps(None, 100).outcomes(study.model, study.epsilon, Simulation(8, 0))
    # 2 · (2/3)^35 is above 2^-20, and 2 · (2/3)^36 is not.
    assert shown.answers == 35
    assert shown.answering == (1.0,) * 35 + (0.0,) * 65


def test_answers_are_counted() -> None:
    study = STUDIES["sequential"]
    for strategy in strategies_for(study):
        outcomes = strategy.outcomes(study.model, Fraction(3, 2), Simulation(8, 1))
        if len(outcomes.answering) == 3:
            assert outcomes.answers == pytest.approx(sum(outcomes.answering), rel=0.01)


@pytest.mark.parametrize(("size", "epsilon"), [(3, "0.5"), (6, "1.5"), (9, "4")])
@pytest.mark.parametrize("sampled", [3, None])
def test_saturating_states_are_those_of_every_transcript(
    size: int, epsilon: str, sampled: int | None
) -> None:
    """By going through all sequences of answers, with the queries that odometers get."""
    domain = xp.FiniteSet(range(size))
    halves = [[0, 1], [size - 1], [value for value in range(size) if value % 2]]
    goals = [{"share": half} for half in halves]
    study = Study(domain, subjects=100, epsilon=epsilon, goals=goals)
    caps = equal_caps(epsilon, questions=3) if sampled else islice(geometric_caps(epsilon), 3)
    start = xp.Odometer(xp.Transcript(domain))
    paths = [(start, np.ones(size))]
    for half, cap in zip(halves, caps, strict=True):
        paths = [
            (odometer.add(query, response), chances * np.array(column, dtype=np.float64))
            for odometer, chances in paths
            for query in [xp.saturating(odometer, half, cap=cap)]
            for response, column in zip(
                query.on(domain).responses, columns(query, domain), strict=True
            )
        ]
    by_set: dict[bytes, np.ndarray[Any, Any]] = {}
    for _, chances in paths:
        key = (chances > chances.min() * 1.001).tobytes()
        by_set[key] = by_set.get(key, 0) + chances
    shown = SaturatingCaps(sampled, 3).outcomes(study.model, study.epsilon, Simulation(8, 0))
    assert isinstance(shown, ExactOutcomes)
    expected = np.array(sorted(chances.round(9).tolist() for chances in by_set.values()))
    table = np.array(sorted(shown.table[:, shown.cells].round(9).tolist()))
    assert np.allclose(table, expected, atol=1e-8)


def test_values_that_no_question_tells_apart_are_simulated_as_one() -> None:
    """Twenty values in six combinations: the same answers as of six values."""
    of = np.arange(20) % 6
    halves = [[0, 1], [1, 4, 5], [3, 0]]
    large, small = (
        Study(
            xp.FiniteSet(range(len(combination_of))),
            subjects=300,
            epsilon="1.5",
            goals=[
                {"share": np.flatnonzero(np.isin(combination_of, half)).tolist()} for half in halves
            ],
            population={
                "probabilities": (1 / np.bincount(combination_of)[combination_of] / 6).tolist()
            },
        )
        for combination_of in (of, np.arange(6))
    )
    large_model, small_model = large.model, small.model
    assert len(large_model.combined.support) == len(np.unique(large_model.combinations))
    for part, rounds in ((Fraction(1, 6), 5), (Fraction(1, 2), 1)):
        strategy = FixedEpsilon(part, rounds, Arrival.UP_FRONT)
        simulated, other = (
            strategy.outcomes(model, Fraction(3, 2), Simulation(8, 3))
            for model in (large_model, small_model.combined)
        )
        assert isinstance(simulated, SimulatedOutcomes)
        assert isinstance(other, SimulatedOutcomes)
        assert (simulated.cells == other.cells[large_model.combinations]).all()
        assert np.allclose(simulated.information, other.information)
        assert simulated.answering == other.answering


def test_simulated_tallies_are_what_subjects_answered() -> None:
    study = STUDIES["rounds"]
    strategy = FixedEpsilon(Fraction(1, 6), 4, Arrival.UP_FRONT)
    shown = strategy.outcomes(study.model, study.epsilon, Simulation(8, 1))
    assert isinstance(shown, SimulatedOutcomes)
    # Everybody has room for six answers of a sixth of the budget, whatever was answered.
    assert 6 <= shown.answers <= 12
    assert shown.answering[0] == 1
    assert len(shown.kinds) >= 8 * 300
    spread = np.log(shown.table.max(axis=1) / shown.table.min(axis=1))
    steps = spread / 0.25
    assert np.allclose(steps, steps.round(), atol=1e-6)
    assert steps.max().round() == 6
