"""Figures of results on axes of matplotlib, which comes with the extra ``plot``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from expost._format import format_count
from expost.audits.losses import Losses
from expost.errors import InvalidInput, printable
from expost.estimation import Distribution, Frequencies, Intervals, Mean
from expost.estimation._validity import confidence_text
from expost.filters._account import account_of
from expost.loss import Odometer
from expost.numbers import Enclosure, ExactLike, Nats
from expost.report._comparison import Comparison, basic_charges, costs_within_budget
from expost.report._estimates import Estimate, Estimated, rows_of
from expost.report._formatting import shown
from expost.report._palette import BASIC, GREEN, INK, OCHRE, PURPLE, REALIZED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "MOST",
    "WIDTH",
    "draw_estimates",
    "draw_losses",
    "draw_odometer",
    "estimate_figure",
    "high",
    "inches",
    "losses_figure",
    "odometer_figure",
    "plot",
    "put_labels",
    "save",
]

_RULES = {"whitehouse": OCHRE, "renyi": PURPLE, "mixture": GREEN}
_DASHES = {"whitehouse": "--", "renyi": "-.", "mixture": ":"}
_NAMES = {"whitehouse": "Whitehouse", "renyi": "Rényi", "mixture": "mixture"}

# Up to here every response gets a mark of its own.
_FEW = 40

_BINS = 60


def odometer_figure(
    odometer: Odometer,
    losses: Sequence[Enclosure],
    budget: Nats | None = None,
    costs: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """A figure of the realized loss after each response, as :func:`draw_odometer` draws it."""
    figure, axes = _figure()
    draw_odometer(axes, odometer, losses, budget, costs)
    # Above the axes it is in nobody's way, whichever way the lines go.
    columns, size = (4, "medium") if costs is None else (3, "small")
    figure.legend(loc="outside upper left", ncols=columns, fontsize=size, frameon=False)
    return figure


def draw_odometer(
    axes: Axes,
    odometer: Odometer,
    losses: Sequence[Enclosure],
    budget: Nats | None = None,
    costs: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """The realized loss after each response, beside what basic composition would charge.

    ``losses`` is the history of the odometer: a band from lower to upper ends, which over a finite
    domain is as thin as a line. Basic composition is drawn for as long as it is within the budget.
    So are other composition rules, by name, whose ``costs`` are given for as long as that.
    """
    from matplotlib.ticker import MaxNLocator

    answered = len(odometer)
    finite = [loss for loss in losses if loss.upper < math.inf]
    upper = [loss.upper for loss in finite]
    charged = {"basic": basic_charges(odometer, budget)} if costs is None else dict(costs)
    mark = "o" if answered <= _FEW else None
    for name, charges in charged.items():
        basic = name == "basic"
        stop, color = len(charges) - 1, BASIC if basic else _RULES[name]
        label = "basic composition" if basic else _NAMES[name]
        ends = stop < answered and budget is not None
        axes.plot(
            charges, color=color, linewidth=3.4 if basic else 1.8, marker=mark,
            markersize=6 if basic else 3, clip_on=False, linestyle=_DASHES.get(name, "-"),
            label=label + (f": stops after {stop:,}" if ends else ""),
        )  # fmt: skip
        if ends:
            axes.plot([stop], charges[-1:], "o", color=color, clip_on=False)
    axes.fill_between(
        range(len(finite)), [loss.lower for loss in finite], upper, color=REALIZED, alpha=0.3,
        linewidth=0,
    )  # fmt: skip
    axes.plot(
        upper, color=REALIZED, linewidth=2, marker=mark, markersize=4, clip_on=False,
        label=f"realized loss: {answered:,} answered",
    )  # fmt: skip
    top = max(*upper, *itertools.chain.from_iterable(charged.values()))
    if budget is not None:
        limit = budget.enclosure.upper
        top = max(top, limit)
        text = str(budget) if len(str(budget)) < 20 else f"{budget.nearest:.6g}"
        line = (0, (4, 3))
        axes.axhline(limit, color=INK, linewidth=1.2, linestyle=line, label=f"budget {text}")
    if len(finite) <= answered:
        axes.axvline(len(finite) - 0.5, color=REALIZED, linestyle=":", label="infinite from here")
    axes.set(xlabel="responses given", ylabel="privacy loss (nats)", xlim=(0, max(1, answered)))
    axes.set_ylim(0, 1.05 * top if top > 0 else 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


def losses_figure(losses: Losses) -> Figure:
    """A figure of the losses of many subjects, as :func:`draw_losses` draws it."""
    figure, axes = _figure()
    draw_losses(axes, losses)
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    return figure


def _figure() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    return figure, figure.subplots()


def draw_losses(axes: Axes, losses: Losses) -> None:
    """How the realized losses of many subjects are spread, beside their basic composition."""
    from matplotlib.ticker import MaxNLocator

    realized, basic = (ends[np.isfinite(ends)] for ends in (losses.upper, losses.basic))
    most = max(realized.max(initial=0.0), basic.max(initial=0.0)) or 1.0
    edges = np.linspace(0.0, most, _BINS + 1).tolist()
    if len(realized):
        lowest = float(losses.lower[np.isfinite(losses.upper)].mean())
        mean = Enclosure(min(lowest, float(realized.mean())), float(realized.mean()))
        label = f"realized loss: {mean.shown(3)} on average"
        axes.hist(realized, edges, color=REALIZED, label=label)
    if len(basic) and basic.min() == basic.max():
        label = f"basic composition: {basic[0]:.3g}"
        axes.axvline(float(basic[0]), color=BASIC, linewidth=3.4, clip_on=False, label=label)
    elif len(basic):
        label = f"basic composition: {basic.mean():.3g} on average"
        axes.hist(basic, edges, color=BASIC, histtype="step", linewidth=2, label=label)
    if len(realized) < len(losses):
        axes.plot([], " ", label=f"infinite, not shown: {len(losses) - len(realized):,}")
    axes.set(xlabel="privacy loss (nats)", ylabel="subjects", xlim=(0, most))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix gives the format."""
    try:
        figure.savefig(path, dpi=150, format=path.suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the picture cannot be saved: {error}", str(path)) from None


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
    said = [
        f"{format_count(found.answers, 'response')} of {format_count(found.subjects, 'subject')}"
    ]
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
    lines = [f"{what}, {confidence_text(confidence)} interval{'' if of_mean else 's'}", *said]
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


GroupEstimate = Mean | Frequencies | Distribution | Intervals

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
    if delta is not None and isinstance(thing, Losses | GroupEstimate | Comparison):
        raise InvalidInput("is for a transcript, a session or an odometer", "delta")
    if isinstance(thing, Losses):
        axes = _axes(ax)
        draw_losses(axes, thing)
        _legend(axes)
    elif isinstance(thing, GroupEstimate):
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


def _draw_estimate(found: GroupEstimate, ax: Axes | None) -> Axes:
    shown = _with_intervals(found) if isinstance(found, Distribution) else found
    rows = rows_of(shown)
    axes = _axes(ax, min(len(rows), MOST))
    said = [shown.provenance.amount(), *(["can be biased"] if shown.provenance.doubts else [])]
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
