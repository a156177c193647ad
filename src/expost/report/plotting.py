"""Pictures of results on axes of matplotlib, which comes with the extra ``plot``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from expost.audits.losses import Losses
from expost.errors import InvalidInput, printable
from expost.estimation import Distribution, Frequencies, Intervals, Mean
from expost.filters._account import account_of
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure, ExactLike
from expost.report.comparison import Comparison, costs_within_budget
from expost.report.estimate_figure import MOST, WIDTH, draw_estimates, high, inches, put_labels
from expost.report.estimates import rows_of
from expost.report.figures import draw_losses, draw_odometer
from expost.report.palette import BASIC, INK, REALIZED
from expost.report.words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot"]

Estimate = Mean | Frequencies | Distribution | Intervals

_HEIGHT = 4.2
_LEGEND = 2.9
"""Inches for an entry of a legend."""
_REPETITIONS = 200


def plot(thing: object, ax: Axes | None = None, *, delta: ExactLike | None = None) -> Axes:
    """Draw a result, on given axes of matplotlib or on new ones, and return the axes.

    - a transcript, a session, an odometer or a replay: the loss after each response, beside basic
      composition and the budget. With a ``delta``, here or in the filter, also beside other
      composition rules. Over a box this searches for every loss;
    - :class:`~expost.audits.Losses`: how the losses of many subjects are spread;
    - a mean, frequencies, a distribution or its intervals: the estimates with their intervals.
      Those of a distribution are from 200 bootstrap repetitions;
    - a comparison: what every accounting says, and how many more queries it would accept.

    The legend stands above the axes, and some labels beside them. On a figure of your own,
    ``plt.subplots(1, 2, figsize=(12, 4), layout="constrained")`` makes room for them.

    >>> import expost as xp
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=2))
    >>> axes = xp.plot(transcript.add(xp.randomized_response(epsilon=1), "yes"))
    >>> axes.get_xlabel()
    'responses given'
    """
    if delta is not None and isinstance(thing, Losses | Estimate | Comparison):
        raise InvalidInput("is for a transcript, a session or an odometer", "delta")
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
        rules = None
        if delta is not None or (guard is not None and not guard.pure):
            rules = costs_within_budget(odometer, delta)
        axes, budget = _axes(ax), None if guard is None else guard.budget
        draw_odometer(axes, odometer, odometer.history, budget, rules)
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
    height = _HEIGHT if rows is None else high(rows)
    _, axes = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")
    return axes


def _legend(axes: Axes) -> None:
    """Above the axes it is in nobody's way, whichever way the lines go."""
    width, _ = inches(axes)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=max(1, int(width / _LEGEND)),
        frameon=False, borderaxespad=0.2,
    )  # fmt: skip


def _with_intervals(found: Distribution) -> Intervals:
    try:
        return found.intervals()
    except InvalidInput:  # there are too many numbers
        return found.intervals(repetitions=_REPETITIONS)


def _draw_estimate(found: Estimate, ax: Axes | None) -> Axes:
    shown = _with_intervals(found) if isinstance(found, Distribution) else found
    rows = rows_of(shown)
    axes = _axes(ax, min(len(rows), MOST))
    said = [shown.used.amount(), *(["can be biased"] if shown.used.doubts else [])]
    draw_estimates(axes, rows, shown.confidence, said)
    return axes


def _draw_comparison(axes: Axes, found: Comparison) -> None:
    rows = list(found.standings.values())
    spent = [row.spent.upper if isinstance(row.spent, Enclosure) else row.spent for row in rows]
    budget = found.budget.enclosure.upper
    groups = [
        (f"epsilon at delta {float(found.delta):.6g}", BASIC, None),
        ("realized loss", REALIZED, "//"),
    ]
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
    named = [f"{row.name} ({row.parameters})" if row.parameters else row.name for row in rows]
    put_labels(axes, [printable(name) for name in named])
    axes.spines[["top", "right"]].set_visible(False)
