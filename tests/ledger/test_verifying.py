"""Whoever changes what was recorded, and covers it up in the row itself, is found by verifying."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.ledger import Ledger, deciding
from expost.ledger.seals import head_seal, seal_of
from expost.ledger.verifying import Verification

SMOKES = xp.FiniteSet(["no", "yes"])
QUERY, OTHER = xp.randomized_response(epsilon="1/4"), xp.randomized_response(epsilon="1/2")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Every kind of row there is."""
    path = tmp_path / "study.db"
    with Ledger.create(path, SMOKES, filter=xp.BayesianFilter(epsilon=1), every=1) as ledger:
        ledger.register(["ann", "bob", "carl", "dora", 5])
        ledger.record(QUERY, ["no", "yes", "no", "no", "yes"], key="one")
        ledger.record(OTHER, ["no", "yes", "no", "no", "yes"], key="two")
        ledger.ask(OTHER, ["no"] * 5, key="refused")
        ledger.record(OTHER, ["no"], ["carl"], key="too much")
        ledger.reserve(QUERY, ["ann"], key="reserved")
        ledger.receive([b"rubbish"])
        ledger.end()
        assert ledger.verify().good
    return path


TABLES = [
    "commits",
    "subjects",
    "queries",
    "responses",
    "keys",
    "requests",
    "reservations",
    "closures",
    "kept",
    "ends",
]


def tampered(place: Path, statement: str, reseal: bool = True) -> None:
    connection = apsw.Connection(str(place))
    for table in TABLES:
        connection.execute(f"DROP TRIGGER {table}_stay; DROP TRIGGER {table}_last")
    connection.execute("DROP TRIGGER heads_stay; DROP TRIGGER heads_move_forward")
    count = connection.total_changes()
    connection.execute(statement)
    assert connection.total_changes() > count, "nothing was changed"
    if reseal:
        for subject, *head, _ in connection.execute("SELECT * FROM heads").fetchall():
            seal = head_seal(subject, *head)  # type: ignore[arg-type]
            connection.execute("UPDATE heads SET seal = ? WHERE subject = ?", (seal, subject))
        for number, key in connection.execute("SELECT number, key FROM keys").fetchall():
            connection.execute(
                "UPDATE keys SET seal = ? WHERE number = ?", (seal_of((number, key)), number)
            )
        for number, name in connection.execute("SELECT number, name FROM subjects").fetchall():
            connection.execute(
                "UPDATE subjects SET seal = ? WHERE number = ?", (seal_of((number, name)), number)
            )
    connection.close()


