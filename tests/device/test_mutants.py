"""Every mutant of the device is noticed, by the conformance vectors or by what a device must do."""

from __future__ import annotations

import json
import os
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from conformance.make import VECTORS
from expost.device import checks, device
from support.device_mutants import mutated
from support.killed_devices import killed
from support.single_device import (
    POLICY,
    QUERY,
    answer,
    answered,
    message_in,
    reservation,
    reserving,
)

BY_VECTORS = [
    # weights and comparisons
    ("            return low\n        digits", "            return low + 1\n        digits"),
    ("bits = 40 + (math.ceil(1 / epsilon) - 1)", "bits = 39 + (math.ceil(1 / epsilon) - 1)"),
    ("        return top <= bottom\n", "        return top < bottom\n"),
    ("        if high <= least or low > most:\n", "        if True:\n"),
    ("rule.epsilon - added", "rule.epsilon"),
    ("low * rule.ratio.numerator", "low"),
    ("if 7 * max(0, bits)", "if 6 * max(0, bits)"),
    ("- bottom.bit_length() + 1  # top", "- bottom.bit_length()  # top"),
    # families
    ("if classes[tops[high]] != classes[bottoms[low]]:", "if True:"),
    ("other_highs = [x for x, k in zip(highs, tops, strict=True) if classes[k] != alike]",
     "other_highs = highs"),
    ("pairs = classes[tops[high]], [(highs[high], lows[low])]", "pairs = classes[tops[high]], []"),
    ("% len(buckets) for x in firsts", "% 7 % len(buckets) for x in firsts"),
    ("two_weights(query[\"epsilon\"] / parts)", "two_weights(query[\"epsilon\"])"),
    ("start = count - index - 1", "start = count - index"),
    ("free = (row & -row) - 1", "free = 0"),
    ("mixed = (width + 2)", "mixed = (width + 1)"),
    ("span = int(double_below(", "span = int(float("),
    ("sorted(range(len(names)), key=names.__getitem__), []", "list(range(len(names))), []"),
    ("return total - light ** (distance + 1)", "return total - light ** distance"),
    ("worst = worst_over_columns([column(low), column(high)])",
     "worst = worst_over_columns([column(low)])"),
    ("if any(column)", "if column"),
    # what was answered
    ("zeros = min(((x & -x).bit_length() for x in after if x), default=1) - 1",
     "zeros = max(((x & -x).bit_length() for x in after if x), default=1) - 1"),
    ("for choose in (max, min)]", "for choose in (max, max)]"),
    ("used = range(min(times, len(steps)) + 1)", "used = range(min(times, len(steps)) + 2)"),
    ("attribute.max_step or 0) * (later - earlier)", "attribute.max_step or 0)"),
    ("n + (a != b)) for (a, b), n", "n + 1) for (a, b), n"),
    ("if not attribute.limited or len(steps) < 2:", "if True:"),
    ("total([self._charges.get(scope, NO_CHARGE), compiled.charge])", "compiled.charge"),
    # freezing and drawing
    ("used >= self.times", "used > self.times"),
    ("key=lambda k: (self.distance(k, wanted), self.values[k])", "key=lambda k: self.values[k]"),
    ("while uniform >= limit:", "while uniform > limit:"),
    ("// 8, limit\n", "// 8 + 1, limit\n"),
    ("index = index * size + frozen[names.index(name)]", "index = frozen[names.index(name)]"),
    # ids
    ("return (entry + 0.0).hex()", "return repr(entry)"),
    ("return \"'\" + entry if entry", "return entry if entry"),
    ("(response), \"sequence\": sequence", "(response), \"sequence\": 1"),
    ("lambda node: text(node).lower()", "text"),
    ("in sorted(entry, key=utf16)", "in sorted(entry)"),
    # conversations
    ("self.old_copy = self.old_copy or confirmed > recorded",
     "confirmed = min(confirmed, recorded); fields[\"head\"] = self.heads[confirmed]"),
    ("        if not latest:", "        if False:"),
    ("        self._nonce = \"\"\n        return read_object", "        return read_object"),
    ("            require(same_record, ", "            require(True, "),
    ("            if confirmed < recorded:\n", "            if False:\n"),
    ("        if sequence in self._offered:\n", "        if False:\n"),
    ("            if ticket == self._declined:", "            if False:"),
    ("        return self._request(self._sent[confirmed:last])",
     "        return self._request(self._sent[confirmed:last][::-1])"),
    ("        message[\"ticket\"] = ticket\n", "        message[\"ticket\"] = \"0\" * 64\n"),
    ("self._documents[x[\"query\"]]) for x in answered}",
     "self._documents[x[\"query\"]]) for x in answered[1:]}"),
    ("sequence == len(self.heads) and fields", "fields"),
    (" and fields[\"previous\"] == self.heads[-1]\n", "\n"),
]  # fmt: skip

