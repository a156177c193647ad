"""Capacities: no prior leaks more, and some prior leaks nearly as much."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost import knowledge
from expost.knowledge import Belief, _capacity_search
from support.gain_functions import beliefs, gain_functions, gains_of
from support.random_cases import exact_rows, queries


def largest_found(likelihoods: Any, gains: Any, seed: int) -> float:
    """The largest leakage of many random priors, each improved by small random steps."""
    generator = np.random.default_rng(seed)
    priors = generator.dirichlet(np.full(len(likelihoods), 0.4), size=400)
    for size in np.geomspace(1, 1e-4, 60):
        steps = np.exp(size * generator.normal(size=priors.shape))
        moved = priors * steps
        moved /= moved.sum(axis=1, keepdims=True)
        better = leakages(moved, likelihoods, gains) > leakages(priors, likelihoods, gains)
        priors[better] = moved[better]
    return float(leakages(priors, likelihoods, gains).max())


def leakages(priors: Any, likelihoods: Any, gains: Any) -> Any:
    before = (priors @ gains.T).max(axis=1)
    after = (priors * likelihoods @ gains.T).max(axis=1) / (priors @ likelihoods)
    usable = before > 1e-200
    return np.log(np.where(usable & (after > 0), after, 1e-300) / np.where(usable, before, 1.0))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_prior_leaks_more_than_the_capacity_of_a_response(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    domain = xp.FiniteSet(range(size))
    gain = data.draw(gain_functions(size))
    gains = np.array([[float(g) for g in row] for row in gains_of(gain, size)])
    if not gains.any():
        return
    rows = data.draw(exact_rows(size))
    transcript = xp.Transcript(domain).add(xp.channel(rows), 0)
    capacity = knowledge.capacity(gain, transcript)
    likelihoods = np.array([float(row[0]) for row in rows])
    found = largest_found(likelihoods, gains, seed=size)
    assert found <= capacity.upper + 1e-12
    # The search finds the best prior, or at least one that is nearly as good as any found here.
    assert capacity.lower >= found - 0.0011
    assert 0 <= capacity.lower <= capacity.upper <= capacity.lower + 0.0011
    assert capacity.lower <= xp.realized_loss(transcript).upper


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_the_capacity_of_a_query_bounds_every_leakage(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 4))
    domain = xp.FiniteSet(range(size))
    query = data.draw(queries(size, 8))
    gain, belief = data.draw(gain_functions(size)), data.draw(beliefs(domain))
    if knowledge.vulnerability(belief, gain) == 0:
        return
    capacity = knowledge.capacity(gain, query, domain, gap=0.01)
    assert knowledge.max_case_leakage(belief, gain, query).lower <= capacity.upper
    assert capacity.lower <= xp.loss.worst_case_loss(query, domain).upper
    for response in list(query.on(domain).responses)[:3]:
        one = knowledge.capacity(gain, xp.Transcript(domain).add(query, response), gap=0.01)
        assert one.lower <= capacity.upper


@given(st.integers(2, 5).flatmap(exact_rows))
def test_one_try_has_the_capacity_of_identity(rows: list[list[Fraction]]) -> None:
    domain = xp.FiniteSet(range(len(rows)))
    transcript = xp.Transcript(domain).add(xp.channel(rows), 0)
    exact = knowledge.capacity(knowledge.Identity(), transcript)
    searched = knowledge.capacity(knowledge.Tries(1), transcript)
    assert searched.lower <= exact.upper
    assert exact.lower <= searched.upper
    assert exact.width < 1e-15
    own = knowledge.capacity(knowledge.Property(range(len(rows))), transcript)
    assert own == exact


def test_the_capacity_of_randomized_response_is_that_of_an_even_prior() -> None:
    domain = xp.FiniteSet(range(10))
    query = xp.randomized_response(epsilon=1)
    even = knowledge.max_case_leakage(Belief.uniform(domain), knowledge.Identity(), query)
    assert knowledge.capacity(knowledge.Identity(), query, domain) == even
    assert even == knowledge.bayes_capacity(query, domain)
    assert even.upper == pytest.approx(math.log(10 * math.e / (math.e + 9)), abs=1e-9)


def test_a_value_that_nobody_guesses_lets_a_statement_gain_all_of_the_loss() -> None:
    domain = xp.FiniteSet(["healthy", "ill"])
    query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    about_illness = knowledge.GainMatrix([[0, 1]])
    capacity = knowledge.capacity(about_illness, query, domain)
    assert capacity.lower <= math.log(3) <= capacity.upper
    assert capacity.width < 1e-12
    sure = xp.channel([[1, 0], ["1/2", "1/2"]])
    assert knowledge.capacity(about_illness, sure, domain) == xp.numbers.Enclosure(
        math.inf, math.inf
    )


def test_where_a_response_is_impossible_for_some_values_the_capacity_may_still_be_finite() -> None:
    domain = xp.FiniteSet(range(4))
    transcript = xp.Transcript(domain).add(xp.channel([[1, 0]] * 3 + [[0, 1]]), 1)
    assert xp.realized_loss(transcript).upper == math.inf
    # With all values alike a guess is right once in four before, and always after.
    assert knowledge.capacity(knowledge.Identity(), transcript).upper == pytest.approx(math.log(4))
    two = knowledge.capacity(knowledge.Tries(2), transcript)
    assert two.lower <= math.log(2) + 1e-9
    assert two.upper >= math.log(2) - 1e-9


def test_bounds_hold_whatever_the_simplex_method_did(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    domain = xp.FiniteSet(range(4))
    query = xp.channel([["1/10", "9/10"], ["2/10", "8/10"], ["5/10", "5/10"], ["9/10", "1/10"]])
    gains = [
        knowledge.Tries(2),
        knowledge.Nearness(2),
        knowledge.GainMatrix([[1, "1/2", 0, 0], [0, 0, 1, 1]]),
    ]
    right = [knowledge.capacity(gain, query, domain, gap=1e-4) for gain in gains]

    def broken(objective: Any, rows: Any, limits: Any) -> Any:
        return generator.random(rows.shape[1]), generator.random(rows.shape[0])

    monkeypatch.setattr(_capacity_search, "linear_program", broken)
    for gain, true in zip(gains, right, strict=True):
        capacity = knowledge.capacity(gain, query, domain, nodes=200)
        assert capacity.lower <= true.upper
        assert true.lower <= capacity.upper


def test_fewer_nodes_give_a_wider_capacity() -> None:
    domain = xp.FiniteSet(range(5))
    query = xp.geometric(range=(0, 4), sensitivity=4, epsilon=3)
    narrow = knowledge.capacity(knowledge.Nearness(2), query, domain)
    wide = knowledge.capacity(knowledge.Nearness(2), query, domain, nodes=1)
    assert narrow.width <= 0.0011 < wide.width
    assert wide.lower <= narrow.lower
    assert narrow.upper <= wide.upper


def test_bad_input_is_one_line() -> None:
    domain = xp.FiniteSet(range(2))
    query = xp.randomized_response(epsilon=1)
    with pytest.raises(xp.InvalidInput, match="the capacity of a query needs a domain"):
        knowledge.capacity(knowledge.Identity(), query)  # type: ignore[call-overload]
    with pytest.raises(xp.InvalidInput, match="never gains anything"):
        knowledge.capacity(knowledge.GainMatrix([[0, 0]]), query, domain)
    with pytest.raises(xp.InvalidInput, match="gap: must be at least 1e-9"):
        knowledge.capacity(knowledge.Identity(), query, domain, gap=0)
    with pytest.raises(xp.InvalidInput, match="leakage is for finite domains"):
        knowledge.bayes_capacity(xp.linear([1], range=(0, 1), epsilon=1), xp.Box([(0, 1)]))  # type: ignore[arg-type]
    impossible = xp.Transcript(domain)
    for answer in (0, 1):
        impossible = impossible.add(xp.channel([[1, 0], [0, 1]]), answer)
    with pytest.raises(xp.InvalidInput, match="no value can have given"):
        knowledge.capacity(knowledge.Identity(), impossible)


def test_degenerate_programs_of_forty_values_are_survived() -> None:
    domain = xp.FiniteSet(range(40))
    query = xp.randomized_response(epsilon=1)
    capacity = knowledge.capacity(knowledge.Nearness(3), query, domain, nodes=400)
    # An even prior leaks this much about the middle.
    least = knowledge.max_case_leakage(Belief.uniform(domain), knowledge.Nearness(3), query)
    assert least.lower <= capacity.upper
    assert capacity.upper <= xp.loss.worst_case_loss(query, domain).upper + 1e-12
