"""The running log-likelihood: small, centered, and honest about its error."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import mpmath

import expost as xp
from expost.loss.log_likelihood import BoxLogLikelihood, LogLikelihood
from expost.transcript import Exchange
from support import oracles
from support.strategies import finite


def test_a_common_drift_is_taken_out_without_any_rounding() -> None:
    domain = xp.FiniteSet(range(5))
    query = xp.randomized_response(epsilon=2)
    total = LogLikelihood.flat(domain)
    shifts = 0
    for step in range(400):
        exchange = xp.Transcript(domain).add(query, step % 5).exchanges[0]
        before = total.values
        total = total.add(exchange)
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
    expected: Counter[tuple[xp.Query, int]] = Counter()
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


def test_a_beginning_over_a_box_counts_its_terms_as_if_there_were_no_others() -> None:
    box = xp.Box(age=(10, 100))
    queries = [xp.logistic({"age": 0.1}, intercept=-k, epsilon="0.1") for k in (1, 2, 3)]
    exchanges = [Exchange(queries[i * i % 3], i % 2, i % 2) for i in range(12)]
    whole = BoxLogLikelihood.of(box, exchanges)
    for count in range(13):
        alone = BoxLogLikelihood.of(box, exchanges[:count])
        assert list(whole.first(count).counted.items()) == list(alone.counted.items())
