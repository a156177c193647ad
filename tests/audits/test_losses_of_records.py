"""The losses of many records and histories at once, against all of them listed."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import expost as xp
from expost.audits import _losses as module
from expost.numbers import Nats
from expost.queries import About
from support.record_cases import (
    RecordPositions,
    list_records,
    random_query_about,
    random_record_case,
)


def some_answers(generator: random.Random) -> tuple[xp.Answers, tuple[int, ...], dict[str, About]]:
    """A few subjects, each of whom was asked some of the same questions."""
    case = random_record_case(generator)
    pool = [
        random_query_about(generator, case.domain, case.steps)
        for _ in range(generator.randint(1, 6))
    ]
    queries = {f"q{number}": query for number, query in enumerate(pool)}
    table: dict[str, list[Any]] = {"subject": [], "query": [], "response": []}
    for subject in range(generator.randint(1, 6)):
        for _ in range(generator.randint(1, 8)):
            key = generator.choice(list(queries))
            responses = queries[key].on(case.domain).responses
            table["subject"].append(subject)
            table["query"].append(key)
            table["response"].append(responses[generator.randrange(min(64, len(responses)))])
    return xp.Answers(case.domain, queries, table), case.steps, queries


def complaints(answers: xp.Answers, steps: tuple[int, ...], queries: dict[str, About]) -> list[str]:
    """Subjects whose loss is not within the bounds, or whose bounds are wide."""
    assert isinstance(answers.domain, xp.Attributes)
    records = list_records(answers.domain, steps)
    places = {
        key: RecordPositions(query, answers.domain, records) for key, query in queries.items()
    }
    losses = xp.realized_losses(answers)
    found = []
    for number, subject in enumerate(answers.subjects):
        weights = [1] * len(records)
        for code in answers.codes[answers.starts[number] : answers.starts[number + 1]].tolist():
            key, position = answers.responses[code]
            weights = places[key].times(weights, position)
        exact = Nats(ratio=Fraction(max(weights), min(weights))).enclosure
        lower, upper = losses.lower[number], losses.upper[number]
        if not lower <= exact.lower <= exact.upper <= upper or upper - lower > 1e-12:
            found.append(f"{subject}: {exact} is not in [{lower}, {upper}]")
    return found


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_the_losses_of_many_records_are_those_of_all_records_listed(start: int) -> None:
    for seed in range(start, start + 30):
        assert complaints(*some_answers(random.Random(seed))) == [], seed


@pytest.mark.parametrize("step", [0, 1, 2])
def test_how_far_steps_are_apart_counts_where_a_change_has_a_largest_step(step: int) -> None:
    person = xp.Attributes(a=xp.changing(xp.integers(0, 3), max_step=step), b=[0, 1])
    query = xp.randomized_response(epsilon=1)
    queries = {f"q{at}": query.about("a", at=at) for at in (1, 3, 4)}
    queries["both"] = query.about("b", "a", at=3)
    rows = [(1, "q1", 0), (1, "q3", 3), (2, "q1", 0), (2, "q4", 3), (2, "q4", 3)]
    rows += [(3, "q1", 3), (3, "q3", 1), (3, "q4", 0)]
    columns = [
        list(column) for column in zip(*rows, (4, "q1", 0), (4, "both", (1, 3)), strict=True)
    ]
    table = dict(zip(("subject", "query", "response"), columns, strict=True))
    answers = xp.Answers(person, queries, table)
    assert complaints(answers, (1, 2, 3, 4), queries) == []


def test_losses_that_are_worked_out_piece_by_piece_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [some_answers(random.Random(seed))[0] for seed in range(20)]
    whole = [xp.realized_losses(each) for each in answers]
    monkeypatch.setattr("expost.panel._attributes_state._BLOCK", 1)
    blocks = [xp.realized_losses(each) for each in answers]
    monkeypatch.setattr(module, "_LARGEST_TABLE", 12)
    pieces = [xp.realized_losses(each) for each in answers]
    for one, other, third in zip(whole, blocks, pieces, strict=True):
        assert one.lower.tolist() == other.lower.tolist()
        assert one.upper.tolist() == other.upper.tolist()
        # Where a single subject does not fit into a table, its loss is a little closer.
        assert np.allclose(one.upper, third.upper, rtol=0, atol=1e-12)
        assert np.allclose(one.lower, third.lower, rtol=0, atol=1e-12)


PERSON = {
    "attributes": {
        "region": ["n", "s"],
        "smokes": ["no", "yes"],
        "drinks": ["no", "yes"],
        "minutes": {"changing": {"integers": [0, 3]}, "times": 1},
    }
}
RESPONSE = {"kind": "randomized_response", "epsilon": "1"}
QUERIES = {
    "version": 1,
    "domain": PERSON,
    "queries": {
        "smokes": {**RESPONSE, "about": ["smokes"]},
        "drinks": {**RESPONSE, "about": ["drinks"]},
        "both": {**RESPONSE, "about": ["smokes", "drinks"]},
        "week3": {**RESPONSE, "about": ["region", "minutes"], "at": 3},
        "bits": {
            "kind": "unary_encoding",
            "variant": "symmetric",
            "epsilon": "1",
            "about": ["region"],
        },
    },
}
ROWS: list[tuple[str, str, Any]] = [
    ("ann", "smokes", "yes"),
    ("ann", "drinks", "no"),
    ("bob", "both", ["yes", "no"]),
    ("bob", "week3", ["s", 2]),
    ("eve", "bits", "01"),
]


def saved(rows: list[tuple[str, str, Any]], path: Path) -> Path:
    """A table in a format that the name says."""
    if path.suffix == ".jsonl":
        names = ("subject", "query", "response")
        path.write_text(
            "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows),
            encoding="utf-8",
        )
        return path
    texts = [(s, q, r if isinstance(r, str) else json.dumps(r)) for s, q, r in rows]
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("subject", "query", "response"), *texts])
    else:
        polars.DataFrame(texts, ["subject", "query", "response"], orient="row").write_parquet(path)
    return path


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(QUERIES))
    return path


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.parquet"])
def test_tables_of_answers_about_attributes_are_read(
    name: str, tmp_path: Path, queries: Path
) -> None:
    answers = xp.load_answers(saved(ROWS, tmp_path / name), queries)
    assert answers.transcript("bob").exchanges[0].response == ("yes", "no")
    assert answers.transcript("bob").exchanges[1].response == ("s", 2)
    losses = xp.realized_losses(answers)
    assert losses.upper.round(6).tolist() == [2.0, 2.0, 1.0]
    assert losses.basic.tolist() == [2.0, 2.0, 1.0]


def test_lists_in_a_column_of_a_frame_are_responses_about_several_attributes(queries: Path) -> None:
    columns = {
        "subject": ["ann", "bob"],
        "query": ["both", "both"],
        "response": [["yes", "no"], ["no", "no"]],
    }
    for table in (columns, polars.DataFrame(columns), pandas.DataFrame(columns)):
        assert len(xp.load_answers(table, queries).responses) == 2


def test_answers_about_different_attributes_do_not_cancel() -> None:
    query = xp.randomized_response(epsilon=1)
    person = xp.Attributes(smokes=["no", "yes"], drinks=["no", "yes"])
    questions = {"smokes": query.about("smokes"), "drinks": query.about("drinks")}
    table = {"subject": ["ann"] * 2, "query": ["smokes", "drinks"], "response": ["yes", "no"]}
    losses = xp.realized_losses(xp.Answers(person, questions, table))
    assert losses.upper.round(9).tolist() == [2.0]
    canceled = xp.Answers(xp.FiniteSet(["no", "yes"]), dict.fromkeys(questions, query), table)
    assert xp.realized_losses(canceled).upper.round(9).tolist() == [0.0]


def test_a_response_that_rules_a_value_out_makes_the_loss_of_a_record_infinite() -> None:
    person = xp.Attributes(a=[0, 1], b=[0, 1])
    sure = xp.channel([[1, 0], ["1/2", "1/2"]]).about("a")
    noisy = xp.randomized_response(epsilon=1).about("b")
    table = {"subject": [1, 1, 2], "query": ["sure", "noisy", "noisy"], "response": [1, 0, 0]}
    losses = xp.realized_losses(xp.Answers(person, {"sure": sure, "noisy": noisy}, table))
    assert losses.upper.round(9).tolist() == [np.inf, 1.0]
    assert losses.lower[0] == np.inf


def test_subjects_whom_too_much_was_tied_together_for_are_refused_in_one_line() -> None:
    wide = xp.Attributes({f"a{number}": list(range(200)) for number in range(3)})
    query = xp.randomized_response(epsilon=1)
    questions = {
        "01": query.about("a0", "a1"),
        "12": query.about("a1", "a2"),
        "20": query.about("a2", "a0"),
    }
    table: dict[str, list[Any]] = {
        "subject": [1, 1, 2, 2, 2],
        "query": ["01", "12", "01", "12", "20"],
        "response": [[0, 0] for _ in range(5)],
    }
    reason = (
        "got queries that connect a0, a1 and a2, with 8,000,000 combinations; "
        "expected at most 1,048,576"
    )
    with pytest.raises(xp.InvalidInput, match=f"^{reason}$"):
        xp.realized_losses(xp.Answers(wide, questions, table))
    first = {name: column[:2] for name, column in table.items()}
    assert xp.realized_losses(xp.Answers(wide, questions, first)).upper.round(6).tolist() == [2.0]


def test_the_command_shows_the_losses_of_records(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, queries: Path
) -> None:
    data = saved(ROWS, tmp_path / "data.csv")
    code, out, err = run("loss", "--many", data, "--queries", queries)
    assert (code, err) == (0, "")
    assert [line.split()[-1] for line in out.splitlines()][:5] == ["3", "5", "1.66667", "2", "2"]


def test_a_hundred_thousand_answers_take_a_fraction_of_a_second() -> None:
    count, names = 12_500, [f"a{number}" for number in range(8)]
    person = xp.Attributes({name: list(range(4)) for name in names})
    query = xp.randomized_response(epsilon="0.5")
    generator = np.random.default_rng(1)
    table = {
        "subject": np.repeat(np.arange(count), len(names)),
        "query": names * count,
        "response": generator.integers(0, 4, count * len(names)),
    }
    answers = xp.Answers(person, {name: query.about(name) for name in names}, table)
    start = time.process_time()
    losses = xp.realized_losses(answers)
    # About 0.02 s; one subject after the other takes some 40 s.
    assert time.process_time() - start < 1
    assert losses.upper.max() <= 4
