"""Estimates with their intervals, as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.cards import count
from expost.estimation.answers import level_text
from expost.report.estimates import Estimate, Estimated
from expost.report.palette import INK, REALIZED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST", "WIDTH", "draw_estimates", "estimate_figure", "high", "inches", "put_labels"]

MOST = 40
"""How many are drawn on axes of their own: the largest, if there are more."""

WIDTH = 8.0
_LINE = 0.24
"""Inches from one line of text to the next."""
_LETTERS = 6.2
"""How many of a label may be shown beside each inch of axes."""


def estimate_figure(found: Estimated) -> Figure:
    """The estimates of a command, on a figure of their own."""
    from matplotlib.figure import Figure

    rows = found.estimates
    if len(rows) > MOST:
        largest = sorted(rows, key=lambda row: -row.estimate)[:MOST]
        rows = tuple(row for row in rows if row in largest)
    left = len(found.estimates) - len(rows)
    figure = Figure(figsize=(WIDTH, high(len(rows)) + 0.3), layout="constrained")
    axes = figure.subplots()
    said = [f"{count(found.answers, 'response')} of {count(found.subjects, 'subject')}"]
    said += ["can be biased"] if found.doubtful else []
    said += [f"{left:,} smaller ones not shown"] if left else []
    draw_estimates(axes, rows, found.confidence, said)
    axes.set_title(found.what, loc="left", fontsize="medium")
    return figure


def draw_estimates(
    axes: Axes, rows: Sequence[Estimate], confidence: float, said: Sequence[str]
) -> None:
    """A row per estimate: a point, and a line from the lower to the upper end of its interval.

    What the responses do not determine is hollow. ``said`` goes below.
    """
    middle, lower, upper = (
        np.array([getattr(row, name) for row in rows]) for name in ("estimate", "lower", "upper")
    )
    known = np.array([row.identified for row in rows])
    of_mean = len(rows) == 1 and rows[0].label == "mean"
    places = np.arange(len(rows))
    room = 72 * inches(axes)[1] / len(rows)  # of a row, in points
    thick, size = min(4.0, 0.5 * room), min(6.0, 0.8 * room)
    axes.hlines(places, lower, upper, color=REALIZED, linewidth=thick, alpha=0.45)
    axes.plot(middle[known], places[known], "o", color=REALIZED, markersize=size)
    axes.plot(
        middle[~known], places[~known], "o", color=REALIZED, markersize=size,
        markerfacecolor="white",
    )  # fmt: skip
    what = "mean" if of_mean else "share"
    lines = [f"{what}, {level_text(confidence)} interval{'' if of_mean else 's'}", *said]
    lines += [] if known.all() else ["hollow: not determined by them"]
    axes.set(xlabel="\n".join(lines))
    letters = int(_LETTERS * inches(axes)[0])
    put_labels(axes, [_short(row.label, letters) for row in rows])
    if not of_mean:
        axes.axvline(0, color=INK, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def high(rows: int) -> float:
    """How many inches a figure needs for some rows of text."""
    return max(1.8, 1.2 + 1.3 * _LINE * rows)


def inches(axes: Axes) -> tuple[float, float]:
    """Width and height of axes."""
    figure: Any = axes.get_figure(root=True)
    box = axes.get_position()
    width, height = figure.get_size_inches()
    return box.width * width, box.height * height


def put_labels(axes: Axes, labels: Sequence[str]) -> None:
    """A label to each row, from the top, or to every so many where there is no room for all."""
    _, height = inches(axes)
    step = max(1, math.ceil(len(labels) * _LINE / height))
    # What stands between dollars would be set as a formula.
    texts = [label.replace("$", r"\$") for label in labels]
    axes.set_yticks(range(0, len(labels), step), texts[::step])
    axes.set_ylim(len(labels) - 0.4, -0.6)


def _short(label: str, letters: int) -> str:
    """A label that is not too long: both ends of it, for values often end differently."""
    last = letters * 2 // 5
    return label if len(label) <= letters else f"{label[: letters - last]}…{label[-last:]}"
