"""Covariates: groups and weights of subjects, joined to answers by the names of the subjects."""

from __future__ import annotations

import random
from typing import Any

import polars
import pytest

import expost as xp
from expost.answers import Covariates, read_covariates
from support.answer_logs import with_outcomes

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERIES = {"q": xp.randomized_response(epsilon=1), "r": xp.randomized_response(epsilon="1/2")}


def answers_of(subjects: list[Any]) -> xp.Answers:
    table = {
        "subject": subjects,
        "query": ["q"] * len(subjects),
        "response": ["no"] * len(subjects),
    }
    return xp.Answers(DOMAIN, QUERIES, table)


def joined(table: Any, *by: str, weight: str | None = None, subjects: Any = None) -> Covariates:
    return read_covariates(table, answers_of(subjects or ["ann", "bob", "eve"]), by, weight)


@pytest.mark.parametrize("seed", range(5))
def test_selected_answers_are_those_of_a_table_without_the_other_subjects(seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        (subject, draw.choice(["q", "r"]), draw.choice(["no", "yes"]))
        for subject in draw.sample(range(30), 20)
        for _ in range(draw.randrange(1, 4))
    ]
    draw.shuffle(rows)
    without = [(subject, key) for subject in (3, 50) for key in ("q", "r")]
    chosen = {*draw.sample(range(30), 15), 50, 99} | {rows[0][0]}

    def answers(rows: list[Any], without: list[Any]) -> xp.Answers:
        subjects, queries, responses = map(list, zip(*rows, strict=True))
        table = {"subject": subjects, "query": queries, "response": responses}
        return xp.Answers(DOMAIN, QUERIES, with_outcomes(table, without, "declined"))

    selected = answers(rows, without).select(chosen)
    expected = answers(
        [row for row in rows if row[0] in chosen], [pair for pair in without if pair[0] in chosen]
    )
    assert selected.subjects == expected.subjects
    assert selected.responses == expected.responses
    assert selected.codes.tolist() == expected.codes.tolist()
    assert selected.starts.tolist() == expected.starts.tolist()
    assert selected.count_unanswered() == expected.count_unanswered()
    assert selected.evenly() == expected.evenly()


def test_selecting_keeps_what_is_known_of_the_study() -> None:
    table = {"subject": ["a", "b"], "query": ["q"] * 2, "response": ["no"] * 2}
    guard = xp.BayesianFilter(epsilon=1)
    answers = xp.Answers(DOMAIN, QUERIES, table, complete=False, filter=guard)
    assert not answers.select(["a"]).complete
    assert answers.select(["a"]).filter == guard
    with pytest.raises(xp.InvalidInput, match="subjects: none of them has answered anything"):
        answers.select(["c"])


def test_groups_are_the_combinations_of_columns_numbers_before_words() -> None:
    table = {
        "subject": ["ann", "bob", "eve", "joe"],
        "age": ["9", "10", "old", "9"],
        "sex": ["f", "m", "f", "m"],
    }
    assert dict(joined(table, "age").groups) == {"9": {"ann"}, "10": {"bob"}, "old": {"eve"}}
    by_both = joined(table, "age", "sex")
    assert list(by_both.groups) == ["9, f", "9, m", "10, m", "old, f"]
    assert by_both.groups["9, m"] == frozenset()  # joe is in no answers
    assert not by_both.unmatched
    assert by_both.weights is None


def test_subjects_without_covariates_and_in_no_group_are_known() -> None:
    table = {"subject": ["ann", "bob"], "sex": ["f", ""], "w": ["1.5", "2"]}
    result = joined(table, "sex", weight="w")
    assert result.unmatched == {"eve"}
    assert result.ungrouped == {"bob"}
    assert result.weights == {"ann": 1.5, "bob": 2.0}
    alone = joined(table, weight="w")
    assert dict(alone.groups) == {"": {"ann", "bob"}}


