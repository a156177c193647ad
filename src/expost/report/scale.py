"""A scale from 0 to 100 % as a chart: where a confidence was, where it is, where it can be."""

from __future__ import annotations

from expost.cards import percent
from expost.report.chart import Across, Axis, Chart, Dots, Line, Mark, Rows

__all__ = ["scale"]


def scale(
    before: float, after: float | None, lower: float, upper: float, *, between: str = "allowed"
) -> Chart:
    """A scale of confidence; ``after`` is left out if None.

    ``between`` says what it is that can be between ``lower`` and ``upper``.
    """
    marks: list[Mark] = [
        Rows([(lower, upper)], "allowed", f"{between}: {percent(lower)} to {percent(upper)}", 1),
        Across(0, "ink"),
        Dots([(before, 0)], "basic", f"before: {percent(before)}", "hollow", 7),
    ]
    if after is not None:
        marks.insert(2, Line([(before, 0), (after, 0)], "realized", width=4))
        marks.append(Dots([(after, 0)], "realized", f"after: {percent(after)}", "full", 7))
    tenths = [(tenth / 10, f"{10 * tenth} %" if tenth % 5 == 0 else "") for tenth in range(11)]
    return Chart(Axis("", 0, 1, tenths), Axis("", -1, 1, ()), marks, height=64)
