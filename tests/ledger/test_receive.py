"""Every kind of message that can arrive, and what becomes of it and of its subject."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger import Ledger
from support.scripted_devices import (
    HALF,
    OTHER,
    QUARTER,
    ScriptedDevice,
    a_ledger,
    reserved,
    restore,
)

KEY = "week 1"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A study in which ann has an open reservation, and the subject 7 has none."""
    with a_ledger(tmp_path) as made:
        made.register(["ann", 7])
        assert reserved(made, HALF, ["ann"], KEY) == ["reserved"]
        yield made
        assert made.verify().good


@pytest.fixture
def ann(ledger: Ledger) -> ScriptedDevice:
    return ScriptedDevice(ledger, "ann")


def states(ledger: Ledger) -> dict[Any, str]:
    status = ledger.status()
    return dict(zip(status.subjects, status.states, strict=True))


def test_a_message_that_fits_is_recorded(ledger: Ledger, ann: ScriptedDevice) -> None:
    message = ann.answer(ledger)
    (receipt,) = ledger.receive([message])
    assert json.loads(receipt.to_json()) == {
        "outcome": "recorded",
        "subject": "ann",
        "sequence": 1,
        "key": KEY,
        "head": json.loads(message)["head"],
    }
    assert [each.response for each in ledger.transcript("ann").exchanges] == ["yes"]
    assert reserved(ledger, HALF, ["ann"], KEY) == ["recorded"]
    ledger.reserve(HALF, ["ann"], key="week 2")
    following = ann.reservation(ledger)
    assert (following["sequence"], following["previous"]) == (2, receipt.head)


def test_subjects_may_be_integers(ledger: Ledger) -> None:
    ledger.reserve(HALF, [7], key=KEY)
    receipt = ScriptedDevice(ledger, 7).send(ledger)
    assert (receipt.subject, receipt.sequence) == (7, 1)
    assert json.loads(receipt.to_json())["subject"] == 7


