"""Devices and a ledger: reserve, draw, store, send, record; whatever happens on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import expost as xp
from expost.device import checks, device
from expost.device.device import Device, Refused
from expost.ledger import Ledger
from expost.queries import Query
from support.killing_devices import killed

SMOKES = xp.FiniteSet(["no", "yes", "daily"])
HALF = xp.randomized_response(epsilon="0.5")
PEOPLE: list[str | int] = ["ann", 7, "größe"]


@contextmanager
def a_study(
    tmp_path: Path, domain: Any = SMOKES, value: Any = "yes", budget: str = "1.5"
) -> Iterator[tuple[Ledger, dict[str | int, str]]]:
    """A ledger, and the stores of devices."""
    guard = xp.BayesianFilter(epsilon=budget)
    with Ledger.create(tmp_path / "study.db", domain, filter=guard, every=1) as ledger:
        ledger.register(PEOPLE)
        stores = {}
        for number, name in enumerate(PEOPLE):
            stores[name] = str(tmp_path / f"store {number}")
            Device.create(stores[name], ledger.policy.to_json(), name, json.dumps(value))
        yield ledger, stores


def reserved(ledger: Ledger, name: str | int, query: Query, key: str) -> str | None:
    (found,) = ledger.reserve(query, [name], key=key)
    return None if found is None else found.to_json()


def test_reserve_draw_store_send_record_until_budgets_are_used_up(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        devices = {name: Device(store) for name, store in stores.items()}
        refused = 0
        for week in range(12):
            for name, own in devices.items():
                asked = reserved(ledger, name, HALF, f"week {week}")
                if asked is None:
                    refused += 1
                    continue
                (receipt,) = ledger.receive([own.answer(asked)])
                assert (receipt.outcome, receipt.head) == ("recorded", own.heads[-1])
        assert refused
        assert ledger.verify()
        ledger.export(tmp_path / "study.jsonl")
        export = checks.check_export(str(tmp_path / "study.jsonl"))
        assert (export.faults, export.decided) == ([], True)
        assert export.subjects == 3
        assert export.exchanges == sum(len(own.heads) - 1 for own in devices.values())


def test_duplicates_and_retries_are_recorded_once(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        own = Device(stores["ann"])
        asked = reserved(ledger, "ann", HALF, "k")
        assert asked is not None
        message = own.answer(asked)
        receipts = ledger.receive([message, own.answer(asked), message])
        assert {each.outcome for each in receipts} == {"recorded"}
        assert len({each.head for each in receipts}) == 1
        later = reserved(ledger, "ann", HALF, "later")
        assert later is not None
        second = own.answer(later)
        # Out of order, and once more.
        outcomes = [each.outcome for each in ledger.receive([second, message, second])]
        assert outcomes == ["recorded"] * 3
        assert len(ledger.transcript("ann")) == 2


def test_a_device_that_was_offline_answers_later_and_nothing_else_is_asked(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        asked = reserved(ledger, "ann", HALF, "monday")
        assert asked is not None
        with pytest.raises(xp.InvalidInput):
            ledger.reserve(HALF, ["ann"], key="tuesday")
        assert reserved(ledger, "ann", HALF, "monday") == asked
        assert ledger.receive([Device(stores["ann"]).answer(asked)])[0].outcome == "recorded"


def test_what_a_device_does_not_know_is_declined_and_the_subject_goes_on(tmp_path: Path) -> None:
    person = xp.FiniteSet([0, 1, 2])
    with a_study(tmp_path, person, 1) as (ledger, stores):
        own = Device(stores["ann"])
        noisy = xp.laplace({"value": 1}, range=(0, 2), grid=1, epsilon="0.5")
        asked = reserved(ledger, "ann", noisy, "k")
        assert asked is not None
        assert ledger.receive([own.answer(asked)])[0].outcome == "declined"
        again = reserved(ledger, "ann", HALF, "k 2")
        assert again is not None
        assert ledger.receive([own.answer(again)])[0].outcome == "recorded"


def test_a_device_restored_from_a_backup_refuses_rather_than_draws_again(tmp_path: Path) -> None:
    with a_study(tmp_path, budget="4") as (ledger, stores):
        store = Path(stores["ann"])
        backups = [store.read_bytes()]
        for week in range(3):
            own = Device(str(store))
            asked = reserved(ledger, "ann", HALF, f"week {week}")
            assert asked is not None
            ledger.receive([own.answer(asked)])
            own.close()
            backups.append(store.read_bytes())
        asked = reserved(ledger, "ann", HALF, "next")
        assert asked is not None
        for backup in backups[:-1]:
            store.write_bytes(backup)
            restored = Device(str(store))
            with pytest.raises(Refused, match="old copy"):
                restored.answer(asked)
            restored.close()
            assert store.read_bytes() == backup
        store.write_bytes(backups[-1])
        assert ledger.receive([Device(str(store)).answer(asked)])[0].outcome == "recorded"


def test_a_ledger_that_lost_something_gets_nothing_new(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        own = Device(stores["ann"])
        asked = reserved(ledger, "ann", HALF, "k")
        assert asked is not None
        message = own.answer(asked)
        # The same number under another key, or with another query.
        for other in ({"key": "other"}, {"query": {"kind": "randomized_response", "epsilon": "1"}}):
            with pytest.raises(Refused, match="answered to another key or query"):
                own.answer(json.dumps({**json.loads(asked), **other}))
        assert own.answer(asked) == message


@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_every_step_nothing_is_released_twice_or_lost(tmp_path: Path, torn: bool) -> None:
    with a_study(tmp_path, budget="100") as (ledger, stores):
        store, at = stores["ann"], 0
        while True:
            at += 1
            asked = reserved(ledger, "ann", HALF, f"week {at}")
            assert asked is not None

            def answer(asked: str = asked) -> None:
                own = Device(store, lambda count: os.urandom(count))
                os.write(1, own.answer(asked).encode())
                own.close()

            was_killed, released = killed(answer, at, torn)
            own = Device(store)
            message = own.answer(asked)
            own.close()
            assert released in (b"", message.encode())
            sent = [released] * bool(released) + [message]
            assert {each.outcome for each in ledger.receive(sent)} == {"recorded"}
            if not was_killed:
                break
        assert len(ledger.transcript("ann")) == at
        assert ledger.verify()


def test_random_studies_of_attributes_end_to_end(tmp_path: Path) -> None:
    person = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    value = {"region": "n", "smokes": "no"}
    rng = Random(5)
    with a_study(tmp_path, person, value, budget="2") as (ledger, stores):
        devices = {name: Device(store) for name, store in stores.items()}
        outcomes = set()
        for turn in range(40):
            name = rng.choice(PEOPLE)
            own = devices[name]
            if rng.random() < 0.3:
                own.next(rng.choice(["{}", '{"smokes": "yes"}', '{"smokes": "no"}']))
            about = rng.choice([["region"], ["smokes"], ["region", "smokes"], ["smokes", "region"]])
            step = rng.randint(1, len(own._past.kept)) if "smokes" in about else None
            query = HALF.about(*about, at=step)
            asked = reserved(ledger, name, query, str(turn))
            outcomes.add(asked is None)
            if asked is not None:
                assert ledger.receive([own.answer(asked)])[0].outcome == "recorded"
        assert outcomes == {True, False}
        assert ledger.verify()
        ledger.export(tmp_path / "study.jsonl")
        export = checks.check_export(str(tmp_path / "study.jsonl"))
        assert (export.faults, export.decided) == ([], True)


# -- the export --------------------------------------------------------------------------------


def an_export(tmp_path: Path, domain: Any = SMOKES, values: Any = ("no", "yes", "daily")) -> Path:
    """The export of a study that the ledger drew for."""
    guard = xp.BayesianFilter(epsilon="2")
    with Ledger.create(tmp_path / "study.db", domain, filter=guard) as ledger:
        ledger.register(PEOPLE)
        query = xp.logistic({"age": 0.1}, epsilon="0.5") if domain is not SMOKES else HALF
        for week in range(4):
            ledger.ask(query, list(values), key=f"week {week}")
        ledger.export(tmp_path / "study.jsonl")
    return tmp_path / "study.jsonl"


def rewritten(path: Path, change: Any) -> list[str]:
    """What is found when lines of an export are changed, and its digest with them."""
    import hashlib

    *lines, end = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(lines, end["end"])
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end["end"]["digest"] = hashlib.sha256(content).hexdigest()
    path.write_bytes(content + json.dumps(end).encode() + b"\n")
    return checks.check_export(str(path)).faults


def other_response(lines: Any, end: Any) -> None:
    first = lines[1]["exchanges"][0]
    first[1] = "no" if first[1] != "no" else "yes"


def other_head(lines: Any, end: Any) -> None:
    lines[1]["head"] = "0" * 64


def other_tally(lines: Any, end: Any) -> None:
    lines[2]["tally"][0][2] += 1


def fewer(lines: Any, end: Any) -> None:
    lines.pop()


def other_policy(lines: Any, end: Any) -> None:
    lines[0]["policy"]["filter"]["epsilon"] = "3"


def other_query(lines: Any, end: Any) -> None:
    (query,) = lines[0]["queries"].values()
    query["epsilon"] = "0.4"


CHANGES = [
    (other_response, "chain"),
    (other_head, "chain"),
    (other_tally, "tally"),
    (fewer, "counts differ"),
    (other_policy, "policy"),
    (other_query, "query"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_whatever_is_changed_in_an_export_is_found(tmp_path: Path, change: Any, words: str) -> None:
    path = an_export(tmp_path)
    assert any(words in fault for fault in rewritten(path, change))


def test_a_forged_export_with_right_chains_that_broke_a_budget_is_found(tmp_path: Path) -> None:
    def forged(lines: Any, end: Any) -> None:
        header, subject = lines[0], lines[1]
        (query_id,) = header["queries"]
        subject["exchanges"] = [[query_id, "yes"]] * 9
        head = device.first_head(header["policy_id"], subject["subject"])
        for sequence in range(1, 10):
            head = device.next_head(head, sequence, query_id, "yes")
        end["exchanges"] += 9 - sum(count for *_, count in subject["tally"])
        subject["head"], subject["tally"] = head, [[query_id, "yes", 9]]

    faults = rewritten(an_export(tmp_path), forged)
    assert len(faults) == 5
    assert all("not within the budget" in fault for fault in faults)


def test_the_export_of_a_box_has_its_chains_and_tallies_checked(tmp_path: Path) -> None:
    path = an_export(tmp_path, xp.Box(age=(0, 10)), [{"age": age} for age in (1, 2, 9)])
    export = checks.check_export(str(path))
    assert (export.faults, export.decided, export.exchanges) == ([], False, 12)
    assert rewritten(path, other_head)


def test_the_checker_runs_alone(tmp_path: Path) -> None:
    path = an_export(tmp_path)
    program = [sys.executable, "-I", "-S", checks.__file__, "export"]
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "chains, tallies and decisions are right" in done.stdout
    rewritten(path, other_head)
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    path.write_text("not an export\n")
    done = subprocess.run([*program, path], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    program.append(str(tmp_path / "nowhere"))
    assert subprocess.run(program, capture_output=True, check=False).returncode == 2
