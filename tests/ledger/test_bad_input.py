"""Whatever is wrong with a request is one clear line, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.errors import ExpostError
from expost.ledger import Broken, Ledger

SMOKES = xp.FiniteSet(["no", "yes"])
QUERY, OTHER = xp.randomized_response(epsilon="1/4"), xp.randomized_response(epsilon="1/2")
TOO_MUCH = xp.randomized_response(epsilon=3)
GAUSSIAN = xp.gaussian({"value": 1}, range=(0, 1), sigma=1, grid="1/4")
ABOUT = QUERY.about("region")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.create(
        tmp_path / "s.db", SMOKES, filter=xp.BayesianFilter(epsilon=1), every=1
    ) as made:
        made.register(["ann", "bob"])
        made.ask(QUERY, ["no", "no"], key="used")
        made.record(QUERY, ["no", "no"], key="recorded")
        made.ask(TOO_MUCH, ["no", "no"], key="refused")
        yield made


CASES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x.ask(QUERY, ["no"], ["eve"]), "subjects: row 1: nobody in the ledger is called so"),
    (lambda x: x.ask(QUERY, ["no"] * 2, ["ann", "ann"]), "subjects: somebody is there twice"),
    (lambda x: x.ask(QUERY, ["no"]), "values: there are 1 of them for 2 subjects"),
    (lambda x: x.ask(QUERY, ["no", "maybe"]), "row 2: the value is outside the domain"),
    (lambda x: x.ask("smokes", ["no", "no"]), "query: there is no query with this id"),
    (lambda x: x.ask(7.5, ["no", "no"]), "query: must be a query, the name of one, or a column"),
    (lambda x: x.ask([QUERY.content_id], ["no", "no"]), "query: 1 names for 2 subjects"),
    (lambda x: x.ask(ABOUT, ["no", "no"]), "query.about: a finite set has no attributes"),
    (lambda x: x.ask(GAUSSIAN, ["no", "no"]), "query: "),
    (lambda x: x.ask(OTHER, ["no", "no"], key="used"), "key 'used': row 1: was used for another"),
    (
        lambda x: x.record(OTHER, ["no", "no"], key="used"),
        "key 'used': row 1: was used for another",
    ),
    (lambda x: x.reserve(OTHER, key="used"), "key 'used': row 1: was used for another query"),
    (
        lambda x: x.record(QUERY, ["no", "yes"], key="recorded"),
        "key 'recorded': row 2: was used for another response",
    ),
    (
        lambda x: x.record(TOO_MUCH, ["no", "no"], key="refused"),
        "key 'refused': row 1: was refused or declined; record it under a new key",
    ),
    (lambda x: x.record(QUERY, ["no", "maybe"]), "row 2: response: 'maybe' is not a response of"),
    (lambda x: x.record(QUERY, ["no"]), "responses: 1 responses for 2 subjects"),
    (lambda x: x.ask(QUERY, ["no", "no"], key=""), "key: must have 1 to 200 printable characters"),
    (lambda x: x.ask(QUERY, ["no", "no"], key="a\nb"), "key: must have 1 to 200 printable"),
    (lambda x: x.ask(QUERY, ["no", "no"], key=7), "key: must be a text, not int"),
    (lambda x: x.register(["ann", ""]), "subjects: must be texts or integers"),
    (lambda x: x.register(["ann", 1.5]), "subjects: must be texts or integers"),
    (lambda x: x.register(["a\0b"]), "subjects: a name has characters that cannot be printed"),
    (lambda x: x.register([1 << 70]), "subjects: a number is too large"),
    (lambda x: x.transcript("eve"), "subjects: row 1: nobody in the ledger is called so"),
    (lambda x: x.decide(QUERY, ["eve"]), "subjects: row 1: nobody in the ledger is called so"),
    (lambda x: x.name_queries({"a": 7}), "queries.a: must be a query, not int"),
    (
        lambda x: x.name_queries({OTHER.content_id: TOO_MUCH}),
        f"queries.{OTHER.content_id}: has the form of a content id; choose another name",
    ),
    (lambda x: x.ask(QUERY.about("w", at=0), ["no"] * 2), "at: steps are numbered from 1; got 0"),
    (lambda x: x.decide(QUERY.about("w", at=-1)), "at: steps are numbered from 1; got -1"),
    (lambda x: x.receive([7]), "must be messages as bytes, not int"),
    (lambda x: x.export(7), "must be the name of a file, not int"),
]


@pytest.mark.parametrize(("call", "said"), CASES)
def test_bad_input_is_one_line_and_changes_nothing(
    ledger: Ledger, call: Callable[[Any], Any], said: str
) -> None:
    before, queries = ledger.tip, ledger.queries
    with pytest.raises(xp.InvalidInput) as error:
        call(ledger)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    assert (ledger.tip, ledger.queries) == (before, queries)
    assert ledger.ask(QUERY, ["no", "no"], key="then").answered.all()
    assert ledger.queries == queries
    assert ledger.verify().good


def test_a_closed_study_asks_nothing_and_still_answers_retries(ledger: Ledger) -> None:
    first = ledger.ask(QUERY, ["no", "no"], key="used").responses
    ledger.end()
    ledger.end()
    before = ledger.tip
    for call in (
        lambda: ledger.ask(QUERY, ["no", "no"]),
        lambda: ledger.record(QUERY, ["no", "no"]),
        lambda: ledger.reserve(QUERY),
        lambda: ledger.register(["eve"]),
    ):
        with pytest.raises(xp.InvalidInput, match=r"^the study is closed$"):
            call()
    assert ledger.tip == before
    assert ledger.ask(QUERY, ["no", "no"], key="used").responses == first
    assert ledger.status().ended
    assert ledger.verify().good


def test_a_ledger_that_was_closed_says_so(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()
    with pytest.raises(xp.InvalidInput, match="the ledger was closed; open it again"):
        ledger.ask(QUERY, ["no", "no"])
    assert repr(ledger) == "Ledger(closed)"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, "every: must be at least 1"),
        ({"every": "often"}, "every: must be a number of commits, not str"),
        ({"source": 7}, "source: must be a source of randomness"),
        ({"search": 7}, "search: must be a Search"),
        ({"study": "x" * 300}, "study: has more than 200 characters"),
        ({"filter": 7}, "filter: must be a filter"),
        ({"checkpoint": 7}, "must be the name of a file, not int"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    given = {"filter": xp.BayesianFilter(epsilon=1), **options}
    with pytest.raises(xp.InvalidInput) as error:
        Ledger.create(tmp_path / "s.db", SMOKES, **given)
    assert str(error.value).startswith(said)
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_taken_is_not_written_over(ledger: Ledger, tmp_path: Path) -> None:
    guard = xp.BayesianFilter(epsilon=1)
    with pytest.raises(xp.InvalidInput, match="a checkpoint is there already"):
        Ledger.create(tmp_path / "s.db", SMOKES, filter=guard)
    with pytest.raises(xp.InvalidInput, match="is there already, and is not written over"):
        Ledger.create(tmp_path / "s.db", SMOKES, filter=guard, checkpoint=tmp_path / "other")
    with pytest.raises(xp.InvalidInput, match="cannot be created: No such file or directory"):
        Ledger.create(tmp_path / "no" / "s.db", SMOKES, filter=guard)
    with pytest.raises(xp.InvalidInput, match="cannot be read: No such file or directory"):
        Ledger(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("not a database, but long enough to be one" * 40)
    with pytest.raises(xp.ledger.Damaged, match="cannot be read"):
        Ledger(tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(xp.InvalidInput, match="is not a ledger"):
        Ledger(tmp_path / "empty.db")


def test_rows_are_those_of_the_call_also_in_a_later_commit(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.ledger.calls._TOGETHER", 1)
    with pytest.raises(xp.InvalidInput, match="key 'recorded': row 2: was used for another resp"):
        ledger.record(QUERY, ["no", "yes"], key="recorded")
    ledger.reserve(QUERY, ["bob"])
    with pytest.raises(xp.InvalidInput, match="subjects: row 2: has an open reservation"):
        ledger.ask(QUERY, ["no", "no"], key="next")


PEOPLE = [f"p{number}" for number in range(5)]
LONG: list[tuple[Callable[[Any], Any], Callable[[Any], Any], str]] = [
    (
        lambda x: x.ask(OTHER, ["no"], ["p3"], key="k"),
        lambda x: x.ask(QUERY, ["no"] * 5, PEOPLE, key="k"),
        "key 'k': row 4: was used for another query",
    ),
    (
        lambda x: x.record(QUERY, ["no"], ["p3"], key="k"),
        lambda x: x.record(QUERY, ["yes"] * 5, PEOPLE, key="k"),
        "key 'k': row 4: was used for another response",
    ),
    (
        lambda x: x.ask(TOO_MUCH, ["no"], ["p4"], key="k"),
        lambda x: x.record(TOO_MUCH, ["yes"] * 5, PEOPLE, key="k"),
        "key 'k': row 5: was refused or declined; record it under a new key",
    ),
    (
        lambda x: x.reserve(QUERY, ["p4"], key="device"),
        lambda x: x.ask(QUERY, ["no"] * 5, PEOPLE, key="k"),
        "subjects: row 5: has an open reservation, with the key 'device'",
    ),
    (
        lambda x: x.reserve(QUERY, ["p4"], key="device"),
        lambda x: x.reserve(QUERY, PEOPLE, key="k"),
        "subjects: row 5: has an open reservation, with the key 'device'",
    ),
    (
        lambda x: x.record(QUERY, ["no", "no"], ["p0", "p0"], key="k"),
        lambda x: x.record(QUERY, ["no", "yes", "no"], ["p0", "p0", "p1"], key="k"),
        "key 'k': row 2: was used for another response",
    ),
    (
        lambda x: (x.ask(QUERY, ["no"], ["p0"], key="k"), x.end()),
        lambda x: x.ask(QUERY, ["no"] * 5, PEOPLE, key="k"),
        "the study is closed",
    ),
]


@pytest.mark.parametrize(("before", "call", "said"), LONG)
def test_of_a_long_call_nothing_is_recorded_if_something_is_wrong_with_it(
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[Any], Any],
    call: Callable[[Any], Any],
    said: str,
) -> None:
    """It is recorded in parts, and what is wrong may be in the last one."""
    monkeypatch.setattr("expost.ledger.calls._TOGETHER", 1)
    ledger.register(PEOPLE)
    before(ledger)
    tip = ledger.tip
    with pytest.raises(xp.InvalidInput) as error:
        call(ledger)
    assert str(error.value).startswith(said)
    assert ledger.tip == tip
    assert ledger.verify().good


def test_what_goes_wrong_on_the_way_says_how_much_is_recorded(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process is faster with the fourth one; the same call again goes on."""
    monkeypatch.setattr("expost.ledger.calls._TOGETHER", 1)
    ledger.register(PEOPLE)
    done: list[tuple[int, int]] = []

    def progress(rows: int, total: int) -> None:
        done.append((rows, total))
        if rows == 2:
            with Ledger(tmp_path / "s.db") as other:
                other.reserve(QUERY, ["p3"], key="device")

    with pytest.raises(xp.InvalidInput) as error:
        ledger.ask(QUERY, ["no"] * 5, PEOPLE, key="k", progress=progress)
    assert str(error.value) == (
        "subjects: row 4: has an open reservation, with the key 'device', that its device has to "
        "answer first; 3 of 5 rows are recorded, and the same call with the key 'k' may be "
        "repeated: it records nothing twice"
    )
    assert done == [(1, 5), (2, 5), (3, 5)]
    assert ledger.status(PEOPLE).exchanges.tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(xp.InvalidInput, match=r"answer first$"):
        ledger.ask(QUERY, ["no"] * 5, PEOPLE, key="k")


