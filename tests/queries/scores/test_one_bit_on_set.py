"""Scores on a set, worked out together: the same bits as one by one, and only what is needed."""

from __future__ import annotations

import random
from typing import Any

import pytest

import expost as xp
from expost.loss._on_set import SetLogLikelihood

EPSILONS = ["0.001", "0.1", "1", "1", "20", "400"]


def some_set(generator: random.Random) -> xp.FiniteSet:
    size = generator.choice([1, 2, 10, 40])
    rows = {
        tuple(generator.choice([0, 1, -3, generator.gauss(0, 3)]) for _ in range(2))
        for _ in range(size)
    }
    return xp.FiniteSet([{"a": a, "b": b} for a, b in rows])


def some_query(generator: random.Random) -> xp.queries.Query:
    options: dict[str, Any] = {
        "weights": {
            "a": generator.gauss(0, 4),
            "b": generator.choice([0.0, generator.gauss(0, 1)]),
        },
        "intercept": generator.choice([0.0, generator.gauss(0, 9)]),
        "epsilon": generator.choice(EPSILONS),
    }
    kind = generator.randrange(5)
    if kind < 2:
        return (xp.logistic, xp.probit)[kind](**options)
    if kind == 2:
        return xp.linear(**options, range=(-1, generator.choice([2, 3.7])), clip=True)
    if kind == 3:
        return xp.queries.duchi(**options, range=(-1000, 1000))
    return xp.laplace(
        **{**options, "epsilon": "1"}, range=(-1000, 1000), grid=generator.choice([2, 5])
    )


def asked(generator: random.Random, domain: xp.FiniteSet) -> xp.Transcript:
    """A transcript in which some queries come twice, with either response."""
    queries = [some_query(generator) for _ in range(12)]
    transcript = xp.Transcript(domain)
    for query in generator.choices(queries, k=20):
        responses = query.on(domain).responses
        position = generator.choice([0, 1, len(responses) - 1, len(responses) // 2])
        transcript = transcript.add_position(query, position)
    return transcript


@pytest.mark.parametrize("seed", range(20))
def test_the_loss_is_that_of_one_exchange_after_another(seed: int) -> None:
    generator = random.Random(1000 + seed)
    domain = some_set(generator)
    transcript = asked(generator, domain)
    one_by_one = SetLogLikelihood.flat(domain)
    for exchange in xp.Transcript.from_json(transcript.to_json()).exchanges:
        one_by_one = one_by_one.add(exchange.query, exchange.position)
    together = SetLogLikelihood.of(domain, transcript.exchanges)
    assert together.exact_loss == one_by_one.exact_loss
    assert xp.realized_loss(transcript) == one_by_one.exact_loss.enclosure


def test_reading_works_out_no_curve() -> None:
    domain = xp.FiniteSet(range(10))
    transcript = xp.Transcript(domain).add(xp.probit({"value": 1}, epsilon=1), 1)
    read = xp.Transcript.from_json(transcript.to_json())
    likelihood = read.exchanges[0].query.on(domain)
    assert "_columns" not in vars(likelihood)
    assert likelihood.footprint == 10
    likelihood.term(1)
    assert "_columns" in vars(likelihood)
