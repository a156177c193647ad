"""The figure of the comparison of solvers: one row per case, one mark per instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.ratios import Ratio, median
from expost.report._palette import GREEN, PURPLE

__all__ = ["save"]

PATH = Path(__file__).with_name("solvers.png")
COLORS = {"Gurobi": PURPLE, "SCIP": GREEN}
TARGET = 100.0


def save(ratios: Mapping[str, Sequence[tuple[str, Ratio]]]) -> None:
    """Draw the ratios of every peer by case and write the file."""
    labels = list(dict.fromkeys(label for rows in ratios.values() for label, _ in rows))
    figure = Figure(figsize=(9, 1.4 + 0.46 * len(labels)), layout="constrained")
    axes = figure.subplots()
    for number, (peer, rows) in enumerate(ratios.items()):
        shift = 0.18 * (2 * number - len(ratios) + 1)
        for position, label in enumerate(labels):
            of_case = [ratio for name, ratio in rows if name == label]
            if not of_case:
                continue
            for at_least in (False, True):
                values = [ratio.value for ratio in of_case if ratio.at_least == at_least]
                axes.scatter(
                    values,
                    [position + shift] * len(values),
                    marker=">" if at_least else "o",
                    s=34,
                    facecolor="none" if at_least else COLORS[peer],
                    edgecolor=COLORS[peer],
                    alpha=1 if at_least else 0.55,
                    linewidth=1.2 if at_least else 0,
                )
            middle = median(of_case)
            if len(of_case) > 1:
                low, high = position + shift - 0.14, position + shift + 0.14
                axes.plot([middle.value] * 2, [low, high], color=COLORS[peer], linewidth=2)
            axes.annotate(
                f"{peer} {middle}",
                (max(ratio.value for ratio in of_case), position + shift),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=COLORS[peer],
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )
    for value, name, style in ((1, "expost", "-"), (TARGET, "a hundred times", ":")):
        axes.axvline(value, color="black", linewidth=1, linestyle=style, zorder=0)
        axes.annotate(
            name,
            (value, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            va="top",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g} ×")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.8), high * 6)  # room for the labels
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    axes.set_xlabel("time as a multiple of expost's on the same instance (expost = 1)")
    axes.set_title(
        "Time to a certified loss. Bars and labels are medians; ▷ was stopped, so at least that",
        loc="left",
        fontsize=10,
    )
    figure.savefig(PATH, dpi=150)
