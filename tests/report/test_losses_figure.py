"""The histogram of many losses: every subject is in it or counted beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.report._plot import losses_figure

HARD = xp.channel([[1, 0], [0, 1]])
SOFT = xp.randomized_response(epsilon=1)


def figure_of(table: dict[str, Any]) -> tuple[int, list[str]]:
    """How many subjects the filled bars count, and what the legend says."""
    answers = xp.Answers(xp.FiniteSet([0, 1]), {"hard": HARD, "soft": SOFT}, table)
    figure = losses_figure(xp.realized_losses(answers))
    (axes,) = figure.axes
    bars = axes.containers[0].patches if axes.containers else []  # type: ignore[attr-defined]
    drawn = sum(int(bar.get_height()) for bar in bars)
    return drawn, [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    ("queries", "drawn", "legend"),
    [
        (["soft"] * 4, 4, ["realized loss: 1 on average", "basic composition: 1"]),
        (
            ["hard", "soft", "soft", "hard"],
            2,
            ["realized loss: 1 on average", "basic composition: 1", "infinite, not shown: 2"],
        ),
        (["hard"] * 4, 0, ["infinite, not shown: 4"]),
    ],
)
def test_subjects_are_drawn_or_counted(queries: list[str], drawn: int, legend: list[str]) -> None:
    table = {"subject": range(4), "query": queries, "response": [0, 1, 0, 1]}
    assert figure_of(table) == (drawn, legend)


def test_charges_that_differ_have_an_outline_of_their_own() -> None:
    table = {"subject": [1, 2, 2], "query": ["soft"] * 3, "response": np.array([0, 1, 0])}
    drawn, legend = figure_of(table)
    assert drawn == 2
    assert legend == ["realized loss: 0.5 on average", "basic composition: 1.5 on average"]
