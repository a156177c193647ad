"""Audits on Spark find what they find in one process, to the bit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

import expost as xp
from expost.audits._audit import audit_files_on_spark
from expost.audits._rows import MOST_LISTED
from support.answer_logs import FILTERS, Logged, some_log
from support.spark_sessions import spark_session

# A session that closes at the end of the process warns about that, and so does pandas 3.
pytestmark = pytest.mark.filterwarnings("default")

Run = Callable[..., tuple[int, str, str]]

GUARD = xp.BayesianFilter(epsilon="0.6")
AT_LEVEL = xp.AllOf(xp.BayesianFilter(epsilon="0.4", protects=xp.attributes(1)), GUARD)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    yield from spark_session()


def frames(logged: Logged, folder: Path, spark: Any) -> tuple[Path, Any]:
    """The queries in a file, and the log as a frame of Spark."""
    path = folder / "log.parquet"
    logged.frame().sample(fraction=1, shuffle=True, seed=1).write_parquet(path)
    return logged.save_queries(folder / "queries.json"), spark.read.parquet(str(path))


@pytest.mark.parametrize("kind", ["set", "records"])
def test_an_audit_on_spark_is_that_of_one_process(kind: str, spark: Any, tmp_path: Path) -> None:
    logged = some_log(random.Random(31), kind, subjects=60)
    queries, rows = frames(logged, tmp_path, spark)
    for guard in [*FILTERS[:1], AT_LEVEL] if kind == "records" else FILTERS:
        here = xp.audit(logged.frame(), queries, filter=guard).to_polars()
        for partitions in (1, 7):
            there = xp.audit_spark(rows.repartition(partitions), queries, filter=guard)
            assert there.to_polars().equals(here)


def test_numbers_name_subjects_on_spark_too(spark: Any, tmp_path: Path) -> None:
    logged = some_log(random.Random(32), "set", subjects=30)
    numbered = [(int(who[1:]), order, key, response) for who, order, key, response in logged.rows]
    queries, rows = frames(Logged(logged.domain, logged.queries, numbered), tmp_path, spark)
    found = xp.audit_spark(rows, queries, filter=GUARD).to_polars()
    assert found["subject"].to_list() == list(range(30))
    alike = xp.audit(logged.frame(), queries, filter=GUARD).to_polars()
    by_name = found.with_columns(polars.format("s{}", "subject").alias("subject")).sort("subject")
    assert by_name.equals(alike)


def test_files_are_read_alike(spark: Any, tmp_path: Path) -> None:
    logged = some_log(random.Random(33), "records", subjects=20)
    queries = logged.save_queries(tmp_path / "queries.json")
    frame = logged.frame()
    frame.write_csv(tmp_path / "log.csv")
    frame.write_parquet(tmp_path / "log.parquet")
    lines = [json.dumps(row) for row in frame.iter_rows(named=True)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    here = xp.audit(frame, queries, filter=GUARD).to_polars()
    for name in ("log.csv", "log.jsonl", "log.parquet"):
        path = tmp_path / name
        there = audit_files_on_spark(path, queries, filter=GUARD, effort=xp.solver.Effort())
        assert there.to_polars().equals(here)


HEADER = "subject,order,query,response\n"
ODD = {
    "more.csv": HEADER + "ann,1,q,a\nann,2,q,b,and more\n",
    "fewer.csv": HEADER + "ann,1,q,a\nann,2,q\n",
    "quoted.csv": HEADER + 'ann,1,q,"c,d"\n"bob ""b""",1,q," a"\n',
    "lines.csv": HEADER + '"ann\nann",1,q,a\n',
    "decimal.csv": HEADER + "ann,1.0,q,a\n",
    "blank.csv": HEADER + "ann,1,q,a\n\nbob,1,q,b\n",
    "twice.csv": "subject,order,query,response,response\nann,1,q,a,b\n",
    "torn.jsonl": '{"subject": "ann", "order": 1, "query": "q", "response": "a"}\n{"subject": "b',
    "mixed.jsonl": '{"subject": 1, "order": "1", "query": "q", "response": "a"}\n'
    '{"subject": "bob", "order": 1, "query": "q", "response": "a", "more": [1]}\n',
    "keys.jsonl": '{"subject": "ann", "order": 1, "query": "q", "response": "a", "subject": "b"}\n',
    "float.jsonl": '{"subject": 1.5, "order": 1, "query": "q", "response": "a"}\n',
    "true.jsonl": '{"subject": "ann", "order": 1, "query": "q", "response": true}\n',
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_read_or_refused_alike(name: str, spark: Any, tmp_path: Path) -> None:
    domain = xp.FiniteSet(["a", "b", " a", "c,d"])
    queries, log = tmp_path / "queries.json", tmp_path / name
    xp.audits.save_queries(domain, {"q": xp.randomized_response(epsilon="0.1")}, queries)
    log.write_text(ODD[name])

    def told(audit: Callable[..., xp.audits.Audit], **more: Any) -> object:
        try:
            return audit(log, queries, filter=GUARD, **more).to_polars().rows()
        except xp.InvalidInput as error:
            return str(error)

    assert told(audit_files_on_spark, effort=xp.solver.Effort()) == told(xp.audit)


