"""A device that is killed at any step, or loses power, sends what it sent or was never heard."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from expost.device.device import Device, Refused
from support.killed_devices import killed
from support.single_device import (
    POLICY,
    QUERY,
    a_device,
    answer,
    answered,
    message_in,
    reservation,
    reserving,
)


def exchange(ann: Device, reserved: dict[str, Any]) -> str:
    """The message for a reservation, new or sent again, by a ledger that waits for it."""
    before = reserved["sequence"] - 1
    request = ann.take(answer(ann, ann.sync(), before, reservation=reserved))
    (message,) = json.loads(request)["messages"]
    return str(message)


@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_every_step_it_sends_what_it_sent_or_was_never_heard(
    tmp_path: Path, torn: bool
) -> None:
    at, kills = 0, 0
    while True:
        at += 1
        folder = tmp_path / f"{torn} {at}"
        folder.mkdir()
        ann, store = a_device(folder), str(folder / "store")
        answered(ann)
        asked = reservation(ann)
        ann.close()

        def run(store: str = store, asked: dict[str, Any] = asked) -> None:
            device = Device(store, lambda count: os.urandom(count))
            os.write(1, exchange(device, asked).encode())
            device.close()

        was_killed, released = killed(run, at, torn)
        if not was_killed:
            break
        kills += 1
        again = Device(store)
        said = exchange(again, asked)
        assert released in (b"", said.encode())
        assert exchange(again, asked) == said
        assert len(again.heads) == 3
        again.close()
    # Open, write again, cut, sync; a nonce; make room, draw, write, cut, sync; a nonce; close.
    assert kills >= 12


@pytest.mark.parametrize("torn", [False, True])
def test_killed_while_it_is_created_it_can_be_created_again(tmp_path: Path, torn: bool) -> None:
    at = 0
    while True:
        at += 1
        store = str(tmp_path / f"{torn} {at}")

        def create(store: str = store) -> None:
            Device.create(store, json.dumps(POLICY), "ann", '"no"')

        was_killed, _ = killed(create, at, torn)
        if not was_killed:
            break
        with suppress(Refused):
            Device(store).close()
            continue
        Path(store).unlink(missing_ok=True)
        create()
        Device(store).close()
    assert at > 3


def test_after_a_loss_of_power_every_line_is_there_or_is_drawn_again(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    answered(ann)
    other = {"kind": "local_hashing", "seed": "5e", "buckets": 2, "epsilon": "0.1"}
    asked, before = reservation(ann, other), store.read_bytes()
    said = exchange(ann, asked)
    ann.close()
    whole = store.read_bytes()
    added = whole[len(before) :]
    # What was not synced may be there up to any byte, or as zeros, and that up to any byte.
    states = [before + added[:end] for end in [*range(0, len(added), 13), len(added) - 1]]
    states += [before + bytes(end) + added[end:] for end in range(1, len(added), 37)]
    states += [before + bytes(end) for end in (1, 512, 4096)]
    states += [before + bytes(100) + b"\n"]
    # And there may be zeros that made room: behind a part of the line, or on both sides of it.
    room = bytes(len(added) + 40)
    states += [before + (added[:end] + room[end:]) for end in range(0, len(added), 29)]
    states += [before + (bytes(end) + added[end:] + room) for end in range(2, len(added), 41)]
    complete = [whole, whole + bytes(1), whole + bytes(40), whole + bytes(5000)]
    for state in states + complete:
        store.write_bytes(state)
        again = Device(str(store))
        assert len(again.heads) == (3 if state in complete else 2)
        message = exchange(again, asked)
        assert (message == said) or state not in complete
        again.close()
        third = Device(str(store))
        assert exchange(third, asked) == message
        third.close()
        assert b"\0" not in store.read_bytes()


def test_stored_lines_are_synced_before_they_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)
    answered(ann)
    ann.close()
    calls: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        true = getattr(os, name)

        def called(*given: Any) -> Any:
            calls.append(name)
            return true(*given)

        return called

    for name in ("pwrite", "fsync"):
        monkeypatch.setattr(os, name, counted(name))
    Device(str(tmp_path / "store")).close()
    assert calls == ["pwrite", "fsync"]


def test_nothing_is_returned_before_the_disk_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    synced: list[bytes] = []
    true = os.fsync

    def noted(file: int) -> None:
        true(file)
        synced.append(store.read_bytes())

    monkeypatch.setattr(os, "fsync", noted)
    request = ann.take(reserving(ann))
    (said,) = json.loads(request)["messages"]
    assert json.dumps(said).encode() in synced[-1]
    assert len(synced) == 1
    declined = answered(ann, {"kind": "randomized_response", "epsilon": "9"})
    assert declined["declined"] is True
    assert len(synced) == 1


def interrupted(*given: Any) -> Any:
    raise KeyboardInterrupt


def test_interrupted_after_it_stored_it_draws_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)
    asked = reservation(ann)
    given = reserving(ann)
    monkeypatch.setattr(ann, "_record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ann.take(given)
    monkeypatch.undo()
    with pytest.raises(Refused, match="stale answer"):
        ann.take(given)
    with pytest.raises(Refused, match="start again"):
        ann.take(reserving(ann))
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert exchange(again, asked) == again._sent[0]
    assert (tmp_path / "store").read_bytes().count(b'"sent"') == 1


@pytest.mark.parametrize("name", ["_accept", "_request", "_draw_and_store"])
def test_interrupted_anywhere_the_answer_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ann = a_device(tmp_path)
    given = reserving(ann)
    monkeypatch.setattr(ann, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ann.take(given)
    monkeypatch.undo()
    with pytest.raises(Refused, match="stale answer"):
        ann.take(given)
    # A message that was stored is sent again, and one that was not is drawn.
    own = len(ann.heads) - 1
    assert own == (name == "_request")
    following = answer(ann, ann.sync(), 0, reservation=reservation(ann) if not own else None)
    assert message_in(ann.take(following))["sequence"] == 1
    assert len(ann.heads) == 2


def test_interrupted_while_it_draws_nothing_is_stored(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    before = store.read_bytes()
    ann._source = interrupted
    with pytest.raises(KeyboardInterrupt):
        ann.take(reserving(ann))
    ann._source = os.urandom
    assert store.read_bytes().rstrip(b"\0") == before
    assert answered(ann)["sequence"] == 1
    assert b"\0" not in store.read_bytes()


def failing(*given: Any) -> Any:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["ftruncate", "fsync"])
def test_a_disk_that_fails_after_the_draw_sends_nothing_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ann = a_device(tmp_path)
    first = exchange(ann, reservation(ann))
    asked = reservation(ann)

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(Refused, match="nothing was sent: No space left"):
        exchange(ann, asked)
    monkeypatch.undo()
    with pytest.raises(Refused, match="start again"):
        exchange(ann, asked)
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert again._sent[0] == first
    said = exchange(again, asked)
    assert exchange(again, asked) == said


def test_a_full_disk_is_noticed_before_the_draw_and_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    draws: list[int] = []

    def counted(count: int) -> bytes:
        draws.append(count)
        return os.urandom(count)

    ann._source = counted
    before = store.read_bytes()
    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(Refused, match="nothing was drawn: No space left"):
        ann.take(reserving(ann))
    assert (draws, store.read_bytes()) == ([], before)
    monkeypatch.undo()
    assert answered(ann)["sequence"] == 1
    assert draws


LENGTHS = {"kind": "channel", "responses": ["s", "\\\"'" * 200], "probabilities": [["1/2"] * 2] * 3}


def test_whether_a_nearly_full_disk_has_room_does_not_depend_on_the_response(
    tmp_path: Path,
) -> None:
    """At every size of a disk both responses are stored, or nothing is drawn."""
    outcomes = set()
    for free in range(0, 5000, 173):
        for byte in (b"\0", b"\x7f"):  # the short response, and the long one
            folder = tmp_path / f"{free} {byte[0]}"
            folder.mkdir()
            a_device(folder).close()
            outcomes.add((free, limited(folder / "store", free, byte)))
    assert {stored for _, stored in outcomes} == {True, False}
    assert len(outcomes) == len({free for free, _ in outcomes})


def limited(store: Path, free: int, byte: bytes) -> bool:
    """Whether a device stores the draw of a byte if its file can grow by so many bytes only."""
    child = os.fork()
    if not child:
        code = 9
        try:
            draws: list[int] = []

            def source(count: int) -> bytes:
                draws.append(count)
                return byte * count

            ann = Device(str(store), source)
            limit = store.stat().st_size + free
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                answered(ann, LENGTHS)
                code = 1
            except Refused as refused:
                expected = f"nothing was drawn: {os.strerror(errno.EFBIG)}" in str(refused)
                code = 0 if expected and draws == [] else 8
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1), code
    return code == 1


def test_whether_a_nearly_full_disk_has_room_does_not_depend_on_the_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"attributes": {"age": {"changing": list(range(2000))}}}
    lengths: list[int] = []
    true = os.pwrite

    def noted(file: int, data: bytes, start: int) -> int:
        lengths.append(len(data))
        return true(file, data, start)

    monkeypatch.setattr(os, "pwrite", noted)
    for number, age in enumerate((7, 1999)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ann = a_device(folder, {**POLICY, "domain": values}, json.dumps({"age": age}))
        ann.next(json.dumps({"age": age}))
        ann.close()
    first, second = lengths[: len(lengths) // 2], lengths[len(lengths) // 2 :]
    # Created: room, line; opened: the line again; next: room, line.
    assert first[0] == second[0] >= max(first[1], second[1])
    assert first[3] == second[3] >= max(first[4], second[4])
    assert first[4] < second[4]


def test_the_room_is_never_too_short_for_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = {"kind": "channel", "probabilities": [["1"]] * 3}
    responses = ["\\" * 500, '"' * 500, "ä\n\0\U0001f600" * 100, 5e-324, -1.5, 7, ""]
    queries: list[Any] = [{**longest, "responses": [response]} for response in responses]
    queries += [{"kind": "unary_encoding", "variant": "symmetric", "epsilon": "0.1"}, QUERY]
    queries += [{"kind": "subset_selection", "size": 2, "epsilon": "0.1"}]
    ann, lengths = a_device(tmp_path), list[int]()
    true = os.pwrite

    def noted(file: int, data: bytes, start: int) -> int:
        lengths.append(len(data))
        return true(file, data, start)

    monkeypatch.setattr(os, "pwrite", noted)
    for query in queries:
        assert "response" in answered(ann, query)
        room, line = lengths[-2:]
        assert line <= room
    assert len(lengths) == 2 * len(queries)
