"""Figures. Matplotlib comes with the extra ``plot`` and is imported when a figure is drawn."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from expost.audit.losses import Losses
from expost.errors import InvalidInput
from expost.filters import BasicFilter
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure, Nats
from expost.transcript import Transcript

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BASIC",
    "INK",
    "REALIZED",
    "basic_prefix",
    "draw_losses",
    "draw_odometer",
    "losses_figure",
    "odometer_figure",
    "save",
    "svg",
]

# Colours mean the same in all figures. A dark blue and a light orange: eyes that do not see red or
# green tell them apart, and so does grey print.
REALIZED, BASIC, INK = "#0b5a75", "#d07a2e", "#444444"
_RULES = {"whitehouse": "#b8921a", "renyi": "#6b4a9e", "mixture": "#3d8b4f"}
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
    *,
    peak: int | None = None,
    narrow: bool = False,
) -> Figure:
    """A figure of the realized loss after each response, as :func:`draw_odometer` draws it.

    What is ``narrow`` can be read on a small screen.
    """
    figure, axes = _figure((5.2, 3.6) if narrow else (8, 4.2))
    draw_odometer(axes, odometer, losses, budget, costs, peak=peak)
    # Above the axes it is in nobody's way, whichever way the lines go.
    columns, size = (4, "medium") if costs is None else (3, "small")
    columns = 2 if narrow else columns
    figure.legend(loc="outside upper left", ncols=columns, fontsize=size, frameon=False)
    return figure


def draw_odometer(
    axes: Axes,
    odometer: Odometer,
    losses: Sequence[Enclosure],
    budget: Nats | None = None,
    costs: Mapping[str, Sequence[float]] | None = None,
    *,
    peak: int | None = None,
) -> None:
    """The realized loss after each response, beside what basic composition would charge.

    ``losses`` is the history of the odometer: a band from lower to upper ends, which over a finite
    domain is as thin as a line. Basic composition is drawn for as long as it is within the budget.
    So are other composition rules, by name, whose ``costs`` are given for as long as that. The loss
    after ``peak`` responses is marked.
    """
    from matplotlib.ticker import MaxNLocator

    answered = len(odometer)
    finite = [loss for loss in losses if loss.upper < math.inf]
    upper = [loss.upper for loss in finite]
    charged = {"basic": _charges(odometer, budget)} if costs is None else dict(costs)
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
    if peak is not None and peak < len(finite):
        axes.plot(
            [peak], upper[peak : peak + 1], "o", markersize=11, markerfacecolor="none",
            markeredgecolor=INK, clip_on=False, label=f"peak {upper[peak]:.3g}",
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


def _charges(odometer: Odometer, budget: Nats | None) -> list[float]:
    """The sums of the epsilons, as long as they are within the budget."""
    stop = len(odometer) if budget is None else basic_prefix(odometer.transcript, budget)
    charges = [charge.upper for charge in odometer.basic_history[: stop + 1]]
    return [charge for charge in charges if charge < math.inf]


def basic_prefix(transcript: Transcript, budget: Nats) -> int:
    """How many of these exchanges basic composition would have allowed on this budget."""
    guard = BasicFilter.of(budget)
    prefix = Odometer(Transcript(transcript.domain))
    for exchange in transcript.exchanges:
        if not guard.accepts(prefix, exchange.query):
            break
        prefix = prefix.answered(exchange.query, exchange.position)
    return len(prefix)


def losses_figure(losses: Losses) -> Figure:
    """A figure of the losses of many subjects, as :func:`draw_losses` draws it."""
    figure, axes = _figure()
    draw_losses(axes, losses)
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    return figure


def _figure(size: tuple[float, float] = (8, 4.2)) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
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


def svg(figure: Figure) -> str:
    """A figure as SVG, with the same bytes every time."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "expost"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the suffix gives the format."""
    try:
        figure.savefig(path, dpi=150, format=path.suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the picture cannot be saved: {error}", str(path)) from None
