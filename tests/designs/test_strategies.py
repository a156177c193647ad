"""Every study design is one channel within the budget, and its table is a channel."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.designs import Arrival, Study
from expost.designs._accuracy import ExactOutcomes, SimulatedOutcomes, predict_accuracy
from expost.designs._reports import FrequencyOutcomes, Mechanism, Report, SubsetOutcomes
from expost.designs.strategies import (
    FixedEpsilon,
    OpenSplit,
    SaturatingCaps,
    Simulation,
    Strategy,
    _saturating_states,
    reasons_against,
    strategies_for,
)
from expost.saturation import equal_caps, geometric_caps
from support.random_cases import columns

GOALS = ["value < 2", "value == 1 or value > 4", "value == 3 or value == 0"]
STUDIES = {
    "sequential": Study(xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS),
    "rounds": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="up front",
        rounds=4,
    ),
    "open-ended": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5", goals=GOALS, arrival="open-ended",
    ),
    "shares and means": Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon="1.5",
        goals=[{"distribution": "value"}, {"mean": "value"}, "value < 3"],
    ),
}  # fmt: skip
CASES = [
    pytest.param(study, strategy, id=f"{name}: {strategy.name}")
    for name, study in STUDIES.items()
    for strategy in strategies_for(study)
]


@pytest.mark.parametrize(("study", "strategy"), CASES)
def test_whatever_a_subject_shows_is_within_the_budget(study: Study, strategy: Strategy) -> None:
    outcomes = strategy.outcomes(study.model, study.epsilon, Simulation(8, 1))
    assert outcomes.weights.sum() == pytest.approx(1)
    assert all(0 <= share <= 1 for share in outcomes.answering)
    assert strategy.description
    if isinstance(outcomes, SubsetOutcomes):
        assert outcomes.ratio == pytest.approx(math.exp(1.5))
        return
    if isinstance(outcomes, FrequencyOutcomes):  # a bit of each value, true or not
        true, other = outcomes.report.true, outcomes.report.other
        assert true * (1 - other) / (other * (1 - true)) == pytest.approx(math.exp(1.5))
        return
    assert isinstance(outcomes, ExactOutcomes | SimulatedOutcomes)
    if isinstance(outcomes, ExactOutcomes):
        assert np.allclose(outcomes.table.sum(axis=0), 1, atol=1e-9)
    spread = outcomes.table.max(axis=1) / outcomes.table.min(axis=1)
    assert spread.max() <= math.exp(1.5) * (1 + 1e-9)
    assert spread.max() > 1.05
    # The mean of a subject's scores is one at every cell.
    assert np.allclose(outcomes.information @ outcomes.weights, 1, atol=0.15)


def test_questions_that_come_when_nothing_is_left_are_not_asked() -> None:
    goals = [f"value < {1 + index % 3}" for index in range(100)]
    study = Study(
        xp.FiniteSet(range(4)), subjects=100, epsilon=2, goals=goals, arrival="open-ended"
    )
    shown = SaturatingCaps(None, 100).outcomes(study.model, study.epsilon, Simulation(8, 0))
    # 2 · (2/3)^35 is above 2^-20, and 2 · (2/3)^36 is not.
    assert shown.answers == 35
    assert shown.answering == (1.0,) * 35 + (0.0,) * 65


def test_answers_are_counted() -> None:
    study = STUDIES["sequential"]
    for strategy in strategies_for(study):
        outcomes = strategy.outcomes(study.model, Fraction(3, 2), Simulation(8, 1))
        if len(outcomes.answering) == 3:
            assert outcomes.answers == pytest.approx(sum(outcomes.answering), rel=0.01)


@pytest.mark.parametrize(("size", "epsilon"), [(3, "0.5"), (6, "1.5"), (9, "4")])
@pytest.mark.parametrize("sampled", [3, None])
def test_saturating_states_are_those_of_every_transcript(
    size: int, epsilon: str, sampled: int | None
) -> None:
    """By going through all sequences of answers, with the queries that odometers get."""
    domain = xp.FiniteSet(range(size))
    halves = [[0, 1], [size - 1], [value for value in range(size) if value % 2]]
    goals = [{"share": half} for half in halves]
    study = Study(domain, subjects=100, epsilon=epsilon, goals=goals)
    caps = equal_caps(epsilon, questions=3) if sampled else islice(geometric_caps(epsilon), 3)
    start = xp.Odometer(xp.Transcript(domain))
    paths = [(start, np.ones(size))]
    for half, cap in zip(halves, caps, strict=True):
        paths = [
            (odometer.add(query, response), chances * np.array(column, dtype=np.float64))
            for odometer, chances in paths
            for query in [xp.saturating(odometer, half, cap=cap)]
            for response, column in zip(
                query.on(domain).responses, columns(query, domain), strict=True
            )
        ]
    by_set: dict[bytes, np.ndarray[Any, Any]] = {}
    for _, chances in paths:
        key = (chances > chances.min() * 1.001).tobytes()
        by_set[key] = by_set.get(key, 0) + chances
    shown = SaturatingCaps(sampled, 3).outcomes(study.model, study.epsilon, Simulation(8, 0))
    assert isinstance(shown, ExactOutcomes)
    expected = np.array(sorted(chances.round(9).tolist() for chances in by_set.values()))
    table = np.array(sorted(shown.table[:, shown.cells].round(9).tolist()))
    assert np.allclose(table, expected, atol=1e-8)


def test_values_that_no_question_tells_apart_are_simulated_as_one() -> None:
    """Twenty values in six combinations: the same answers as of six values."""
    of = np.arange(20) % 6
    halves = [[0, 1], [1, 4, 5], [3, 0]]
    large, small = (
        Study(
            xp.FiniteSet(range(len(combination_of))),
            subjects=300,
            epsilon="1.5",
            goals=[
                {"share": np.flatnonzero(np.isin(combination_of, half)).tolist()} for half in halves
            ],
            population={
                "probabilities": (1 / np.bincount(combination_of)[combination_of] / 6).tolist()
            },
        )
        for combination_of in (of, np.arange(6))
    )
    large_model, small_model = large.model, small.model
    assert len(large_model.combined.support) == len(np.unique(large_model.cells))
    for part, rounds in ((Fraction(1, 6), 5), (Fraction(1, 2), 1)):
        strategy = FixedEpsilon(part, rounds, Arrival.UP_FRONT)
        simulated, other = (
            strategy.outcomes(model, Fraction(3, 2), Simulation(8, 3))
            for model in (large_model, small_model.combined)
        )
        assert isinstance(simulated, SimulatedOutcomes)
        assert isinstance(other, SimulatedOutcomes)
        assert (simulated.cells == other.cells[large_model.cells]).all()
        assert np.allclose(simulated.information, other.information)
        assert simulated.answering == other.answering


def test_simulated_tallies_are_what_subjects_answered() -> None:
    study = STUDIES["rounds"]
    strategy = FixedEpsilon(Fraction(1, 6), 4, Arrival.UP_FRONT)
    shown = strategy.outcomes(study.model, study.epsilon, Simulation(8, 1))
    assert isinstance(shown, SimulatedOutcomes)
    # Everybody has room for six answers of a sixth of the budget, whatever was answered.
    assert 6 <= shown.answers <= 12
    assert shown.answering[0] == 1
    assert len(shown.kinds) >= 8 * 300
    spread = np.log(shown.table.max(axis=1) / shown.table.min(axis=1))
    steps = spread / 0.25
    assert np.allclose(steps, steps.round(), atol=1e-6)
    assert steps.max().round() == 6


def oracle_variance(true: float, other: float, share: float, subjects: int) -> float:
    """The variance of a frequency oracle's estimate of a share, with sampled subjects.

    Wang et al. (2017, theorem 2) have it for shares that are fixed; sampling adds to it.
    """
    fixed = other * (1 - other) / (true - other) ** 2
    fixed += share * (1 - true - other) / (true - other)
    return (fixed + share * (1 - share)) / subjects


@pytest.mark.parametrize("size", [50, 400])
@pytest.mark.parametrize("epsilon", [0.5, 2, 6])
def test_reports_have_the_known_variances_of_frequency_oracles(size: int, epsilon: float) -> None:
    shares = np.arange(1, size + 1) / (size * (size + 1) / 2)
    ratio, weights = math.exp(epsilon), shares / shares.sum()
    subset = max(1, round(size / (ratio + 1)))
    true = subset * ratio / (subset * ratio + size - subset)
    known = {
        Mechanism.RANDOMIZED_RESPONSE: (ratio / (ratio + size - 1), 1 / (ratio + size - 1)),
        Mechanism.SUBSET_SELECTION: (true, (subset - true) / (size - 1)),
        Mechanism.UNARY_ENCODING: (0.5, 1 / (ratio + 1)),
    }
    one_value = np.eye(size)[[0, size // 2, size - 1]]
    for mechanism, (true, other) in known.items():
        report = Report.of(mechanism, size, Fraction(epsilon))
        outcomes = FrequencyOutcomes(np.arange(size), weights, (1.0,), 1.0, report)
        variances = outcomes.limit_variances(one_value) / 1000
        expected = [
            oracle_variance(true, other, weights[v], 1000) for v in (0, size // 2, size - 1)
        ]
        assert np.allclose(variances, expected)
        # The simulation draws unbiased frequencies with these variances.
        drawn = outcomes.errors(one_value, 1000, 40, np.random.default_rng(1))
        squares = np.mean([limit_errors**2 for _, limit_errors in drawn], axis=0)
        assert np.allclose(squares / variances, 1, atol=0.3)


@pytest.mark.parametrize("mechanism", [Mechanism.RANDOMIZED_RESPONSE, Mechanism.SUBSET_SELECTION])
def test_shares_of_many_values_have_the_variance_of_every_response(mechanism: Mechanism) -> None:
    """By listing all responses, which are few here."""
    report = Report.of(mechanism, 7, Fraction(1, 2))
    weights = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])
    supports = report.table > report.table.mean(axis=1, keepdims=True)
    rows = np.array([[1, 1, 0, 0, 0, 1, 0], [0.0, 1, 2, 3, 4, 5, 6]])
    chances = report.table @ weights
    estimates = rows @ ((supports - report.other) / report.gap).T
    assert np.allclose(estimates @ chances, rows @ weights)
    expected = estimates**2 @ chances - (estimates @ chances) ** 2
    outcomes = FrequencyOutcomes(np.arange(7), weights, (1.0,), 1.0, report)
    assert np.allclose(outcomes.limit_variances(rows), expected)


def test_reports_of_many_values_are_as_accurate_as_by_likelihood() -> None:
    """Where a likelihood can be afforded, it is better than frequencies by some 10 %."""
    study = Study(xp.FiniteSet(range(60)), subjects=3000, epsilon=3, goals=["value < 20"])
    for mechanism in (Mechanism.RANDOMIZED_RESPONSE, Mechanism.SUBSET_SELECTION):
        report = Report.of(mechanism, 60, Fraction(3))
        by_likelihood = report.outcomes(np.arange(60), study.model.weights, 3000)
        by_frequencies = FrequencyOutcomes(np.arange(60), study.model.weights, (1.0,), 1.0, report)
        assert by_likelihood.method != "frequencies"
        likelihood, frequencies = (
            predict_accuracy(
                outcomes, study.model.targets, 3000,
                repetitions=40, generator=np.random.default_rng(2),
            )
            for outcomes in (by_likelihood, by_frequencies)
        )  # fmt: skip
        noise = math.hypot(likelihood.simulation_error, frequencies.simulation_error)
        assert noise < 0.15 * likelihood.combined
        assert -2 * noise < frequencies.combined - likelihood.combined
        assert frequencies.combined < 1.15 * likelihood.combined + 2 * noise


def test_randomized_response_is_recommended_for_many_values_at_a_large_budget() -> None:
    design = xp.design(
        xp.FiniteSet(range(400)), subjects=2000, epsilon=6, goals=[{"distribution": "value"}],
        arrival="open-ended",
    )  # fmt: skip
    best = design.recommended
    assert best is not None
    assert best.name == "full-value report, randomized response"
    true = math.exp(6) / (math.exp(6) + 399)
    limit = math.sqrt(oracle_variance(true, (1 - true) / 399, 1 / 400, 2000))
    assert best.accuracy.asymptotic[0] == pytest.approx(limit)
    assert best.error <= limit


@pytest.mark.parametrize("arrival", ["sequential", "open-ended"])
@pytest.mark.parametrize("kind", ["statements", "mean", "distribution", "one"])
def test_every_family_is_predicted_or_has_a_reason(arrival: str, kind: str) -> None:
    goals: list[Any] = GOALS[:1] if kind == "one" else list(GOALS)
    if kind in ("mean", "distribution"):
        goals.append({kind: "value"})
    study = Study(xp.FiniteSet(range(6)), subjects=300, epsilon=1, goals=goals, arrival=arrival)
    families = {strategy.family for strategy in strategies_for(study)}
    reasons = reasons_against(study)
    assert not families & set(reasons)
    for family in ("the Bayesian filter", "saturating queries", "a budget with a delta"):
        assert (family in families) != (family in reasons)
    names = {strategy.name for strategy in strategies_for(study)}
    assert ("joint report" in names) != ("joint report" in reasons)
    if kind in ("mean", "distribution"):
        assert "mean or a distribution" in reasons["saturating queries"]
    for mechanism in Mechanism:
        name = f"full-value report, {mechanism.value}"
        assert (name in names) != (name in reasons)


def test_an_open_ended_study_can_split_its_budget() -> None:
    def outcomes(share: Fraction | None) -> ExactOutcomes:
        shown = OpenSplit(share).outcomes(study.model, study.epsilon, Simulation(8, 0))
        assert isinstance(shown, ExactOutcomes)
        return shown

    study = STUDIES["open-ended"]
    quarter, third = outcomes(Fraction(1, 4)), outcomes(None)
    spreads = [shown.table.max(axis=1) / shown.table.min(axis=1) for shown in (quarter, third)]
    # Three questions have spent three quarters, or all but (2/3)^3, of the budget of 1.5.
    assert spreads[0].max() == pytest.approx(math.exp(1.5 * 3 / 4))
    assert spreads[1].max() <= math.exp(1.5 * 19 / 27) * (1 + 1e-9)
    many = Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon=1, goals=[*GOALS, "value < 3", "value < 4"],
        arrival="open-ended",
    )  # fmt: skip
    assert OpenSplit(Fraction(1, 4)).reason_against(many.model, many.epsilon) is not None
    assert OpenSplit(Fraction(1, 8)).reason_against(many.model, many.epsilon) is None


def test_states_that_are_simulated_are_those_that_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = STUDIES["sequential"]
    strategy, budget = SaturatingCaps(3, 3), Fraction(3, 2)
    listed = strategy.outcomes(study.model, budget, Simulation(100, 1))
    monkeypatch.setattr(_saturating_states, "_MOST_STATES", 2)
    simulated = strategy.outcomes(study.model, budget, Simulation(100, 1))
    assert isinstance(listed, ExactOutcomes)
    assert isinstance(simulated, SimulatedOutcomes)
    assert (listed.method, simulated.method) == ("exact", "simulated")
    rows = {tuple((row > row.mean()).tolist()): row for row in listed.table[:, listed.cells]}
    size = len(simulated.kinds)
    for index, row in enumerate(simulated.table[:, simulated.cells]):
        expected = float(rows[tuple((row > row.mean()).tolist())] @ study.model.weights)
        observed = float((simulated.kinds == index).mean())
        assert abs(observed - expected) < 5 * math.sqrt(expected * (1 - expected) / size)


@pytest.mark.parametrize(
    ("size", "goals", "limit"),
    [
        (30, 100, 10.0),
        (2000, 3, 10.0),
    ],
)
def test_many_goals_or_values_take_seconds(size: int, goals: int, limit: float) -> None:
    generator = np.random.default_rng(0)
    halves = [
        {"share": generator.choice(size, size // 2, replace=False).tolist()} for _ in range(goals)
    ]
    start = time.process_time()
    design = xp.design(
        xp.FiniteSet(range(size)), subjects=500, epsilon=2, goals=halves, repetitions=8
    )
    assert time.process_time() - start < limit
    assert design.recommended is not None
    assert {prediction.method for prediction in design.predictions} == {
        "exact", "simulated", "frequencies",
    }  # fmt: skip
