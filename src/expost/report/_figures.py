"""Charts of an odometer and of a change of confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expost._format import format_percent
from expost.loss import Odometer
from expost.numbers import Enclosure
from expost.report._chart import Across, Axis, Chart, Dots, Line, Mark, Range, Rows, Upright
from expost.report._comparison import basic_charges

__all__ = ["odometer_chart", "scale"]

# Up to here every response gets a mark of its own.
_FEW = 40


def odometer_chart(odometer: Odometer, losses: Sequence[Enclosure], *, peak: int) -> Chart:
    """The realized loss after each response, beside what basic composition would charge.

    ``losses`` is the history of the odometer, drawn from lower to upper ends. Basic composition is
    drawn for as long as it is within the budget. The loss after ``peak`` responses is marked.
    """
    guard, answered = odometer.transcript.filter, len(odometer)
    budget = None if guard is None else guard.budget
    finite = [loss for loss in losses if loss.upper < math.inf]
    upper = [(float(count), loss.upper) for count, loss in enumerate(finite)]
    lower = [(float(count), loss.lower) for count, loss in enumerate(finite)]
    charges = [(float(count), cost) for count, cost in enumerate(basic_charges(odometer, budget))]
    stopped = budget is not None and len(charges) <= answered
    stops = f": stops after {len(charges) - 1:,}" if stopped else ""
    marks: list[Mark] = [
        Line(charges, "basic", f"basic composition{stops}", width=4.5),
        Range(lower, upper, "realized"),
        Line(upper, "realized", f"realized loss: {answered:,} answered"),
    ]
    if answered <= _FEW:
        marks += [Dots(charges, "basic", size=5), Dots(upper, "realized")]
    elif stopped:
        marks.append(Dots(charges[-1:], "basic", size=5))
    if peak < len(finite):
        marks.append(Dots([upper[peak]], "ink", f"peak {upper[peak][1]:.3g}", "ring", 8))
    top = max(number for _, number in (*upper, *charges))
    if budget is not None:
        limit = budget.enclosure.upper
        top = max(top, limit)
        marks.append(Across(limit, "ink", f"budget {_short(str(budget), limit)}", "6 4"))
    if len(finite) <= answered:
        marks.append(Upright(len(finite) - 0.5, "realized", "infinite from here", "2 4"))
    across = Axis("responses given", 0, max(1, answered))
    whole = [(number, text) for number, text in across.labelled if number == int(number)]
    return Chart(
        Axis(across.label, across.low, across.high, whole),
        Axis("privacy loss (nats)", 0, 1.05 * top if top > 0 else 1),
        marks,
    )


def _short(text: str, nearest: float) -> str:
    return text if len(text) < 20 else f"{nearest:.6g}"


def scale(
    before: float, after: float | None, lower: float, upper: float, *, between: str = "allowed"
) -> Chart:
    """A scale of confidence; ``after`` is left out if None.

    ``between`` says what it is that can be between ``lower`` and ``upper``.
    """
    marks: list[Mark] = [
        Rows(
            [(lower, upper)],
            "allowed",
            f"{between}: {format_percent(lower)} to {format_percent(upper)}",
            1,
        ),
        Across(0, "ink"),
        Dots([(before, 0)], "basic", f"before: {format_percent(before)}", "hollow", 7),
    ]
    if after is not None:
        marks.insert(2, Line([(before, 0), (after, 0)], "realized", width=4))
        marks.append(Dots([(after, 0)], "realized", f"after: {format_percent(after)}", "full", 7))
    tenths = [(tenth / 10, f"{10 * tenth} %" if tenth % 5 == 0 else "") for tenth in range(11)]
    return Chart(Axis("", 0, 1, tenths), Axis("", -1, 1, ()), marks, height=64)
