"""Hadamard response: columns of Sylvester's matrix, in integers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.queries.values.hadamard_response import SignedColumns
from support import oracles
from support.random_cases import table

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=400).filter(bool)
orders = st.sampled_from([2, 4, 8, 16])
cases = orders.flatmap(lambda order: st.tuples(st.integers(1, order - 1), st.just(order)))


@given(cases, epsilons)
def test_probabilities_are_those_of_the_paper(case: tuple[int, int], epsilon: Fraction) -> None:
    values, order = case
    query = xp.hadamard_response(order=order, epsilon=epsilon)
    expected = oracles.hadamard_response(values, order, oracles.odds(epsilon))
    assert table(query, xp.FiniteSet(range(values))) == expected


@given(cases, epsilons)
def test_the_worst_case_is_that_of_the_table(case: tuple[int, int], epsilon: Fraction) -> None:
    values, order = case
    query, domain = xp.hadamard_response(order=order, epsilon=epsilon), xp.FiniteSet(range(values))
    likelihood, losses = query.on(domain), list(table(query, domain).values())
    assert likelihood.epsilon.ratio == oracles.epsilon_of(losses)
    assert likelihood.least_loss.ratio == min(max(column) / min(column) for column in losses)
    assert likelihood.epsilon <= Nats(epsilon)


@given(cases, st.integers(1, 7), st.integers(1, 7))
def test_every_uniform_integer_gives_the_columns_their_share(
    case: tuple[int, int], heavy: int, light: int
) -> None:
    values, order = case
    expected = oracles.hadamard_response(values, order, Fraction(heavy, light))
    for value in range(values):
        pmf = SignedColumns(order, value + 1, heavy, light)
        counts = Counter(pmf.pick(uniform) for uniform in range(pmf.total))
        for column in range(order):
            assert Fraction(counts[column], pmf.total) == expected[column][value]
            assert pmf.probability(column) == expected[column][value]


def test_every_two_values_have_a_column_that_tells_them_apart() -> None:
    domain, query = xp.FiniteSet(range(15)), xp.hadamard_response(order=16, epsilon=1)
    columns = table(query, domain)
    for high in range(15):
        for low in set(range(15)) - {high}:
            # A transcript after which these two are the extremes.
            scores = [0.5] * 15
            scores[high], scores[low] = 1.0, 0.0
            odometer = xp.Odometer(xp.Transcript(domain)).add(xp.perturbation(scores, epsilon=1), 1)
            worst = xp.BayesianFilter(9).decide(odometer, query).worst_response
            assert columns[worst][high] > columns[worst][low]


def test_thousands_of_values_are_asked_about_at_once() -> None:
    domain = xp.FiniteSet(range(5000))
    session = xp.Session(domain, 4321, filter=xp.BayesianFilter(epsilon="2"))
    column = session.ask(xp.hadamard_response(order=2**40, epsilon="1"))
    assert isinstance(column, int)
    assert 0 <= column < 2**40
    assert xp.Transcript.from_json(session.transcript.to_json()) == session.transcript


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (6, "order: must be a power of 2"),
        (1, "order: must be at least 2"),
        (2.5, "order: must be an integer"),
        (2**54, "order: integer too large"),
        (4, "order: got 4; expected above the number of values, 4"),
    ],
)
def test_bad_orders_are_refused_with_their_place(order: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.hadamard_response(order=order, epsilon=1).on(xp.FiniteSet(range(4)))
