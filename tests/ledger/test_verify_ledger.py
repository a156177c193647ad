"""Whatever is changed in a database behind the ledger's back, `verify` finds it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.device.checks import check_export
from expost.ledger import Ledger, LedgerBehind, Verification, _tallies, _verification
from expost.ledger.errors import LedgerStopped
from expost.ledger.tables import TABLES, SubjectRow, check_seal, seal
from support.scripted_devices import (
    HALF,
    OTHER,
    QUARTER,
    ScriptedDevice,
    a_ledger,
    reserved,
    restore,
)

TOO_MUCH = xp.randomized_response(epsilon=3)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger that has rows in every table."""
    folder = tmp_path_factory.mktemp("original")
    place = folder / "study.db"
    with a_ledger(folder) as ledger:
        ledger.register(["ann", "bob", 3])
        ledger.register(["paper"], kind="imported")
        ledger.backup(folder / "backup.db")
        ledger.register(["lost"])
        ledger.record(QUARTER, ["no"], ["paper"], key="log")
    restore(folder / "backup.db", place)
    Ledger.recover(place)
    with Ledger(place) as ledger:
        phones = {name: ScriptedDevice(ledger, name) for name in ("ann", "bob", 3)}
        for name, phone in phones.items():
            assert phone.sync(ledger)["state"] == "active"
            ledger.reserve(HALF, [name], key="one")
            phone.send(ledger, response="yes")
        ledger.reserve(TOO_MUCH, ["ann"], key="refused")
        ledger.reserve(QUARTER, key="two")
        ledger.receive([phones["bob"].declined(phones["bob"].reservation(ledger), QUARTER)])
        reservation = phones[3].reservation(ledger)
        ledger.receive([phones[3].message(reservation, QUARTER, head="0" * 64), "junk"])
        phones[3].store(phones[3].message(reservation, QUARTER, "no"))
        ledger.receive(phones[3].sent)
        ledger.record(QUARTER, ["no"], ["paper"], key="log")
        ledger.end()
        found = ledger.verify()
        assert found.good, found
        assert (found.subjects, found.exchanges, found.commits) == (4, 5, ledger.tip.commit_number)
    (folder / "backup.db").unlink()
    return folder


@pytest.fixture
def place(original: Path, tmp_path: Path) -> Path:
    for file in original.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path / "study.db"


def opened(place: Path) -> Any:
    """Return a connection to a database whose triggers are gone."""
    connection: Any = apsw.Connection(str(place))
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def reseal(connection: Any) -> None:
    """Make the checksums of subjects right again, as an attacker would."""
    columns = ", ".join(f'"{name}"' for name in SubjectRow._fields)
    for fields in connection.execute(f"SELECT {columns} FROM subjects").fetchall():
        row = SubjectRow(*fields)
        connection.execute("UPDATE subjects SET seal = ? WHERE name = ?", (seal(row), row.name))


def is_noticed(place: Path) -> bool:
    """Return whether opening or verifying a ledger reports a problem."""
    try:
        with Ledger(place) as ledger:
            found = ledger.verify()
    except LedgerStopped:
        return True
    assert str(found).startswith("verified: " if found.good else "NOT as recorded: ")
    return not found.good


COLUMNS = [(table.name, name) for table in TABLES.values() for name in table.columns]
SEALS = {("subjects", "seal")}


def changed(value: Any) -> Any:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else bytes(8)
    return f"{value}x"


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_change_of_any_column_of_any_row_is_found(place: Path, table: str, column: str) -> None:
    connection = opened(place)
    keys = next(each for each in TABLES.values() if each.name == table).quoted_key
    rows = connection.execute(
        f'SELECT "{column}", {", ".join(keys)} FROM {table} ORDER BY {", ".join(keys)}'
    ).fetchall()
    assert rows, "the study has no such row"
    value, *key = rows[-1]
    where = " AND ".join(f"{name} = ?" for name in keys)
    connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE {where}', (changed(value), *key))
    if (table, column) not in SEALS:
        reseal(connection)
    connection.close()
    assert is_noticed(place)