@pytest.mark.parametrize("empty", [None, float("nan"), "", " "])
def test_an_empty_cell_is_no_group(empty: object) -> None:
    result = joined({"subject": ["ann", "bob"], "sex": ["f", empty]}, "sex")
    assert list(result.groups) == ["f"]
    assert result.ungrouped == {"bob"}


@pytest.mark.parametrize(
    ("in_answers", "in_table"),
    [
        ([1, 2, 3], ["1", "2", "3.0"]),
        (["1", "2", "3"], [1, 2, 3]),
        (["1", "2", "3"], [1.0, 2.0, 3.0]),
        (["1.0", "2.0", "3.00"], ["1", "2", "3"]),
    ],
)
def test_a_whole_number_names_one_subject_however_it_is_written(
    in_answers: list[Any], in_table: list[Any]
) -> None:
    result = joined({"subject": in_table, "sex": ["f", "m", "m"]}, "sex", subjects=in_answers)
    assert dict(result.groups) == {"f": set(in_answers[:1]), "m": set(in_answers[1:])}
    assert not result.unmatched


@pytest.mark.parametrize("other", ["03", "3.5", "3.", " 3", "³"])
def test_other_texts_are_other_subjects(other: str) -> None:
    result = joined({"subject": ["1", other], "sex": ["f", "m"]}, "sex", subjects=["1", "3"])
    assert result.unmatched == {"3"}


def test_two_subjects_that_one_row_could_mean_are_an_error() -> None:
    with pytest.raises(xp.InvalidInput, match=r"the answers have subjects '3' and '3\.0'"):
        joined({"subject": ["3"], "sex": ["f"]}, "sex", subjects=["3", "3.0"])


def test_frames_have_covariates_as_files_do() -> None:
    frame = polars.DataFrame({"subject": ["ann", "bob"], "adult": [True, None], "w": [1, 2]})
    result = joined(frame, "adult", weight="w")
    assert dict(result.groups) == {"True": {"ann"}}
    assert result.ungrouped == {"bob"}
    assert result.weights == {"ann": 1.0, "bob": 2.0}


@pytest.mark.parametrize("weight", ["", "heavy", "-1", "0", "nan", "inf", None, float("nan"), 0.0])
def test_a_weight_is_a_number_above_zero(weight: object) -> None:
    table = {"subject": ["ann", "bob"], "w": ["1", weight]}
    with pytest.raises(
        xp.InvalidInput, match=r"^row 2: w: got .*; expected a number above 0; delete"
    ):
        joined(table, weight="w")


@pytest.mark.parametrize(
    ("table", "by", "message"),
    [
        ({"subject": ["ann", "bob", "ann"], "sex": list("fmf")}, ["sex"],
         "^row 3: subject: 'ann' appears twice; expected one row per subject"),
        ({"subject": ["1", "1.0"], "sex": list("fm")}, ["sex"], "^row 2: subject: '1' appears"),
        ({"subject": ["ann"], "sex": ["f"]}, ["Sex"], "'Sex' is missing; .*did you mean 'sex'"),
        ({"person": ["ann"], "sex": ["f"]}, ["sex"], "^column 'subject' is missing"),
        ({"subject": ["ann", ""], "sex": list("fm")}, ["sex"], "^row 2: subject: must be a non-"),
        ({"subject": ["joe"], "sex": ["f"]}, ["sex"],
         "^subject: none of these subjects is in the answers, whose subjects are ann, bob, eve$"),
        ({"subject": ["ann"], "sex": [""]}, ["sex"],
         "^no subject of the answers has an entry in sex$"),
        ({"subject": range(200), "income": range(200)}, ["income"],
         "^column 'income': got 200 groups; expected at most 100"),
        ({"subject": ["ann", "bob"], "a": ["x, y", "x"], "b": ["z", "y, z"]}, ["a", "b"],
         "^two groups get the same name"),
        ({"subject": [], "sex": []}, ["sex"], "^there are no rows"),
    ],
)  # fmt: skip
def test_bad_covariates_are_one_clear_line(table: Any, by: list[str], message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        joined(table, *by)
