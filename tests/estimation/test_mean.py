"""Means of scores: right on average by enumeration, and the formula of the paper put right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.coverage import mean_cells

import expost as xp
from expost.queries import Query

DOMAIN = xp.FiniteSet([0, 1, 2, 3])
SCORES = [-3.0, -1.0, 0.5, 5.0]
QUERIES: list[tuple[Query, list[float]]] = [
    (xp.perturbation(SCORES, range=(-3, 5), epsilon=1), SCORES),
    (xp.perturbation(SCORES, range=(-4, 9), epsilon="0.01"), SCORES),
    (xp.linear({"value": 2}, intercept=-1, epsilon="0.5"), [-1, 1, 3, 5]),
    (xp.linear({"value": 2}, range=(0, 5), clip=True, epsilon="0.5"), [0, 2, 4, 5]),
    (xp.queries.duchi({"value": 2}, range=(1, 6), epsilon=2), [1, 2, 4, 6]),
    (xp.logistic({"value": 1}, epsilon=3), [1 / (1 + math.exp(-x)) for x in range(4)]),
    (
        xp.probit({"value": 1}, epsilon=3),
        [(1 + math.erf(x / math.sqrt(2))) / 2 for x in range(4)],
    ),
    (xp.piecewise({"value": 2}, range=(-1, 6), grid="0.5", epsilon=1), [0, 2, 4, 6]),
    (xp.laplace({"value": 2}, range=(0, 6), grid="0.5", epsilon=6), [0, 2, 4, 6]),
    (xp.gaussian({"value": 2}, range=(0, 6), grid="0.5", sigma=2), [0, 2, 4, 6]),
]


@pytest.mark.parametrize(("query", "scores"), QUERIES, ids=lambda x: getattr(x, "kind", ""))
def test_a_response_is_right_on_average(query: Query, scores: list[float]) -> None:
    likelihood, meaning = query.on(DOMAIN), query.meaning(DOMAIN)
    for index, score in enumerate(scores):
        pmf = likelihood.pmf(index)
        average = sum(
            (
                pmf.probability(position) * Fraction(meaning.estimate(response))
                for position, response in enumerate(likelihood.responses)
            ),
            Fraction(0),
        )
        spread = float(meaning.range[1]) - float(meaning.range[0])
        # What is sampled has weights on a grid of 2^-40 or finer.
        assert abs(float(average) - score) < 2**-39 * spread / min(1, float(query.epsilon or 1))


@pytest.mark.parametrize(("query", "scores"), QUERIES, ids=lambda x: getattr(x, "kind", ""))
def test_the_variance_of_an_estimate_is_that_of_the_probabilities(
    query: Query, scores: list[float]
) -> None:
    likelihood, meaning = query.on(DOMAIN), query.meaning(DOMAIN)
    for index, score in enumerate(scores):
        pmf = likelihood.pmf(index)
        variance = sum(
            (
                pmf.probability(position)
                * (Fraction(meaning.estimate(response)) - Fraction(score)) ** 2
                for position, response in enumerate(likelihood.responses)
            ),
            Fraction(0),
        )
        assert meaning.variance(score) == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_mean_is_that_of_the_paper_with_its_factor_put_right(epsilon: str) -> None:
    a, b = 2, 5
    query = xp.perturbation([2, 5], range=(a, b), epsilon=epsilon)
    estimate = xp.estimation.estimate_mean([a] * 30 + [b] * 70, query, domain=xp.FiniteSet([0, 1]))
    e, share = math.exp(float(epsilon)), 0.7
    right = a + (b - a) * ((e + 1) * share - 1) / (e - 1)
    printed = a + b * ((e + 1) * share - 1) / (e - 1)
    assert estimate.mean == pytest.approx(right, rel=1e-9)
    assert abs(estimate.mean - printed) > 1
    spread = (b - a) * (e + 1) / (e - 1)
    # No less than the noise of scores that are possible: of a share of e / (e + 1) at most.
    noise = spread * math.sqrt(e / (e + 1) ** 2 / 100) if right > b else 0
    sample = spread * math.sqrt(0.21 / 99)
    assert estimate.standard_error == pytest.approx(max(sample, noise), rel=1e-9)


def test_the_estimate_and_its_variance_are_right_over_all_responses_of_a_group() -> None:
    query = xp.perturbation(SCORES, range=(-3, 5), epsilon=1)
    likelihood, group = query.on(DOMAIN), [0, 2, 3]
    mean = variance = expected_variance = 0.0
    truth = sum(SCORES[x] for x in group) / len(group)
    for positions in itertools.product(range(2), repeat=len(group)):
        chance = math.prod(
            float(likelihood.pmf(x).probability(y)) for x, y in zip(group, positions, strict=True)
        )
        responses = [likelihood.responses[y] for y in positions]
        estimate = xp.estimation.estimate_mean(responses, query, domain=DOMAIN)
        mean += chance * estimate.mean
        variance += chance * (estimate.mean - truth) ** 2
        expected_variance += chance * estimate.standard_error**2
    assert mean == pytest.approx(truth, abs=1e-9)
    # Of those drawn at random: the group's own scores are given, and so vary less.
    assert expected_variance > variance


def test_drawn_subjects_have_no_more_variance_than_is_reported_on_average() -> None:
    query = xp.perturbation(SCORES, range=(-3, 5), epsilon=1)
    likelihood, prior = query.on(DOMAIN), [0.1, 0.4, 0.3, 0.2]
    high = sum(p * float(likelihood.pmf(x).probability(1)) for x, p in enumerate(prior))
    chances = {0: 1 - high, 1: high}
    mean = square = reported = 0.0
    for positions in itertools.product(range(2), repeat=4):
        chance = math.prod(chances[y] for y in positions)
        responses = [likelihood.responses[y] for y in positions]
        estimate = xp.estimation.estimate_mean(responses, query, domain=DOMAIN)
        mean += chance * estimate.mean
        square += chance * estimate.mean**2
        reported += chance * estimate.standard_error**2
    assert mean == pytest.approx(sum(p * s for p, s in zip(prior, SCORES, strict=True)), abs=1e-9)
    assert square - mean**2 <= reported <= 1.3 * (square - mean**2)


def test_a_binomial_number_of_bits_has_the_exact_interval() -> None:
    query = xp.perturbation([0, 1], epsilon=500)  # as good as without noise
    estimate = xp.estimation.estimate_mean([0] * 6 + [1] * 4, query, domain=xp.FiniteSet([0, 1]))
    assert (estimate.lower, estimate.upper) == pytest.approx((0.1500, 0.7171), abs=1e-4)


@pytest.mark.parametrize(("query", "scores"), QUERIES, ids=lambda x: getattr(x, "kind", ""))
def test_one_subject_and_equal_responses_have_an_interval_within_the_range(
    query: Query, scores: list[float]
) -> None:
    low, high = map(float, query.meaning(DOMAIN).range)
    for response in [query.on(DOMAIN).responses[0], query.on(DOMAIN).responses[-1]]:
        alone = xp.estimation.estimate_mean([response], query, domain=DOMAIN)
        assert alone.standard_error == math.inf
        assert alone.subjects == 1
        assert low <= alone.lower < alone.upper <= high
        alike = xp.estimation.estimate_mean([response] * 50, query, domain=DOMAIN)
        # At the end of the range that the responses are at: the noise alone.
        end = min(high, max(low, alike.mean))
        noise = math.sqrt(query.meaning(DOMAIN).variance(end) / 50)
        assert alike.standard_error == pytest.approx(noise, rel=1e-9)
        assert low <= alike.lower < alike.upper <= high


def test_several_responses_of_a_subject_count_as_one_number() -> None:
    query = xp.perturbation([0, 1], epsilon=1)
    table = {
        "subject": ["a", "a", "b", "b", "b", "c"],
        "query": ["q", "q", "q", "q", "other", "q"],
        "response": [0, 1, 1, 1, 0, 0],
    }
    answers = xp.Answers(
        xp.FiniteSet([0, 1]), {"q": query, "other": xp.randomized_response(epsilon=1)}, table
    )
    estimate = xp.estimation.estimate_mean(answers, "q")
    low, high = (float(x) for x in map(query.meaning(answers.domain).estimate, (0, 1)))
    means = np.array([(low + high) / 2, high, low])
    assert estimate.mean == pytest.approx(means.mean())
    assert estimate.standard_error == pytest.approx(means.std(ddof=1) / math.sqrt(3))
    assert estimate.subjects == 3


def test_a_mean_on_a_box_needs_no_list_of_values() -> None:
    box = xp.Box(age=(10, 100))
    query = xp.laplace({"age": 1}, range=(0, 100), grid=1, epsilon=1)
    estimate = xp.estimation.estimate_mean([30, 40, 50, 60, 70], query, domain=box)
    assert estimate.mean == pytest.approx(50)
    # The noise has a deviation of 141, so nothing is excluded.
    assert (estimate.lower, estimate.upper) == (0, 100)
    exact = xp.laplace({"age": 1}, range=(0, 100), grid=1, epsilon=400)
    estimate = xp.estimation.estimate_mean([30, 40, 50, 60, 70], exact, domain=box)
    # The reach of Student's t with three degrees of freedom is 3.182 standard errors of 7.07.
    assert (estimate.lower, estimate.upper) == pytest.approx((27.5, 72.5), abs=1e-2)


@pytest.mark.parametrize("family", ["perturbation", "piecewise", "laplace"])
@pytest.mark.parametrize("epsilon", ["4", "8"])
def test_intervals_cover_values_that_are_spread_alike_or_at_an_end(
    family: str, epsilon: str
) -> None:
    """Of 200 groups; Student's interval covered 5 % for alike values at epsilon 8."""
    for share, width in mean_cells(family, epsilon, (5, 20), 200).values():
        assert share >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 200)
        assert 0 < width <= 3


