"""The two records that responses tell apart most, against all records listed."""

from __future__ import annotations

import math
import random

import pytest

import expost as xp
from expost.loss._log_likelihood import ExtremePair
from expost.loss._on_set import SetLogLikelihood
from expost.numbers import UNIT
from expost.solver import Effort
from support.record_cases import likelihoods, list_records, matching_indices, random_record_case

TRUTH = xp.randomized_response(epsilon=1)


def extreme_pair(transcript: xp.Transcript) -> ExtremePair | None:
    return xp.Odometer(transcript).log_likelihood.extreme_pair(Effort())


def check(transcript: xp.Transcript, steps: tuple[int, ...]) -> None:
    """Every record that fits the two is an extreme one."""
    domain = transcript.domain
    assert isinstance(domain, xp.Attributes)
    records = list_records(domain, steps)
    weights = likelihoods(transcript, records)
    found = extreme_pair(transcript)
    if found is None:
        assert max(weights) in (0, min(weights))
        return
    for value, extreme in ((found.likeliest, max(weights)), (found.unlikeliest, min(weights))):
        assert isinstance(value, dict)
        assert {weights[place] for place in matching_indices(value, records)} == {extreme}


@pytest.mark.parametrize("block", range(2))
def test_two_records_are_extreme_ones_among_all_listed(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        case = random_record_case(random.Random(seed))
        check(case.transcript, case.steps)


def test_two_records_are_right_where_responses_rule_combinations_out() -> None:
    domain = xp.Attributes(
        a=["x", "y"],
        b=xp.changing([0, 1, 2], times=1),
        c=xp.changing(xp.integers(0, 2), max_step=1),
    )
    generator, steps = random.Random(7), (1, 2, 3)
    for _ in range(40):
        transcript = xp.Transcript(domain)
        for _ in range(generator.randint(1, 4)):
            names = generator.sample(["a", "b", "c"], generator.randint(1, 2))
            rows = [["0", "1"], ["1/3", "2/3"], ["1/2", "1/2"], ["3/4", "1/4"]]
            size = len(domain.part(tuple(names)))
            query = xp.channel([["2/5", "3/5"], *generator.choices(rows, k=size - 1)])
            step = generator.choice(steps) if names != ["a"] else None
            transcript = transcript.add_position(
                query.about(*names, at=step), generator.randrange(2)
            )
        check(transcript, steps)


def test_what_was_not_asked_about_is_not_in_them() -> None:
    domain = xp.Attributes(
        region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1), age=xp.integers(18, 99)
    )
    transcript = xp.Transcript(domain).add(TRUTH.about("smokes", at=4), "yes")
    found = extreme_pair(transcript)
    assert found is not None
    assert (found.likeliest, found.unlikeliest) == ({"smokes": {4: "yes"}}, {"smokes": {4: "no"}})


def test_what_makes_no_difference_is_the_same_in_both() -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=["no", "yes"], drinks=["no", "yes"])
    both = TRUTH.about("smokes", "drinks")
    transcript = (
        xp.Transcript(domain)
        .add(TRUTH.about("region"), "n")
        .add(TRUTH.about("region"), "s")
        .add(both, ("yes", "yes"))
        .add(both, ("yes", "yes"))
    )
    found = extreme_pair(transcript)
    assert found is not None
    assert isinstance(found.likeliest, dict)
    assert isinstance(found.unlikeliest, dict)
    assert found.likeliest["region"] == found.unlikeliest["region"]
    # One of the two attributes is enough to make the responses least likely.
    differ = [k for k in found.likeliest if found.likeliest[k] != found.unlikeliest[k]]
    assert differ in (["smokes"], ["drinks"])


def test_a_history_that_is_made_more_alike_still_keeps_within_its_changes() -> None:
    """Some steps make no difference, but taking all of them over would be too many changes."""
    domain = xp.Attributes(smokes=xp.changing(["no", "yes"], times=1))
    steps = (1, 2, 3, 4, 5, 6)
    for order in (1, -1):
        transcript = xp.Transcript(domain)
        answers = ["yes", "yes", "yes", "no", "no", "no"][::order]
        for step, answer in zip(steps, answers, strict=True):
            transcript = transcript.add(TRUTH.about("smokes", at=step), answer)
        for step, answer in zip(steps[1:-1], answers[1:-1], strict=True):
            other = "no" if answer == "yes" else "yes"
            transcript = transcript.add(TRUTH.about("smokes", at=step), other)
        check(transcript, steps)


def test_a_history_that_is_ruled_out_keeps_within_its_changes() -> None:
    domain = xp.Attributes(smokes=xp.changing(["no", "yes"], times=0))
    sure = xp.channel([["0", "1"], ["1/2", "1/2"]])
    transcript = (
        xp.Transcript(domain)
        .add(TRUTH.about("smokes", at=1), "yes")
        .add_position(sure.about("smokes", at=2), 0)
    )
    found = extreme_pair(transcript)
    assert found is not None
    assert found.likeliest == {"smokes": {1: "yes", 2: "yes"}}
    assert found.unlikeliest == {"smokes": {1: "no", 2: "no"}}
    assert found.difference == math.inf


def test_the_error_counts_values_that_are_far_below_but_not_ruled_out() -> None:
    """Where some value is impossible, sums of the others still round."""
    domain = xp.FiniteSet(["a", "b", "c", "d"])
    rows = [["4/9", "1/9", "4/9"], ["1/9", "4/9", "4/9"], ["1/9", "1/9", "7/9"], ["0", "0", "1"]]
    query, total = xp.channel(rows), SetLogLikelihood.flat(domain)
    rounded = 0.0
    for number in range(200):
        total = total.add(query, number % 2)
        rounded += UNIT * abs(float(total.values[2]))
    assert abs(total.values[0]) < 1 < 100 < -total.values[2]
    assert total.error >= rounded


def test_nothing_is_apart_where_answers_cancel() -> None:
    domain = xp.Attributes(region=["n", "s"])
    query = TRUTH.about("region")
    assert extreme_pair(xp.Transcript(domain).add(query, "n").add(query, "s")) is None
