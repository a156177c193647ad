"""The figure and numbers on composition rules in docs/explanation/benchmarks.md.

``python docs/figures/compare.py``
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

import expost as xp
from expost.report._palette import BASIC, FAINT, GREEN, GREY, OCHRE, PURPLE

STATIC = Path(__file__).parent.parent / "_static"

START = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
DELTAS = ["1e-4", "1e-6", "1e-9"]
BUDGETS = [f"{budget:.3g}" for budget in np.geomspace(0.1, 50, 19)]
HELD = sorted({round(count) for count in np.geomspace(1, 500, 32).tolist()})
"""How many queries the budget holds if their epsilons are added up."""
SHARES = [1 / count for count in HELD]

SHARE = r"$\varepsilon$ of a query / $\varepsilon_g$"

COLORS = {
    "basic": BASIC,
    "rogers": GREY,
    "whitehouse": OCHRE,
    "renyi": PURPLE,
    "mixture": GREEN,
}
DASHES = {"basic": "-", "rogers": "-", "whitehouse": "--", "renyi": "-.", "mixture": ":"}
NAMES = {
    "basic": "sums",
    "rogers": "Rogers",
    "whitehouse": "Whitehouse",
    "renyi": "Rényi, order for the plan",
    "mixture": "mixture",
}


def query_epsilon(budget: str, held: int) -> str:
    return str(Fraction(budget) / held)


def rule(name: str, budget: str, delta: str, epsilon: str) -> xp.filters.Rule:
    match name:
        case "rogers":
            return xp.filters.Rogers()
        case "whitehouse":
            return xp.filters.Whitehouse(delta)
        case "renyi":
            return xp.filters.Renyi.for_plan(budget, delta, epsilon)
        case "mixture":
            return xp.filters.Mixture.for_budget(budget, delta)
    return xp.filters.Sums()


@cache
def accepted(name: str, budget: str, delta: str, epsilon: str) -> int:
    """How many randomized responses a rule accepts."""
    alone = xp.filters.CompositionFilter(budget, delta, rule(name, budget, delta, epsilon))
    return alone.count_repeats(START, xp.randomized_response(epsilon=epsilon)).count


def optimum(budget: str, delta: str, epsilon: str) -> int:
    """How many are (budget, delta)-LDP if nothing is adaptive, in doubles."""
    limit, most, step = float(budget), float(delta), float(Fraction(epsilon))

    def excess(times: int) -> float:
        truths = np.arange(times + 1)
        logs = np.array([math.lgamma(t + 1) + math.lgamma(times - t + 1) for t in truths.tolist()])
        own = math.lgamma(times + 1) - logs + truths * step - times * math.log1p(math.exp(step))
        over = own - (2 * truths - times) * step + limit
        return float(np.sum(np.exp(own) - np.exp(np.minimum(own, over))))

    low, high = 1, 2
    while excess(high) <= most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) <= most else (low, middle)
    return low


@cache
def table(name: str, delta: str) -> NDArray[np.int_]:
    """Counts over the grid of budgets and of how many queries they hold."""
    return np.array(
        [
            [accepted(name, budget, delta, query_epsilon(budget, held)) for held in HELD]
            for budget in BUDGETS
        ]
    )


def draw_map(axes: Axes, delta: str) -> object:
    """How many times as many as sums the best rule accepts, and where the others get ahead."""
    counts = {name: table(name, delta) for name in NAMES}
    best = np.maximum.reduce(list(counts.values()))
    budgets = [float(budget) for budget in BUDGETS]
    shown = axes.pcolormesh(
        SHARES,
        budgets,
        best / counts["basic"],
        norm=LogNorm(1, 40),
        cmap="Purples",
        rasterized=True,
    )
    for name in ("renyi", "whitehouse", "rogers"):
        ahead = counts[name] / counts["basic"]
        axes.contour(
            SHARES,
            budgets,
            ahead,
            levels=[1.0001],
            colors=COLORS[name],
            linewidths=2,
            linestyles=DASHES[name],
        )
    axes.text(0.97, 0.05, "sums are\nas good", transform=axes.transAxes, ha="right", color=FAINT)
    axes.set(xscale="log", yscale="log", title=f"δ = {delta}", xlabel=SHARE)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return shown


def draw_curves(axes: Axes, budget: str, delta: str) -> None:
    """What each rule accepts of what is possible."""
    epsilons = [query_epsilon(budget, held) for held in HELD]
    possible = [optimum(budget, delta, epsilon) for epsilon in epsilons]
    for name, color in COLORS.items():
        shares = [
            accepted(name, budget, delta, e) / n for e, n in zip(epsilons, possible, strict=True)
        ]
        width = 3 if name == "basic" else 1.8
        axes.plot(SHARES, shares, color=color, linewidth=width, linestyle=DASHES[name])
    axes.set(xscale="log", ylim=(0, 1.03), title=f"$\\varepsilon_g$ = {budget}, δ = {delta}")
    axes.set_xlabel(SHARE)
    axes.spines[["top", "right"]].set_visible(False)


def which_wins() -> Figure:
    figure = Figure(figsize=(10, 7.2), layout="constrained")
    maps, curves = figure.subplots(2, 3, sharey="row")
    for axes, delta in zip(maps, DELTAS, strict=True):
        shown = draw_map(axes, delta)
    maps[0].set_ylabel(r"budget $\varepsilon_g$")
    bar = figure.colorbar(shown, ax=maps, label="best rule / sums", ticks=[1, 2, 5, 10, 20, 40])
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    bar.ax.minorticks_off()
    for axes, budget in zip(curves, ["1", "5", "20"], strict=True):
        draw_curves(axes, budget, "1e-6")
    curves[0].set_ylabel("accepted, as a share of the optimum")
    lines = [
        Line2D([], [], color=color, linewidth=2.4, linestyle=DASHES[name])
        for name, color in COLORS.items()
    ]
    figure.legend(lines, list(NAMES.values()), loc="outside upper center", ncols=5, frameon=False)
    return figure


def first_ahead(name: str, budget: str, delta: str) -> int:
    """The least number of queries of one size that a rule has more of than sums."""
    held = 1
    while accepted(name, budget, delta, query_epsilon(budget, held)) <= held:
        held += 1
    return held


def facts() -> None:
    """What the text says."""
    behind, shares, fewer, more = 0, [], [], []
    for delta in DELTAS:
        renyi, mixture, whitehouse = (table(n, delta) for n in ("renyi", "mixture", "whitehouse"))
        behind += sum(int((renyi < table(name, delta)).sum()) for name in NAMES)
        shares += (mixture / renyi)[renyi >= 20].tolist()
        fewer += (renyi - mixture)[renyi < 20].tolist()
        some = whitehouse > 0
        more += (mixture[some] / whitehouse[some]).tolist()
        for name in ("renyi", "whitehouse"):
            found = [first_ahead(name, budget, delta) for budget in ("0.1", "1", "5", "20", "50")]
            print(f"delta {delta}: {name} is ahead of sums from", *found)
    cells = len(DELTAS) * len(BUDGETS) * len(HELD)
    print(f"of {cells} cells, Rényi for the plan is behind another rule in {behind}")
    print(f"where it accepts 20 or more, the mixture accepts at least {min(shares):.4f} of that,")
    print(f"elsewhere at most {max(fewer)} less, and at least {min(more):.3f} times Whitehouse")


if __name__ == "__main__":
    which_wins().savefig(STATIC / "which_filter.png", dpi=110, metadata={"Software": None})
    facts()
