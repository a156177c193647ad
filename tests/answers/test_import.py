"""Messy tables become clean answers: what was written is known, and so is how it was messed up."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import expost as xp
from expost.answers import ImportedAnswers, import_answers, queries_from_json

Run = Callable[..., tuple[int, str, str]]
Rows = list[dict[str, Any]]

LABELS: dict[str, list[Any]] = {
    "smokes": ["no", "yes"],
    "region": ["north", "south", "Été"],
    "age": [1, 2, 3],
}
OUTCOMES = ("refused", "declined", "missing")
WORDS = {"refused": "REFUSED", "declined": "won't say", "missing": "NA"}
DAY = date(2025, 11, 28)


def clean_rows(rng: random.Random) -> Rows:
    """Rows in the order of the exchanges of each subject."""
    rows: Rows = []
    for subject in range(1, rng.randint(2, 12)):
        for number in range(rng.randint(1, 5)):
            query = rng.choice(list(LABELS))
            outcome = rng.choice(OUTCOMES) if rng.random() < 0.2 else "answered"
            response = rng.choice(LABELS[query]) if outcome == "answered" else ""
            # An order without ties, so that there is one right answer.
            row: dict[str, Any] = {
                "subject": subject,
                "query": query,
                "response": response,
                "outcome": outcome,
            }
            rows.append({**row, "order": 3 * number + subject})
    if not any(row["outcome"] == "answered" for row in rows):
        rows[0] |= {"outcome": "answered", "response": LABELS[str(rows[0]["query"])][0]}
    return rows


def written_orders(rng: random.Random) -> Callable[[int], Any]:
    """How the order of an exchange is written."""
    ways: list[Callable[[int], Any]] = [
        str,
        lambda order: f"{order}.0",
        lambda order: f"Week {order}",
        lambda order: (DAY + timedelta(order)).isoformat(),
        lambda order: f"{DAY + timedelta(order):%d.%m.%Y}",
        lambda order: f"{DAY + timedelta(order):%d.%m.%Y} 10:30",
    ]
    return rng.choice(ways)


def messy(rng: random.Random, text: str) -> str:
    """The same text with other spaces and in other case."""
    text = rng.choice([text, text.upper(), text.lower(), text.title()])
    return (
        rng.choice(["", " ", "  "])
        + text.replace(" ", rng.choice([" ", "  "]))
        + " " * rng.randint(0, 2)
    )


def mess_up(rng: random.Random, rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Write the rows as somebody exports them, in any order, with columns that are not needed."""
    write_order, decimal = written_orders(rng), rng.choice(["", ".0"])
    header = [" Respondent ID", "Question", "comment", "Noisy  answer", "When "]
    body = []
    for row in rng.sample(rows, len(rows)):
        response = WORDS.get(row["outcome"], "")
        if row["outcome"] == "answered":
            response = (
                f"{row['response']}{rng.choice(['', '.0'])}"
                if row["query"] == "age"
                else row["response"]
            )
        elif row["outcome"] == "missing" and rng.random() < 0.5:
            response = ""
        cells = [
            f"{row['subject']}{decimal}",
            messy(rng, f"{row['query']}?"),
            rng.choice(["", "x"]),
            messy(rng, response) if response else "",
            write_order(row["order"]),
        ]
        body.append(cells)
        if rng.random() < 0.1:
            body.append([""] * 5)
    return header, body


def write_text(rng: random.Random, path: Path, header: list[str], body: list[list[str]]) -> None:
    separator, encoding = (
        rng.choice(",;\t|"),
        rng.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    )
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator=rng.choice(["\n", "\r\n"]))
    trailing = [""] * rng.randint(0, 2)
    writer.writerows([[*header, *trailing], *[[*row, *trailing] for row in body]])
    path.write_bytes(text.getvalue().encode(encoding))


def write_spreadsheet(path: Path, header: list[str], body: list[list[str]]) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in [header, *body]:
        sheet.append([_typed(cell) for cell in row])
    book.create_sheet("notes").append(["nothing"])
    book.save(path)


def _typed(cell: str) -> Any:
    """The cell as a spreadsheet stores it: numbers and dates are no texts."""
    try:
        return datetime.fromisoformat(cell) if len(cell) == 10 else float(cell)
    except ValueError:
        return cell


