"""Device mode: the ledger reserves, the device draws and sends, and whatever arrives is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.ledger import Ledger, Reservation
from support.ledgers import STORES, opened

QUERY, OTHER = xp.randomized_response(epsilon="1/2"), xp.randomized_response(epsilon="1/4")


@pytest.fixture(params=STORES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    with opened(request.param, tmp_path) as made:
        made.register(["ann", 7])
        yield made
        assert made.verify().good


def reserved(
    ledger: Ledger, key: str = "k", subject: Any = "ann", query: Any = QUERY
) -> Reservation:
    (found,) = ledger.reserve(query, [subject], key=key)
    assert found is not None
    return found


def message(given: Reservation, response: str = "yes", **changed: Any) -> bytes:
    """What an honest device sends; its chain is that of its own transcript."""
    import hashlib

    said = (
        f'{{"query":"{given.query.content_id}","response":"{response}",'
        f'"sequence":{given.sequence}}}'
    ).encode()
    tree = {
        "ledger": given.ledger,
        "subject": given.subject,
        "sequence": given.sequence,
        "key": given.key,
        "query": given.query.content_id,
        "response": response,
        "head": hashlib.sha256(said + bytes.fromhex(given.previous)).hexdigest(),
        **changed,
    }
    return json.dumps({k: v for k, v in tree.items() if v is not None}).encode()


def declined(given: Reservation) -> bytes:
    return message(given, response=None, head=None, declined=True)  # type: ignore[arg-type]


def test_a_message_that_fits_is_recorded(ledger: Ledger) -> None:
    given = reserved(ledger)
    assert json.loads(given.to_json()) == {
        "ledger": ledger.policy.content_id,
        "subject": "ann",
        "sequence": 1,
        "previous": given.previous,
        "key": "k",
        "query": {"kind": "randomized_response", "epsilon": "0.5"},
    }
    (receipt,) = ledger.receive([message(given)])
    assert (receipt.outcome, receipt.sequence) == ("recorded", 1)
    assert json.loads(receipt.to_json())["head"] == json.loads(message(given))["head"]
    assert [each.response for each in ledger.transcript("ann").exchanges] == ["yes"]
    following = reserved(ledger, "l")
    assert (following.sequence, following.previous) == (2, receipt.head)


def test_subjects_may_be_integers(ledger: Ledger) -> None:
    (receipt,) = ledger.receive([message(reserved(ledger, subject=7))])
    assert (receipt.outcome, receipt.subject) == ("recorded", 7)


def test_a_retry_gets_the_same_receipt_also_long_after(ledger: Ledger) -> None:
    sent = message(reserved(ledger))
    first = ledger.receive([sent])
    assert ledger.receive([sent, sent]) == first * 2
    ledger.receive([message(reserved(ledger, "l"), "no")])
    assert ledger.receive([sent]) == first
    assert len(ledger.transcript("ann")) == 2
    assert not ledger.status().closed.any()


def test_one_reservation_is_open_at_a_time(ledger: Ledger) -> None:
    given = reserved(ledger)
    assert reserved(ledger) == given
    before = ledger.tip
    for call in (
        lambda: ledger.reserve(QUERY, ["ann"], key="l"),
        lambda: ledger.ask(QUERY, ["no"], ["ann"]),
        lambda: ledger.ask(QUERY, ["no"], ["ann"], key="k"),
        lambda: ledger.record(QUERY, ["no"], ["ann"]),
    ):
        with pytest.raises(xp.InvalidInput, match="open reservation, with the key 'k'"):
            call()
    assert ledger.tip == before
    assert ledger.status().reserved.tolist() == [True, False]
    # A dry run says the same, whatever budget is left.
    found = ledger.decide(OTHER)
    assert found.accepted.tolist() == [False, True]
    assert not found.undecided.any()
    ledger.receive([declined(given)])
    assert ledger.decide(OTHER).accepted.all()


def test_a_device_that_was_offline_answers_when_it_is_back(ledger: Ledger) -> None:
    given = reserved(ledger)
    for turn in range(3):
        ledger.ask(OTHER, ["no"], [7], key=f"other {turn}")
    assert ledger.receive([message(given)])[0].outcome == "recorded"


def test_a_reservation_that_is_never_answered_stays_open(ledger: Ledger) -> None:
    reserved(ledger)
    found = ledger.audit()
    assert found.reserved == ("ann",)
    assert found.audit is None
    assert found.good


def test_a_device_may_decline_and_its_key_stays_refused(ledger: Ledger) -> None:
    given = reserved(ledger)
    (receipt,) = ledger.receive([declined(given)])
    assert receipt.outcome == "declined"
    assert ledger.receive([declined(given)]) == (receipt,)
    assert ledger.reserve(QUERY, ["ann"], key="k") == (None,)
    assert reserved(ledger, "l").sequence == 1
    assert not ledger.status().closed.any()


@pytest.mark.parametrize("changed", [{"sequence": 2}, {"sequence": 7}])
def test_what_is_declined_again_with_another_number_is_kept(
    ledger: Ledger, changed: dict[str, Any]
) -> None:
    given = reserved(ledger)
    sent = declined(given)
    (receipt,) = ledger.receive([sent])
    other = json.dumps({**json.loads(sent), **changed})
    (second,) = ledger.receive([other])
    assert (second.outcome, second.reason) == ("kept", "no reservation is open")
    assert ledger.status().closed.tolist() == [True, False]
    assert ledger.receive([sent, other]) == (receipt, second)


def test_nothing_is_taken_for_recorded_under_a_key_that_was_declined(ledger: Ledger) -> None:
    ledger.record(QUERY, ["yes"], [7], key="other")
    ledger.receive([declined(reserved(ledger))])
    with pytest.raises(xp.InvalidInput, match="was refused or declined; record it under a new key"):
        ledger.record(QUERY, ["yes"], ["ann"], key="k")
    assert ledger.record(QUERY, ["yes"], ["ann"], key="new").all()
    assert ledger.status().exchanges.tolist() == [1, 1]


def test_whoever_is_refused_gets_no_reservation(ledger: Ledger) -> None:
    for turn in range(2):
        ledger.receive([message(reserved(ledger, f"k{turn}"))])
    assert ledger.reserve(QUERY, ["ann"], key="k2") == (None,)
    assert ledger.reserve(QUERY, ["ann"], key="k2") == (None,)


def test_a_device_that_was_restored_and_drew_again_is_closed(ledger: Ledger) -> None:
    given = reserved(ledger)
    first, second = message(given, "yes"), message(given, "no")
    (one,) = ledger.receive([first])
    (other,) = ledger.receive([second])
    assert (one.outcome, other.outcome) == ("recorded", "kept")
    assert other.reason == "no reservation is open"
    assert ledger.receive([second, first]) == (other, one)
    assert ledger.status().closed.tolist() == [True, False]
    assert ledger.reserve(QUERY, ["ann"], key="l") == (None,)
    found = ledger.audit()
    assert [(each.subject, each.message) for each in found.kept] == [("ann", second)]
    assert not found.good


def test_a_device_that_is_behind_can_catch_up_from_its_transcript(ledger: Ledger) -> None:
    ledger.receive([message(reserved(ledger))])
    given = reserved(ledger, "l")
    transcript = ledger.transcript("ann")
    head = xp.ledger.digests.first_head(ledger.policy.content_id, "ann")
    for number, exchange in enumerate(transcript.exchanges, 1):
        shared = xp.ledger.digests.link(exchange.query.content_id, exchange.response)
        head = xp.ledger.digests.next_head(head, shared, number)
    assert head.hex() == given.previous


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sequence": 2}, "exchange 1 is reserved, not 2"),
        ({"sequence": 0}, "exchange 1 is reserved, not 0"),
        ({"key": "another"}, "another reservation is open"),
        ({"query": OTHER.content_id}, "another query is reserved"),
        ({"query": "0" * 64}, "another query is reserved"),
        ({"response": "maybe"}, "not a response of the query"),
        ({"head": "0" * 64}, "the head does not follow"),
    ],
)
def test_what_does_not_fit_is_kept_and_closes_its_subject(
    ledger: Ledger, changed: dict[str, Any], reason: str
) -> None:
    given = reserved(ledger)
    sent = message(given, **changed)
    (receipt,) = ledger.receive([sent])
    assert (receipt.outcome, receipt.reason) == ("kept", reason)
    assert ledger.receive([sent]) == (receipt,)
    assert ledger.status().closed.tolist() == [True, False]
    assert len(ledger.transcript("ann")) == 0
    # What was reserved before and fits was seen, and counts.
    assert ledger.receive([message(given)])[0].outcome == "recorded"
    assert ledger.status().closed.tolist() == [True, False]
    assert len(ledger.audit().kept) == 1


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\xff\xfe", "not a message: is not UTF-8 JSON"),
        (b"[]", "not a message: must be an object"),
        (b"{}", "not a message: 'ledger' is missing"),
        (b'{"ledger": "x", "ledger": "x"}', "not a message: ledger: is given twice"),
        (b" " * 70_000, "not a message: has more than 65,536 bytes"),
        (b"[" * 60_000, "not a message"),
    ],
)
def test_what_is_no_message_is_kept_and_closes_nobody(
    ledger: Ledger, sent: bytes, reason: str
) -> None:
    (receipt,) = ledger.receive([sent])
    assert receipt.outcome == "kept"
    assert receipt.reason.startswith(reason)
    assert ledger.receive([sent]) == (receipt,)
    assert not ledger.status().closed.any()
    assert [each.subject for each in ledger.audit().kept] == [None]


def test_a_text_that_has_no_bytes_is_kept_as_well(ledger: Ledger) -> None:
    (receipt,) = ledger.receive(["\ud800"])
    assert (receipt.outcome, receipt.reason) == ("kept", "not a message: is not UTF-8 JSON")


def test_messages_of_others_are_kept_and_close_nobody(ledger: Ledger) -> None:
    given = reserved(ledger)
    said = ledger.receive(
        [
            message(given, ledger="0" * 64),
            message(given, subject="eve"),
            message(given, subject="7"),
            message(given, subject=True),
            message(given, sequence=1.5),
            message(given, declined=True),
            message(given, head=None),
        ]
    )
    assert {receipt.outcome for receipt in said} == {"kept"}
    assert said[0].reason == "of another ledger"
    assert said[1].reason == said[2].reason == "about nobody who is known"
    assert not ledger.status().closed.any()


def test_many_messages_are_taken_in_together(ledger: Ledger) -> None:
    ledger.register(range(100, 140))
    given = ledger.reserve(QUERY, range(100, 140), key="round")
    sent = [message(each) for each in given if each is not None]
    before = ledger.tip.commits
    said = ledger.receive([*sent, *sent])
    assert {receipt.outcome for receipt in said} == {"recorded"}
    assert ledger.tip.commits == before + 1
    assert said[:40] == said[40:]
