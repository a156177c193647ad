"""Survey weights: subjects count in proportion, and all together as Kish's effective size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimation import estimate_distribution
from expost.estimation._weights import read_weights

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERY = xp.randomized_response(epsilon=1)
TRUTH = float(np.exp(1) / (np.exp(1) + 1))


def answers_of(said: Any) -> xp.Answers:
    table = {
        "subject": range(len(said)),
        "query": ["q"] * len(said),
        "response": np.where(said, "yes", "no"),
    }
    return xp.Answers(DOMAIN, {"q": QUERY}, table)


def test_weights_sum_to_the_effective_sample_size() -> None:
    generator = np.random.default_rng(1)
    numbers = generator.uniform(0.2, 5, 40)
    scaled = read_weights(answers_of(generator.random(40) < 0.4), dict(enumerate(numbers)))
    assert scaled.sum() == pytest.approx(numbers.sum() ** 2 / (numbers**2).sum())
    assert scaled / scaled[0] == pytest.approx(numbers / numbers[0])
    huge = read_weights(answers_of([True, False]), {0: 1e308, 1: 1e308})
    assert huge.tolist() == [1, 1]


def test_equal_weights_change_nothing() -> None:
    answers = answers_of(np.arange(50) % 3 == 0)
    plain, equal = (
        estimate_distribution(answers, weights=weights).intervals().columns()
        for weights in (None, dict.fromkeys(range(50), 0.3))
    )
    for name, column in plain.items():
        np.testing.assert_array_equal(equal[name], column)


def test_whole_weights_with_their_effective_size_are_repeated_subjects() -> None:
    """With weights 1 and 2, the estimate is that of a table with some subjects twice."""
    said = np.arange(1000) % 9 < 4
    weights = 1 + (np.arange(1000) % 5 == 0)
    weighted = estimate_distribution(answers_of(said), weights=dict(enumerate(weights)))
    repeated = estimate_distribution(answers_of(np.repeat(said, weights)))
    assert weighted.probabilities == pytest.approx(repeated.probabilities, abs=1e-5)
    # By hand: the weighted share of yes, without the noise.
    share = (weights @ said) / weights.sum()
    expected = (share - (1 - TRUTH)) / (2 * TRUTH - 1)
    assert weighted.probabilities[1] == pytest.approx(expected, abs=1e-5)
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert weighted.effective_sample_size == pytest.approx(effective)
    assert f"effective sample size: {effective:.0f}\n" in repr(weighted)
    assert "effective" not in repr(repeated)
    ratio = weighted.intervals().standard_error[1] / repeated.intervals().standard_error[1]
    assert ratio == pytest.approx(np.sqrt(weights.sum() / effective), rel=0.03)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({0: 1}, "weights: subject 1 has none"),
        ({0: 1, 1: 0}, "weights: got 0; expected a number above 0"),
        ({0: 1, 1: -2}, "weights: got -2; expected a number above 0"),
        ({0: 1, 1: "2"}, "weights: must be a number"),
        ({0: 1, 1: float("nan")}, "weights: must be a finite number"),
        ([1, 1], "weights: must be weights by the names of the subjects, not list"),
    ],
)
def test_bad_weights_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        estimate_distribution(answers_of([True, False]), weights=weights)


def test_weights_and_hidden_answers_exclude_each_other() -> None:
    with pytest.raises(xp.InvalidInput, match="weights: cannot be combined with attempts"):
        estimate_distribution(answers_of([True, False]), weights={0: 1, 1: 1}, attempts={})


def test_weighted_intervals_cover_the_population() -> None:
    """Two strata in the wrong proportion: only weights make the estimate right.

    A third of the sample is from the stratum that is 70 % of the population.
    """
    generator, repetitions, covered, unweighted = np.random.default_rng(5), 150, 0, 0
    is_first = np.arange(300) < 100
    weights = dict(enumerate(np.where(is_first, 0.7 / 100, 0.3 / 200)))
    population = 0.7 * 0.2 + 0.3 * 0.8
    for _ in range(repetitions):
        yes = generator.random(300) < np.where(is_first, 0.2, 0.8)
        answers = answers_of(yes ^ (generator.random(300) > TRUTH))
        for is_weighted in (True, False):
            found = estimate_distribution(answers, weights=weights if is_weighted else None)
            ends = found.intervals([0, 1])
            hit = bool(ends.lower[0] <= population <= ends.upper[0])
            covered, unweighted = (
                covered + (hit and is_weighted),
                unweighted + (hit and not is_weighted),
            )
    assert covered >= 0.91 * repetitions  # 95 % less two standard errors
    assert unweighted < 0.9 * repetitions
