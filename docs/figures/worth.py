"""The picture of the README and of docs/explanation/when.md: ``python docs/figures/worth.py``.

Six yes-or-no questions about 27 combinations of attributes, 2,000 people: how many answers each way
of asking takes, and what the figures are worth, at the same guarantee.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import expost as xp
from expost.designs import Design, Prediction
from expost.report.palette import ALLOWED, BASIC, GREY, REALIZED

STATIC = Path(__file__).parent.parent / "_static"
BUDGETS = (1, 2, 4)
PERSON = xp.Attributes(
    age=["young", "middle", "old"],
    income=["low", "middle", "high"],
    smokes=["never", "sometimes", "daily"],
)
QUESTIONS = [
    'smokes == "daily"',
    'age == "old" and income == "low"',
    'income == "high" or smokes == "never"',
    'age == "young"',
    'age != "old" and smokes != "never"',
    'income != "middle"',
]
WAYS = {
    "basic composition at its best": (GREY, ("basic composition",)),
    "the Bayesian filter, randomized responses at its best": (BASIC, ("the Bayesian filter",)),
    "saturating questions under the filter": (REALIZED, ("saturating questions",)),
    "one answer at the full budget": (
        ALLOWED,
        ("one random question", "the value once", "all answers at once"),
    ),
}


def best(found: Design, families: tuple[str, ...]) -> Prediction:
    chosen = found.best_of(*families)
    assert chosen is not None
    return chosen


def main() -> None:
    found = {
        budget: xp.design(
            PERSON, subjects=2000, epsilon=budget, goals=QUESTIONS, arrival="together", rounds=40
        )
        for budget in BUDGETS
    }
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    answers, errors = figure.subplots(1, 2)
    for number, (label, (colour, families)) in enumerate(WAYS.items()):
        chosen = [best(found[budget], families) for budget in BUDGETS]
        print(label, [(each.name, round(each.error, 4), round(each.answers, 1)) for each in chosen])
        at = [place + 0.2 * number - 0.3 for place in range(len(BUDGETS))]
        bars(answers, at, [each.answers for each in chosen], colour, label, "{:.3g}")
        bars(errors, at, [100 * each.error for each in chosen], colour, label, "{:.1f}")
    answers.set_title("answers of a person", fontsize=10)
    errors.set_title("standard error of a share, in per cent", fontsize=10)
    for axes in (answers, errors):
        axes.set_xticks(range(len(BUDGETS)), [f"ε = {budget}" for budget in BUDGETS])
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = errors.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(STATIC / "worth.png", dpi=130)


def bars(
    axes: Axes, at: list[float], heights: list[float], colour: str, label: str, form: str
) -> None:
    drawn = axes.bar(at, heights, width=0.19, color=colour, label=label)
    axes.bar_label(drawn, [form.format(height) for height in heights], fontsize=7, padding=1)


if __name__ == "__main__":
    main()
