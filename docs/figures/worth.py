"""The figure and the table of predicted errors in docs/explanation/when.md and the README.

Six yes/no questions about 27 combinations of attributes, 2,000 people. The questions come one after
the other, and only their number is known in advance. ``python docs/figures/worth.py`` draws the
figure, writes the predicted errors to worth.json, and prints which designs they belong to;
tests/documentation/test_measured_figures.py compares them with the pages.
"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import expost as xp
from expost.designs import Prediction
from expost.report._palette import ALLOWED, BASIC, GREY, REALIZED

NUMBERS = Path(__file__).with_suffix(".json")
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
DESIGNS = {
    "basic composition, several questions each": (GREY, ("basic composition",)),
    "filter with randomized response": (BASIC, ("the Bayesian filter",)),
    "filter with saturating queries": (REALIZED, ("saturating queries",)),
    "one answer at the full budget": (
        ALLOWED,
        ("one sampled question", "full-value report", "joint report"),
    ),
}
REPEATED = "filter with randomized response, each question asked up to 40 times"
JOINT = "one joint answer to all six questions at the full budget"


def one_after_the_other(budget: int) -> dict[str, Prediction]:
    """Predict the most accurate design of each kind that needs only the number of questions."""
    found = xp.design(PERSON, subjects=2000, epsilon=budget, goals=QUESTIONS, arrival="sequential")
    best = {label: found.best_of(*families) for label, (_, families) in DESIGNS.items()}
    return {label: each for label, each in best.items() if each is not None}


def all_known(budget: int) -> dict[str, Prediction]:
    """Predict the two designs that need all questions before the first answer."""
    found = xp.design(
        PERSON, subjects=2000, epsilon=budget, goals=QUESTIONS, arrival="up front", rounds=40
    )
    best = {
        REPEATED: found.best_of("the Bayesian filter"),
        JOINT: found.best_of("joint report"),
    }
    return {label: each for label, each in best.items() if each is not None}


def points(prediction: Prediction) -> str:
    """Format a predicted standard error of a share, in percentage points."""
    return f"{100 * prediction.error:.1f}"


def main() -> None:
    sequential = [one_after_the_other(budget) for budget in BUDGETS]
    known = [all_known(budget) for budget in BUDGETS]
    errors_by_label = {}
    for predictions in (sequential, known):
        for label in predictions[0]:
            row = [each[label] for each in predictions]
            errors_by_label[label] = [points(each) for each in row]
            print(f"{label}:", [(each.name, round(each.answers, 1)) for each in row])
    NUMBERS.write_text(json.dumps(errors_by_label, indent=1) + "\n", encoding="utf-8")
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    answers, errors = figure.subplots(1, 2)
    for number, (label, (color, _)) in enumerate(DESIGNS.items()):
        chosen = [predictions[label] for predictions in sequential]
        at = [place + 0.2 * number - 0.3 for place in range(len(BUDGETS))]
        bars(answers, at, [each.answers for each in chosen], color, label, "{:.2g}")
        bars(errors, at, [100 * each.error for each in chosen], color, label, "{:.1f}")
    answers.set_title("answers per person", fontsize=10)
    errors.set_title("predicted standard error of a share, in percentage points", fontsize=10)
    for axes in (answers, errors):
        axes.set_xticks(range(len(BUDGETS)), [f"ε = {budget}" for budget in BUDGETS])
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = errors.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.savefig(STATIC / "worth.png", dpi=130)


def bars(
    axes: Axes, at: list[float], heights: list[float], color: str, label: str, form: str
) -> None:
    drawn = axes.bar(at, heights, width=0.19, color=color, label=label)
    axes.bar_label(drawn, [form.format(height) for height in heights], fontsize=7, padding=1)


if __name__ == "__main__":
    main()
