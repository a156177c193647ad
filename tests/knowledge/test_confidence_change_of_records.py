"""What was learned about records: priors from files, and what is assumed beside them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import expost as xp
from expost.errors import InvalidInput
from expost.knowledge import RecordBelief, confidence_change, load_prior
from expost.report._learned_page import learned_page, learned_sentences

PERSON = xp.Attributes(
    region=["north", "south"],
    smokes=xp.changing(["no", "yes"], times=1),
    age=[20, 40],
    mood=xp.changing(["good", "bad"]),
)
TRUTH = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])


def prior(tmp_path: Path, text: str) -> RecordBelief:
    file = tmp_path / "prior.csv"
    file.write_text(text)
    found = load_prior(file, PERSON)
    assert isinstance(found, RecordBelief)
    return found


def test_a_prior_of_some_attributes_leaves_the_others_uniform(tmp_path: Path) -> None:
    belief = prior(tmp_path, "age,region,count,comment\n20,north,3,x\n40,south,1,y\n")
    assert belief.marginal("region").probability("south") == Fraction(1, 4)
    assert belief.marginal("region", "age").probability(("north", 20)) == Fraction(3, 4)
    assert belief.marginal("mood", at=7).probability("bad") == Fraction(1, 2)


def test_a_prior_of_what_changes_freely_is_that_of_every_step(tmp_path: Path) -> None:
    belief = prior(tmp_path, "mood,probability\ngood,0.9\nbad,0.1\n")
    asked = xp.Transcript(PERSON).add_position(TRUTH.about("mood", at=1), 1)
    after = belief.updated(asked)
    assert after.marginal("mood", at=1).probability("bad") == Fraction(1, 4)
    assert after.marginal("mood", at=2).probability("bad") == Fraction(1, 10)


def test_what_was_learned_says_what_the_prior_takes_for_granted(tmp_path: Path) -> None:
    belief = prior(tmp_path, "region,count\nnorth,3\nsouth,1\n")
    transcript = (
        xp.Transcript(PERSON, xp.BayesianFilter(epsilon=3))
        .add_position(TRUTH.about("region"), 1)
        .add_position(TRUTH.about("smokes", at=2), 1)
        .add_position(TRUTH.about("smokes", at=5), 1)
    )
    replay = xp.replay(transcript)
    found = confidence_change(replay, belief, 'region == "south" and smokes at 3 == "yes"')
    # Of the histories nnn, nny, nyy, ynn, yyn and yyy half have a yes at step 3; the responses are
    # in the proportions 1, 3, 3, 3, 3 and 9.
    assert found.before == Fraction(1, 8)
    assert found.after == pytest.approx(1 / 2 * (3 + 3 + 9) / (1 + 3 + 3 + 3 + 3 + 9))
    assert list(learned_sentences(found, replay))[-1] == (
        "The prior assumes that all allowed histories of smokes at steps 2, 3 and 5 are equally "
        "likely."
    )
    page = learned_page(found, replay, name="a.json", prior="p.csv", date="today")
    assert "all allowed histories of smokes" in page
    assert found.tree()["assumed"] == found.assumed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regoin,count\nnorth,1\n", "has no column for any of region, smokes, age, mood"),
        ("region,count\nwest,1\n", "row 1 below the header: is not a value of the domain"),
        ("region,region,count\nnorth,north,1\n", "column 'region' appears twice"),
        ("region\nnorth\n", "must have one of the columns probability, count"),
        ("smokes,count\nno,1\n", "smokes, whose changes are limited"),
        ("region,mood,count\nnorth,good,1\n", "mood changes, and a joint table is for"),
    ],
)
def test_a_prior_of_attributes_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        prior(tmp_path, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
