"""Distributions on a box: mixtures of points, and what other points would change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimation import beyond_support, estimate_distribution, point_scores
from expost.knowledge import Samples

PERSON = xp.Box(age=(0, 100), sex=xp.integers(0, 1), diet=xp.categories("any", "vegan"))
AGE = xp.linear({"age": 1}, range=(0, 100), epsilon=2)
ILL = xp.logistic({"age": 0.1, "sex": 0.5}, intercept=-5, epsilon=2)


def study(subjects: int, seed: int) -> tuple[xp.Answers, float]:
    draw = np.random.default_rng(seed)
    age = np.where(draw.random(subjects) < 0.5, 30.0, 75.0)
    risk = 1 / (1 + np.exp(5 - 0.1 * age))

    def bit(share: Any) -> Any:
        return draw.random(subjects) < (1 + share * (np.e**2 - 1)) / (np.e**2 + 1)

    rows = {
        "subject": [*range(subjects)] * 2,
        "query": ["age"] * subjects + ["ill"] * subjects,
        "response": [*np.where(bit(age / 100), 100, 0), *bit(risk).astype(int)],
    }
    return xp.Answers(PERSON, {"age": AGE, "ill": ILL}, rows), float(age.mean())


ANSWERS, TRUE = study(2_000, 1)
SUPPORT = Samples.uniform(PERSON, 60, seed=3)


def heights(answers: xp.Answers, points: Any) -> Any:
    """The likelihood of each subject at each point, from the formulas."""
    rows = np.ones((len(answers), len(points)))
    for index, (age, sex, _diet) in enumerate(points):
        shares = {"age": age / 100, "ill": 1 / (1 + np.exp(5 - 0.1 * age - 0.5 * sex))}
        high = {key: (1 + share * (np.e**2 - 1)) / (np.e**2 + 1) for key, share in shares.items()}
        said = {code: (key, position) for code, (key, position) in enumerate(answers.responses)}
        chances = np.array([high[k] if p else 1 - high[k] for k, p in said.values()])
        rows[:, index] = np.multiply.reduceat(chances[answers.codes], answers.starts[:-1])
    return rows


def test_it_is_the_likeliest_mixture_of_the_points() -> None:
    estimate = estimate_distribution(ANSWERS, support=SUPPORT)
    assert estimate.gap <= 1e-6
    table = heights(ANSWERS, SUPPORT.points)
    slopes = (table / (table @ estimate.probabilities)[:, None]).sum(axis=0)
    assert slopes.max() <= len(ANSWERS) * (1 + 1e-6)
    scores = point_scores(AGE, SUPPORT)
    assert scores == pytest.approx([point[0] for point in SUPPORT.points], abs=1e-6)
    ends = estimate.intervals(scores)
    assert ends.lower[0] < TRUE < ends.upper[0]
    assert "model: 60 points" in repr(estimate)
    assert list(estimate.columns())[:3] == ["age", "sex", "diet"]


def test_rows_do_as_well_as_samples() -> None:
    rows = [dict(zip(PERSON.names or (), point, strict=True)) for point in SUPPORT.points]
    estimate, again = (estimate_distribution(ANSWERS, support=s) for s in (SUPPORT, rows))
    assert estimate.probabilities.tolist() == again.probabilities.tolist()


def test_what_other_points_add_is_bounded_and_shown() -> None:
    poor = Samples(PERSON, [[40, 0, "any"], [60, 1, "any"]])
    estimate = estimate_distribution(ANSWERS, support=poor)
    other = Samples.uniform(PERSON, 80, seed=9)
    beyond = beyond_support(ANSWERS, estimate, other)
    table = heights(ANSWERS, [*poor.points, *other.points])
    low = np.log(table[:, :2] @ estimate.probabilities).sum()
    high = np.log(table @ beyond.wider.probabilities).sum()
    assert 1 < high - low <= beyond.gain
    slopes = (table / (table[:, :2] @ estimate.probabilities)[:, None]).mean(axis=0)
    assert beyond.gain == pytest.approx(len(ANSWERS) * np.log(slopes.max()), rel=1e-6)
    assert beyond.point == other.points[int(np.argmax(slopes[2:]))]
    assert beyond_support(ANSWERS, beyond.wider, Samples.uniform(PERSON, 9, seed=4)).gain < 5


def test_uniform_samples_are_in_the_box_and_the_same_for_a_seed() -> None:
    first, again = (Samples.uniform(PERSON, 50, seed=2) for _ in range(2))
    assert first.points == again.points
    assert first.points != Samples.uniform(PERSON, 50, seed=3).points
    assert {point[2] for point in first.points} == {"any", "vegan"}
    assert all(PERSON.locate(point) is not None for point in first.points)


def test_bad_input_is_one_line() -> None:
    pairs = [(xp.randomized_response(epsilon=1), 0)]
    estimate = estimate_distribution(ANSWERS, support=SUPPORT)
    flat = estimate_distribution(pairs, domain=xp.FiniteSet([0, 1]))
    for act, message in [
        (
            lambda: estimate_distribution(ANSWERS),
            "domain: got a box, whose values cannot be listed",
        ),
        (
            lambda: estimate_distribution(pairs, domain=xp.FiniteSet([0, 1]), support=[[0], [1]]),
            "support: only for a distribution on a box",
        ),
        (
            lambda: estimate_distribution(ANSWERS, support=[[1, 0, "any"], [1, 0, "fish"]]),
            "support.rows[1]: is not a point of the box",
        ),
        (
            lambda: estimate_distribution(ANSWERS, support=Samples(xp.Box(a=(0, 1)), [[0], [1]])),
            "support: its box differs from that of the answers",
        ),
        (
            lambda: beyond_support(ANSWERS, flat, SUPPORT),
            "estimate: must be an estimate on a support",
        ),
        (
            lambda: beyond_support(ANSWERS, estimate, Samples.uniform(PERSON, 1_500, seed=1)),
            "domain: got 1,560 values; expected at most 1,500",
        ),
    ]:
        with pytest.raises(xp.InvalidInput) as raised:
            act()  # type: ignore[no-untyped-call]
        assert str(raised.value).startswith(message), raised.value