@pytest.mark.parametrize("table", [table.name for table in TABLES.values()])
def test_a_removed_row_is_found(place: Path, table: str) -> None:
    keys = next(each for each in TABLES.values() if each.name == table).quoted_key
    connection = opened(place)
    count = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    key = connection.execute(
        f"SELECT {', '.join(keys)} FROM {table} ORDER BY {', '.join(keys)} DESC LIMIT 1"
    ).fetchall()[0]
    where = " AND ".join(f"{name} = ?" for name in keys)
    connection.execute(f"DELETE FROM {table} WHERE {where}", key)
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] == count - 1
    connection.close()
    assert is_noticed(place)


@pytest.mark.parametrize("table", [table.name for table in TABLES.values()])
def test_a_duplicated_row_is_found(place: Path, table: str) -> None:
    """A copy of a row under the next free key."""
    found = next(each for each in TABLES.values() if each.name == table)
    connection = opened(place)
    columns = ", ".join(found.quoted)
    row = list(connection.execute(f"SELECT {columns} FROM {table}").fetchall()[-1])
    place_of_key = found.keys - 1
    for _ in range(1000):
        row[place_of_key] = changed(row[place_of_key])
        try:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
            break
        except apsw.ConstraintError:
            continue
    else:
        raise AssertionError("no key is free")
    reseal(connection)
    connection.close()
    assert is_noticed(place)


CHANGES = [
    # A refusal, a decline or an open reservation that is not remembered.
    "DELETE FROM requests WHERE sequence = 0",
    "UPDATE subjects SET reserved = '', query = 0 WHERE reserved <> ''",
    "UPDATE subjects SET reserved = 'two' WHERE reserved = ''",
    "DELETE FROM requests WHERE key = 'two'; UPDATE subjects SET reserved = '', query = 0",
    # A budget that is partly given back.
    "UPDATE subjects SET tally = x''",
    "UPDATE subjects SET extras = x''",
    "UPDATE subjects SET extras = x''; DELETE FROM extras",
    "UPDATE subjects SET sequence = 0, tally = x''; DELETE FROM exchanges",
    # A suspension that is lifted.
    "UPDATE subjects SET state = 'active'",
    "UPDATE subjects SET state = 'active'; DELETE FROM states WHERE state = 'suspended'",
    "UPDATE states SET state = 'resolved' WHERE state = 'suspended'",
    # Exchanges in another order, of another subject, with another response.
    "UPDATE exchanges SET response = 3 - response WHERE sequence = 1",
    "UPDATE exchanges SET subject = '\"eve\"' WHERE subject = '\"ann\"'",
    "UPDATE exchanges SET key = 'other' WHERE key = 'one'",
    # The end of the study, a recovery, and what it lost.
    "DELETE FROM marks WHERE what = 'ended'",
    "DELETE FROM marks",
    "DELETE FROM lost",
    "UPDATE lost SET detail = 'simulated' WHERE what = 'registered'",
    "DELETE FROM quarantine",
    "UPDATE commits SET root = zeroblob(32) WHERE number = 3",
    "UPDATE commits SET events = '[]'",
    "UPDATE commits SET events = 'junk'",
    "UPDATE queries SET document = '{}'",
    "UPDATE responses SET response = '\"maybe\"'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_change_with_a_purpose_is_found(place: Path, statement: str) -> None:
    connection = opened(place)
    before = connection.total_changes()
    connection.execute(statement)
    assert connection.total_changes() > before, "nothing was changed"
    reseal(connection)
    connection.close()
    assert is_noticed(place)


def test_nothing_is_found_in_a_ledger_that_was_not_changed(place: Path) -> None:
    connection = opened(place)
    reseal(connection)
    connection.close()
    assert not is_noticed(place)


def test_a_seal_covers_every_bit_of_a_row() -> None:
    row = SubjectRow('"ann"', 5, "device", "active", 0, 2, b"h" * 32, b"t" * 16, b"", "k", 1, 9)
    row = row._replace(seal=seal(row))
    assert check_seal(row) == row
    others = 0
    for name in SubjectRow._fields[:-1]:
        for other in flipped(getattr(row, name)):
            others += 1
            with pytest.raises(LedgerStopped, match="is not what was recorded"):
                check_seal(row._replace(**{name: other}))
    assert others == 8 * (5 + 6 + 6 + 32 + 16 + 1) + 5 * 63


def flipped(value: Any) -> list[Any]:
    """Return values with one bit changed."""
    if isinstance(value, int):
        return [value ^ 1 << bit for bit in range(63)]
    content = value.encode("latin-1") if isinstance(value, str) else value
    whole = int.from_bytes(content)
    found = [(whole ^ 1 << bit).to_bytes(len(content)) for bit in range(8 * len(content))]
    return [each.decode("latin-1") for each in found] if isinstance(value, str) else found


class TestDecisions:
    """A ledger that decided wrongly is found, even if every row agrees."""

    def test_a_refusal_that_was_not_due_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            with monkeypatch.context() as patch:
                patch.setattr(_tallies.Decider, "accepted", lambda *_: [False])
                assert reserved(ledger, OTHER) == ["refused"]
            assert ledger.verify().problems == ('"ann": a refusal was not due',)

    def test_a_reservation_over_the_budget_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            with monkeypatch.context() as patch:
                patch.setattr(_tallies.Decider, "accepted", lambda *_: [True])
                assert reserved(ledger, TOO_MUCH) == ["reserved"]
            problem = '"ann": a reservation was not within the budget'
            assert ledger.verify().problems == (problem,)
            ScriptedDevice(ledger).send(ledger, TOO_MUCH)
            problems = ledger.verify().problems
            assert set(problems) == {problem, '"ann": exchange 1 is not within the budget'}
            assert not ledger.audit().good


def test_progress_ends_with_all_subjects(place: Path) -> None:
    seen = []
    with Ledger(place) as ledger:
        ledger.verify(lambda done, total: seen.append((done, total)))
    assert seen == [(4, 4)]


def test_undecided_subjects_are_counted() -> None:
    found = Verification(9, 20, 3, (), 2)
    assert found.good
    assert str(found).endswith("except that decisions about 2 subjects are undecided")
    assert "undecided" not in str(Verification(9, 20, 3, (), 0))


def test_only_the_first_problems_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_verification, "_SHOWN", 3)
    with a_ledger(tmp_path) as ledger:
        ledger.register(range(10))
        monkeypatch.setattr(
            _tallies.Decider, "accepted", lambda self, given, *_: [False] * len(given)
        )
        ledger.reserve(OTHER)
        assert len(ledger.verify().problems) == 3


