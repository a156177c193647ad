"""The running log-likelihood: small, centered, and honest about its error."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import mpmath

import expost as xp
from expost.loss._on_box import BoxLogLikelihood
from expost.loss._on_set import SetLogLikelihood
from expost.numbers import Nats
from support import oracles
from support.random_cases import finite


def test_a_common_drift_is_taken_out_without_any_rounding() -> None:
    domain = xp.FiniteSet(range(5))
    query = xp.randomized_response(epsilon=2)
    total = SetLogLikelihood.flat(domain)
    shifts = 0
    for step in range(400):
        before = total.values
        total = total.add(query, step % 5)
        moved = [Fraction(a) - Fraction(b) for a, b in zip(total.values, before, strict=True)]
        shifts += min(moved) > 0
        assert abs(total.highest) <= 2 + total.highest - total.lowest
        assert total.highest == total.values.max()
        assert total.lowest == total.values.min()
    assert shifts > 0
    assert total.error < 1e-11


def test_every_value_is_within_the_error_after_thousands_of_exchanges() -> None:
    domain = xp.FiniteSet(range(4))
    queries = [
        xp.channel([["1/3", "2/3"], ["2/5", "3/5"], ["3/7", "4/7"], ["1/2", "1/2"]]),
        xp.perturbation([0, 0.25, 0.7, 1], epsilon="0.3"),
        xp.randomized_response(epsilon="0.2"),
    ]
    odometer = xp.Odometer(xp.Transcript(domain))
    counts: dict[tuple[int, int], int] = {}
    for step in range(3000):
        number = step % 3
        likelihood = queries[number].on(domain)
        position = (step * step + step // 7) % len(likelihood.responses)
        odometer = odometer.add(queries[number], likelihood.responses[position])
        counts[number, position] = counts.get((number, position), 0) + 1
    total = finite(odometer)
    with mpmath.workdps(60):
        exact = [
            mpmath.fsum(
                times * oracles.log(queries[number].on(domain).pmf(x).probability(position))
                for (number, position), times in counts.items()
            )
            for x in range(4)
        ]
        for x in range(4):
            for y in range(4):
                difference = mpmath.mpf(total.values[x]) - mpmath.mpf(total.values[y])
                assert abs(difference - (exact[x] - exact[y])) <= 2 * total.error


def test_the_tally_counts_every_exchange_however_many_differ() -> None:
    domain = xp.FiniteSet([0, 1])
    queries = [xp.randomized_response(epsilon=Fraction(1, n)) for n in range(2, 202)]
    odometer = xp.Odometer(xp.Transcript(domain))
    expected: Counter[tuple[xp.queries.Query, int]] = Counter()
    for step in range(700):
        query, response = queries[step * step % 200], step % 2
        odometer = odometer.add(query, response)
        expected[query, response] += 1
    tally = finite(odometer).tally
    assert {(s.query, s.position): s.times for s in tally} == expected
    ratios = [
        query.on(domain).pmf(0).probability(y) / query.on(domain).pmf(1).probability(y)
        for (query, y), times in expected.items()
        for _ in range(times)
    ]
    product = math.prod(ratios)
    assert odometer.exact_loss.ratio == max(product, 1 / product)


def test_what_is_known_of_a_box_does_not_depend_on_the_path() -> None:
    box = xp.Box(age=(10, 100), weight=(40, 120))
    generator = random.Random(2)
    asked = [
        ((round(generator.uniform(-1, 1), 2), round(generator.uniform(-1, 1), 2)), i % 2)
        for i in range(8)
    ] * 2

    def query(weights: tuple[float, float]) -> xp.queries.Query:
        return xp.logistic({"age": weights[0], "weight": weights[1]}, epsilon="0.1")

    effort, more, found = xp.solver.Effort(nodes=3), query((0.5, -0.3)), set()
    for _ in range(4):
        generator.shuffle(asked)
        transcript, stepped = xp.Transcript(box), BoxLogLikelihood.of(box, ())
        for weights, response in asked:
            transcript = transcript.add(query(weights), response)
            stepped = stepped.add(query(weights), response)
            if generator.random() < 0.3:
                assert stepped.terms  # which are gone on with from here
        at_once = BoxLogLikelihood.of(box, transcript.exchanges)
        assert list(stepped.terms.items()) == list(at_once.terms.items())
        decision = xp.BayesianFilter("0.8").decide(xp.Odometer(transcript, effort=effort), more)
        found.add((stepped.loss(effort), at_once.loss(effort), decision.loss_at_worst))
    assert len(found) == 1
    ((first, second, _),) = found
    assert first == second


def test_equal_queries_are_one_however_often_they_are_made() -> None:
    box = xp.Box(age=(10, 100))
    total = BoxLogLikelihood.of(box, ())
    for times in (1, 2, 3):
        total = total.add(xp.logistic({"age": 0.1}, epsilon="0.1"), 1, times)
        assert list(total.terms.values()) == [sum(range(1, times + 1))]
    assert total.exact_spent == Nats(Fraction(6, 10))