CHANGES = [
    "UPDATE requests SET response = 3 - response WHERE sequence = 1 AND subject = 2",
    "UPDATE requests SET sequence = 3 - sequence WHERE subject = 2 AND sequence > 0",
    "DELETE FROM requests WHERE subject = 2 AND sequence = 2",
    "DELETE FROM requests WHERE subject = 2 AND sequence = 2;"
    "UPDATE heads SET sequence = 1 WHERE subject = 2",
    "DELETE FROM requests WHERE sequence = 0 AND subject = 2",
    "UPDATE requests SET sequence = 0, response = 0 WHERE subject = 2 AND sequence = 2",
    "INSERT INTO requests VALUES (1, 3, 1, 0, 0, 0, 3) ON CONFLICT DO UPDATE SET made = 4",
    "UPDATE requests SET subject = 77 WHERE subject = 2 AND sequence = 0",
    "UPDATE requests SET query = 9 WHERE subject = 2 AND sequence = 0",
    "UPDATE requests SET made = made + 1 WHERE subject = 2 AND sequence = 0",
    "UPDATE requests SET response = 1 WHERE subject = 2 AND sequence = 0",
    "UPDATE requests SET previous = 0 WHERE subject = 2 AND sequence = 2",
    "UPDATE heads SET last = 1 WHERE subject = 2",
    "UPDATE heads SET reserved = '' WHERE subject = 1",
    "UPDATE heads SET reserved = 'reserved' WHERE subject = 2",
    "UPDATE heads SET tally = x'' WHERE subject = 2",
    "UPDATE heads SET tally = x'0100000001000000' WHERE subject = 2",
    "UPDATE heads SET closed = 0 WHERE subject = 3",
    "UPDATE heads SET closed = 0 WHERE subject = 3; DELETE FROM closures",
    "DELETE FROM closures",
    "UPDATE closures SET made = made + 1",
    "DELETE FROM reservations",
    "UPDATE reservations SET sequence = sequence + 1",
    "UPDATE kept SET message = x'00'",
    "UPDATE kept SET reason = 'of another ledger'",
    "UPDATE queries SET name = 'smokes' WHERE number = 1",
    "UPDATE queries SET made = made + 1 WHERE number = 2",
    "DELETE FROM kept",
    "UPDATE keys SET key = 'three' WHERE key = 'two'",
    "UPDATE subjects SET name = '\"eve\"' WHERE number = 2",
    "INSERT INTO subjects VALUES (6, '\"eve\"', 2, 0);"
    "INSERT INTO heads SELECT 6, 0, digest, x'', 0, '', 0, 0 FROM heads WHERE subject = 2",
    "UPDATE commits SET root = zeroblob(32) WHERE number = 3",
    "DELETE FROM commits WHERE number = 3",
    "DELETE FROM ends",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_what_was_changed_is_found(place: Path, statement: str) -> None:
    tampered(place, statement)
    with Ledger(place) as ledger:
        found = ledger.verify()
        assert not found.good
        assert str(found).startswith("NOT as recorded: ")


def test_a_decision_that_was_wrong_is_found(place: Path, monkeypatch: Any) -> None:
    """Also if every row says that it is right."""
    path = place.with_name("other.db")
    with Ledger.create(path, SMOKES, filter=xp.BayesianFilter(epsilon=1)) as ledger:
        ledger.register(["ann"])
        decide = deciding.decided

        def generous(*given: Any) -> Any:
            found = decide(*given)
            found.accepted[:] = True
            return found

        def strict(*given: Any) -> Any:
            found = decide(*given)
            found.accepted[:] = False
            return found

        for way, said in ((strict, "a refusal was not due"), (generous, "is over the budget")):
            monkeypatch.setattr(deciding, "decided", way)
            ledger.ask(QUERY, ["no"])
            monkeypatch.setattr(deciding, "decided", generous)
            for _ in range(20):
                ledger.ask(OTHER, ["no"])
            assert any(said in each for each in ledger.verify().problems)
        (found,) = ledger.reserve(xp.randomized_response(epsilon=2))
        assert found is not None
        assert any("a reservation is over" in each for each in ledger.verify().problems)


def test_verifying_tells_how_far_it_is(place: Path) -> None:
    seen = []
    with Ledger(place) as ledger:
        ledger.verify(lambda done, total: seen.append((done, total)))
    assert seen == [(5, 5)]


def canonical(response: Any) -> str:
    return json.dumps(response)


def test_an_export_can_be_checked_without_us(place: Path, tmp_path: Path) -> None:
    """From the text alone, as docs/reference/ledger.md says it; labels are their own JSON."""
    target = tmp_path / "study.jsonl"
    with Ledger(place) as ledger:
        ledger.export(target)
        with pytest.raises(xp.InvalidInput, match="is there already, and is not written over"):
            ledger.export(target)
        tip = ledger.tip
    lines = target.read_bytes().splitlines(keepends=True)
    header, *subjects, end = map(json.loads, lines)
    digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    assert end == {"end": {"subjects": 5, "exchanges": 11, "digest": digest}}
    assert (header["commits"], header["root"]) == (tip.commits, tip.root.hex())
    assert header["policy"]["filter"] == {"kind": "bayesian", "epsilon": "1"}
    assert [each["subject"] for each in subjects] == ["ann", "bob", "carl", "dora", 5]
    assert [each["closed"] for each in subjects] == [False, False, True, False, False]
    for each in subjects:
        name = json.dumps(each["subject"])
        first = f'{{"ledger":1,"policy":"{header["policy_id"]}","subject":{name}}}'
        head = hashlib.sha256(first.encode()).digest()
        for number, (query, response) in enumerate(each["exchanges"], 1):
            assert query in header["queries"]
            said = f'{{"query":"{query}","response":"{response}","sequence":{number}}}'
            head = hashlib.sha256(said.encode() + head).digest()
        assert head.hex() == each["head"]
        counts = Counter(map(tuple, each["exchanges"]))
        assert {(query, response): times for query, response, times in each["tally"]} == counts
        assert each["tally"] == sorted(each["tally"])


def test_chains_of_numbers_are_of_doubles(tmp_path: Path) -> None:
    """A response that is a number is written as a double in hexadecimal, as in content ids."""
    with Ledger.create(
        tmp_path / "s.db", xp.FiniteSet(range(3)), filter=xp.BayesianFilter(epsilon=1)
    ) as ledger:
        ledger.register([7])
        ledger.record(QUERY, [2])
        (head,) = ledger._core.backend.heads([1])
        first = f'{{"ledger":1,"policy":"{ledger.policy.content_id}","subject":7}}'
        before = hashlib.sha256(first.encode()).digest()
        said = f'{{"query":"{QUERY.content_id}","response":"0x1.0000000000000p+1","sequence":1}}'
        assert head.digest == hashlib.sha256(said.encode() + before).digest()


def test_what_is_undecided_is_not_said_to_be_as_it_should_be() -> None:
    found = Verification(9, 20, 3, (), 2)
    assert str(found).endswith("should be, but for the decisions about 2 that are undecided")
    assert "undecided" not in str(Verification(9, 20, 3, (), 0))
