"""Leakage: never above the loss, exact against enumeration, and equal to the qif package's."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import qif as peer
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost import knowledge
from expost.knowledge import Belief
from support.gain_functions import Matrix, Vector, beliefs, gain_functions, gains_of
from support.random_cases import columns, exact_rows, queries, transcripts


def best(gains: Matrix, belief: Vector) -> Fraction:
    return max(sum((q * g for q, g in zip(belief, row, strict=True)), Fraction(0)) for row in gains)


def posterior(belief: Vector, likelihoods: Vector) -> list[Fraction]:
    joint = [q * p for q, p in zip(belief, likelihoods, strict=True)]
    return [q / sum(joint) for q in joint]


def exact_belief(belief: Belief) -> list[Fraction]:
    return [Fraction(weight, sum(belief.weights)) for weight in belief.weights]


def contains_log(enclosure: xp.numbers.Enclosure, ratio: Fraction) -> bool:
    """Whether an enclosure is the doubles next to log(ratio), with a generous margin for libm."""
    if ratio == 0:
        return enclosure == xp.numbers.Enclosure(-math.inf, -math.inf)
    value = math.log(ratio.numerator) - math.log(ratio.denominator)
    error = 1e-13 * (1 + abs(math.log(ratio.numerator)) + abs(math.log(ratio.denominator)))
    return enclosure.lower - error <= value <= enclosure.upper + error


@settings(max_examples=300)
@given(st.data())
def test_a_transcript_leaks_what_enumeration_says_and_never_more_than_its_loss(
    data: st.DataObject,
) -> None:
    transcript = data.draw(transcripts(most=5))
    assert isinstance(transcript.domain, xp.FiniteSet)
    size = len(transcript.domain)
    belief = data.draw(beliefs(transcript.domain))
    gain = data.draw(gain_functions(size))
    gains, prior = gains_of(gain, size), exact_belief(belief)
    before = best(gains, prior)
    assert knowledge.vulnerability(belief, gain) == before
    if before == 0:
        with pytest.raises(xp.InvalidInput, match="no guess gains anything"):
            knowledge.realized_leakage(belief, gain, transcript)
        return
    now, history = prior, knowledge.leakage_history(belief, gain, transcript)
    assert len(history) == len(transcript) + 1
    for enclosure, part in zip(history, prefixes(transcript), strict=True):
        if len(part):
            query, response = part.exchanges[-1].query, part.exchanges[-1].response
            position = query.on(transcript.domain).position(response)
            assert position is not None
            now = posterior(now, columns(query, transcript.domain)[position])
        after = best(gains, now)
        assert knowledge.posterior_vulnerability(belief, gain, part) == after
        assert contains_log(enclosure, after / before)
        assert enclosure == knowledge.realized_leakage(belief, gain, part)
        loss = xp.realized_loss(part).upper
        assert -loss <= enclosure.upper
        assert enclosure.lower <= loss


def prefixes(transcript: xp.Transcript) -> list[xp.Transcript]:
    result = [xp.Transcript(transcript.domain)]
    for exchange in transcript.exchanges:
        result.append(result[-1].add(exchange.query, exchange.response))
    return result


@settings(max_examples=300)
@given(st.data())
def test_average_is_at_most_max_case_is_at_most_the_worst_case_loss(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    domain = xp.FiniteSet(range(size))
    query = data.draw(queries(size))
    belief, gain = data.draw(beliefs(domain)), data.draw(gain_functions(size))
    gains, prior = gains_of(gain, size), exact_belief(belief)
    if best(gains, prior) == 0:
        return
    joint = [[q * p for q, p in zip(prior, c, strict=True)] for c in columns(query, domain)]
    expected = sum((best(gains, q) for q in joint), Fraction(0))
    assert knowledge.expected_vulnerability(belief, gain, query) == expected
    average = knowledge.average_leakage(belief, gain, query)
    most = knowledge.max_case_leakage(belief, gain, query)
    before = best(gains, prior)
    assert contains_log(average, expected / before)
    assert contains_log(most, max(best(gains, q) / sum(q) for q in joint) / before)
    assert average.upper >= 0
    assert average.lower <= most.upper
    assert most.lower <= xp.loss.worst_case_loss(query, domain).upper
    assert average.lower <= knowledge.bayes_capacity(query, domain).upper
    assert (
        knowledge.bayes_capacity(query, domain).lower
        <= xp.loss.worst_case_loss(query, domain).upper
    )


@settings(max_examples=60)
@given(st.data())
def test_queries_that_are_asked_together_leak_as_their_product(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 4))
    domain = xp.FiniteSet(range(size))
    pair = [data.draw(queries(size, 8)), data.draw(queries(size, 8))]
    belief, gain = data.draw(beliefs(domain, zeros=False)), data.draw(gain_functions(size))
    gains, prior = gains_of(gain, size), exact_belief(belief)
    first, second = (columns(query, domain) for query in pair)
    expected = sum(
        (
            best(gains, [q * a * b for q, a, b in zip(prior, one, other, strict=True)])
            for one in first
            for other in second
        ),
        Fraction(0),
    )
    assert knowledge.expected_vulnerability(belief, gain, pair) == expected


def doubles(rows: Any) -> Any:
    return np.array([[float(entry) for entry in row] for row in rows])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_qif_package_finds_the_same(data: st.DataObject) -> None:
    rows = data.draw(st.integers(2, 5).flatmap(exact_rows))
    query, domain = xp.channel(rows), xp.FiniteSet(range(len(rows)))
    belief, gain = data.draw(beliefs(domain)), data.draw(gain_functions(len(rows)))
    matrix, prior = doubles(rows), np.array(belief.probabilities)
    gains = doubles(gains_of(gain, len(rows)))
    theirs = peer.measure.g_vuln.prior(gains, prior)
    assert theirs == pytest.approx(
        float(knowledge.vulnerability(belief, gain)), rel=1e-9, abs=1e-12
    )
    theirs = peer.measure.g_vuln.posterior(gains, prior, matrix)
    assert theirs == pytest.approx(
        float(knowledge.expected_vulnerability(belief, gain, query)), rel=1e-9, abs=1e-12
    )
    if knowledge.vulnerability(belief, gain) > 0:
        theirs = math.log(peer.measure.g_vuln.mult_leakage(gains, prior, matrix))
        ours = knowledge.average_leakage(belief, gain, query).upper
        assert theirs == pytest.approx(ours, rel=1e-9, abs=1e-9)
    theirs = math.log(peer.measure.bayes_vuln.mult_capacity(matrix))
    assert theirs == pytest.approx(
        knowledge.bayes_capacity(query, domain).upper, rel=1e-9, abs=1e-9
    )


def test_many_tries_on_a_large_domain_need_no_sets() -> None:
    domain = xp.FiniteSet(range(10_000))
    belief = Belief.from_counts(domain, range(10_000))
    transcript = xp.Transcript(domain).add(xp.randomized_response(epsilon=2), 17)
    assert knowledge.vulnerability(belief, knowledge.Tries(5000)) == Fraction(
        sum(range(5000, 10_000)), sum(range(10_000))
    )
    leaked = knowledge.realized_leakage(belief, knowledge.Tries(5000), transcript)
    assert -2 <= leaked.lower <= leaked.upper <= 2


def test_a_response_that_rules_a_property_out_leaks_minus_infinity() -> None:
    domain = xp.FiniteSet(["a", "b"])
    transcript = xp.Transcript(domain).add(xp.channel([["1", "0"], ["1/2", "1/2"]]), 1)
    leaked = knowledge.realized_leakage(
        Belief.uniform(domain), knowledge.GainMatrix([[1, 0]]), transcript
    )
    assert leaked == xp.numbers.Enclosure(-math.inf, -math.inf)


def test_astronomically_many_responses_are_refused_in_one_line() -> None:
    domain = xp.FiniteSet(range(100))
    query = xp.unary_encoding(epsilon=1)
    with pytest.raises(xp.InvalidInput, match=r"about 10\^30 responses on 100 values are too many"):
        knowledge.bayes_capacity(query, domain)
    transcript = xp.Transcript(domain).add(query, "01" * 50)
    belief = Belief.uniform(domain)
    leaked = knowledge.realized_leakage(belief, knowledge.Identity(), transcript)
    assert 0 < leaked.lower <= leaked.upper <= xp.realized_loss(transcript).upper


def test_responses_that_say_the_same_are_looked_at_once() -> None:
    domain = xp.FiniteSet(["no", "yes"])
    many = [xp.randomized_response(epsilon="0.1")] * 60
    belief = Belief.uniform(domain)
    # 2^60 sequences of responses, but only the difference of the counts says something.
    assert knowledge.max_case_leakage(belief, knowledge.Identity(), many).upper < math.log(2)
    assert knowledge.average_leakage(belief, knowledge.Identity(), many).lower > 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: knowledge.Tries(0), "count: must be at least 1"),
        (lambda: knowledge.Tries(1.5), "count: must be an integer"),  # type: ignore[arg-type]
        (lambda: knowledge.Nearness(0), "reach: must be greater than 0"),
        (lambda: knowledge.GainMatrix([]), "rows: must be rows of numbers, one row per guess"),
        (lambda: knowledge.GainMatrix([[1, 2]]), r"rows\[0\]\[1\]: must be between 0 and 1"),
        (lambda: knowledge.GainMatrix([[1, 0], [1]]), r"rows\[1\]: has 1 entries, the first row 2"),
        (lambda: knowledge.Property([[1], [2]]), "labels: must be strings, numbers"),  # type: ignore[list-item]
        (lambda: knowledge.Property("abc"), "labels: must be a list"),
    ],
)
def test_gain_functions_that_cannot_be_used_are_refused(make: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        make()


def test_gain_functions_know_which_domains_they_are_about() -> None:
    labels = Belief.uniform(xp.FiniteSet(["a", "b"]))
    with pytest.raises(xp.InvalidInput, match="labels have no distance"):
        knowledge.vulnerability(labels, knowledge.Nearness(1))
    with pytest.raises(xp.InvalidInput, match="labels: 3 for a domain of 2 values"):
        knowledge.vulnerability(labels, knowledge.Property([1, 2, 3]))
    with pytest.raises(xp.InvalidInput, match="rows: have 1 entries for a domain of 2 values"):
        knowledge.vulnerability(labels, knowledge.GainMatrix([[1]]))
    with pytest.raises(xp.InvalidInput, match="must be a gain function"):
        knowledge.vulnerability(labels, "identity")  # type: ignore[arg-type]
    with pytest.raises(xp.InvalidInput, match=r"must be a belief .*, not dict"):
        knowledge.vulnerability({"a": 1}, knowledge.Identity())  # type: ignore[arg-type]


def test_vectors_are_as_far_apart_as_their_coordinates_in_sum() -> None:
    domain = xp.FiniteSet([(0, 0), (1, 0), (1, 0.5)], names=["a", "b"])
    assert knowledge.vulnerability(Belief.uniform(domain), knowledge.Nearness(2)) == Fraction(
        (Fraction(1, 2) + 1 + Fraction(3, 4)), 3
    )
