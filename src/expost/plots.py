"""Figures. Matplotlib comes with the extra ``plot`` and is imported when a figure is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from expost.accounting import Odometer, basic_prefix
from expost.errors import InvalidInput
from expost.rounding import Nats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["odometer_figure", "save"]

_REALIZED, _BASIC, _BUDGET = "#0b6e8a", "#b4552d", "#444444"


def odometer_figure(odometer: Odometer, budget: Nats) -> Figure:
    """The realized loss after each response, beside what basic composition would charge."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    limit = budget.enclosure.upper
    realized = [loss.upper for loss in odometer.history]
    stop = basic_prefix(odometer.transcript, budget)
    within = [loss.upper for loss in odometer.basic_history[: stop + 1]]
    axes.axhline(limit, color=_BUDGET, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"budget {budget}", (len(realized) - 1, limit), (0, 5), textcoords="offset points",
        ha="right", color=_BUDGET,
    )  # fmt: skip
    axes.plot(range(len(within)), within, color=_BASIC, linewidth=2.2, solid_capstyle="round")
    axes.plot([stop], [within[-1]], "o", color=_BASIC)
    axes.annotate(
        f"basic composition\nstops after {stop}", (stop, within[-1]), (9, -8),
        textcoords="offset points", va="top", color=_BASIC,
    )  # fmt: skip
    axes.plot(range(len(realized)), realized, color=_REALIZED, linewidth=2.2)
    axes.plot([len(realized) - 1], realized[-1:], "o", color=_REALIZED)
    axes.annotate(
        f"realized loss: {len(realized) - 1} answered", (len(realized) - 1, realized[-1]),
        (-26, -14), textcoords="offset points", ha="right", va="top", color=_REALIZED,
    )  # fmt: skip
    axes.set(xlabel="responses given", ylabel="privacy loss (nats)", xlim=(0, None))
    axes.set_ylim(0, 1.18 * limit)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix gives the format."""
    try:
        figure.savefig(path, dpi=150, format=path.suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the picture cannot be saved: {error}", str(path)) from None
