"""Figures. Matplotlib comes with the extra ``plot`` and is imported when a figure is drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from expost.audits.losses import Losses
from expost.errors import InvalidInput
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure, Nats
from expost.report.charges import basic_charges
from expost.report.palette import BASIC, GREEN, INK, OCHRE, PURPLE, REALIZED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_losses",
    "draw_odometer",
    "losses_figure",
    "odometer_figure",
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
