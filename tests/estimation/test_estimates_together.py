"""Distributions of chosen attributes, estimated together with all that was asked about."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimation import estimate_distribution
from expost.estimation._support import record_support

COIN = xp.randomized_response(epsilon="1")
PERSON = xp.Attributes(smokes=["no", "yes"], region=["n", "s", "w"], drinks=["no", "yes"])
QUERIES = {
    "smokes": COIN.about("smokes"),
    "both": COIN.about("region", "smokes"),
    "drinks": COIN.about("drinks"),
}


def chance(response: Any, value: Any, size: int) -> float:
    """Randomized response with epsilon 1, from its formula."""
    return (np.e if response == value else 1.0) / (np.e + size - 1)


def answers_of(rows: list[tuple[int, str, Any]]) -> xp.Answers:
    subject, query, response = map(list, zip(*rows, strict=True))
    table = {"subject": subject, "query": query, "response": response}
    return xp.Answers(PERSON, QUERIES, table)


ROWS: list[tuple[int, str, Any]] = [
    (1, "smokes", "no"), (1, "both", ("s", "yes")), (1, "drinks", "no"),
    (2, "both", ("n", "no")), (2, "both", ("n", "no")),
    (3, "drinks", "yes"), (3, "smokes", "yes"),
    (4, "both", ("w", "yes")), (4, "drinks", "yes"), (4, "drinks", "no"),
    (5, "smokes", "yes"), (5, "smokes", "yes"), (5, "smokes", "yes"),
]  # fmt: skip


def test_the_joint_likelihood_of_all_that_was_asked_about_is_largest() -> None:
    estimate = estimate_distribution(answers_of(ROWS), about="smokes", gap=1e-9)
    joint = estimate_distribution(answers_of(ROWS), about=["smokes", "region", "drinks"], gap=1e-9)
    assert estimate.probabilities == pytest.approx(
        joint.probabilities.reshape(2, 3, 2).sum(axis=(1, 2)), abs=1e-4
    )
    records = list(itertools.product(["no", "yes"], ["n", "s", "w"], ["no", "yes"]))
    rows = np.ones((5, len(records)))
    for subject, query, response in ROWS:
        for index, (smokes, region, drinks) in enumerate(records):
            value, size = {
                "smokes": (smokes, 2), "drinks": (drinks, 2), "both": ((region, smokes), 6)
            }[query]  # fmt: skip
            rows[subject - 1, index] *= chance(response, value, size)
    slopes = (rows / (rows @ joint.probabilities)[:, None]).sum(axis=0)
    assert slopes.max() <= 5 + 1e-6
    assert estimate.model == "smokes, region and drinks together: 12 combinations"
    assert "model: smokes, region and drinks together" in repr(estimate)


def test_of_a_part_of_answers_it_is_the_sum_over_the_rest() -> None:
    two = answers_of(ROWS).about("smokes", "region", planned=True)
    joint = estimate_distribution(two)
    alone = estimate_distribution(two, about="region")
    assert alone.probabilities == pytest.approx(
        joint.probabilities.reshape(2, 3).sum(axis=0), abs=1e-9
    )
    assert list(alone.domain.values) == ["n", "s", "w"]
    lower = alone.intervals().lower
    assert lower == pytest.approx([joint.intervals([j, i, k] * 2).lower[0] for j, i, k in
                                   [(1, 0, 0), (0, 1, 0), (0, 0, 1)]], abs=1e-6)  # fmt: skip


def filtered(subjects: int, seed: int) -> xp.Answers:
    """Drinking is asked about of those who seem to smoke and a few others; the two go together."""
    draw = np.random.default_rng(seed)
    smokes = draw.random(subjects) < 0.5
    drinks = np.where(smokes, draw.random(subjects) < 0.9, draw.random(subjects) < 0.1)
    flip = 1 / (1 + np.e)
    rows: list[tuple[int, str, Any]] = []
    for subject in range(subjects):
        said = smokes[subject] ^ (draw.random() < flip)
        rows.append((subject, "smokes", "yes" if said else "no"))
        if said or subject % 8 == 0:
            again = drinks[subject] ^ (draw.random() < flip)
            rows.append((subject, "drinks", "yes" if again else "no"))
    return answers_of(rows)


def test_answers_about_others_that_decided_who_was_asked_are_taken_into_account() -> None:
    answers = filtered(6_000, 3)
    estimate = estimate_distribution(answers, about="drinks")
    ends = estimate.intervals()
    assert ends.lower[1] < 0.5 < ends.upper[1]
    assert ends.standard_error[1] < 0.03
    assert estimate.identified.all()
    with pytest.warns(UserWarning, match="incomplete"):
        biased = estimate_distribution(answers.about("drinks"))
    assert biased.probabilities[1] > 0.6
    assert estimate.provenance.doubts == ()


def changes(history: tuple[int, ...]) -> int:
    return sum(a != b for a, b in itertools.pairwise(history))


def histories(values: int, steps: list[int], allowed: Any) -> set[tuple[int, ...]]:
    all_histories = itertools.product(range(values), repeat=len(steps))
    return {history for history in all_histories if allowed(history)}


@pytest.mark.parametrize("times", [0, 1, 2])
def test_histories_are_those_with_so_many_changes(times: int) -> None:
    domain = xp.Attributes(app=xp.changing(["a", "b", "c"], times=times))
    steps = [1, 4, 5, 9]
    support = record_support(domain, [("app", step) for step in steps])
    estimate = list(zip(*(support.indices[("app", step)].tolist() for step in steps), strict=True))
    assert len(estimate) == len(set(estimate))
    assert set(estimate) == histories(3, steps, lambda h: changes(h) <= times)


def test_histories_with_a_largest_step_depend_on_how_far_apart_steps_are() -> None:
    domain = xp.Attributes(age=xp.changing(xp.integers(0, 5), max_step=1))
    support = record_support(domain, [("age", 1), ("age", 3)])
    pairs = set(zip(support.indices[("age", 1)], support.indices[("age", 3)], strict=True))
    assert pairs == {(a, b) for a in range(6) for b in range(6) if abs(a - b) <= 2}


def test_without_a_limit_steps_are_on_their_own_and_constants_are_shared() -> None:
    domain = xp.Attributes(app=xp.changing(["a", "b"]), region=["n", "s", "w"])
    support = record_support(domain, [("app", 1), ("app", 2), ("region", None)])
    assert len(support) == 12
    assert len(set(zip(*support.indices.values(), strict=True))) == 12


def test_a_step_under_a_filter_is_estimated_from_the_histories() -> None:
    """The app is updated once at most, and asked about twice in each of three weeks."""
    draw, subjects = np.random.default_rng(4), 6_000
    domain = xp.Attributes(app=xp.changing(["old", "new"], times=1))
    panel = xp.Panel(domain, subjects=range(subjects), filter=xp.BayesianFilter(epsilon="1.5"))
    updated = draw.integers(1, 6, subjects)  # never, for those above three
    for week in (1, 1, 2, 2, 3, 3):
        said = (updated <= week) ^ (draw.random(subjects) < 1 / (1 + np.exp(0.5)))
        query = xp.randomized_response(epsilon="0.5").about("app", at=week)
        fits = panel.decide(query).accepted
        panel.record(query, np.where(said, "new", "old")[fits], np.flatnonzero(fits))
    answers = panel.answers()
    assert len(answers.codes) < 6 * subjects
    for week in (1, 2, 3):
        estimate = estimate_distribution(answers, about="app", at=week)
        ends = estimate.intervals()
        true = week / 5
        assert ends.lower[1] < true < ends.upper[1]
        assert ends.standard_error[1] < 0.05
        assert estimate.model == "app at steps 1, 2 and 3 together: 6 combinations"


def test_what_cannot_be_estimated_is_one_line() -> None:
    wide = xp.Attributes(**{name: xp.integers(0, 9) for name in "abcd"})
    queries = {name: COIN.about(name) for name in "abcd"}
    table = {"subject": [1] * 4, "query": list("abcd"), "response": [0] * 4}
    answers = xp.Answers(wide, queries, table)
    for about, step, message in [
        ("a", None, "domain: got more than 1,500 combinations of a, b, c and d; expected at most"),
        ("x", None, "about: unknown attribute 'x'"),
        ("a", 3, "at: a does not change"),
        ([], None, "about: must name at least one"),
    ]:
        with pytest.raises(xp.InvalidInput) as raised:
            estimate_distribution(answers, about=about, at=step)
        assert str(raised.value).startswith(message), raised.value
    with pytest.raises(xp.InvalidInput, match="no subject answered about drinks"):
        estimate_distribution(answers_of(ROWS[3:5]), about="drinks")
    with pytest.raises(xp.InvalidInput, match="a finite set has no attributes"):
        estimate_distribution([(COIN, 0)], domain=xp.FiniteSet(range(2)), about="a")
    long = xp.Attributes(app=xp.changing(range(10), times=3))
    subjects = {str(week): COIN.about("app", at=week) for week in range(1, 8)}
    rows = {"subject": [1] * 7, "query": list(subjects), "response": [0] * 7}
    with pytest.raises(
        xp.InvalidInput, match="got more than 1,500 histories of app over the 7 steps"
    ):
        estimate_distribution(xp.Answers(long, subjects, rows), about="app", at=2)
