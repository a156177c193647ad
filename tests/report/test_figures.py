"""Figures: what is drawn is what was computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.numbers import Nats
from expost.report._plot import odometer_figure

YES = xp.randomized_response(epsilon="0.5")
DOMAIN = xp.FiniteSet(["no", "yes"])


def drawn(transcript: xp.Transcript, budget: Nats | None = None) -> tuple[Any, dict[str, Any]]:
    odometer = xp.Odometer(transcript)
    (axes,) = odometer_figure(odometer, odometer.history, budget).axes
    return axes, {str(line.get_label()): line for line in axes.lines}


def answered(*responses: str) -> xp.Transcript:
    transcript = xp.Transcript(DOMAIN)
    for response in responses:
        transcript = transcript.add(YES, response)
    return transcript


def test_the_lines_are_the_losses_the_charges_and_the_budget() -> None:
    transcript = answered("yes", "no", "yes", "yes")
    _, lines = drawn(transcript, Nats.budget(epsilon=1))
    realized = lines["realized loss: 4 answered"]
    assert list(realized.get_ydata()) == [loss.upper for loss in xp.Odometer(transcript).history]
    basic = lines["basic composition: stops after 2"]
    assert list(basic.get_ydata()) == pytest.approx([0, 0.5, 1])
    assert set(lines["budget 1"].get_ydata()) == {1}


def test_the_band_goes_from_lower_to_upper() -> None:
    losses = [xp.numbers.Enclosure(0, 0), xp.numbers.Enclosure(0.25, 0.75)]
    odometer = xp.Odometer(answered("yes"))
    (axes,) = odometer_figure(odometer, losses).axes
    (band,) = axes.collections
    corners = np.asarray(band.get_paths()[0].vertices).tolist()
    assert [1.0, 0.25] in corners
    assert [1.0, 0.75] in corners


def test_without_a_budget_basic_composition_is_drawn_to_its_end() -> None:
    axes, lines = drawn(answered("yes", "no", "yes"))
    assert list(lines["basic composition"].get_ydata()) == pytest.approx([0, 0.5, 1, 1.5])
    assert axes.get_ylim()[1] > 1.5
    assert not any(label.startswith("budget") for label in lines)


def test_an_empty_transcript_and_one_over_its_budget_are_drawn() -> None:
    axes, _ = drawn(xp.Transcript(DOMAIN))
    assert axes.get_ylim() == (0, 1)
    axes, lines = drawn(answered("yes", "yes"), Nats.budget(epsilon="0.1"))
    assert axes.get_ylim()[1] >= 1
    assert "basic composition: stops after 0" in lines


def test_infinite_losses_end_the_line() -> None:
    query = xp.channel([[1, 0], ["1/2", "1/2"]])
    transcript = answered("yes").add(query, 1).add(YES, "no")
    _, lines = drawn(transcript)
    assert len(lines["realized loss: 3 answered"].get_ydata()) == 2
    assert lines["infinite from here"].get_xdata()[0] == 1.5


@pytest.mark.parametrize("ratio", ["9/4", "100000000000000000001/100000000000000000000"])
def test_a_budget_of_many_digits_has_a_short_label(ratio: str) -> None:
    _, lines = drawn(answered("yes"), Nats.budget(ratio=ratio))
    (label,) = [label for label in lines if label.startswith("budget")]
    assert len(label) < 30


def test_composition_rules_are_drawn_until_they_stop() -> None:
    odometer = xp.Odometer(answered("yes", "no", "yes", "yes"))
    costs = {"basic": [0, 0.5, 1], "whitehouse": [0.0], "renyi": [0, 0.25, 0.5, 0.75, 0.9]}
    budget = Nats.budget(epsilon=1)
    (axes,) = odometer_figure(odometer, odometer.history, budget, costs).axes
    lines = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    assert lines["basic composition: stops after 2"] == costs["basic"]
    assert lines["Whitehouse: stops after 0"] == costs["whitehouse"]
    assert lines["Rényi"] == costs["renyi"]
    assert "realized loss: 4 answered" in lines
    assert set(lines["budget 1"]) == {1}
