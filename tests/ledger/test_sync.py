"""Devices sync with a ledger: real devices, and every answer that they can get."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.device.device import Device, Refused
from expost.ledger import Ledger, Receipt
from support.scripted_devices import (
    HALF,
    OTHER,
    QUARTER,
    ScriptedDevice,
    a_ledger,
    reserved,
    restore,
)

WHOLE = xp.randomized_response(epsilon=1)


class Study:
    """A ledger, and a folder with the stores of devices."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place = folder, folder / "study.db"
        self.ledger = a_ledger(folder)
        self.devices: dict[Any, Device] = {}

    def device(self, name: Any) -> Device:
        if name not in self.devices:
            store = self.folder / f"device {name}"
            if not store.exists():
                Device.create(str(store), self.ledger.policy.to_json(), name, '"yes"')
            self.devices[name] = Device(str(store))
        return self.devices[name]

    def sync(self, name: Any) -> list[dict[str, Any]]:
        """Let a device and the ledger talk to the end; return the answers."""
        device, answers = self.device(name), list[dict[str, Any]]()
        request = device.sync()
        while request:
            (answer,) = self.ledger.sync([request])
            answers.append(json.loads(answer.to_json()))
            request = device.take(answer.to_json())
        return answers

    def roll_back(self) -> None:
        """Restore the file ``backup.db``, and recover."""
        self.ledger.close()
        restore(self.folder / "backup.db", self.place)
        Ledger.recover(self.place)
        self.ledger = Ledger(self.place)

    def close(self) -> None:
        self.ledger.close()
        for device in self.devices.values():
            device.close()


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    made = Study(tmp_path)
    made.ledger.register(["ann", 7])
    yield made
    assert made.ledger.verify().good
    made.close()


def recorded(study: Study, name: Any) -> int:
    return len(study.ledger.transcript(name))


def test_a_device_gets_its_reservation_answers_and_is_confirmed(study: Study) -> None:
    study.ledger.reserve(HALF, ["ann"], key="week 1")
    first, last = study.sync("ann")
    assert (first["confirmed"], first["reservation"]["key"]) == (0, "week 1")
    assert (last["confirmed"], last["reservation"], last["state"]) == (1, None, "active")
    assert [each["outcome"] for each in last["receipts"]] == ["recorded"]
    assert last["head"] == study.device("ann").heads[1]
    assert recorded(study, "ann") == 1
    assert [each["confirmed"] for each in study.sync("ann")] == [1]


def test_a_reservation_has_exactly_the_fields_of_the_protocol(study: Study) -> None:
    study.ledger.reserve(HALF, [7], key="k")
    (answer,) = study.ledger.sync([study.device(7).sync()])
    fields = json.loads(answer.to_json())
    assert set(fields) == {
        "ledger", "subject", "nonce", "confirmed", "head", "state", "receipts", "reservation",
    }  # fmt: skip
    reservation = fields["reservation"]
    assert set(reservation) == {
        "ledger", "subject", "sequence", "previous", "key", "query", "ticket",
    }  # fmt: skip
    assert (reservation["subject"], reservation["sequence"]) == (7, 1)
    assert reservation["query"] == {"kind": "randomized_response", "epsilon": "0.5"}
    assert len(bytes.fromhex(reservation["ticket"])) == 32


def test_a_ticket_is_what_the_protocol_says(study: Study) -> None:
    import hmac

    study.ledger.reserve(HALF, ["ann"], key="größe")
    reservation = ScriptedDevice(study.ledger).reservation(study.ledger)
    key = bytes.fromhex(Path(f"{study.place}.checkpoint.key").read_text("utf-8"))
    said = (
        f'{{"amendment":null,"key":"größe","ledger":"{study.ledger.policy.content_id}",'
        f'"previous":"{reservation["previous"]}","query":"{HALF.content_id}","sequence":1,'
        f'"subject":"ann"}}'
    )
    assert reservation["ticket"] == hmac.digest(key, said.encode(), "sha256").hex()


def test_nobody_else_gets_a_reservation(study: Study) -> None:
    """Not at another number, not with another head, and not for another subject."""
    study.ledger.reserve(HALF, ["ann"], key="k")
    ann = ScriptedDevice(study.ledger)
    assert ann.sync(study.ledger, sequence=1)["reservation"] is None
    assert ann.sync(study.ledger, sequence=-1)["reservation"] is None
    assert ScriptedDevice(study.ledger, 7).sync(study.ledger)["reservation"] is None
    assert ann.sync(study.ledger)["reservation"]["key"] == "k"
    # A head that no device of this subject can have is a second device.
    assert ann.sync(study.ledger, head="0" * 64)["reservation"] is None
    assert study.ledger.status(["ann"]).states == ("suspended",)