def read(path: Path, **options: Any) -> ImportedAnswers:
    words: dict[str, Any] = {outcome: [word.lower()] for outcome, word in WORDS.items()}
    return import_answers(
        path, subject="respondent id", query="QUESTION", response="Noisy answer",
        order_by="when", **words, **options,
    )  # fmt: skip


def by_subject(rows: Iterator[tuple[Any, ...]]) -> dict[str, list[tuple[str, str, str]]]:
    """The exchanges of each subject; queries that were not asked have no place among them."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    for subject, query, response, outcome in rows:
        result.setdefault(str(subject), []).append((query, str(response).casefold(), outcome))
    return result


@pytest.mark.parametrize("seed", range(80))
def test_a_messy_table_has_the_answers_that_were_written(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = clean_rows(rng)
    header, body = mess_up(rng, rows)
    path = tmp_path / ("survey.xlsx" if seed % 4 == 0 else "survey.csv")
    if seed % 4 == 0:
        write_spreadsheet(path, header, body)
    else:
        write_text(rng, path, header, body)
    imported = read(path)
    table = imported.table
    outcomes = table.get("outcome", ["answered"] * len(rows))
    columns = zip(table["subject"], table["query"], table["response"], outcomes, strict=True)
    expected = by_subject(
        (row["subject"], row["query"], row["response"], row["outcome"]) for row in rows
    )
    assert by_subject(iter(columns)) == expected
    numbers: dict[str, int] = {}
    for subject, order, outcome in zip(table["subject"], table["order"], outcomes, strict=True):
        if outcome in ("answered", "missing"):
            numbers[subject] = numbers.get(subject, 0) + 1
            assert order == numbers[subject]
        else:
            assert order == ""
    for key, labels in imported.labels.items():
        used = {row["response"] for row in rows if row["query"] == key} - {""}
        assert {str(label).casefold() for label in labels} == {
            str(each).casefold() for each in used
        }


def test_what_was_imported_is_read_audited_and_estimated(tmp_path: Path, run: Run) -> None:
    rng = random.Random(3)
    rows = [row for row in clean_rows(rng) if row["outcome"] != "missing"]
    write_text(rng, tmp_path / "survey.csv", *mess_up(rng, rows))
    code, out, err = run(
        "import", tmp_path / "survey.csv", "--subject", "respondent id", "--query", "question",
        "--response", "noisy answer", "--order-by", "when", "--refused", "refused",
        "--declined", "won't say", "--epsilon", "1",
        "--out", tmp_path / "answers.csv", "--queries", tmp_path / "queries.json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "randomized response for every query" in out
    answers = xp.load_answers(tmp_path / "answers.csv", tmp_path / "queries.json")
    assert len(answers.codes) == sum(row["outcome"] == "answered" for row in rows)
    audit = xp.audit(
        tmp_path / "answers.csv", tmp_path / "queries.json", filter=xp.BayesianFilter(epsilon=9)
    )
    assert len(audit) == len(answers)
    code, _, _ = run(
        "estimate", tmp_path / "answers.csv", "--queries", tmp_path / "queries.json",
        "--about", "smokes",
    )  # fmt: skip
    assert code == 0


def small(tmp_path: Path, text: str, **options: Any) -> ImportedAnswers:
    path = tmp_path / "survey.csv"
    path.write_text(text, "utf-8")
    return import_answers(path, **{"subject": "id", "query": "q", "response": "a", **options})


def test_a_column_for_each_query_needs_no_column_of_queries(tmp_path: Path) -> None:
    imported = small(
        tmp_path, "id,Smokes,Drinks often?\n1,no,yes\n2,yes,\n", query=None,
        response=["smokes", "drinks often?"],
    )  # fmt: skip
    assert imported.table["query"] == ["smokes", "drinks_often"] * 2
    assert imported.table["outcome"] == ["answered"] * 3 + ["missing"]
    assert imported.queries == {"smokes": "Smokes", "drinks_often": "Drinks often?"}


def test_subjects_that_differ_in_case_are_joined_only_on_request(tmp_path: Path) -> None:
    text = "id,q,a\nR1,s,no\nr1,s,yes\n"
    apart, joined = small(tmp_path, text), small(tmp_path, text, ignore_case=True)
    assert apart.table["subject"] == ["R1", "r1"]
    assert "pass --ignore-case if they are the same" in apart.remarks[0]
    assert joined.table["subject"] == ["R1", "R1"]
    assert joined.table["order"] == [1, 2]


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("id,q,a\n1,s,no\n2,s,n/a\n", "'n/a' is taken as a response to 's' in 1 row"),
        ("id,q,a\n1,s,no\n2,s,\n", "1 empty cell counted as missing"),
        ("id,q,a\n1,s,no\n,,\n2,s,no\n", "1 empty row left out"),
        (
            "id,q,a\n1,s,no\n,s,no\n",
            "row 2 below the header: left out, because there is no subject",
        ),
        ("id,q,a\n1,s,no\n2,,no\n", "row 2 below the header: left out, because there is no query"),
        ("id,q,a\n1,s,no\n1,s,no\n", "row 2 below the header: equal to an earlier row"),
        ("id;q;a\n1;s;1,5\n", "cells are separated by semicolons"),
    ],
)
def test_everything_that_is_changed_or_assumed_is_said(
    tmp_path: Path, text: str, remark: str
) -> None:
    assert any(remark in line for line in small(tmp_path, text).remarks)


def test_decimal_commas_are_numbers_where_commas_separate_nothing(tmp_path: Path) -> None:
    assert small(tmp_path, "id;q;a\n1;s;1,5\n2;s;2\n").labels["s"] == [Decimal("1.5"), 2]
    assert small(tmp_path, 'id,q,a\n1,s,"1,5"\n2,s,2\n').labels["s"] == ["1,5", "2"]


def test_a_word_for_no_response_does_not_make_labels_of_numbers(tmp_path: Path) -> None:
    imported = small(tmp_path, "id,q,a\n1,s,2.0\n2,s,2\n3,s,n/a\n")
    assert imported.labels["s"] == [2, "n/a"]
    assert imported.table["response"] == ["2", "2", "n/a"]
    assert "numbers in responses to 's' are written in one way: '2.0' as 2" in imported.remarks


def test_labels_that_look_like_formulas_come_back_from_the_table(run: Run, tmp_path: Path) -> None:
    source, table, queries = (tmp_path / name for name in ("s.csv", "a.csv", "q.json"))
    source.write_text("id,test\n@ann,+\n@bob,-\n=c,-\n")
    run("import", source, "--subject", "id", "--response", "test", "--epsilon", 1,
        "-o", table, "--queries", queries)  # fmt: skip
    answers = xp.load_answers(table, queries)
    assert answers.subjects == ("@ann", "@bob", "=c")
    xp.audits.save_answers(answers, table)
    assert xp.load_answers(table, queries).subjects == answers.subjects


def test_a_file_of_queries_for_other_responses_is_pointed_out(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "s.csv"
    source.write_text("id,q\n1,yes\n2,no\n3,n/a\n")
    arguments = ["import", source, "--subject", "id", "--response", "q",
                 "-o", tmp_path / "a.csv", "--queries", tmp_path / "q.json"]  # fmt: skip
    run(*arguments)
    assert "Its domain differs" not in run(*arguments)[1]
    assert "Its domain differs" in run(*arguments, "--missing", "n/a")[1]


def test_the_entry_that_is_no_date_is_named(tmp_path: Path) -> None:
    file = tmp_path / "survey.csv"
    file.write_text("id,q,a,d\n1,s,1,13/04/2026\n2,s,1,02/05/2026\n3,s,1,soon\n")
    with pytest.raises(xp.InvalidInput, match="row 3 below the header: 'soon' cannot be ordered"):
        import_answers(file, subject="id", query="q", response="a", order_by="d")


def test_numbers_that_look_noisy_are_left_to_the_user(tmp_path: Path) -> None:
    rows = "".join(f"{row},age,{30 + row / 7:.3f}\n" for row in range(20))
    imported = small(tmp_path, "id,q,a\n" + rows)
    assert imported.labels == {"age": []}
    assert "20 different responses, from 30 to 32.714" in imported.remarks[-1]
    document = json.loads(imported.queries_document("1"))
    assert document["queries"]["age"]["kind"] == "?"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "id,q,a\n1,s,no\n",
            {"subject": "ids"},
            "no column 'ids'; there are 'id', 'q', 'a'; did you",
        ),
        ("id,id,q,a\n1,1,s,no\n", {}, "column 'id' appears 2 times"),
        ("id,q,a\n1,s,no,yes\n", {}, "row 1 below the header: has 4 cells, the header 3; .* 'yes'"),
        ("", {}, "is empty"),
        ("id,q,a\n", {}, "there are no rows with a subject and a query"),
        ('id,q,a\n1,s,"no\n', {}, "not CSV"),
        ("id,q,a\n1,s,no\n", {"order_by": "a"}, "row 1 below the header: 'no' cannot be ordered"),
        (
            "id,q,a,w\n1,s,no,1\n2,s,no,\n",
            {"order_by": "w"},
            "row 2 below the header: has no order",
        ),
        (
            "id,q,a,w\n1,s,no,1\n2,s,no,Week 2\n",
            {"order_by": "w"},
            "cannot be ordered; .* all alike",
        ),
        (
            "id,q,a,w\n1,s,no,03/04/2026\n",
            {"order_by": "w"},
            "'03/04/2026' could be 3 April or 4 March; write dates as 2026-03-04",
        ),
        ("id,q,a\n1,s s,no\n1,s?s,no\n", {}, "the queries 's s' and 's\\?s' differ only in marks"),
        ("id,q,a\n1,s,no\n", {"refused": ["x"], "missing": ["X"]}, "'X' stands for two outcomes"),
        ("id,q,a\n1,s,no\n", {"sheet": "x"}, "sheet: only a spreadsheet has sheets"),
        ("id,q,a\n1,s,no\n", {"response": ["a", "q"]}, "response: expected one column"),
    ],
)
def test_bad_tables_are_refused_in_one_line(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message) as caught:
        small(tmp_path, text, **options)
    assert "\n" not in str(caught.value)


def test_dates_whose_days_decide_the_format_are_read(tmp_path: Path) -> None:
    text = "id,q,a,w\n1,s,no,03/25/2026\n1,s,yes,03/04/2026\n"
    assert small(tmp_path, text, order_by="w").table["response"] == ["yes", "no"]


def test_spreadsheets_name_their_sheets(tmp_path: Path) -> None:
    path = tmp_path / "survey.xlsx"
    write_spreadsheet(path, ["id", "q", "a"], [["1", "s", "no"]])
    options: dict[str, Any] = {"subject": "id", "query": "q", "response": "a"}
    assert "only the first of 2 sheets was read" in import_answers(path, **options).remarks[0]
    with pytest.raises(xp.InvalidInput, match=r"no sheet 'note'; .*did you mean 'notes'"):
        import_answers(path, sheet="note", **options)
    path.write_bytes(b"PK no spreadsheet")
    with pytest.raises(xp.InvalidInput, match="is not a spreadsheet"):
        import_answers(path, **options)


def test_a_completed_file_of_queries_is_not_overwritten(tmp_path: Path, run: Run) -> None:
    (tmp_path / "survey.csv").write_text("id,q,a\n1,s,no\n2,s,yes\n")
    arguments = [
        "import", tmp_path / "survey.csv", "--subject", "id", "--query", "q", "--response", "a",
        "-o", tmp_path / "answers.csv", "--queries", tmp_path / "queries.json",
    ]  # fmt: skip
    assert 'Complete every "?"' in run(*arguments)[1]
    code, _, err = run("estimate", tmp_path / "answers.csv", "--queries", tmp_path / "queries.json")
    assert code == 2
    assert "queries.s.epsilon: got '?'; complete the query of 's' in this file" in err
    completed = (tmp_path / "queries.json").read_text().replace('"?"', '"1"')
    (tmp_path / "queries.json").write_text(completed)
    code, out, err = run(*arguments)
    assert code == 0, err
    assert "already exists and was not changed" in out
    assert (tmp_path / "queries.json").read_text() == completed
    assert len(xp.load_answers(tmp_path / "answers.csv", tmp_path / "queries.json")) == 2


def test_a_file_that_is_no_table_of_answers_is_not_overwritten(tmp_path: Path, run: Run) -> None:
    survey = tmp_path / "survey.csv"
    survey.write_text("id,q,a\n1,s,no\n2,s,yes\n")
    for out in (survey, tmp_path / "losses.csv"):
        if out != survey:
            out.write_text("subject,lower,upper,exchanges,basic\n1,0,0,1,1\n")
        before = out.read_text()
        code, _, err = run(
            "import", survey, "--subject", "id", "--query", "q", "--response", "a", "-o", out,
            "--queries", tmp_path / "queries.json",
        )  # fmt: skip
        assert code == 2
        assert out.name in err
        assert out.read_text() == before


def test_strings_of_bits_stay_as_they_are_and_become_unary_encoding(
    run: Run, tmp_path: Path
) -> None:
    source, table, queries = (tmp_path / name for name in ("s.csv", "a.csv", "q.json"))
    source.write_text("id,go,smokes\n1,0100,yes\n2,0000,no\n3,n/a,no\n4,1100,no\n")
    arguments = ["import", source, "--subject", "id", "--response", "go", "--response", "smokes",
                 "--missing", "n/a", "--epsilon", 1, "-o", table, "--queries", queries]  # fmt: skip
    code, out, _ = run(*arguments)
    assert code == 0
    assert "responses to 'go' are strings of 4 bits, taken for unary encoding" in out
    assert 'Complete every "?"' in out
    tree = json.loads(queries.read_text())
    assert tree["domain"]["attributes"] == {"go": ["?"] * 4, "smokes": ["no", "yes"]}
    assert [query["kind"] for query in tree["queries"].values()] == [
        "unary_encoding",
        "randomized_response",
    ]
    tree["queries"]["go"]["variant"] = "symmetric"
    tree["domain"]["attributes"]["go"] = ["car", "bus", "bike", "walk"]
    queries.write_text(json.dumps(tree))
    answers = xp.load_answers(table, queries)
    assert [exchange.response for exchange in answers.transcript("4").exchanges] == ["1100", "no"]
    assert "Its domain differs" not in run(*arguments)[1]


@pytest.mark.parametrize("responses", [("10", "11"), ("0", "1"), ("01", "2"), ("01", "001")])
def test_other_numbers_are_no_bits(tmp_path: Path, responses: tuple[str, str]) -> None:
    imported = small(tmp_path, "id,q,a\n1,s,{}\n2,s,{}\n".format(*responses))
    assert imported.bits == {}
    assert imported.labels["s"] == sorted({int(response) for response in responses})


def test_covariates_are_a_table_with_a_row_per_subject(run: Run, tmp_path: Path) -> None:
    source, table, queries, people = (
        tmp_path / name for name in ("s.csv", "a.csv", "q.json", "people.csv")
    )
    source.write_text(
        "id;q;a;Home region ;weight\n1.0;s;yes;North;0,5\n1.0;d;no;north ;0,50\n"
        "2;s;no;North;2\n3;s;no;n/a;1\n4;s;;South;1\n"
    )
    arguments = ["import", source, "--subject", "id", "--query", "q", "--response", "a",
                 "--covariate", "home region", "--covariate", "weight", "--missing", "n/a",
                 "--epsilon", 1, "-o", table, "--queries", queries,
                 "--covariates", people]  # fmt: skip
    code, out, _ = run(*arguments)
    assert code == 0
    assert f"The covariates are in {people}." in out
    assert "entries of 'home_region' are written as 'North' (2), 'north' (1)" in out
    assert people.read_text().splitlines() == [
        "subject,home_region,weight", "1,North,0.5", "2,North,2", "3,,1", "4,South,1",
    ]  # fmt: skip
    groups = ["--covariates", people, "--by", "home_region", "--weight", "weight"]
    code, out, _ = run("estimate", table, "--queries", queries, "--about", "s", *groups)
    assert code == 0
    assert "North: 2" in out
    assert run(*arguments)[2] == f"expost: {people}: already exists; not overwritten\n"


def test_a_subject_with_two_covariates_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "survey.csv"
    file.write_text("id,q,a,region\n1,s,no,north\n1,d,no,south\n")
    with pytest.raises(
        xp.InvalidInput,
        match="row 2 below the header: region is 'south', and 'north' in an earlier row",
    ):
        import_answers(file, subject="id", query="q", response="a", covariates=["region"])


def test_a_file_of_queries_with_unnamed_bits_says_what_to_complete(tmp_path: Path) -> None:
    file = tmp_path / "survey.csv"
    file.write_text("id,q,a\n1,s,0100\n2,s,0110\n")
    document = import_answers(file, subject="id", query="q", response="a").queries_document("1")
    with pytest.raises(xp.InvalidInput, match=r"^queries.s.variant: got '\?'; complete the query"):
        queries_from_json(document)
    document = document.replace('"variant": "?"', '"variant": "optimized"')
    with pytest.raises(xp.InvalidInput, match=r"^domain.values: got '\?' as values; name them in"):
        queries_from_json(document)
