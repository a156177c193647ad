"""Charts of results: an odometer, many losses, estimates, a comparison, a change of confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from expost._format import format_confidence, format_number, format_percent
from expost.audits._losses import Losses
from expost.errors import make_printable
from expost.loss import Odometer
from expost.numbers import Enclosure, Nats
from expost.report._chart import (
    PERCENT_TICKS,
    Axis,
    Band,
    Chart,
    Dots,
    FullLine,
    HorizontalBars,
    Mark,
    Polyline,
    VerticalBars,
)
from expost.report._comparison import Comparison, basic_charges
from expost.report._estimates import EstimateRow, largest_rows

__all__ = [
    "comparison_chart",
    "confidence_chart",
    "estimates_chart",
    "losses_chart",
    "odometer_chart",
]

#: Up to this many responses, each has a mark.
_MOST_WITH_DOTS = 40

_LONGEST_BUDGET = 20
_BINS = 60
#: The height of a row in pixels.
_ROW = 26

#: How the cost of a composition rule is drawn: its name, color, dashes and width.
_RULES = {
    "basic": ("basic composition", "basic", "", 4.5),
    "whitehouse": ("Whitehouse", "ochre", "6 4", 2.4),
    "renyi": ("Rényi", "purple", "8 3 2 3", 2.4),
    "mixture": ("mixture", "green", "2 4", 2.4),
}


def odometer_chart(
    odometer: Odometer,
    losses: Sequence[Enclosure],
    *,
    costs: Mapping[str, Sequence[float]] | None = None,
    peak: int | None = None,
) -> Chart:
    """Draw the realized loss after each response, and the cost of composition rules.

    Args:
        odometer: The odometer of a transcript; the budget is that of the transcript's filter.
        losses: Its history, drawn as a band from lower to upper ends.
        costs: The cost of composition rules by name, for as long as it is within the budget;
            basic composition by default.
        peak: The number of responses after which the loss is marked as the peak.
    """
    filter_, answered = odometer.transcript.filter, len(odometer)
    budget = None if filter_ is None else filter_.budget_of_person
    finite = [loss for loss in losses if loss.upper < math.inf]
    upper = [(float(count), loss.upper) for count, loss in enumerate(finite)]
    lower = [(float(count), loss.lower) for count, loss in enumerate(finite)]
    marks: list[Mark] = []
    dots: list[Mark] = []
    for name, amounts in (costs or {"basic": basic_charges(odometer, budget)}).items():
        label, color, dashes, width = _RULES[name]
        charges = [(float(count), cost) for count, cost in enumerate(amounts)]
        stops = budget is not None and len(charges) <= answered
        text = f"{label}: stops after {len(charges) - 1:,}" if stops else label
        marks.append(Polyline(charges, color, text, dashes, width))
        if stops or (name == "basic" and answered <= _MOST_WITH_DOTS):
            points = charges[-1:] if answered > _MOST_WITH_DOTS else charges
            dots.append(Dots(points, color, size=5))
    marks += [
        Band(lower, upper, "realized"),
        Polyline(upper, "realized", f"realized loss: {answered:,} answered"),
        *dots,
    ]
    if answered <= _MOST_WITH_DOTS:
        marks.append(Dots(upper, "realized"))
    if peak is not None and peak < len(finite):
        marks.append(
            Dots([upper[peak]], "ink", f"peak {format_number(upper[peak][1], 3)}", "ring", 8)
        )
    lines = [mark.points for mark in marks if isinstance(mark, Polyline)]
    top = max(amount for line in lines for _, amount in line)
    if budget is not None:
        limit = budget.enclosure.upper
        top = max(top, limit)
        marks.append(FullLine(limit, "ink", _label_budget(budget), "6 4", horizontal=True))
    if len(finite) <= answered:
        marks.append(FullLine(len(finite) - 0.5, "realized", "infinite from here", "2 4"))
    return Chart(
        Axis("responses given", 0, max(1, answered)).with_whole_ticks(),
        Axis("privacy loss (nats)", 0, 1.05 * top if top > 0 else 1),
        marks,
    )


def losses_chart(losses: Losses) -> Chart:
    """Draw a histogram of the realized losses of many subjects, and their basic composition."""
    realized, basic = (ends[np.isfinite(ends)] for ends in (losses.upper, losses.basic))
    most = max(realized.max(initial=0.0), basic.max(initial=0.0)) or 1.0
    edges = np.linspace(0.0, most, _BINS + 1).tolist()
    marks: list[Mark] = []
    highest = 1
    if len(realized):
        lowest = float(losses.lower[np.isfinite(losses.upper)].mean())
        mean = Enclosure(min(lowest, float(realized.mean())), float(realized.mean()))
        heights = np.histogram(realized, edges)[0].tolist()
        highest = max(highest, *heights)
        text = f"realized loss: {mean.shown(3)} on average"
        marks.append(VerticalBars(edges, heights, "realized", text))
    if len(basic) and basic.min() == basic.max():
        text = f"basic composition: {format_number(basic[0], 3)}"
        marks.append(FullLine(float(basic[0]), "basic", text, width=4.5))
    elif len(basic):
        heights = np.histogram(basic, edges)[0].tolist()
        highest = max(highest, *heights)
        text = f"basic composition: {format_number(basic.mean(), 3)} on average"
        steps = [0, *np.repeat(heights, 2).tolist(), 0]
        corners = list(zip(np.repeat(edges, 2).tolist(), steps, strict=True))
        marks.append(Polyline(corners, "basic", text))
    infinite = len(losses) - len(realized)
    hidden = f"\ninfinite, not shown: {infinite:,}" if infinite else ""
    return Chart(
        Axis(f"privacy loss (nats){hidden}", 0.0, most),
        Axis.of_counts("subjects", highest),
        marks,
    )


def estimates_chart(
    estimates: Sequence[EstimateRow],
    confidence: float,
    notes: Sequence[str],
    *,
    title: str = "",
    most: int | None = None,
    plain: bool = False,
) -> Chart:
    """Draw a row per estimate: a point, and a bar from the lower to the upper end of its interval.

    Estimates that the responses do not determine are hollow. The notes stand below. With ``most``,
    only so many are drawn: the largest ones. The rows of a value stand together, one per group.
    """
    if most is not None and len(estimates) > most:
        notes = [*notes, f"{len(estimates) - most:,} smaller ones not shown"]
        estimates = largest_rows(estimates, most)
    groups = list(dict.fromkeys(estimate.group for estimate in estimates))
    of_mean = {estimate.label for estimate in estimates} == {"mean"}
    rows, labels = _place_rows(estimates, groups)
    intervals = [(0.0, 0.0)] * (max(rows) + 1)
    for row, estimate in zip(rows, estimates, strict=True):
        intervals[row] = estimate.lower, estimate.upper
    marks: list[Mark] = [HorizontalBars(intervals, "allowed", "", 0.08 if plain else 0.3)]
    size = 4 if len(estimates) <= _MOST_WITH_DOTS else 2
    side_by_side = len(labels) < len(estimates)
    points: dict[str, list[tuple[float, float]]] = {group: [] for group in groups}
    undetermined: list[tuple[float, float]] = []
    for row, estimate in zip(rows, estimates, strict=True):
        shown = points[estimate.group] if estimate.identified else undetermined
        shown.append((estimate.estimate, float(row)))
    if side_by_side:
        looks = zip(groups, _GROUP_LOOKS, strict=False)
        marks += [
            Dots(points[group], color, group, shape, size + 1) for group, (color, shape) in looks
        ]
    else:
        marks.append(Dots([*chain.from_iterable(points.values())], "realized", size=size))
        marks.append(Dots(undetermined, "realized", shape="hollow", size=size))
    noun = "mean" if of_mean else "share"
    plural = "s" if len(estimates) > 1 else ""
    lines = [f"{noun}, {format_confidence(confidence)} interval{plural}", *notes]
    if undetermined:
        lines.append(f"{'no mark' if side_by_side else 'hollow'}: not determined by the responses")
    uncertified = [estimate.label for estimate in estimates if estimate.uncertified]
    if uncertified:
        lines.append(f"uncertified intervals: {', '.join(uncertified)}")
    ends = [end for estimate in estimates for end in (estimate.lower, estimate.upper)]
    if not of_mean:
        marks.append(FullLine(0, "ink", width=1))
        ends.append(0.0)
    low, high = min(ends), max(ends)
    spare = 0.04 * (high - low) or 0.5
    return Chart(
        Axis("\n".join(lines), low - spare, high + spare),
        Axis(title, max(rows) + 0.6, -0.6, labels),
        marks,
        height=_ROW * (max(rows) + 1) + 10,
    )


def _place_rows(
    estimates: Sequence[EstimateRow], groups: Sequence[str]
) -> tuple[list[int], list[tuple[float, str]]]:
    """Return the row of each estimate, and the labels of rows with their positions.

    The estimates of one value stand together, with an empty row between values.
    """
    values = list(dict.fromkeys(estimate.of for estimate in estimates))
    if len(groups) == 1 or len(values) == 1:
        by_group = len(groups) > 1
        texts = [estimate.group if by_group else estimate.label for estimate in estimates]
        rows = list(range(len(estimates)))
        return rows, [(float(row), text) for row, text in zip(rows, texts, strict=True)]
    height = len(groups) + 1
    rows = [
        values.index(estimate.of) * height + groups.index(estimate.group) for estimate in estimates
    ]
    if len(groups) > len(_GROUP_LOOKS):
        texts = [f"{estimate.label}, {estimate.group}" for estimate in estimates]
        return rows, [(float(row), text) for row, text in zip(rows, texts, strict=True)]
    labels = {estimate.of: estimate.label for estimate in estimates}
    middle = (len(groups) - 1) / 2
    return rows, [(index * height + middle, labels[of]) for index, of in enumerate(values)]


#: How the estimates of groups look side by side, even without colors.
_GROUP_LOOKS = (("realized", "full"), ("basic", "diamond"), ("purple", "hollow"))


def comparison_chart(comparison: Comparison) -> Chart:
    """Draw a bar per accounting method: its epsilon, or the realized loss if they are finite."""
    standings = list(comparison.standings.values())
    spent = [standing.enclosure.upper for standing in standings]
    ends = [amount if amount < math.inf else 0.0 for amount in spent]
    looks_by_bound = {
        "loss": ("realized", "realized loss"),
        "epsilon": ("basic", f"epsilon at delta {format_number(comparison.delta)}"),
    }
    looks = [looks_by_bound[standing.bounds] for standing in standings]
    marks: list[Mark] = [*HorizontalBars.by_look(ends, looks)]
    limit = comparison.budget.enclosure.upper
    labels = []
    for index, standing in enumerate(standings):
        parameters = f" ({standing.parameters})" if standing.parameters else ""
        labels.append((float(index), make_printable(f"{standing.name}{parameters}")))
    marks.append(FullLine(limit, "ink", _label_budget(comparison.budget), "6 4"))
    return Chart(
        Axis("privacy loss (nats)", 0, 1.05 * max(limit, *ends)),
        Axis("", len(labels) - 0.4, -0.6, labels),
        marks,
        height=_ROW * len(standings) + 10,
    )


def confidence_chart(
    before: float, after: float | None, lower: float, upper: float, *, between: str = "allowed"
) -> Chart:
    """Draw a scale from 0 to 100 %: a confidence before and after the answers, and its range.

    Args:
        before: The confidence before the answers.
        after: The confidence after them; None leaves it out.
        lower: The lower end of the range.
        upper: The upper end of the range.
        between: The name of the range.
    """
    range_label = f"{between}: {format_percent(lower)} to {format_percent(upper)}"
    marks: list[Mark] = [
        HorizontalBars([(lower, upper)], "allowed", range_label, 1),
        FullLine(0, "ink", horizontal=True),
        Dots([(before, 0)], "basic", f"before: {format_percent(before)}", "hollow", 7),
    ]
    if after is not None:
        marks.insert(2, Polyline([(before, 0), (after, 0)], "realized", width=4))
        marks.append(Dots([(after, 0)], "realized", f"after: {format_percent(after)}", "full", 7))
    return Chart(Axis("", 0, 1, PERCENT_TICKS), Axis("", -1, 1, ()), marks, height=64)


def _label_budget(budget: Nats) -> str:
    text = str(budget)
    return f"budget {text if len(text) < _LONGEST_BUDGET else format_number(budget.nearest)}"