def test_a_lost_request_is_sent_again(study: Study) -> None:
    study.ledger.reserve(HALF, ["ann"], key="k")
    device = study.device("ann")
    (answer,) = study.ledger.sync([device.sync()])
    lost = device.take(answer.to_json())
    assert recorded(study, "ann") == 0
    answers = study.sync("ann")
    assert [each["confirmed"] for each in answers] == [0, 1]
    # The lost request arrives after all, any number of times.
    before = study.ledger.tip
    for _ in range(3):
        (late,) = study.ledger.sync([lost])
        assert json.loads(late.to_json())["receipts"][0]["outcome"] == "recorded"
    assert study.ledger.tip == before
    assert recorded(study, "ann") == 1


def test_a_lost_answer_is_asked_for_again(study: Study) -> None:
    study.ledger.reserve(HALF, ["ann"], key="k")
    device = study.device("ann")
    (answer,) = study.ledger.sync([device.sync()])
    study.ledger.sync([device.take(answer.to_json())])  # its answer does not arrive
    assert [each["confirmed"] for each in study.sync("ann")] == [1]


def test_a_sync_that_changes_nothing_writes_nothing(study: Study) -> None:
    study.ledger.reserve(HALF, ["ann"], key="k")
    before = study.ledger.tip
    requests = [study.device(name).sync() for name in ("ann", 7)]
    assert len(study.ledger.sync(requests)) == 2
    assert study.ledger.tip == before


def test_a_device_declines_what_its_own_record_does_not_allow(study: Study) -> None:
    """The ledger has lost nothing; somebody has reserved too much behind its back."""
    from expost.ledger._tallies import Decider

    original = Decider.accepted
    Decider.accepted = lambda self, tallies, extras, queries: [True] * len(tallies)  # type: ignore[method-assign]
    try:
        study.ledger.reserve(xp.randomized_response(epsilon=3), ["ann"], key="large")
        answers = study.sync("ann")
    finally:
        Decider.accepted = original  # type: ignore[method-assign]
    assert answers[1]["receipts"][0]["outcome"] == "declined"
    assert recorded(study, "ann") == 0
    assert study.ledger.status(["ann"]).states == ("active",)
    assert [each.declined for each in study.ledger.rounds()] == [1]
    (problem,) = study.ledger.verify().problems
    assert problem == '"ann": a reservation was not within the budget'
    # The fixture verifies at the end, and this ledger is wrong on purpose.
    study.ledger.close()
    shutil.rmtree(study.folder, ignore_errors=True)
    study.folder.mkdir()
    study.devices.clear()
    study.ledger = a_ledger(study.folder)


class TestOldCopies:
    """A device that is restored from a backup."""

    def copied(self, study: Study, name: str) -> None:
        """Copy the store of a device."""
        self.close(study, name)
        shutil.copyfile(study.folder / f"device {name}", study.folder / f"copy {name}")

    def close(self, study: Study, name: str) -> None:
        study.device(name).close()
        del study.devices[name]

    def restored(self, study: Study, name: str) -> None:
        self.close(study, name)
        shutil.copyfile(study.folder / f"copy {name}", study.folder / f"device {name}")

    def test_it_draws_nothing_when_the_ledger_has_more(self, study: Study) -> None:
        self.copied(study, "ann")
        study.ledger.reserve(HALF, ["ann"], key="k")
        study.sync("ann")
        self.restored(study, "ann")
        study.ledger.reserve(QUARTER, ["ann"], key="l")
        with pytest.raises(Refused, match="which is an old copy"):
            study.sync("ann")
        assert study.device("ann").old_copy
        assert study.ledger.status(["ann"]).states == ("active",)
        assert recorded(study, "ann") == 1

    def test_it_can_draw_again_only_what_the_ledger_has_not_received(self, study: Study) -> None:
        """The one thing that no ledger can prevent: it is noticed when both arrive."""
        self.copied(study, "ann")
        study.ledger.reserve(HALF, ["ann"], key="k")
        (answer,) = study.ledger.sync([study.device("ann").sync()])
        unsent = study.device("ann").take(answer.to_json())
        first = json.loads(json.loads(unsent)["messages"][0])
        for _ in range(60):
            self.restored(study, "ann")
            device = study.device("ann")
            (answer,) = study.ledger.sync([device.sync()])
            request = device.take(answer.to_json())
            second = json.loads(json.loads(request)["messages"][0])
            if second["response"] != first["response"]:
                break
        study.ledger.sync([request])
        (answer,) = study.ledger.sync([unsent])
        receipt = json.loads(answer.to_json())["receipts"][0]
        assert (receipt["outcome"], receipt["reason"]) == (
            "quarantined", "another answer to exchange 1",
        )  # fmt: skip
        assert study.ledger.status(["ann"]).states == ("suspended",)
        assert study.ledger.audit().extras == (("ann", HALF.content_id, first["response"]),)

    def test_a_fork_is_suspended(self, study: Study) -> None:
        self.copied(study, "ann")
        study.ledger.reserve(HALF, ["ann"], key="k")
        study.sync("ann")
        fork = ScriptedDevice(study.ledger)
        fork.sent, fork.heads = ["made up"], [*fork.heads, "1" * 64]
        answer = fork.sync(study.ledger)
        assert (answer["state"], answer["confirmed"]) == ("suspended", 1)
        assert study.ledger.status(["ann"]).states == ("suspended",)
        (quarantined,) = study.ledger.audit().quarantined
        assert quarantined.reason == "its device has another chain at exchange 1"
        assert study.sync("ann")[-1]["state"] == "suspended"


