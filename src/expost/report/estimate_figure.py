"""Estimates with their intervals, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.report.estimates import Estimated
from expost.report.figures import INK, REALIZED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["estimate_figure"]

MOST = 40
"""How many are drawn: the largest, if there are more."""

_LONGEST = 28


def estimate_figure(found: Estimated) -> Figure:
    """A row per estimate: a point, and a line from the lower to the upper end of its interval."""
    from matplotlib.figure import Figure

    rows = found.estimates
    if len(rows) > MOST:
        largest = sorted(rows, key=lambda row: -row.estimate)[:MOST]
        rows = tuple(row for row in rows if row in largest)
    figure = Figure(figsize=(8, 1.6 + 0.32 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = range(len(rows))
    for place, row in zip(places, rows, strict=True):
        line = "-" if row.identified else ":"
        axes.plot([row.lower, row.upper], [place, place], line, color=REALIZED, linewidth=3)
    axes.plot([row.estimate for row in rows], places, "o", color=INK, markersize=6, clip_on=False)
    # The subject of the only row is what the title says.
    names = [_short(row.of) for row in rows] if len(rows) > 1 else []
    axes.set_yticks(places if len(rows) > 1 else [], names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    low, high = found.ends
    if len(rows) == 1:
        axes.set_xlim(min(low, rows[0].estimate), max(high, rows[0].estimate))
    else:
        axes.set_xlim(left=min(low, *(row.estimate for row in rows)))
    level = f"{100 * found.confidence:g} % intervals"
    left = len(found.estimates) - len(rows)
    more = f", {left:,} smaller ones not shown" if left else ""
    axes.set(xlabel=f"estimate, with {level}; {found.subjects:,} subjects{more}")
    axes.set_title(found.what, loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _short(name: str) -> str:
    # What stands between dollars would be set as a formula.
    return (name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…").replace("$", r"\$")
