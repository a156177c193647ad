"""Designs: predict the accuracy of all strategies that a study could follow, and recommend one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from expost._format import format_fixed, format_number
from expost.cards import View
from expost.designs._accuracy import Accuracy, Outcomes, predict_accuracy
from expost.designs.strategies import (
    BasicComposition,
    DeclaredPlan,
    Simulation,
    Strategy,
    reasons_against,
    strategies_for,
)
from expost.designs.study import Study
from expost.domains import Domain
from expost.errors import expect, read_at
from expost.files.reading import read_integer
from expost.files.tables import ResultTable
from expost.filters._large_budgets import warn_if_large
from expost.numbers import Nats
from expost.queries import Query

__all__ = ["CurvePoint", "Design", "Prediction", "design", "design_study"]


#: Differences of fewer standard errors of the simulation count as ties.
_TIED_ERRORS = 2.0
#: Differences of one percent count as ties.
_TIED_SHARE = 0.01


@dataclass(frozen=True)
class Prediction:
    """The predicted accuracy of one strategy."""

    strategy: Strategy
    #: Whether the study can carry it out, given when its questions are known.
    possible: bool
    accuracy: Accuracy
    #: How it was computed.
    #:
    #: From ``"exact"`` probabilities of all outcomes, from ``"simulated"`` subjects, or from
    #: unbiased ``"frequencies"`` in closed form, if values are too many for a likelihood. It is
    #: ``"asymptotic"``, and too large for few subjects, if no groups could be estimated.
    method: str
    #: The mean number of answers of a subject.
    answers: float
    #: The share of subjects who answer in each round.
    answering: tuple[float, ...]

    @property
    def name(self) -> str:
        """The name of the strategy."""
        return self.strategy.name

    @property
    def error(self) -> float:
        """The standard error of all goals together: the root of the mean square over goals.

        The error of a mean is relative to the range of its score. Infinite if some goal is not
        determined at all.
        """
        return self.accuracy.combined

    @property
    def delta(self) -> Fraction:
        """The delta of its guarantee: 0 unless the strategy needs a budget with a delta."""
        return self.strategy.delta if isinstance(self.strategy, DeclaredPlan) else Fraction(0)

    @property
    def is_usable(self) -> bool:
        """Whether the study can carry it out, and it determines all goals."""
        return self.possible and math.isfinite(self.error)

    def is_tied_with(self, other: Prediction) -> bool:
        """Return whether the two are equally accurate, within the error of the simulation."""
        noise = math.hypot(self.accuracy.simulation_error, other.accuracy.simulation_error)
        return abs(self.error - other.error) <= max(_TIED_ERRORS * noise, _TIED_SHARE * other.error)

    def tree(self) -> dict[str, Any]:
        """Return the prediction as JSON, with null for undetermined errors."""
        accuracy = self.accuracy
        return {
            "strategy": self.name,
            "family": self.strategy.family,
            "how": self.strategy.description,
            "possible": self.possible,
            "method": self.method,
            "delta": float(self.delta),
            "error": _finite_or_none(self.error),
            "simulation_error": _finite_or_none(accuracy.simulation_error),
            "simulated_groups": accuracy.groups,
            "standard_errors": [_finite_or_none(error) for error in accuracy.standard_errors],
            "asymptotic": [_finite_or_none(error) for error in accuracy.asymptotic],
            "answers_per_subject": self.answers,
            "answering": list(self.answering),
        }


@dataclass(frozen=True)
class CurvePoint:
    """The accuracy of the best strategy of a family at one budget."""

    epsilon: float
    family: str
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Design(ResultTable):
    """Predictions for all strategies, the best first, and the recommended one.

    :func:`expost.design` returns it.
    """

    study: Study
    predictions: tuple[Prediction, ...]
    #: Why other strategies were not predicted, by their names or that of a whole family.
    left_out: Mapping[str, str]
    #: The accuracy of each family at other ``budgets``, if there are any.
    curve: tuple[CurvePoint, ...] = ()

    @property
    def recommended(self) -> Prediction | None:
        """The most accurate one that the study can carry out; None if none determines all goals.

        One with a delta only if none with the stronger guarantee is as good.
        """
        usable = [prediction for prediction in self.predictions if prediction.is_usable]
        tied = (p for p in usable if not p.delta and p.is_tied_with(usable[0]))
        return next(tied, usable[0]) if usable else None

    @property
    def alike(self) -> tuple[Prediction, ...]:
        """The other strategies that are tied with the recommended one."""
        best = self.recommended
        if best is None:
            return ()
        others = (p for p in self.predictions if p is not best)
        return tuple(p for p in others if p.possible and p.is_tied_with(best))

    def best_of(self, *families: str) -> Prediction | None:
        """Return the most accurate possible strategy of some families, or None."""
        usable = (p for p in self.predictions if p.is_usable and p.strategy.family in families)
        return next(usable, None)

    @cached_property
    def mechanisms(self) -> tuple[str, ...] | None:
        """The mechanism and the epsilon with which the recommended design asks for each goal.

        None if it does not ask one query for each goal.
        """
        best = self.recommended
        if best is None or not isinstance(best.strategy, BasicComposition):
            return None
        return tuple(map(_mechanism, best.strategy.queries(self.study.model, self.study.epsilon)))

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them."""
        rows = self.predictions
        columns: dict[str, Any] = {
            "strategy": [prediction.name for prediction in rows],
            "possible": [prediction.possible for prediction in rows],
            "method": [prediction.method for prediction in rows],
            "delta": [float(prediction.delta) for prediction in rows],
            "error": [prediction.error for prediction in rows],
            "simulation_error": [prediction.accuracy.simulation_error for prediction in rows],
            "answers_per_subject": [prediction.answers for prediction in rows],
        }
        for index, goal in enumerate(self.study.goals):
            errors = [prediction.accuracy.standard_errors[index] for prediction in rows]
            columns[f"{index + 1}: {goal.name}"] = errors
        return columns

    def tree(self) -> dict[str, Any]:
        """Return the design as JSON."""
        best = self.recommended
        return {
            "recommended": None if best is None else best.name,
            "alike": [prediction.name for prediction in self.alike],
            "subjects": self.study.subjects,
            "epsilon": float(self.study.epsilon),
            "delta": float(self.study.delta),
            "arrival": self.study.arrival.value,
            "goals": [goal.name for goal in self.study.goals],
            "mechanisms": self.mechanisms,
            "strategies": [prediction.tree() for prediction in self.predictions],
            "left_out": dict(self.left_out),
            "by_budget": [
                {**asdict(point), "error": _finite_or_none(point.error)} for point in self.curve
            ],
        }

    def _view(self) -> View:
        best = self.recommended

        def row(index: int) -> tuple[object, ...]:
            prediction = self.predictions[index]
            verdict = "recommended" if prediction is best else ""
            if not prediction.possible:
                verdict = "not possible"
            return (
                prediction.name,
                format_number(prediction.error, 4),
                format_number(prediction.answers, 3),
                verdict,
            )

        return View(
            f"Design({self.study.subjects:,} subjects, {len(self.study.goals)} goals)",
            {"recommended": "none" if best is None else best.name},
            ("strategy", "standard error", "answers per subject", ""),
            len(self.predictions),
            row,
        )


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