def test_columns_go_by_their_names_in_every_file(spark: Any, tmp_path: Path) -> None:
    logged = some_log(random.Random(37), "set", subjects=20)
    queries, folder = logged.save_queries(tmp_path / "queries.json"), tmp_path / "log"
    folder.mkdir()
    frame = logged.frame()
    frame[:50].write_csv(folder / "a.csv")
    frame[50:].select("response", "query", "order", "subject").write_csv(folder / "b.csv")
    here = xp.audit(folder, queries, filter=GUARD).to_polars()
    there = audit_files_on_spark(folder, queries, filter=GUARD, effort=xp.solver.Effort())
    assert there.to_polars().equals(here)


def test_the_command_audits_on_spark(spark: Any, run: Run, tmp_path: Path) -> None:
    logged = some_log(random.Random(35), "set", subjects=20)
    queries = logged.save_queries(tmp_path / "queries.json")
    xp.audits.save_filter(GUARD, tmp_path / "policy.json")
    log = tmp_path / "log.csv"
    logged.frame().write_csv(log)
    files = (log, "--queries", queries, "--filter", tmp_path / "policy.json")
    here = run("audit", *files, "-o", tmp_path / "here")
    there = run("audit", *files, "--engine", "spark", "-o", tmp_path / "there")
    assert there == here
    for name in ("losses.parquet", "summary.json", "audit.html"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    with log.open("a") as file:
        file.write("ann,1,nothing,a\n")
    code, _, err = run("audit", *files, "--engine", "spark")
    assert code == 2
    assert f"{log}: row {len(logged.rows) + 1}: query: unknown query" in err


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("double", 1.5, "subject: must be a non-empty string or an integer"),
        ("double", float("nan"), "subject: must be a non-empty string or an integer"),
        ("double", float("inf"), "subject: must be a non-empty string or an integer"),
        ("string", None, "subject: must be a non-empty string or an integer"),
        ("boolean", True, "subject: must be a label or a number, not true or false"),
        ("binary", b"ann", "subject: must be strings or integers, not binary"),
    ],
)
def test_only_texts_and_integers_name_subjects_on_spark(
    kind: str, name: object, reason: str, spark: Any, tmp_path: Path
) -> None:
    logged = some_log(random.Random(36), "set", subjects=5)
    queries = logged.save_queries(tmp_path / "queries.json")
    _, _, key, response = logged.rows[0]
    schema = f"subject {kind}, `order` bigint, query string, response string"
    rows = spark.createDataFrame([(name, 1, key, response)], schema)
    with pytest.raises(xp.InvalidInput) as caught:
        xp.audit_spark(rows, queries, filter=GUARD)
    assert str(caught.value).endswith(reason)
    if kind == "double":
        whole = spark.createDataFrame([(7.0, 1, key, response)], schema)
        found = xp.audit_spark(whole, queries, filter=GUARD).to_polars()
        assert found["subject"].to_list() == [7]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("s3", 1, "nothing", "a"), "query: unknown query"),
        (("ann", 2, "rr", "a"), "order: is 2, and exchange 1 of this subject is missing"),
        (("s3", 1, "rr", "a"), "order: exchange 1 of this subject appears twice"),
        (("ann", 1, "rr", "e"), "response: 'e' is not a response of rr"),
    ],
)
def test_a_bad_row_is_known_by_its_subject_and_exchange(
    row: tuple[str, int, str, str], reason: str, spark: Any, tmp_path: Path
) -> None:
    logged = some_log(random.Random(34), "set", subjects=20)
    bad = Logged(logged.domain, logged.queries, [*logged.rows, row])
    queries, rows = frames(bad, tmp_path, spark)
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit_spark(rows, queries, filter=GUARD)
    assert f"subject '{row[0]}', exchange {row[1]}: {reason}" in str(caught.value)


def test_all_bad_rows_are_counted(spark: Any, tmp_path: Path) -> None:
    logged = some_log(random.Random(36), "set", subjects=20)
    more = [(f"t{number}", 1, "nothing", "a") for number in range(200)]
    queries, rows = frames(Logged(logged.domain, logged.queries, more), tmp_path, spark)
    with pytest.raises(xp.audits.BadRows) as caught:
        xp.audit_spark(rows, queries, filter=GUARD)
    assert caught.value.count == 200
    assert len(caught.value.rows) == MOST_LISTED
