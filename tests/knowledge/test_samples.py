"""Beliefs on boxes, by samples."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp

LOOSE: Any = xp
"""Not typed, for the sake of bad input."""

BOX = xp.Box(age=(0, 100), sex=xp.integers(0, 1), region=xp.categories("north", "south"))
QUERY = xp.linear({"age": 0.01, "sex": 0.1}, range=(0, 1.2), epsilon=1)


def people(count: int, seed: int = 1) -> list[dict[str, Any]]:
    source = random.Random(seed)
    return [
        {
            "age": source.triangular(0, 100, 30),
            "sex": source.randrange(2),
            "region": source.choice(["north", "south"]),
        }
        for _ in range(count)
    ]


def chance(person: dict[str, Any], response: float) -> float:
    """Pr(response | person), by the formula of section 2.5."""
    e, share = math.e, float(0.01 * person["age"] + 0.1 * person["sex"]) / 1.2
    high = ((e - 1) * share + 1) / (e + 1)
    return high if response == 1.2 else 1 - high


def test_samples_are_weighed_by_the_likelihood() -> None:
    rows = people(400)
    transcript = xp.Transcript(BOX).add(QUERY, 1.2).add(QUERY, 1.2).add(QUERY, 0)
    found = xp.knowledge.estimated_gain(
        xp.knowledge.Samples(BOX, rows), 'age >= 60 and region == "north"', transcript
    )
    true = [row["age"] >= 60 and row["region"] == "north" for row in rows]
    weights = [chance(row, 1.2) ** 2 * chance(row, 0) for row in rows]
    after = sum(w for w, f in zip(weights, true, strict=True) if f) / sum(weights)
    assert found.before == Fraction(sum(true), 400)
    assert found.after == pytest.approx(after, rel=1e-12)
    assert found.gain == pytest.approx(math.log(after / found.before), rel=1e-9)
    same = xp.knowledge.estimated_gain(
        xp.knowledge.Samples(BOX, [list(row.values()) for row in rows]),
        lambda person: person["age"] >= 60 and person["region"] == "north",
        transcript,
    )
    assert same == found


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0, 1.2]), min_size=1, max_size=6), st.integers(0, 100))
def test_the_gain_is_within_the_loss_and_the_confidence_in_its_range(
    responses: list[float], seed: int
) -> None:
    transcript = xp.Transcript(BOX)
    for response in responses:
        transcript = transcript.add(QUERY, response)
    samples = xp.knowledge.Samples(BOX, people(30, seed))
    found = xp.knowledge.estimated_gain(samples, f"age >= {samples.points[0][0]!r}", transcript)
    loss = xp.realized_loss(transcript)
    assert abs(found.gain) <= loss.upper + 1e-12
    allowed = xp.knowledge.allowed_confidence(found.before, loss)
    assert allowed.lower - 1e-12 <= found.after <= allowed.upper + 1e-12


def test_the_standard_error_is_that_of_repeated_samples() -> None:
    transcript = xp.Transcript(BOX).add(QUERY, 1.2).add(QUERY, 1.2)
    runs = [
        xp.knowledge.estimated_gain(
            xp.knowledge.Samples(BOX, people(300, seed)), "age >= 50", transcript
        )
        for seed in range(300)
    ]
    gains = [run.gain for run in runs]
    mean = sum(gains) / len(gains)
    spread = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / (len(gains) - 1))
    stated = sum(run.standard_error for run in runs) / len(runs)
    # The spread of 300 runs is itself off by 1/√600, or 4 %; this is three times that.
    assert stated == pytest.approx(spread, rel=0.13)


def test_a_statement_that_is_always_true_gains_nothing_for_sure() -> None:
    transcript = xp.Transcript(BOX).add(QUERY, 0)
    found = xp.knowledge.estimated_gain(
        xp.knowledge.Samples(BOX, people(20)), "age >= 0", transcript
    )
    assert [found.before, found.after, found.gain] == [1, 1, 0]
    assert found.standard_error == pytest.approx(0, abs=1e-12)


def test_plain_boxes_and_frames() -> None:
    polars = pytest.importorskip("polars")
    box = xp.Box([(0, 1), (0, 1)])
    query = xp.linear([1, 0], range=(0, 1), epsilon=1)
    samples = xp.knowledge.Samples(box, [(0.1, 0.2), (0.9, 0.3), (0.4, 0.9)])
    transcript = xp.Transcript(box).add(query, 1)
    text = xp.knowledge.estimated_gain(samples, "x0 >= 0.4", transcript)
    assert text == xp.knowledge.estimated_gain(samples, lambda point: point[0] >= 0.4, transcript)
    frame = polars.DataFrame(people(5))
    assert xp.knowledge.Samples(BOX, frame).points == xp.knowledge.Samples(BOX, people(5)).points
    assert repr(samples) == "Samples(3 points)"


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: LOOSE.knowledge.Samples(xp.FiniteSet([1]), [1, 1]),
            "must be a Box, not FiniteSet",
        ),
        (
            lambda: xp.knowledge.Samples(BOX, [(20, 1, "north"), (20, 2, "north")]),
            "rows[1]: is not a point of the box",
        ),
        (lambda: xp.knowledge.Samples(BOX, people(1)), "rows: at least two points are needed"),
        (
            lambda: xp.knowledge.estimated_gain(
                xp.knowledge.Samples(BOX, people(9)), "age > 200", xp.Transcript(BOX)
            ),
            "the statement holds for none of the samples",
        ),
        (
            lambda: xp.knowledge.estimated_gain(
                xp.knowledge.Samples(BOX, people(9)), "agee > 2", xp.Transcript(BOX)
            ),
            "statement column 1: unknown name 'agee'; known: age, sex, region",
        ),
        (
            lambda: xp.knowledge.estimated_gain(
                xp.knowledge.Samples(BOX, people(9)), 7, xp.Transcript(BOX)
            ),
            "statement: must be a string or a function, not int",
        ),
        (
            lambda: xp.knowledge.estimated_gain(
                xp.knowledge.Samples(BOX, people(9)), lambda person: 1, xp.Transcript(BOX)
            ),
            "statement: must return True or False",
        ),
        (
            lambda: xp.knowledge.estimated_gain(
                xp.knowledge.Samples(BOX, people(9)), "age > 2", xp.Transcript(xp.Box(age=(0, 1)))
            ),
            "the transcript and the samples have different domains",
        ),
    ],
)
def test_bad_input_gets_one_line(call: Any, line: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        call()
    assert str(error.value) == line


def test_noise_whose_weights_are_beyond_doubles_is_estimated() -> None:
    box = xp.Box(age=(0, 120))
    query = xp.laplace({"age": 1}, range=(0, 120), grid=1, epsilon=60)
    samples = xp.knowledge.Samples(box, [[50], [55], [60], [110]])
    likelihoods = samples.likelihoods(xp.Transcript(box).add(query, 55))
    expected = [math.exp(-2.5), 1, math.exp(-2.5), math.exp(-27.5)]
    assert likelihoods.tolist() == pytest.approx(expected)
