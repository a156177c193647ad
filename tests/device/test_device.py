"""One device: its answers, its refusals, its store, and what it never shows."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expost.device import device
from expost.device.device import Device, Refused
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

CHANGING = {
    **POLICY,
    "domain": {
        "attributes": {
            "region": ["n", "s"],
            "smokes": {"changing": ["no", "yes", "daily"], "times": 1},
        }
    },
    "filter": {"kind": "bayesian", "epsilon": "100"},
}


def refusal(ann: Device, given: str) -> str:
    """The line of a refusal that changes no stored byte."""
    before = Path(os.readlink(f"/proc/self/fd/{ann._store.file}")).read_bytes()
    with pytest.raises(Refused) as caught:
        ann.take(given)
    after = Path(os.readlink(f"/proc/self/fd/{ann._store.file}")).read_bytes()
    assert before == after
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_conversation_begins_with_where_the_device_is_and_ends_with_nothing(
    tmp_path: Path,
) -> None:
    ann = a_device(tmp_path)
    request = ann.sync()
    fields = json.loads(request)
    assert len(bytes.fromhex(fields.pop("nonce"))) == 16
    assert fields == {
        "ledger": ann.policy.id,
        "subject": "ann",
        "sequence": 0,
        "head": ann.heads[0],
        "messages": [],
        "queries": {},
    }
    following = ann.take(answer(ann, request, reservation=reservation(ann)))
    message = message_in(following)
    given = {**reservation(ann), "sequence": 1, "previous": ann.heads[0], "key": "week 1"}
    assert message["response"] in ("sehr geheim", "no", "yes")
    told = {"query": message["query"], "response": message["response"], "head": ann.heads[1]}
    assert message == {**given, **told, "ticket": f"{1:064x}"}
    assert json.loads(following)["queries"] == {message["query"]: QUERY}
    assert ann.take(answer(ann, following)) == ""


def test_every_request_has_a_nonce_of_its_own(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    requests = [ann.sync() for _ in range(50)]
    requests += [ann.take(reserving(ann, {**QUERY, "epsilon": "0.001"})) for _ in range(5)]
    assert len({json.loads(request)["nonce"] for request in requests}) == 55


def test_it_answers_until_the_budget_is_used_up_and_declines_then(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    said = []
    for _ in range(30):
        message = answered(ann)
        if "declined" in message:
            break
        said.append(message["response"])
        assert message["head"] == ann.heads[-1]
    assert message["declined"] is True
    fields = {"ledger", "subject", "sequence", "previous", "key", "query", "ticket", "declined"}
    assert set(message) == fields
    assert 2 <= len(said) == len(ann.heads) - 1


def test_messages_are_sent_again_to_the_byte_and_oldest_first(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    sent: list[str] = []
    documents: dict[str, Any] = {}
    pairs = {"kind": "subset_selection", "size": 2, "epsilon": "0.1"}
    for query in (QUERY, pairs, {**pairs, "size": 1.0}):
        request = json.loads(ann.take(reserving(ann, query)))
        sent += request["messages"]
        documents |= request["queries"]
    for confirmed in (2, 1, 0, 0):
        again = json.loads(ann.take(answer(ann, ann.sync(), confirmed)))
        assert again["messages"] == sent[confirmed:]
        about = {json.loads(message)["query"] for message in sent[confirmed:]}
        assert again["queries"] == {name: documents[name] for name in about}
    ann.close()
    opened = Device(str(tmp_path / "store"))
    again = json.loads(opened.take(answer(opened, opened.sync(), 0)))
    assert (again["messages"], again["queries"]) == (sent, documents)
    assert (again["sequence"], again["head"]) == (3, ann.heads[3])
    # Documents are sent as they came: a ledger finds the same content ids.
    for name, document in documents.items():
        assert device.content_id(device.parse(json.dumps(document))) == name


def test_a_message_that_the_ledger_does_not_record_is_not_sent_in_a_loop(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    for _ in range(2):
        answered(ann, {**QUERY, "epsilon": "0.01"})
    request = ann.take(answer(ann, ann.sync(), 0))
    receipts = [
        {"outcome": "recorded", "subject": "ann", "sequence": 1, "key": "week 1"},
        {"outcome": "quarantined", "sequence": 2, "key": "k", "reason": "no such\nticket \u202e"},
    ]
    said = refusal(ann, answer(ann, request, 1, receipts=receipts))
    assert said == "the ledger did not record number 2: no suchticket "
    request = ann.take(answer(ann, ann.sync(), 0))
    assert "number 1: no reason" in refusal(ann, answer(ann, request, 0, receipts=[7, {}]))
    # A new conversation sends it again.
    assert len(json.loads(ann.take(answer(ann, ann.sync(), 1)))["messages"]) == 1


GREEDY = {"kind": "randomized_response", "epsilon": "2"}


def test_a_declined_query_is_not_stored_and_does_not_bind_its_key(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    before = store.read_bytes()
    declined = answered(ann, GREEDY, key="k")
    assert declined["declined"] is True
    assert store.read_bytes() == before
    ann.close()
    ann = Device(str(store))
    assert answered(ann, GREEDY, key="k") == declined
    # The same key and number with another query is decided again.
    message = answered(ann, QUERY, key="k", ticket="a" * 64)
    assert (message["sequence"], message["key"], message["ticket"]) == (1, "k", "a" * 64)
    assert "response" in message


def test_a_declined_reservation_that_is_repeated_ends_the_conversation(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    request = ann.take(reserving(ann, GREEDY))
    assert ann.take(answer(ann, request, reservation=reservation(ann, GREEDY))) == ""
    # Its decline may have been lost: a new conversation sends it once more.
    request = ann.take(reserving(ann, GREEDY))
    assert message_in(request)["declined"] is True
    other = reservation(ann, GREEDY, ticket="b" * 64)
    assert message_in(ann.take(answer(ann, request, reservation=other)))["ticket"] == "b" * 64


UNKNOWN = [
    {"kind": "laplace", "weights": {"value": 1}, "range": [0, 1], "grid": "1", "epsilon": "1"},
    {"kind": "channel", "responses": [0], "probabilities": [["1"]] * 3, "delta": "0.1"},
    {"kind": "of another package", "numbers": [1, 2.5, "a"], "epsilon": "1/2"},
    {"kind": "randomized_response", "epsilon": "1", "about": ["region"]},
]


@pytest.mark.parametrize("query", UNKNOWN, ids=lambda query: query["kind"])
def test_an_unknown_query_is_declined(tmp_path: Path, query: Any) -> None:
    ann = a_device(tmp_path)
    assert answered(ann, query)["declined"] is True
    assert "response" in answered(ann, key="another")


def test_the_id_of_a_query_that_it_does_not_know_is_right() -> None:
    import expost as xp

    query = xp.laplace({"age": 1}, range=(0, 120), grid=1, epsilon="1")
    assert device.content_id(device.parse(query.to_json())) == query.content_id
    both = xp.gaussian({"epsilon": 1.5}, range=(0, 2), sigma="2.50", grid="0.5", delta="1e-6")
    assert device.content_id(device.parse(both.to_json())) == both.content_id


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"ledger": "0" * 64}, "not for this device"),
    ({"subject": "bob"}, "not for this device"),
    ({"subject": 7}, "not for this device"),
    ({"sequence": 1}, "does not follow the 1 exchanges"),
    ({"sequence": 3}, "does not follow the 1 exchanges"),
    ({"sequence": 0}, "at least 1"),
    ({"sequence": 1.5}, "integer"),
    ({"previous": "0" * 64}, "does not follow"),
    ({"previous": None}, "does not follow"),
    ({"key": ""}, "200 characters"),
    ({"key": "k" * 201}, "200 characters"),
    ({"key": 1}, "string"),
    ({"ticket": "0" * 63}, "64 hexadecimal digits"),
    ({"ticket": "G" * 64}, "64 hexadecimal digits"),
    ({"ticket": None}, "string"),
    ({"query": "some id"}, "object"),
    ({"more": 1}, "not known here"),
]


@pytest.mark.parametrize(("other", "words"), WRONG)
def test_a_reservation_that_does_not_follow_is_refused_and_nothing_is_drawn(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    ann = a_device(tmp_path)
    answered(ann)
    ann._source = never
    assert words in refusal(ann, reserving(ann, **other))


def never(count: int) -> bytes:
    raise AssertionError("it draws")


WRONG_ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"ledger": "0" * 64}, "not for this device"),
    ({"subject": "bob"}, "not for this device"),
    ({"nonce": "0" * 32}, "stale answer"),
    ({"nonce": ""}, "stale answer"),
    ({"nonce": None}, "string"),
    ({"confirmed": -1}, "at least 0"),
    ({"confirmed": None}, "number"),
    ({"head": "0" * 64}, "another record of this device"),
    ({"head": None}, "another record of this device"),
    ({"state": "sleeping"}, "unknown state"),
    ({"state": {}}, "unknown state"),
    ({"reservation": []}, "object"),
    ({"reservation": False}, "object"),
    ({"more": 1}, "not known here"),
]


@pytest.mark.parametrize(("other", "words"), WRONG_ANSWERS)
def test_an_answer_of_another_shape_is_refused_and_nothing_is_drawn(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    ann = a_device(tmp_path)
    ann._source = never
    fields = json.loads(reserving(ann))
    assert words in refusal(ann, json.dumps({**fields, **other}))
    fields.pop("receipts")
    assert refusal(ann, json.dumps(fields))


@pytest.mark.parametrize("given", ["", "{", "[]", "1", "null", '{"key": 1, "key": 2}', "\0"])
def test_a_text_that_is_no_answer_is_refused_and_the_answer_still_counts(
    tmp_path: Path, given: str
) -> None:
    ann = a_device(tmp_path)
    right = reserving(ann)
    assert refusal(ann, given)
    assert "response" in message_in(ann.take(right))


def test_a_reservation_comes_only_in_an_answer_to_the_latest_request(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    first = ann.sync()
    stale = answer(ann, first, reservation=reservation(ann))
    assert not hasattr(ann, "answer")
    assert "is not for this device" in refusal(ann, json.dumps({"reservation": reservation(ann)}))
    latest = ann.sync()
    assert "stale answer" in refusal(ann, stale)
    right = answer(ann, latest, reservation=reservation(ann))
    request = ann.take(right)
    # An answer that was taken is used up, and so is one that was refused.
    assert "stale answer" in refusal(ann, right)
    assert ann.take(answer(ann, request)) == ""
    assert "stale answer" in refusal(ann, answer(ann, request))
    last = ann.sync()
    assert "does not follow" in refusal(
        ann, answer(ann, last, reservation=reservation(ann, sequence=9))
    )
    assert "stale answer" in refusal(ann, answer(ann, last, reservation=reservation(ann)))
    ann.close()
    opened = Device(str(tmp_path / "store"))
    assert "stale answer" in refusal(opened, answer(opened, last, reservation=reservation(opened)))


def test_an_old_copy_of_its_store_is_noticed_and_draws_nothing(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    query = {**QUERY, "epsilon": "0.01"}
    answered(ann, query)
    backup = store.read_bytes()
    answered(ann, query)
    heads = ann.heads
    ann.close()
    store.write_bytes(backup)
    restored = Device(str(store), never)
    assert not restored.old_copy
    behind = answer(restored, restored.sync(), 2, head=heads[2], reservation=None)
    assert "old copy; it draws nothing" in refusal(restored, behind)
    assert vars(restored)["old_copy"] is True
    # Even if a ledger takes that back, it draws nothing while it is open.
    assert "old copy" in refusal(restored, reserving(restored))
    assert "old copy" in refusal(restored, answer(restored, restored.sync()))
    restored.close()


def test_a_restored_device_that_drew_again_has_another_record_than_the_ledger(
    tmp_path: Path,
) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    query = {**QUERY, "epsilon": "0.01"}
    backup = store.read_bytes()
    answered(ann, query)
    head = ann.heads[1]
    ann.close()
    while True:  # by chance it draws the same once more
        store.write_bytes(backup)
        restored = Device(str(store))
        answered(restored, query)
        if restored.heads[1] != head:
            break
        restored.close()
    restored._source = never
    forked = answer(restored, restored.sync(), 1, head=head, reservation=reservation(restored))
    assert "another record of this device" in refusal(restored, forked)
    earlier = answer(restored, restored.sync(), 0, head="1" * 64)
    assert "another record of this device" in refusal(restored, earlier)


def test_requests_with_several_messages_stay_below_a_megabyte(tmp_path: Path) -> None:
    many = {**POLICY, "domain": {"values": list(range(6000))}}
    many["filter"] = {"kind": "bayesian", "epsilon": "100"}
    ann = a_device(tmp_path, many, "7")
    certain = {"kind": "channel", "probabilities": [["1"]], "of": [0] * 6000}
    bits = {"kind": "unary_encoding", "variant": "optimized"}
    queries = [
        {**certain, "responses": ["ä" * 150_000]},
        {**bits, "epsilon": "0.01"},
        {**bits, "epsilon": "0.02"},
        {**certain, "responses": ["b" * 500_000]},
    ]
    sent = []
    for query in queries:
        for _ in range(2):
            sent += json.loads(ann.take(reserving(ann, query)))["messages"]
            assert "response" in json.loads(sent[-1])
    sizes, got = [], list[str]()
    request = ann.sync()
    while len(got) < len(sent):
        request = ann.take(answer(ann, request, len(got)))
        fields = json.loads(request)
        got += fields["messages"]
        sizes.append((len(request.encode()), len(fields["messages"])))
    assert got == sent
    assert all(size <= device.LARGEST_MESSAGE or count == 1 for size, count in sizes)
    assert {count for _, count in sizes} > {1}
    assert ann.take(answer(ann, request)) == ""


def long_query(length: int) -> Any:
    labels = {"responses": ["b", "a" * length], "probabilities": [["1", "0"]] * 3}
    return {"kind": "channel", **labels}


def test_a_reservation_of_a_megabyte_is_answered_and_a_longer_one_declined(tmp_path: Path) -> None:
    assert device.LARGEST_MESSAGE == 1_048_576
    ann = a_device(tmp_path)
    bare = len(json.dumps(reservation(ann, long_query(0)), separators=(",", ":")))
    room = device.LARGEST_MESSAGE - bare
    assert answered(ann, long_query(room + 1))["declined"] is True
    assert answered(ann, long_query(room))["response"] == "b"


def test_a_response_that_could_be_too_long_for_a_message_is_declined(tmp_path: Path) -> None:
    # In the message every one of these characters takes six.
    ann = a_device(tmp_path)
    long = {"kind": "channel", "probabilities": [["1"]] * 3}
    assert "declined" in answered(ann, {**long, "responses": ["ä" * 175_000]})
    request = ann.take(reserving(ann, {**long, "responses": ["ä" * 174_000]}))
    (message,) = json.loads(request)["messages"]
    assert 1_000_000 < len(message) <= device.LARGEST_MESSAGE
    ann.close()
    opened = Device(str(tmp_path / "store"))
    again = json.loads(opened.take(answer(opened, opened.sync(), 0)))
    assert again["messages"] == [message]


def test_an_answer_above_two_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    padded = reserving(ann).ljust(device.LARGEST_ANSWER)
    assert "at most 2,097,152 bytes" in refusal(ann, padded + " ")
    assert "response" in message_in(ann.take(padded))


def test_two_threads_draw_once_for_a_number(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    inside, go, draws = threading.Event(), threading.Event(), list[int]()
    requests: dict[str, str] = {}

    def slow(count: int) -> bytes:
        draws.append(len(ann.heads))
        inside.set()
        go.wait(10)
        return os.urandom(count)

    ann._source = slow
    first, reserved = reserving(ann), reservation(ann)

    def begin_another_conversation() -> None:
        request = ann.sync()
        known = {"confirmed": 0, "head": reserved["previous"], "reservation": reserved}
        requests["second"] = ann.take(answer(ann, request, **known))

    one = threading.Thread(target=lambda: requests.update(first=ann.take(first)))
    two = threading.Thread(target=begin_another_conversation)
    one.start()
    assert inside.wait(10)
    two.start()
    two.join(0.3)
    assert requests == {}  # the second thread waits for the first one
    go.set()
    one.join(10)
    two.join(10)
    assert set(draws) == {1}
    assert message_in(requests["first"]) == message_in(requests["second"])
    (message,) = [json.loads(line)["sent"] for line in stored_lines(tmp_path) if "sent" in line]
    assert json.loads(message)["sequence"] == 1 == len(ann.heads) - 1


def stored_lines(tmp_path: Path) -> list[str]:
    lines = (tmp_path / "store").read_text("utf-8").splitlines()
    return [line.rpartition(" ")[0] for line in lines]


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    ann = a_device(tmp_path, CHANGING, '{"region": "n", "smokes": "no"}')
    given = reserving(ann, {**QUERY, "about": ["region"]})
    before = (tmp_path / "store").read_bytes()
    calls: list[Callable[[], Any]] = [lambda: ann.take(given), ann.next, ann.sync]
    for call in calls:
        for held in (False, True):  # even if a thread of the parent holds the lock
            child = os.fork()
            if not child:
                if held:
                    ann._lock.acquire()
                try:
                    call()
                except Refused as refused:
                    os._exit("opened in another process" in str(refused))
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 1
    assert (tmp_path / "store").read_bytes() == before
    assert "response" in message_in(ann.take(given))


def test_a_store_of_version_1_is_refused_in_one_line(tmp_path: Path) -> None:
    a_device(tmp_path).close()
    store = device.Store(str(tmp_path / "older"), new=True)
    header = {"device": 1, "policy": POLICY, "subject": "ann", "value": [0]}
    store.add(header)
    store.close()
    with pytest.raises(Refused) as caught:
        Device(str(tmp_path / "older"))
    assert str(caught.value) == "the store has version 1; this program reads version 2 only"


def test_the_store_is_private_and_whatever_is_not_is_refused(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    with pytest.raises(Refused, match="another process has it open"):
        Device(str(store))
    ann.close()
    with pytest.raises(Refused, match="File exists"):
        Device.create(str(store), json.dumps(POLICY), "ann", '"no"')
    store.chmod(0o640)
    with pytest.raises(Refused, match="mode 600"):
        Device(str(store))
    store.chmod(0o600)
    os.link(store, tmp_path / "other")
    with pytest.raises(Refused, match="hard links"):
        Device(str(store))
    (tmp_path / "other").unlink()
    os.symlink(store, tmp_path / "link")
    with pytest.raises(Refused, match="cannot be opened"):
        Device(str(tmp_path / "link"))
    with pytest.raises(Refused, match="cannot be opened"):
        Device(str(tmp_path / "nowhere"))
    Device(str(store)).close()


def test_a_store_that_was_changed_anywhere_is_refused(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    for _ in range(2):
        answered(ann)
    ann.close()
    content = store.read_bytes()
    for place in range(0, len(content) - 1, 7):
        changed = bytearray(content)
        changed[place] ^= 1
        if changed[place] == ord("\n") or content[place] == ord("\n"):
            continue
        store.write_bytes(changed)
        with pytest.raises(Refused, match=r"damaged|not finished"):
            Device(str(store))
    spaces = [place for place, each in enumerate(content) if each == ord(" ")]
    for place, bit in [*((place, 0x20) for place in spaces), (len(content) - 1, 1)]:
        changed = bytearray(content)
        changed[place] ^= bit
        store.write_bytes(changed)
        with pytest.raises(Refused, match="damaged"):
            Device(str(store))
    lines = content.splitlines(keepends=True)
    store.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(Refused, match="damaged"):
        Device(str(store))


def test_changes_beyond_the_limit_are_frozen_and_nothing_shows_it(tmp_path: Path) -> None:
    ann = a_device(tmp_path, CHANGING, '{"region": "n", "smokes": "no"}')
    query = {"kind": "channel", "responses": ["no", "yes", "daily"], "about": ["smokes"]}
    truth = {**query, "probabilities": [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]}
    ann.next('{"smokes": "yes"}')
    ann.next('{"smokes": "daily"}')
    ann.next("{}")
    ann.close()
    ann = Device(str(tmp_path / "store"))
    read = device.Query.read(device.parse(json.dumps({**truth, "at": 1})))
    said = []
    for step in range(1, 5):
        read.at = step
        said.append(ann._history.draw(ann.account.compiled(read), os.urandom))
    assert said == ["no", "yes", "yes", "yes"]
    later = {**QUERY, "about": ["smokes"], "at": 5}
    assert "step 5 has not come" in refusal(ann, reserving(ann, later))
    with pytest.raises(Refused, match="not shown"):
        ann.next('{"region": "s"}')
    ann.next('{"region": "n"}')
    assert "response" in answered(ann, later)


def test_a_set_has_no_next_step(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no next step"):
        a_device(tmp_path).next("{}")


BAD_VALUES = ['"geheim hoch zwei"', "17.5", '["sehr geheim"]', '{"value": "geheim"}', "{geheim", ""]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_value_outside_the_domain_is_refused_and_not_shown(tmp_path: Path, value: str) -> None:
    with pytest.raises(Refused) as caught:
        a_device(tmp_path, value=value)
    error: BaseException | None = caught.value
    assert not (tmp_path / "store").exists()
    while error is not None:
        frames = traceback.TracebackException.from_exception(error, capture_locals=True)
        ours = [frame for frame in frames.stack if frame.filename == device.__file__]
        shown = "".join([str(error), *(repr(frame.locals) for frame in ours)])
        assert "geheim" not in shown.replace("sehr geheim", "")
        error = error.__cause__ or error.__context__


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    assert error.__cause__ is error.__context__ is None
    frames = traceback.TracebackException.from_exception(error, capture_locals=True)
    return [frame for frame in frames.stack if frame.filename == device.__file__]


@pytest.mark.parametrize("step", ["pwrite", "fsync"])
def test_an_error_while_it_stores_a_value_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    ann = a_device(tmp_path, CHANGING, '{"region": "n", "smokes": "no"}')

    def failing(*given: Any) -> Any:
        raise OSError(5, "Input/output error")

    def create() -> None:
        Device.create(str(tmp_path / "other"), json.dumps(POLICY), "ann", '"yes"')

    monkeypatch.setattr(os, step, failing)
    for call in (create, lambda: ann.next('{"smokes": "daily"}')):
        with pytest.raises(Refused, match="Input/output error") as caught:
            call()
        (frame,) = frames_of(caught.value)
        assert not frame.locals.keys() & {"value", "changes", "places"}  # type: ignore[union-attr]
    with pytest.raises(Refused, match="not shown") as caught:
        ann.next('{"smokes": "stündlich"}')
    assert "stündlich" not in str([frame.locals for frame in frames_of(caught.value)])


def test_an_error_while_it_draws_or_stores_shows_neither_value_nor_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)

    def failing(*given: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    given = reserving(ann)
    with pytest.raises(Refused, match="nothing was sent") as caught:
        ann.take(given)
    assert [frame.name for frame in frames_of(caught.value)] == ["take", "_answer_reservation"]
    assert '"response"' not in str([frame.locals for frame in frames_of(caught.value)])
    monkeypatch.undo()
    with pytest.raises(Refused, match="start again"):
        ann.take(reserving(ann))
    assert "geheim" not in repr(ann) + repr(ann._history)
    with pytest.raises(TypeError):
        ann._history.__reduce__()


def test_the_command_line_creates_syncs_and_prints_its_status(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    value = tmp_path / "value.json"
    value.write_text('"sehr geheim"')
    program = [sys.executable, "-I", "-S", device.__file__]

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*program, *arguments],
            cwd=tmp_path,
            input=given,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    create = ["create", "ann", "--policy", "policy.json", "--subject", "ann", "--value"]
    value.chmod(0o644)
    done = run(*create, "value.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("give it mode 600\n")
    value.chmod(0o600)
    done = run(*create, "value.json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert status["answered"] == 0

    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    talk = subprocess.Popen([*program, "sync", "ann"], cwd=tmp_path, encoding="utf-8", **pipes)
    assert talk.stdin is not None
    assert talk.stdout is not None
    fields = {"ledger": status["ledger"], "subject": "ann", "state": "active", "receipts": []}
    reserved = {"ledger": status["ledger"], "subject": "ann", "sequence": 1, "key": "k"}
    reserved |= {"previous": status["head"], "query": QUERY, "ticket": "0" * 64}
    for confirmed, open_one in ((0, reserved), (1, None)):
        request = json.loads(talk.stdout.readline())
        told = {"nonce": request["nonce"], "head": request["head"], "confirmed": confirmed}
        talk.stdin.write(json.dumps({**fields, **told, "reservation": open_one}) + "\n")
        talk.stdin.flush()
    assert "response" in message_in(json.dumps(request))
    assert talk.communicate() == ("", "")
    assert talk.returncode == 0
    assert json.loads(run("status", "ann").stdout)["answered"] == 1

    done = run("sync", "ann")
    assert (done.returncode, json.loads(done.stdout)["sequence"]) == (1, 1)
    assert done.stderr == "device: the input ended before the answer to a request\n"
    done = run("sync", "ann", given=json.dumps({**fields, **told, "reservation": None}))
    assert (done.returncode, done.stdout.count("\n")) == (1, 1)
    assert done.stderr.startswith("device: stale answer")
    assert done.stderr.count("\n") == 1
    assert run("nonsense").returncode == 2
    assert run("sync").returncode == 1
    assert "sehr geheim" not in done.stderr