class TestAfterARollback:
    """The ledger is restored from a backup, and devices are not."""

    def test_a_device_restores_what_the_ledger_has_forgotten(self, study: Study) -> None:
        study.ledger.reserve(OTHER, key="before")
        study.sync("ann")
        study.ledger.backup(study.folder / "backup.db")
        for number in range(3):
            study.ledger.reserve(QUARTER if number else OTHER, ["ann"], key=f"after {number}")
            study.sync("ann")
        transcript = study.ledger.transcript("ann")
        assert len(transcript) == 4
        study.roll_back()
        assert reserved(study.ledger, OTHER, ["ann"], "new") == ["unconfirmed"]
        answers = study.sync("ann")
        assert [each["confirmed"] for each in answers] == [1, 4]
        assert answers[0]["state"] == "unconfirmed"
        assert answers[1]["state"] == "active"
        assert study.ledger.transcript("ann") == transcript
        assert reserved(study.ledger, OTHER, ["ann"], "after 0") == ["recorded"]

    def test_what_was_reserved_meanwhile_is_dropped(self, study: Study) -> None:
        """An open reservation was in the backup, and its answer was not."""
        study.ledger.backup(study.folder / "backup.db")
        study.ledger.reserve(HALF, ["ann"], key="k")
        study.sync("ann")
        study.roll_back()
        ScriptedDevice(study.ledger).sync(study.ledger)  # a stale sync confirms too early
        assert reserved(study.ledger, QUARTER, ["ann"], "other") == ["reserved"]
        answers = study.sync("ann")
        assert [each["confirmed"] for each in answers] == [0, 1]
        assert all(each["reservation"] is None for each in answers)
        assert reserved(study.ledger, QUARTER, ["ann"], "other") == ["dropped"]
        assert reserved(study.ledger, HALF, ["ann"], "k") == ["recorded"]

    def test_a_subject_that_was_registered_after_the_backup_comes_back(self, study: Study) -> None:
        study.ledger.backup(study.folder / "backup.db")
        study.ledger.register(["eve"])
        study.ledger.reserve(HALF, ["eve"], key="k")
        study.sync("eve")
        study.ledger.register(["quiet"])
        study.roll_back()
        assert list(study.ledger.subjects) == ["ann", 7]
        assert [each["confirmed"] for each in study.sync("eve")] == [0, 1]
        assert study.sync("quiet")[-1]["state"] == "active"
        assert list(study.ledger.subjects) == ["ann", 7, "eve", "quiet"]
        assert reserved(study.ledger, WHOLE, ["eve"], "l") == ["refused"]