def test_two_equal_responses_do_not_make_a_mean_certain() -> None:
    query = xp.laplace({"value": 2}, range=(0, 6), grid="0.5", epsilon=6)
    estimate = xp.estimation.estimate_mean([6, 6], query, domain=DOMAIN)
    assert (estimate.lower, estimate.upper) == (0, 6)
    assert estimate.standard_error >= 1 / 2**0.5


def test_responses_that_no_mean_fits_have_the_whole_range() -> None:
    query = xp.perturbation([0, 1], epsilon="0.1")
    estimate = xp.estimation.estimate_mean([1] * 190 + [0] * 10, query, domain=xp.FiniteSet([0, 1]))
    assert not estimate.consistent
    assert (estimate.lower, estimate.upper) == (0, 1)
    assert "no number in the range fits" in repr(estimate)
    assert estimate.tree()["consistent"] is False


ONE_BIT = xp.perturbation([0, 1], epsilon=1)
QUERIED = xp.Answers(
    xp.FiniteSet([0, 1]),
    {"q": ONE_BIT, "never": ONE_BIT},
    {"subject": [1], "query": ["q"], "response": [0]},
)


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        (([], ONE_BIT), {"domain": DOMAIN}, "answers: must not be empty"),
        (("01", ONE_BIT), {"domain": DOMAIN}, "answers: must be a list"),
        (
            ([0], ONE_BIT),
            {},
            "domain: must be a FiniteSet, Attributes or a Box, for pairs do not say",
        ),
        (([0], "q"), {"domain": DOMAIN}, "query: must be a query"),
        (([0, 7], ONE_BIT), {"domain": xp.FiniteSet([0, 1])}, "row 2: response: 7 is not a resp"),
        ((QUERIED, ONE_BIT), {}, "query: must be the id of a query of the answers"),
        ((QUERIED, "x"), {}, "query: unknown query"),
        ((QUERIED, "never"), {}, "query: no subject answered it"),
        ((QUERIED, "q"), {"domain": DOMAIN}, "domain: differs from that of the answers"),
        ((QUERIED, "q"), {"confidence": 95}, "confidence: must be between 0 and 1"),
        (
            ([0], xp.perturbation([0, 1], epsilon="1e-200")),
            {"domain": xp.FiniteSet([0, 1])},
            "query: its estimates are too large for doubles",
        ),
        (
            ([0], xp.randomized_response(epsilon=1)),
            {"domain": DOMAIN},
            "query: randomized_response is not about a score",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: tuple[Any, ...], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.estimation.estimate_mean(*arguments, **options)
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)


def test_two_equal_responses_have_an_error() -> None:
    query = xp.perturbation([0, 1], range=(0, 1), epsilon=8)
    errors = [
        xp.estimation.estimate_mean([1] * n, query, domain=xp.FiniteSet([0, 1])).standard_error
        for n in (2, 10, 100)
    ]
    assert 0.33 < errors[0] < 0.34
    assert errors[0] > errors[1] > errors[2] > 0.009
