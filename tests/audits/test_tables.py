"""Tables in files: the same answers from every format, and one line for what is broken."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import expost as xp
from expost.audits._answer_files import save_losses
from expost.files import tables

QUERIES = {
    "version": 1,
    "domain": {"values": ["no", "yes", 3]},
    "queries": {
        "smokes": {"kind": "randomized_response", "epsilon": "0.5"},
        "12": {
            "kind": "channel",
            "responses": [0, 1.5],
            "probabilities": [["1/2", "1/2"], ["1/3", "2/3"], [0, 1]],
        },
    },
}
ROWS: list[tuple[Any, Any, Any]] = [
    ("anna, with a comma", "smokes", "yes"),
    ("007", "12", 1.5),
    ("007", "smokes", "no"),
    ("ülo", "smokes", 3),
    ("ülo", "12", 0),
]

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return to


@pytest.fixture
def queries(write: Write) -> Path:
    return write("queries.json", json.dumps(QUERIES))


def written(path: Path) -> Path:
    """The rows in the format of the suffix."""
    if path.suffix == ".csv":
        lines = ["subject,when,query,response"]
        lines += [f'"{subject}",-,{query},{response}' for subject, query, response in ROWS]
        path.write_text("﻿" + "\r\n".join(lines) + "\r\n\r\n", encoding="utf-8")
    elif path.suffix == ".jsonl":
        rows = [dict(zip(("subject", "query", "response"), row, strict=True)) for row in ROWS]
        lines = [json.dumps({**row, "when": None}) for row in rows]
        path.write_text("\n\n".join(lines), encoding="utf-8")
    else:
        columns = [[str(entry) for entry in column] for column in zip(*ROWS, strict=True)]
        names = ["subject", "query", "response"]
        pl.DataFrame(dict(zip(names, columns, strict=True))).write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_format_holds_the_same_answers(suffix: str, tmp_path: Path, queries: Path) -> None:
    answers = xp.load_answers(written(tmp_path / f"data{suffix}"), queries)
    assert answers.subjects == ("anna, with a comma", "007", "ülo")
    responses = [
        [(e.query.kind, e.response) for e in answers.transcript(subject).exchanges]
        for subject in answers.subjects
    ]
    assert responses == [
        [("randomized_response", "yes")],
        [("channel", 1.5), ("randomized_response", "no")],
        [("randomized_response", 3), ("channel", 0)],
    ]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_losses_are_saved_as_they_are(suffix: str, tmp_path: Path, queries: Path) -> None:
    losses = xp.realized_losses(xp.load_answers(written(tmp_path / "data.csv"), queries))
    path = tmp_path / f"losses{suffix}"
    save_losses(losses, path)
    rows: list[dict[str, Any]]
    if suffix == ".csv":
        rows = pl.read_csv(path, schema_overrides={"subject": pl.String}).to_dicts()
    elif suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert rows[2]["upper"] == "inf"
        rows = [
            {name: math.inf if entry == "inf" else entry for name, entry in row.items()}
            for row in rows
        ]
    else:
        rows = pl.read_parquet(path).to_dicts()
    assert rows == list(losses.rows())
    assert [row["upper"] == math.inf for row in rows] == [False, False, True]


def test_a_text_that_looks_like_a_formula_is_none_and_a_number_stays_one(tmp_path: Path) -> None:
    subjects: list[int | str] = [
        "=1+1",
        "+1",
        "-cmd",
        "@SUM(1)",
        "\t=1",
        "\r=1",
        "a=1",
        "'=1",
        -5,
        7,
    ]
    numbers = [-0.5] * len(subjects)
    file = tmp_path / "losses.csv"
    losses = xp.audits.Losses(tuple(subjects), *(np.array(numbers) for _ in range(4)))
    save_losses(losses, file)
    with file.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    assert [row["subject"] for row in rows] == [
        "'=1+1", "+1", "'-cmd", "'@SUM(1)", "'\t=1", "'\r=1", "a=1", "'=1", "-5", "7",
    ]  # fmt: skip
    assert {row["lower"] for row in rows} == {"-0.5"}


def test_texts_and_integers_together_are_texts_in_parquet(tmp_path: Path) -> None:
    table = {"subject": [1, "a"], "query": ["q", "q"], "response": [0, 1]}
    query = xp.randomized_response(epsilon=1)
    losses = xp.realized_losses(xp.Answers(xp.FiniteSet([0, 1]), {"q": query}, table))
    save_losses(losses, tmp_path / "losses.parquet")
    assert pl.read_parquet(tmp_path / "losses.parquet")["subject"].to_list() == ["1", "a"]


def test_integers_of_any_length_name_subjects(write: Write, queries: Path) -> None:
    line = '{"subject": %s, "query": "smokes", "response": 3}\n'
    path = write("data.jsonl", line % 10**30 + line % "-1" + line % "2.0" + line % '"2"')
    assert xp.load_answers(path, queries).subjects == (10**30, -1, 2, "2")


HEADER = "subject,query,response\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("data.csv", "", "is empty"),
        ("data.csv", "\n", "is empty"),
        ("data.csv", HEADER, "there are no rows"),
        ("data.csv", "subject,query\na,smokes\n", "column 'response' is missing; there are 'sub"),
        ("data.csv", "subject,query,response,query\n", "column 'query' appears twice"),
        ("data.csv", HEADER + "a,smokes,no\n\na,smokes\n", "row 2 below the header: has 2 c"),
        ("data.csv", HEADER + "a,smokes,maybe\n", "row 1 below the header: response: 'maybe' is"),
        ("data.csv", HEADER + "a,smokes,no\nb,drinks,no\n", "row 2 below the header: query: unkn"),
        ("data.csv", HEADER + "a,smokes,no\n,smokes,no\n", "row 2 below the header: subject: mus"),
        ("data.csv", HEADER + 'a,"smokes"x,no\n', "line 2: not CSV: "),
        ("data.csv", HEADER + 'a,"smokes,no\n', "line 2: not CSV: "),
        ("data.csv", HEADER + "a,12,nan\n", "row 1 below the header: response: 'nan' is not a r"),
        ("data.jsonl", "", "there are no rows"),
        ("data.jsonl", "\n  \n", "there are no rows"),
        ("data.jsonl", "subject", "row 1: line 1 column 1: not JSON"),
        ("data.jsonl", "[]", "row 1: must be an object"),
        ("data.jsonl", '{"subject": 1, "query": 12}', "row 1: 'response' is missing"),
        (
            "data.jsonl",
            '{"subject": 1, "query": 12, "response": 0}\n\n{"subject": 1, "subject": 2}',
            "row 2: subject: appears twice",
        ),
        (
            "data.jsonl",
            '{"subject": 1, "query": 12, "response": NaN}',
            "row 1: response: must be a finite number",
        ),
        (
            "data.jsonl",
            '{"subject": 1, "query": 12, "response": true}',
            "row 1: response: must be a label or a number",
        ),
        (
            "data.jsonl",
            '{"subject": {"id": 1}, "query": 12, "response": 0}',
            "row 1: subject: must be a label, a number or a list",
        ),
        ("data.parquet", "no", "is not a Parquet file"),
        ("data.txt", "", "the name of a table must end in .csv, .jsonl, .parquet"),
    ],
)
def test_broken_tables_are_one_line_with_the_row(
    write: Write, queries: Path, name: str, text: str, message: str
) -> None:
    path = write(name, text)
    with pytest.raises(xp.InvalidInput) as caught:
        xp.load_answers(path, queries)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_one_line(tmp_path: Path, queries: Path) -> None:
    for suffix in (".csv", ".jsonl"):
        path = tmp_path / f"data{suffix}"
        path.write_bytes(b"subject,query,response\n\xff\xfe,1,2\n")
        with pytest.raises(xp.InvalidInput, match=f"{suffix}: is not UTF-8 text$"):
            xp.load_answers(path, queries)


def test_a_cell_that_never_ends_is_one_line(write: Write, queries: Path) -> None:
    path = write("data.csv", HEADER + "a,smokes," + "x" * 200_000)
    with pytest.raises(xp.InvalidInput, match="line 2: not CSV: field larger than"):
        xp.load_answers(path, queries)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_files_that_are_not_there_are_one_line(suffix: str, tmp_path: Path, queries: Path) -> None:
    missing = tmp_path / f"missing{suffix}"
    with pytest.raises(xp.InvalidInput, match=f"missing{suffix}: cannot be read: No such file"):
        xp.load_answers(missing, queries)
    with pytest.raises(xp.InvalidInput, match=r"missing.json: cannot be read: No such file"):
        xp.load_answers(missing, tmp_path / "missing.json")
    with pytest.raises(xp.InvalidInput, match="must be a frame or a mapping of columns, not int"):
        xp.load_answers(3, queries)


def test_errors_of_the_queries_name_their_file(write: Write) -> None:
    path = write("queries.json", json.dumps({**QUERIES, "domain": {"values": [1]}}))
    with pytest.raises(xp.InvalidInput, match=r"queries.json: queries.12.probabilities: 3 rows"):
        xp.load_answers("nowhere.csv", path)


def test_without_polars_only_parquet_fails(
    tmp_path: Path, queries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = [written(tmp_path / f"data{suffix}") for suffix in (".csv", ".jsonl", ".parquet")]
    monkeypatch.setitem(sys.modules, "polars", None)
    for path in data[:2]:
        assert len(xp.load_answers(path, queries)) == 3
    with pytest.raises(xp.InvalidInput, match=r"Parquet needs an extra: pip install 'expost\[fr"):
        xp.load_answers(data[2], queries)


def test_csv_and_json_lines_import_no_frames(tmp_path: Path, queries: Path) -> None:
    paths = [str(written(tmp_path / f"data{suffix}")) for suffix in (".csv", ".jsonl")]
    program = (
        "import sys, expost as xp\n"
        "for path in sys.argv[2:]: xp.realized_losses(xp.load_answers(path, sys.argv[1]))\n"
        "sys.exit(bool({'polars', 'pandas', 'pyarrow', 'numba'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program, str(queries), *paths])
    assert result.returncode == 0


def test_formats_that_are_read_are_written() -> None:
    assert list(tables._READERS) == [".csv", *tables._WRITERS]
