"""Devices and a ledger: reserve, sync, draw, store, send, record, whatever fails in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import expost as xp
from expost.device import checks, device
from expost.device.device import Device, Refused
from expost.filters import Filter
from expost.ledger import SyncAnswer
from expost.queries import Query
from support.killed_devices import killed
from support.single_device import synced

SMOKES = xp.FiniteSet(["no", "yes", "daily"])
HALF = xp.randomized_response(epsilon="0.5")
HALF_AT_FOUR = '{"kind": "randomized_response", "epsilon": "0.5", "about": ["smokes"], "at": 4}'
PEOPLE: list[str | int] = ["ann", 7, "größe"]


@contextmanager
def a_study(
    tmp_path: Path,
    domain: Any = SMOKES,
    value: Any = "yes",
    budget: str | Filter = "1.5",
) -> Iterator[tuple[xp.Ledger, dict[str | int, str]]]:
    """A ledger, and the stores of devices."""
    guard = xp.BayesianFilter(epsilon=budget) if isinstance(budget, str) else budget
    with xp.Ledger.create(tmp_path / "study.db", domain, filter=guard) as ledger:
        assert ledger.register(PEOPLE, kind="device") == len(PEOPLE)
        stores = {}
        for number, name in enumerate(PEOPLE):
            stores[name] = str(tmp_path / f"store {number}")
            Device.create(stores[name], ledger.policy.to_json(), name, json.dumps(value))
        yield ledger, stores


def reserve(ledger: xp.Ledger, name: str | int, query: Query, key: str) -> str:
    """Reserve an exchange of one subject; return the outcome."""
    (found,) = ledger.reserve(query, [name], key=key)
    return str(found.outcome)


def test_reserve_draw_store_send_record_until_budgets_are_used_up(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        devices = {name: Device(store) for name, store in stores.items()}
        refused = 0
        for week in range(12):
            for outcome in ledger.reserve(HALF, PEOPLE, key=f"week {week}"):
                refused += outcome.outcome == "refused"
            for own in devices.values():
                before = len(own.heads)
                # Where they are, perhaps a message, and no more.
                assert synced(own, ledger) == len(own.heads) - before + 1
        assert refused
        for name, own in devices.items():
            assert len(ledger.transcript(name)) == len(own.heads) - 1
        assert ledger.verify()
        ledger.export(tmp_path / "study.jsonl")
        export = checks.check_export(str(tmp_path / "study.jsonl"))
        assert (export.faults, export.decided) == ([], True)
        assert (export.subjects, export.extras, export.tolerated) == (3, 0, 0)
        assert export.exchanges == sum(len(own.heads) - 1 for own in devices.values())


def test_a_week_and_a_life_are_kept_by_ledger_and_device_alike(tmp_path: Path) -> None:
    domain = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"]))
    week = xp.BayesianFilter(epsilon="0.5", protects=xp.steps(1))
    guard = xp.AllOf(week, xp.BayesianFilter(epsilon="1.5"))
    value = {"region": "n", "smokes": "no"}
    with a_study(tmp_path, domain, value, guard) as (ledger, stores):
        own = Device(stores["ann"])
        outcomes: list[str] = []
        for step in (1, 1, 2, 3, 4):
            while len(own._history.frozen) < step:
                own.next()
            query = HALF.about("smokes", at=step)
            outcomes.append(reserve(ledger, "ann", query, f"{step} {len(outcomes)}"))
            synced(own, ledger)
        # The second query about step 1 exceeds the week, the one about step 4 exceeds the life.
        assert outcomes == ["reserved", "refused", "reserved", "reserved", "refused"]
        compiled = own.account.compiled(device.Query.read(device.parse(HALF_AT_FOUR)))
        assert device.refusing(own.policy.filter, own.account, compiled) == [1]
        ledger.export(tmp_path / "study.jsonl")
    export = checks.check_export(str(tmp_path / "study.jsonl"))
    assert (export.faults, export.decided, export.exchanges) == ([], True, 3)


@pytest.mark.parametrize(
    ("domain", "guard"),
    [
        (xp.Box(age=(0, 10)), xp.AllOf(xp.BayesianFilter("1"), xp.BayesianFilter(ratio="9/4"))),
        (
            xp.Attributes(a=["no", "yes"], b=["no", "yes"]),
            xp.AllOf(
                xp.BayesianFilter("1", protects=xp.groups(["a"], ["a", "b"])),
                xp.ApproximateFilter("2", delta="1e-6"),
            ),
        ),
    ],
)
def test_an_export_that_no_device_can_decide_has_its_policy_id(
    tmp_path: Path, domain: Any, guard: Any
) -> None:
    with xp.Ledger.create(tmp_path / "study.db", domain, filter=guard) as ledger:
        ledger.register(["ann"], kind="device")
        ledger.export(tmp_path / "study.jsonl")
    export = checks.check_export(str(tmp_path / "study.jsonl"))
    assert (export.faults, export.decided) == ([], False)


def test_lost_and_repeated_requests_are_recorded_once(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        own = Device(stores["ann"])
        assert reserve(ledger, "ann", HALF, "k") == "reserved"
        (answer,) = ledger.sync([own.sync()])
        lost = own.take(answer.to_json())  # this request does not arrive
        sent: list[str] = []
        synced(own, ledger, sent.append)
        messages = [json.loads(request)["messages"] for request in sent]
        assert messages == [[], json.loads(lost)["messages"]]
        assert len(ledger.transcript("ann")) == 1
        # It arrives late, and twice; the device takes no answer to it.
        for late in ledger.sync([lost, lost]):
            assert isinstance(late, SyncAnswer)
            (receipt,) = late.receipts
            assert (receipt.outcome, receipt.head) == ("recorded", own.heads[1])
            with pytest.raises(Refused, match="stale answer"):
                own.take(late.to_json())
        assert len(ledger.transcript("ann")) == 1
        assert ledger.verify()


def test_a_device_that_was_offline_answers_later_and_nothing_else_is_asked(tmp_path: Path) -> None:
    with a_study(tmp_path) as (ledger, stores):
        assert reserve(ledger, "ann", HALF, "monday") == "reserved"
        assert reserve(ledger, "ann", HALF, "tuesday") == "waiting"
        assert reserve(ledger, "ann", HALF, "monday") == "reserved"
        assert synced(Device(stores["ann"]), ledger) == 2
        assert reserve(ledger, "ann", HALF, "monday") == "recorded"
        assert reserve(ledger, "ann", HALF, "tuesday") == "reserved"


def test_an_unknown_query_is_declined_and_the_subject_goes_on(tmp_path: Path) -> None:
    person = xp.FiniteSet([0, 1, 2])
    with a_study(tmp_path, person, 1) as (ledger, stores):
        own = Device(stores["ann"])
        noisy = xp.laplace({"value": 1}, range=(0, 2), grid=1, epsilon="0.5")
        assert reserve(ledger, "ann", noisy, "k") == "reserved"
        assert synced(own, ledger) == 2
        assert len(own.heads) == 1
        assert reserve(ledger, "ann", noisy, "k") == "declined"
        assert reserve(ledger, "ann", HALF, "k 2") == "reserved"
        synced(own, ledger)
        assert len(ledger.transcript("ann")) == 1 == len(own.heads) - 1


def test_a_device_restored_from_a_backup_refuses_rather_than_draws_again(tmp_path: Path) -> None:
    with a_study(tmp_path, budget="4") as (ledger, stores):
        store = Path(stores["ann"])
        backups = [store.read_bytes()]
        for week in range(3):
            own = Device(str(store))
            reserve(ledger, "ann", HALF, f"week {week}")
            synced(own, ledger)
            own.close()
            backups.append(store.read_bytes())
        reserve(ledger, "ann", HALF, "next")
        for backup in backups[:-1]:
            store.write_bytes(backup)
            restored = Device(str(store))
            with pytest.raises(Refused, match="old copy"):
                synced(restored, ledger)
            assert restored.old_copy
            restored.close()
            assert store.read_bytes() == backup
        store.write_bytes(backups[-1])
        synced(Device(str(store)), ledger)
        assert len(ledger.transcript("ann")) == 4


def test_two_copies_of_a_device_that_drew_differently_are_noticed(tmp_path: Path) -> None:
    with a_study(tmp_path, budget="40") as (ledger, stores):
        store = Path(stores["ann"])
        backup = store.read_bytes()
        reserve(ledger, "ann", HALF, "k")
        requests: list[str] = []
        while len({json.loads(request)["head"] for request in requests}) < 2:
            store.write_bytes(backup)
            own = Device(str(store))
            (answer,) = ledger.sync([own.sync()])
            requests.append(own.take(answer.to_json()))
            own.close()
        ledger.sync([requests[0]])
        assert len(ledger.transcript("ann")) == 1
        own = Device(str(store))
        with pytest.raises(Refused, match="another record of this device"):
            synced(own, ledger)
        ledger.export(tmp_path / "study.jsonl")
        assert checks.check_export(str(tmp_path / "study.jsonl")).faults == []


@pytest.mark.parametrize("torn", [False, True])
def test_killed_at_every_step_nothing_is_released_twice_or_lost(tmp_path: Path, torn: bool) -> None:
    with a_study(tmp_path, budget="100") as (ledger, stores):
        store, at = stores["ann"], 0
        while True:
            at += 1
            assert reserve(ledger, "ann", HALF, f"week {at}") == "reserved"
            own = Device(store)
            request = json.loads(own.sync())
            own.close()
            (answer,) = ledger.sync([json.dumps(request)])

            def run(template: str = answer.to_json()) -> None:
                own = Device(store, lambda count: os.urandom(count))
                nonce = {"nonce": json.loads(own.sync())["nonce"]}
                os.write(1, own.take(json.dumps({**json.loads(template), **nonce})).encode())
                own.close()

            was_killed, released = killed(run, at, torn)
            if released:
                (answer,) = ledger.sync([released.decode()])
                assert isinstance(answer, SyncAnswer)
                assert answer.confirmed == at
            own = Device(store)
            synced(own, ledger)
            assert len(own.heads) - 1 == at == len(ledger.transcript("ann"))
            own.close()
            if not was_killed:
                break
        assert at > 10
        assert ledger.verify()


def test_random_studies_of_attributes_end_to_end(tmp_path: Path) -> None:
    person = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
    value = {"region": "n", "smokes": "no"}
    rng = Random(5)
    with a_study(tmp_path, person, value, budget="2") as (ledger, stores):
        devices = {name: Device(store) for name, store in stores.items()}
        steps = dict.fromkeys(PEOPLE, 1)
        outcomes = set()
        for turn in range(40):
            name = rng.choice(PEOPLE)
            own = devices[name]
            if rng.random() < 0.3:
                own.next(rng.choice(["{}", '{"smokes": "yes"}', '{"smokes": "no"}']))
                steps[name] += 1
            about = rng.choice([["region"], ["smokes"], ["region", "smokes"], ["smokes", "region"]])
            step = rng.randint(1, steps[name]) if "smokes" in about else None
            outcome = reserve(ledger, name, HALF.about(*about, at=step), str(turn))
            outcomes.add(outcome)
            assert synced(own, ledger) == (2 if outcome == "reserved" else 1)
        assert outcomes == {"reserved", "refused"}
        assert ledger.verify()
        ledger.export(tmp_path / "study.jsonl")
        export = checks.check_export(str(tmp_path / "study.jsonl"))
        assert (export.faults, export.decided) == ([], True)


def test_the_export_of_a_box_has_its_chains_and_tallies_checked(tmp_path: Path) -> None:
    path, guard = tmp_path / "study.jsonl", xp.BayesianFilter(epsilon="2")
    with xp.Ledger.create(tmp_path / "study.db", xp.Box(age=(0, 10)), filter=guard) as ledger:
        ledger.register(PEOPLE, kind="simulated")
        query = xp.logistic({"age": 0.1}, epsilon="0.5")
        for week in range(4):
            ledger.ask(query, [{"age": age} for age in (1, 2, 9)], key=f"week {week}")
        ledger.export(path)
    export = checks.check_export(str(path))
    assert (export.faults, export.decided, export.exchanges) == ([], False, 12)
    path.write_text(path.read_text("utf-8").replace('"head": "', '"head": "0'), "utf-8")
    assert any("chain" in fault for fault in checks.check_export(str(path)).faults)
