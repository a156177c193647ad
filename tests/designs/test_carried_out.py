"""Surveys of the benchmarks are carried out as their names say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from benchmarks.simulated_studies import SURVEYED, Survey

import expost as xp

OFTEN = {
    "basic composition, all": 6.0,
    "basic composition, 2 sampled questions": 2.0,
    "one sampled question": 1.0,
    "declared plan with a delta, all": 6.0,
    "joint report": 1.0,
    "full-value report, subset selection": 1.0,
    "full-value report, Hadamard response": 1.0,
    "filter, 1/8 of the budget each": 6.0,
    "saturating, equal steps": 6.0,
    "saturating, 3 sampled questions": 3.0,
    "saturating, a third of the remainder": 6.0,
}
"""How many answers everybody gives; of the other designs that depends on what is answered."""


def surveyed_panel(design: str, size: int, monkeypatch: pytest.MonkeyPatch) -> xp.Panel:
    panels: list[xp.Panel] = []
    off = Survey.mean_square_error

    def kept(survey: Survey, panel: xp.Panel) -> float:
        panels.append(panel)
        return off(survey, panel)

    monkeypatch.setattr(Survey, "mean_square_error", kept)
    survey = Survey.random(size, 6, Fraction(1), 60, seed=1)
    assert survey.mean_square(design, 2) >= 0
    (panel,) = panels
    return panel


@pytest.mark.parametrize("design", SURVEYED)
def test_everybody_is_asked_as_often_as_a_design_says(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = surveyed_panel(design, 12, monkeypatch)
    assert panel.loss.upper.max() <= 1 + 1e-9
    if design in OFTEN:
        assert (panel.exchanges == OFTEN[design]).all()
    else:
        assert design.startswith("filter")
        assert panel.exchanges.min() >= 1


def test_of_two_values_every_question_has_room_at_its_largest_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel = surveyed_panel("filter, largest epsilon, in steps", 2, monkeypatch)
    assert (panel.exchanges == 6).all()
    # Each question either adds up to its step or takes all of the loss back.
    steps = np.unique((np.array(panel.loss.upper) * 6).round(6))
    assert set(steps.tolist()) <= {0.0, 4.0, 6.0}


def test_combinations_of_answers_are_all_that_questions_tell() -> None:
    survey = Survey.random(40, 3, Fraction(1), 50, seed=3)
    joined = survey.joined
    assert len(joined.chances) <= 8
    assert np.allclose(
        joined.questions @ joined.chances,
        survey.questions @ survey.chances,
    )
    assert (joined.questions[:, survey.combination] == survey.questions).all()
