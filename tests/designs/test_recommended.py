"""What is recommended is near the best one, and what is said about it is true."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.recommended import random_studies

import expost as xp
from expost.designs import Arrival, Design, Study, design_study
from expost.designs.strategies import strategies_for
from expost.designs.strategies.declared_plan import largest_of_plan
from expost.report._design_page import design_advice, design_reasons


@pytest.mark.parametrize("index", [1, 4, 6])
def test_the_recommended_strategy_is_near_the_best_one(index: int) -> None:
    study = list(random_studies(index + 1))[-1]
    first = design_study(study, repetitions=8, seed=1).recommended
    again = design_study(study, repetitions=30, seed=2)
    assert first is not None
    best = again.recommended
    assert best is not None
    same = next(
        prediction for prediction in again.predictions if prediction.strategy == first.strategy
    )
    assert same.possible
    assert same.error <= 1.05 * best.error + 2 * same.accuracy.simulation_error


@pytest.fixture(scope="module")
def small() -> Design:
    study = Study(
        xp.FiniteSet(range(6)), subjects=300, epsilon=1, goals=["value < 2", "value > 3"],
        arrival="open-ended", delta="1e-6",
    )  # fmt: skip
    return design_study(study, repetitions=8)


def test_only_what_the_study_can_carry_out_is_recommended(small: Design) -> None:
    best = small.recommended
    assert best is not None
    assert best.strategy.latest_arrival is Arrival.OPEN_ENDED
    errors = [prediction.error for prediction in small.predictions if prediction.possible]
    assert best.error == min(errors)
    assert all(
        not prediction.possible or prediction.error >= best.error
        for prediction in small.predictions
    )


def test_what_is_said_is_what_was_found(small: Design) -> None:
    best = small.recommended
    assert best is not None
    assert best.strategy.description in design_advice(small)[0]
    text = " ".join(design_reasons(small))
    better = [prediction for prediction in small.predictions if prediction.error < best.error]
    assert all(not prediction.possible for prediction in better)
    if better:
        assert "in advance" in text
    for prediction in small.alike:
        assert prediction.name.lower() in text.lower()
        assert prediction.is_tied_with(best)


def test_a_delta_allows_more_in_a_plan(small: Design) -> None:
    names = [prediction.name for prediction in small.predictions]
    assert "declared plan with a delta, all" in names
    prediction = largest_of_plan(Fraction(1), Fraction("1e-6"), 40)
    assert prediction > Fraction(1, 40)
    assert xp.filters.rules.Declared.most("1", "1e-6", prediction).plan[0][1] >= 40
    assert (
        xp.filters.rules.Declared.most("1", "1e-6", prediction + Fraction(1, 100)).plan[0][1] < 40
    )


def test_a_plan_with_a_delta_may_have_as_many_questions_as_one_without() -> None:
    goals = [f"value == {index}" for index in range(6)]
    options: dict[str, Any] = {"subjects": 300, "epsilon": 8, "goals": goals, "delta": "1e-6"}
    names = {strategy.name for strategy in strategies_for(Study(xp.FiniteSet(range(9)), **options))}
    for few in (3, 4):
        assert f"basic composition, {few} sampled questions" in names
        assert f"declared plan with a delta, {few} sampled questions" in names


def study_with(**changed: Any) -> Design:
    options: dict[str, Any] = {
        "subjects": 1000,
        "epsilon": 2,
        "goals": ["value >= 7", "value < 2"],
        **changed,
    }
    return design_study(Study(xp.FiniteSet(range(10)), **options), repetitions=8)


def test_a_weaker_guarantee_is_never_compared_without_a_word() -> None:
    # Half of the time anything may happen: nothing pure is as good.
    result = study_with(delta="0.5")
    best = result.recommended
    assert best is not None
    assert best.delta == Fraction(1, 2)
    pure = next(
        prediction
        for prediction in result.predictions
        if prediction.possible and not prediction.delta
    )
    text = list(design_reasons(result))
    assert "weaker guarantee" in text[0]
    assert pure.name in text[0]
    assert {prediction["delta"] for prediction in result.tree()["strategies"]} == {0.0, 0.5}


def test_of_two_that_are_as_good_the_one_with_the_stronger_guarantee_is_recommended() -> None:
    result = study_with(goals=["value >= 7"], delta="1e-9")
    best = result.recommended
    assert best is not None
    assert not best.delta
    assert any(prediction.delta for prediction in result.alike)
    assert "with a delta the guarantee is weaker" in " ".join(design_reasons(result))


def test_where_next_to_nothing_is_learned_it_is_said() -> None:
    text = list(design_reasons(study_with(epsilon="0.1")))
    assert "carry so little information" in text[0]
    # Errors do not fall with the root of the number of subjects there.
    assert not any("it would take" in reason for reason in text)
    assert any("it would take" in reason for reason in design_reasons(study_with()))


def test_means_are_relative_to_their_range_and_names_with_commas_are_told_apart() -> None:
    result = study_with(goals=[{"mean": "value"}])
    assert "The goal then has a standard error" in design_advice(result)[1]
    assert "relative to the range" in design_advice(result)[1]
    assert "relative" not in design_advice(study_with())[1]
    tied = study_with(epsilon=30)
    assert all(
        f"“{prediction.name}”" in " ".join(design_reasons(tied)) for prediction in tied.alike
    )


def test_a_saturating_question_at_a_high_budget_comes_near_the_truth() -> None:
    """At a large budget nothing is left but that subjects are a sample."""
    study = Study(xp.FiniteSet(range(3)), subjects=1000, epsilon=12, goals=["value < 1"])
    result = design_study(study, repetitions=8)
    assert result.recommended is not None
    assert result.recommended.error == pytest.approx(math.sqrt(2 / 9 / 1000), rel=0.05)


def test_goals_that_nothing_tells_apart_are_not_determined() -> None:
    study = Study(
        xp.FiniteSet(range(4)), subjects=100, epsilon=1,
        goals=["value < 2", {"distribution": "value"}], arrival="sequential",
    )  # fmt: skip
    result = design_study(study, repetitions=8)
    assert all(
        np.isfinite(prediction.error) or prediction.error == math.inf
        for prediction in result.predictions
    )
    once = next(
        prediction
        for prediction in result.predictions
        if prediction.name.startswith("full-value report")
    )
    assert math.isfinite(once.error)


@pytest.mark.parametrize("goals", [['value == "yes"'], ['value == "yes"', 'value == "no"']])
def test_of_two_values_the_value_is_asked_for_once_if_nobody_knows_what_will_come(
    goals: list[str],
) -> None:
    result = xp.design(
        xp.FiniteSet(["no", "yes"]), subjects=400, epsilon=1, goals=goals, arrival="open-ended"
    )
    assert result.recommended is not None
    assert result.recommended.name == "full-value report, randomized response"
    best = min(prediction.error for prediction in result.predictions)
    assert result.recommended.error == pytest.approx(best, rel=0.02)


def test_mechanisms_are_named_where_each_goal_has_one_query() -> None:
    person = xp.Attributes(age=["a", "b", "c", "d"], smokes=["no", "yes"], hours=range(21))
    goals = ['smokes == "yes"', {"distribution": "age"}, {"mean": "hours"}]
    assert xp.design(person, subjects=2000, epsilon=2, goals=goals, repetitions=8).mechanisms == (
        "perturbation at epsilon 2",
        "randomized_response at epsilon 2",
        "perturbation at epsilon 2",
    )
    two = ["value < 20", {"distribution": "value"}]
    sampled = xp.design(
        xp.FiniteSet(range(40)), subjects=9000, epsilon="1/2", goals=two, repetitions=8
    )
    assert sampled.mechanisms is not None
    assert sampled.mechanisms[1] == "hadamard_response of order 64 at epsilon 0.5"
    assert sampled.tree()["mechanisms"] == sampled.mechanisms


def test_mechanisms_are_not_named_where_queries_depend_on_answers(small: Design) -> None:
    assert small.recommended is not None
    assert small.recommended.strategy.family != "one sampled question"
    assert small.mechanisms is None
