"""A backup is restored in the middle of a study: devices restore everything, in one sync each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import expost as xp
from expost.device.device import Device
from expost.ledger import Ledger, LedgerBehind
from expost.ledger.tables import SubjectRow
from support.backup_sites import FileSite, PostgresSite
from support.scripted_devices import HALF, OTHER, QUARTER, SMOKES, reserved

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileSite | PostgresSite:
    if request.param == "sqlite":
        return FileSite(tmp_path)
    return PostgresSite(tmp_path, request.getfixturevalue("postgres"))


class Fleet:
    """Devices of subjects, each with a store of its own."""

    def __init__(self, folder: Path, policy: str) -> None:
        self._folder, self._policy = folder, policy
        self.devices: dict[str, Device] = {}

    def enroll(self, names: Iterable[str]) -> None:
        for number, name in enumerate(names):
            store = str(self._folder / f"store of {name}")
            Device.create(store, self._policy, name, json.dumps(["no", "yes"][number % 2]))
            self.devices[name] = Device(store)

    def sync(self, ledger: Ledger, names: Iterable[str] | None = None) -> None:
        """Let every device sync once, to the end of its conversation."""
        requests = {name: self.devices[name].sync() for name in names or self.devices}
        while requests:
            answers = ledger.sync(requests.values())
            following = {
                name: self.devices[name].take(answer.to_json())
                for name, answer in zip(requests, answers, strict=True)
            }
            requests = {name: request for name, request in following.items() if request}

    def heads(self) -> dict[str, str]:
        return {name: device.heads[-1] for name, device in self.devices.items()}

    def close(self) -> None:
        for device in self.devices.values():
            device.close()


def digest(heads: Iterable[tuple[str, str]]) -> str:
    """Return the digest over names and heads, in the order of names."""
    return hashlib.sha256(json.dumps(sorted(heads)).encode()).hexdigest()


def recorded(ledger: Ledger) -> dict[str, str]:
    rows = ledger._engine.backend.scan(SubjectRow)
    return {json.loads(row.name): row.head.hex() for row in rows}


@pytest.fixture
def fleet_of(tmp_path: Path) -> Iterator[Callable[[Ledger], Fleet]]:
    with ExitStack() as stack:

        def make(ledger: Ledger) -> Fleet:
            fleet = Fleet(tmp_path, ledger.policy.to_json())
            stack.callback(fleet.close)
            return fleet

        yield make


def test_nothing_is_lost_and_only_the_suspended_subject_is_suspended(
    store: FileSite | PostgresSite,
    fleet_of: Callable[[Ledger], Fleet],
    tmp_path: Path,
    run: Run,
) -> None:
    names = [f"subject {number}" for number in range(store.count - 5)]
    guard = xp.BayesianFilter(epsilon=2)
    cheating, late, reused = names[3], names[7], names[11]
    with Ledger.create(store.place, SMOKES, filter=guard, checkpoint=store.checkpoint) as ledger:
        fleet = fleet_of(ledger)
        ledger.register(names)
        fleet.enroll(names)
        ledger.reserve(OTHER, key="round 0")
        fleet.sync(ledger)
        store.save(ledger)

        ledger.reserve(QUARTER, key="round 1")
        fleet.sync(ledger)
        # People are enrolled.
        enrolled = [f"enrolled {number}" for number in range(5)]
        ledger.register(enrolled)
        fleet.enroll(enrolled)
        stale = fleet.devices[reused].sync()
        ledger.reserve(HALF, key="round 2")
        fleet.sync(ledger)
        # One subject is suspended, because of another answer to an exchange.
        message = json.loads(fleet.devices[cheating]._sent[-1])
        other = "no" if message["response"] == "yes" else "yes"
        (receipt,) = ledger.receive([json.dumps({**message, "response": other})])
        assert receipt.outcome == "quarantined"
        ledger.reserve(QUARTER, key="round 3")
        fleet.sync(ledger, [name for name in fleet.devices if name != late])
        # One device answers a reservation that the ledger will have forgotten.
        (answer,) = ledger.sync([fleet.devices[late].sync()])
        assert fleet.devices[late].take(answer.to_json())
        before = fleet.heads()
        assert {**recorded(ledger), late: before[late]} == before
        assert ledger.status().suspended.sum() == 1
        due = {name: len(device.heads) - 1 for name, device in fleet.devices.items()}
        assert set(due.values()) == {2, 3, 4}

    store.restore()
    with pytest.raises(LedgerBehind, match="the database is an older copy"):
        Ledger(store.place, checkpoint=store.checkpoint)
    found = Ledger.recover(store.place, checkpoint=store.checkpoint)
    assert found.lost_registrations == 5
    assert found.suspended == (cheating,)
    assert (found.unconfirmed, found.lost_imports) == (len(names), 0)

    with Ledger(store.place, checkpoint=store.checkpoint) as ledger:
        assert set(recorded(ledger)) == set(names)
        assert not ledger.decide(OTHER).accepted.any()
        # An analyst uses a key for another query. Nearly all subjects have to sync first, and one
        # seems to have done so, because an old request of its device came again.
        at_restore = json.loads(stale)
        start = fleet.devices[reused].heads[1]
        ledger.sync([json.dumps({**at_restore, "sequence": 1, "head": start})])
        outcomes = ledger.reserve(OTHER, names, key="round 2")
        asked = {each.subject: each.outcome for each in outcomes if each.outcome != "unconfirmed"}
        assert asked == {reused: "reserved", cheating: "suspended"}

        fleet.sync(ledger, [reused])
        fleet.sync(ledger, [name for name in fleet.devices if name != reused])

        assert fleet.heads() == before, "a device has drawn again"
        assert digest(recorded(ledger).items()) == digest(before.items())
        assert len(ledger.subjects) == store.count
        status = ledger.status()
        exchanges = dict(zip(status.subjects, status.exchanges.tolist(), strict=True))
        assert exchanges == due
        assert [name for name, state in zip(status.subjects, status.states, strict=True)
                if state != "active"] == [cheating]  # fmt: skip
        audit = ledger.audit()
        assert audit.good
        assert audit.suspended == (cheating,)
        assert (audit.unconfirmed, audit.lost_imports) == ((), 0)
        assert audit.two_outcomes == ((reused, "round 2"),)
        assert [mark.split(" at ")[0] for mark in audit.marks] == ["recovered", "rollback"]
        assert "commits were lost" in audit.marks[0]
        verification = ledger.verify()
        assert verification.good, verification
        assert reserved(ledger, OTHER, [late, cheating], "round 4") == ["reserved", "suspended"]
        with pytest.raises(xp.InvalidInput, match="a restored backup lost what it revealed"):
            ledger.resolve([cheating])

    page = tmp_path / "page.html"
    code, _, _ = run(
        "ledger", "report", store.place, "--checkpoint", store.checkpoint, "-o", page
    )  # fmt: skip
    assert code == 0
    shown = page.read_text("utf-8")
    assert "commits were lost" in shown
    assert "proved by a ticket" in shown
    assert "1 subject is suspended" in shown
    assert "1 key has two outcomes" in shown
    assert not any(name in shown for name in (cheating, late, reused))


def test_every_budget_is_what_it_was(
    store: FileSite | PostgresSite, fleet_of: Callable[[Ledger], Fleet]
) -> None:
    """The same queries are asked again after the restore, under new keys: no one answers."""
    whole = xp.randomized_response(epsilon=1)
    names = [f"subject {number}" for number in range(20)]
    guard = xp.BayesianFilter(epsilon=1)
    with Ledger.create(store.place, SMOKES, filter=guard, checkpoint=store.checkpoint) as ledger:
        fleet = fleet_of(ledger)
        ledger.register(names)
        fleet.enroll(names)
        store.save(ledger)
        ledger.reserve(whole, key="first")
        fleet.sync(ledger)
        losses = ledger.status().loss.upper
    for turn in range(3):
        store.restore()
        Ledger.recover(store.place, checkpoint=store.checkpoint)
        with Ledger(store.place, checkpoint=store.checkpoint) as ledger:
            assert reserved(ledger, whole, key=f"again {turn}") == ["unconfirmed"] * 20
            fleet.sync(ledger)
            assert reserved(ledger, whole, key=f"again {turn}") == ["refused"] * 20
            fleet.sync(ledger)
            assert (ledger.status().loss.upper == losses).all()
            assert ledger.audit().good
            assert ledger.verify().good
    assert {len(device.heads) for device in fleet.devices.values()} == {2}
