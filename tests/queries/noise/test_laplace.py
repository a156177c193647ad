"""Laplace noise on a grid: exact probabilities, terms that are wide enough, and limits."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.queries import NoisyInteger
from expost.terms import Term
from support import oracles

BOX = xp.Box(age=(0, 100), share=(-1, 1))
QUERY = xp.laplace({"age": 1, "share": 10}, intercept=10, range=(0, 120), grid=2, epsilon="1.5")


def test_probabilities_fall_by_the_same_factor_from_step_to_step() -> None:
    likelihood = QUERY.on(BOX)
    assert len(likelihood.responses) > 2 * 45 * 60 / 1.5
    pmf = likelihood.pmf((31.2, 0.1))  # a score of 42.2, on step 21
    at = {k: pmf.probability(likelihood.responses.index(k)) for k in range(10, 33)}
    assert max(at, key=at.__getitem__) == 21
    ratios = {at[k] / at[k + 1] for k in range(21, 32)} | {at[k + 1] / at[k] for k in range(10, 21)}
    assert len(ratios) == 1
    with mpmath.workdps(30):
        (ratio,) = ratios
        step = oracles.log(ratio)
        exact = mpmath.mpf("1.5") / 60
        assert exact * (1 - mpmath.mpf(2) ** -39) < step <= exact


def test_probabilities_add_up_to_one() -> None:
    query = xp.laplace([1], range=(0, 2), grid=1, epsilon=40)
    likelihood = query.on(xp.Box([(0, 2)]))
    for x in (0.0, 0.7, 2.0):
        pmf = likelihood.pmf((x,))
        assert sum(pmf.probability(i) for i in range(len(likelihood.responses))) == 1


def test_a_session_draws_what_the_pmf_says() -> None:
    """Both halves of 4,000 draws at a third of the way: a false alarm in one run of 10^9."""
    query = xp.laplace([1], range=(0, 4), grid=1, epsilon=4)
    likelihood = query.on(xp.Box([(0, 4)]))
    pmf = likelihood.pmf((1.0,))
    assert isinstance(pmf, NoisyInteger)
    source = xp.sampling.InsecureSource(5)
    draws = [likelihood.responses[pmf.pick(source.below(pmf.total))] for _ in range(4000)]
    for k in (-1, 0, 1, 2, 3):
        p = float(pmf.probability(likelihood.responses.index(k)))
        assert abs(draws.count(k) - 4000 * p) < 6.2 * (4000 * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_terms_are_within_their_errors_of_what_is_sampled(epsilon: str) -> None:
    generator = random.Random(1)
    box = xp.Box([(-1, 1), (-1, 1)])
    likelihood = xp.laplace([2, 1.5], range=(-4, 4), grid="0.5", epsilon=epsilon).on(box)
    with mpmath.workdps(40):
        for k in (-30, -8, -3, 0, 5, 8, 11):
            position = likelihood.position(k)
            assert position is not None
            term = likelihood.term(position)
            assert term.error < float(epsilon) * 0.04
            gaps = []
            for _ in range(60):
                point = generator.uniform(-1, 1), generator.uniform(-1, 1)
                z = oracles.affine(term.weights, term.offset, point)
                sampled = oracles.log(likelihood.pmf(point).probability(position))
                gaps.append(sampled + abs(mpmath.mpf(z.numerator) / z.denominator))
            assert max(gaps) - min(gaps) <= 2 * mpmath.mpf(term.error)


def test_weights_at_many_points_are_those_of_the_pmf() -> None:
    likelihood = QUERY.on(BOX)
    points = [(0.0, -1.0), (50.0, 0.3), (100.0, 1.0)]
    position = likelihood.position(30)
    assert position is not None
    weights = likelihood.weights(
        position, [np.array(column) for column in zip(*points, strict=True)]
    )
    for point, weight in zip(points, weights.tolist(), strict=True):
        pmf = likelihood.pmf(point)
        assert Fraction(weight, pmf.total) == pmf.probability(position)


def test_it_charges_its_epsilon_and_half_of_it_at_least() -> None:
    box = xp.Box([(0, 1)])
    query = xp.laplace([1], range=(0, 1), grid="0.001", epsilon=1)
    worst = xp.loss.worst_case_loss(query, box)
    assert 0.997 < worst.lower <= worst.upper <= 1
    share = xp.loss.share_of_basic(query, box)
    assert 0.49 < share.lower <= share.upper < 0.51


def test_a_filter_looks_at_both_ends_only_and_accepts_more_than_sums_do() -> None:
    box = xp.Box([(0, 1)])
    query = xp.laplace([1], range=(0, 1), grid="0.01", epsilon="0.5")
    session = xp.Session(
        box, [0.4], filter=xp.BayesianFilter(epsilon=2), source=xp.sampling.InsecureSource(2)
    )
    answered = 0
    while answered < 12 and session.decide(query).accepted:
        session.ask(query)
        answered += 1
    assert answered > 4
    assert session.loss.upper <= 2


def test_on_a_finite_set_it_is_exact() -> None:
    domain = xp.FiniteSet([0, 1, 2, 5])
    query = xp.laplace({"value": 1}, range=(0, 5), grid=1, epsilon=1)
    likelihood = query.on(domain)
    assert likelihood.epsilon <= xp.numbers.Nats(Fraction(1))
    loss = xp.realized_loss(xp.Transcript(domain).add(query, 7))
    assert 1 - 1e-11 < loss.upper <= 1
    assert xp.realized_loss(xp.Transcript(domain).add(query, 2)).upper < 0.61


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 0}, "grid: must be greater than 0"),
        ({"grid": 7}, "grid: the end 120 of the range is not on the grid"),
        ({"range": (0, 100)}, "range: the score reaches 120 at age=100, share=1, 20 above"),
        ({"range": (5, 1)}, "range: must be two ends"),
        ({"grid": "0.001"}, "grid: is too fine for this epsilon; use at least 111 times as much"),
        ({"epsilon": 0}, "epsilon: must be greater than 0"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    options = {"intercept": 10, "range": (0, 120), "grid": 1, "epsilon": 1, **arguments}
    with pytest.raises(xp.InvalidInput, match=message):
        xp.laplace({"age": 1, "share": 10}, **options).on(BOX)


def test_what_is_no_response_is_refused() -> None:
    for response in (0.5, "x", 10**9, None):
        with pytest.raises(xp.InvalidInput, match="response"):
            xp.Transcript(BOX).add(QUERY, response)


def test_responses_are_integers_that_a_double_can_hold() -> None:
    box = xp.Box([(1e15, 1e15 + 1)])
    query = xp.laplace([1], range=(1e15, 1e15 + 1), grid="0.1", epsilon=1)
    with pytest.raises(xp.InvalidInput, match=r"^grid: is too fine for responses up to 2\^53$"):
        query.on(box)


def test_a_refusal_is_a_refusal_where_the_grid_is_too_fine_for_what_would_fit() -> None:
    query = xp.laplace({"value": 1}, range=(0, 1), grid="0.001", epsilon=1)
    session = xp.Session(xp.FiniteSet([0, 1]), 0, filter=xp.BayesianFilter(epsilon="0.5"))
    with pytest.raises(xp.BudgetExceeded) as refused:
        session.ask(query)
    assert refused.value.fits is None
    assert session.decide(query).largest_epsilon is None


@pytest.mark.parametrize("epsilon", ["0.9", "7", "200"])
def test_what_is_not_written_out_is_what_the_weights_say(epsilon: str) -> None:
    domain = xp.FiniteSet([0, 1, 2, 7, 9, 20])
    likelihood = xp.laplace({"value": 1}, range=(0, 20), grid=1, epsilon=epsilon).on(domain)
    for response in (likelihood.responses[0], -3, 0, 4, 7, 20, 25, likelihood.responses[-1]):
        position = likelihood.position(response)
        assert position is not None
        weights, term = likelihood.weights(position), likelihood.term(position)
        assert term.loss.ratio == Fraction(int(weights.max()), int(weights.min()))
        written = Term.of(weights)
        with mpmath.workdps(40):
            for x in range(len(domain)):
                truth = oracles.log(Fraction(int(weights[x]), int(weights[0])))
                for shown in (term, written):
                    about = mpmath.mpf(shown.logs[x]) - mpmath.mpf(shown.logs[0])
                    assert abs(truth - about) <= 2 * shown.error
        powers = likelihood.powers(position, range(len(domain)))
        products = [math.prod(Fraction(b) ** p for b, p in row) for row in powers]
        assert [p / products[0] for p in products] == [
            Fraction(int(w), int(weights[0])) for w in weights
        ]
        classes = likelihood.weight_labels(position)
        assert [a == b for a in classes for b in classes] == [
            v == w for v in weights for w in weights
        ]
