"""Predictions against closed forms, against what really comes out, and what is recommended."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import expost as xp
from expost.designs import Arrival, Design, Prediction, Study
from expost.designs._accuracy import (
    ExactOutcomes,
    SimulatedOutcomes,
    predict_accuracy,
)
from expost.designs._reports import SubsetOutcomes
from expost.designs.strategies import (
    BasicComposition,
    FixedEpsilon,
    SaturatingCaps,
    Simulation,
    _fixed_plan,
)

TEN = xp.FiniteSet(range(10))
SIX = [
    "value >= 7",
    "value < 2 or value == 5",
    "value < 5",
    "value == 1 or value == 4 or value == 6",
    "value < 3 or value > 8",
    "value == 0 or value == 9 or value == 2",
]
SKEWED = [0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]


def of(design: Design, name: str) -> Prediction:
    return next(prediction for prediction in design.predictions if prediction.name == name)


def randomized_response_error(share: float, subjects: float, epsilon: float) -> float:
    """The standard error of the unbiased estimate of a share from randomized responses."""
    bias = math.tanh(epsilon / 2)
    yes = (1 - bias) / 2 + bias * share
    return math.sqrt(yes * (1 - yes) / subjects) / bias


@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_one_question_has_the_error_of_randomized_response(epsilon: float) -> None:
    design = xp.design(
        TEN, subjects=20_000, epsilon=epsilon, goals=["value < 2"], population=[0, 1, *range(2, 10)]
    )
    sampled = of(design, "single question")
    expected = randomized_response_error(0.2, 20_000, epsilon)
    assert sampled.accuracy.asymptotic[0] == pytest.approx(expected, rel=1e-9)
    assert sampled.error == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("sampled", [1, 2, 6])
def test_random_questions_have_the_error_of_so_many_fewer_subjects(sampled: int) -> None:
    study = Study(TEN, subjects=50_000, epsilon=2, goals=SIX, population={"probabilities": SKEWED})
    outcomes = BasicComposition(sampled, 6).outcomes(study.model, study.epsilon, Simulation(8, 0))
    design = predict_accuracy(
        outcomes,
        study.model.targets,
        study.subjects,
        repetitions=8,
        generator=np.random.default_rng(0),
    )
    if sampled == 1:  # several answers of one subject tell more than each of them alone
        for target, error in zip(study.model.targets, design.asymptotic, strict=True):
            share = float(target.rows[0] @ SKEWED)
            expected = randomized_response_error(share, 50_000 / 6, 2)
            assert error == pytest.approx(expected, rel=1e-6)
    assert outcomes.answers == sampled
    assert outcomes.answering == (sampled / 6,) * 6


def test_subsets_are_drawn_as_the_query_draws_them() -> None:
    weights = np.array([0.5, 0.3, 0.1, 0.05, 0.05])
    drawn = SubsetOutcomes(np.arange(5), weights, (1.0,), 1.0, 2, math.e)
    ((rows, counts),) = drawn.groups(40_000, 1, np.random.default_rng(1))
    likelihood = xp.subset_selection(size=2, epsilon=1).on(xp.FiniteSet(range(5)))
    exact = np.array(
        [
            [float(likelihood.pmf(x).probability(y)) for x in range(5)]
            for y in range(len(likelihood.responses))
        ]
    )
    chances = exact @ weights
    observed = np.zeros(len(chances))
    for row in rows:
        inside = tuple(np.flatnonzero(row == 1).tolist())
        observed[likelihood.position(inside)] += 1
    spread = np.sqrt(chances * (1 - chances) / counts.sum())
    assert (np.abs(observed / counts.sum() - chances) < 5 * spread).all()
    listed = ExactOutcomes.of(exact, weights, (1.0,), 1.0)
    order = np.argsort(np.unique(listed.cells, return_index=True)[1])
    information = listed.information[np.ix_(order, order)]
    assert np.allclose(drawn.information, information, rtol=0.1, atol=0.1)


def test_saturating_questions_are_one_exact_channel() -> None:
    """Subjects of a panel that asks them end in its states, as often as it says."""
    study = Study(TEN, subjects=100, epsilon=2, goals=SIX[:3], population={"probabilities": SKEWED})
    outcomes = SaturatingCaps(3, 3).outcomes(study.model, Fraction(2), Simulation(8, 0))
    assert isinstance(outcomes, ExactOutcomes)
    table = outcomes.table[:, outcomes.cells]
    assert np.allclose(table.sum(axis=0), 1)
    # Every state speaks for a set of values by the full budget, and against the others.
    assert np.allclose(table.max(axis=1) / table.min(axis=1), math.exp(2), rtol=1e-5)
    sets = {tuple((row > row.mean()).tolist()): index for index, row in enumerate(table)}
    panel = xp.Panel(
        TEN,
        filter=xp.BayesianFilter(epsilon=2),
        subjects=range(4000),
        source=xp.sampling.InsecureSource(3),
    )
    values = [0, 4] * 2000
    for question, cap in zip(SIX, xp.saturation.equal_caps(2, questions=3), strict=False):
        panel.ask(panel.saturating(question, cap=cap), values)
    answers = panel.answers()
    tallies = answers.tallies()
    states = []
    for codes in map(tallies.responses, range(1, len(tallies))):
        logs = np.zeros(10)
        for part in answers.transcript_of(codes).tally:
            logs += part.times * part.query.on(TEN).term(part.position).logs
        states.append(sets[tuple((logs > logs.mean()).tolist())])
    ended = np.array(states)[tallies.of_subject - 1]
    for start, value in enumerate((0, 4)):
        observed = np.bincount(ended[start::2], minlength=len(table))
        expected = 2000 * table[:, value]
        assert (np.abs(observed - expected) < 5 * np.sqrt(expected) + 3).all()


def test_errors_that_are_predicted_are_those_that_come_out() -> None:
    """A survey of 300 subjects, done 40 times by the means that a user has."""
    subjects, goals, epsilon = 300, SIX[:3], Fraction(2)
    design = xp.design(TEN, subjects=subjects, epsilon=2, goals=goals, seed=5)
    statements = [xp.knowledge.Statement(TEN, goal).probabilities for goal in goals]
    rows = np.array(statements, dtype=np.float64)
    generator = np.random.default_rng(8)
    queries = [xp.perturbation(row.tolist(), range=(0, 1), epsilon=epsilon / 3) for row in rows]
    squares: dict[str, list[float]] = {"basic composition, all 3": [], "full-value report": []}
    for repetition in range(40):
        values = generator.integers(10, size=subjects)
        panel = xp.Panel(
            TEN,
            filter=xp.BayesianFilter(epsilon=epsilon),
            subjects=range(subjects),
            source=xp.sampling.InsecureSource(repetition),
        )
        for query in queries:
            panel.ask(query, values)
        estimated = xp.estimation.estimate_distribution(panel.answers(), gap=1e-3)
        off = rows @ (estimated.probabilities - 0.1)
        squares["basic composition, all 3"].append(float((off**2).mean()))
        once = xp.Panel(
            TEN,
            filter=xp.BayesianFilter(epsilon=epsilon),
            subjects=range(subjects),
            source=xp.sampling.InsecureSource(repetition),
        )
        once.ask(xp.randomized_response(epsilon=epsilon), values)
        estimated = xp.estimation.estimate_distribution(once.answers(), gap=1e-3)
        off = rows @ (estimated.probabilities - 0.1)
        squares["full-value report"].append(float((off**2).mean()))
    for name, prediction in squares.items():
        realized = math.sqrt(np.mean(prediction))
        predicted = next(p for p in design.predictions if p.name.startswith(name)).error
        spread = np.std(prediction) / math.sqrt(40) / (2 * realized)
        assert abs(predicted - realized) < 4 * spread


def test_the_filter_answers_as_long_as_it_accepts() -> None:
    study = Study(TEN, subjects=500, epsilon=1, goals=SIX[:2])
    outcomes = FixedEpsilon(Fraction(1), 1, Arrival.SEQUENTIAL).outcomes(
        study.model, study.epsilon, Simulation(8, 0)
    )
    # The whole budget for the first question leaves room only for what it does not touch.
    assert outcomes.answering[0] == 1
    assert outcomes.answering[1] < 0.5


def test_what_is_recommended_depends_on_what_is_known_beforehand() -> None:
    def name(arrival: str, epsilon: object) -> str:
        design = xp.design(
            TEN, subjects=2000, epsilon=epsilon, goals=SIX, arrival=arrival, repetitions=8
        )
        assert design.recommended is not None
        return design.recommended.strategy.family

    assert name("up front", 2) in ("joint report", "saturating queries")
    assert name("sequential", 2) == "saturating queries"
    assert name("open-ended", 2) == "full-value report"


def test_a_strategy_that_needs_the_number_is_not_possible_where_it_is_open() -> None:
    design = xp.design(
        TEN, subjects=500, epsilon=1, goals=SIX[:2], arrival="open-ended", repetitions=8
    )
    assert not of(design, "one sampled question").possible
    assert of(design, "saturating, a third of the remainder").possible


def test_the_same_seed_gives_the_same_design_and_other_budgets_do_not_change_it() -> None:
    def tree(budgets: list[int]) -> object:
        design = xp.design(
            TEN, subjects=200, epsilon=1, goals=SIX[:2], repetitions=8, budgets=budgets
        )
        return design.tree()["strategies"]

    assert tree([]) == tree([2])


def test_a_few_simulated_groups_are_not_measured_from_their_own_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Far from the edge errors are those of the limit, also if its information was simulated."""
    monkeypatch.setattr(_fixed_plan, "_MOST_KINDS", 1)
    study = Study(
        xp.FiniteSet(range(3)), subjects=5_000, epsilon=3, goals=["value < 1", "value < 2"]
    )
    ratios = []
    for seed in range(12):
        outcomes = BasicComposition(2, 2).outcomes(study.model, study.epsilon, Simulation(4, seed))
        assert isinstance(outcomes, SimulatedOutcomes)
        assert len(outcomes.kinds) == 4 * study.subjects
        design = predict_accuracy(
            outcomes,
            study.model.targets,
            study.subjects,
            repetitions=4,
            generator=np.random.default_rng(seed),
        )
        limit = math.sqrt(float(np.mean(np.square(design.asymptotic))))
        ratios.append(design.combined / limit)
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)
