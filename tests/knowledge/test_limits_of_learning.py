"""One chain: what a statement gains, what it leaks, the realized loss, and the budget."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import expost as xp
from expost import knowledge


def some_channel(generator: random.Random, values: int) -> xp.queries.Query:
    """A channel of a few responses, which need not all be possible for all values."""
    width = generator.randint(2, 3)
    responses = [f"r{k}" for k in range(width)]
    rows = []
    for _ in range(values):
        weights = [generator.choice([1, 1, 2, 3, 7]) for _ in responses]
        rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return xp.channel(rows, responses=responses)


def some_query(generator: random.Random, values: int) -> xp.queries.Query:
    epsilon = Fraction(generator.randint(1, 20), 10)
    if generator.random() < 0.4:
        return some_channel(generator, values)
    if generator.random() < 0.5:
        scores = [generator.random() for _ in range(values)]
        return xp.perturbation(scores, range=(0, 1), epsilon=epsilon)
    return xp.randomized_response(epsilon=epsilon)


@pytest.mark.parametrize("seed", range(60))
def test_a_gain_is_a_leakage_and_below_the_loss_and_the_budget_on_both_sides(seed: int) -> None:
    generator = random.Random(seed)
    values = generator.randint(2, 5)
    domain = xp.FiniteSet(range(values))
    budget = Fraction(generator.randint(2, 40), 10)
    session = xp.Session(
        domain,
        generator.randrange(values),
        filter=xp.BayesianFilter(epsilon=budget),
        source=xp.sampling.InsecureSource(seed),
    )
    for _ in range(8):
        query = some_query(generator, values)
        if session.decide(query).accepted:
            session.ask(query)
    transcript = session.transcript
    loss = xp.realized_loss(transcript)
    assert loss.lower <= float(budget) + 1e-15
    counts = [generator.randint(1, 9) for _ in range(values)]
    prior = xp.knowledge.Belief.from_counts(domain, dict(zip(domain.values, counts, strict=True)))
    chances = [Fraction(generator.randint(0, 4), 4) for _ in range(values)]
    chances[generator.randrange(values)] = Fraction(1)
    statement = xp.knowledge.Statement(domain, chances)
    gain = xp.knowledge.knowledge_gain(prior, statement, transcript)
    # To say that the statement holds, and nothing else, is a guess whose gain is its truth.
    leak = knowledge.realized_leakage(prior, knowledge.GainMatrix([chances]), transcript)
    assert math.isclose(gain.upper, leak.upper, abs_tol=1e-12)
    assert gain.lower <= loss.upper
    assert -gain.upper <= loss.upper
    # Several guesses leak no more either, nor does any channel on average or at most.
    others = [[Fraction(generator.randint(0, 4), 4) for _ in range(values)] for _ in range(2)]
    guesses = knowledge.GainMatrix([chances, *others])
    assert knowledge.realized_leakage(prior, guesses, transcript).lower <= loss.upper
    query = some_query(generator, values)
    worst = xp.loss.worst_case_loss(query, domain)
    average = knowledge.average_leakage(prior, guesses, query)
    at_most = knowledge.max_case_leakage(prior, guesses, query)
    assert average.lower <= at_most.upper
    assert at_most.lower <= worst.upper
    assert xp.knowledge.learning_limit(query, domain) == worst