def test_a_repeated_message_gets_the_same_receipt_and_writes_nothing(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    message = ann.answer(ledger)
    first = ledger.receive([message])
    ledger.reserve(HALF, ["ann"], key="week 2")
    ann.send(ledger, response="no")
    before = ledger.tip
    assert ledger.receive([message, message.encode()]) == first * 2
    assert ledger.tip == before
    assert len(ledger.transcript("ann")) == 2


def test_a_message_that_comes_twice_in_one_call_is_recorded_once(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    message = ann.answer(ledger)
    first, second = ledger.receive([message, message])
    assert first == second
    assert first.outcome == "recorded"
    assert len(ledger.transcript("ann")) == 1


def test_messages_of_several_exchanges_come_in_one_call(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    ann.send(ledger)
    ledger.reserve(HALF, ["ann"], key="week 2")
    message = ann.answer(ledger, response="no")
    assert [each.sequence for each in ledger.receive([*ann.sent, message])] == [1, 2, 2]
    assert [each.response for each in ledger.transcript("ann").exchanges] == ["yes", "no"]


def test_many_messages_are_one_commit(ledger: Ledger) -> None:
    ledger.register(range(100, 140))
    ledger.reserve(HALF, range(100, 140), key="round")
    messages = [ScriptedDevice(ledger, number).answer(ledger) for number in range(100, 140)]
    before = ledger.tip.commit_number
    receipts = ledger.receive([*messages, *messages])
    assert {receipt.outcome for receipt in receipts} == {"recorded"}
    assert ledger.tip.commit_number == before + 1
    assert receipts[:40] == receipts[40:]


def test_a_declined_reservation_is_released_and_its_key_stays_declined(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    message = ann.declined(ann.reservation(ledger))
    (receipt,) = ledger.receive([message])
    assert (receipt.outcome, receipt.head) == ("declined", "")
    before = ledger.tip
    assert ledger.receive([message]) == (receipt,)
    assert reserved(ledger, HALF, ["ann"], KEY) == ["declined"]
    assert ledger.tip == before
    ((outcome),) = ledger.reserve(QUARTER, ["ann"], key="week 2")
    assert (outcome.outcome, outcome.sequence) == ("reserved", 1)
    assert states(ledger) == {"ann": "active", 7: "active"}


def test_an_answer_after_a_decline_is_quarantined(ledger: Ledger, ann: ScriptedDevice) -> None:
    """A device that declines has drawn nothing, so this one has lied once."""
    reservation = ann.reservation(ledger)
    ledger.receive([ann.declined(reservation)])
    (receipt,) = ledger.receive([ann.message(reservation)])
    assert (receipt.outcome, receipt.reason) == (
        "quarantined", "answers a reservation that was declined",
    )  # fmt: skip
    assert ledger.audit().extras == (("ann", HALF.content_id, "yes"),)


def test_another_answer_to_a_recorded_exchange_is_quarantined_and_counts(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    """A device that was restored from a backup has drawn again."""
    reservation = ann.reservation(ledger)
    first, second = (ann.message(reservation, response=each) for each in ("yes", "no"))
    (one,), (other,) = ledger.receive([first]), ledger.receive([second])
    assert (one.outcome, other.outcome) == ("recorded", "quarantined")
    assert other.reason == "another answer to exchange 1"
    before = ledger.tip
    assert ledger.receive([second, first]) == (other, one)
    assert ledger.tip == before
    assert states(ledger) == {"ann": "suspended", 7: "active"}
    assert reserved(ledger, QUARTER, ["ann"], "week 2") == ["suspended"]
    found = ledger.audit()
    assert [(each.subject, each.message) for each in found.quarantined] == [
        ("ann", second.encode())
    ]
    assert found.extras == (("ann", HALF.content_id, "no"),)
    assert (found.suspended, found.good) == (("ann",), True)
    # The loss was 1/2 with the first response, and each extra can add its epsilon.
    assert ledger.status(["ann"]).loss.upper[0] == pytest.approx(1)
    assert ledger.status(["ann"]).remaining[0] == 0


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"sequence": 0}, "its sequence number is not positive"),
    ({"sequence": -3}, "its sequence number is not positive"),
    ({"sequence": 2}, "another reservation is open"),
    ({"key": "another"}, "another reservation is open"),
    ({"query": OTHER.content_id}, "another reservation is open"),
    ({"query": "0" * 64}, "another reservation is open"),
    ({"response": "maybe"}, "not a response of the query"),
    ({"response": 0.5}, "not a response of the query"),
    ({"response": ["yes"]}, "not a response of the query"),
    ({"head": "0" * 64}, "the head does not follow"),
    ({"head": "é"}, "the head does not follow"),
]


@pytest.mark.parametrize(("changed", "reason"), MISFITS)
def test_a_message_that_does_not_fit_is_quarantined_and_its_subject_suspended(
    ledger: Ledger, ann: ScriptedDevice, changed: dict[str, Any], reason: str
) -> None:
    reservation = ann.reservation(ledger)
    message = ann.message(reservation, **changed)
    (receipt,) = ledger.receive([message])
    assert (receipt.outcome, receipt.reason) == ("quarantined", reason)
    assert ledger.receive([message]) == (receipt,)
    assert states(ledger) == {"ann": "suspended", 7: "active"}
    assert len(ledger.transcript("ann")) == 0
    # What was reserved and fits was drawn, so it is recorded, even of a suspended subject.
    assert ledger.receive([ann.message(reservation)])[0].outcome == "recorded"
    assert states(ledger) == {"ann": "suspended", 7: "active"}
    assert len(ledger.audit().quarantined) == 1


def test_nothing_is_recorded_that_was_not_reserved(ledger: Ledger, ann: ScriptedDevice) -> None:
    """Whatever the ticket of such a message is, except the right one."""
    reservation = ann.reservation(ledger)
    phone = ScriptedDevice(ledger, 7)
    forged = {**reservation, "subject": 7, "previous": phone.heads[0]}
    for ticket in (reservation["ticket"], "0" * 64, "", "é"):
        (receipt,) = ledger.receive([phone.message({**forged, "ticket": ticket})])
        assert (receipt.outcome, receipt.reason) == ("quarantined", "nothing is reserved")
    assert states(ledger)[7] == "suspended"
    assert len(ledger.transcript(7)) == 0


def test_a_decline_of_something_that_was_never_reserved_is_quarantined(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    reservation = ann.reservation(ledger)
    message = ScriptedDevice(ledger, 7).declined({**reservation, "subject": 7})
    (receipt,) = ledger.receive([message])
    assert (receipt.outcome, receipt.reason) == (
        "quarantined", "declines a reservation that was never made",
    )  # fmt: skip
    assert states(ledger) == {"ann": "active", 7: "suspended"}
    assert ledger.audit().extras == ()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "not a message: "),
        (b"\xff\xfe", "not a message: is not UTF-8 JSON"),
        (b"[]", "not a message: must be an object"),
        (b"{}", "not a message: 'ledger' is missing"),
        (b'{"ledger": "x", "ledger": "x"}', "not a message: ledger: appears twice"),
        (b"[" * 60_000, "not a message"),
        (b" " * ((1 << 20) + 1), "not a message: has more than 1,048,576 bytes"),
        ("\ud800", "not a message: is not UTF-8 JSON"),
    ],
)
def test_junk_is_quarantined_and_suspends_no_one(
    ledger: Ledger, sent: bytes | str, reason: str
) -> None:
    (receipt,) = ledger.receive([sent])
    assert receipt.outcome == "quarantined"
    assert receipt.reason.startswith(reason)
    before = ledger.tip
    assert ledger.receive([sent]) == (receipt,)
    assert ledger.tip == before
    assert states(ledger) == {"ann": "active", 7: "active"}
    (found,) = ledger.audit().quarantined
    assert (found.subject, found.held) == (None, False)
    content = sent if isinstance(sent, bytes) else sent.encode(errors="surrogatepass")
    assert found.message == content[:4096]


