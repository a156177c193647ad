"""The regret of the recommended strategy, on random studies.

Each study is designed twice, from different seeds, the second time with two and a half times as
many groups. How much more the way that the first recommends errs than the best one is read from
the second, and kept in a file: studies that are there are not done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.simulated_studies import Survey
from expost.designs import Study, design_study

__all__ = ["measure_recommendations", "random_studies", "replace_file", "study_of"]

REGRET = 0.05


def study_of(survey: Survey, arrival: str) -> Study:
    """Describe a survey as a study, before it is carried out."""
    goals = [{"share": np.flatnonzero(row).tolist()} for row in survey.questions]
    return Study(
        survey.domain,
        subjects=survey.subjects,
        epsilon=survey.epsilon,
        goals=goals,
        population={"probabilities": survey.chances.tolist()},
        arrival=arrival,
    )


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
        yield study_of(survey, str(generator.choice(["up front", "sequential", "open-ended"])))


def regret(study: Study, seed: int) -> float:
    """Compute the excess error of the recommended strategy, by a second simulation."""
    first = design_study(study, seed=seed).recommended
    again = design_study(study, repetitions=100, seed=10_000 + seed)
    best = again.recommended
    assert first is not None
    assert best is not None
    same = next(
        prediction for prediction in again.predictions if prediction.strategy == first.strategy
    )
    return same.error / best.error - 1


def replace_file(file: Path, content: object) -> None:
    """Replace a file at once, so that a reader or a crash finds the old one or the new one."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content))
    new.replace(file)


def measure_recommendations(folder: Path, count: int) -> bool:
    """Return whether the regret is within its limit on so many studies."""
    file = folder / "regrets.json"
    regrets: list[float] = json.loads(file.read_text("utf-8")) if file.exists() else []
    for index, study in enumerate(random_studies(count)):
        if index >= len(regrets):
            regrets.append(regret(study, index))
            replace_file(file, regrets)
    regrets = regrets[:count]
    print(
        f"the recommended strategy on {count} random studies: at worst {100 * max(regrets):.1f} % "
        f"above the best one, which it is itself in {regrets.count(0)} of them"
    )
    return max(regrets) <= REGRET
