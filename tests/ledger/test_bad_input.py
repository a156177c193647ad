"""Whatever is wrong with a call is one clear line, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost.errors import ExpostError
from expost.filters import Account, Sums, WorstCase
from expost.ledger import Ledger
from expost.queries import Query
from support.filter_cases import Half
from support.scripted_devices import HALF, OTHER, QUARTER, SMOKES, a_ledger, reserved

GAUSSIAN = xp.gaussian({"value": 1}, range=(0, 1), sigma=1, grid="1/4")
ABOUT = QUARTER.about("region")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with a_ledger(tmp_path) as made:
        made.register(["ann", "bob"])
        made.register(["sim", "sam"], kind="simulated")
        made.register(["paper", 5], kind="imported")
        made.reserve(QUARTER, key="used")
        made.ask(QUARTER, ["no", "no"], key="used")
        made.record(QUARTER, ["no", "no"], key="used")
        yield made


CASES: list[tuple[Callable[[Any], Any], str]] = [
    # subjects
    (lambda x: x.reserve(QUARTER, ["eve"]), 'row 1: no subject "eve" in this ledger'),
    (lambda x: x.reserve(QUARTER, ["ann", "eve"]), 'row 2: no subject "eve" in this ledger'),
    (lambda x: x.reserve(QUARTER, ["ann", "ann"]), 'subjects: "ann" appears twice'),
    (lambda x: x.reserve(QUARTER, [1.5]), "subjects: must be "),
    (lambda x: x.reserve(QUARTER, "ann"), "subjects: "),
    (lambda x: x.ask(QUARTER, ["no"], ["eve"]), 'row 1: no subject "eve" in this ledger'),
    (lambda x: x.record(QUARTER, ["no"], ["eve"]), 'row 1: no subject "eve" in this ledger'),
    (lambda x: x.transcript("eve"), 'subjects: row 1: no subject "eve" in this ledger'),
    (lambda x: x.decide(QUARTER, ["eve"]), 'subjects: row 1: no subject "eve" in this ledger'),
    (lambda x: x.status(["ann", "eve"]), 'subjects: row 2: no subject "eve" in this ledger'),
    (lambda x: x.resolve(["eve"]), 'subjects: no subject "eve" in this ledger'),
    (lambda x: x.resolve(["ann"], suspend=True), 'subjects: "ann" has no message that is held'),
    (lambda x: x.register(["ann", ""]), "subjects: must be "),
    (lambda x: x.register([1.5]), "subjects: must be "),
    (lambda x: x.register([True]), "subjects: must be "),
    (lambda x: x.register(7), "subjects: must be "),
    (lambda x: x.register(["a\0b"]), "subjects: a name has characters that cannot be printed"),
    (lambda x: x.register(["a\nb"]), "subjects: a name has characters that cannot be printed"),
    (lambda x: x.register(["\ud800"]), "subjects: a name has characters that cannot be printed"),
    (lambda x: x.register([(1 << 53) + 1]), "subjects: a number is above 2^53"),
    (lambda x: x.register(["a" * 2000]), "subjects: a name has more than 1000 bytes"),
    (lambda x: x.register(["new"], kind="robot"), "kind: 'robot' is not one of device, imported"),
    # queries
    (lambda x: x.reserve("smokes"), "query: "),
    (lambda x: x.reserve(7.5), "query: must be a query, the name of one, or a column of names"),
    (lambda x: x.reserve([QUARTER.content_id]), "query: got 1 names for 2 subjects"),
    (lambda x: x.reserve(["no such", None]), "row 1: query: unknown query"),
    (lambda x: x.reserve(ABOUT), "query"),
    (lambda x: x.reserve(GAUSSIAN), "query: "),
    (lambda x: x.decide(QUARTER.about("w", at=-1)), "at: steps are numbered from 1; got -1"),
    (lambda x: x.name_queries({"a": 7}), "queries.a: must be a query, not int"),
    (lambda x: x.name_queries([HALF]), "queries: must be queries by their names, not list"),
    (
        lambda x: x.name_queries({OTHER.content_id: HALF}),
        f"queries.{OTHER.content_id}: has the form of a content id; choose another name",
    ),
    # keys
    (lambda x: x.reserve(HALF, key="used"), "key 'used': row 1: was used for another query"),
    (lambda x: x.ask(HALF, ["no"] * 2, key="used"), "key 'used': row 1: was used for another q"),
    (lambda x: x.record(HALF, ["no"] * 2, key="used"), "key 'used': row 1: was used for anoth"),
    (
        lambda x: x.record(QUARTER, ["no", "yes"], key="used"),
        "key 'used': row 2: was used for another response",
    ),
    (lambda x: x.reserve(QUARTER, key=""), "key: must have 1 to 200 printable characters"),
    (lambda x: x.reserve(QUARTER, key="a\nb"), "key: must have 1 to 200 printable characters"),
    (lambda x: x.reserve(QUARTER, key="k" * 201), "key: must have 1 to 200 printable characters"),
    (lambda x: x.reserve(QUARTER, key=7), "key: must be a string, not int"),
    # values and responses
    (lambda x: x.ask(QUARTER, ["no"]), "values: "),
    (lambda x: x.ask(QUARTER, ["no", "maybe"]), "row 2: the value is outside the domain"),
    (lambda x: x.record(QUARTER, ["no"]), "responses: got 1 for 2 subjects"),
    (lambda x: x.record(QUARTER, ["no", "maybe"]), "row 2: response: 'maybe' is not a response"),
    # messages and files
    (lambda x: x.receive([7]), "must be messages as bytes, not int"),
    (lambda x: x.receive([None]), "must be messages as bytes, not NoneType"),
    (lambda x: x.sync([7]), "must be messages as bytes, not int"),
    (lambda x: x.receive("a message"), "must be a list of messages"),
    (lambda x: x.receive(b"a message"), "must be a list of messages"),
    (lambda x: x.sync("a request"), "must be a list of messages"),
    (lambda x: x.export(7), "must be the name of a file, not int"),
    (lambda x: x.backup(7), "must be the name of a file, not int"),
]


@pytest.mark.parametrize(("call", "line"), CASES)
def test_bad_input_is_one_line_and_changes_nothing(
    ledger: Ledger, call: Callable[[Any], Any], line: str
) -> None:
    before = ledger.tip, ledger.queries, ledger.subjects
    with pytest.raises(xp.InvalidInput) as error:
        call(ledger)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)
    assert (ledger.tip, ledger.queries, ledger.subjects) == before
    assert reserved(ledger, QUARTER, key="used") == ["reserved"] * 2
    assert ledger.tip == before[0]


def test_what_was_not_changed_is_still_right(ledger: Ledger) -> None:
    """After all of these calls on one ledger."""
    for call, _ in CASES:
        with pytest.raises(xp.InvalidInput):
            call(ledger)
    assert ledger.ask(QUARTER, ["no", "no"], key="then").answered.all()
    assert ledger.verify().good


def test_a_value_is_in_no_error(ledger: Ledger) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        ledger.ask(QUARTER, ["no", "very secret"])
    assert "very secret" not in str(error.value)


class Halved(xp.BayesianFilter):  # type: ignore[misc]  # which nobody should do
    """Has the kind of a filter of expost, and another rule."""

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return super().worst_case(account, query, 2 * times)


class OwnSums(Sums):
    """A rule that no file knows."""

    kind = "own"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"source": 7}, "source: must be a source of randomness"),
        ({"search": 7}, "search: must be a Search"),
        ({"study": "x" * 300}, "study: has more than 200 characters"),
        ({"study": 7}, "study: must be "),
        ({"filter": 7}, "filter: must be a filter"),
        ({"filter": Half(1)}, "filter: got Half, which the policy of a study cannot"),
        ({"filter": Halved(1)}, "filter: got Halved, which the policy of a study cannot"),
        (
            {"filter": xp.ApproximateFilter(1, "1e-6", OwnSums())},
            "filter: got ApproximateFilter, which the policy of a study cannot",
        ),
        ({"checkpoint": 7}, "must be the name of a file, not int"),
    ],
)
def test_options_are_checked_before_anything_is_created(
    tmp_path: Path, options: dict[str, Any], line: str
) -> None:
    given = {"filter": xp.BayesianFilter(epsilon=1), **options}
    with pytest.raises(xp.InvalidInput) as error:
        Ledger.create(tmp_path / "s.db", SMOKES, **given)
    assert str(error.value).startswith(line)
    assert not list(tmp_path.iterdir())


def test_a_domain_is_checked(tmp_path: Path) -> None:
    with pytest.raises(xp.InvalidInput, match="domain: must be a FiniteSet, Attributes or a Box"):
        Ledger.create(tmp_path / "s.db", ["no", "yes"], filter=xp.BayesianFilter(epsilon=1))  # type: ignore[arg-type]


def test_nothing_is_overwritten(ledger: Ledger, tmp_path: Path) -> None:
    guard = xp.BayesianFilter(epsilon=1)
    place = tmp_path / "study.db"
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(xp.InvalidInput, match="ledgers are never overwritten"):
        Ledger.create(place, SMOKES, filter=guard)
    checkpoint = tmp_path / "study.db.checkpoint"
    with pytest.raises(xp.InvalidInput, match="checkpoints are never overwritten"):
        Ledger.create(tmp_path / "new.db", SMOKES, filter=guard, checkpoint=checkpoint)
    with pytest.raises(xp.InvalidInput, match="already exists; ledgers are never overwritten"):
        Ledger.create(place, SMOKES, filter=guard, checkpoint=tmp_path / "other")
    with pytest.raises(xp.InvalidInput, match="cannot be created: No such file or directory"):
        Ledger.create(tmp_path / "no" / "s.db", SMOKES, filter=guard)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "is not a ledger"),
        (b"a table of something else" * 99, "the database cannot be read (file is not a database)"),
    ],
)
def test_a_file_that_is_no_ledger_is_named(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ExpostError) as error:
        Ledger(path)
    assert str(error.value) == f"{path}: {line}"


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.db", tmp_path):
        with pytest.raises(xp.InvalidInput) as error:
            Ledger(path)
        assert str(error.value).startswith(f"{path}: ")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("version", "line"),
    [(1, "was written by an older expost"), (3, "was written by a newer expost")],
)
def test_another_schema_says_which(tmp_path: Path, version: int, line: str) -> None:
    a_ledger(tmp_path).close()
    connection = apsw.Connection(str(tmp_path / "study.db"))
    connection.pragma("user_version", version)
    connection.close()
    with pytest.raises(xp.InvalidInput, match=f"study.db: {line}"):
        Ledger(tmp_path / "study.db")


def test_a_ledger_that_was_closed_says_so(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()
    for call in (
        lambda: ledger.reserve(QUARTER),
        ledger.status,
        lambda: ledger.register(["eve"]),
        lambda: ledger.receive([b""], dry_run=True),
        lambda: ledger.backup("file"),
    ):
        with pytest.raises(xp.InvalidInput, match=r"^the ledger is closed; open it again$"):
            call()


def test_a_recovery_that_is_not_needed_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    ledger.close()
    with pytest.raises(xp.InvalidInput, match="there is nothing to recover"):
        Ledger.recover(tmp_path / "study.db")
    with Ledger(tmp_path / "study.db") as again:
        assert set(again.status().states) == {"active"}