@pytest.mark.parametrize(
    "changed",
    [
        {"ledger": "0" * 64},
        {"subject": "eve"},
        {"subject": "7"},
        {"subject": True},
        {"subject": ""},
        {"subject": "eve", "ticket": "é"},
        {"subject": "e" * 5000},
        {"sequence": 1.5},
        {"sequence": "1"},
        {"sequence": 1 << 70},
        {"declined": True},
        {"declined": False, "response": None, "head": None},
        {"head": None},
        {"response": None},
        {"ticket": None},
        {"response": {}},
        {"more": 1},
        {"key": "\ud800"},
    ],
)
def test_a_message_about_no_subject_of_this_ledger_suspends_no_one(
    ledger: Ledger, ann: ScriptedDevice, changed: dict[str, Any]
) -> None:
    message = ann.message(ann.reservation(ledger), **changed)
    good = ann.answer(ledger)
    bad, recorded = ledger.receive([message, good])
    assert (bad.outcome, bad.subject, recorded.outcome) == ("quarantined", None, "recorded")
    assert states(ledger) == {"ann": "active", 7: "active"}


def test_junk_of_one_call_is_one_commit_and_does_not_stop_the_rest(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    before = ledger.tip.commit_number
    junk = [b"junk %d" % number for number in range(300)]
    receipts = ledger.receive([*junk, ann.answer(ledger), *junk])
    assert ledger.tip.commit_number == before + 1
    assert [each.outcome for each in receipts].count("quarantined") == 600
    assert receipts[300].outcome == "recorded"
    assert len(ledger.audit().quarantined) == 300


def test_a_message_of_one_mebibyte_is_read(ledger: Ledger, ann: ScriptedDevice) -> None:
    message = ann.answer(ledger)
    (receipt,) = ledger.receive([message + " " * ((1 << 20) - len(message))])
    assert receipt.outcome == "recorded"


def test_a_response_that_an_exchange_then_records_stops_counting_as_an_extra(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    reservation = ann.reservation(ledger)
    ledger.receive([ann.message(reservation, head="0" * 64)])
    assert ledger.audit().extras == (("ann", HALF.content_id, "yes"),)
    before = ledger.status(["ann"])
    assert (before.exchanges[0], before.loss.upper[0]) == (0, pytest.approx(0.5))
    ledger.receive([ann.message(reservation)])
    assert ledger.audit().extras == ()
    after = ledger.status(["ann"])
    assert (after.exchanges[0], after.loss.upper[0]) == (1, pytest.approx(0.5))
    assert after.loss.upper[0] - after.loss.lower[0] < 1e-9


def test_an_extra_with_another_response_or_number_is_not_absorbed(
    ledger: Ledger, ann: ScriptedDevice
) -> None:
    reservation = ann.reservation(ledger)
    ledger.receive([ann.message(reservation, response="no", head="0" * 64)])
    ledger.receive([ann.message(reservation, sequence=2)])
    ledger.receive([ann.message(reservation)])
    extras = ledger.audit().extras
    assert sorted(extras) == [("ann", HALF.content_id, "no"), ("ann", HALF.content_id, "yes")]
    assert ledger.status(["ann"]).loss.upper[0] == pytest.approx(1.5)


class TestDryRun:
    """A dry run returns what would happen, and changes nothing."""

    def test_it_returns_the_receipts_of_the_real_call(
        self, ledger: Ledger, ann: ScriptedDevice
    ) -> None:
        reservation = ann.reservation(ledger)
        messages = [
            ann.message(reservation),
            ann.message(reservation, response="no"),
            ann.message(reservation, subject="eve"),
            "junk",
            ann.declined(reservation),
        ]
        before = ledger.tip, ledger.queries, states(ledger), ledger.audit()
        found = ledger.receive(messages, dry_run=True)
        assert (ledger.tip, ledger.queries, states(ledger), ledger.audit()) == before
        assert len({each.outcome for each in found}) > 1
        assert ledger.receive(messages) == found

    def test_it_needs_no_lock(self, ledger: Ledger, ann: ScriptedDevice, tmp_path: Path) -> None:
        message = ann.answer(ledger)
        with Ledger(tmp_path / "study.db") as other:
            (receipt,) = other.receive([message], dry_run=True)
            assert receipt.outcome == "recorded"
        assert len(ledger.transcript("ann")) == 0


class TestHeld:
    """Many messages that do not fit look like a faulty client, and an operator decides."""

    NUMBERS = xp.FiniteSet([0.0, 0.5, 1.0])

    def study(self, tmp_path: Path, count: int) -> tuple[Ledger, list[str], list[str]]:
        """Return the messages of a good client, and of one with the encoding fault 0 for 0.0."""
        guard = xp.BayesianFilter(epsilon=1)
        ledger = Ledger.create(tmp_path / "numbers.db", self.NUMBERS, filter=guard)
        ledger.register(range(count))
        ledger.reserve(HALF, key="round")
        answers = ledger.sync([ScriptedDevice(ledger, number).request() for number in range(count)])
        good, bad = list[str](), list[str]()
        for number, answer in enumerate(answers):
            reservation = json.loads(answer.to_json())["reservation"]
            phone = ScriptedDevice(ledger, number)
            for messages, written in ((good, "0x0.0p+0"), (bad, "0")):
                message = json.loads(phone.message(reservation, HALF, written))
                messages.append(json.dumps({**message, "response": 0}))
        return ledger, good, bad

    def test_a_fault_in_a_client_release_suspends_no_one(self, tmp_path: Path) -> None:
        ledger, good, bad = self.study(tmp_path, 120)
        with ledger:
            receipts = ledger.receive(bad)
            assert {(each.outcome, each.reason, each.held) for each in receipts} == {
                ("quarantined", "the head does not follow", True)
            }
            assert set(states(ledger).values()) == {"active"}
            found = ledger.audit()
            assert (len(found.quarantined), found.suspended) == (120, ())
            assert all(each.held for each in found.quarantined)
            # The responses were revealed, so they count until the fixed client sends them.
            assert len(found.extras) == 120
            assert ledger.status().loss.upper == pytest.approx(0.5)
            assert {each.outcome for each in ledger.receive(good)} == {"recorded"}
            assert ledger.audit().extras == ()
            assert ledger.status().loss.lower == pytest.approx(0.5)
            assert ledger.verify().good

    @pytest.mark.parametrize(
        ("subjects", "misfits", "held"), [(99, 99, False), (100, 2, True), (100, 1, False)]
    )
    def test_it_takes_a_hundred_subjects_and_more_than_one_percent(
        self, tmp_path: Path, subjects: int, misfits: int, held: bool
    ) -> None:
        ledger, good, bad = self.study(tmp_path, subjects)
        with ledger:
            receipts = ledger.receive([*bad[:misfits], *good[misfits:]])
            assert {each.held for each in receipts if each.outcome == "quarantined"} == {held}
            suspended = 0 if held else misfits
            assert list(states(ledger).values()).count("suspended") == suspended
            assert ledger.verify().good

    def test_an_operator_suspends_them_or_not(self, tmp_path: Path) -> None:
        ledger, good, bad = self.study(tmp_path, 100)
        with ledger:
            ledger.receive([*bad[:2], *good[2:]])
            assert ledger.resolve([0], suspend=True) == (0,)
            assert ledger.resolve([0], suspend=True) == ()
            assert states(ledger)[0] == "suspended"
            assert states(ledger)[1] == "active"
            with pytest.raises(xp.InvalidInput, match="5 has no message that is held"):
                ledger.resolve([1, 5], suspend=True)
            assert states(ledger)[1] == "active"
            assert ledger.verify().good

    def test_a_repeat_of_a_held_message_is_still_held(self, tmp_path: Path) -> None:
        ledger, good, bad = self.study(tmp_path, 100)
        with ledger:
            first = ledger.receive([*bad[:2], *good[2:]])[:2]
            assert ledger.receive(bad[:2]) == first


class TestResolve:
    """A suspension ends with a device whose chain extends the recorded one."""

    @pytest.fixture
    def suspended(self, ledger: Ledger, ann: ScriptedDevice) -> ScriptedDevice:
        ledger.receive([ann.message(ann.reservation(ledger), response="no", head="0" * 64)])
        return ann

    def test_a_resolved_subject_is_unconfirmed_until_its_device_syncs(
        self, ledger: Ledger, suspended: ScriptedDevice
    ) -> None:
        assert suspended.sync(ledger)["state"] == "suspended"
        assert ledger.resolve(["ann", 7]) == ("ann",)
        assert states(ledger) == {"ann": "unconfirmed", 7: "active"}
        assert reserved(ledger, QUARTER, ["ann"], "week 2") == ["unconfirmed"]
        answer = suspended.sync(ledger)
        assert (answer["state"], answer["reservation"]["key"]) == ("active", KEY)
        assert states(ledger) == {"ann": "active", 7: "active"}
        assert ledger.resolve(["ann"]) == ()

    def test_what_a_resolved_subject_revealed_still_counts(
        self, ledger: Ledger, suspended: ScriptedDevice
    ) -> None:
        ledger.resolve(["ann"])
        suspended.sync(ledger)
        suspended.send(ledger)
        # 1/2 recorded and 1/2 extra leave nothing of 1.
        assert reserved(ledger, OTHER, ["ann"], "week 2") == ["refused"]
        assert ledger.status(["ann"]).remaining[0] == pytest.approx(0)

    def test_an_old_copy_of_a_device_confirms_nothing(
        self, ledger: Ledger, suspended: ScriptedDevice
    ) -> None:
        """Its chain is a part of the recorded one, and does not extend it."""
        old = ScriptedDevice(ledger)
        ledger.resolve(["ann"])
        suspended.sync(ledger)
        suspended.send(ledger)
        ledger.receive([suspended.message(json.loads(suspended.sent[0]), response="no")])
        ledger.resolve(["ann"])
        answer = old.sync(ledger)
        assert (answer["state"], answer["confirmed"]) == ("unconfirmed", 1)
        assert states(ledger)["ann"] == "unconfirmed"
        assert suspended.sync(ledger)["state"] == "active"

    def test_a_device_with_another_chain_is_suspended_again(
        self, ledger: Ledger, suspended: ScriptedDevice
    ) -> None:
        ledger.resolve(["ann"])
        assert suspended.sync(ledger, head="0" * 64)["state"] == "suspended"
        assert states(ledger)["ann"] == "suspended"

    def test_a_subject_without_a_device_cannot_be_resolved(self, ledger: Ledger) -> None:
        ledger.register(["paper"], kind="imported")
        ledger.record(xp.randomized_response(epsilon=3), ["yes"], ["paper"])
        assert states(ledger)["paper"] == "suspended"
        with pytest.raises(xp.InvalidInput, match="has no device that could confirm its chain"):
            ledger.resolve(["paper"])


class TestForgotten:
    """A message whose exchange a restored database has forgotten."""

    def forgetful(
        self, tmp_path: Path, ledger: Ledger, phone: ScriptedDevice, rounds: int
    ) -> Ledger:
        """Return the ledger after some rounds of a phone were lost, and it was recovered."""
        place = tmp_path / "study.db"
        ledger.backup(tmp_path / "backup.db")
        for number in range(rounds):
            ledger.reserve(OTHER, [phone.subject], key=f"lost {number}")
            phone.send(ledger, OTHER)
        ledger.close()
        restore(tmp_path / "backup.db", place)
        Ledger.recover(place)
        return Ledger(place)

    def test_its_ticket_restores_it(self, tmp_path: Path) -> None:
        first = a_ledger(tmp_path)
        first.register([7])
        phone = ScriptedDevice(first, 7)
        with self.forgetful(tmp_path, first, phone, 2) as ledger:
            assert len(ledger.transcript(7)) == 0
            answer = phone.sync(ledger, phone.sent)
            assert [each["outcome"] for each in answer["receipts"]] == ["recorded"] * 2
            assert (answer["confirmed"], answer["state"]) == (2, "active")
            assert ledger.verify().good

    def test_a_gap_is_incomplete_and_suspends_no_one(self, tmp_path: Path) -> None:
        first = a_ledger(tmp_path)
        first.register([7])
        phone = ScriptedDevice(first, 7)
        with self.forgetful(tmp_path, first, phone, 2) as ledger:
            before = ledger.tip
            (receipt,) = ledger.receive([phone.sent[1]])
            assert (receipt.outcome, receipt.reason) == (
                "incomplete", "exchange 1 is missing; sync first",
            )  # fmt: skip
            (receipt,) = ledger.receive([phone.sent[0]])
            assert (receipt.outcome, receipt.reason) == (
                "incomplete", "its query is unknown; sync first",
            )  # fmt: skip
            assert ledger.tip == before
            assert states(ledger) == {7: "unconfirmed"}

    def test_a_document_that_is_not_the_query_does_not_count(self, tmp_path: Path) -> None:
        first = a_ledger(tmp_path)
        first.register([7])
        phone = ScriptedDevice(first, 7)
        with self.forgetful(tmp_path, first, phone, 1) as ledger:
            document = phone.documents[OTHER.content_id]
            wrongs: list[Any] = [{**document, "epsilon": "3"}, "junk", None, [], {}]
            for wrong in wrongs:
                answer = phone.sync(ledger, phone.sent, queries={OTHER.content_id: wrong})
                assert answer["receipts"][0]["outcome"] == "incomplete"
            assert ledger.queries == {}
            assert phone.sync(ledger, phone.sent)["confirmed"] == 1

    def test_a_message_changed_under_its_ticket_is_quarantined(self, tmp_path: Path) -> None:
        first = a_ledger(tmp_path)
        first.register([7])
        phone = ScriptedDevice(first, 7)
        with self.forgetful(tmp_path, first, phone, 1) as ledger:
            fields = json.loads(phone.sent[0])
            for name in ("sequence", "previous", "key", "query", "ticket", "head"):
                other = 2 if name == "sequence" else hashlib.sha256(b"x").hexdigest()
                (receipt,) = ledger.receive([json.dumps({**fields, name: other})])
                assert receipt.outcome in ("quarantined", "incomplete"), name
                assert len(ledger.transcript(7)) == 0
            assert phone.sync(ledger, phone.sent)["confirmed"] == 1
            assert states(ledger) == {7: "suspended"}