REPETITIONS = 40
_MORE_GROUPS = 5
_NEAR_BEST = 1.25
_SMALL_NOISE = 0.01

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

    Predictions are standard errors of maximum-likelihood estimates. The outcomes of a subject have
    exact probabilities if there are few kinds of them, and are simulated otherwise.

    Args:
        domain: The domain of the values.
        subjects: The number of subjects.
        epsilon: The budget of each subject.
        goals: The estimates that the study is for. A statement is the share for which it is true.
            ``{"distribution": "region"}`` or ``{"distribution": "value"}`` are the shares of all
            values. ``{"mean": "age"}`` or a one-bit query is the mean of a score.
        population: How likely values are, as for :class:`expost.designs.Study`.
        delta: The delta of the budget, if there is one.
        arrival: When the questions are known: ``"up front"``, ``"sequential"`` or
            ``"open-ended"``, as for :class:`expost.designs.Study`.
        rounds: How often all questions may be asked under a filter.
        repetitions: The number of simulated groups.
        seed: The seed of the simulation.
        budgets: Other budgets, to show the accuracy of each family there.
        progress: A function that is called with the work done, the total, and the next strategy.

    Returns:
        Predictions for all strategies, the best first, and the recommended one.

    Raises:
        InvalidInput: If the study is not valid, or has more than 2,000 values.

    >>> import expost as xp
    >>> found = xp.design(
    ...     xp.FiniteSet(range(10)), subjects=2000, epsilon=2, arrival="open-ended",
    ...     goals=["value >= 7", "value < 2", "value == 5"],
    ... )
    >>> found.recommended.name
    'full-value report, randomized response'
    """
    study = Study(
        domain, subjects=subjects, epsilon=epsilon, goals=goals, population=population,
        delta=delta, arrival=arrival, rounds=rounds,
    )  # fmt: skip
    warn_if_large(Nats(study.epsilon))
    return design_study(
        study, repetitions=repetitions, seed=seed, budgets=budgets, progress=progress
    )


def design_study(
    study: Study,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    budgets: Sequence[Any] = (),
    progress: Progress | None = None,
) -> Design:
    """Predict the accuracy of all strategies for a study, as :func:`expost.design` does."""
    expect(study, Study, "a Study")
    repetitions = read_at("repetitions", read_integer, repetitions, at_least=8)
    seed = read_at("seed", read_integer, seed, at_least=0)
    studies = [study, *(study.at(budget) for budget in budgets)]
    strategies = [strategies_for(current_study) for current_study in studies]
    total, done = sum(map(len, strategies)), 0
    designs = []
    for current_study, current_strategies in zip(studies, strategies, strict=True):
        trials = []
        for strategy in current_strategies:
            if progress is not None:
                progress(done, total, strategy.name)
            # The seed depends on the strategy's name, so that other strategies do not change it.
            generator = np.random.default_rng([seed, *strategy.name.encode()])
            groups = repetitions if current_study is study else max(8, repetitions // 3)
            simulation = Simulation(groups, int(generator.integers(1 << 32)))
            outcomes = strategy.outcomes(current_study.model, current_study.epsilon, simulation)
            trial = _Trial(current_study, strategy, simulation, outcomes)
            trials.append((trial, trial.prediction()))
            done += 1
        predictions = sorted(_refine_predictions(trials), key=lambda prediction: prediction.error)
        designs.append(Design(current_study, tuple(predictions), reasons_against(current_study)))
    return replace(designs[0], curve=tuple(_curve(designs)) if budgets else ())


@dataclass(frozen=True)
class _Trial:
    """The outcomes of a strategy in a study."""

    study: Study
    strategy: Strategy
    simulation: Simulation
    outcomes: Outcomes

    def prediction(self, factor: int = 1) -> Prediction:
        """Predict the accuracy from so many times as many simulated groups."""
        study, strategy, outcomes = self.study, self.strategy, self.outcomes
        accuracy = predict_accuracy(
            outcomes,
            study.model.targets,
            study.subjects,
            repetitions=factor * self.simulation.repetitions,
            generator=np.random.default_rng(self.simulation.seed),
        )
        possible = study.arrival.rank <= strategy.latest_arrival.rank
        method = outcomes.method if accuracy.groups else "asymptotic"
        answers, answering = outcomes.answers, outcomes.answering
        return Prediction(strategy, possible, accuracy, method, answers, answering)


_SIZES = ("size", "order")


def _mechanism(query: Query) -> str:
    """Name the mechanism of a query, with its size or order and its epsilon."""
    size = "".join(
        f" of {name} {format_fixed(query.tree()[name], 0)}"
        for name in _SIZES
        if name in query.tree()
    )
    assert query.epsilon is not None
    return f"{query.kind}{size} at epsilon {format_number(query.epsilon, 4)}"


def _refine_predictions(trials: Sequence[tuple[_Trial, Prediction]]) -> list[Prediction]:
    """Refine predictions near the best one with more groups, if their simulation is noisy."""
    possible_errors = (prediction.error for _, prediction in trials if prediction.possible)
    best = min(possible_errors, default=math.inf)
    return [
        trial.prediction(_MORE_GROUPS)
        if prediction.possible
        and prediction.error <= _NEAR_BEST * best < math.inf
        and prediction.accuracy.simulation_error > _SMALL_NOISE * prediction.error
        else prediction
        for trial, prediction in trials
    ]


def _curve(designs: Sequence[Design]) -> list[CurvePoint]:
    points = []
    for design_ in sorted(designs, key=lambda design_: design_.study.epsilon):
        families = (prediction.strategy.family for prediction in design_.predictions)
        for family in dict.fromkeys(families):
            best = design_.best_of(family)
            error = math.inf if best is None else best.error
            points.append(CurvePoint(float(design_.study.epsilon), family, error))
    return points
