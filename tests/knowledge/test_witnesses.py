"""Beliefs and statements that come as near to the loss as one likes."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from support import random_cases
from support.box_cases import some_case

TWO = xp.FiniteSet(["no", "yes"])


@given(random_cases.transcripts(), st.sampled_from(["5", "1", "0.1", "1e-6", "1e-40"]))
def test_a_witness_is_within_delta_of_the_loss(transcript: xp.Transcript, delta: str) -> None:
    found = xp.knowledge.witness(transcript, delta)
    ratio = xp.knowledge.gain_ratio(found.belief, found.statement, transcript)
    assert found.loss == xp.Odometer(transcript).exact_loss
    assert Nats(ratio=ratio) <= found.loss <= Nats(Fraction(delta), ratio)
    assert ratio == found.after / found.before
    assert found.gain == xp.knowledge.knowledge_gain(found.belief, found.statement, transcript)
    assert found.before > 0
    assert found.before <= Fraction(1, 2) or found.likeliest == found.unlikeliest


@given(random_cases.transcripts())
def test_the_two_values_are_the_most_and_the_least_likely(transcript: xp.Transcript) -> None:
    found = xp.knowledge.witness(transcript, 1)
    uniform = xp.knowledge.Belief.uniform(found.belief.domain).updated(transcript)
    chances = [uniform.probability(x) for x in uniform.domain.values]
    assert uniform.probability(found.likeliest) == max(chances)
    assert uniform.probability(found.unlikeliest) == min(chances)
    both = found.belief.probability(found.likeliest) + found.belief.probability(found.unlikeliest)
    assert both == 1 or found.likeliest == found.unlikeliest


def test_where_the_loss_is_infinite_something_is_ruled_out() -> None:
    transcript = xp.Transcript(TWO).add(xp.channel([[1, 0], ["1/2", "1/2"]]), 1)
    found = xp.knowledge.witness(transcript, "0.01")
    assert (found.likeliest, found.unlikeliest) == ("yes", "no")
    assert [found.before, found.after] == [Fraction(1, 2), 0]
    assert found.gain == xp.numbers.Enclosure(-math.inf, -math.inf)
    assert found.loss.ratio is None


@given(st.integers(1, 4).flatmap(lambda size: random_cases.exact_rows(size, zeros=True)), st.data())
def test_zeros_in_a_channel_rule_values_out(
    rows: list[list[Fraction]], data: st.DataObject
) -> None:
    domain = xp.FiniteSet(range(len(rows)))
    query = xp.channel(rows)
    response = data.draw(st.sampled_from(list(query.on(domain).responses)))
    assert isinstance(response, int)
    column = [row[response] for row in rows]
    found = xp.knowledge.witness(xp.Transcript(domain).add(query, response), "0.25")
    if min(column) == 0:
        assert found.loss.ratio is None
        assert found.unlikeliest in [x for x, p in enumerate(column) if p == 0]
        assert [found.before, found.after] == [Fraction(1, 2), 0]
    else:
        assert found.loss.ratio == max(column) / min(column)
        assert found.loss <= Nats(Fraction(1, 4), found.after / found.before)


def test_one_value_alone_teaches_nothing() -> None:
    alone = xp.FiniteSet(["only"])
    found = xp.knowledge.witness(xp.Transcript(alone), "0.1")
    assert [found.before, found.after, found.gain] == [1, 1, xp.numbers.Enclosure(0.0, 0.0)]


@pytest.mark.parametrize(
    ("transcript", "delta", "line"),
    [
        (xp.Transcript(TWO), 0, "delta: must be greater than 0, not 0"),
        (xp.Transcript(TWO), "x", "delta: 'x' is not a number; write 0.5 or 1/3"),
        (3, 1, "must be a transcript, not int"),
    ],
)
def test_bad_input_gets_one_line(transcript: Any, delta: Any, line: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.knowledge.witness(transcript, delta)
    assert str(error.value) == line


def test_responses_that_nobody_can_have_given_have_no_witness() -> None:
    certain = xp.channel([[1, 0], [0, 1]])
    with pytest.raises(xp.InvalidInput, match=r"^no value can have given these responses$"):
        xp.knowledge.witness(xp.Transcript(TWO).add(certain, 0).add(certain, 1), 1)


@given(
    random_cases.queries(3),
    st.one_of(st.just(Fraction(0)), st.fractions(0, 3, max_denominator=40)),
)
def test_a_limit_is_broken_exactly_if_the_query_does_not_promise_it(
    query: xp.queries.Query, epsilon: Fraction
) -> None:
    domain = xp.FiniteSet(range(3))
    found = xp.knowledge.broken_limit(query, domain, epsilon)
    promised = query.on(domain).epsilon <= Nats(epsilon)
    assert (found is None) == promised
    if found is not None:
        transcript = xp.Transcript(domain).add(query, found.response)
        ratio = xp.knowledge.gain_ratio(found.belief, found.statement, transcript)
        assert Nats(ratio=ratio) > Nats(epsilon)


def test_a_limit_that_is_missed_by_a_hair_is_broken() -> None:
    query = xp.channel([["2/3", "1/3"], ["1/3", "2/3"]])
    below = Fraction(math.log(2)) - Fraction(1, 10**9)
    found = xp.knowledge.broken_limit(query, TWO, below)
    assert found is not None
    assert Nats(ratio=found.after / found.before) > Nats(below)
    assert xp.knowledge.broken_limit(query, TWO, "0.6931471805599454") is None


def test_a_query_that_can_rule_a_value_out_breaks_every_limit() -> None:
    found = xp.knowledge.broken_limit(xp.channel([[1, 0], ["1/2", "1/2"]]), TWO, 1000)
    assert found is not None
    assert [found.response, found.after] == [1, 0]


def test_a_negative_limit_is_bad_input() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^epsilon: must not be negative$"):
        xp.knowledge.broken_limit(xp.randomized_response(epsilon=1), TWO, -1)


@pytest.mark.parametrize("seed", range(12))
def test_a_witness_on_a_box_is_certified_by_exact_arithmetic(seed: int) -> None:
    transcript = some_case(random.Random(seed), noise=False).transcript
    found = xp.knowledge.witness(transcript, "0.01")
    ratio = Fraction(1)
    for exchange in transcript.exchanges:
        likelihood = exchange.query.on(transcript.domain)
        position = likelihood.position(exchange.response)
        assert position is not None
        points = (transcript.domain.locate(x) for x in (found.likeliest, found.unlikeliest))
        high, low = (likelihood.pmf(point).probability(position) for point in points)
        ratio *= high / low
    assert found.loss == xp.numbers.Nats(ratio=ratio)
    # Bayes' rule by hand, on the two points.
    p = found.before
    assert found.after == p * ratio / (p * ratio + 1 - p)
    assert found.loss.enclosure.lower - Fraction("0.01") <= found.gain.upper
    loss = xp.realized_loss(transcript)
    assert found.loss.enclosure.lower <= loss.upper
    assert found.loss.enclosure.upper >= loss.lower - 1e-6


def test_where_a_box_has_learned_nothing_a_witness_gains_nothing() -> None:
    found = xp.knowledge.witness(
        xp.Transcript(xp.Box(age=(0, 1), region=xp.categories("a", "b"))), 1
    )
    assert found.likeliest == found.unlikeliest == (0.0, "a")
    assert found.before == found.after == 1
