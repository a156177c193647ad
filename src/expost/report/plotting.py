"""Pictures of results on axes of matplotlib, which comes with the extra ``plot``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.audit.losses import Losses
from expost.errors import InvalidInput, printable
from expost.estimation import Distribution, Frequencies, Mean
from expost.estimation.answers import level_text
from expost.filters.account import account_of
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure
from expost.report.comparison import Comparison
from expost.report.figures import BASIC, INK, REALIZED, draw_losses, draw_odometer
from expost.report.words import shown, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot"]

Estimate = Mean | Frequencies | Distribution

_WIDTH, _HEIGHT = 8.0, 4.2
_LINE = 0.24
"""Inches from one line of text to the next."""
_MOST_ROWS = 40
_LABEL = (12, 9)
"""How many characters of a long label are shown at either end: values often end differently."""
_LEGEND = 2.9
"""Inches for an entry of a legend."""
_REPETITIONS = 200


def plot(thing: object, ax: Axes | None = None) -> Axes:
    """Draw a result, on given axes of matplotlib or on new ones, and return the axes.

    - a transcript, a session, an odometer or a replay: the loss after each response, beside basic
      composition and the budget. Over a box this searches for every loss;
    - :class:`~expost.audit.Losses`: how the losses of many subjects are spread;
    - a mean, frequencies or a distribution: the estimates with their intervals. Those of a
      distribution are from 200 bootstrap repetitions;
    - a comparison: what every accounting says, and how many more queries it would accept.

    >>> import expost as xp
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=2))
    >>> axes = xp.plot(transcript.add(xp.randomized_response(epsilon=1), "yes"))
    >>> axes.get_xlabel()
    'responses given'
    """
    if isinstance(thing, Losses):
        axes = _axes(ax)
        draw_losses(axes, thing)
        _legend(axes)
    elif isinstance(thing, Estimate):
        axes = _draw_estimate(thing, ax)
    elif isinstance(thing, Comparison):
        axes = _axes(ax, len(thing.standings) + 3)
        _draw_comparison(axes, thing)
        _legend(axes)
    else:
        odometer = _odometer(thing)
        guard = odometer.transcript.filter
        axes = _axes(ax)
        draw_odometer(axes, odometer, odometer.history, None if guard is None else guard.budget)
        _legend(axes)
    return axes


def _odometer(thing: object) -> Odometer:
    try:
        odometer = account_of(thing)
    except InvalidInput:
        known = "a transcript, a session, an odometer, losses, an estimate or a comparison"
        raise InvalidInput(f"must be {known}, not {type(thing).__name__}") from None
    assert isinstance(odometer, Odometer)
    return odometer


def _axes(ax: Axes | None, rows: int | None = None) -> Axes:
    """The given axes, or new ones that are high enough for some rows of text."""
    if ax is not None:
        return ax
    try:
        # Not the bare Figure: notebooks show what pyplot has made.
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise InvalidInput("a picture needs the extra: pip install 'expost[plot]'") from None
    height = _HEIGHT if rows is None else max(1.8, 1.2 + 1.3 * _LINE * rows)
    _, axes = pyplot.subplots(figsize=(_WIDTH, height), layout="constrained")
    return axes


def _inches(axes: Axes) -> tuple[float, float]:
    figure: Any = axes.get_figure(root=True)
    box = axes.get_position()
    width, height = figure.get_size_inches()
    return box.width * width, box.height * height


def _legend(axes: Axes) -> None:
    """Above the axes it is in nobody's way, whichever way the lines go."""
    width, _ = _inches(axes)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=max(1, int(width / _LEGEND)),
        frameon=False, borderaxespad=0.2,
    )  # fmt: skip


def _draw_estimate(found: Estimate, ax: Axes | None) -> Axes:
    if isinstance(found, Mean):
        labels, middle = ["mean"], np.array([found.mean])
        lower, upper = np.array([found.lower]), np.array([found.upper])
        level, known = found.confidence, np.array([True])
        what = f"mean, {level_text(level)} interval"
    else:
        labels = [_short(value_text(value, found.domain)) for value in found.domain.values]
        if isinstance(found, Frequencies):
            middle, lower, upper, level = (
                found.frequency, found.lower, found.upper, found.confidence,
            )  # fmt: skip
            known = np.ones(len(labels), dtype=bool)
        else:
            ends = found.intervals(repetitions=_REPETITIONS)
            middle, lower, upper, level = (
                found.probabilities, ends.lower, ends.upper, ends.confidence,
            )  # fmt: skip
            known = found.identified
        what = f"share, {level_text(level)} intervals"
    axes = _axes(ax, min(len(labels), _MOST_ROWS))
    places = np.arange(len(labels))
    room = 72 * _inches(axes)[1] / len(labels)  # of a row, in points
    thick, size = min(4.0, 0.5 * room), min(6.0, 0.8 * room)
    axes.hlines(places, lower, upper, color=REALIZED, linewidth=thick, alpha=0.45)
    axes.plot(middle[known], places[known], "o", color=REALIZED, markersize=size)
    axes.plot(
        middle[~known], places[~known], "o", color=REALIZED, markersize=size,
        markerfacecolor="white",
    )  # fmt: skip
    used = found.used
    said = [what, f"{used.responses:,} responses of {used.subjects:,} subjects"]
    said += ["can be biased"] if used.doubts else []
    said += [] if known.all() else ["hollow: not determined by them"]
    axes.set(xlabel="\n".join(said))
    _rows(axes, labels)
    if not isinstance(found, Mean):
        axes.axvline(0, color=INK, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _short(label: str) -> str:
    first, last = _LABEL
    return label if len(label) <= first + last else f"{label[:first]}…{label[-last:]}"


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    """A label to each row, from the top, or to every so many where there is no room for all."""
    _, height = _inches(axes)
    step = max(1, math.ceil(len(labels) * _LINE / height))
    axes.set_yticks(range(0, len(labels), step), list(labels)[::step])
    axes.set_ylim(len(labels) - 0.4, -0.6)


def _draw_comparison(axes: Axes, found: Comparison) -> None:
    rows = list(found.standings.values())
    spent = [row.spent.upper if isinstance(row.spent, Enclosure) else row.spent for row in rows]
    budget = found.budget.enclosure.upper
    groups = [("epsilon, at the delta", BASIC, None), ("realized loss", REALIZED, "//")]
    for realized, (label, color, hatch) in enumerate(groups):
        places = [i for i, row in enumerate(rows) if isinstance(row.spent, Enclosure) == realized]
        sizes = [spent[place] if spent[place] < math.inf else 0.0 for place in places]
        axes.barh(
            places, sizes, color=color, height=0.62, hatch=hatch, edgecolor="white", linewidth=0,
            label=label,
        )  # fmt: skip
    text = str(found.budget) if len(str(found.budget)) < 20 else f"{found.budget.nearest:.6g}"
    axes.axvline(budget, color=INK, linewidth=1.4, linestyle=(0, (4, 3)), label=f"budget {text}")
    most = max([budget, *(size for size in spent if size < math.inf)])
    axes.set_xlim(0, 1.05 * most)
    for place, row in enumerate(rows):
        # Beside the axes, where no bar is.
        count = f"{row.more.count:,}{' or more' if row.more.undecided else ''}"
        said = f"{shown(row.spent)}; accepts {count} more"
        beside = axes.get_yaxis_transform()
        axes.text(1.02, place, said, transform=beside, verticalalignment="center")
    axes.set(xlabel="privacy loss (nats)")
    _rows(axes, [printable(row.name) for row in rows])
    axes.spines[["top", "right"]].set_visible(False)