STORES = '        self._store.add({**new_query, "sent": sent})\n'
BY_USE: list[list[tuple[str, str]]] = [
    [("            os.fsync(self.file)\n", "            pass\n")],
    [("            os.ftruncate(self.file, start + len(data))\n", "            pass\n")],
    [(STORES, "")],
    [("if self._digest(packed).encode() != ending:", "if False:")],
    [("fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass")],
    [("check_private(self.file, \"the store\")", "pass")],
    [("if decide(self.policy.filter, self.account, compiled) else None", "if True else None")],
    [("require(step <= now, ", "require(True, ")],
    [("self.broken, packed = True, ", "self.broken, packed = False, ")],
    [("        self._store.broken = False\n        return sent", "        return sent")],
    [("flags, 0o600)", "flags, 0o666)")],
    # It draws although the ledger is ahead, or goes on to draw after it was.
    [("            require(not self.old_copy, ",
      "            confirmed = min(confirmed, recorded)\n"
      "            fields[\"head\"] = self.heads[confirmed]\n            require(True, ")],
    [("self.old_copy = self.old_copy or confirmed > recorded",
      "self.old_copy = confirmed > recorded")],
    # It accepts a stale answer, or one answer twice.
    [("        if not latest:", "        if False:")],
    [("        self._nonce = \"\"\n        return read_object", "        return read_object")],
    # It stores after it sent, when the next conversation begins.
    [(STORES, "        self._late = {**new_query, \"sent\": sent}\n"),
     ("            self._declined = \"\"\n", "            self._declined = \"\"\n"
      "            late = self.__dict__.pop(\"_late\", None)\n"
      "            late and self._store.add(late)\n")],
    # It draws again for a number that it has answered.
    [("            if confirmed < recorded:\n",
      "            if confirmed < recorded and fields[\"reservation\"]:\n"
      "                del self.heads[confirmed + 1 :], self._sent[confirmed:]\n"
      "            elif confirmed < recorded:\n")],
    [("sequence == len(self.heads) and fields[\"previous\"] == self.heads[-1]",
      "fields[\"previous\"] in self.heads")],
    # It binds a key that it declined, or stores a decline.
    [("        compiled = self._accept(fields, message)\n",
      "        compiled = self._accept(fields, message)\n"
      "        bound = self.__dict__.setdefault(\"_bound\", {})\n"
      "        compiled = compiled if bound.get(key, ticket) == ticket else None\n"
      "        bound |= {} if compiled else {key: ticket}\n")],
    [("            self._declined = ticket\n", "            self._declined = ticket\n"
      "            self._store.add({\"declined\": ticket})\n")],
    # It repeats a decline for ever, or sends a message again that was not recorded.
    [("            if ticket == self._declined:", "            if False:")],
    [("        if sequence in self._offered:\n", "        if False:\n")],
    # It draws before it knows that the disk has room, or makes too little room.
    [("        self._store.make_room({**new_query, \"sent\": blank}, ", "        max(0, ")],
    [("\"sent\": blank}, 2 * compiled.likelihood.longest)", "\"sent\": blank})")],
    # A forked process or a second thread draws.
    [("        require(os.getpid() == self._process, ", "        require(True, ")],
    [("threading.Lock()", "suppress()")],
    # An error shows the frames of the draw.
    [("    error.__traceback__ = error.__context__ = None\n", "")],
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), BY_VECTORS)
def test_the_vectors_notice_every_mutant(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = mutated((old, new))
    monkeypatch.setattr(checks, "device", module)
    assert any(wrong(module, path) for path in sorted(VECTORS.glob("*.json")))


def wrong(module: Any, path: Path) -> bool:
    """Whether some case of a file is not answered as it should be."""
    content = path.read_text("utf-8")
    expected = [case["expected"] for case in json.loads(content)["cases"]]
    for case, right in zip(module.parse(content)["cases"], expected, strict=True):
        try:
            if checks.conform(case["check"], case["given"]) != right:
                return True
        except Exception:
            return True
    return False


@pytest.mark.parametrize("replaced", BY_USE)
def test_what_a_device_must_do_notices_every_mutant(
    tmp_path: Path, replaced: list[tuple[str, str]]
) -> None:
    module = mutated(*replaced)
    with pytest.raises((AssertionError, module.Refused, LookupError, ValueError)):
        play(module, tmp_path)


def test_the_device_itself_is_no_mutant(tmp_path: Path) -> None:
    play(device, tmp_path)


def play(module: Any, tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        folder = tmp_path / scenario.__name__
        folder.mkdir()
        scenario(module, folder)


def start(module: Any, folder: Path, policy: Any = POLICY, value: str = '"no"') -> tuple[Any, str]:
    store = str(folder / "store")
    os.umask(0o022)
    module.Device.create(store, json.dumps(policy), "ann", value)
    return module.Device(store), store


def refuses(module: Any, ann: Any, given: str) -> bool:
    """Whether a device refuses an answer."""
    try:
        ann.take(given)
    except module.Refused:
        return True
    return False


SMALL = {"kind": "randomized_response", "epsilon": "0.01"}
GREEDY = {"kind": "randomized_response", "epsilon": "3"}


def sends_again(ann: Any, confirmed: int) -> list[str]:
    """The messages that a device sends to a ledger that has recorded so many exchanges."""
    request = ann.take(answer(ann, ann.sync(), confirmed))
    return list(json.loads(request)["messages"])


def stays_the_same(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    sent = []
    for _ in range(8):
        (message,) = json.loads(ann.take(reserving(ann, SMALL)))["messages"]
        assert "response" in json.loads(message)
        assert json.dumps(message).encode() in Path(store).read_bytes()
        sent.append(message)
    ann.close()
    again = module.Device(store)
    assert sends_again(again, 0) == sent
    assert sends_again(again, 5) == sent[5:]
    again.close()


def declines_without_a_trace(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    content = Path(store).read_bytes()
    request = ann.take(reserving(ann, GREEDY, key="k"))
    assert "declined" in message_in(request)
    repeated = reservation(ann, GREEDY, key="k")
    assert ann.take(answer(ann, request, reservation=repeated)) == ""
    assert Path(store).read_bytes() == content
    assert "response" in answered(ann, SMALL, key="k", ticket="f" * 64)
    ann.close()


def refuses_what_does_not_follow(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    answered(ann, SMALL)
    for other in ({"sequence": 1}, {"sequence": 3}, {"previous": "0" * 64}):
        assert refuses(module, ann, reserving(ann, SMALL, **other))
    earlier = {"sequence": 1, "previous": ann.heads[0]}
    assert refuses(module, ann, reserving(ann, SMALL, **earlier))
    ann.close()


def draws_once_for_a_number(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    reserved = reservation(ann, SMALL)
    given = answer(ann, ann.sync(), reservation=reserved)
    stale = answer(ann, ann.sync(), reservation=reserved)
    assert refuses(module, ann, given)
    request = ann.take(stale)
    assert refuses(module, ann, stale)
    # A ledger that forgot the message gets it again, whatever it has reserved since then.
    for other in (reserved, {**reserved, "key": "other"}):
        again = ann.take(answer(ann, ann.sync(), 0, reservation=other))
        assert message_in(again) == message_in(request)
    unrecorded = answer(ann, again, 0)
    assert refuses(module, ann, unrecorded)
    # An answer is used up even if it was refused, or nothing followed it.
    assert refuses(module, ann, json.dumps({**json.loads(unrecorded), **at_number_1(ann)}))
    last = answer(ann, ann.sync())
    assert ann.take(last) == ""
    assert refuses(module, ann, last)
    assert Path(store).read_bytes().count(b'"sent"') == 1
    ann.close()


def at_number_1(ann: Any) -> dict[str, Any]:
    return {"confirmed": 1, "head": ann.heads[1]}


def draws_nothing_as_an_old_copy(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    reserved = reservation(ann, SMALL)
    ahead = answer(ann, ann.sync(), 1, head="1" * 64, reservation=reserved)
    assert refuses(module, ann, ahead)
    assert refuses(module, ann, reserving(ann, SMALL))
    assert len(ann.heads) == 1
    ann.close()


def refuses_in_a_forked_process(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    given = reserving(ann, SMALL)
    child = os.fork()
    if not child:
        os._exit(refuses(module, ann, given))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    ann.close()


def waits_for_another_thread(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    inside, go = threading.Event(), threading.Event()

    def slow(count: int) -> bytes:
        inside.set()
        go.wait(10)
        return os.urandom(count)

    ann._source = slow
    given, requests = reserving(ann, SMALL), list[str]()
    one = threading.Thread(target=lambda: requests.append(ann.take(given)))
    two = threading.Thread(target=lambda: requests.append(ann.sync()))
    one.start()
    inside.wait(10)
    two.start()
    two.join(0.1)
    waited = requests == []
    go.set()
    one.join(10)
    two.join(10)
    ann.close()
    assert waited


def waits_for_steps(module: Any, folder: Path) -> None:
    domain = {"attributes": {"smokes": {"changing": ["no", "yes"]}}}
    ann, _ = start(module, folder, {**POLICY, "domain": domain}, '{"smokes": "no"}')
    assert refuses(module, ann, reserving(ann, {**QUERY, "about": ["smokes"], "at": 2}))
    ann.close()


def has_a_private_sound_store(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    assert Path(store).stat().st_mode & 0o777 == 0o600
    assert cannot_open(module, store)
    answered(ann)
    ann.close()
    content = Path(store).read_bytes()
    assert b'"value":[1]' in content
    Path(store).write_bytes(content.replace(b'"value":[1]', b'"value":[2]'))
    assert cannot_open(module, store)
    Path(store).write_bytes(content + b"x" * 3000)
    again = module.Device(store)
    answered(again)
    sent = sends_again(again, 1)
    again.close()
    third = module.Device(store)
    assert sends_again(third, 1) == sent
    third.close()
    assert b"x" * 100 not in Path(store).read_bytes()
    Path(store).chmod(0o644)
    assert cannot_open(module, store)


def cannot_open(module: Any, store: str) -> bool:
    try:
        module.Device(store).close()
    except module.Refused:
        return True
    return False


def syncs_and_stops_after_a_failure(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    calls = []

    def failing(file: int) -> None:
        calls.append(file)
        raise OSError(5, "Input/output error")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        try:
            ann.take(reserving(ann))
        except module.Refused as refused:
            frames = traceback.extract_tb(refused.__traceback__)
    assert calls
    assert not {"_draw_and_store", "add", "_write"} & {frame.name for frame in frames}
    assert refuses(module, ann, reserving(ann))
    ann.close()


def makes_room_before_it_draws(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    calls: list[int] = []
    true = os.pwrite

    def noted(file: int, data: bytes, start: int) -> int:
        calls.append(len(data))
        return true(file, data, start)

    def source(count: int) -> bytes:
        assert calls, "it draws before it makes room"
        return b"\0" * count

    ann._source = source
    long = {"kind": "channel", "responses": ['"' * 900], "probabilities": [["1"]] * 3}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "pwrite", noted)
        answered(ann, long)
    room, line = calls
    assert line <= room
    ann.close()


def survives_being_killed(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    following = reservation(ann)
    ann.close()

    def message(own: Any) -> str:
        request = own.take(answer(own, own.sync(), 0, reservation=following))
        (sent,) = json.loads(request)["messages"]
        return str(sent)

    for at in range(1, 30):

        def run() -> None:
            own = module.Device(store, lambda count: os.urandom(count))
            os.write(1, message(own).encode())
            own.close()

        was_killed, released = killed(run, at, torn=True)
        own = module.Device(store)
        assert released in (b"", message(own).encode())
        own.close()
        if not was_killed:
            break


SCENARIOS = [
    stays_the_same,
    declines_without_a_trace,
    refuses_what_does_not_follow,
    draws_once_for_a_number,
    draws_nothing_as_an_old_copy,
    refuses_in_a_forked_process,
    waits_for_another_thread,
    waits_for_steps,
    has_a_private_sound_store,
    syncs_and_stops_after_a_failure,
    makes_room_before_it_draws,
    survives_being_killed,
]
