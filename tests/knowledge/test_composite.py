"""Several objects as one: sections 2.1, 2.2 and 3.2 of the paper."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from support import random_cases

GENE = xp.FiniteSet(["carrier", "none"])
TWINS = xp.knowledge.Composite(ann=GENE, bob=GENE)
ALIKE = TWINS.belief({("carrier", "carrier"): "0.1", ("none", "none"): "0.9"})
FLIP = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]], responses=["carrier", "none"])


def test_a_response_of_one_says_something_of_the_other() -> None:
    after = TWINS.updated(ALIKE, ann=xp.Transcript(GENE).add(FLIP, "carrier"))
    assert TWINS.marginal(ALIKE, "bob").probability("carrier") == Fraction(1, 10)
    assert TWINS.marginal(after, "bob").probability("carrier") == Fraction(3, 12)
    assert TWINS.marginal(after, "bob") == TWINS.marginal(after, "ann")


def test_of_strangers_it_says_nothing() -> None:
    one = xp.knowledge.Belief(GENE, {"carrier": "0.2", "none": "0.8"})
    strangers = TWINS.independent(ann=one, bob=xp.knowledge.Belief.uniform(GENE))
    after = TWINS.updated(strangers, ann=xp.Transcript(GENE).add(FLIP, "none"))
    assert TWINS.marginal(after, "bob") == xp.knowledge.Belief.uniform(GENE)
    assert TWINS.marginal(after, "ann") == one.updated(xp.Transcript(GENE).add(FLIP, "none"))


def test_a_belief_about_several_must_agree_with_what_is_known_of_each() -> None:
    ann = TWINS.statement(lambda ann, bob: ann == "carrier")
    bob = TWINS.statement(lambda ann, bob: bob == "carrier")
    ALIKE.check(ann, "0.1")
    ALIKE.check(bob, 1, condition=ann)
    with pytest.raises(xp.InvalidInput, match=r"^the belief has 1/10 here, not 1/5$"):
        ALIKE.check(bob, "0.2")


@given(random_cases.transcripts(most=3), random_cases.transcripts(most=3), st.data())
def test_statements_about_several_are_bounded_by_the_losses_of_those_who_answered(
    first: xp.Transcript, second: xp.Transcript, data: st.DataObject
) -> None:
    assert isinstance(first.domain, xp.FiniteSet)
    assert isinstance(second.domain, xp.FiniteSet)
    both = xp.knowledge.Composite(one=first.domain, two=second.domain)
    size = len(both.domain)
    counts = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    belief = xp.knowledge.Belief.from_counts(both.domain, data.draw(counts.filter(any)))
    chances = st.lists(st.sampled_from([0, 1, Fraction(1, 4)]), min_size=size, max_size=size)
    statement = xp.knowledge.Statement(both.domain, data.draw(chances))
    before = xp.knowledge.confidence(belief, statement)
    if before == 0:
        statement, before = ~statement, 1 - before
    for seen in ({"one": first}, {"two": second}, {"one": first, "two": second}):
        gain = Nats(ratio=xp.knowledge.confidence(both.updated(belief, **seen), statement) / before)
        loss = sum((xp.Odometer(t).exact_loss for t in seen.values()), start=Nats())
        assert gain <= loss
        assert gain + loss >= Nats()


def test_a_statement_about_the_noise_itself_can_gain_more_than_epsilon() -> None:
    """The condition of section 3.2: given all objects the responses must be epsilon-LDP still."""
    bit = xp.FiniteSet([0, 1])
    flip = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    response = xp.Transcript(bit).add(flip, 1)
    assert xp.Odometer(response).exact_loss == Nats(ratio=Fraction(3))

    # The same query with the noise as a second object: the response is their sum modulo 2.
    world = xp.knowledge.Composite(value=bit, noise=bit)
    query = xp.channel([[int((v != n) == y) for y in (0, 1)] for v, n in world.values])
    likely_zero = xp.knowledge.Belief(bit, {0: "0.99", 1: "0.01"})
    prior = world.independent(
        value=likely_zero, noise=xp.knowledge.Belief(bit, {0: "3/4", 1: "1/4"})
    )
    flipped = world.statement(lambda value, noise: noise == 1)
    seen = xp.Transcript(world.domain).add(query, 1)
    assert world.marginal(prior.updated(seen), "value") == likely_zero.updated(response)
    assert xp.knowledge.gain_ratio(prior, flipped, seen) > 3
    # What the condition asks for is a guarantee on the composite, and there is none.
    assert xp.knowledge.learning_limit(query, world.domain).upper == math.inf

    # An object that the query does not depend on is no such thing.
    rows = {0: ["3/4", "1/4"], 1: ["1/4", "3/4"]}
    other = xp.channel([rows[value] for value in (0, 0, 1, 1)])
    assert xp.knowledge.learning_limit(other, world.domain) == xp.knowledge.learning_limit(
        flip, bit
    )


def test_labels_numbers_and_points_go_together() -> None:
    points = xp.FiniteSet([(20, 0), (60, 1)], names=["age", "sex"])
    family = xp.knowledge.Composite(child=GENE, parent=points, pets=xp.FiniteSet([0, 1, 2]))
    assert repr(family) == "Composite(child, parent, pets: 12 combinations)"
    assert family.values[1] == ("carrier", (20, 0), 1)
    belief = family.belief({("none", (60, 1), 2): 1})
    assert family.marginal(belief, "parent").probability({"age": 60, "sex": 1}) == 1


# Not typed, for the sake of bad input.
LOOSE: Any = xp
TWO: Any = TWINS


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: LOOSE.knowledge.Composite(), "name at least one object with its domain"),
        (lambda: LOOSE.knowledge.Composite(ann=3), "ann: must be a FiniteSet, not int"),
        (
            lambda: LOOSE.knowledge.Composite(
                **{f"o{i}": xp.FiniteSet(range(9)) for i in range(9)}
            ),
            "there are more than 1,048,576 combinations",
        ),
        (
            lambda: TWO.belief({("x", "none"): 1}),
            "probabilities[0]: is not a combination of values",
        ),
        (lambda: TWO.belief({"none": 1}), "probabilities[0]: is not a combination of values"),
        (
            lambda: TWO.belief({("none", "none"): "0.5"}),
            "probabilities: sum to 1/2 below 1",
        ),
        (lambda: TWO.belief([1]), "must be a mapping from combinations to probabilities, not list"),
        (
            lambda: TWO.independent(ann=xp.knowledge.Belief.uniform(GENE)),
            "give a belief for each of ann, bob",
        ),
        (
            lambda: TWO.independent(ann=ALIKE, bob=ALIKE),
            "ann: has another domain",
        ),
        (lambda: TWO.marginal(ALIKE, "eve"), "unknown object 'eve'; known: ann, bob"),
        (
            lambda: TWO.marginal(xp.knowledge.Belief.uniform(GENE), "ann"),
            "the belief is not about these objects",
        ),
        (
            lambda: TWO.updated(ALIKE, eve=xp.Transcript(GENE)),
            "unknown object 'eve'; known: ann, bob",
        ),
        (
            lambda: TWO.updated(ALIKE, ann=xp.Transcript(xp.FiniteSet([1, 2]))),
            "ann: has another domain",
        ),
    ],
)
def test_bad_input_gets_one_line(call: Any, line: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        call()
    assert str(error.value) == line
