"""The odometer of a transcript as a chart of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from expost.loss.odometer import Odometer
from expost.numbers import Enclosure
from expost.report.charges import basic_charges
from expost.report.chart import Across, Axis, Chart, Dots, Line, Mark, Range, Upright

__all__ = ["odometer_chart"]

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
