"""What each way of asking is worth: standard errors that come out, and those that were predicted.

2,000 subjects, yes-or-no questions about random halves of k values, a random population. Every
cell of the tables is measured in as many repetitions as are wanted, each with a study of its own,
and kept in a folder: what is there is not done again.

    python -m benchmarks.utility --quick
    python -m benchmarks.utility
    python -m benchmarks.utility --unknown --sizes 10 27 --budgets 1 2
    python -m benchmarks.utility --studies 200
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.realized import WAYS, Survey
from expost.designs import Arrival, Study, designed
from expost.designs.accuracy import accuracy
from expost.designs.policies import (
    Basic,
    Filtered,
    Policy,
    Simulation,
    Staged,
    Tilted,
    ValueOnce,
)

SUBJECTS = 2_000
SIZES = (2, 10, 27, 64, 1_000)
BUDGETS = ("1/2", "1", "2", "4")
NUMBERS = (3, 6, 12)
LIMIT = 0.10
REGRET = 0.05

# Tables of 1,000 columns take seconds for each estimate.
_MOST_BY_SETS = 256
# Of what takes hundreds of questions.
_FEW = 8

POLICIES: dict[str, Callable[[int], Policy]] = {
    "basic composition, all": lambda count: Basic(count, count),
    "one random question each": lambda count: Basic(1, count),
    "the value once, subset selection": lambda count: ValueOnce(0),
    "the value once, Hadamard response": lambda count: ValueOnce(1),
    "filter, 1/20 of the budget each": lambda count: Filtered(
        Fraction(1, 20), 40, Arrival.TOGETHER
    ),
    "filter, twice an equal share": lambda count: Filtered(Fraction(1, 3), 1, Arrival.IN_TURN),
    "filter, largest epsilon, in steps": Staged,
    "saturating, equal steps": lambda count: Tilted(count, count),
    "saturating, 3 random ones": lambda count: Tilted(3, count),
    "saturating, a third of the rest": lambda count: Tilted(None, count),
}
"""What designs call each way of asking."""

KNOWN = list(WAYS)
UNKNOWN = [
    "saturating, a third of the rest",
    "the value once, subset selection",
    "one random question each",
]

TABLE = {
    ("basic composition, all", 10): (11.3, 6.1, 2.9),
    ("basic composition, all", 64): (12.6, 6.6, 3.4),
    ("one random question each", 10): (5.6, 3.3, 2.5),
    ("one random question each", 64): (5.9, 3.4, 2.7),
    ("filter, 1/20 of the budget each", 10): (6.4, 3.5, 1.9),
    ("filter, largest epsilon, in steps", 10): (8.7, 4.5, 2.2),
    ("filter, largest epsilon, in steps", 64): (11.9, 6.1, 3.4),
    ("saturating, equal steps", 10): (4.9, 2.4, 1.3),
    ("saturating, equal steps", 64): (6.6, 3.7, 1.8),
    ("saturating, 3 random ones", 10): (5.4, 2.5, 1.6),
    ("saturating, 3 random ones", 64): (6.2, 3.1, 1.8),
    ("the value once, subset selection", 10): (5.4, 2.6, 1.2),
    ("the value once, subset selection", 64): (10.7, 5.8, 2.4),
}
"""Root mean squared errors × 100 at budgets of 1, 2 and 4 of an earlier study, ± 3 to 6 %."""


def study_of(survey: Survey, arrival: str, rounds: int) -> Study:
    """The same survey, before it is carried out."""
    goals = [{"share": np.flatnonzero(row).tolist()} for row in survey.questions]
    return Study(
        survey.domain,
        subjects=survey.subjects,
        epsilon=survey.epsilon,
        goals=goals,
        population={"probabilities": survey.chances.tolist()},
        arrival=arrival,
        rounds=rounds,
    )


def fitting(way: str, size: int) -> bool:
    if size == 2:  # there is one question only, and nothing to tilt
        return way in ("basic composition, all", "one random question each")
    return not (way == "the value once, subset selection" and size > _MOST_BY_SETS)


def measured(
    folder: Path, size: int, budget: str, questions: int, way: str, repetitions: int
) -> list[list[float]]:
    """Mean squares of one cell as they came out and as predicted, from the folder if there."""
    file = folder / f"{size}_{budget.replace('/', 'of')}_{questions}_{way.replace('/', 'of')}.json"
    pairs: list[list[float]] = json.loads(file.read_text()) if file.exists() else []
    if "1/20" in way:
        repetitions = min(repetitions, _FEW)
    for seed in range(len(pairs), repetitions):
        survey = Survey.random(size, questions, Fraction(budget), SUBJECTS, seed)
        pairs.append([survey.mean_square(way, seed), predicted(survey, way, seed)])
        file.write_text(json.dumps(pairs))
    return pairs[:repetitions]


def predicted(survey: Survey, way: str, seed: int) -> float:
    """The mean square that a design of the survey predicts; infinite if it is not determined."""
    study = study_of(survey, "in turn", 1)
    outcomes = POLICIES[way](len(survey.questions)).outcomes(
        study.model, study.epsilon, Simulation(8, seed)
    )
    found = accuracy(
        outcomes,
        study.model.targets,
        study.subjects,
        repetitions=8,
        generator=np.random.default_rng(seed),
    )
    return found.together**2


def root(squares: list[float]) -> tuple[float, float]:
    """The root of the mean square × 100, and its standard error."""
    mean = float(np.mean(squares))
    error = float(np.std(squares, ddof=1)) / math.sqrt(len(squares)) if len(squares) > 1 else 0.0
    return 100 * math.sqrt(mean), 100 * error / (2 * math.sqrt(mean))


def tables(folder: Path, sizes: list[int], budgets: list[str], repetitions: int) -> bool:
    """Six questions whose number is known; prints realized ± error and realized / predicted."""
    within = True
    print(f"RMSE × 100 of a share, {SUBJECTS:,} subjects, {repetitions} repetitions, 6 questions")
    for size in sizes:
        for budget in budgets:
            print(f"k = {size}, budget {budget}")
            for way in KNOWN:
                if not fitting(way, size):
                    continue
                pairs = measured(folder, size, budget, 6, way, repetitions)
                rmse, error = root([came for came, _ in pairs])
                line = f"  {way:<36} {rmse:6.2f} ± {error:.2f}"
                ratios = [came / told for came, told in pairs if math.isfinite(told)]
                if len(ratios) > 1:
                    # Study by study, so that it does not matter how hard a study is.
                    mean = math.sqrt(float(np.mean(ratios)))
                    spread = float(np.std(ratios, ddof=1)) / math.sqrt(len(ratios)) / (2 * mean)
                    line += f"   realized / predicted {mean:.2f} ± {spread:.2f}"
                    within &= abs(mean - 1) <= LIMIT + 2 * spread
                print(line + _before(way, size, budget, rmse, error), flush=True)
    return within


def _before(way: str, size: int, budget: str, rmse: float, error: float) -> str:
    known = TABLE.get((way, size))
    if known is None or budget not in ("1", "2", "4"):
        return ""
    before = known[("1", "2", "4").index(budget)]
    apart = (rmse - before) / math.hypot(error, 0.05 * before)
    return f"   earlier {before:5.1f} ({apart:+.1f} σ)"


def unknown(folder: Path, sizes: list[int], budgets: list[str], repetitions: int) -> None:
    """After 3, 6 and 12 questions, where their number is not known beforehand."""
    print("the number of questions not known: RMSE × 100 after 3 / 6 / 12 questions")
    for size in sizes:
        for budget in budgets:
            for way in UNKNOWN:
                if fitting(way, size) and size > 2:
                    cells = [
                        measured(folder, size, budget, number, way, repetitions)
                        for number in NUMBERS
                    ]
                    found = [root([came for came, _ in pairs]) for pairs in cells]
                    shown = " / ".join(f"{rmse:.1f} ± {error:.1f}" for rmse, error in found)
                    print(f"  k = {size}, budget {budget}, {way:<34} {shown}", flush=True)


def random_studies(count: int) -> Iterator[Study]:
    """Studies of many kinds."""
    for seed in range(count):
        generator = np.random.default_rng([seed, 17])
        size = int(generator.choice([3, 6, 10, 16, 27]))
        survey = Survey.random(
            size,
            int(generator.integers(1, 8)),
            Fraction(str(generator.choice(["0.5", "1", "1.5", "2", "3", "4"]))),
            int(generator.choice([300, 1000, 2000])),
            seed,
        )
        yield study_of(survey, str(generator.choice(["together", "in turn", "open"])), 1)


def regrets(count: int) -> list[float]:
    """How much more the recommended policy errs than the best one, by a second simulation."""
    found = []
    for number, study in enumerate(random_studies(count)):
        first = designed(study, seed=number).recommended
        again = designed(study, repetitions=100, seed=10_000 + number)
        best = again.recommended
        assert first is not None
        assert best is not None
        same = next(each for each in again.predictions if each.policy == first.policy)
        found.append(same.error / best.error - 1)
    return found


def run() -> bool:
    """A small size of each part."""
    folder = Path("build/utility")
    folder.mkdir(parents=True, exist_ok=True)
    return tables(folder, [10], ["2"], 8) and advised(4)


def advised(count: int) -> bool:
    found = regrets(count)
    print(
        f"the recommended policy on {count} random studies: at worst {100 * max(found):.1f} % "
        f"above the best one, which it is itself in {sum(each == 0 for each in found)} of them"
    )
    return max(found) <= REGRET


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=Path("build/utility"))
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--budgets", nargs="*", default=list(BUDGETS))
    parser.add_argument("--unknown", action="store_true", help="the second table")
    parser.add_argument("--studies", type=int, default=0, help="the third part, on so many")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.quick:
        raise SystemExit(not run())
    if given.studies:
        raise SystemExit(not advised(given.studies))
    if given.unknown:
        unknown(given.folder, given.sizes, given.budgets, given.repetitions)
        return
    raise SystemExit(not tables(given.folder, given.sizes, given.budgets, given.repetitions))


if __name__ == "__main__":
    main()
