"""The figures of section 6. Every loss in them is a proven upper bound."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.report.figures import BASIC, INK, REALIZED
from expost.reproduce.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["accepted_figure", "health_figure", "loss_figure", "save"]

_GROUPS = "#8a6d0b"
_SAMPLED = 10


def loss_figure(tree: dict[str, Any], runs: Sequence[Run]) -> Figure:
    """Fig. (a), (c): the loss against the number of accepted queries, for some of the runs."""
    figure, axes = _axes("accepted queries", "realized loss (nats)")
    budget, epsilon = tree["budgets"][-1], tree["epsilon"]
    shown = runs[:_SAMPLED]
    for run in shown:
        trace = run.traces["ungrouped"]
        upper = [loss.upper for loss in trace.losses[: trace.accepted["bayesian"][-1] + 1]]
        axes.plot(upper, color=REALIZED, linewidth=1.3, alpha=0.75)
        axes.plot([len(upper) - 1], upper[-1:], "o", color=REALIZED, markersize=4)
    axes.plot([], color=REALIZED, label=f"realized loss, {len(shown)} runs")
    count = round(budget / epsilon)
    axes.plot(
        [0, count], [0, budget], color=BASIC, linewidth=3, marker="o", markevery=[1],
        label=f"basic composition: {count}",
    )  # fmt: skip
    axes.axhline(budget, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label="budget")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.05 * budget)
    axes.legend(loc="lower right", frameon=False)
    return figure


def accepted_figure(tree: dict[str, Any], kind: str) -> Figure:
    """Fig. (b), (d): accepted queries against the budget; median, 10th and 90th percentile."""
    figure, axes = _axes("budget (nats)", "accepted queries")
    budgets, epsilon = tree["budgets"], tree["epsilon"]
    for account, color, text in (
        ("ungrouped", REALIZED, "all together"),
        ("groups", _GROUPS, "groups of ten"),
    ):
        low, middle, high = (tree[account][kind]["percentiles"][p] for p in ("10", "50", "90"))
        axes.fill_between(budgets, low, high, color=color, alpha=0.18, linewidth=0)
        label = f"{text}: median {middle[-1]:g}"
        axes.plot(budgets, middle, color=color, linewidth=2, marker="o", markersize=4, label=label)
    axes.plot(
        budgets, [budget / epsilon for budget in budgets], color=BASIC, linewidth=3,
        label=f"basic composition: {round(budgets[-1] / epsilon)}",
    )  # fmt: skip
    axes.plot(
        budgets[-1:], [tree["printed"]], "D", color=INK, markersize=6, clip_on=False,
        label=f"printed median: {tree['printed']}",
    )  # fmt: skip
    axes.set_xlim(0, 1.03 * budgets[-1])
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", frameon=False)
    return figure


def health_figure(tree: dict[str, Any]) -> Figure:
    """The sixteen outcomes: the printed losses beside the certified ones."""
    found = sorted(tree["outcomes"], key=lambda outcome: outcome["loss"]["upper"])
    figure, axes = _axes("loss (nats)", "heart, stroke, diabetes, sleep", height=4.6)
    places = np.arange(len(found))
    axes.barh(
        places, [outcome["loss"]["upper"] for outcome in found], color=REALIZED, height=0.62,
        label="certified",
    )  # fmt: skip
    axes.plot(
        [outcome["printed"] for outcome in found], places, "D", color=INK, markersize=5,
        label="printed",
    )  # fmt: skip
    axes.axvline(tree["budget"], color=BASIC, linewidth=3, label="budget, and basic composition")
    names = [" ".join(map(str, outcome["responses"])) for outcome in found]
    axes.set_yticks(places, names, fontsize=9)
    axes.set_xlim(0, 1.02 * tree["budget"])
    figure.legend(loc="outside upper left", ncols=3, frameon=False)
    return figure


def save(figure: Figure, stem: Path) -> str:
    """Save a figure as PNG and SVG, with the same bytes every time, and return the SVG."""
    import matplotlib as mpl

    figure.savefig(stem.with_suffix(".png"), dpi=150, metadata={"Software": None})
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": stem.name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    stem.with_suffix(".svg").write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


def _axes(x: str, y: str, height: float = 3.4) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
