"""Predict the accuracy of all strategies that a study could follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from expost.designs.accuracy import Accuracy, accuracy
from expost.designs.outcomes import Outcomes
from expost.designs.result import Design, Point, Prediction
from expost.designs.strategies import Simulation, Strategy, strategies_for
from expost.designs.study import Study
from expost.domains import Domain
from expost.errors import at, expect
from expost.files.reading import read_integer
from expost.filters._large_budgets import warn_if_large
from expost.numbers import Nats

__all__ = ["design", "designed"]

REPETITIONS = 40
_MORE = 5
_NEAR = 1.25
_SURE = 0.01

Progress = Callable[[int, int, str], None]


def design(
    domain: Domain,
    *,
    subjects: int,
    epsilon: Any,
    goals: Sequence[Any],
    population: Any = None,
    delta: Any = None,
    arrival: str = "sequential",
    rounds: int = 1,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    budgets: Sequence[Any] = (),
    progress: Progress | None = None,
) -> Design:
    """Predict how accurate each study design will be, and recommend one.

    A study has so many ``subjects``, each with a budget of ``epsilon``, and ``goals``: a statement
    is the share for which it is true, ``{"distribution": "region"}`` or ``{"distribution":
    "value"}`` the shares of all values, ``{"mean": "age"}`` or a one-bit query the mean of a score.
    See :class:`expost.designs.Study` for ``population``, ``delta``, ``arrival`` and ``rounds``.

    Predictions are standard errors of estimates by maximum likelihood. What each subject shows is
    worked out exactly where its kinds are few, and otherwise simulated; ``repetitions`` groups are
    then drawn and estimated, from the ``seed``. At ``budgets`` the best of each family is worked
    out as well. ``progress`` is called with how much is done, of how much, and what is next.

    >>> import expost as xp
    >>> found = xp.design(
    ...     xp.FiniteSet(range(10)), subjects=2000, epsilon=2, arrival="open-ended",
    ...     goals=["value >= 7", "value < 2", "value == 5"],
    ... )
    >>> found.recommended.name
    'full-value report, subset selection'
    """
    study = Study(
        domain,
        subjects=subjects,
        epsilon=epsilon,
        goals=goals,
        population=population,
        delta=delta,
        arrival=arrival,
        rounds=rounds,
    )
    warn_if_large(Nats(study.epsilon))
    return designed(study, repetitions=repetitions, seed=seed, budgets=budgets, progress=progress)


def designed(
    study: Study,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    budgets: Sequence[Any] = (),
    progress: Progress | None = None,
) -> Design:
    """The same of a study that is put together already."""
    expect(study, Study, "a Study")
    with at("repetitions"):
        repetitions = read_integer(repetitions, at_least=8)
    with at("seed"):
        seed = read_integer(seed, at_least=0)
    others = [study.at(each) for each in budgets]
    total, done = sum(len(strategies_for(each)) for each in (study, *others)), 0
    designs = []
    for each in (study, *others):
        trials = []
        for strategy in strategies_for(each):
            if progress is not None:
                progress(done, total, strategy.name)
            # The seed depends on the strategy's name, so that other strategies do not change it.
            own = np.random.default_rng([seed, *strategy.name.encode()])
            often = repetitions if each is study else max(8, repetitions // 3)
            simulation = Simulation(often, int(own.integers(1 << 32)))
            trials.append(_Trial.of(each, strategy, simulation))
            done += 1
        designs.append(Design(each, _sorted(_told_apart(trials))))
    return replace(designs[0], curve=tuple(_curve(designs)) if budgets else ())


@dataclass(frozen=True)
class _Trial:
    """The outcomes of a strategy, and the prediction from them."""

    study: Study
    simulation: Simulation
    outcomes: Outcomes
    prediction: Prediction

    @classmethod
    def of(cls, study: Study, strategy: Strategy, simulation: Simulation) -> _Trial:
        outcomes = strategy.outcomes(study.model, study.epsilon, simulation)
        possible = study.arrival.late <= strategy.latest.late
        found = _accuracy(study, outcomes, simulation, simulation.repetitions)
        told = Prediction(strategy, possible, found, outcomes.answers, outcomes.answering)
        return cls(study, simulation, outcomes, told)

    def again(self, times: int) -> Prediction:
        """The prediction from so many times as many groups."""
        often = times * self.simulation.repetitions
        found = _accuracy(self.study, self.outcomes, self.simulation, often)
        return replace(self.prediction, accuracy=found)


def _accuracy(
    study: Study, outcomes: Outcomes, simulation: Simulation, repetitions: int
) -> Accuracy:
    return accuracy(
        outcomes,
        study.model.targets,
        study.subjects,
        repetitions=repetitions,
        generator=np.random.default_rng(simulation.seed),
    )


def _told_apart(trials: Sequence[_Trial]) -> list[Prediction]:
    """The predictions; those near the best one from more groups, where that is not sure."""
    first = [trial.prediction for trial in trials]
    best = min((each.error for each in first if each.possible), default=math.inf)
    return [
        trial.again(_MORE)
        if told.possible
        and told.error <= _NEAR * best < math.inf
        and told.accuracy.simulation_error > _SURE * told.error
        else told
        for trial, told in zip(trials, first, strict=True)
    ]


def _sorted(predictions: list[Prediction]) -> tuple[Prediction, ...]:
    return tuple(sorted(predictions, key=lambda each: each.error))


def _curve(designs: Sequence[Design]) -> list[Point]:
    points = []
    for found in sorted(designs, key=lambda each: each.study.epsilon):
        families = dict.fromkeys(each.strategy.family for each in found.predictions)
        for family in families:
            best = found.best_of(family)
            error = math.inf if best is None else best.error
            points.append(Point(float(found.study.epsilon), family, error))
    return points
