"""Surveys of the benchmarks are carried out as their names say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from benchmarks.realized import WAYS, Survey

import expost as xp

OFTEN = {
    "basic composition, all": 6.0,
    "basic composition, 2 random ones": 2.0,
    "one random question each": 1.0,
    "declared plan with a delta, all": 6.0,
    "all answers at once": 1.0,
    "the value once, subset selection": 1.0,
    "the value once, Hadamard response": 1.0,
    "filter, 1/8 of the budget each": 6.0,
    "saturating, equal steps": 6.0,
    "saturating, 3 random ones": 3.0,
    "saturating, a third of the rest": 6.0,
}
"""How many answers everybody gives; of the other ways that depends on what is answered."""


def asked(way: str, size: int, monkeypatch: pytest.MonkeyPatch) -> xp.Panel:
    panels: list[xp.Panel] = []
    off = Survey.off

    def kept(survey: Survey, panel: xp.Panel) -> float:
        panels.append(panel)
        return off(survey, panel)

    monkeypatch.setattr(Survey, "off", kept)
    survey = Survey.random(size, 6, Fraction(1), 60, seed=1)
    assert survey.mean_square(way, 2) >= 0
    (panel,) = panels
    return panel


@pytest.mark.parametrize("way", WAYS)
def test_everybody_is_asked_as_often_as_a_way_of_asking_says(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = asked(way, 12, monkeypatch)
    assert panel.loss.upper.max() <= 1 + 1e-9
    if way in OFTEN:
        assert (panel.exchanges == OFTEN[way]).all()
    else:
        assert way.startswith("filter")
        assert panel.exchanges.min() >= 1


def test_of_two_values_every_question_has_room_at_its_largest_epsilon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel = asked("filter, largest epsilon, in steps", 2, monkeypatch)
    assert (panel.exchanges == 6).all()
    # Each question either adds up to its step or takes all of the loss back.
    steps = np.unique((np.array(panel.loss.upper) * 6).round(6))
    assert set(steps.tolist()) <= {0.0, 4.0, 6.0}


def test_combinations_of_answers_are_all_that_questions_tell() -> None:
    survey = Survey.random(40, 3, Fraction(1), 50, seed=3)
    joined = survey.joined
    assert len(joined.chances) <= 8
    assert np.allclose(joined.questions @ joined.chances, survey.questions @ survey.chances)
    assert (joined.questions[:, survey.combination] == survey.questions).all()
