"""The geometric mechanism: clamped noise in exact rationals, and what its end responses tell."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import NoisyInteger
from expost.queries.noise.geometric import ClampedNoise
from support import oracles
from support.random_cases import table

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=100).filter(bool)
integers = st.lists(st.integers(-6, 6), min_size=1, max_size=5, unique=True)
ranges = st.tuples(st.integers(-5, 5), st.integers(1, 6)).map(lambda c: (c[0], c[0] + c[1]))


@given(integers, ranges, st.integers(0, 3), epsilons)
def test_probabilities_are_those_of_the_paper_also_outside_of_the_range(
    values: list[int], ends: tuple[int, int], slack: int, epsilon: Fraction
) -> None:
    sensitivity = max(1, max(values) - min(values)) + slack
    query = xp.geometric(range=ends, sensitivity=sensitivity, epsilon=epsilon)
    domain, alpha = xp.FiniteSet(values), 1 / oracles.odds(epsilon / sensitivity)
    expected = oracles.geometric(values, *ends, alpha)
    assert table(query, domain) == expected
    assert all(sum(row) == 1 for row in zip(*expected.values(), strict=True))
    likelihood, losses = query.on(domain), list(expected.values())
    assert likelihood.epsilon.ratio == oracles.epsilon_of(losses)
    assert likelihood.least_loss.ratio == min(max(column) / min(column) for column in losses)
    assert likelihood.epsilon <= Nats(epsilon)


@given(integers, ranges, epsilons)
def test_the_end_responses_tell_most_about_every_pair(
    values: list[int], ends: tuple[int, int], epsilon: Fraction
) -> None:
    columns = oracles.geometric(values, *ends, 1 / oracles.odds(epsilon / 12))
    low, high = columns[ends[0]], columns[ends[1]]
    for x in range(len(values)):
        for y in range(len(values)):
            most = max(column[x] / column[y] for column in columns.values())
            assert most == max(low[x] / low[y], high[x] / high[y])


def test_values_that_reach_as_far_as_the_sensitivity_use_all_of_epsilon() -> None:
    query = xp.geometric(range=(0, 10), sensitivity=10, epsilon=1)
    epsilon = query.on(xp.FiniteSet(range(11))).epsilon
    assert Nats(1 - Fraction(1, 10**11)) < epsilon <= Nats(Fraction(1))


@given(st.integers(-3, 3), st.integers(1, 3), st.integers(0, 1), st.integers(2, 5), st.data())
def test_every_uniform_integer_gives_the_responses_their_share(
    low: int, width: int, spare: int, heavy: int, data: st.DataObject
) -> None:
    light = data.draw(st.integers(1, heavy - 1))
    value = data.draw(st.integers(low - 2, low + width + 2))
    reach = max(low + width - value, value - low) + spare
    noise = ClampedNoise(low, low + width, reach, heavy, light)
    pmf = NoisyInteger(noise, value)
    counts = Counter(pmf.pick(uniform) for uniform in range(pmf.total))
    expected = oracles.geometric([value], low, low + width, Fraction(light, heavy))
    for response, (probability,) in expected.items():
        assert Fraction(counts[response - low], pmf.total) == probability
        assert pmf.probability(response - low) == probability


def test_the_filter_looks_at_two_responses_of_many() -> None:
    domain = xp.FiniteSet(range(3))
    query = xp.geometric(range=(-400, 400), sensitivity=2, epsilon=1)
    odometer = Odometer(xp.Transcript(domain)).add(query, 1).add(query, 0)
    decision = xp.BayesianFilter(9).decide(odometer, query)
    assert decision.worst_response in (-400, 400)
    losses = [odometer.add(query, response).exact_loss for response in (-400, -1, 0, 1, 2, 3, 400)]
    assert max(losses) == odometer.add(query, decision.worst_response).exact_loss


def test_a_session_of_ages() -> None:
    ages = xp.FiniteSet(range(18, 91))
    query = xp.geometric(range=(0, 120), sensitivity=72, epsilon="1/2")
    session = xp.Session(ages, 44, filter=xp.BayesianFilter(epsilon="2"))
    for _ in range(4):
        assert session.ask(query) in range(121)
    again = xp.Transcript.from_json(session.transcript.to_json())
    assert again == session.transcript
    assert again.content_id == session.transcript.content_id


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        (range(5), {"range": (3, 3)}, "range: must be two integers, the lower one first"),
        (range(5), {"range": (0, 1.5)}, r"range\[1\]: must be an integer"),
        (range(5), {"range": (0, 1, 2)}, "range: must be two integers"),
        (range(5), {"range": "01"}, "range: must be a list"),
        (range(5), {"sensitivity": 0}, "sensitivity: must be an integer of at least 1"),
        (range(5), {"sensitivity": "9/2"}, "sensitivity: must be an integer of at least 1"),
        (range(5), {"epsilon": 0}, "epsilon: must be greater than 0"),
        (
            range(5),
            {"sensitivity": 3},
            "sensitivity: got 3; expected at least 4, the distance between",
        ),
        (
            range(5),
            {"range": (-1000, 0)},
            "range: got an end that is 1004 steps from a value; expected at most 1000",
        ),
        ([0.5, 1], {}, "geometric needs a domain of integers"),
        (["0", 1], {}, "geometric needs a domain of integers"),
    ],
)
def test_what_is_not_fit_is_refused_with_a_line(
    values: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.geometric(**{"range": (0, 4), "sensitivity": 4, "epsilon": 1, **arguments}).on(
            xp.FiniteSet(values)
        )


def test_the_largest_epsilon_is_the_end_of_what_is_accepted_from_zero_on() -> None:
    # Pr(1 | 0) / Pr(1 | 1) is 1 + α - α², which has a hump between ε = 0 and ε = ∞.
    domain = xp.FiniteSet([0, 1])
    query = xp.geometric(range=(1, 3), sensitivity=1, epsilon=1)
    so_far = xp.channel([["9/10", "1/10"], ["1/10", "9/10"]])
    odometer, guard = Odometer(xp.Transcript(domain)).add(so_far, 0), xp.BayesianFilter(ratio=10)

    def accepted(epsilon: Fraction) -> bool:
        return guard.decide(odometer, query.with_epsilon(epsilon)).accepted

    assert accepted(Fraction(1, 10))
    assert not accepted(Fraction(1))
    assert accepted(Fraction(4))
    largest = guard.decide(odometer, query).largest_epsilon
    assert largest is not None
    alpha = (1 + math.sqrt(5) / 3) / 2
    assert float(largest) == pytest.approx(-math.log(alpha), abs=1e-8)
    assert all(accepted(Fraction(largest) * step / 50) for step in range(1, 51))
    assert not accepted(Fraction(largest) + Fraction(1, 10**10))
