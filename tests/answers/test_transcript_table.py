"""A transcript file with a table of queries, where exchanges have the ids of what was asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.files.canonical import readable_tree
from expost.files.reading import parse
from expost.proof import verify
from expost.queries import query_from_json
from expost.transcript import Transcript
from support.query_families import DOCUMENTS
from support.random_cases import queries, transcripts

LONG: dict[str, Any] = {
    "kind": "channel",
    "responses": ["no", "yes"],
    "probabilities": [["0.4", "0.6"], ["0.5", "0.5"], ["1/3", "2/3"]],
}
SHORT: dict[str, Any] = {"kind": "randomized_response", "epsilon": "0.5"}
DOMAIN = xp.FiniteSet([0, 1, 2])


def id_of(query: Any) -> str:
    return query_from_json(parse(json.dumps(query))).content_id


def listed(tree: Any, which: Callable[[str], bool] = lambda name: True) -> str:
    """A file with the chosen queries in its table."""
    table: dict[str, Any] = {}
    exchanges = []
    for exchange in tree["exchanges"]:
        name = id_of(exchange["query"])
        if which(name):
            table[name] = exchange["query"]
        exchanges.append({**exchange, "query": name if which(name) else exchange["query"]})
    return json.dumps({**tree, "queries": table, "exchanges": exchanges})


def repeated(some: Transcript, times: int) -> Transcript:
    transcript = Transcript(some.domain, some.filter)
    for exchange in [*some.exchanges] * times:
        transcript = transcript.add(exchange.query, exchange.response)
    return transcript


@given(transcripts(most=5), st.integers(1, 4), st.data())
def test_with_or_without_a_table_a_file_is_the_same_transcript(
    some: Transcript, times: int, data: st.DataObject
) -> None:
    transcript = repeated(some, times)
    tree = readable_tree(transcript.tree())
    chosen = data.draw(st.sets(st.sampled_from([id_of(SHORT), *map(_name, transcript.exchanges)])))
    for text in (transcript.to_json(), json.dumps(tree), listed(tree, chosen.__contains__)):
        again = Transcript.from_json(text)
        assert again == transcript
        assert again.content_id == transcript.content_id
        assert again.to_json() == transcript.to_json()


def _name(exchange: xp.transcript.Exchange) -> str:
    return exchange.query.content_id


@given(queries(3), queries(3))
def test_ids_are_equal_exactly_for_equal_queries(first: Any, second: Any) -> None:
    again = query_from_json(parse(json.dumps(readable_tree({"kind": first.kind, **first.tree()}))))
    assert again.content_id == first.content_id
    assert (first.content_id == second.content_id) == (first == second)


@given(transcripts(most=4), st.integers(2, 4))
def test_queries_are_listed_exactly_where_that_makes_a_file_shorter(
    some: Transcript, times: int
) -> None:
    transcript = repeated(some, times)
    written = json.loads(transcript.to_json())
    table = written.pop("queries", {})
    asked = list(map(_name, transcript.exchanges))
    assert list(table) == [name for name in dict.fromkeys(asked) if name in table]
    for name, exchange in zip(asked, transcript.exchanges, strict=True):
        query = readable_tree({"kind": exchange.query.kind, **exchange.query.tree()})
        length = len(json.dumps(query, indent=1, ensure_ascii=False).replace("\n", "\n   "))
        count = asked.count(name)
        assert (name in table) == (length + 66 * (count + 1) < count * length)


@given(transcripts(most=12))
def test_a_file_is_laid_out_as_json_is_and_grows_with_every_exchange(some: Transcript) -> None:
    texts = [some.first(count).to_json() for count in range(len(some) + 1)]
    for text in texts:
        assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    assert sorted(texts, key=len) == texts
    assert len(set(texts)) == len(texts)


def test_what_is_short_or_asked_once_stays_where_it_is_asked() -> None:
    transcript = Transcript(DOMAIN).add(query_from_json(LONG), "yes")
    for _ in range(100):
        transcript = transcript.add(query_from_json(SHORT), 1)
    assert "queries" not in json.loads(transcript.to_json())
    transcript = transcript.add(query_from_json(LONG), "no")
    written = json.loads(transcript.to_json())
    assert written["queries"] == {id_of(LONG): LONG}
    assert written["exchanges"][0] == {"query": id_of(LONG), "response": "yes"}
    assert written["exchanges"][1] == {"query": SHORT, "response": 1}
    assert list(written) == ["version", "domain", "queries", "exchanges"]


def document(table: Any, *exchanges: Any) -> dict[str, Any]:
    fixed = {"version": 1, "domain": {"values": [0, 1, 2]}}
    return {**fixed, "queries": table, "exchanges": list(exchanges)}


NAMED = {"query": id_of(LONG), "response": "yes"}
WRONG = "0" * 64
HOSTILE: dict[str, tuple[Any, str]] = {
    "no table": (
        {**document({}, NAMED), "queries": []},
        "queries: must be an object",
    ),
    "an empty table": (
        document({}, NAMED),
        f'exchanges[0].query: no query in "queries" has the id {id_of(LONG)}',
    ),
    "another id": (
        document({id_of(LONG): LONG}, NAMED, {**NAMED, "query": WRONG + "7" * 9_999}),
        f'exchanges[1].query: no query in "queries" has the id {WRONG}',
    ),
    "the id of a query in an exchange": (
        document({}, {**NAMED, "query": LONG}, NAMED),
        f'exchanges[1].query: no query in "queries" has the id {id_of(LONG)}',
    ),
    "a number for an id": (
        document({id_of(LONG): LONG}, {**NAMED, "query": 0}),
        "exchanges[0].query: must be an object",
    ),
    "the id of another query": (
        document({WRONG: LONG}, {**NAMED, "query": WRONG}),
        f"queries.{WRONG}: differs from the id of its query, {id_of(LONG)}",
    ),
    "an id in capitals": (
        document({id_of(LONG).upper(): LONG}, {**NAMED, "query": id_of(LONG).upper()}),
        f"queries.{id_of(LONG).upper()}: differs from the id of its query, {id_of(LONG)}",
    ),
    "a name that is very long": (
        document({"x" * 9_999: LONG}, NAMED),
        f"queries.{'x' * 64}: differs from the id of its query, {id_of(LONG)}",
    ),
    "a query that nobody asked": (
        document({id_of(LONG): LONG, id_of(SHORT): SHORT}, NAMED),
        f"queries.{id_of(SHORT)}: no exchange names this query",
    ),
    "a query that is written out as well": (
        document({id_of(LONG): LONG}, {**NAMED, "query": LONG}),
        f"queries.{id_of(LONG)}: no exchange names this query",
    ),
    "an id for a query": (
        document({id_of(LONG): id_of(LONG)}, NAMED),
        f"queries.{id_of(LONG)}: must be an object",
    ),
    "what is no query": (
        document({id_of(LONG): {**LONG, "kind": "x"}}, NAMED),
        f"queries.{id_of(LONG)}.kind: unknown query; known: channel, ",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_that_is_not_as_it_must_be_is_one_line_with_its_place(name: str) -> None:
    tree, message = HOSTILE[name]
    with pytest.raises(xp.InvalidInput) as caught:
        Transcript.from_json(json.dumps(tree))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", HOSTILE)
def test_the_checker_is_as_strict(name: str) -> None:
    tree, _ = HOSTILE[name]
    proof = {"version": 1, "responses": [e["response"] for e in tree["exchanges"]], "loss": "99"}
    with pytest.raises(verify.Failed) as caught:
        verify.verify(json.dumps(tree), json.dumps(proof))
    assert "queries" in str(caught.value) or "query" in str(caught.value)


def test_an_id_twice_is_refused_by_both() -> None:
    entry = f'"{id_of(LONG)}": {json.dumps(LONG)}'
    text = json.dumps(document({id_of(LONG): LONG}, NAMED)).replace(entry, f"{entry}, {entry}")
    with pytest.raises(xp.InvalidInput, match=f"^queries.{id_of(LONG)}: appears twice$"):
        Transcript.from_json(text)
    with pytest.raises(verify.Failed, match="given twice"):
        verify.verify(text, "{}")


SPELLINGS: list[dict[str, Any]] = [
    LONG,
    SHORT,
    {**LONG, "delta": "0.25", "responses": ["0x1", 2]},
    {"kind": "linear", "weights": [1, -0.0], "epsilon": "1"},
    {"kind": "linear", "weights": {"epsilon": 0.1}, "range": [0, 12], "clip": True, "epsilon": "1"},
    {"kind": "logistic", "weights": {"é": 0.1, "r": {"0x": 1, "b": 0}}, "epsilon": "1/3"},
    {"kind": "probit", "weights": {"b": 0.1, "a": 3}, "intercept": 2, "epsilon": "1"},
]


@pytest.mark.parametrize(
    "query", [*SPELLINGS, *DOCUMENTS.values()], ids=lambda query: str(query["kind"])
)
def test_the_checker_works_out_the_same_ids(query: Any) -> None:
    name = id_of(query)
    assert verify.is_id(name, verify.read(json.dumps(query), "transcript"))
    full = readable_tree(
        {"kind": query["kind"], **query_from_json(parse(json.dumps(query))).tree()}
    )
    assert verify.is_id(name, verify.read(json.dumps(full), "transcript"))
    other = {**query, "kind": "x"}
    assert not verify.is_id(name, verify.read(json.dumps(other), "transcript"))


BOX = xp.Box(age=(10, 100), region=xp.categories("north", "south"))
ON_BOX = [
    xp.logistic({"age": 0.04, "region": {"north": 0.3}}, intercept=-2, epsilon="0.5"),
    xp.linear({"age": 0.01}, range=(0, 1), clip=True, epsilon="0.25"),
]


@pytest.mark.parametrize("kind", ["set", "box"])
def test_certificates_hold_for_both_ways_to_write_a_file(kind: str) -> None:
    guard = xp.BayesianFilter(epsilon=9)
    transcript = Transcript(DOMAIN if kind == "set" else BOX, guard)
    asked = [query_from_json(LONG), query_from_json(SHORT)] if kind == "set" else ON_BOX
    for i in range(24):
        query = asked[i % 2]
        transcript = transcript.add(query, query.on(transcript.domain).responses[i // 2 % 2])
    text = transcript.to_json()
    plain = json.dumps(readable_tree(transcript.tree()))
    assert "queries" in json.loads(text)
    proof = xp.proof.certificate(transcript)
    verdict = verify.verify(text, proof.encode().decode())
    assert verdict == verify.verify(plain, proof.encode().decode())
    assert verdict.shows_end_within_budget
    assert xp.realized_loss(transcript).lower <= verdict.loss <= proof.loss


def test_a_long_query_that_is_named_thousands_of_times_is_looked_at_once() -> None:
    """A megabyte that would be a gigabyte, were the query in every exchange."""
    size = 2000
    rows = [["0.4", "0.6"] if i % 2 else ["0.5", "0.5"] for i in range(size)]
    query = {"kind": "channel", "responses": ["no", "yes"], "probabilities": rows}
    name, answers = id_of(query), ["no", "yes"]
    exchanges = [{"query": name, "response": answers[i % 2]} for i in range(8000)]
    tree = document({name: query}, *exchanges)
    text = json.dumps({**tree, "domain": {"values": list(range(size))}})
    assert len(text) < 2**20
    start = time.process_time()
    transcript = Transcript.from_json(text)
    loss = xp.realized_loss(transcript)
    assert len(transcript.to_json()) < 2**21
    proof = {"version": 1, "responses": answers * 4000, "loss": f"{loss.upper + 1e-10:.15f}"}
    assert verify.verify(text, json.dumps(proof)).loss <= loss.upper + 1e-10
    assert time.process_time() - start < 5
