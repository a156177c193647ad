"""A device that is killed at any of its steps, or loses power, answers as if it had not been."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from expost.device.device import Device, Refused
from support.killing_devices import killed
from support.one_device import POLICY, a_device, reservation


@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_every_step_it_says_what_it_said_or_was_never_heard(
    tmp_path: Path, torn: bool
) -> None:
    at, kills = 0, 0
    while True:
        at += 1
        folder = tmp_path / f"{torn} {at}"
        folder.mkdir()
        ann, store = a_device(folder), str(folder / "store")
        ann.answer(reservation(ann))
        asked = reservation(ann)
        ann.close()

        def answer(store: str = store, asked: str = asked) -> None:
            device = Device(store, lambda count: os.urandom(count))
            os.write(1, device.answer(asked).encode())
            device.close()

        was_killed, released = killed(answer, at, torn)
        if not was_killed:
            break
        kills += 1
        again = Device(store)
        said = again.answer(asked)
        assert released in (b"", said.encode())
        assert again.answer(asked) == said
        assert len(again.heads) == 3
        again.close()
    assert kills >= 8  # open, lock, write again, sync; draw, write, cut, sync; close


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
    ann.answer(reservation(ann))
    other = {"kind": "local_hashing", "seed": "5e", "buckets": 2, "epsilon": "0.1"}
    asked, before = reservation(ann, other), store.read_bytes()
    said = ann.answer(asked)
    ann.close()
    whole = store.read_bytes()
    added = whole[len(before) :]
    # What was not synced may be there up to any byte, or as zeros, and that up to any byte.
    states = [before + added[:end] for end in [*range(0, len(added), 13), len(added) - 1]]
    states += [before + bytes(end) + added[end:] for end in range(1, len(added), 37)]
    states += [whole]
    states += [before + bytes(end) for end in (1, 512, 4096)]
    states += [before + bytes(100) + b"\n"]
    for state in states:
        store.write_bytes(state)
        again = Device(str(store))
        assert len(again.heads) == (3 if state == whole else 2)
        message = again.answer(asked)
        assert (message == said) or state != whole
        again.close()
        third = Device(str(store))
        assert third.answer(asked) == message
        third.close()


def test_what_is_read_back_is_synced_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)
    ann.answer(reservation(ann))
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
    said = ann.answer(reservation(ann))
    assert json.dumps(said).encode() in synced[-1]
    declined = ann.answer(reservation(ann, {"kind": "randomized_response", "epsilon": "9"}))
    assert json.dumps(declined).encode() in synced[-1]


def test_interrupted_after_it_stored_it_draws_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)
    asked = reservation(ann)

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(ann, "_take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ann.answer(asked)
    monkeypatch.undo()
    with pytest.raises(Refused, match="start again"):
        ann.answer(asked)
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert again.answer(asked) == again._sent[0]
    assert (tmp_path / "store").read_bytes().count(b'"sent"') == 1


def failing(*given: Any) -> Any:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["pwrite", "ftruncate", "fsync"])
def test_a_full_or_failing_disk_sends_nothing_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ann = a_device(tmp_path)
    first = ann.answer(reservation(ann))
    asked = reservation(ann)

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(Refused, match="No space left"):
        ann.answer(asked)
    monkeypatch.undo()
    with pytest.raises(Refused, match="start again"):
        ann.answer(asked)
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert again._sent[0] == first
    said = again.answer(asked)
    assert again.answer(asked) == said
