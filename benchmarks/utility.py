"""The standard errors of each strategy, measured and predicted.

2,000 subjects, yes-or-no questions about random halves of k values, a random population; 27 values
are three attributes, and each question is about one of them. Every cell of the tables is measured
in as many repetitions as are wanted, each with a study of its own, and kept in a folder: what is
there is not done again, and what matters most is done first.

    python -m benchmarks.utility --quick
    python -m benchmarks.utility
    python -m benchmarks.utility --repetitions 0          # what is there so far
    python -m benchmarks.utility --repetitions 0 --markdown
    python -m benchmarks.utility --sizes 10 27 --budgets 1 2
    python -m benchmarks.utility --studies 200         # is the recommended strategy the best?
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.recommended import measure_recommendations, replace_file, study_of
from benchmarks.simulated_studies import DELTA, SURVEYED, Survey
from benchmarks.strategy_tables import Measured, print_lines, print_tables
from expost.designs import Arrival
from expost.designs._accuracy import predict_accuracy
from expost.designs._reports import Mechanism
from expost.designs.strategies import (
    BasicComposition,
    DeclaredPlan,
    FixedEpsilon,
    FullValueReport,
    JointReport,
    LargestEpsilon,
    SaturatingCaps,
    Simulation,
    Strategy,
)

SUBJECTS = 2_000
SIZES = (10, 27, 64, 2, 1_000)
RECORDS = {27: (3, 3, 3)}
BUDGETS = ("1", "2", "4", "1/2")
QUESTION_COUNTS = (3, 6, 12)
PLAN_QUESTIONS = 24
"""Questions, for a delta: with fewer, a plan has no more than basic composition."""

# Tables of 1,000 columns and 2,000 rows are more than estimates take.
_MOST_BY_SETS = 256
_GROUPS = 32
_FEW_GROUPS = 8
_VALUES = 256
_STEPS = (6, 20, 40)
"""Repetitions after which the next cell is measured, so that all have some when time is up."""

STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "basic composition, all": lambda count: BasicComposition(count, count),
    "basic composition, 2 sampled questions": lambda count: BasicComposition(2, count),
    "one sampled question": lambda count: BasicComposition(1, count),
    "declared plan with a delta, all": lambda count: DeclaredPlan(count, count, DELTA),
    "joint report": lambda count: JointReport(),
    "full-value report, subset selection": lambda count: FullValueReport(
        Mechanism.SUBSET_SELECTION
    ),
    "full-value report, Hadamard response": lambda count: FullValueReport(
        Mechanism.HADAMARD_RESPONSE
    ),
    "filter, 1/20 of the budget each": lambda count: FixedEpsilon(
        Fraction(1, 20), 40, Arrival.UP_FRONT
    ),
    "filter, 1/8 of the budget each": lambda count: FixedEpsilon(
        Fraction(1, 8), 1, Arrival.OPEN_ENDED
    ),
    "filter, 1/4 of the budget each": lambda count: FixedEpsilon(
        Fraction(1, 4), 1, Arrival.SEQUENTIAL
    ),
    "filter, twice an equal share": lambda count: FixedEpsilon(
        Fraction(1, 3), 1, Arrival.SEQUENTIAL
    ),
    "filter, largest epsilon, in steps": LargestEpsilon,
    "saturating, equal steps": lambda count: SaturatingCaps(count, count),
    "saturating, 3 sampled questions": lambda count: SaturatingCaps(3, count),
    "saturating, a third of the remainder": lambda count: SaturatingCaps(None, count),
}
"""What designs call each strategy."""

UNKNOWN = [
    "saturating, a third of the remainder",
    "full-value report, subset selection",
    "full-value report, Hadamard response",
    "filter, 1/8 of the budget each",
    "one sampled question",
]
WITH_DELTA = ["basic composition, all", "declared plan with a delta, all"]


@dataclass(frozen=True)
class Cell:
    """One strategy for so many questions about so many values within a budget."""

    size: int
    budget: str
    questions: int
    design: str

    @property
    def possible(self) -> bool:
        if self.size == 2:  # there is one question only, which is the value, and nothing to tilt
            value = self.design == "full-value report, subset selection"
            return value or self.design.startswith(("basic", "one sampled", "filter"))
        if self.design == "full-value report, subset selection":
            return self.size <= _MOST_BY_SETS
        return self.design != "joint report" or self.size > 10  # otherwise it is the value

    @property
    def simulated(self) -> bool:
        """Whether a prediction asks subjects one by one, with very many questions."""
        return "1/20" in self.design or self.questions >= PLAN_QUESTIONS

    @property
    def groups(self) -> int:
        """The count of groups of subjects from which an error is predicted."""
        is_large = self.simulated or self.size > _VALUES or self.design.startswith("filter")
        return _FEW_GROUPS if is_large else _GROUPS

    def file(self, folder: Path) -> Path:
        design = self.design.replace("/", "of")
        return (
            folder / f"{self.size}_{self.budget.replace('/', 'of')}_{self.questions}_{design}.json"
        )

    def load(self, folder: Path) -> list[list[float]]:
        """Load pairs of measured and predicted mean squares; empty before the first measurement."""
        file = self.file(folder)
        return json.loads(file.read_text("utf-8")) if file.exists() else []

    def measure(self, folder: Path, repetitions: int) -> None:
        """Measure the missing repetitions."""
        pairs = self.load(folder)
        for seed in range(len(pairs), repetitions):
            survey = self.survey(seed)
            pairs.append([survey.mean_square(self.design, seed), self.predicted(survey, seed)])
            replace_file(self.file(folder), pairs)

    def survey(self, seed: int) -> Survey:
        arguments = self.questions, Fraction(self.budget), SUBJECTS, seed
        if self.size in RECORDS:
            return Survey.about_attributes(RECORDS[self.size], *arguments)
        return Survey.random(self.size, *arguments)

    def predicted(self, survey: Survey, seed: int) -> float:
        """Predict the mean square for a survey; infinite if not determined."""
        study = study_of(survey, "sequential")
        strategy = STRATEGIES[self.design](self.questions)
        accuracy = predict_accuracy(
            strategy.outcomes(study.model, study.epsilon, Simulation(self.groups, seed)),
            study.model.targets,
            study.subjects,
            repetitions=self.groups,
            generator=np.random.default_rng(seed),
        )
        return accuracy.combined**2


def cells(sizes: Sequence[int], budgets: Sequence[str]) -> Iterator[Cell]:
    """Yield all cells of the tables, the most important ones first."""
    usual = [budget for budget in budgets if Fraction(budget) >= 1]
    medium = [size for size in sizes if 2 < size <= _VALUES]
    yield from known_count_cells(medium, usual)
    yield from unknown_count_cells(medium, usual)
    yield from with_delta(medium, usual)
    yield from known_count_cells(sizes, budgets)
    yield from unknown_count_cells(sizes, budgets)


def known_count_cells(sizes: Iterable[int], budgets: Sequence[str]) -> Iterator[Cell]:
    every = (Cell(k, budget, 6, design) for k in sizes for budget in budgets for design in SURVEYED)
    return (cell for cell in every if cell.possible and cell.design not in WITH_DELTA[1:])


def unknown_count_cells(sizes: Iterable[int], budgets: Sequence[str]) -> Iterator[Cell]:
    every = (
        Cell(k, budget, questions, design)
        for k in sizes
        for budget in budgets
        for design in UNKNOWN
        for questions in QUESTION_COUNTS
    )
    return (cell for cell in every if cell.possible)


def with_delta(sizes: Iterable[int], budgets: Sequence[str]) -> Iterator[Cell]:
    return (
        Cell(k, budget, PLAN_QUESTIONS, design)
        for k in sizes
        for budget in budgets
        for design in WITH_DELTA
    )


def run() -> bool:
    """Run a small part of each measurement."""
    folder = Path("build/utility")
    folder.mkdir(parents=True, exist_ok=True)
    sample_cells = list(known_count_cells([10], ["2"]))
    for cell in sample_cells:
        cell.measure(folder, 8)
    return print_lines(_load_measurements(folder, sample_cells)) and measure_recommendations(
        folder, 4
    )


def _load_measurements(folder: Path, cells_of_study: Iterable[Cell]) -> list[Measured]:
    return [
        Measured(cell.size, cell.budget, cell.questions, cell.design, pairs)
        for cell in dict.fromkeys(cells_of_study)
        if (pairs := cell.load(folder))
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=Path("build/utility"))
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--budgets", nargs="*", default=list(BUDGETS))
    parser.add_argument("--markdown", action="store_true", help="tables as in RESULTS.md")
    parser.add_argument("--studies", type=int, default=0, help="the second part, on so many")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.quick:
        raise SystemExit(not run())
    if arguments.studies:
        raise SystemExit(not measure_recommendations(arguments.folder, arguments.studies))
    all_cells = list(cells(arguments.sizes, arguments.budgets))
    for repetitions in (*_STEPS, arguments.repetitions):
        for cell in all_cells:
            cell.measure(arguments.folder, min(repetitions, arguments.repetitions))
    measured = _load_measurements(arguments.folder, all_cells)
    if arguments.markdown:
        print_tables(measured)
        return
    raise SystemExit(not print_lines(measured))


if __name__ == "__main__":
    main()
