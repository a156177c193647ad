"""Local hashing: values in one bucket cannot be told apart, all others are by epsilon."""

from __future__ import annotations

import hashlib
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.queries.values.local_hashing import BucketHash
from support import oracles
from support.random_cases import table

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=400).filter(bool)
seeds = st.binary(min_size=1, max_size=9).map(bytes.hex)


def bucket(seed: str, encoded: str, buckets: int) -> int:
    digest = hashlib.sha256(bytes.fromhex(seed) + encoded.encode()).digest()
    return int.from_bytes(digest[:8], "big") % buckets


@given(seeds, st.integers(2, 7), epsilons)
def test_probabilities_are_randomized_response_about_the_bucket(
    seed: str, buckets: int, epsilon: Fraction
) -> None:
    hashes = [bucket(seed, f'"{float(value).hex()}"', buckets) for value in range(5)]
    query = xp.local_hashing(seed=seed, buckets=buckets, epsilon=epsilon)
    expected = oracles.local_hashing(hashes, buckets, oracles.odds(epsilon))
    domain = xp.FiniteSet(range(5))
    assert table(query, domain) == expected
    likelihood, losses = query.on(domain), list(expected.values())
    assert likelihood.epsilon.ratio == oracles.epsilon_of(losses)
    assert likelihood.least_loss.ratio == min(max(column) / min(column) for column in losses)
    assert likelihood.epsilon <= Nats(epsilon)


def test_the_hash_is_that_of_the_canonical_value() -> None:
    domain = xp.FiniteSet(["1", 1, "0x1.0000000000000p+0", -0.0, "é"])
    encoded = [
        '"1"',
        '"0x1.0000000000000p+0"',
        '"\'0x1.0000000000000p+0"',
        '"0x0.0p+0"',
        '"é"',
    ]
    expected = [bucket("5eed", text, 2**40) for text in encoded]
    assert BucketHash("5EED", 2**40).of(domain).tolist() == expected
    points = xp.FiniteSet([(1, 2.5)], names=["a", "b"])
    row = '["0x1.0000000000000p+0","0x1.4000000000000p+1"]'
    assert BucketHash("00", 2**40).of(points).tolist() == [bucket("00", row, 2**40)]


ROWS = st.lists(st.integers(1, 4), min_size=5, max_size=5)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(ROWS, st.booleans()), max_size=4),
    seeds,
    st.integers(2, 4),
    st.sampled_from([Fraction(1, 10), Fraction(1, 2), Fraction(1)]),
    st.data(),
)
def test_the_worst_case_is_the_largest_over_all_buckets(
    asked: list[tuple[list[int], bool]],
    seed: str,
    buckets: int,
    epsilon: Fraction,
    data: st.DataObject,
) -> None:
    domain = xp.FiniteSet(range(5))
    query = xp.local_hashing(seed=seed, buckets=buckets, epsilon=epsilon)
    odometer, likelihoods = xp.Odometer(xp.Transcript(domain)), [Fraction(1)] * 5
    for row, response in asked:
        ones = [Fraction(weight, 5) for weight in row]
        odometer = odometer.add(xp.channel([[1 - p, p] for p in ones]), int(response))
        factors = ones if response else [1 - p for p in ones]
        likelihoods = [a * b for a, b in zip(likelihoods, factors, strict=True)]
    columns = table(query, domain)
    after = {
        y: oracles.ratio([p * q for p, q in zip(likelihoods, column, strict=True)])
        for y, column in columns.items()
    }
    worst = max(ratio for ratio in after.values() if ratio is not None)
    # At the exact worst case, just below and just above it.
    for limit in (worst, worst * (1 - Fraction(1, 10**25)), worst * (1 + Fraction(1, 10**25))):
        if limit > 1:
            decision = xp.BayesianFilter(ratio=limit).decide(odometer, query)
            assert decision.accepted is (worst <= limit)
            assert after[decision.worst_response] == worst
            exact = Nats(ratio=worst).enclosure
            assert decision.loss_at_worst.lower <= exact.lower
            assert exact.upper <= decision.loss_at_worst.upper
            assert decision.loss_at_worst.width < 1e-12
    budget = Nats(ratio=Fraction(data.draw(st.integers(11, 90)), 10))
    simple = max(likelihoods) / min(likelihoods) * max(max(c) / min(c) for c in columns.values())
    accepted = xp.SimplifiedFilter.of(budget).decide(odometer, query).accepted
    assert accepted is (simple <= (budget.ratio or 0))


def test_at_the_limit_what_tells_only_others_apart_is_accepted() -> None:
    domain = xp.FiniteSet(range(6))
    seed, other = next(
        (seed, int(hashes[2]))
        for seed in map("{:04x}".format, itertools.count())
        for hashes in [BucketHash(seed, 2).of(domain)]
        if hashes[0] == hashes[1] != hashes[2]
    )
    query = xp.local_hashing(seed=seed, buckets=2, epsilon="1/2")
    extremes = xp.perturbation([1, 0, 0.5, 0.5, 0.5, 0.5], epsilon=2)
    odometer = xp.Odometer(xp.Transcript(domain)).add(extremes, 1)
    guard = xp.BayesianFilter.of(odometer.exact_loss)
    assert guard.decide(odometer, query).accepted
    assert not xp.SimplifiedFilter.of(odometer.exact_loss).decide(odometer, query).accepted
    assert odometer.add(query, other).exact_loss == odometer.exact_loss


def test_many_tied_values_in_many_buckets_are_compared_in_one_go() -> None:
    domain = xp.FiniteSet(range(20_000))
    query = xp.local_hashing(seed="abcd", buckets=10**9, epsilon=1)
    hashes = BucketHash("abcd", 10**9).of(domain)
    assert len(np.unique(hashes)) > 19_000
    scores = np.full(20_000, 0.5)
    scores[0] = 1.0
    odometer = xp.Odometer(xp.Transcript(domain)).add(xp.perturbation(scores, epsilon=1), 1)
    exact = odometer.exact_loss + query.on(domain).epsilon
    assert xp.BayesianFilter.of(exact).decide(odometer, query).accepted
    session = xp.Session(domain, 5, filter=xp.BayesianFilter(epsilon=3))
    assert session.ask(query) in range(10**9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": ""}, "seed: must be 1 to 64 bytes"),
        ({"seed": "abc"}, "seed: must be 1 to 64 bytes"),
        ({"seed": "0g"}, "seed: must be 1 to 64 bytes"),
        ({"seed": "0 1 "}, "seed: must be 1 to 64 bytes"),
        ({"seed": "00" * 65}, "seed: must be 1 to 64 bytes"),
        ({"seed": 12}, "seed: must be a string"),
        ({"buckets": 1}, "buckets: must be at least 2"),
        ({"buckets": 2.5}, "buckets: must be an integer"),
        ({"epsilon": -1}, "epsilon: must be greater than 0"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.local_hashing(**{"seed": "5eed", "buckets": 4, "epsilon": 1, **arguments})
