"""The figures of docs/explanation/benchmarks.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.budget_lifetime.asking import Accepted
from benchmarks.budget_lifetime.population import Population
from expost.report._palette import BASIC, OCHRE, PURPLE, REALIZED

__all__ = ["analysts_figure", "dimensions_figure", "epsilons_figure", "population_figure"]

_COLORS = (REALIZED, PURPLE, OCHRE)
_MARKS = ("o", "s", "^")

Table = Mapping[str, Mapping[str, Accepted]]


def _axes(height: float = 4.2) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _plain(axes: Axes, side: str, ticks: Sequence[float], unit: str = "") -> None:
    getattr(axes, f"set_{side}scale")("log")
    labels = [f"{tick:,g}{unit}" for tick in ticks]
    getattr(axes, f"set_{side}ticks")(ticks, labels)
    getattr(axes, f"set_{side}ticks")([], minor=True)


def _bands(axes: Axes, table: Table, divide: bool) -> None:
    for (name, row), color, mark in zip(table.items(), _COLORS, _MARKS, strict=True):
        at = [float(Fraction(key)) for key in row]
        ends = [
            [end / (counts.basic if divide else 1) for end in counts.percentiles("bayesian")]
            for counts in row.values()
        ]
        low, middle, high = zip(*ends, strict=True)
        axes.fill_between(at, low, high, color=color, alpha=0.14, linewidth=0)
        axes.plot(at, middle, color=color, marker=mark, linewidth=2, label=name)


def dimensions_figure(table: Table) -> Figure:
    """Accepted queries against the number of coordinates."""
    figure, axes = _axes()
    _bands(axes, table, divide=False)
    axes.axhline(10, color=BASIC, linewidth=2.5, label="basic composition: 10")
    _plain(axes, "x", [1, 2, 3, 5, 9, 15])
    _plain(axes, "y", [10, 20, 50, 100, 200])
    axes.set(xlabel="coordinates of the box", ylabel="queries accepted, of 200", ylim=(8, 250))
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return figure


def epsilons_figure(table: Table) -> Figure:
    """How many times as many queries as basic composition accepts, against epsilon."""
    figure, axes = _axes()
    _bands(axes, table, divide=True)
    axes.axhline(1, color=BASIC, linewidth=2.5, label="basic composition")
    _plain(axes, "x", [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    _plain(axes, "y", [1, 2, 5, 10, 20, 50, 100], "×")
    axes.set(xlabel="epsilon of each query", ylabel="times basic composition")
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return figure


def analysts_figure(table: Table) -> Figure:
    """Accepted queries for each kind of analyst."""
    figure, axes = _axes(4.6)
    analyst = list(dict.fromkeys(key for row in table.values() for key in row))
    for position, row in enumerate(table.values()):
        for key, outcome in row.items():
            index = analyst.index(key)
            low, middle, high = outcome.percentiles("bayesian")
            height = position + (index - 1) * 0.22
            color = _COLORS[index]
            axes.hlines(height, low, high, color=color, linewidth=5, alpha=0.3)
            label = key if position == 0 else None
            axes.plot(middle, height, _MARKS[index], color=color, markersize=7, label=label)
    axes.axvline(10, color=BASIC, linewidth=2.5, label="basic composition: 10", zorder=0)
    axes.set_yticks(range(len(table)), list(table))
    axes.invert_yaxis()
    axes.tick_params("y", length=0)
    _plain(axes, "x", [10, 20, 50, 100, 200])
    axes.set_xlabel("queries accepted")
    figure.legend(loc="outside upper left", ncols=4, frameon=False, columnspacing=1.2)
    return figure


def population_figure(subjects: Population) -> Figure:
    """Who still answers, after so many queries."""
    figure, axes = _axes()
    rounds = range(subjects.asked + 1)
    groups = (
        ("all", None, REALIZED, "-", 2.6),
        ("inside of the box", ~subjects.at_corner, PURPLE, "--", 1.4),
        ("at corners", subjects.at_corner, OCHRE, ":", 1.8),
    )
    stairs = [1 if k <= 10 else 0 for k in rounds]
    axes.step(rounds, stairs, color=BASIC, linewidth=2.5, label="basic composition")
    for name, group, color, style, width in groups:
        shares = [subjects.share(k, group) for k in rounds]
        axes.plot(rounds, shares, color=color, linestyle=style, linewidth=width, label=name)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set(xlabel="queries", ylabel="subjects who answered them all", ylim=(0, 1.02))
    axes.set_xlim(0, subjects.asked)
    figure.legend(loc="outside upper left", ncols=4, frameon=False)
    return figure