class TestRoots:
    """The root of a commit is what the reference page says, computed from the rows alone."""

    def test_every_root_follows_from_the_rows(self, place: Path) -> None:
        connection: Any = apsw.Connection(str(place))
        (document,) = connection.execute("SELECT document FROM study").fetchall()[0]
        assert json.loads(document)["version"] == 1
        with Ledger(place) as ledger:
            policy_id = ledger.policy.content_id
        root = hashlib.sha256(f'{{"ledger":2,"policy":"{policy_id}"}}'.encode()).digest()
        lines: dict[int, list[bytes]] = {}
        for table in TABLES.values():
            if table.name == "commits":
                continue
            columns = ", ".join(table.quoted)
            for row in connection.execute(f"SELECT {columns} FROM {table.name}").fetchall():
                fields = dict(zip(table.columns, row, strict=True))
                fixed = row[:3] if table.name == "subjects" else row[:-1]
                plain = [x.hex() if isinstance(x, bytes) else x for x in fixed]
                line = json.dumps([table.name, *plain]).encode() + b"\n"
                lines.setdefault(fields["commit"], []).append(line)
        commits = connection.execute(
            "SELECT number, root, events FROM commits ORDER BY number"
        ).fetchall()
        assert commits[0][1] == root
        for number, expected, events in commits[1:]:
            own = [*lines.get(number, []), b'["events", %b]\n' % events.encode()]
            root = hashlib.sha256(root.hex().encode() + b"\n" + b"".join(sorted(own))).digest()
            assert root == expected, number

    def test_a_ledger_with_all_roots_recomputed_is_a_fork(self, place: Path) -> None:
        """The checkpoint has the roots that were there before."""
        connection = opened(place)
        connection.execute("UPDATE exchanges SET key = 'other' WHERE key = 'one'")
        connection.close()
        with Ledger(place) as ledger:
            assert ledger.verify().problems[-1].endswith("has another root")
        connection = opened(place)
        connection.execute("UPDATE commits SET root = randomblob(32) WHERE number > 0")
        connection.close()
        with pytest.raises(LedgerBehind, match="the database is a fork"):
            Ledger(place)