def test_what_stops_on_the_way_says_so_as_well(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.ledger.calls._TOGETHER", 2)
    ledger.register(PEOPLE)
    append, left = ledger._core.checkpoint.place.append, 1

    def fills_up(lines: bytes) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise Broken("the disk is full")
        return append(lines)

    ledger._core.checkpoint.place.append = fills_up  # type: ignore[method-assign]
    said = (
        r"^the disk is full; 2 of 5 rows are recorded, and the same call with the key '\w{32}' may"
    )
    with pytest.raises(Broken, match=said):
        ledger.record(QUERY, ["no"] * 5, PEOPLE)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is no file that may be read and written"),
        (b"", "is not a ledger"),
        (b"a table of something else" * 99, "the database cannot be read (file is not a database)"),
    ],
)
def test_what_is_no_ledger_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "other"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(ExpostError) as error:
        Ledger(path)
    assert str(error.value) == f"{path}: {said}"


def test_a_ledger_that_knows_no_query_says_so(tmp_path: Path) -> None:
    guard = xp.BayesianFilter(epsilon=1)
    with Ledger.create(tmp_path / "new.db", SMOKES, filter=guard) as new:
        new.register(["ann"])
        with pytest.raises(xp.errors.InvalidInput) as raised:
            new.ask("smokes", ["no"])
    assert str(raised.value) == "query: there is no query with this id; there are none"
