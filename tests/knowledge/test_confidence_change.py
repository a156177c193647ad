"""What somebody has learned about a statement."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.knowledge import confidence_change
from support import random_cases

TWO = xp.FiniteSet(["no", "yes"])
FLIP = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]], responses=["no", "yes"])
PRIOR = xp.knowledge.Belief(TWO, {"no": "0.75", "yes": "0.25"})


def test_the_budget_says_what_is_allowed_where_it_is_respected() -> None:
    transcript = xp.Transcript(TWO, xp.BayesianFilter(ratio=9)).add(FLIP, "yes")
    found = confidence_change(xp.replay(transcript), PRIOR, 'value == "yes"')
    assert (found.before, found.after, found.state) == (Fraction(1, 4), 0.5, "respected")
    assert found.allowed.lower == pytest.approx(1 / 28)
    assert found.allowed.upper == pytest.approx(3 / 4)
    assert found.gain == pytest.approx(0.6931471805599453)


@pytest.mark.parametrize("guard", [None, xp.BayesianFilter(ratio=2)])
def test_else_the_loss_does(guard: object) -> None:
    transcript = xp.Transcript(TWO, guard).add(FLIP, "yes")  # type: ignore[arg-type]
    found = confidence_change(xp.replay(transcript), PRIOR, 'value == "yes"')
    assert found.first_refused == (None if guard is None else 1)
    assert found.peak.upper == pytest.approx(1.0986122886681098)
    assert found.state == ("none" if guard is None else "not respected")
    assert found.allowed.lower == pytest.approx(0.1)
    assert found.allowed.upper == pytest.approx(0.5)


def test_what_was_impossible_stays_so() -> None:
    transcript = xp.Transcript(TWO).add(FLIP, "yes")
    found = confidence_change(
        xp.replay(transcript), xp.knowledge.Belief(TWO, {"no": 1}), 'value == "yes"'
    )
    assert (found.gain, found.after, found.allowed) == (None, 0.0, xp.numbers.Enclosure(0.0, 0.0))


@given(random_cases.transcripts(), st.integers(0, 5))
def test_the_confidence_is_where_it_is_allowed_to_be(transcript: xp.Transcript, k: int) -> None:
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    found = confidence_change(
        xp.replay(transcript), xp.knowledge.Belief.uniform(domain), f"value >= {k}"
    )
    assert found.allowed.lower <= found.after <= found.allowed.upper
    if found.gain is not None:
        assert abs(found.gain) <= found.loss.upper
