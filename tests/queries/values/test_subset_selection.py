"""Subset selection: subsets by rank, in integers, and never written out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.queries.values.subset_selection import SpikedSubsets, members_of, rank_of
from support import oracles
from support.random_cases import table

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=400).filter(bool)
sizes = st.integers(2, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1)))
SIXTY_FOUR = xp.FiniteSet(range(64))


@given(sizes, epsilons)
def test_probabilities_are_those_of_the_papers(case: tuple[int, int], epsilon: Fraction) -> None:
    values, size = case
    query = xp.subset_selection(size=size, epsilon=epsilon)
    expected = oracles.subset_selection(values, size, oracles.odds(epsilon))
    assert table(query, xp.FiniteSet(range(values))) == expected


@given(sizes, epsilons)
def test_the_worst_case_is_just_below_epsilon(case: tuple[int, int], epsilon: Fraction) -> None:
    values, size = case
    query, domain = xp.subset_selection(size=size, epsilon=epsilon), xp.FiniteSet(range(values))
    likelihood = query.on(domain)
    assert likelihood.epsilon.ratio == oracles.epsilon_of(list(table(query, domain).values()))
    assert Nats(epsilon * (1 - Fraction(1, 10**11))) < likelihood.epsilon <= Nats(epsilon)
    assert likelihood.least_loss == likelihood.epsilon


@given(sizes, st.integers(1, 7), st.integers(1, 7))
def test_every_uniform_integer_gives_the_subsets_their_share(
    case: tuple[int, int], heavy: int, light: int
) -> None:
    values, size = case
    expected = oracles.subset_selection(values, size, Fraction(heavy, light))
    for spike in range(values):
        pmf = SpikedSubsets(values, size, spike, heavy, light)
        counts = Counter(pmf.pick(uniform) for uniform in range(pmf.total))
        for position in range(math.comb(values, size)):
            flags = members_of(position, size, values)
            subset = tuple(i for i, flag in enumerate(flags) if flag)
            assert Fraction(counts[position], pmf.total) == expected[subset][spike]
            assert pmf.probability(position) == expected[subset][spike]


def test_ranks_are_those_of_the_combinatorial_number_system() -> None:
    for count, size in itertools.product(range(1, 8), range(8)):
        for rank in range(math.comb(count, size)):
            flags = members_of(rank, size, count)
            elements = [i for i, flag in enumerate(flags) if flag]
            assert len(elements) == size
            assert rank_of(flags) == rank
            assert sum(math.comb(c, j) for j, c in enumerate(elements, start=1)) == rank


@given(st.integers(0, math.comb(300, 100) - 1))
def test_a_rank_of_hundreds_of_bits_is_found_again(rank: int) -> None:
    assert rank_of(members_of(rank, 100, 300)) == rank


def test_sixty_four_values_are_asked_about_without_all_subsets() -> None:
    session = xp.Session(SIXTY_FOUR, 7, filter=xp.BayesianFilter(epsilon="3"))
    query = xp.subset_selection(size=20, epsilon="1")
    for _ in range(3):
        response = session.ask(query)
        assert isinstance(response, tuple)
        assert len(response) == 20
        assert list(response) == sorted(set(response))
    again = xp.Transcript.from_json(session.transcript.to_json())
    assert again == session.transcript
    assert again.content_id == session.transcript.content_id


@given(sizes, st.data())
def test_the_worst_response_speaks_for_the_largest_and_against_the_smallest(
    case: tuple[int, int], data: st.DataObject
) -> None:
    values, size = case
    domain, query = xp.FiniteSet(range(values)), xp.subset_selection(size=size, epsilon=1)
    subsets = st.sampled_from(list(query.on(domain).responses))
    odometer = xp.Odometer(xp.Transcript(domain))
    for response in data.draw(st.lists(subsets, max_size=4)):
        odometer = odometer.add(query, response)
    decision = xp.BayesianFilter(40).decide(odometer, query)
    after = odometer.add(query, decision.worst_response)
    assert after.exact_loss == odometer.exact_loss + query.on(domain).epsilon


@pytest.mark.parametrize(
    "response", [(0,), (0, 1, 2), (1, 0), (1, 1), (0, 4), (-1, 0), (0, 0.5), "01", 0, ("0", 1)]
)
def test_other_responses_are_refused(response: Any) -> None:
    query = xp.subset_selection(size=2, epsilon=1)
    with pytest.raises(xp.InvalidInput, match=r"it has \(0, 1\), \(0, 2\), \(1, 2\)"):
        xp.Transcript(xp.FiniteSet(range(4))).add(query, response)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "size: must be at least 1"),
        (1.5, "size: must be an integer"),
        ("2", "size: must be an integer"),
        (True, "size: must be an integer"),
        (4, "size: got 4; expected below the number of values, 4"),
    ],
)
def test_bad_sizes_are_refused_with_their_place(size: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.subset_selection(size=size, epsilon=1).on(xp.FiniteSet(range(4)))


def test_more_values_than_can_be_drawn_for_are_refused() -> None:
    with pytest.raises(xp.InvalidInput, match="expected at most 10000"):
        xp.subset_selection(size=2, epsilon=1).on(xp.FiniteSet(range(10_001)))
