"""The map of docs/explanation/when.md: ``python docs/figures/utility.py``.

Which way of asking is the most accurate one, for six yes-or-no questions to 2,000 subjects, by the
number of values, the budget, and what is known beforehand. What was worked out is kept in
build/utility/map.json.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

from benchmarks.realized import Survey
from benchmarks.utility import study_of
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from expost.designs import designed
from expost.report.palette import ALLOWED, BASIC, GREEN, GREY, INK, OCHRE, PAPER, PURPLE

STATIC = Path(__file__).parent.parent / "_static"
KEPT = Path("build/utility/map.json")

SIZES = (3, 10, 27, 64)
BUDGETS = ("0.5", "1", "2", "4")
ARRIVALS = {
    "together": "all questions known now",
    "in turn": "one after the other, number known",
    "open": "one after the other, number not known",
}
STUDIES = 2

COLOURS = {
    "one random question": (BASIC, "one\nrandom"),
    "the value once": (OCHRE, "value\nonce"),
    "all answers at once": (GREEN, "all\nanswers"),
    "saturating questions": (ALLOWED, "satu-\nrating"),
    "the Bayesian filter": (PURPLE, "filter"),
    "basic composition": (PAPER, "basic"),
}


def worked_out() -> dict[str, dict[str, float]]:
    """Mean squared errors by policy, for each cell."""
    found: dict[str, dict[str, float]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for size in SIZES:
        for budget in BUDGETS:
            key = f"{size} {budget}"
            if key not in found:
                found[key] = cell(size, budget)
                KEPT.parent.mkdir(parents=True, exist_ok=True)
                KEPT.write_text(json.dumps(found, indent=1))
                print(key, min(found[key], key=found[key].__getitem__), flush=True)
    return found


def cell(size: int, budget: str) -> dict[str, float]:
    """The best of each family, where questions come together, in turn, and in unknown number."""
    sums: dict[str, float] = {}
    for seed in range(STUDIES):
        survey = Survey.random(size, 6, Fraction(budget), 2_000, seed)
        design = designed(study_of(survey, "in turn", 1), repetitions=8, seed=seed)
        for number, arrival in enumerate(ARRIVALS):
            for family in COLOURS:
                errors = [
                    each.error
                    for each in design.predictions
                    if each.policy.family == family and number <= each.policy.latest.late
                ]
                key = f"{arrival}: {family}"
                sums[key] = sums.get(key, 0.0) + min(errors, default=math.inf) ** 2 / STUDIES
    return sums


def draw(axes: Axes, arrival: str, found: dict[str, dict[str, float]]) -> None:
    for row, size in enumerate(SIZES):
        for column, budget in enumerate(BUDGETS):
            errors = found[f"{size} {budget}"]
            possible = {family: errors[f"{arrival}: {family}"] for family in COLOURS}
            best = min(possible, key=possible.__getitem__)
            colour, name = COLOURS[best]
            axes.add_patch(Rectangle((column, row), 1, 1, color=colour, ec="white", lw=2))
            gain = (errors["in turn: basic composition"] / possible[best]) ** 0.5
            dark = best in ("the Bayesian filter", "all answers at once")
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{name}\n{gain:.1f}",
                ha="center",
                va="center",
                fontsize=8,
                color=PAPER if dark else INK,
            )
    axes.set_xlim(0, len(BUDGETS))
    axes.set_ylim(0, len(SIZES))
    axes.set_xticks([column + 0.5 for column in range(len(BUDGETS))], BUDGETS)
    axes.set_yticks([row + 0.5 for row in range(len(SIZES))], [f"{size:,}" for size in SIZES])
    axes.tick_params(length=0)
    axes.set_title(ARRIVALS[arrival], fontsize=10)
    axes.set_xlabel("budget ε")
    for side in axes.spines.values():
        side.set_visible(False)


def main() -> None:
    found = worked_out()
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    for axes, arrival in zip(figure.subplots(1, 3, sharey=True), ARRIVALS, strict=True):
        draw(axes, arrival, found)
    figure.axes[0].set_ylabel("number of values")
    figure.legend(
        handles=[
            Patch(facecolor=colour, edgecolor=GREY, label=family)
            for family, (colour, _) in COLOURS.items()
        ],
        loc="outside lower center",
        ncols=6,
        fontsize=8,
        frameon=False,
    )
    figure.savefig(STATIC / "utility_map.png", dpi=130)


if __name__ == "__main__":
    main()
