"""Is the strategy that a design recommends the best one, or near it? On random studies.

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

from benchmarks.realized import Survey
from expost.designs import Study, design_study

__all__ = ["advised", "keep", "random_studies", "study_of"]

REGRET = 0.05


def study_of(survey: Survey, arrival: str) -> Study:
    """The same survey, before it is carried out."""
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


def regret(study: Study, number: int) -> float:
    """How much more the recommended strategy errs than the best one, by a second simulation."""
    first = design_study(study, seed=number).recommended
    again = design_study(study, repetitions=100, seed=10_000 + number)
    best = again.recommended
    assert first is not None
    assert best is not None
    same = next(each for each in again.predictions if each.strategy == first.strategy)
    return same.error / best.error - 1


def keep(file: Path, found: object) -> None:
    """Write a file as a whole, so that whoever reads it meanwhile, or stops this, has the old."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(found))
    new.replace(file)


def advised(folder: Path, count: int) -> bool:
    """Whether it is within its limit on so many studies."""
    file = folder / "regrets.json"
    found: list[float] = json.loads(file.read_text("utf-8")) if file.exists() else []
    for number, study in enumerate(random_studies(count)):
        if number >= len(found):
            found.append(regret(study, number))
            keep(file, found)
    found = found[:count]
    print(
        f"the recommended strategy on {count} random studies: at worst {100 * max(found):.1f} % "
        f"above the best one, which it is itself in {sum(each == 0 for each in found)} of them"
    )
    return max(found) <= REGRET
