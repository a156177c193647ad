"""Every way of asking is one channel within the budget, and its table is a channel."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import expost as xp
from expost.designs import Study
from expost.designs.outcomes import Kinds, Seen, Subsets
from expost.designs.policies import Policy, Simulation, Tilted, policies_for

GOALS = ["value < 2", "value == 1 or value > 4", "value == 3 or value == 0"]
STUDIES = {
    "in turn": Study(xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS),
    "rounds": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="together",
        rounds=4,
    ),
    "open": Study(xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="open"),
    "shares and means": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5",
        goals=[{"distribution": "value"}, {"mean": "value"}, "value < 3"],
    ),
}  # fmt: skip
CASES = [
    pytest.param(study, policy, id=f"{name}: {policy.name}")
    for name, study in STUDIES.items()
    for policy in policies_for(study)
]


@pytest.mark.parametrize(("study", "policy"), CASES)
def test_whatever_a_subject_shows_is_within_the_budget(study: Study, policy: Policy) -> None:
    outcomes = policy.outcomes(study.model, study.epsilon, Simulation(8, 1))
    assert outcomes.weights.sum() == pytest.approx(1)
    assert all(0 <= share <= 1 for share in outcomes.answering)
    assert policy.words
    if isinstance(outcomes, Subsets):
        assert outcomes.ratio == pytest.approx(math.exp(1.5))
        return
    assert isinstance(outcomes, Kinds | Seen)
    if isinstance(outcomes, Kinds):
        assert np.allclose(outcomes.table.sum(axis=0), 1, atol=1e-9)
    spread = outcomes.table.max(axis=1) / outcomes.table.min(axis=1)
    assert spread.max() <= math.exp(1.5) * (1 + 1e-9)
    assert spread.max() > 1.05
    # The mean of a subject's scores is one at every cell.
    assert np.allclose(outcomes.information @ outcomes.weights, 1, atol=0.15)


def test_questions_that_come_when_nothing_is_left_are_not_asked() -> None:
    goals = [f"value < {1 + number % 3}" for number in range(100)]
    study = Study(xp.FiniteSet(range(4)), subjects=100, epsilon=2, goals=goals, arrival="open")
    found = Tilted(None, 100).outcomes(study.model, study.epsilon, Simulation(8, 0))
    # 2 · (2/3)^35 is above 2^-20, and 2 · (2/3)^36 is not.
    assert found.answers == 35
    assert found.answering == (1.0,) * 35 + (0.0,) * 65


def test_answers_are_counted() -> None:
    study = STUDIES["in turn"]
    for policy in policies_for(study):
        outcomes = policy.outcomes(study.model, Fraction(3, 2), Simulation(8, 1))
        if len(outcomes.answering) == 3:
            assert outcomes.answers == pytest.approx(sum(outcomes.answering), rel=0.01)