class TestExport:
    """An export can be checked without the ledger."""

    def test_it_is_what_the_reference_page_says(self, place: Path, tmp_path: Path) -> None:
        target = tmp_path / "study.jsonl"
        with Ledger(place) as ledger:
            ledger.export(target)
            with pytest.raises(xp.InvalidInput, match="already exists; not overwritten"):
                ledger.export(target)
            tip, names = ledger.tip, ledger.subjects
        lines = target.read_bytes().splitlines(keepends=True)
        header, *subjects, end = map(json.loads, lines)
        digest = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
        assert end == {"end": {"subjects": 4, "exchanges": 5, "digest": digest}}
        assert (header["ledger"], header["commits"], header["root"]) == (
            2, tip.commit_number, tip.root.hex(),
        )  # fmt: skip
        assert tuple(each["subject"] for each in subjects) == names
        assert [each["number"] for each in subjects] == [1, 2, 3, 4]
        assert [each["state"] for each in subjects] == ["active", "active", "suspended", "active"]
        assert [each["kind"] for each in subjects] == ["device"] * 3 + ["imported"]
        assert [len(each["extras"]) for each in subjects] == [0, 0, 1, 0]
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
            assert {(query, response): n for query, response, n in each["tally"]} == counts
            assert each["tally"] == sorted(each["tally"])

    def test_the_stand_alone_checker_accepts_it(self, place: Path, tmp_path: Path) -> None:
        with Ledger(place) as ledger:
            ledger.export(tmp_path / "study.jsonl")
        export = check_export(str(tmp_path / "study.jsonl"))
        assert (export.faults, export.decided) == ([], True)
        assert (export.subjects, export.exchanges, export.extras) == (4, 5, 1)

    def test_the_stand_alone_checker_finds_a_change(self, place: Path, tmp_path: Path) -> None:
        target = tmp_path / "study.jsonl"
        with Ledger(place) as ledger:
            ledger.export(target)
        content = target.read_text("utf-8")
        target.write_text(content.replace('"yes"', '"no"', 1), "utf-8")
        assert check_export(str(target)).faults

    def test_it_leaves_nothing_behind_when_it_fails(self, place: Path, tmp_path: Path) -> None:
        before = sorted(tmp_path.iterdir())
        with Ledger(place) as ledger:

            def full(done: int, total: int) -> None:
                raise OSError(28, "No space left on device")

            with pytest.raises(xp.InvalidInput, match="cannot be written: No space left"):
                ledger.export(tmp_path / "study.jsonl", progress=full)
            names = {file.name for file in tmp_path.iterdir()} - {"study.db-wal", "study.db-shm"}
        assert names == {file.name for file in before}


def test_chains_of_numbers_are_of_doubles(tmp_path: Path) -> None:
    """A response that is a number is chained as a double in hexadecimal, as in content ids."""
    guard = xp.BayesianFilter(epsilon=1)
    with Ledger.create(tmp_path / "s.db", xp.FiniteSet(range(3)), filter=guard) as ledger:
        ledger.register([7], kind="imported")
        ledger.record(QUARTER, [2])
        (row,) = ledger._engine.backend.scan(SubjectRow)
        first = f'{{"ledger":1,"policy":"{ledger.policy.content_id}","subject":7}}'
        before = hashlib.sha256(first.encode()).digest()
        said = f'{{"query":"{QUARTER.content_id}","response":"0x1.0000000000000p+1","sequence":1}}'
        assert row.head == hashlib.sha256(said.encode() + before).digest()
