"""Results as figures: on axes of matplotlib, or in files.

Matplotlib comes with the extra ``plot``. Only this module imports it, and only when it draws. SVG
files are drawn without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from expost.audits._losses import Losses
from expost.errors import InvalidInput
from expost.estimation import Distribution, Frequencies, Intervals, Mean
from expost.filters._account import account_of
from expost.loss import Odometer
from expost.numbers import ExactLike
from expost.report._chart import (
    Band,
    Chart,
    Dots,
    FullLine,
    HorizontalBars,
    Mark,
    Polyline,
    VerticalBars,
    svg_file,
)
from expost.report._comparison import Comparison, costs_within_budget
from expost.report._estimates import estimate_rows
from expost.report._figures import (
    comparison_chart,
    estimates_chart,
    losses_chart,
    odometer_chart,
)
from expost.report._formatting import format_amount
from expost.report._palette import LIGHT, PRINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot", "save_chart"]

GroupEstimate = Mean | Frequencies | Distribution | Intervals

_WIDTH = 8.0
_HEIGHT = 4.2
_LEGEND_ENTRY = 2.9
#: The distance from one line of text to the next, in inches like the sizes above.
_LINE = 0.24
#: How many letters of a row's label are shown for each inch of the width of the axes.
_LETTERS = 6.2
#: The largest number of rows for which new axes are made high enough.
_MOST_ROWS = 40
_REPETITIONS = 200
#: Points in a pixel, which is the unit of charts.
_POINTS = 0.75
_NO_MATPLOTLIB = "a picture needs the extra: pip install 'expost[plot]'"


def plot(result: object, ax: Axes | None = None, *, delta: ExactLike | None = None) -> Axes:
    """Draw a result, on given axes of matplotlib or on new ones, and return the axes.

    - a transcript, a session, an odometer or a replay: the loss after each response, next to basic
      composition and the budget. With a ``delta``, here or in the filter, also next to other
      composition rules. Over a box this searches for every loss;
    - :class:`~expost.audits.Losses`: how the losses of many subjects are spread;
    - a mean, frequencies, a distribution or its intervals: the estimates with their intervals.
      Those of a distribution are from 200 bootstrap repetitions;
    - a comparison: what each accounting method bounds, and how many more queries it would accept.

    The legend stands above the axes, and some labels beside them. On a figure of your own,
    ``plt.subplots(1, 2, figsize=(12, 4), layout="constrained")`` makes room for them.

    Args:
        result: The result to draw.
        ax: Axes of matplotlib, by default new ones.
        delta: A δ at which composition rules are drawn next to the loss.

    >>> import expost as xp
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=2))
    >>> axes = xp.plot(transcript.add(xp.randomized_response(epsilon=1), "yes"))
    >>> axes.get_xlabel()
    'responses given'
    """
    if delta is not None and isinstance(result, Losses | GroupEstimate | Comparison):
        raise InvalidInput("is for a transcript, a session or an odometer", "delta")
    if isinstance(result, Losses):
        chart = losses_chart(result)
    elif isinstance(result, GroupEstimate):
        chart = _make_estimate_chart(result)
    elif isinstance(result, Comparison):
        chart = comparison_chart(result)
    else:
        odometer = _read_odometer(result)
        costs = costs_within_budget(odometer, delta)
        chart = odometer_chart(odometer, odometer.history, costs=costs)
    axes = _make_axes(chart) if ax is None else ax
    _draw_chart(axes, chart)
    if isinstance(result, Comparison):
        _put_standings(axes, result)
    return axes


def save_chart(chart: Chart, path: Path, *, alt: str, plain: bool = False) -> None:
    """Write a chart into a file; the suffix gives the format.

    Args:
        chart: The chart.
        path: The file, which is replaced. SVG needs no matplotlib.
        alt: The content of the chart in words, for readers who do not see it.
        plain: Draw black on white.

    Raises:
        InvalidInput: The file cannot be written, or matplotlib is missing.
    """
    colors = PRINT if plain else LIGHT
    try:
        if path.suffix.lower() == ".svg":
            path.write_text(svg_file(("", chart), alt=alt, colors=colors), "utf-8")
            return
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH, _compute_height(chart)), layout="constrained")
        _draw_chart(figure.subplots(), chart, colors)
        figure.savefig(path, dpi=150, format=path.suffix[1:] or "png")
    except ModuleNotFoundError:
        raise InvalidInput(_NO_MATPLOTLIB) from None
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"cannot be saved: {getattr(error, 'strerror', None) or error}", str(path)
        ) from None


def _read_odometer(result: object) -> Odometer:
    try:
        odometer = account_of(result)
    except InvalidInput:
        expected = "a transcript, a session, an odometer, losses, an estimate or a comparison"
        raise InvalidInput(f"must be {expected}, not {type(result).__name__}") from None
    assert isinstance(odometer, Odometer)
    return odometer


def _make_estimate_chart(estimate: GroupEstimate) -> Chart:
    if isinstance(estimate, Distribution):
        distribution = estimate
        try:
            estimate = distribution.intervals()
        except InvalidInput:  # there are too many numbers
            estimate = distribution.intervals(repetitions=_REPETITIONS)
    notes = [estimate.provenance.amount()]
    if estimate.provenance.doubts:
        notes.append("can be biased")
    return estimates_chart(estimate_rows(estimate), estimate.confidence, notes)


def _make_axes(chart: Chart) -> Axes:
    try:
        # Not the bare Figure: notebooks show what pyplot has made.
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise InvalidInput(_NO_MATPLOTLIB) from None
    return pyplot.subplots(figsize=(_WIDTH, _compute_height(chart)), layout="constrained")[1]


def _compute_height(chart: Chart) -> float:
    """Return how many inches a figure needs for the rows of a chart and its legend."""
    if not chart.has_rows:
        return _HEIGHT
    rows = min(len(chart.y.labeled), _MOST_ROWS) + len(chart.legend)
    return max(1.8, 1.2 + 1.3 * _LINE * rows)


def _draw_chart(axes: Axes, chart: Chart, colors: Mapping[str, str] = LIGHT) -> None:
    """Draw a chart on axes of matplotlib, with its legend above them."""
    for mark in chart.marks:
        _draw_mark(axes, mark, colors)
    width, height = _measure_axes(axes)
    legend_columns = max(1, int(width / _LEGEND_ENTRY))
    if chart.has_rows:
        above_legend = 6 + 72 * _LINE * math.ceil(len(chart.legend) / legend_columns)  # points
        axes.set_title(chart.y.label, loc="left", fontsize="medium", pad=above_legend)
    else:
        axes.set_ylabel(chart.y.label)
    axes.set(
        xlabel=chart.x.label,
        xlim=(chart.x.low, chart.x.high),
        ylim=(chart.y.low, chart.y.high),
    )
    axes.set_xticks(*_escape_ticks(chart.x.labeled))
    rows = chart.y.labeled
    if chart.has_rows:
        letters = int(_LETTERS * width)
        rows = [(row, _shorten_label(label, letters)) for row, label in rows]
        rows = rows[:: max(1, math.ceil(len(rows) * _LINE / height))]
    axes.set_yticks(*_escape_ticks(rows))
    axes.spines[["top", "right"]].set_visible(False)
    if chart.legend:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=legend_columns,
            frameon=False, borderaxespad=0.2,
        )  # fmt: skip


def _draw_mark(axes: Axes, mark: Mark, colors: Mapping[str, str]) -> None:
    color = colors[mark.color]
    label = mark.label or "_"  # which keeps it out of the legend
    match mark:
        case Polyline():
            axes.plot(
                *_split_points(mark.points), color=color, label=label, **_make_line_style(mark)
            )
        case Band():
            positions, lower = _split_points(mark.lower)
            _, upper = _split_points(mark.upper)
            alpha = 1.0 if mark.color == "allowed" else 0.3
            axes.fill_between(
                positions, lower, upper, color=color, alpha=alpha, linewidth=0, label=label
            )
        case Dots():
            fill = {"hollow": colors["paper"], "ring": "none"}.get(mark.shape, color)
            axes.plot(
                *_split_points(mark.points), "D" if mark.shape == "diamond" else "o", color=color,
                markerfacecolor=fill, markersize=2 * _POINTS * mark.size, clip_on=False,
                label=label,
            )  # fmt: skip
        case VerticalBars():
            axes.stairs(
                mark.heights, mark.edges, baseline=mark.floors or 0, fill=True, color=color,
                label=label,
            )  # fmt: skip
        case HorizontalBars():
            spans = [(row, *span) for row, span in enumerate(mark.spans) if span[0] != span[1]]
            axes.barh(
                [row for row, _, _ in spans], [end - start for _, start, end in spans],
                mark.thickness, [start for _, start, _ in spans], color=color, label=label,
            )  # fmt: skip
        case FullLine():
            draw = axes.axhline if mark.horizontal else axes.axvline
            draw(mark.at, color=color, label=label, **_make_line_style(mark))
        case _:
            assert_never(mark)


def _make_line_style(mark: Polyline | FullLine) -> dict[str, Any]:
    width = _POINTS * mark.width
    # Matplotlib multiplies dashes by the width.
    dashes = [_POINTS * float(length) / width for length in mark.dashes.split()]
    return {"linewidth": width, "linestyle": (0, dashes) if dashes else "-", "clip_on": False}


def _split_points(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _escape_ticks(ticks: Sequence[tuple[float, str]]) -> tuple[list[float], list[str]]:
    # Text between dollars would be set as a formula.
    return [at for at, _ in ticks], [text.replace("$", r"\$") for _, text in ticks]


def _measure_axes(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes, in inches."""
    figure: Any = axes.get_figure(root=True)
    box = axes.get_position()
    width, height = figure.get_size_inches()
    return box.width * width, box.height * height


def _shorten_label(label: str, letters: int) -> str:
    """Cut the middle out of a long label: values often end differently."""
    last = letters * 2 // 5
    return label if len(label) <= letters else f"{label[: letters - last]}…{label[-last:]}"


def _put_standings(axes: Axes, comparison: Comparison) -> None:
    """Write the numbers of accounting methods to the right of the axes, where no bar is."""
    beside = axes.get_yaxis_transform()
    for row, standing in enumerate(comparison.standings.values()):
        text = f"{format_amount(standing.spent)}; accepts {standing.repeats_text} more"
        axes.text(1.02, row, text, transform=beside, verticalalignment="center")
