"""Transcripts: immutable, strict to read, equal after a round trip."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.tally import Tally
from expost.transcript import Transcript
from support.random_cases import transcripts

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "domain": {"values": [0, 1, "a"]},
    "filter": {"kind": "bayesian", "epsilon": "4"},
    "exchanges": [
        {"query": {"kind": "randomized_response", "epsilon": "0.1"}, "response": "a"},
        {
            "query": {
                "kind": "channel",
                "responses": ["no", "yes"],
                "probabilities": [["2/5", "3/5"], [0.5, 0.5], ["1", 0]],
            },
            "response": "no",
        },
        {
            "query": {
                "kind": "perturbation",
                "scores": [0, 0.5, 12],
                "range": [0, 12],
                "epsilon": 1,
            },
            "response": 12,
        },
    ],
}


def edited(path: str, value: Any) -> str:
    """The document with one place replaced (or removed: ``...``)."""
    document = copy.deepcopy(DOCUMENT)
    *parents, last = [int(key) if key.isdigit() else key for key in path.split("/")]
    target: Any = document
    for key in parents:
        target = target[key]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return json.dumps(document)


def test_the_document_is_read() -> None:
    transcript = Transcript.from_json(json.dumps(DOCUMENT))
    assert len(transcript) == 3
    assert transcript.filter is not None
    assert transcript.filter.budget.rational == 4
    assert [exchange.response for exchange in transcript.exchanges] == ["a", "no", 12]
    assert transcript.exchanges[0].query == xp.randomized_response(epsilon=0.1)


QUERY = "exchanges/0/query"
CHANNEL = "exchanges/1/query"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", 2, "version "),
        ("version", "1", "version "),
        ("version", True, "version "),
        ("version", ..., "'version' is missing"),
        ("extra", 1, "extra: unknown field"),
        ("domain", {}, "domain: must have exactly one of"),
        ("domain", {"values": [0, 0]}, r"domain.values\[1\]: 0 appears twice"),
        ("domain", {"values": [0, 1, float("nan")]}, r"domain.values\[2\]: must be a finite"),
        ("domain", {"values": [0, 1, 2**60]}, r"domain.values\[2\]: integer too large"),
        ("domain", {"values": [0, 1, True]}, r"domain.values\[2\]: must be a label or a number"),
        ("domain", {"values": []}, "domain: a domain needs"),
        ("domain", {"values": ["\ud800"]}, r"domain.values\[0\]: is not valid Unicode"),
        ("filter/epsilon", "9" * 50, "filter.epsilon: must be at most 1000000"),
        ("domain", {"box": {"age": [3, 1]}}, "domain.box.age: the lower bound"),
        ("domain", {"points": {"names": ["a"]}}, "domain.points: 'rows' is missing"),
        ("filter", {"kind": "bayesian"}, "filter: give either epsilon or ratio"),
        ("filter", {"kind": "basic", "epsilon": None, "ratio": "2"}, "filter.epsilon: must be a"),
        ("domain", {"points": {"names": ["a"], "rows": [{"a": 1}]}}, r"rows\[0\]: must be a list"),
        ("domain", {"points": {"names": ["a"], "rows": [[2**53 + 1]]}}, r"rows\[0\]: integer too"),
        ("filter/epsilon", "٣", "filter.epsilon: '٣' is not a number"),
        ("filter/kind", "bayes", "filter.kind: unknown filter"),
        ("filter/epsilon", 0, "filter.epsilon: must be greater than 0"),
        ("filter/epsilon", -1, "filter.epsilon: must be greater than 0"),
        ("filter/epsilon", float("inf"), "filter.epsilon: must be a finite number"),
        ("filter/delta", "0.1", "filter.delta: unknown field"),
        ("exchanges", {}, "exchanges: must be a list"),
        ("exchanges/0/response", "b", r"exchanges\[0\].response: is not a response"),
        ("exchanges/0/response", None, r"exchanges\[0\].response: must be a label"),
        ("exchanges/1/response", "maybe", r"exchanges\[1\].response: is not a response"),
        ("exchanges/2/response", 6, r"exchanges\[2\].response: is not a response"),
        ("exchanges/2/response", True, r"exchanges\[2\].response: must be a label or a number"),
        (f"{QUERY}/kind", "randomised", r"exchanges\[0\].query.kind: unknown query"),
        (f"{QUERY}/epsilon", "0", r"exchanges\[0\].query.epsilon: must be greater"),
        (f"{QUERY}/epsilon", 1e300, r"exchanges\[0\].query.epsilon: must be at most 500"),
        (f"{QUERY}/epsilon", True, r"exchanges\[0\].query.epsilon: must be a number"),
        (f"{QUERY}/epsilon", [1], r"exchanges\[0\].query.epsilon: must be a number"),
        (f"{QUERY}/sigma", 1, r"exchanges\[0\].query.sigma: unknown field"),
        (
            f"{CHANNEL}/probabilities/1",
            ["1/2", "1/3"],
            r"exchanges\[1\].query.probabilities\[1\]: the row sums to 5/6",
        ),
        (
            f"{CHANNEL}/probabilities/1/0",
            float("nan"),
            r"exchanges\[1\].query.probabilities\[1\]\[0\]: must be a finite number",
        ),
        (f"{CHANNEL}/probabilities/2", ..., r"query.probabilities: 2 rows for a domain of 3"),
        (f"{CHANNEL}/responses/1", "no", r"query.responses: a response is listed twice"),
        ("exchanges/2/query/scores/1", 13, r"query.scores\[1\]: is outside the range \[0, 12\]"),
        ("exchanges/2/query/scores/1", "1", r"query.scores\[1\]: must be a number"),
    ],
)
def test_bad_input_is_one_line_that_names_the_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message) as caught:
        Transcript.from_json(edited(path, value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "is empty; expected a transcript"),
        ('{"version": 1,\n "version": 1}', "version: appears twice"),
        ('{"a":' * 100_000, "nested too deep"),
        ("[" * 100_000, "line 1 column 101: nested too deep"),
        ("[]", "must be an object"),
        ("null", "must be an object"),
        (f'{{"version": 1, "domain": {{"values": [{"1" * 9000}]}}, "exchanges": []}}', "too large"),
        ('{"version": 1, "domain": {"values": [1e999]}, "exchanges": []}', "finite"),
    ],
)  # fmt: skip
def test_broken_documents_are_refused(document: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        Transcript.from_json(document)


JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    "x",
    "0x1",
    [],
    {},
    [[]],
    1e300,
    float("nan"),
    float("inf"),
    2**70,
]


def places(tree: Any, path: str = "") -> list[str]:
    children = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    below = [place for key, child in children for place in places(child, f"{path}/{key}")]
    return ([path[1:]] if path else []) + below


@pytest.mark.parametrize("path", places(DOCUMENT))
@pytest.mark.parametrize("junk", [*JUNK, ...], ids=repr)
def test_any_junk_in_any_place_is_accepted_or_refused_but_never_crashes(
    path: str, junk: Any
) -> None:
    reason = ""
    try:
        transcript = Transcript.from_json(edited(path, junk))
    except xp.InvalidInput as error:
        reason = str(error)
    assert "\n" not in reason
    if not reason:
        assert Transcript.from_json(json.dumps(_readable(transcript))) == transcript


def _readable(transcript: Transcript) -> Any:
    from expost.files.canonical import readable_tree

    return readable_tree(transcript.tree())


@given(transcripts())
def test_saving_and_loading_changes_nothing(transcript: Transcript) -> None:
    again = Transcript.from_json(json.dumps(_readable(transcript)))
    assert again == transcript
    assert again.content_id == transcript.content_id
    assert xp.Odometer(again).exact_loss == xp.Odometer(transcript).exact_loss


@given(transcripts(), st.data())
def test_whatever_prefix_was_saved_going_on_from_it_never_lowers_a_loss(
    transcript: Transcript, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(transcript)))
    prefix = Transcript(transcript.domain)
    for exchange in transcript.exchanges[:cut]:
        prefix = prefix.add(exchange.query, exchange.response)
    restored = xp.Odometer(Transcript.from_json(json.dumps(_readable(prefix))))
    direct = xp.Odometer(transcript)
    assert restored.history == direct.history[: cut + 1]
    for exchange in transcript.exchanges[cut:]:
        restored = restored.add(exchange.query, exchange.response)
    assert restored.history == direct.history
    assert restored.spent == direct.spent


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "transcript.json"
    transcript = Transcript.from_json(json.dumps(DOCUMENT))
    transcript.save(path)
    transcript.save(path)
    assert xp.load_transcript(path) == transcript
    assert [file.name for file in tmp_path.iterdir()] == ["transcript.json"]


def test_a_byte_order_mark_is_no_reason_to_refuse_a_file(tmp_path: Path) -> None:
    path = tmp_path / "transcript.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8-sig")
    assert xp.load_transcript(path) == Transcript.from_json(json.dumps(DOCUMENT))


def test_names_from_a_file_stay_on_one_line() -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        Transcript.from_json(edited("domain", {"box": {"a\n\x1b[31m": [1]}}))
    assert str(caught.value).isprintable()


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "transcript.json"
    transcript = Transcript.from_json(json.dumps(DOCUMENT))
    transcript.save(path)

    def full(descriptor: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        Transcript(transcript.domain).save(path, overwrite=True)
    assert xp.load_transcript(path) == transcript
    assert [file.name for file in tmp_path.iterdir()] == ["transcript.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "bad.json: is not UTF-8"),
        (None, "bad.json: cannot be read"),
        (b"{", "bad.json"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(xp.InvalidInput, match=message):
        xp.load_transcript(path)


def test_a_file_shows_characters_that_steer_what_is_shown() -> None:
    marks = "\u061c\u200e\u200f\u202a\u202e\u2066\u2069\x7f\x9b\u2028\U000e0001"
    transcript = xp.Transcript(xp.FiniteSet([f"a{marks}", "ε ∈ 日本 😀"]))
    text = transcript.to_json()
    assert all(line.isprintable() for line in text.split("\n"))
    assert r"a\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u007f\u009b\u2028\udb40\udc01" in text
    assert "ε ∈ 日本 😀" in text
    assert Transcript.from_json(text) == transcript


def test_the_content_id_is_the_hash_of_the_canonical_form() -> None:
    transcript = Transcript.from_json(json.dumps(DOCUMENT))
    one, zero = (1.0).hex(), (0.0).hex()
    channel = (
        '{"kind":"channel","probabilities":[["2/5","3/5"],["1/2","1/2"],["1","0"]],'
        '"responses":["no","yes"]}'
    )
    perturbation = (
        f'{{"epsilon":"1","kind":"perturbation","range":["{zero}","{(12.0).hex()}"],'
        f'"scores":["{zero}","{(0.5).hex()}","{(12.0).hex()}"]}}'
    )
    expected = (
        f'{{"domain":{{"values":["{zero}","{one}","a"]}},"exchanges":['
        '{"query":{"epsilon":"1/10","kind":"randomized_response"},"response":"a"},'
        f'{{"query":{channel},"response":"no"}},'
        f'{{"query":{perturbation},"response":"{(12.0).hex()}"}}],'
        '"filter":{"epsilon":"4","kind":"bayesian"},"version":1}'
    )
    assert transcript.content_id == hashlib.sha256(expected.encode()).hexdigest()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([1, 2], [1.0, 2.0], True),
        ([0.0, 1], [-0.0, 1], True),
        (["1", 2], [1, 2], False),
        ([(1.0).hex()], [1], False),
        (["'" + (1.0).hex()], [(1.0).hex()], False),
        (["a", "b"], ["b", "a"], False),
    ],
)
def test_equal_content_and_nothing_else_has_equal_ids(
    first: list[Any], second: list[Any], same: bool
) -> None:
    ids = {Transcript(xp.FiniteSet(values)).content_id for values in (first, second)}
    assert len(ids) == (1 if same else 2)


def test_a_transcript_cannot_be_changed() -> None:
    transcript = Transcript(xp.FiniteSet([0, 1]))
    longer = transcript.add(xp.randomized_response(epsilon=1), 1)
    assert (len(transcript), len(longer)) == (0, 1)
    with pytest.raises(AttributeError):
        transcript.domain = xp.FiniteSet([0])  # type: ignore[misc]


def test_exact_numbers_survive_as_written() -> None:
    query = xp.channel([[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 7), Fraction(6, 7)]])
    transcript = Transcript(xp.FiniteSet([0, 1])).add(query, 0)
    text = json.dumps(_readable(transcript))
    assert '"1/3"' in text
    assert Transcript.from_json(text) == transcript


def test_responses_may_be_vectors() -> None:
    domain = xp.FiniteSet([{"age": 1, "sex": 0}, {"age": 2, "sex": 1}])
    transcript = Transcript(domain).add(xp.randomized_response(epsilon=1), {"age": 2, "sex": 1})
    assert transcript.exchanges[0].response == (2, 1)
    assert Transcript.from_json(json.dumps(_readable(transcript))) == transcript


def test_a_tally_knows_no_order_and_no_identity() -> None:
    domain = xp.FiniteSet(["a", "b"])
    asked = [("0.1", "a"), ("0.2", "b"), ("0.1", "b"), ("0.1", "a"), ("0.2", "b")] * 50
    orders = []
    for seed in range(3):
        generator = random.Random(seed)
        transcript = xp.Transcript(domain)
        for epsilon, response in generator.sample(asked, len(asked)):
            transcript = transcript.add(xp.randomized_response(epsilon=epsilon), response)
        orders.append(transcript)
    first, *others = orders
    tenth, fifth = (xp.randomized_response(epsilon=e).content_id for e in ("0.1", "0.2"))
    assert first.tally.counts == {(tenth, 0): 100, (tenth, 1): 50, (fifth, 1): 100}
    for other in others:
        assert list(other.tally.counts.items()) == list(first.tally.counts.items())
    step_by_step = Tally()
    for exchange in first.exchanges:
        step_by_step = step_by_step.extended(exchange.query, exchange.position)
    assert step_by_step.counts == first.tally.counts
    assert sum(part.times for part in step_by_step) == len(first)
    assert len(step_by_step) == len(list(step_by_step)) == len(first)  # these were all new objects


def test_an_exchange_knows_the_position_of_its_response() -> None:
    domain = xp.FiniteSet(["a", "b", "c"])
    query = xp.randomized_response(epsilon=1)
    transcript = xp.Transcript(domain).add(query, "c").add_position(query, 0)
    assert [(e.response, e.position) for e in transcript.exchanges] == [("c", 2), ("a", 0)]
    assert xp.Transcript.from_json(transcript.to_json()) == transcript


def _twice(first: str, second: str) -> str:
    exchanges = ", ".join(
        f'{{"query": {query}, "response": {response}}}'
        for query, response in ((first, '"1"'), (second, "1"))
    )
    return '{"version": 1, "domain": {"values": ["a", "b"]}, "exchanges": [' + exchanges + "]}"


CHANNEL = '{"kind": "channel", "responses": [%s, "x"], "probabilities": [[1, 0], ["1/2", "1/2"]]}'


def test_a_query_that_is_written_again_is_read_once() -> None:
    written = '{"kind": "randomized_response", "epsilon": 1}'
    document = (
        _twice(written, f" {written}")
        .replace('"1"', '"a"')
        .replace('"response": 1', '"response": "b"')
    )
    first, second = Transcript.from_json(document).exchanges
    assert first.query is second.query


def test_a_label_and_a_number_of_one_text_are_not_one_query() -> None:
    first, second = Transcript.from_json(_twice(CHANNEL % '"1"', CHANNEL % "1")).exchanges
    assert (first.response, second.response) == ("1", 1)
    assert first.query != second.query


def test_a_member_given_twice_is_found_in_a_query_that_was_read_before() -> None:
    sound = '{"kind": "randomized_response", "epsilon": 1}'
    broken = '{"kind": "randomized_response", "epsilon": 2, "epsilon": 1}'
    document = _twice(sound, broken).replace('"response": "1"', '"response": "a"')
    with pytest.raises(xp.InvalidInput, match=r"exchanges\[1\]\.query\.epsilon: appears twice"):
        Transcript.from_json(document)


def test_a_query_that_is_nested_deep_is_refused_as_any_other() -> None:
    deep = "[" * 400 + "]" * 400
    sound = '{"kind": "randomized_response", "epsilon": ' + deep + "}"
    with pytest.raises(xp.InvalidInput, match=r"exchanges\[0\]\.query\.epsilon: must be a number"):
        Transcript.from_json(_twice(sound, sound))
