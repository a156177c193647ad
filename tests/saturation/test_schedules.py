"""Schedules: where losses end after each question, and who is asked which."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.sampling import InsecureSource
from expost.saturation import equal_caps, geometric_caps, sampled_caps


def test_schedules_end_at_the_budget_or_below_it() -> None:
    assert equal_caps("0.9", questions=3) == (Fraction(3, 10), Fraction(6, 10), Fraction(9, 10))
    caps = geometric_caps("0.9")
    first = [next(caps) for _ in range(50)]
    remainder = [Fraction(9, 10), *(Fraction(9, 10) - cap for cap in first)]
    assert all(3 * later == 2 * now for now, later in pairwise(remainder))
    with pytest.raises(xp.InvalidInput, match="questions: must be at least 1"):
        equal_caps(1, questions=0)
    with pytest.raises(xp.InvalidInput, match="epsilon"):
        geometric_caps(-1)


def questions_of(subjects: Any, **options: Any) -> dict[Any, list[int]]:
    questions_found: dict[Any, list[int]] = {subject: [] for subject in subjects}
    for question, turn in enumerate(sampled_caps(1, subjects=subjects, **options)):
        for subject in turn.subjects:
            questions_found[subject].append(question)
    return questions_found


def test_everybody_is_asked_three_of_the_questions_and_ends_at_the_budget() -> None:
    turns = sampled_caps("1.5", questions=7, subjects=range(200), seed="aa")
    assert len(turns) == 7
    caps: dict[Any, list[Fraction]] = {}
    for turn in turns:
        assert list(turn.subjects) == sorted(turn.subjects)
        for subject, cap in zip(turn.subjects, turn.caps, strict=True):
            caps.setdefault(subject, []).append(cap)
    expected = [Fraction(1, 2), Fraction(1), Fraction(3, 2)]
    assert caps == dict.fromkeys(range(200), expected)
    everything = sampled_caps(1, questions=2, subjects=["x"], seed="aa", per_subject=2)
    assert [turn.caps for turn in everything] == [(Fraction(1, 2),), (Fraction(1),)]


def test_all_combinations_are_equally_likely_and_a_matter_of_seed_and_name() -> None:
    drawn = questions_of(range(20_000), questions=6, seed="0102")
    counts = Counter(tuple(subject_questions) for subject_questions in drawn.values())
    assert set(counts) == set(combinations(range(6), 3))
    # Of 20,000 draws each is expected 1,000 times, and the standard deviation is 31.
    assert all(abs(count - 1000) < 5 * 31 for count in counts.values())
    again = questions_of(range(19_999, 100, -1), questions=6, seed="0102")
    assert all(drawn[subject] == subject_questions for subject, subject_questions in again.items())
    other = questions_of(range(20_000), questions=6, seed="0103")
    assert (
        sum(drawn[subject] == subject_questions for subject, subject_questions in other.items())
        < 1500
    )
    assert (
        questions_of(["1", 1], questions=30, seed="05", per_subject=15)["1"]
        != (questions_of(["1", 1], questions=30, seed="05", per_subject=15)[1])
    )


def test_a_panel_asks_each_subject_its_own_three() -> None:
    panel = xp.Panel(
        xp.FiniteSet(range(20)),
        filter=xp.BayesianFilter(epsilon=2),
        subjects=[f"s{question_index}" for question_index in range(300)],
        source=InsecureSource(3),
    )
    values = dict(zip(panel.subjects, np.arange(300) % 20, strict=True))
    turns = sampled_caps(2, questions=6, subjects=panel.subjects, seed="4f1c")
    for question_index, turn in enumerate(turns):
        question = [
            value
            for value in range(20)
            if value % 6 == question_index or value % 5 == question_index
        ]
        ids = panel.saturating(question, cap=turn.caps, subjects=turn.subjects)
        replies = panel.ask(ids, [values[subject] for subject in turn.subjects], turn.subjects)
        assert replies.answered.all()
    assert panel.exchanges.tolist() == [3] * 300
    assert panel.loss.upper == pytest.approx(2, abs=1e-6)
    assert (panel.loss.lower <= 2).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": 2}, "per_subject: 3 of 2 questions are too many"),
        ({"questions": 0}, "questions: must be at least 1"),
        ({"questions": 4, "per_subject": 0}, "per_subject: must be at least 1"),
        ({"questions": 4, "seed": "x"}, "seed: must be 1 to 64 bytes"),
        ({"questions": 4, "subjects": 7}, "subjects: must be strings or integers"),
        ({"questions": 4, "subjects": [None]}, "subjects: must be strings or integers"),
        ({"questions": 4, "subjects": ["\ud800"]}, "subjects: must be strings or integers"),
        ({"questions": 4, "subjects": [10**400]}, "subjects: must be strings or integers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        sampled_caps(1, **{"subjects": ["a"], "seed": "00", **options})
