"""One of several processes is killed: what it left out of the checkpoint is filled in or missed."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.ledger import Behind, CheckpointFile, Ledger
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.ranges import Ranges

QUERY = xp.randomized_response(epsilon="1/4")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "study.db"
    guard = xp.BayesianFilter(epsilon=1)
    with Ledger.create(path, xp.FiniteSet(["no", "yes"]), filter=guard, every=1) as ledger:
        ledger.register(["ann", "bob", "carl"])
        ledger.ask(QUERY, ["no"] * 3)
    return path


def asked(place: Path, name: str) -> None:
    with Ledger(place, every=1) as ledger:
        ledger.ask(QUERY, ["no"], [name])


def killed(ledger: Ledger) -> None:
    """As if its process were killed: no checkpoint is written any more."""
    ledger._core.backend.close()


class Kill(BaseException):
    """The process ends here."""


def killed_before_its_checkpoint(
    place: Path, call: Callable[[Ledger], Any] = lambda ledger: asked_once(ledger, "carl")
) -> None:
    """A process that ends right after its commit, and has released nothing."""

    def step(name: str) -> None:
        if name == "committed":
            raise Kill

    ledger = Ledger(place, every=1)
    ledger._core._step = step
    with pytest.raises(Kill):
        call(ledger)
    killed(ledger)


def asked_once(ledger: Ledger, name: str) -> Any:
    return ledger.ask(QUERY, ["no"], [name], key="k")


def test_commits_that_nobody_wrote_about_close_everybody_or_nobody(
    place: Path, tmp_path: Path
) -> None:
    """One process is killed while another one goes on: nobody knows whom its commits concern."""
    shutil.copy(place, tmp_path / "backup")
    other = Ledger(place, every=1)
    one = Ledger(place, every=64)
    one.ask(QUERY, ["no"], ["carl"])
    killed(one)
    other.ask(QUERY, ["no"], ["ann"])
    other.close()
    shutil.copy(tmp_path / "backup", place)
    kept = tmp_path / "study.db.checkpoint"
    before = kept.read_bytes()
    with pytest.raises(xp.InvalidInput) as error:
        Ledger.recover(place)
    assert str(error.value) == (
        "its checkpoint does not say whom 1 of 4 commits concern, such as number 3: a process was "
        "killed, or lines are lost; bring a newer copy of the database back, or close everybody "
        "(--everybody)"
    )
    assert kept.read_bytes() == before
    with pytest.raises(Behind):
        Ledger(place)
    assert Ledger.recover(place, everybody=True) == ["ann", "bob", "carl"]
    with Ledger(place) as ledger:
        assert ledger.status().closed.all()
        assert ledger.verify().good
    assert Ledger.recover(place) == []


def test_what_a_killed_process_left_out_is_filled_in_when_the_ledger_is_opened(
    place: Path, tmp_path: Path
) -> None:
    """Also between lines of others, and who is registered in it."""
    shutil.copy(place, tmp_path / "backup")
    other, one = Ledger(place, every=1), Ledger(place, every=64)
    one.ask(QUERY, ["no"], ["carl"])
    other.ask(QUERY, ["no"], ["ann"])
    killed(one)
    other.close()
    Ledger(place).close()
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann", "carl"]


def test_a_database_that_has_what_nobody_wrote_about_is_recovered(
    place: Path, tmp_path: Path
) -> None:
    """The commit is in no line, but in the copy, which is the same up to a later line."""
    other, one = Ledger(place, every=1), Ledger(place, every=64)
    one.ask(QUERY, ["no"], ["carl"])
    killed(one)
    other.ask(QUERY, ["no"], ["ann"])
    for end in ("", "-wal"):
        shutil.copy(f"{place}{end}", tmp_path / f"backup{end}")
    other.ask(QUERY, ["no"], ["bob"])
    other.close()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"backup{end}", f"{place}{end}")
    assert Ledger.recover(place) == ["bob"]
    with Ledger(place) as ledger:
        assert ledger.status().exchanges.tolist() == [2, 1, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.ask(QUERY, ["no"], ["carl"], key="k"),
        lambda ledger: ledger.record(QUERY, ["no"], ["carl"], key="k"),
        lambda ledger: ledger.reserve(QUERY, ["carl"], key="k"),
        lambda ledger: ledger.receive([b"rubbish"]),
        lambda ledger: ledger.end(),
    ],
    ids=["ask", "record", "reserve", "receive", "end"],
)
def test_nothing_is_released_again_before_a_checkpoint_if_whoever_recorded_it_was_killed(
    place: Path, tmp_path: Path, call: Callable[[Ledger], Any]
) -> None:
    shutil.copy(place, tmp_path / "backup")
    other = Ledger(place, every=1)
    killed_before_its_checkpoint(place, call)
    call(other)  # released
    killed(other)
    shutil.copy(tmp_path / "backup", place)
    with pytest.raises(Behind):
        Ledger(place)
    with pytest.raises(xp.InvalidInput, match="whom 1 of 3 commits concern"):
        Ledger.recover(place)
    assert Ledger.recover(place, everybody=True) == ["ann", "bob", "carl"]


@pytest.mark.parametrize(
    "read",
    [
        lambda ledger: ledger.answers(),
        lambda ledger: ledger.transcript("carl"),
        lambda ledger: ledger.status(),
        lambda ledger: ledger.decide(QUERY),
        lambda ledger: ledger.audit(),
        lambda ledger: ledger.rounds(),
    ],
)
def test_nothing_is_shown_before_a_checkpoint_if_whoever_recorded_it_was_killed(
    place: Path, tmp_path: Path, read: Any
) -> None:
    shutil.copy(place, tmp_path / "backup")
    other = Ledger(place, every=1)
    killed_before_its_checkpoint(place)
    read(other)
    killed(other)
    shutil.copy(tmp_path / "backup", place)
    with pytest.raises(Behind):
        Ledger(place)


def test_what_is_repeated_counts_as_a_commit_of_ones_own(place: Path, tmp_path: Path) -> None:
    """In the window that was said, and not for ever."""
    other = Ledger(place, every=3)
    killed_before_its_checkpoint(place)
    kept = CheckpointFile(tmp_path / "study.db.checkpoint")
    before = kept.read()
    for _ in range(2):
        asked_once(other, "carl")
        assert kept.read() == before
    other.ask(QUERY, ["no"], ["ann"], key="l")
    assert kept.read() != before
    after = kept.read()
    asked_once(other, "carl")
    other.close()
    assert kept.read() == after  # there is a line about it already


def test_who_is_registered_by_a_killed_process_and_asked_by_another_is_known(
    place: Path, tmp_path: Path
) -> None:
    shutil.copy(place, tmp_path / "backup")
    other = Ledger(place, every=1)
    one = Ledger(place, every=1)
    one._core.checkpoint.note = lambda more, tip: None  # type: ignore[method-assign]
    one.register(["dora", "eve"])
    killed(one)
    other.ask(QUERY, ["no"], ["eve"])
    other.close()
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place, everybody=True) == ["ann", "bob", "carl", "dora", "eve"]


def test_a_line_that_was_damaged_is_missed(place: Path, tmp_path: Path) -> None:
    shutil.copy(place, tmp_path / "backup")
    asked(place, "ann")
    asked(place, "bob")
    kept = tmp_path / "study.db.checkpoint"
    lines = kept.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:-2], lines[-2].replace(b"1", b"7", 1), lines[-1]])
    newer = place.read_bytes()
    shutil.copy(tmp_path / "backup", place)
    kept.write_bytes(damaged)
    with pytest.raises(xp.InvalidInput, match="whom 1 of 4 commits concern, such as number 3"):
        Ledger.recover(place)
    place.write_bytes(newer)
    Ledger(place).close()  # which fills it in
    shutil.copy(tmp_path / "backup", place)
    assert Ledger.recover(place) == ["ann", "bob"]


def test_a_recovery_that_is_interrupted_leaves_the_checkpoint_as_it_was(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own commits have numbers that others had before."""
    shutil.copy(place, tmp_path / "backup")
    other, one = Ledger(place, every=1), Ledger(place, every=64)
    one.ask(QUERY, ["no"], ["carl"])
    killed(one)
    other.ask(QUERY, ["no"], ["ann"])
    other.close()
    shutil.copy(tmp_path / "backup", place)

    def kill(*given: Any) -> None:
        raise Kill

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "restart", kill)
        with pytest.raises(Kill):
            Ledger.recover(place, everybody=True)
    with pytest.raises(xp.InvalidInput, match="whom 1 of 4 commits concern, such as number 3"):
        Ledger.recover(place)


def test_a_line_that_is_added_while_the_file_is_made_shorter_is_not_lost(tmp_path: Path) -> None:
    place = CheckpointFile(tmp_path / "kept")
    place.append(b"one\n")
    adding = threading.Thread(target=place.append, args=(b"two\n",))

    def shorter(text: bytes) -> bytes:
        adding.start()
        adding.join(0.2)  # it waits
        return b"1\n"

    place.rewrite(shorter)
    adding.join()
    assert place.read() == b"1\ntwo\n"


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 4))), st.integers(0, 35))
def test_ranges_are_the_numbers_that_were_added(added: list[tuple[int, int]], most: int) -> None:
    ranges = Ranges((first, first + more) for first, more in added)
    numbers = {number for first, more in added for number in range(first, first + more + 1)}
    assert ranges.numbers() == sorted(numbers)
    assert [number in ranges for number in range(40)] == [number in numbers for number in range(40)]
    assert ranges.missing(1, most).numbers() == sorted(set(range(1, most + 1)) - numbers)
    pairs = list(ranges)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(pairs))
    assert len(ranges) == len(pairs)
