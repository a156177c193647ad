"""Files with one query, and files of queries with their domain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import expost as xp
from expost.answers import queries_from_json
from expost.audits import save_queries
from expost.queries import Linear, Query, RandomizedResponse, load_query

PERSON = xp.Box(age=(10, 100), region=xp.categories("north", "south"))
SLEEP = xp.linear({"age": 0.1, "region": {"south": -1}}, range=(-1, 10), epsilon="1/3")


def test_a_query_goes_through_a_file_in_which_it_is_as_in_a_transcript(tmp_path: Path) -> None:
    SLEEP.save(tmp_path / "sleep.json")
    assert load_query(tmp_path / "sleep.json") == SLEEP
    written = json.loads((tmp_path / "sleep.json").read_text("utf-8"))
    transcript = json.loads(xp.Transcript(PERSON).add(SLEEP, 10).to_json())
    assert written == transcript["exchanges"][0]["query"]
    assert [path.name for path in tmp_path.iterdir()] == ["sleep.json"]


def test_a_family_reads_only_its_own_queries() -> None:
    assert Linear.from_json(SLEEP.to_json()) == SLEEP
    with pytest.raises(xp.InvalidInput, match="kind: must be 'randomized_response', not 'linear'"):
        RandomizedResponse.from_json(SLEEP.to_json())


def test_an_error_names_the_file_and_the_field(tmp_path: Path) -> None:
    path = tmp_path / "sleep.json"
    path.write_text(SLEEP.to_json().replace("weights", "wieghts"))
    with pytest.raises(xp.InvalidInput, match=r"sleep\.json: wieghts: .* did you mean 'weights'"):
        load_query(path)
    with pytest.raises(xp.InvalidInput, match="must be the text of a file, not dict"):
        Query.from_json({"kind": "linear"})  # type: ignore[arg-type]


def test_queries_and_their_domain_go_through_a_file(tmp_path: Path) -> None:
    queries = {"sleep": SLEEP, "again": SLEEP.with_epsilon(SLEEP.epsilon / 2)}
    save_queries(PERSON, queries, tmp_path / "queries.json")
    assert queries_from_json((tmp_path / "queries.json").read_text("utf-8")) == (PERSON, queries)
    table = {"subject": [1], "query": ["again"], "response": [10]}
    answers = xp.load_answers(table, tmp_path / "queries.json")
    assert (answers.domain, dict(answers.queries)) == (PERSON, queries)


def test_a_query_that_does_not_suit_the_domain_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    with pytest.raises(xp.InvalidInput, match=r"queries\.sleep\.weights\.age: the domain has no"):
        save_queries(xp.Box(height=(1, 2)), {"sleep": SLEEP}, path)
    with pytest.raises(xp.InvalidInput, match="queries: must not be empty"):
        save_queries(PERSON, {}, path)
    assert not path.exists()
