"""Beliefs: exact priors, and Bayes' rule."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.knowledge import exact_likelihoods
from support import random_cases

THREE = xp.FiniteSet(["a", "b", "c"])


@pytest.mark.parametrize(
    "probabilities",
    [
        {"a": "0.5", "b": "0.3", "c": "0.2"},
        {"c": 0.2, "a": 0.5, "b": 0.3},
        ["1/2", "3/10", "1/5"],
        [0.5, 0.3, 0.2],
        np.array([0.5, 0.3, 0.2]),
        [Decimal("0.5"), Fraction(3, 10), "0.2"],
    ],
)
def test_probabilities_mean_what_is_written(probabilities: Any) -> None:
    belief = xp.knowledge.Belief(THREE, probabilities)
    assert belief.weights == (5, 3, 2)
    assert belief.probability("b") == Fraction(3, 10)
    assert belief.probabilities.tolist() == [0.5, 0.3, 0.2]
    assert belief == xp.knowledge.Belief.from_counts(THREE, [50, 30, 20])
    assert hash(belief) == hash(
        xp.knowledge.Belief.from_counts(THREE, {"a": 2.5, "b": 1.5, "c": 1})
    )


def test_what_a_mapping_leaves_out_is_impossible() -> None:
    assert xp.knowledge.Belief(THREE, {"b": 1}).weights == (0, 1, 0)
    assert xp.knowledge.Belief.uniform(THREE).weights == (1, 1, 1)


def test_floats_may_miss_one_by_a_hair_and_are_scaled() -> None:
    shares = np.exp([0.1, 0.2, 0.3]) / np.exp([0.1, 0.2, 0.3]).sum()
    belief = xp.knowledge.Belief(THREE, shares)
    assert sum(belief.probability(value) for value in "abc") == 1
    assert np.allclose(belief.probabilities, shares, rtol=1e-15)


@pytest.mark.parametrize(
    ("probabilities", "line"),
    [
        ([1, 0], "probabilities: 2 numbers for 3 values"),
        (["0.5", "0.5", "0.1"], "probabilities: sum to 1/10 above 1"),
        (["1/3", "1/3", "0.333333333"], "probabilities: sum to about 3.33e-10 below 1"),
        ([0.5, 0.4, 0.0], "probabilities: sum to 1/10 below 1"),
        ([0, 0, 0], "probabilities: sum to 1 below 1"),
        ({"a": 1, "d": 0}, "probabilities[1]: is not a value of the domain"),
        ({"a": 2, "b": -1}, "probabilities[1]: must not be negative"),
        ({"a": "x"}, "probabilities[0]: 'x' is not a number; write 0.5 or 1/3"),
        ([True, False, False], "probabilities[0]: must be a number, not bool"),
        ([math.nan, 0, 0], "probabilities[0]: must be a finite number, not nan"),
        ("abc", "probabilities: must be a list"),
        (7, "probabilities: must be a list"),
    ],
)
def test_bad_probabilities_get_one_line(probabilities: Any, line: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.knowledge.Belief(THREE, probabilities)
    assert str(error.value) == line


def test_counts_of_nothing_are_no_belief() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^counts: sum to zero$"):
        xp.knowledge.Belief.from_counts(THREE, {})


def test_a_value_that_is_outside_is_not_shown() -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.knowledge.Belief.uniform(THREE).probability("secret")
    assert "secret" not in str(error.value)


def test_a_belief_does_not_show_its_probabilities() -> None:
    assert repr(xp.knowledge.Belief(THREE, {"a": "0.9", "b": "0.1"})) == "Belief(3 values)"


def test_points_are_values_too() -> None:
    domain = xp.FiniteSet([(20, 0), (60, 1)], names=["age", "sex"])
    belief = xp.knowledge.Belief(domain, {(20, 0): "0.25", (60, 1): "0.75"})
    assert belief.probability({"sex": 1, "age": 60}) == Fraction(3, 4)


def bayes(prior: list[Fraction], likelihoods: list[Fraction]) -> list[Fraction]:
    joint = [q * p for q, p in zip(prior, likelihoods, strict=True)]
    return [entry / sum(joint) for entry in joint]


def likelihoods_of(transcript: xp.Transcript) -> list[Fraction]:
    """Pr(responses | value), from the public probabilities of each query."""
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    result = [Fraction(1)] * len(domain)
    for exchange in transcript.exchanges:
        column = random_cases.table(exchange.query, domain)[exchange.response]
        result = [p * q for p, q in zip(result, column, strict=True)]
    return result


@given(random_cases.transcripts(), st.data())
def test_an_update_is_bayes_rule_in_fractions(
    transcript: xp.Transcript, data: st.DataObject
) -> None:
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    counts = st.lists(st.integers(0, 9), min_size=len(domain), max_size=len(domain)).filter(any)
    prior = xp.knowledge.Belief.from_counts(domain, data.draw(counts))
    posterior = prior.updated(transcript)
    exact = bayes([prior.probability(x) for x in domain.values], likelihoods_of(transcript))
    assert [posterior.probability(x) for x in domain.values] == exact
    assert math.gcd(*posterior.weights) == 1


@given(random_cases.transcripts(most=4))
def test_one_response_at_a_time_is_as_all_at_once(transcript: xp.Transcript) -> None:
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    belief = xp.knowledge.Belief.uniform(domain)
    for exchange in transcript.exchanges:
        belief = belief.updated(xp.Transcript(domain).add(exchange.query, exchange.response))
    assert belief == xp.knowledge.Belief.uniform(domain).updated(transcript)


def test_values_that_are_ruled_out_stay_so() -> None:
    sure = xp.channel([["1", "0"], ["1/2", "1/2"], ["0", "1"]])
    transcript = xp.Transcript(THREE).add(sure, 1)
    assert xp.knowledge.Belief.uniform(THREE).updated(transcript).weights == (0, 1, 2)
    with pytest.raises(xp.InvalidInput, match=r"^no value that is held possible can have given"):
        xp.knowledge.Belief(THREE, {"a": 1}).updated(transcript)


def test_an_update_needs_the_same_domain() -> None:
    other = xp.Transcript(xp.FiniteSet(["a", "b"]))
    with pytest.raises(xp.InvalidInput, match="different domains"):
        xp.knowledge.Belief.uniform(THREE).updated(other)
    with pytest.raises(xp.InvalidInput, match="must be a transcript, not int"):
        xp.knowledge.Belief.uniform(THREE).updated(3)  # type: ignore[arg-type]
    with pytest.raises(xp.InvalidInput, match="need a finite set, not records or a box"):
        exact_likelihoods(xp.Transcript(xp.Box(age=(0, 1))))


def test_what_would_not_fit_into_memory_is_refused() -> None:
    domain = xp.FiniteSet(range(2000))
    transcript = xp.Transcript(domain)
    for number in range(40):
        scores = [(x * (number + 3) % 2001) / 2001 for x in range(2000)]
        query = xp.perturbation(scores, range=(0, 1), epsilon=1)
        for _ in range(3000):
            transcript = transcript.add(query, 0)
    with pytest.raises(xp.InvalidInput, match=r"^too many responses for exact likelihoods"):
        xp.knowledge.Belief.uniform(domain).updated(transcript)


def test_many_equal_responses_on_many_values_are_quick() -> None:
    domain = xp.FiniteSet(range(100_000))
    query = xp.randomized_response(epsilon="0.1")
    transcript = xp.Transcript(domain)
    for _ in range(200):
        transcript = transcript.add(query, 7)
    posterior = xp.knowledge.Belief.uniform(domain).updated(transcript)
    assert posterior.probability(7) > 0.999
    assert len(set(posterior.weights)) == 2
