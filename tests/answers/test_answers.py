"""A table of answers: all ways to write it are read alike, and what cannot be names its row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost.answers import queries_from_json
from expost.queries import Query

BOX = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
QUERIES: dict[str, Query] = {
    "old": xp.logistic({"age": 1}, intercept=-50, epsilon=1),
    "sleep": xp.linear({"age": 0.1, "sex": 1}, range=(0, 12), clip=True, epsilon=1),
}
TABLE: dict[str, list[Any]] = {
    "subject": ["b", "a", "b", "b"],
    "query": ["old", "sleep", "sleep", "old"],
    "response": [1, 12, 0, 0],
}


def exchanges(answers: xp.Answers) -> dict[Any, list[tuple[Query, Any]]]:
    return {
        subject: [(e.query, e.response) for e in answers.transcript(subject).exchanges]
        for subject in answers.subjects
    }


def test_rows_are_put_together_by_subject_in_their_order() -> None:
    answers = xp.Answers(BOX, QUERIES, TABLE)
    old, sleep = QUERIES.values()
    assert exchanges(answers) == {"b": [(old, 1), (sleep, 0), (old, 0)], "a": [(sleep, 12)]}
    assert answers.exchanges.tolist() == [3, 1]
    assert repr(answers) == "Answers(2 subjects, 4 responses)"


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame(TABLE),
        pl.DataFrame(TABLE).with_columns(pl.col("response").cast(pl.String)),
        pl.DataFrame(TABLE).with_columns(pl.col("query").cast(pl.Categorical)),
        pl.DataFrame(TABLE).with_columns(pl.col("response").cast(pl.Float32)),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE, index=[3, 3, 1, 0]),
        pd.DataFrame(TABLE).astype({"query": "category", "response": "Int64"}),
        pd.DataFrame(TABLE).astype(object),
        {name: tuple(column) for name, column in TABLE.items()},
        {name: np.array(column) for name, column in TABLE.items()},
        {**TABLE, "response": ["1", 12.0, " 0", np.int8(0)], "more": [None]},
        {**TABLE, "response": ["1.0", "1.2e1", "0", "-0"]},
    ],
    ids=range(12),
)
def test_frames_and_mappings_are_read_alike(table: Any) -> None:
    answers = xp.Answers(BOX, QUERIES, table)
    assert exchanges(answers) == exchanges(xp.Answers(BOX, QUERIES, TABLE))
    assert len(answers.responses) == 4


def test_random_tables_against_a_plain_grouping() -> None:
    generator = random.Random(1)
    domain = xp.FiniteSet(["x", "y", 3, 4.5])
    queries: dict[str, Query] = {str(i): xp.randomized_response(epsilon=i + 1) for i in range(3)}
    for _ in range(300):
        size = generator.randint(1, 30)
        subjects = [generator.choice([5, -1, 2**70, "5", "é"]) for _ in range(size)]
        keys = [generator.choice([0, "0", "1", 2]) for _ in range(size)]
        responses = [generator.choice(["x", "y", 3, 3.0, "3", 4.5, "4.5"]) for _ in range(size)]
        expected: dict[Any, list[tuple[Query, Any]]] = {}
        for subject, key, response in zip(subjects, keys, responses, strict=True):
            plain = {"3": 3, "4.5": 4.5}.get(response, response)  # type: ignore[call-overload]
            expected.setdefault(subject, []).append((queries[str(key)], plain))
        table = {"subject": subjects, "query": keys, "response": responses}
        answers = xp.Answers(domain, queries, table)
        assert exchanges(answers) == expected
        assert list(answers.subjects) == list(expected)


def test_there_is_no_transcript_of_a_stranger() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^subject: no subject 'c' in this table$"):
        xp.Answers(BOX, QUERIES, TABLE).transcript("c")


def test_large_integers_name_different_subjects() -> None:
    ids = np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64)
    table = {"subject": ids, "query": ["old"] * 3, "response": [0, 1, 1]}
    assert xp.Answers(BOX, QUERIES, table).subjects == (2**64 - 1, 2**64 - 2)


@pytest.mark.parametrize("response", [[34, 0], (34.0, 0), np.array([34, 0]), "[34, 0]"])
def test_a_response_may_be_a_vector(response: Any) -> None:
    domain = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "sex"])
    table = {"subject": [1], "query": ["q"], "response": [response]}
    answers = xp.Answers(domain, {"q": xp.randomized_response(epsilon=1)}, table)
    assert answers.responses == (("q", 0),)


def test_a_fraction_where_steps_of_a_grid_are_expected_gets_a_hint() -> None:
    query = xp.laplace({"hours": 1}, range=(0, 8), grid="0.25", epsilon=1)
    table = {"subject": [1], "query": ["q"], "response": ["2.5"]}
    with pytest.raises(xp.InvalidInput, match=r"it has the integers from -\d+ to \d+; with a grid"):
        xp.Answers(xp.Box(hours=(0, 8)), {"q": query}, table)


def test_a_text_that_is_a_label_is_no_number() -> None:
    domain = xp.FiniteSet(["1", "2"])
    table = {"subject": ["a", "b"], "query": ["q", "q"], "response": ["2", "1"]}
    answers = xp.Answers(domain, {"q": xp.randomized_response(epsilon=1)}, table)
    assert [answers.transcript(name).exchanges[0].response for name in "ab"] == ["2", "1"]
    with pytest.raises(xp.InvalidInput, match="row 1: response: 2 is not a response of query 'q'"):
        xp.Answers(domain, answers.queries, {**table, "response": [2, 1]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"response": [1, 12, 7, 0]},
            "row 3: response: 7 is not a response of query 'sleep'; it has 0",
        ),
        (
            {"response": [1, 12, None, 0]},
            "row 3: response: None is not a response of query 'sleep'",
        ),
        (
            {"response": [1, 12, float("nan"), 0]},
            "row 3: response: nan is not a response of query 'sleep'",
        ),
        ({"response": [1, 12, 0, False]}, "row 4: response: must be a label or a number, not true"),
        (
            {"response": [1, 12, 0, np.False_]},
            "row 4: response: must be a label or a number, not true",
        ),
        (
            {"response": np.array([True] * 4)},
            "row 1: response: must be a label or a number, not true",
        ),
        (
            {"response": [1, 12, [0, True], 0]},
            "row 3: response: must be a label or a number, not true",
        ),
        ({"response": [1, 12, {}, 0]}, "row 3: response: must be a label, a number or a list"),
        ({"response": [1, 12, [[0]], 0]}, "row 3: response: must be a label, a number or a list"),
        ({"response": np.zeros((4, 1))}, "response: must be a column"),
        ({"response": "1200"}, "response: must be a list"),
        ({"response": [1, 12]}, "the columns have different lengths"),
        ({"query": ["old", "sleep", "weep", "old"]}, "row 3: query: unknown query"),
        ({"query": ["old", "sleep", None, "old"]}, "row 3: query: unknown query"),
        (
            {"subject": ["b", "", "b", "b"]},
            "row 2: subject: must be a non-empty string or an integer",
        ),
        (
            {"subject": ["b", 1.5, "b", "b"]},
            "row 2: subject: must be a non-empty string or an integer",
        ),
        ({"subject": [1, None, 2, 3]}, "row 2: subject: must be a non-empty string or an integer"),
        ({"subject": [1, True, 2, 3]}, "row 2: subject: must be a label or a number"),
    ],
)
def test_bad_rows_are_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        xp.Answers(BOX, QUERIES, {**TABLE, **change})
    assert str(caught.value).startswith(message)


def test_a_text_that_could_be_two_responses_is_refused() -> None:
    table = {"subject": [1], "query": ["q"], "response": ["1"]}
    message = "^row 1: response: is a label of query 'q', and also spells one of its numbers$"
    with pytest.raises(xp.InvalidInput, match=message):
        xp.Answers(xp.FiniteSet([1, "1"]), {"q": xp.randomized_response(epsilon=1)}, table)


@pytest.mark.parametrize(
    ("domain", "queries", "table", "message"),
    [
        ([1], QUERIES, TABLE, "domain: must be a FiniteSet, Attributes or a Box, not list"),
        (BOX, [], TABLE, "queries: must be queries by their ids, not list"),
        (BOX, {}, TABLE, "queries: must not be empty"),
        (BOX, {1: QUERIES["old"]}, TABLE, "queries: must be a string, not int"),
        (BOX, {"old": 3}, TABLE, "queries.old: must be a query"),
        (BOX, {"q": xp.logistic({"x": 1}, epsilon=1)}, TABLE, "queries.q.weights.x: the domain"),
        (BOX, QUERIES, [TABLE], "must be a frame or a mapping of columns, not list"),
        (BOX, QUERIES, pl.LazyFrame(TABLE), "must be a frame or a mapping of columns, not Lazy"),
        (BOX, QUERIES, {"query": [], "response": []}, "column 'subject' is missing; there are 'q"),
        (BOX, QUERIES, {name: [] for name in TABLE}, "there are no rows"),
        (
            BOX,
            QUERIES,
            pd.DataFrame([[1, "old", 1, 1]], columns=["subject", "query", "response", "response"]),
            "column 'response' appears twice",
        ),
    ],
)
def test_what_is_no_table_is_one_line(domain: Any, queries: Any, table: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        xp.Answers(domain, queries, table)
    assert str(caught.value).startswith(message)


def test_answers_do_not_change_with_what_they_were_made_of() -> None:
    queries, subjects = dict(QUERIES), np.array([1, 2])
    answers = xp.Answers(
        BOX, queries, {"subject": subjects, "query": ["old", "old"], "response": np.array([0, 1])}
    )
    queries.clear()
    subjects[:] = 0
    assert (len(answers.queries), answers.subjects) == (2, (1, 2))
    with pytest.raises(ValueError, match="read-only"):
        answers.codes[0] = 1


def test_a_list_that_was_given_is_left_as_it_was() -> None:
    responses: list[Any] = [[34, 0], "[52, 1]"]
    domain = xp.FiniteSet([(34, 0), (52, 1)], names=["age", "sex"])
    table = {"subject": [1, 2], "query": ["q", "q"], "response": responses}
    xp.Answers(domain, {"q": xp.randomized_response(epsilon=1)}, table)
    assert responses == [[34, 0], "[52, 1]"]


def test_a_file_of_queries() -> None:
    domain, queries = queries_from_json(
        '{"version": 1, "domain": {"values": ["no", "yes"]},'
        ' "queries": {"q": {"kind": "randomized_response", "epsilon": 0.1}}}'
    )
    assert domain == xp.FiniteSet(["no", "yes"])
    assert queries == {"q": xp.randomized_response(epsilon="0.1")}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", "must be an object"),
        ('{"version": 1, "domain": {"values": [0]}}', "'queries' is missing"),
        ('{"version": 2, "domain": {"values": [0]}, "queries": {}}', "version "),
        ('{"version": 1, "domain": {"values": [0]}, "queries": {}}', "queries: must not be empty"),
        ('{"version": 1, "domain": {"values": []}, "queries": {}}', "domain: a domain needs"),
        (
            '{"version": 1, "domain": {"values": [0]}, "queries": {"q": {}, "q": {}}}',
            "queries.q: appears twice",
        ),
        (
            '{"version": 1, "domain": {"values": [0]}, "queries": {"q": {"kind": "riddle"}}}',
            "queries.q.kind: unknown query",
        ),
        (
            '{"version": 1, "domain": {"box": [[0, 1]]},'
            ' "queries": {"q": {"kind": "logistic", "weights": [1, 2], "epsilon": 1}}}',
            "queries.q.weights: 2 weights for 1 coordinates",
        ),
    ],
)
def test_bad_files_of_queries_are_one_line(document: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        queries_from_json(document)
    assert str(caught.value).startswith(message)


def test_a_part_of_the_answers_can_be_said_to_be_one() -> None:
    query = xp.randomized_response(epsilon=1)
    table = {"subject": ["a", "b"], "query": ["q", "q"], "response": ["no", "yes"]}
    domain = xp.FiniteSet(["no", "yes"])
    assert xp.Answers(domain, {"q": query}, table).complete
    part = xp.Answers(domain, {"q": query}, table, complete=False)
    assert not part.complete
    assert repr(part) == "Answers(2 subjects, 2 responses, incomplete)"
    with pytest.warns(UserWarning, match="incomplete: the loss of a part need not bound") as seen:
        assert xp.realized_losses(part).upper.max() <= 1
    assert seen[0].filename == __file__
    with pytest.raises(xp.InvalidInput, match="complete: must be True or False"):
        xp.Answers(domain, {"q": query}, table, complete="no")  # type: ignore[arg-type]


def test_pairs_are_answers_of_a_subject_each() -> None:
    domain, coin = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon=1)
    other = xp.perturbation([0, 1], epsilon=1)
    answers = xp.Answers.of_pairs(domain, [(coin, "no"), (other, 1), (coin, "yes")])
    assert answers.exchanges.tolist() == [1, 1, 1]
    assert [answers.transcript(i).exchanges[0].query for i in range(3)] == [coin, other, coin]
    assert [answers.transcript(i).exchanges[0].response for i in range(3)] == ["no", 1, "yes"]
    with pytest.raises(
        xp.InvalidInput, match=r"^domain: must be a FiniteSet, Attributes or a Box, for pairs"
    ):
        xp.Answers.of_pairs(None, [(coin, "no")])  # type: ignore[arg-type]


def test_a_response_that_is_none_is_shown_short_and_without_control_codes() -> None:
    table = {"subject": ["a"], "query": ["q"], "response": ["\x1b[2J" + "x" * 5000]}
    with pytest.raises(xp.InvalidInput) as caught:
        xp.Answers(xp.FiniteSet(["no", "yes"]), {"q": xp.randomized_response(epsilon=1)}, table)
    assert len(str(caught.value)) < 120
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("subject;query;response\nann;q;1\n", "'subject;query;response'; is it separated by semi"),
        ("subject;query;response\nann;q;1,5\n", "has 2 cells, the header 1; is it separated by se"),
        ("subject\tquery\tresponse\nann\tq\t1\n", "is it separated by tabs? Commas are needed"),
        ("subject, query, response\nann, q, 1\n", "'subject', ' query', ' response'; did you mean"),
        ("Subject,query,response\nann,q,1\n", "'response'; did you mean 'Subject'?"),
    ],
)
def test_a_table_that_another_program_wrote_gets_a_hint(
    tmp_path: Path, text: str, reason: str
) -> None:
    queries = {"q": xp.randomized_response(epsilon=1)}
    xp.audits.save_queries(xp.FiniteSet([0, 1]), queries, tmp_path / "queries.json")
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(xp.InvalidInput) as error:
        xp.load_answers(tmp_path / "data.csv", tmp_path / "queries.json")
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_a_query_is_not_taken_for_another_one_whose_name_is_its_content_id() -> None:
    values = xp.FiniteSet(["no", "yes"])
    query, other = xp.randomized_response(epsilon=1), xp.randomized_response(epsilon=2)
    transcripts = {"ann": xp.Transcript(values).add(other, "yes")}
    with pytest.raises(xp.InvalidInput, match="content id of another one"):
        xp.Answers.of_transcripts(transcripts, {other.content_id: query})
