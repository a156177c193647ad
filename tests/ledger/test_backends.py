"""One suite for every backend of a ledger: what backend.py promises, in a file and on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from expost.errors import InvalidInput
from expost.ledger._postgres import Postgres
from expost.ledger._sqlite import Sqlite
from expost.ledger.backend import Backend, Commit, Tip
from expost.ledger.errors import LedgerBroken, LedgerDamaged, LedgerLocked
from expost.ledger.tables import (
    TABLES,
    CommitRow,
    DeclineRow,
    ExchangeRow,
    MarkRow,
    RequestRow,
    RowTable,
    SubjectRow,
)
from support.postgres_server import fresh

DOCUMENT = '{"study": "crashes, naïve 100 %"}'
ROOT = bytes(range(32))
LARGEST = (1 << 63) - 1


@dataclass
class Store:
    """A new ledger, which any number of backends may open."""

    new: Callable[[], None]
    connect: Callable[[], Backend]
    opened: ExitStack = field(default_factory=ExitStack)

    def open(self) -> Any:
        backend = self.connect()
        self.opened.callback(backend.close)
        return backend


def sqlite_store(path: Path) -> Store:
    return Store(lambda: Sqlite.create(path, DOCUMENT, ROOT), lambda: Sqlite.open(path))


def postgres_store(url: str) -> Store:
    return Store(lambda: Postgres.create(url, DOCUMENT, ROOT), lambda: Postgres.open(url))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        store = sqlite_store(tmp_path / "study.db")
    else:
        store = postgres_store(request.getfixturevalue("postgres"))
    store.new()
    with store.opened:
        yield store


@pytest.fixture
def backend(store: Store) -> Any:
    """The writer of the ledger."""
    backend = store.open()
    backend.claim()
    return backend


def subject(name: str, number: int = 1, **changes: Any) -> SubjectRow:
    row = SubjectRow(name, number, "device", "active", 0, 0, b"head", b"", b"", "", 0, 1, 5)
    return row._replace(**changes)


def commit(
    number: int, *added: tuple[Any, ...], changed: Sequence[SubjectRow] = (), events: str = "[]"
) -> Commit:
    tables: dict[type[Any], list[tuple[Any, ...]]] = {}
    for row in added:
        tables.setdefault(type(row), []).append(row)
    return Commit(Tip(number, bytes([number]) * 32), events, tables, changed)


ANN, BOB = subject('"ann"', 1), subject('"bob"', 2)
REQUEST = RequestRow('"ann"', "week 1", 1, 1, 1)


# -- a new ledger


def test_a_new_ledger_has_its_policy_and_the_first_root(store: Store) -> None:
    backend = store.open()
    assert backend.policy() == DOCUMENT
    assert backend.tip() == Tip(0, ROOT)
    assert list(backend.scan(CommitRow)) == [CommitRow(0, ROOT, "[]")]
    for row in TABLES:
        if row is not CommitRow:
            assert list(backend.scan(row)) == []


def test_a_ledger_is_never_overwritten(store: Store, backend: Any) -> None:
    backend.commit(commit(1, ANN))
    with pytest.raises(InvalidInput, match="already exists; ledgers are never overwritten"):
        store.new()
    assert store.open().tip() == Tip(1, bytes([1]) * 32)


# -- one writer


def test_only_one_of_two_writers_can_commit(store: Store) -> None:
    first, second = store.open(), store.open()
    first.claim()
    first.commit(commit(1, ANN))
    try:
        second.claim()
        writer, other = second, first
    except LedgerLocked:
        writer, other = first, second
    with pytest.raises(LedgerBroken, match="another process has taken over"):
        other.commit(commit(2, BOB))
    writer.commit(commit(2, REQUEST))
    reader = store.open()
    assert list(reader.scan(SubjectRow)) == [ANN]
    assert list(reader.scan(RequestRow)) == [REQUEST]


def test_a_ledger_is_claimed_again_once_its_writer_has_closed_it(store: Store) -> None:
    for number, row in ((1, ANN), (2, BOB)):
        backend = store.open()
        backend.claim()
        backend.commit(commit(number, row))
        backend.close()
    assert list(store.open().scan(SubjectRow)) == [ANN, BOB]


def test_a_released_ledger_has_another_writer_and_stays_readable(store: Store) -> None:
    first, second = store.open(), store.open()
    first.claim()
    first.commit(commit(1, ANN))
    first.release()
    second.claim()
    second.commit(commit(2, BOB))
    assert list(first.scan(SubjectRow)) == [ANN, BOB]
    second.release()
    first.claim()
    first.commit(commit(3, REQUEST))
    assert second.tip().commit_number == 3
    with pytest.raises(LedgerBroken, match="another process has taken over"):
        second.commit(commit(4))


def test_a_writer_may_claim_its_own_ledger_again(backend: Any) -> None:
    backend.commit(commit(1, ANN))
    backend.claim()
    backend.commit(commit(2, BOB))
    assert backend.tip().commit_number == 2


def test_a_writer_that_has_not_claimed_the_ledger_cannot_commit(store: Store, backend: Any) -> None:
    with pytest.raises(LedgerBroken):
        store.open().commit(commit(1, ANN))
    assert store.open().tip().commit_number == 0


# -- commits


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_commit_has_to_be_the_next_one(store: Store, backend: Any, number: int) -> None:
    backend.commit(commit(1, ANN))
    with pytest.raises(LedgerBroken, match="another process has taken over"):
        backend.commit(commit(number, BOB))
    reader = store.open()
    assert reader.tip() == Tip(1, bytes([1]) * 32)
    assert list(reader.scan(SubjectRow)) == [ANN]


def test_a_commit_is_there_for_others_once_it_returns(store: Store, backend: Any) -> None:
    reader = store.open()
    backend.commit(commit(1, ANN, REQUEST, events='["registered"]'))
    assert reader.tip() == Tip(1, bytes([1]) * 32)
    assert reader.find(CommitRow, [(1,)]) == {(1,): CommitRow(1, bytes([1]) * 32, '["registered"]')}
    assert reader.find(RequestRow, [REQUEST[:2]]) == {REQUEST[:2]: REQUEST}


@pytest.mark.parametrize(
    "repeated", [ANN, REQUEST, REQUEST._replace(query=2), ANN._replace(number=3)]
)
def test_a_row_whose_key_exists_fails_the_whole_commit(
    store: Store, backend: Any, repeated: tuple[Any, ...]
) -> None:
    backend.commit(commit(1, ANN, REQUEST))
    new = MarkRow(1, "ended", "", 2)
    moved = ANN._replace(sequence=1)
    with pytest.raises(LedgerBroken, match="the ledger could not be written") as raised:
        backend.commit(commit(2, BOB, new, repeated, changed=[moved]))
    assert "ann" not in str(raised.value)
    assert "week" not in str(raised.value)
    reader = store.open()
    assert reader.tip().commit_number == 1
    assert list(reader.scan(SubjectRow)) == [ANN]
    assert list(reader.scan(RequestRow)) == [REQUEST]
    assert list(reader.scan(MarkRow)) == []


def test_after_a_failed_commit_the_ledger_can_be_opened_and_written_again(store: Store) -> None:
    backend = store.open()
    backend.claim()
    backend.commit(commit(1, ANN))
    with pytest.raises(LedgerBroken):
        backend.commit(commit(2, ANN))
    backend.close()
    again = store.open()
    again.claim()
    again.commit(commit(2, BOB))
    assert list(again.scan(SubjectRow)) == [ANN, BOB]


def test_a_subject_moves_forward(store: Store, backend: Any) -> None:
    backend.commit(commit(1, ANN, BOB))
    moved = SubjectRow(
        '"ann"', 1, "device", "suspended", 3, 7, b"h" * 32, b"\0\1", b"e", "week 1", 4, 1, LARGEST
    )
    backend.commit(commit(2, changed=[moved]))
    assert list(store.open().scan(SubjectRow)) == [moved, BOB]
    resolved = moved._replace(state="active", reserved="", query=0)
    backend.commit(commit(3, changed=[resolved, BOB._replace(state="barred")]))
    found = store.open().find(SubjectRow, [('"ann"',), ('"bob"',)])
    assert found == {('"ann"',): resolved, ('"bob"',): BOB._replace(state="barred")}


@pytest.mark.parametrize(
    "changes",
    [{"sequence": 4}, {"number": 9}, {"kind": "simulated"}, {"state": "active"}],
    ids=lambda changes: str(*changes),
)
def test_a_subject_never_moves_back(store: Store, backend: Any, changes: dict[str, Any]) -> None:
    stored = ANN._replace(sequence=5, state="barred")
    backend.commit(commit(1, stored, BOB))
    changed = [BOB._replace(sequence=1), stored._replace(**changes)]
    with pytest.raises(LedgerBroken):
        backend.commit(commit(2, REQUEST, changed=changed))
    reader = store.open()
    assert list(reader.scan(SubjectRow)) == [stored, BOB]
    assert (reader.tip().commit_number, list(reader.scan(RequestRow))) == (1, [])


def test_a_subject_that_is_not_there_is_neither_changed_nor_added(
    store: Store, backend: Any
) -> None:
    backend.commit(commit(1, ANN))
    with pytest.raises(LedgerDamaged, match="cannot be found again"):
        backend.commit(commit(2, REQUEST, changed=[ANN._replace(sequence=1), BOB]))
    reader = store.open()
    assert list(reader.scan(SubjectRow)) == [ANN]
    assert (reader.tip().commit_number, list(reader.scan(RequestRow))) == (1, [])


def test_many_subjects_are_added_and_changed_in_one_commit(store: Store, backend: Any) -> None:
    rows = [subject(f'"{number:04}"', number) for number in range(1, 1203)]
    backend.commit(commit(1, *rows))
    changed = [row._replace(sequence=row.number, tally=bytes(row.number % 7)) for row in rows]
    requests = [RequestRow(row.name, "week 1", 1, 1, 2) for row in rows]
    backend.commit(commit(2, *requests, changed=changed))
    reader = store.open()
    assert list(reader.scan(SubjectRow)) == changed
    keys = [row[:2] for row in requests]
    assert reader.find(RequestRow, keys) == dict(zip(keys, requests, strict=True))


# -- finding rows


def test_find_returns_the_rows_that_exist(backend: Any) -> None:
    rows = [RequestRow(f'"{n}"', f"week {n % 3}", n, n, 1) for n in range(20)]
    backend.commit(commit(1, *rows))
    assert backend.find(RequestRow, []) == {}
    missing = [('"3"', "week 1"), ('"99"', "week 0"), ("", ""), ('"3"', "WEEK 0")]
    assert backend.find(RequestRow, missing) == {}
    keys = [rows[7][:2], missing[0], rows[2][:2], rows[7][:2]]
    assert backend.find(RequestRow, keys) == {rows[7][:2]: rows[7], rows[2][:2]: rows[2]}
    assert all(type(row) is RequestRow for row in backend.find(RequestRow, keys).values())


def test_a_key_that_cannot_be_stored_is_not_found(backend: Any) -> None:
    """Devices send keys: none may look like damage."""
    backend.commit(commit(1, ANN, REQUEST))
    odd = [('"ann"', "week 1\0"), ("\0", ""), ('"ann"', "w" * 100_000)]
    assert backend.find(RequestRow, [*odd, REQUEST[:2]]) == {REQUEST[:2]: REQUEST}
    assert backend.find(RequestRow, odd[:1]) == {}


# -- scanning


def test_rows_come_in_the_order_of_their_keys(backend: Any) -> None:
    """Texts by their code points, in every locale; numbers by their size."""
    names = ["", "B", "Z", "a", "a b", "a-b", "ab", "b", "é", "\uffff", "\U00010000"]
    assert names == sorted(names)
    numbers = [1, 2, 9, 10, 11, LARGEST]
    requests = [RequestRow(name, key, 1, 1, 1) for name in names for key in ("x", "y")]
    exchanges = [ExchangeRow("n", number, "k", 1, 1, b"", 1) for number in numbers]
    backend.commit(commit(1, *reversed(requests), *reversed(exchanges)))
    assert list(backend.scan(RequestRow)) == requests
    assert list(backend.scan(ExchangeRow)) == exchanges
    with backend.snapshot():
        assert list(backend.scan(RequestRow)) == requests
        assert list(backend.scan(ExchangeRow)) == exchanges


def test_a_prefix_selects_rows_by_the_first_fields_of_their_keys(backend: Any) -> None:
    rows = [ExchangeRow(name, n, "k", 1, 1, b"", 1) for name in ("a", "aa", "b") for n in (1, 2)]
    backend.commit(commit(1, *rows))
    assert list(backend.scan(ExchangeRow, ("a",))) == rows[:2]
    assert list(backend.scan(ExchangeRow, ("b", 2))) == rows[5:]
    assert list(backend.scan(ExchangeRow, ("c",))) == []


def test_rows_of_later_commits_come_in_the_order_of_commits(backend: Any) -> None:
    rows = [DeclineRow(f"{9 - number}", "k", number) for number in range(1, 8)]
    for row in rows:
        backend.commit(commit(row.commit, row))
    assert list(backend.scan(DeclineRow, after=0)) == rows
    assert list(backend.scan(DeclineRow, after=4)) == rows[4:]
    assert list(backend.scan(DeclineRow, after=7)) == []
    assert [row.number for row in backend.scan(CommitRow, after=5)] == [6, 7]
    assert list(backend.scan(DeclineRow)) == rows[::-1]


# -- snapshots


def many_marks(number: int) -> list[MarkRow]:
    return [MarkRow(number * 10_000 + n, "ended", "", number) for n in range(5000)]


def test_all_reads_in_a_snapshot_see_the_same_commit(store: Store, backend: Any) -> None:
    backend.commit(commit(1, ANN, *many_marks(1)))
    reader = store.open()
    with reader.snapshot():
        assert reader.tip().commit_number == 1
        marks = reader.scan(MarkRow)
        first = next(marks)
        backend.commit(commit(2, BOB, *many_marks(2), changed=[ANN._replace(sequence=1)]))
        assert [first, *marks] == many_marks(1)
        assert reader.tip().commit_number == 1
        assert reader.find(SubjectRow, [('"ann"',), ('"bob"',)]) == {('"ann"',): ANN}
        assert list(reader.scan(SubjectRow)) == [ANN]
    assert reader.tip().commit_number == 2
    assert list(reader.scan(SubjectRow)) == [ANN._replace(sequence=1), BOB]


def test_several_scans_are_open_at_once_in_a_snapshot(backend: Any) -> None:
    rows = many_marks(1)
    backend.commit(commit(1, *rows, ANN))
    with backend.snapshot():
        pairs = zip(backend.scan(MarkRow), backend.scan(MarkRow), strict=True)
        for place, (one, other) in enumerate(pairs):
            assert one == other == rows[place]
            if place % 1000 == 0:
                assert list(backend.scan(SubjectRow)) == [ANN]
                assert backend.find(MarkRow, [rows[3][:1]]) == {rows[3][:1]: rows[3]}


def test_a_scan_may_be_left_before_its_end(store: Store, backend: Any) -> None:
    backend.commit(commit(1, *many_marks(1)))
    with backend.snapshot():
        left = backend.scan(MarkRow)
        assert len(list(islice(left, 3))) == 3
    left.close()
    with backend.snapshot():
        assert len(list(islice(backend.scan(MarkRow), 3))) == 3
        assert backend.tip().commit_number == 1
    backend.commit(commit(2, ANN))
    assert store.open().tip().commit_number == 2


def test_a_snapshot_ends_with_an_error_in_it_and_a_writer_goes_on(backend: Any) -> None:
    with pytest.raises(ZeroDivisionError), backend.snapshot():
        assert backend.tip().commit_number // 0
    backend.commit(commit(1, ANN))
    assert backend.tip().commit_number == 1


# -- checks and copies


def test_nothing_is_wrong_with_a_ledger_that_nobody_touched(backend: Any) -> None:
    backend.commit(commit(1, ANN, REQUEST))
    assert backend.check() == []


def test_a_backup_is_a_new_ledger_or_the_command_that_makes_one(
    store: Store, backend: Any, tmp_path: Path
) -> None:
    backend.commit(commit(1, ANN, REQUEST))
    path = tmp_path / "copy of study.db"
    if isinstance(backend, Postgres):
        with pytest.raises(InvalidInput, match=f"pg_dump .*'--file={path}'"):
            backend.backup(path)
        return
    backend.backup(path)
    backend.commit(commit(2, BOB))
    copy = Sqlite.open(path)
    assert copy.policy() == DOCUMENT
    assert copy.tip() == Tip(1, bytes([1]) * 32)
    assert list(copy.scan(SubjectRow)) == [ANN]
    copy.close()
    with pytest.raises(InvalidInput, match="already exists"):
        backend.backup(path)


# -- every table, with whatever its columns can hold

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-LARGEST - 1, LARGEST) | st.integers(-3, 3),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
    | st.sampled_from(["%s", "%%", "'", '"', "\\", "{1,2}", "NULL", "\n", "\x7f"]),
    "bytes": st.binary(max_size=9),
}


@st.composite
def rows_of(draw: st.DrawFn, table: RowTable) -> list[Any]:
    fields = st.tuples(*(VALUES[kind] for kind in table.types))
    rows = draw(st.lists(fields, max_size=6, unique_by=lambda row: row[: table.keys]))
    return [table.row._make(row) for row in rows]


ROWS = st.fixed_dictionaries({row: rows_of(TABLES[row]) for row in TABLES if row is not CommitRow})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(added=ROWS)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_every_row_comes_back_as_it_was(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    added: dict[type[Any], list[Any]],
) -> None:
    with ExitStack() as stack:
        if kind == "sqlite":
            store = sqlite_store(tmp_path_factory.mktemp("ledger") / "study.db")
        else:
            server = request.getfixturevalue("postgres_server")
            store = postgres_store(stack.enter_context(fresh(server)))
        stack.enter_context(store.opened)
        store.new()
        writer, reader = store.open(), store.open()
        writer.claim()
        writer.commit(Commit(Tip(1, b"r"), "[]", added, []))
        for row, rows in added.items():
            width = TABLES[row].keys
            due = {values[:width]: values for values in rows}
            assert list(reader.scan(row)) == [due[key] for key in sorted(due)]
            assert reader.find(row, list(due)) == due