class TestStates:
    """What a device is told about its subject."""

    def test_an_unknown_subject_is_unknown(self, study: Study) -> None:
        stranger = ScriptedDevice(study.ledger, "eve")
        before = study.ledger.tip
        answer = stranger.sync(study.ledger)
        assert (answer["state"], answer["confirmed"], answer["reservation"]) == (
            "unknown", 0, None,
        )  # fmt: skip
        assert answer["head"] == stranger.heads[0]
        assert study.ledger.tip == before
        assert study.sync("eve")[-1]["state"] == "unknown"

    def test_a_suspended_subject_gets_no_reservation(self, study: Study) -> None:
        study.ledger.reserve(HALF, ["ann"], key="k")
        phone = ScriptedDevice(study.ledger)
        study.ledger.receive([phone.message(phone.reservation(study.ledger), head="0" * 64)])
        (answer,) = study.sync("ann")
        assert (answer["state"], answer["reservation"]) == ("suspended", None)

    def test_an_ended_study_takes_answers_and_gives_no_reservation(self, study: Study) -> None:
        study.ledger.reserve(HALF, key="k")
        device = study.device("ann")
        (answer,) = study.ledger.sync([device.sync()])
        request = device.take(answer.to_json())
        study.ledger.end()
        (answer,) = study.ledger.sync([request])
        fields = json.loads(answer.to_json())
        assert (fields["state"], fields["confirmed"]) == ("ended", 1)
        assert study.sync(7)[-1]["reservation"] is None
        assert recorded(study, 7) == 0

    def test_subjects_of_other_kinds_get_no_reservation(self, study: Study) -> None:
        study.ledger.register(["sim"], kind="simulated")
        study.ledger.ask(HALF, ["no"], ["sim"], key="k")
        assert ScriptedDevice(study.ledger, "sim").sync(study.ledger)["reservation"] is None


class TestJunk:
    """Requests that are none."""

    @pytest.mark.parametrize(
        "changed",
        [
            {"ledger": "0" * 64},
            {"messages": "none"},
            {"messages": [7]},
            {"queries": []},
            {"sequence": "0"},
            {"nonce": 7},
            {"more": 1},
            {"subject": None},
        ],
    )
    def test_they_are_quarantined_and_answered_by_a_receipt(
        self, study: Study, changed: dict[str, Any]
    ) -> None:
        phone = ScriptedDevice(study.ledger)
        request = json.dumps({**json.loads(phone.request()), **changed})
        junk, good = study.ledger.sync([request, phone.request()])
        assert isinstance(junk, Receipt)
        assert json.loads(junk.to_json())["outcome"] == "quarantined"
        assert junk.reason.startswith("not a sync request: ")
        assert json.loads(good.to_json())["state"] == "active"
        assert study.ledger.status().states == ("active", "active")
        assert len(study.ledger.audit().quarantined) == 1

    def test_a_sender_speaks_for_itself_only(self, study: Study) -> None:
        study.ledger.reserve(HALF, key="k")
        ann = ScriptedDevice(study.ledger)
        message = ann.answer(study.ledger)
        answer = ScriptedDevice(study.ledger, 7).sync(study.ledger, [message])
        assert answer["receipts"][0]["outcome"] == "quarantined"
        assert recorded(study, "ann") == 0
        assert study.ledger.status().states == ("active", "active")
        assert ann.sync(study.ledger, [message])["confirmed"] == 1

    def test_a_request_may_have_many_messages_and_not_four_mebibytes(self, study: Study) -> None:
        phone = ScriptedDevice(study.ledger)
        (found,) = study.ledger.sync([phone.request(["x" * (1 << 20)] * 5)])
        assert isinstance(found, Receipt)
        assert "has more than 4,194,304 bytes" in found.reason

    def test_a_device_does_not_believe_a_stale_answer(self, study: Study) -> None:
        study.ledger.reserve(HALF, ["ann"], key="k")
        device = study.device("ann")
        (stale,) = study.ledger.sync([device.sync()])
        device.sync()
        with pytest.raises(Refused, match="stale answer"):
            device.take(stale.to_json())
        study.sync("ann")
        with pytest.raises(Refused, match="stale answer"):
            device.take(stale.to_json())
        assert recorded(study, "ann") == 1


def test_hundreds_of_syncs_are_one_commit(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(range(200))
        ledger.reserve(HALF, key="k")
        phones = [ScriptedDevice(ledger, number) for number in range(200)]
        answers = ledger.sync([phone.request() for phone in phones])
        requests = []
        for phone, answer in zip(phones, answers, strict=True):
            reservation = json.loads(answer.to_json())["reservation"]
            requests.append(phone.store(phone.message(reservation), reservation["query"]))
        before = ledger.tip.commit_number
        ledger.sync([phone.request([each]) for phone, each in zip(phones, requests, strict=True)])
        assert ledger.tip.commit_number == before + 1
        assert ledger.status().exchanges.tolist() == [1] * 200
        assert ledger.verify().good
