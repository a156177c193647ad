"""Logs in files: every format, parts within a limit of memory, bad rows, and going on."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import expost as xp
from expost.audits import _polars_engine as engine
from expost.audits._rows import MOST_LISTED
from support.answer_logs import Logged, some_log

GUARD = xp.BayesianFilter(epsilon="0.6")


@pytest.fixture
def logged() -> Logged:
    return some_log(random.Random(11), "records", subjects=40)


@pytest.fixture
def queries(logged: Logged, tmp_path: Path) -> Path:
    return logged.save_queries(tmp_path / "queries.json")


def in_files(frame: polars.DataFrame, folder: Path) -> list[Path]:
    """The same log in every way in which it may be kept."""
    folder.mkdir()
    frame.write_csv(folder / "log.csv")
    frame.write_parquet(folder / "log.parquet")
    lines = [json.dumps(row) for row in frame.iter_rows(named=True)]
    (folder / "log.jsonl").write_text("\n".join(lines))
    several = folder / "several"
    several.mkdir()
    frame[::2].write_csv(several / "even.csv")
    frame[1::2].write_csv(several / "odd.csv")
    parts = folder / "parts"
    (parts / "of" / "it").mkdir(parents=True)
    (parts / "_SUCCESS").write_text("")
    frame[:50].write_parquet(parts / "first.parquet")
    frame[50:].write_parquet(parts / "of" / "it" / "rest.parquet")
    return [folder / "log.csv", folder / "log.parquet", folder / "log.jsonl", several, parts]


def test_a_log_is_the_same_in_every_format_and_under_every_limit_of_memory(
    logged: Logged, queries: Path, tmp_path: Path
) -> None:
    frame = logged.frame().sample(fraction=1, shuffle=True, seed=1)
    whole = xp.audit(frame, queries, filter=GUARD).to_polars()
    assert len(whole) == 40
    for path in in_files(frame, tmp_path / "kept"):
        for memory in (engine.MEMORY, 10_000):
            assert xp.audit(path, queries, filter=GUARD, memory=memory).to_polars().equals(whole)


def test_numbers_name_subjects_and_spell_responses_and_lists_are_responses(tmp_path: Path) -> None:
    person = xp.Attributes(age=[1, 2], region=["n", "s"])
    rr = xp.randomized_response(epsilon="0.1")
    xp.audits.save_queries(
        person, {"1": rr.about("age"), "2": rr.about("age", "region")}, tmp_path / "q.json"
    )
    plain = {"subject": [7, 10**12], "order": [1.0, 1.0], "query": [1, 1], "response": [2, 1]}
    found = xp.audit(plain, tmp_path / "q.json", filter=GUARD)
    assert found.to_polars()["subject"].to_list() == [7, 10**12]
    lines = ['{"subject": "b", "order": 1, "query": "2", "response": [2, "s"]}',
             '{"subject": "b", "order": 2, "query": 1, "response": 2.0}']  # fmt: skip
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    assert xp.audit(tmp_path / "log.jsonl", tmp_path / "q.json", filter=GUARD).respected == 1


BAD = {
    "ann,1,smoke,no": "query: unknown query 'smoke'; did you mean 'smokes'?",
    "ann,1,smokes,maybe": "response: 'maybe' is not a response of smokes; it has 'no', 'yes'",
    "ann,1,smokes,": "response: is missing",
    "ann,,smokes,no": "order: must be the number of the exchange, 1, 2, 3 and so on",
    "ann,1.5,smokes,no": "order: must be the number of the exchange, 1, 2, 3 and so on",
    "ann,0,smokes,no": "order: must be the number of the exchange, 1, 2, 3 and so on",
    ",1,smokes,no": "subject: must be a non-empty string or an integer",
    "ann,2,smokes,no": "order: is 2, and exchange 1 of this subject is missing",
    "s3,1,smokes,no": "order: exchange 1 of this subject appears twice",
}


@pytest.mark.parametrize("row", BAD)
@pytest.mark.parametrize("memory", [engine.MEMORY, 10_000])
def test_a_row_that_cannot_be_used_is_named_and_nobody_is_audited(
    row: str, memory: int, logged: Logged, queries: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    frame = logged.frame()
    frame[:30].write_csv(folder / "a.csv")
    text = frame[30:].write_csv().splitlines()
    text.insert(8, row)
    (folder / "b.csv").write_text("\n".join(text))
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit(folder, queries, filter=GUARD, memory=memory)
    (bad,) = caught.value.rows
    assert (bad.file, bad.row) == (str(folder / "b.csv"), 8)
    assert bad.reason == BAD[row]
    assert str(caught.value).startswith("1 row cannot be used, so no subject was audited: ")


def test_of_many_bad_rows_the_first_are_listed(queries: Path, tmp_path: Path) -> None:
    rows = [f"s{number},1,nothing,no" for number in range(100)]
    (tmp_path / "log.csv").write_text("\n".join(["subject,order,query,response", *rows]))
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit(tmp_path / "log.csv", queries, filter=GUARD)
    assert caught.value.count == 100
    assert [bad.row for bad in caught.value.rows] == list(range(1, MOST_LISTED + 1))


def test_all_rows_with_a_wrong_number_are_counted(queries: Path, tmp_path: Path) -> None:
    numbers = {"a": [1, 1, 1], "b": [2, 3], "c": [1, 3, 5], "d": [1, 2], "e": [2, 2, 5, 6]}
    rows = [
        f"{who}{copy},{order},smokes,no"
        for copy in range(30)
        for who, orders in numbers.items()
        for order in orders
    ]
    (tmp_path / "log.csv").write_text("\n".join(["subject,order,query,response", *rows]))
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit(tmp_path / "log.csv", queries, filter=GUARD)
    assert caught.value.count == 30 * (2 + 1 + 2 + 0 + 3)
    assert len(caught.value.rows) == MOST_LISTED


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("log.csv", "", "is empty"),
        ("log.csv", "subject,query\na,b\n", "column 'order' is missing; there are subject, query"),
        ("log.csv", "subject,order,query,response\n", "there are no rows"),
        ("log.csv", "subject,order,query,response\na,1,b,c,d,e\n", "cannot be read"),
        ("log.jsonl", "{", "cannot be read: not a table of its format"),
        ("log.parquet", "PAR1", "cannot be read: not a table of its format"),
        ("log.txt", "", "the name of a table must end in .csv, .jsonl, .parquet"),
    ],
)
def test_what_is_not_a_log_is_one_line(
    name: str, text: str, reason: str, queries: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(xp.InvalidInput) as caught:
        xp.audit(tmp_path / name, queries, filter=GUARD)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_tables_names_every_entry_that_was_not_read(
    logged: Logged, queries: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    (folder / "more").mkdir(parents=True)
    logged.frame().write_csv(folder / "more" / "part.CSV")
    for name in ("_SUCCESS", ".part.csv.crc"):
        (folder / name).write_text("")
    found = xp.audit(folder, queries, filter=GUARD)
    assert found.files is not None
    assert found.files.count == 1
    for name in ("_part.csv", "part.csv.gz", "more/notes.txt"):
        (folder / name).write_text("")
    (folder / "elsewhere").symlink_to(tmp_path)
    with pytest.raises(xp.audits.BadFiles) as caught:
        xp.audit(folder, queries, filter=GUARD)
    names = [Path(each.file).relative_to(folder).as_posix() for each in caught.value.files]
    assert names == ["_part.csv", "elsewhere", "more/notes.txt", "part.csv.gz"]


NO_NAME = "subject: must be a non-empty string or an integer"
ROW = '"order": 1, "query": "smokes", "response": "no"'
AMBIGUOUS = {
    f'{{"subject": "ann", {ROW}, "subject": "bob"}}': "subject: appears twice in one row",
    f'{{"\\u0073ubject": "ann", {ROW}, "subject": "bob"}}': "subject: appears twice in one row",
    f'{{"subject": "ann", {ROW}, "order": 2}}': "order: appears twice in one row",
    f'{{"subject": "ann", {ROW}, "response": "yes"}}': "response: appears twice in one row",
    f'{{"subject": 1.5, {ROW}}}': NO_NAME,
    f'{{"subject": 1e0, {ROW}}}': NO_NAME,
    f'{{"subject": NaN, {ROW}}}': NO_NAME,
    f'{{"subject": true, {ROW}}}': NO_NAME,
    f'{{"subject": null, {ROW}}}': NO_NAME,
    f'{{"subject": "", {ROW}}}': NO_NAME,
    f'{{"subject": ["ann"], {ROW}}}': NO_NAME,
    f'{{"subject": "\\ud800", {ROW}}}': NO_NAME,
    f"{{{ROW}}}": NO_NAME,
    '{"subject": "ann", "order": 1, "query": "smokes", "response": true}': "response: must be a "
    "label or a number, not true or false",
    '{"subject": "ann", "order": 1, "query": true, "response": "no"}': "query: must be a label or "
    "a number, not true or false",
    '["ann", 1, "smokes", "no"]': "must be an object",
}


@pytest.mark.parametrize("row", AMBIGUOUS)
def test_an_ambiguous_row_of_json_lines_is_refused(row: str, queries: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(f'{{"subject": "eve", {ROW}}}\n\n{row}\n')
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit(log, queries, filter=GUARD)
    (bad,) = caught.value.rows
    assert (bad.file, bad.row, bad.reason) == (str(log), 2, AMBIGUOUS[row])


def test_unusual_json_that_can_be_read_in_one_way_is_read(queries: Path, tmp_path: Path) -> None:
    rows = [
        f'{{"meta": {{"subject": "bob"}}, "subject": "ann", {ROW}, "note": true, "note": 1}}',
        f'{{"subject": 12345678901234567890123, {ROW}}}',
        f'{{"subject": "z\\u00f6e", {ROW}}}',
        f'  {{ "subject" : "NaN" , {ROW} }}  ',
    ]
    (tmp_path / "log.jsonl").write_text("\r\n".join(rows))
    found = xp.audit(tmp_path / "log.jsonl", queries, filter=GUARD)
    names = ["12345678901234567890123", "NaN", "ann", "zöe"]
    assert found.to_polars()["subject"].to_list() == names


@pytest.mark.parametrize("name", ["subject", "order", "query", "response"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"], ids=["plain", "mark", "blank lines"])
def test_a_column_that_appears_twice_is_refused(
    name: str, start: str, queries: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(f"{start}subject,order,query,response,{name}\nann,1,smokes,no,no\n", "utf-8")
    with pytest.raises(xp.InvalidInput) as caught:
        xp.audit(log, queries, filter=GUARD)
    assert str(caught.value) == f"{log}: column {name!r} appears twice"
    frame = pandas.read_csv(log, encoding="utf-8-sig", skip_blank_lines=True)
    frame.columns = ["subject", "order", "query", "response", name]
    with pytest.raises(xp.InvalidInput, match=f"column '{name}' appears twice"):
        xp.audit(frame, queries, filter=GUARD)


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_a_compressed_csv_is_refused(
    compress: Callable[[bytes], bytes], queries: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(compress(b"subject,order,query,response,subject\nann,1,smokes,no,eve\n"))
    with pytest.raises(xp.InvalidInput, match="is compressed; expected plain text"):
        xp.audit(log, queries, filter=GUARD)


@pytest.mark.parametrize("column", ["subject", "order", "query", "response"])
def test_true_and_false_are_refused_among_other_entries(column: str, queries: Path) -> None:
    table: dict[str, list[Any]] = {
        "subject": [2, 1], "order": [1, 1], "query": ["smokes"] * 2, "response": ["no"] * 2,
    }  # fmt: skip
    assert len(xp.audit(table, queries, filter=GUARD)) == 2
    table[column][1] = True
    with pytest.raises(xp.InvalidInput, match=f"{column}: must be a label or a number"):
        xp.audit(table, queries, filter=GUARD)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([1.5, 2.0], f"row 1: {NO_NAME}"),
        ([7.0, float("nan")], f"row 2: {NO_NAME}"),
        ([float("inf"), 1.0], f"row 1: {NO_NAME}"),
        ([True, False], "subject: must be a label or a number, not true or false"),
        ([None, "ann"], f"row 1: {NO_NAME}"),
        ([b"ann", b"bob"], "subject: must be strings or integers, not Binary"),
        ([[1], [2]], "subject: must be strings or integers, not List(Int64)"),
    ],
)
def test_only_texts_and_integers_name_subjects(
    names: list[object], reason: str, queries: Path, tmp_path: Path
) -> None:
    rows = {"subject": names, "order": [1, 1], "query": ["smokes"] * 2, "response": ["no"] * 2}
    polars.DataFrame(rows).write_parquet(tmp_path / "log.parquet")
    for log in (rows, polars.DataFrame(rows), tmp_path / "log.parquet"):
        with pytest.raises(xp.InvalidInput) as caught:
            xp.audit(log, queries, filter=GUARD)
        assert str(caught.value).endswith(reason)


def test_whole_floats_are_integers_as_in_answers(queries: Path) -> None:
    rows = {"subject": [7.0, 8.0], "order": [1, 1], "query": ["smokes"] * 2, "response": ["no"] * 2}
    assert xp.audit(rows, queries, filter=GUARD).to_polars()["subject"].to_list() == [7, 8]
    assert xp.load_answers(rows, queries).subjects == (7, 8)


def test_a_column_of_several_types_is_one_line(queries: Path) -> None:
    rows = {"order": [1, 1], "query": ["smokes"] * 2, "response": ["no"] * 2}
    mixed = {"subject": ["ann", float("nan")], **rows}
    for log in (mixed, pandas.DataFrame(mixed)):
        with pytest.raises(xp.InvalidInput, match="subject: must be a column of texts or of numb"):
            xp.audit(log, queries, filter=GUARD)
    with pytest.raises(xp.InvalidInput, match="the columns have different lengths"):
        xp.audit({"subject": ["ann"], **rows}, queries, filter=GUARD)
