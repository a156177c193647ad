"""The map of docs/explanation/when.md: ``PYTHONPATH=. python docs/figures/utility.py``.

Which study design is the most accurate one, for yes-or-no questions to 2,000 subjects, by the
number of values, the budget, and what is known beforehand: from the predictions that
``python -m benchmarks.utility`` has kept beside what came out.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from benchmarks.utility import STRATEGIES, Cell
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from expost.designs import Arrival
from expost.report._palette import ALLOWED, BASIC, GREEN, GREY, INK, OCHRE, PAPER, PURPLE

STATIC = Path(__file__).parent.parent / "_static"
MEASURED = Path("build/utility")

SIZES = (2, 10, 27, 64, 1_000)
BUDGETS = {"1/2": "0.5", "1": "1", "2": "2", "4": "4"}
PANELS = {
    "six, all known now": (Arrival.UP_FRONT, 6),
    "six, one after the other,\nnumber known": (Arrival.SEQUENTIAL, 6),
    "number not known,\nafter 3": (Arrival.OPEN_ENDED, 3),
    "number not known,\nafter 6": (Arrival.OPEN_ENDED, 6),
    "number not known,\nafter 12": (Arrival.OPEN_ENDED, 12),
}
COLOURS = {
    "one sampled question": (BASIC, "one\nsampled"),
    "full-value report": (OCHRE, "full\nvalue"),
    "joint report": (GREEN, "joint"),
    "saturating queries": (ALLOWED, "satu-\nrating"),
    "the Bayesian filter": (PURPLE, "filter"),
    "basic composition": (PAPER, "basic"),
}
LEFT_OUT = ("declared plan with a delta, all", "filter, 1/20 of the budget each")
"""A weaker guarantee; and what is far from the best in fewer surveys than the others have."""
NEAR = 1.03
"""Within so much the predictions do not tell two study designs apart."""


def errors(size: int, budget: str, arrival: Arrival, questions: int) -> dict[str, float]:
    """Predicted errors of the best of each family that can be carried out, over some surveys."""
    squares: dict[str, list[float]] = {}
    for design, strategy in STRATEGIES.items():
        cell = Cell(size, budget, questions, design)
        late = strategy(questions).latest_arrival.rank >= arrival.rank
        if cell.possible and late and design not in LEFT_OUT:
            squares[design] = [predicted for _, predicted in cell.load(MEASURED)]
    # The first so many surveys are the same for all study designs.
    same = min(len(predicted) for predicted in squares.values() if predicted)
    found: dict[str, float] = {}
    for design, predicted in squares.items():
        if predicted:
            family = STRATEGIES[design](questions).family
            error = math.sqrt(float(np.mean(predicted[:same])))
            found[family] = min(error, found.get(family, math.inf))
    return found


def draw(axes: Axes, title: str) -> None:
    arrival, questions = PANELS[title]
    for row, size in enumerate(SIZES):
        for column, budget in enumerate(BUDGETS):
            found = errors(size, budget, arrival, questions)
            best = min(found, key=found.__getitem__)
            near = [other for other in found if found[other] <= NEAR * found[best]]
            colours = [COLOURS[family][0] for family in COLOURS if family in near]
            for place, colour in enumerate(colours):
                part = 1 / len(colours)
                axes.add_patch(Rectangle((column + place * part, row), part, 1, color=colour))
            axes.add_patch(Rectangle((column, row), 1, 1, fill=False, ec="white", lw=2))
            dark = set(colours) <= {GREEN, PURPLE}
            name = "either" if len(colours) > 1 else COLOURS[best][1]
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{name}\n{100 * found[best]:.1f}",
                ha="center",
                va="center",
                fontsize=7,
                color=PAPER if dark else INK,
            )
    axes.set_xlim(0, len(BUDGETS))
    axes.set_ylim(0, len(SIZES))
    axes.set_xticks([column + 0.5 for column in range(len(BUDGETS))], list(BUDGETS.values()))
    axes.set_yticks([row + 0.5 for row in range(len(SIZES))], [f"{size:,}" for size in SIZES])
    axes.tick_params(length=0)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("budget ε", fontsize=9)
    for side in axes.spines.values():
        side.set_visible(False)


def main() -> None:
    figure = Figure(figsize=(13, 4.6), layout="constrained")
    for axes, title in zip(figure.subplots(1, len(PANELS), sharey=True), PANELS, strict=True):
        draw(axes, title)
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
