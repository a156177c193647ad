"""Hostile answers: a small version of ``make hunt MODE=devices``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from expost.device import device
from expost.device.device import Device, Refused
from support.device_fuzz import Violation, fuzz_in_process, fuzz_program
from support.single_device import QUERY, a_device, answered, message_in, reserving

HASHING = {"kind": "local_hashing", "buckets": 2, "epsilon": "0.5"}
NOT_TEXT: list[Any] = [5, 1.5, None, True, {}]


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("seed", ["small/0", "small/1", "small/2", "small/3"])
def test_hostile_answers_are_taken_or_refused(seed: str, tmp_path: Path) -> None:
    assert fuzz_in_process(seed, 150, tmp_path) > 10


def test_a_device_program_survives_hostile_lines(tmp_path: Path) -> None:
    assert fuzz_program("small/program", 60, tmp_path) > 10


REFUSED: list[tuple[Any, str]] = [
    *(({**HASHING, "seed": seed}, "a seed must be a string") for seed in NOT_TEXT),
    ({**HASHING, "seed": ["00", 1]}, "must be a string"),
    ({**QUERY, "kind": "\ud800"}, "must be a string of valid characters"),
    ({**QUERY, "kind": {"\ud800": 1}}, "must be a string of valid characters"),
    ({**QUERY, "\ud800": 1}, "must be a string of valid characters"),
    ({**HASHING, "seed": "\udfff"}, "a seed must be a string of valid characters"),
    *(({**QUERY, "about": json.loads(nested(n))}, "levels deep") for n in (48, 300, 900)),
]


@pytest.mark.parametrize(("query", "words"), REFUSED, ids=lambda x: str(x)[:40])
def test_a_query_without_a_content_id_is_refused(tmp_path: Path, query: Any, words: str) -> None:
    ann = a_device(tmp_path)
    before = (tmp_path / "store").read_bytes()
    with pytest.raises(Refused, match=words):
        ann.take(reserving(ann, query))
    assert (tmp_path / "store").read_bytes() == before
    assert "response" in answered(ann)


def test_a_query_of_47_levels_is_declined_and_of_48_refused(tmp_path: Path) -> None:
    # The answer, the reservation and the query are the three outer levels.
    ann = a_device(tmp_path)
    for levels, innermost in ((47, ""), (47, "1")):
        deep = nested(levels).replace("[]", f"[{innermost}]")
        query = {**QUERY, "about": json.loads(deep)}
        assert "declined" in answered(ann, query, key=deep[40:])
    with pytest.raises(Refused, match="nested more than 50 levels deep"):
        ann.take(reserving(ann, {**QUERY, "about": json.loads(nested(48))}))


def test_answers_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    valid = reserving(ann).encode()
    for line in (b"\xff", valid.replace(b"ann", b"an\xff"), valid[:-1] + b"\xc3"):
        with pytest.raises(Refused, match="not JSON"):
            ann.take(line)
    assert "response" in message_in(ann.take(valid))


def test_fuzzing_notices_a_device_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "text", lambda given, what="": given.lower() and given)
    with pytest.raises(Violation, match="the device ended"):
        fuzz_in_process("notices", 500, tmp_path)


def test_fuzzing_notices_a_refusal_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Device.take

    def storing(self: Device, line: Any) -> str:
        try:
            return take(self, line)
        except Refused:
            self._store.add({"refused": 1})
            self._store.broken = False
            raise

    monkeypatch.setattr(Device, "take", storing)
    with pytest.raises(Violation, match="a refusal changed the store"):
        fuzz_in_process("notices", 500, tmp_path)


def test_fuzzing_notices_a_refusal_that_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Device.take

    def drawing(self: Device, line: Any) -> str:
        try:
            return take(self, line)
        except Refused:
            self._source(1)
            raise

    monkeypatch.setattr(Device, "take", drawing)
    with pytest.raises(Violation, match="a refused line changed a message"):
        fuzz_in_process("notices", 500, tmp_path)


def test_fuzzing_notices_a_program_that_prints_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(device.__file__).read_text("utf-8")
    faulty = tmp_path / "device.py"
    faulty.write_text(source.replace("(ValueError, RecursionError)", "RecursionError"), "utf-8")
    monkeypatch.setattr(device, "__file__", str(faulty))
    with pytest.raises(Violation, match="neither an end nor a refusal"):
        fuzz_program("notices", 200, tmp_path)
