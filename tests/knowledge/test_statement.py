"""Statements, confidence in them, and beliefs that must agree with what is known."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp

AGES = xp.FiniteSet([20, 40, 60])
PEOPLE = xp.FiniteSet([(20, 0), (60, 0), (60, 1)], names=["age", "sex"])


def test_the_die_of_section_2_2() -> None:
    dice = xp.FiniteSet([6, 4])
    one = xp.knowledge.Statement(dice, {6: "1/6", 4: "1/4"})
    assert xp.knowledge.confidence(
        xp.knowledge.Belief(dice, {6: "0.5", 4: "0.5"}), one
    ) == Fraction(5, 24)


@pytest.mark.parametrize(
    "says",
    [
        "value >= 30",
        lambda value: value >= 30,
        {40: 1, 60: True},
        [0, 1, 1],
        [False, np.True_, np.int64(1)],
        np.array([0.0, 1.0, 1.0]),
    ],
)
def test_one_statement_said_in_several_ways(says: Any) -> None:
    statement = xp.knowledge.Statement(AGES, says)
    assert statement == xp.knowledge.Statement(AGES, "not value < 30")
    assert statement.is_predicate
    assert list((~statement).probabilities) == [1, 0, 0]
    assert xp.knowledge.confidence(xp.knowledge.Belief.uniform(AGES), statement) == Fraction(2, 3)


def test_a_function_of_named_coordinates_gets_them_by_name() -> None:
    statement = xp.knowledge.Statement(
        PEOPLE, lambda person: person["age"] >= 60 and person["sex"] == 1
    )
    assert list(statement.probabilities) == [0, 0, 1]
    assert repr(statement) == "Statement(about 3 values)"


@pytest.mark.parametrize(
    ("says", "line"),
    [
        ("age >= 30", "statement column 1: unknown name 'age'; known: value"),
        ([0, 1], "statement: has 2 probabilities for 3 values"),
        ([0, 1, 2], "statement[2]: a probability must be between 0 and 1, not 2"),
        ({30: 1}, "statement[0]: is not a value of the domain"),
        ({20: -1}, "statement[0]: a probability must be between 0 and 1, not -1"),
        (lambda value: "x", "statement: 'x' is not a number; write 0.5 or 1/3"),
        (None, "statement: must be a list"),
    ],
)
def test_a_bad_statement_gets_one_line(says: Any, line: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.knowledge.Statement(AGES, says)
    assert str(error.value) == line


def test_statement_and_belief_must_be_about_the_same_domain() -> None:
    with pytest.raises(xp.InvalidInput, match="different domains"):
        xp.knowledge.confidence(
            xp.knowledge.Belief.uniform(PEOPLE), xp.knowledge.Statement(AGES, [0, 1, 1])
        )
    with pytest.raises(xp.InvalidInput, match="must be a Statement, not str"):
        xp.knowledge.confidence(xp.knowledge.Belief.uniform(AGES), "value > 30")  # type: ignore[arg-type]


def test_a_belief_can_be_held_against_what_is_known() -> None:
    belief = xp.knowledge.Belief(PEOPLE, ["1/2", "1/3", "1/6"])
    old, woman = (
        xp.knowledge.Statement(PEOPLE, "age >= 60"),
        xp.knowledge.Statement(PEOPLE, "sex == 1"),
    )
    belief.check(old, "1/2")
    belief.check(woman, "1/3", condition=old)
    with pytest.raises(xp.InvalidInput, match=r"^the belief has 1/2 here, not 3/5$"):
        belief.check(old, "0.6")
    with pytest.raises(xp.InvalidInput, match=r"^the belief has 1/3 here, not 1/2$"):
        belief.check(woman, 0.5, condition=old)
    with pytest.raises(xp.InvalidInput, match=r"^the belief rules out what is given$"):
        belief.check(old, 1, condition=xp.knowledge.Statement(PEOPLE, "age > 90"))
    with pytest.raises(xp.InvalidInput, match="true or false of each value"):
        belief.check(old, 1, condition=xp.knowledge.Statement(PEOPLE, [0.5, 1, 1]))
    with pytest.raises(xp.InvalidInput, match=r"^probability: a probability must be between"):
        belief.check(old, 2)
