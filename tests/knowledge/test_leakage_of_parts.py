"""Leakage about a part of a record is that on the finite set of its combinations."""

from __future__ import annotations

import pytest

import expost as xp
from expost import knowledge
from expost.errors import InvalidInput
from expost.knowledge import Belief, RecordBelief, broken_limit

PERSON = xp.Attributes(
    region=["n", "s", "e"], smokes=xp.changing(["no", "yes"], times=1), age=xp.integers(18, 20)
)
REGION = xp.FiniteSet(["n", "s", "e"])
TRUTH = xp.randomized_response(epsilon=1)
GOAL = knowledge.Identity()


def test_queries_about_one_attribute_leak_as_on_its_values() -> None:
    about = [TRUTH.about("region"), xp.unary_encoding(epsilon=1).about("region")]
    plain = [TRUTH, xp.unary_encoding(epsilon=1)]
    assert knowledge.capacity(GOAL, about, PERSON) == knowledge.capacity(GOAL, plain, REGION)
    assert knowledge.bayes_capacity(about[0], PERSON) == knowledge.bayes_capacity(TRUTH, REGION)


def test_responses_about_one_attribute_leak_as_on_its_values() -> None:
    given = xp.Transcript(PERSON).add(TRUTH.about("region"), "s").add(TRUTH.about("region"), "e")
    plain = xp.Transcript(REGION).add(TRUTH, "s").add(TRUTH, "e")
    assert knowledge.capacity(GOAL, given) == knowledge.capacity(GOAL, plain)
    after = RecordBelief(PERSON).updated(given).marginal("region")
    expected = knowledge.posterior_vulnerability(Belief.uniform(REGION), GOAL, plain)
    assert knowledge.vulnerability(after, GOAL) == expected


def test_what_is_about_several_parts_is_refused_in_one_line() -> None:
    both = [TRUTH.about("region"), TRUTH.about("smokes", at=3)]
    message = "one part of a record, and these are about region; smokes at 3"
    with pytest.raises(InvalidInput, match=message):
        knowledge.capacity(GOAL, both, PERSON)
    transcript = xp.Transcript(PERSON).add(both[0], "n").add(both[1], "no")
    with pytest.raises(InvalidInput, match=message):
        knowledge.capacity(GOAL, transcript)
    with pytest.raises(InvalidInput, match="and there are none"):
        knowledge.capacity(GOAL, xp.Transcript(PERSON))
    belief: Belief = RecordBelief(PERSON)  # type: ignore[assignment]
    with pytest.raises(InvalidInput, match=r"of records, belief\.marginal\(…\) about a part"):
        knowledge.vulnerability(belief, GOAL)


def test_a_query_about_an_attribute_that_promises_too_much_is_found() -> None:
    query = TRUTH.about("region")
    assert broken_limit(query, PERSON, 1) is None
    found = broken_limit(query, PERSON, "0.9")
    assert found is not None
    assert found.likeliest in REGION.values
    assert found.gain.lower > 0.9
