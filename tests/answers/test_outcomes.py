"""Queries without a response: refused, declined and missing are different outcomes."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

import expost as xp
from support.answer_logs import with_outcomes

DOMAIN = xp.FiniteSet(["no", "yes"])
QUERIES = {"q": xp.randomized_response(epsilon=1), "r": xp.randomized_response(epsilon="1/2")}
CSV = """subject,order,query,response,outcome
ann,1,q,no,answered
bob,,q,,refused
ann,,r,,declined
bob,1,r,yes,answered
ann,,q,,refused
"""


def rows_of(text: str) -> dict[str, list[str]]:
    header, *rows = [line.split(",") for line in text.splitlines()]
    return {name: [row[index] for row in rows] for index, name in enumerate(header)}


def test_unanswered_queries_are_counted_by_outcome_and_give_no_response() -> None:
    answers = xp.Answers(DOMAIN, QUERIES, rows_of(CSV))
    assert answers.subjects == ("ann", "bob")
    assert [len(answers.transcript(name)) for name in answers.subjects] == [1, 1]
    assert answers.unanswered == {
        "refused": {("ann", "q"), ("bob", "q")},
        "declined": {("ann", "r")},
        "missing": frozenset(),
    }
    assert answers.count_unanswered() == {"refused": 2, "declined": 1, "missing": 0}
    assert answers.count_unanswered("r") == {"refused": 0, "declined": 1, "missing": 0}
    assert answers.complete
    assert not answers.evenly("q")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_saved_table_has_the_unanswered_queries(tmp_path: Path, suffix: str) -> None:
    answers = xp.Answers(DOMAIN, QUERIES, rows_of(CSV))
    table, queries = tmp_path / f"answers.{suffix}", tmp_path / "queries.json"
    xp.audits.save_answers(answers, table)
    xp.audits.save_queries(DOMAIN, QUERIES, queries)
    loaded = xp.load_answers(table, queries)
    assert loaded.unanswered == answers.unanswered
    assert [loaded.transcript(name) for name in loaded.subjects] == [
        answers.transcript(name) for name in answers.subjects
    ]
    guard = xp.BayesianFilter(epsilon=2)
    assert xp.audit(table, queries, filter=guard).respected == 2


def test_a_missing_response_makes_the_answers_incomplete() -> None:
    table = {"subject": ["ann", "bob"], "query": ["q", "q"], "response": ["no", "yes"]}
    assert xp.Answers(DOMAIN, QUERIES, with_outcomes(table, [("eve", "q")])).complete
    answers = xp.Answers(DOMAIN, QUERIES, with_outcomes(table, [("ann", "q")], "missing"))
    assert not answers.complete
    assert answers.subjects == ("ann", "bob")
    with pytest.warns(UserWarning, match="incomplete"):
        estimate = xp.estimation.estimate_frequencies(answers)
    assert "missing: 1 subject" in repr(estimate)
    with pytest.warns(UserWarning, match="the loss of a part need not bound"):
        xp.realized_losses(answers)


def test_an_estimate_from_subjects_some_of_whom_declined_says_what_it_assumes() -> None:
    table = {"subject": ["ann", "bob"], "query": ["q", "q"], "response": ["no", "yes"]}
    declined = xp.Answers(DOMAIN, QUERIES, with_outcomes(table, [("eve", "q")], "declined"))
    estimate = xp.estimation.estimate_frequencies(declined)
    assert "whether subjects declined did not depend on their values" in estimate.provenance.assumes
    assert "declined: 1 subject" in repr(estimate)


@pytest.mark.parametrize("empty", [None, "", float("nan")])
def test_an_empty_response_is_none_an_empty_text_or_not_a_number(empty: object) -> None:
    table = {
        "subject": ["ann", "bob"],
        "query": ["q", "q"],
        "response": ["no", empty],
        "outcome": ["answered", "refused"],
    }
    assert len(xp.Answers(DOMAIN, QUERIES, table)) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("ann,q,no,answered\nbob,q,yes,refused", "row 2: response: got 'yes'; expected none,"),
        ("ann,q,no,refusd\n", "row 1: outcome: got 'refusd'; .*did you mean 'refused'"),
        ("ann,q,,refused\nbob,q,maybe,answered", "row 2: response: 'maybe' is not a response"),
        (
            "ann,q,,refused\nbob,q,,answered",
            "row 2: response: is empty: there is no response to query 'q'",
        ),
        ("ann,q,,refused", "no subject has answered anything"),
    ],
)
def test_errors_name_rows_of_the_whole_table(rows: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.Answers(DOMAIN, QUERIES, rows_of("subject,query,response,outcome\n" + rows))


def write(folder: Path, suffix: str, text: str) -> Path:
    file = folder / f"log{suffix}"
    frame = polars.read_csv(text.encode(), infer_schema=False)
    frame = frame.with_columns(polars.col("order").cast(polars.Int64))
    if suffix == ".csv":
        frame.write_csv(file)
    elif suffix == ".jsonl":
        frame.write_ndjson(file)
    else:
        frame.write_parquet(file)
    return file


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_tables_and_audits_leave_out_what_was_refused_or_declined(
    tmp_path: Path, suffix: str
) -> None:
    queries = tmp_path / "queries.json"
    xp.audits.save_queries(DOMAIN, QUERIES, queries)
    log = write(tmp_path, suffix, CSV)
    assert xp.load_answers(log, queries).count_unanswered("q") == {
        "refused": 2, "declined": 0, "missing": 0,
    }  # fmt: skip
    audit = xp.audit(log, queries, filter=xp.BayesianFilter(epsilon=1))
    assert audit.frame["exchanges"].to_list() == [1, 1]
    frame = polars.read_csv(CSV.encode(), infer_schema=False)
    again = xp.audit(frame, queries, filter=xp.BayesianFilter(epsilon=1))
    assert again.frame.equals(audit.frame)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_an_audit_names_the_row_of_a_missing_response(tmp_path: Path, suffix: str) -> None:
    queries = tmp_path / "queries.json"
    xp.audits.save_queries(DOMAIN, QUERIES, queries)
    log = write(tmp_path, suffix, CSV + "bob,2,q,,missing\n")
    with pytest.raises(xp.InvalidInput, match=r"row 6: response: is missing"):
        xp.audit(log, queries, filter=xp.BayesianFilter(epsilon=1))
    log = write(tmp_path, suffix, CSV + "bob,3,q,no,answered\n")
    with pytest.raises(xp.InvalidInput, match=r"row 6: order: is 3, and exchange 2 .* missing"):
        xp.audit(log, queries, filter=xp.BayesianFilter(epsilon=1))
