"""A small study in a world where everything fails, as a seed says; and what must hold in it.

Devices and a ledger talk over a network that loses, delays, repeats and reorders. Processes are
killed at every step, disks fail, backups are restored, and a second writer takes over. What devices
drew and what the ledger returned is recorded here, apart from the ledger, and compared with it:

- Everything that a device released and the ledger confirmed is recorded, once and in order.
- Every prefix of every transcript that a device released is within the budget, by a formula. One
  exception is documented: a device restored from a backup can draw again what the ledger has not
  received. Then the ledger records one of both answers and quarantines the other.
- Nothing is recorded that no device drew under a ticket of the ledger.
- A key has one outcome, a receipt never changes, and a refusal is due by the formula.
- A restored or forked database is noticed when it is opened. If the checkpoint was put back with
  it, the first ticket that the ledger does not remember proves it (mark "rollback").
- After ``recover`` no subject is asked anything before its device has synced; a suspended subject
  stays suspended, a lost registration is not a new person, lost imports are counted, an ended study
  has ended. After one sync of every device the chains are those of the devices.
- A writer that was replaced cannot write, and a reader sees nothing that can be lost.
- ``verify`` and ``audit`` are clean unless something was damaged. Damage is noticed, or nothing
  that can be read has changed.
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from expost.errors import InvalidInput
from expost.ledger import (
    Ledger,
    LedgerBehind,
    LedgerLocked,
    LedgerStopped,
    Outcome,
    _device_messages,
    _engine,
)
from expost.ledger._digests import chain_prefix, first_head, next_head
from expost.ledger._requests import subject_state
from expost.ledger.tables import (
    ExchangeRow,
    MarkRow,
    QuarantineRow,
    RequestRow,
    ResponseRow,
    SubjectRow,
)
from expost.sampling import InsecureSource
from support.ledger_sites import FIRST, KINDS, POLICY, Backup
from support.model_device import (
    BUDGET,
    BY_ID,
    QUERIES,
    UNITS,
    VALUES,
    Drawn,
    ModelDevice,
    RealDevice,
    Refused,
    fits,
    within_budget,
)
from support.simulated_disk import Killed

__all__ = ["KINDS", "SimulatedStudy", "Violation", "play"]

LATER = {"dora": "device", "eve": "device", "ilse": "imported"}
"""Subjects that are registered later, if at all."""
EVERYONE: dict[Any, str] = {**FIRST, **LATER}
DEVICES = [name for name, kind in EVERYONE.items() if kind == "device"]
STEPS = ("prepared", "committed", "checkpointed")
REFUSED = "refused"
FINAL = ("refused", "recorded", "declined", "dropped")
"""Outcomes of a key that never change."""
WRONG_KINDS = {"device": "imported", "imported": "device", "simulated": "device"}


class Violation(AssertionError):
    """Something that must hold does not."""


def must(holds: object, what: str) -> None:
    if not holds:
        raise Violation(what)


def _digest(message: str) -> str:
    return hashlib.sha256(message.encode()).hexdigest()


class _Before(NamedTuple):
    """What the database had about a subject before a call."""

    state: str
    sequence: int
    reserved: str
    keys: frozenset[str]
    """The idempotency keys of its requests."""


class SimulatedStudy:
    """One study, from a seed."""

    def __init__(self, seed: int, kind: str = "disk", steps: int = 26) -> None:
        self.chance = random.Random(seed)
        self.kind = kind
        self.redraws = 0
        """How often a restored device drew again what the ledger had not received."""
        self._steps = steps
        self._source = InsecureSource(seed)
        self._stack = ExitStack()
        self._site = KINDS[kind](self.chance)
        self._stack.callback(self._site.end)
        self._devices = self._create_devices(seed)
        self._ledger: Ledger
        self._network: list[tuple[str, Any, str]] = []
        self._kill_at = ""
        self._nested = False
        self._fenced = False
        self._second: Ledger | None = None
        """A process that has taken over."""
        self._backups: list[Backup] = []
        self._device_backups: dict[Any, Any] = {}

        self.drawn: dict[Any, dict[int, dict[str, Drawn]]] = {name: {} for name in DEVICES}
        """Everything that devices drew: by subject, number and head."""
        self._recorded_at_sync: dict[Any, int] = {}
        """How many exchanges the ledger had when a device made its latest request."""
        self._tickets: set[str] = set()
        self._honest = set(DEVICES)
        """Subjects whose devices were never restored to less than they had."""
        self._accused: set[Any] = set()
        """Subjects with a forged message, or that have revealed too much."""

        # What the ledger has returned. A rollback may take back some of it.
        self.kinds: dict[Any, str] = dict(FIRST)
        self._lost: dict[Any, str] = {}
        """Registrations that a restored backup lost."""
        self._confirmed: dict[Any, tuple[int, str]] = {}
        self._outcomes: dict[tuple[Any, str], tuple[str, str]] = {}
        self._attempts: dict[tuple[Any, str], set[str]] = {}
        self._keys: dict[str, str] = {}
        self._receipts: dict[str, str] = {}
        self._extras: dict[Any, dict[str, tuple[int, str, str]]] = {}
        """Responses in quarantined messages, by subject and digest: number, epsilon, response."""
        self._sent: dict[Any, dict[str, tuple[int, str, str]]] = {}
        """The same for all messages that were sent."""
        self._imports: dict[tuple[Any, str], tuple[str, str, bool]] = {}
        self._lost_imports = 0
        self._simulated: dict[str, tuple[str, str]] = {}
        self._suspended: set[Any] = set()
        self._held: set[Any] = set()
        self._unconfirmed: set[Any] = set()
        self._in_flight: dict[Any, Any] = {}
        """What a call that has returned nothing may have recorded: syncs, "resolved", "ended"."""
        self._ended = False
        self._rolled_back = False

    def _create_devices(self, seed: int) -> dict[Any, Any]:
        """Make a device for every subject that has one; some worlds have real ones."""
        if self.kind != "file" and seed % 8:
            unknown = frozenset({"3/10"})  # one of them is an older version
            return {
                name: ModelDevice(
                    name, POLICY.content_id, self.chance, unknown if name == "bob" else frozenset()
                )
                for name in DEVICES
            }
        memory = Path("/dev/shm")
        folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self._stack.enter_context(folder)
        policy, chance = POLICY.to_json(), self.chance
        devices = {name: RealDevice(name, policy, chance, Path(folder.name)) for name in DEVICES}
        for device in devices.values():
            self._stack.callback(device.close)
        return devices

    # -- a life

    def run(self) -> None:
        """Live through it."""
        with self._stack, ExitStack() as patches:
            patches.enter_context(patch.object(_engine, "_LINE_TIMEOUT", 0.0))
            patches.enter_context(patch.object(_device_messages, "_HOLD_SUBJECTS", 3))
            patches.enter_context(patch.object(_device_messages, "_HOLD_SHARE", 0.5))
            try:
                self._open()
                self._backups.append(self._site.backup())
                for _ in range(self._steps):
                    self._do_something()
                self._crash()
                self._settle()
                self._check(last=True)
                if self.chance.random() < 0.3:
                    self._damage()
            finally:
                self._site.disarm()
                self._site.kill()
                self._close()

    def _do_something(self) -> None:
        actions: list[tuple[float, Callable[[], None]]] = [
            (24, self._reserve),
            (20, self._sync),
            (14, self._play_round),
            (10, self._deliver),
            (4, self._send_messages),
            (4, self._forge),
            (3, self._resolve),
            (6, self._register),
            (4, self._import),
            (3, self._ask),
            (3, self._back_up_device),
            (6, self._restore_device),
            (6, self._back_up),
            (15 if self._ended else 5, self._restore),
            (5, self._crash),
            (1, self._lose_checkpoint),
            (1.2, self._end),
        ]
        if self._site.shared:
            actions += [(3, self._look), (3, self._replace_writer)]
        (action,) = self.chance.choices(
            [action for _, action in actions], [weight for weight, _ in actions]
        )
        action()

    # -- processes

    def _open(self) -> None:
        self._ledger = self._open_another(self._step)

    def _open_another(self, step: Callable[[str], None] = lambda name: None) -> Ledger:
        backend = self._site.backend()
        try:
            return Ledger.on_backend(backend, self._site.store(), source=self._source, on_step=step)
        except BaseException:
            backend.close()
            raise

    def _close(self) -> None:
        if hasattr(self, "_ledger"):
            self._ledger.close()

    def _crash(self, *, power: bool | None = None) -> None:
        """End the process, perhaps the system, and start again: nothing may be missing."""
        self._restart(power=power)
        self._check()

    def _restart(self, *, power: bool | None) -> None:
        self._disarm()
        if power or (power is None and self.chance.random() < 0.5):
            self._site.lose_power(self.chance)
        else:
            self._site.kill()
        self._close()
        try:
            self._open()
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a crash: {error}") from None

    def _disarm(self) -> None:
        self._kill_at, self._fenced = "", False
        self._site.disarm()

    def _step(self, name: str) -> None:
        """Do something at a step of the writer."""
        if name == self._kill_at:
            raise Killed
        if self._site.shared and not self._nested and self.chance.random() < 0.08:
            self._nested = True
            try:
                self._look() if self.chance.random() < 0.6 else self._take_over()
            finally:
                self._nested = False

    def _call(
        self, job: Callable[[Ledger], Any], then: Callable[[Any], None] = lambda result: None
    ) -> bool:
        """Call the ledger, perhaps with a fault; ``then`` gets what it returned."""
        fault = self._arm() if self.chance.random() < 0.25 else ""
        try:
            result = job(self._ledger)
        except Killed:
            self._crash(power=fault == "power")
            return False
        except LedgerStopped as error:
            must(fault or self._fenced, f"stopped without a reason: {error}")
            self._crash()
            return False
        except InvalidInput:
            fenced = self._fenced
            self._disarm()
            if fenced:
                self._crash(power=False)
            raise
        # The moment of release: what was returned has to survive everything from now on.
        stopped = fault or self._fenced
        self._disarm()
        if stopped:
            self._restart(power=fault == "power")
        then(result)
        if stopped:
            self._check()
        return True

    def _arm(self) -> str:
        if self.chance.random() < 0.4:
            self._kill_at = self.chance.choice((*STEPS, "committed"))
            return self.chance.choice(["kill", "power"])
        return self._site.arm(self.chance)

    # -- what the database has

    @property
    def _backend(self) -> Any:
        return (self._second or self._ledger)._engine.backend

    def _rows(self) -> dict[Any, SubjectRow]:
        return {json.loads(row.name): row for row in self._backend.scan(SubjectRow)}

    def _chain(self, name: Any) -> list[ExchangeRow]:
        return list(self._backend.scan(ExchangeRow, (json.dumps(name),)))

    def _exchanges(self, name: Any) -> list[tuple[str, str]]:
        """Return the recorded epsilons and responses of a subject."""
        texts = list(QUERIES)  # which were named in this order
        known = {
            row.number: (texts[row.query - 1], json.loads(row.response))
            for row in self._backend.scan(ResponseRow)
        }
        return [known[row.response] for row in self._chain(name)]

    def _marks(self, what: str) -> int:
        return sum(row.what == what for row in self._backend.scan(MarkRow))

    def _before(self, names: Iterable[Any]) -> dict[Any, _Before]:
        rows = self._rows()
        marks = sum(row.what in ("recovered", "rollback") for row in self._backend.scan(MarkRow))
        result = {}
        for name in names:
            row = rows.get(name)
            if row is None:
                result[name] = _Before("unknown", 0, "", frozenset())
                continue
            requests = self._backend.scan(RequestRow, (row.name,))
            keys = frozenset(request.key for request in requests)
            result[name] = _Before(subject_state(row, marks), row.sequence, row.reserved, keys)
        return result

    # -- the analyst

    def _request(self) -> tuple[str, str]:
        """Choose an idempotency key and a query; a key is sometimes used for another one."""
        if self._keys and self.chance.random() < 0.3:
            key = self.chance.choice(list(self._keys))
            text = self._keys[key]
            return key, self.chance.choice(list(QUERIES)) if self.chance.random() < 0.2 else text
        key = f"k{len(self._keys)}"
        (text,) = self.chance.choices(list(QUERIES), [1, 3, 1])
        return key, self._keys.setdefault(key, text)

    def _reserve(self) -> None:
        known = [name for name, row in self._rows().items() if row.kind == "device"]
        names = self.chance.sample(known, self.chance.randint(1, len(known)))
        self._reserve_on(self._call, names, *self._request())

    def _reserve_on(self, call: Any, names: list[Any], key: str, text: str) -> None:
        before = self._before(names)
        for name in names:
            self._attempts.setdefault((name, key), set()).add(text)
        try:
            call(
                lambda ledger: ledger.reserve(QUERIES[text], names, key=key),
                lambda outcomes: self._take_outcomes(key, text, outcomes, before),
            )
        except InvalidInput as error:
            if "was used for another query" in str(error):
                again = [name for name in names if len(self._attempts[name, key]) > 1]
                must(again, f"a key is refused that was not used before: {error}")
            else:
                ended = self._ended or "" in self._in_flight
                must("has ended" in str(error) and ended, f"reserve is refused: {error}")

    def _take_outcomes(
        self, key: str, text: str, outcomes: Sequence[Outcome], before: dict[Any, _Before]
    ) -> None:
        for outcome in outcomes:
            name, what = outcome.subject, outcome.outcome
            self._learn_in_flight({name: before[name].state})
            known = self._outcomes.get((name, key))
            if known is not None:
                must(known[0] == text, f"the key {key} of {name} was used for two queries")
                same = what == known[1] if known[1] in FINAL else what in (*FINAL, "reserved")
                must(same, f"the key {key} of {name} was {known[1]} and is {what}")
            if what == "suspended":
                must(self._is_suspect(name), f"{name} is suspended without a reason")
            elif what == "unconfirmed":
                must(self._rolled_back or name in self._unconfirmed, f"{name} is unconfirmed")
            elif what == "waiting":
                must(before[name].reserved, f"{name} waits for nothing")
            else:
                if key not in before[name].keys:
                    self._check_new_request(name, text, what, before[name])
                self._outcomes[name, key] = (text, what)

    def _check_new_request(self, name: Any, text: str, what: str, before: _Before) -> None:
        must(not self._ended, f"{name} is asked after the end of the study")
        must(name not in self._unconfirmed, f"{name} is unconfirmed and was asked: {what}")
        must(name not in self._suspended, f"{name} is suspended and was asked: {what}")
        must(before.state == "active" and not before.reserved, f"{name} cannot be asked: {what}")
        charge, exchanges = self._charge(name), self._exchanges(name)
        due = fits(exchanges, text, charge)
        tie = charge and due and not fits(exchanges, text, charge + 1)  # sums are rounded up
        must(what == ("reserved" if due else "refused") or tie, f"{name}: wrongly {what}")

    def _charge(self, name: Any) -> int:
        """Return the sum of the epsilons of a subject's extras, in twentieths."""
        exchanges, extras = self._exchanges(name), self._extras.setdefault(name, {})
        # Messages may be quarantined in a call that returned nothing.
        for digest in self._quarantined_digests() & self._sent.get(name, {}).keys():
            extras[digest] = self._sent[name][digest]
        return sum(
            UNITS[text]
            for sequence, text, response in extras.values()
            if exchanges[sequence - 1 : sequence] != [(text, response)]
        )

    def _is_suspect(self, name: Any) -> bool:
        return name in self._accused or (name in self._devices and name not in self._honest)

    def _register(self) -> None:
        name = self.chance.choice([*EVERYONE, *LATER, *LATER])
        if self._lost and self.chance.random() < 0.5:
            name = self.chance.choice(list(self._lost))
        kind = EVERYONE[name]
        wrong = self.chance.random() < 0.2 and (name in self._lost or name in self.kinds)
        kind = WRONG_KINDS[kind] if wrong else kind
        rows = self._rows()

        def check(count: int) -> None:
            must(not wrong, f"{name} was registered as another kind")
            must(count == (name not in rows), f"{name} was registered {count} times")
            self.kinds[name] = kind
            self._check_states()

        try:
            self._call(lambda ledger: ledger.register([name], kind=kind), check)
        except InvalidInput as error:
            must(wrong or (self._ended and "has ended" in str(error)), f"register: {error}")

    def _import(self) -> None:
        known = [name for name, row in self._rows().items() if row.kind == "imported"]
        name, (key, text) = self.chance.choice(known), self._request()
        response = self.chance.choice(VALUES)
        earlier = [each for each in self._imports if each[0] == name]
        if earlier and self.chance.random() < 0.4:
            _, key = self.chance.choice(earlier)
            text, response, _ = self._imports[name, key]
        due = fits(self._exchanges(name), text)
        before = self._before([name])[name]
        is_new = key not in before.keys
        self._attempts.setdefault((name, key), set()).add(f"{text} {response}")

        def check(accepted: Any) -> None:
            verdict = bool(accepted[0])
            if is_new:
                right = verdict == due if before.state == "active" else due or not verdict
                must(right, f"an import of {name} is wrongly {verdict}")
            known = self._imports.setdefault((name, key), (text, response, verdict))
            # After a rollback the verdict depends on whether lost imports were recorded again.
            same = known == (text, response, verdict) or self._rolled_back
            must(same, f"the import {key} of {name} has two verdicts")
            if not within_budget(self._exchanges(name)):
                self._suspended.add(name)

        if not due:
            self._accused.add(name)
        try:
            self._call(
                lambda ledger: ledger.record(QUERIES[text], [response], [name], key=key), check
            )
        except InvalidInput as error:
            if "was used for another" in str(error):
                must(len(self._attempts[name, key]) > 1, f"an import is refused: {error}")
            else:
                must("has ended" in str(error) and self._ended, f"an import is refused: {error}")

    def _ask(self) -> None:
        """Simulate an exchange in this process."""
        key, text = self._request()
        value = self.chance.choice(VALUES)
        known = self._simulated.get(key)
        self._attempts.setdefault(("sim", key), set()).add(text)

        def check(replies: Any) -> None:
            given = replies.responses[0] if replies.answered[0] else REFUSED
            again = self._simulated.setdefault(key, (text, given))
            must(again == (text, given), f"the simulated answer to {key} has changed")

        try:
            self._call(lambda ledger: ledger.ask(QUERIES[text], [value], ["sim"], key=key), check)
        except InvalidInput as error:
            reasons = ["first", "another query"] + ["has ended"] * self._ended
            if "sim" in self._unconfirmed or self._rolled_back:
                reasons += ["unconfirmed", "has to be confirmed"]
            must(any(reason in str(error) for reason in reasons), f"ask is refused: {error}")
            must(known is None or known[0] != text, f"a simulated answer is refused: {error}")

    def _end(self) -> None:
        def check(result: None) -> None:
            self._ended = True

        if len(self._keys) > 2:
            self._in_flight = {"": "ended"}
            self._call(lambda ledger: ledger.end(), check)
            self._in_flight = {}
            self._ended = self._ended or self._ledger.status([]).ended

    # -- devices and the network

    def _sync(self) -> None:
        """Let some devices talk to the ledger, over a network that fails."""
        names = self.chance.sample(DEVICES, self.chance.choice([1, 2, 5]))
        requests = {name: self._start_sync(name) for name in names}
        for _ in range(5):
            arrived = {}
            for name, request in requests.items():
                fate = self.chance.random()
                if fate < 0.2:
                    self._network.append(("request", name, request))
                if 0.1 < fate < 0.9:
                    arrived[name] = request
                elif self.chance.random() < 0.5:
                    self._restore_device(name)
            answers = self._deliver_requests(list(arrived.values())) if arrived else None
            requests = {}
            for name, answer in zip(arrived, answers or (), strict=False):
                fate = self.chance.random()
                if fate < 0.2:
                    self._network.append(("answer", name, answer))
                if 0.1 < fate < 0.9:
                    requests[name] = self._deliver_answer(name, answer)
            requests = {name: request for name, request in requests.items() if request}
            if not requests:
                return

    def _play_round(self) -> None:
        """Reserve, and let devices sync."""
        self._reserve()
        self._sync()

    def _start_sync(self, name: Any) -> str:
        if self.chance.random() < 0.1:
            self._devices[name].restart()
        if self.chance.random() < 0.4:
            self._device_backups[name] = self._devices[name].backup()
        self._note_request(name)
        request: str = self._devices[name].sync()
        return request

    def _note_request(self, name: Any) -> None:
        self._recorded_at_sync[name] = len(self._chain(name))

    def _deliver(self) -> None:
        """Deliver something that was delayed."""
        if not self._network:
            return
        what, name, text = self._network.pop(self.chance.randrange(len(self._network)))
        if self.chance.random() < 0.2:
            self._network.append((what, name, text))
        if what == "request":
            for answer in self._deliver_requests([text]) or ():
                self._network.append(("answer", name, answer))
        else:
            request = self._deliver_answer(name, text)
            if request:
                self._network.append(("request", name, request))

    def _deliver_requests(self, requests: list[str]) -> list[str] | None:
        """Send requests to the ledger in one call; return its answers, or None if it crashed."""
        trees = [json.loads(request) for request in requests]
        messages = [message for tree in trees for message in tree["messages"]]
        before = self._before([tree["subject"] for tree in trees])
        known, rollbacks = self._known_messages(messages), self._marks("rollback")
        answers: list[str] = []

        def check(results: Sequence[Any]) -> None:
            answers.extend(result.to_json() for result in results)
            self._check_rollback_mark(before, rollbacks)
            for tree, answer in zip(trees, map(json.loads, answers), strict=True):
                self._check_answer(tree, answer)
                for message, receipt in zip(tree["messages"], answer["receipts"], strict=True):
                    self._check_receipt(message, receipt, known)

        self._in_flight = {tree["subject"]: (tree["sequence"], tree["head"]) for tree in trees}
        done = self._call(lambda ledger: ledger.sync(requests), check)
        self._in_flight = {}
        return answers if done else None

    def _known_messages(self, messages: Sequence[str]) -> set[str]:
        """Return the messages that are quarantined already; note that they are sent."""
        known = self._quarantined_digests()
        for message in messages:
            tree = json.loads(message)
            if tree.get("response") in VALUES:
                extra = tree["sequence"], BY_ID[tree["query"]], tree["response"]
                self._sent.setdefault(tree["subject"], {})[_digest(message)] = extra
        return {message for message in messages if _digest(message) in known}

    def _quarantined_digests(self) -> set[str]:
        return {row.digest for row in self._backend.scan(QuarantineRow) if row.subject}

    def _check_rollback_mark(self, before: dict[Any, _Before], marks: int) -> None:
        """Check that an exchange that the ledger does not remember proves a rollback."""
        now = self._marks("rollback")
        for name, earlier in before.items():
            # A ticket of an unconfirmed or unknown subject is explained by a rollback before it.
            explained = earlier.state == "unknown" and (now or self._marks("recovered"))
            forgotten = [
                row for row in self._chain(name)[earlier.sequence :] if row.key not in earlier.keys
            ]
            if forgotten and earlier.state in ("active", "unknown") and not explained:
                must(now > marks, f"{name}: a forgotten ticket proved nothing")
        if now > marks:
            must(self._rolled_back, "there was no rollback")
            rows = self._rows().items()
            self._unconfirmed |= {name for name, row in rows if row.kind != "imported"}

    def _check_answer(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        name, state = request["subject"], answer["state"]
        must(answer["nonce"] == request["nonce"], "an answer has another nonce")
        chain = self._chain(name)
        head = chain[-1].head if chain else first_head(POLICY.content_id, name)
        where = answer["confirmed"], answer["head"]
        must(where == (len(chain), head.hex()), f"{name}: confirmed is not what is recorded")
        if chain:
            self._confirm(name, *where)
        if state == "unknown":
            must(name not in self._rows(), f"{name} is registered and unknown")
            must(self._lost.get(name) != "device", f"{name} was registered and is unknown")
            return
        self.kinds[name] = "device"
        if self._lost.pop(name, None):
            self._unconfirmed.add(name)
        matches = where == (request["sequence"], request["head"])
        if state == "suspended":
            must(self._is_suspect(name), f"{name} is suspended without a reason")
            self._suspended.add(name)
        elif state == "unconfirmed":
            must(self._rolled_back or name in self._unconfirmed, f"{name} is unconfirmed")
        else:
            must(name not in self._suspended, f"{name} is no longer suspended")
            must(name not in self._unconfirmed or matches, f"{name}: its device did not confirm")
            self._unconfirmed.discard(name)
        if answer["reservation"] is not None:
            must(state == "active" and matches, f"{name} gets a reservation: {state}")
            self._tickets.add(answer["reservation"]["ticket"])

    def _check_receipt(
        self, message: str, receipt: dict[str, Any], known: set[str], *, forged: bool = False
    ) -> None:
        """Check what became of a message against the record, and remember it."""
        tree, outcome = json.loads(message), receipt["outcome"]
        name, sequence, chain = tree["subject"], tree["sequence"], self._chain(tree["subject"])
        before = self._receipts.get(message)
        if before in ("recorded", "declined"):
            must(outcome == before, f"a message was {before} and is {outcome}")
        self._receipts[message] = outcome
        if "head" in tree:
            same = [row for row in chain if row.sequence == sequence]
            expected_row = tree["key"], tree["head"]
            recorded = not forged and [(row.key, row.head.hex()) for row in same] == [expected_row]
            must(outcome != "recorded" or recorded, f"{name} {sequence}: is not recorded")
            expected = ("recorded", "incomplete") if recorded else ("quarantined", "incomplete")
            must(outcome in expected, f"{name} {sequence}: {outcome}, and recorded: {recorded}")
            if recorded:
                must(tree["ticket"] in self._tickets, f"{name} {sequence}: has no ticket")
                self._confirm(name, sequence, tree["head"])
        else:
            must(forged or outcome == "declined", f"a decline of {name} is {outcome}")
        if outcome == "quarantined" and "subject" in receipt:
            must(forged or self._is_suspect(name), f"{name}: a good message is quarantined")
            self._quarantined(message, tree, receipt, known)

    def _quarantined(
        self, message: str, tree: dict[str, Any], receipt: dict[str, Any], known: set[str]
    ) -> None:
        name, digest = tree["subject"], _digest(message)
        if digest in self._sent.get(name, {}):
            self._extras.setdefault(name, {})[digest] = self._sent[name][digest]
        if message in known:
            return
        if receipt.get("held"):
            self._held.add(name)
        else:
            self._suspended.add(name)

    def _confirm(self, name: Any, sequence: int, head: str) -> None:
        if sequence >= self._confirmed.get(name, (0, ""))[0]:
            self._confirmed[name] = (sequence, head)

    def _deliver_answer(self, name: Any, text: str) -> str:
        """Give an answer to a device; return its next request, if there is one."""
        device, answer = self._devices[name], json.loads(text)
        own = len(device.stored)
        recorded = self._recorded_at_sync.get(name)
        try:
            request: str = device.take(text)
        except Refused:
            must(len(device.stored) == own, f"the device of {name} refused and drew")
            return ""
        if len(device.stored) > own:
            self._check_draw(name, answer, own, recorded)
        if request:
            self._note_request(name)
        return request

    def _check_draw(self, name: Any, answer: dict[str, Any], own: int, recorded: Any) -> None:
        """Check that a device drew what it may draw."""
        stored = self._devices[name].stored
        sequence, new = own + 1, stored[own]
        must(len(stored) == sequence, f"the device of {name} drew twice")
        must(answer["confirmed"] == own, f"the device of {name} drew, and the ledger is ahead")
        must(within_budget([each[1:3] for each in stored]), f"{name} is over the budget")
        earlier = self.drawn[name].setdefault(sequence, {})
        if earlier:
            must(name not in self._honest, f"the device of {name} drew number {sequence} again")
            must(
                recorded is not None and recorded < sequence,
                f"the device of {name} drew number {sequence} again, which the ledger had",
            )
            self.redraws += 1
        earlier[new.head] = new

    def _back_up_device(self) -> None:
        name = self.chance.choice(DEVICES)
        self._device_backups[name] = self._devices[name].backup()

    def _restore_device(self, name: Any = None) -> None:
        """Restore a device from a backup of its own."""
        if name is None and self._device_backups:
            name = self.chance.choice(list(self._device_backups))
        if name not in self._device_backups:
            return
        device = self._devices[name]
        before = len(device.stored)
        device.restore(self._device_backups[name])
        self._recorded_at_sync.pop(name, None)
        if len(device.stored) < before:
            self._honest.discard(name)
        else:
            # A backup of a longer life than the present one, after an older one was restored.
            must(len(device.stored) == before or name not in self._honest, "a backup of the future")

    def _receive(self, messages: list[tuple[str, bool]]) -> None:
        """Send messages to the ledger without a sync; each says whether it is forged."""
        texts = [message for message, _ in messages]
        trees = list(map(json.loads, texts))
        before = self._before([tree["subject"] for tree in trees])
        known, rollbacks = self._known_messages(texts), self._marks("rollback")

        def check(receipts: Sequence[Any]) -> None:
            self._check_rollback_mark(before, rollbacks)
            found = [receipt.tree() for receipt in receipts]
            now = self._before(before)
            fitting = {name for name in before if now[name][1:3] != before[name][1:3]}
            misfits = {
                tree["subject"]
                for text, tree, receipt in zip(texts, trees, found, strict=True)
                if receipt["outcome"] == "quarantined"
                and "subject" in receipt
                and text not in known
                and before[tree["subject"]].state != "suspended"
            }
            held = len(fitting | misfits) >= 3 and len(misfits) > 0.5 * len(fitting | misfits)
            for (message, forged), receipt in zip(messages, found, strict=True):
                name = receipt.get("subject")
                if name in misfits and message not in known:
                    must(receipt.get("held", False) == held, f"{name}: held is not {held}")
                self._check_receipt(message, receipt, known, forged=forged)

        self._call(lambda ledger: ledger.receive(texts), check)

    def _send_messages(self) -> None:
        """Send stored messages again, of any age, as a collector might."""
        stored = [
            drawn.message
            for lives in self.drawn.values()
            for heads in lives.values()
            for drawn in heads.values()
        ]
        if stored:
            count = self.chance.randint(1, 4)
            self._receive([(message, False) for message in self.chance.choices(stored, k=count)])

    def _forge(self) -> None:
        """Send messages that no honest device sends: they are quarantined, and count."""
        if self.chance.random() < 0.2:
            junk = self.chance.choice([b"", b"{}", b"\xff", b"[" * 2000, b"{" * 10])
            self._call(lambda ledger: ledger.receive([junk]), self._check_junk)
            self._call(lambda ledger: ledger.sync([junk]), self._check_junk)
            return
        names = [name for name, row in self._rows().items() if row.kind == "device"]
        self.chance.shuffle(names)
        count = 1 if self.chance.random() < 0.8 else 3
        forged = [self._forged(name) for name in names[:count]]
        self._accused |= set(names[:count])
        self._receive([(message, True) for message in forged])

    def _check_junk(self, receipts: Sequence[Any]) -> None:
        must([receipt.outcome for receipt in receipts] == ["quarantined"], "junk is accepted")

    def _forged(self, name: Any) -> str:
        """Make up an exchange, or another response to a recorded one."""
        chain, text = self._chain(name), self.chance.choice(list(QUERIES))
        recorded = self._exchanges(name)
        response = self.chance.choice(VALUES)
        sequence, key = len(chain) + 1, f"forged {self.chance.random()}"
        if chain and self.chance.random() < 0.5:
            sequence = self.chance.randint(1, len(chain))
            key, (text, given) = chain[sequence - 1].key, recorded[sequence - 1]
            response = next(value for value in VALUES if value != given)
        start = first_head(POLICY.content_id, name)
        previous = chain[sequence - 2].head if sequence > 1 else start
        query_id = QUERIES[text].content_id
        tree = {
            "ledger": POLICY.content_id,
            "subject": name,
            "sequence": sequence,
            "previous": previous.hex(),
            "key": key,
            "query": query_id,
            "ticket": f"{self.chance.getrandbits(256):064x}",
            "response": response,
            "head": next_head(previous, chain_prefix(query_id, response), sequence).hex(),
        }
        return json.dumps(tree)

    def _resolve(self) -> None:
        """Let an operator decide about suspended subjects, and about held messages."""
        rows = self._rows()
        if self._held and self.chance.random() < 0.5:
            name = self.chance.choice(sorted(self._held, key=str))

            def check_held(changed: Any) -> None:
                self._suspended.add(name)

            try:
                self._call(lambda ledger: ledger.resolve([name], suspend=True), check_held)
            except InvalidInput as error:
                must(self._rolled_back, f"resolve is refused: {error}")
            return
        names = [name for name in rows if name in self._suspended]
        if not names:
            return
        name = self.chance.choice(names)

        def check(changed: Any) -> None:
            must(changed == (name,), f"{name} was not suspended")
            self._suspended.discard(name)
            self._unconfirmed.add(name)

        self._in_flight = {name: "resolved"}
        try:
            self._call(lambda ledger: ledger.resolve([name]), check)
        except InvalidInput as error:
            no_device = rows[name].kind != "device" and "no device" in str(error)
            lost = self._rolled_back and "a restored backup lost" in str(error)
            must(no_device or lost, f"resolve is refused: {error}")
        self._in_flight = {}

    # -- other processes

    def _look(self) -> None:
        """Read in another process. What it shows has been released."""
        try:
            reader = self._open_another()
        except LedgerLocked:
            return
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be read: {error}") from None
        try:
            for name in reader.subjects:
                exchanges = reader.transcript(name).exchanges
                head = first_head(POLICY.content_id, name)
                for number, exchange in enumerate(exchanges, 1):
                    prefix = chain_prefix(exchange.query.content_id, exchange.response)
                    head = next_head(head, prefix, number)
                    if name in self._devices:
                        self._confirm(name, number, head.hex())
        except LedgerLocked:
            pass  # the writer is about to write the line of a commit
        finally:
            reader.close()

    def _take_over(self) -> None:
        """Break the lock; a second process claims the ledger and writes to it."""
        self._fenced = self._ledger._engine.claimed
        self._site.steal_lock(self._ledger._engine.checkpoint.store)
        second = self._second = self._open_another()
        key = f"k{len(self._keys)}"
        text = self._keys.setdefault(key, self.chance.choice(list(QUERIES)))

        def call(job: Callable[[Ledger], Any], then: Callable[[Any], None]) -> None:
            then(job(second))

        try:
            known = [name for name, row in self._rows().items() if row.kind == "device"]
            self._reserve_on(call, [self.chance.choice(known)], key, text)
            if self.chance.random() < 0.5:
                second.receive([f"from a second writer {self.chance.random()}"])
        finally:
            self._second = None
            second.close()

    def _replace_writer(self) -> None:
        """Let a second process take over: the first one can no longer write."""
        self._nested = True
        try:
            self._take_over()
            if self._fenced:
                tip = self._read_tip()
                try:
                    self._ledger.receive([f"from a replaced writer {self.chance.random()}"])
                except LedgerStopped:
                    pass
                else:
                    raise Violation("a writer that was replaced has written")
                must(self._read_tip() == tip, "a writer that was replaced has written")
        finally:
            self._nested = False
        self._crash(power=False)

    def _read_tip(self) -> Any:
        """Read the last commit in another process."""
        backend = self._site.backend()
        tip = backend.tip()
        backend.close()
        return tip

    # -- backups

    def _back_up(self) -> None:
        self._backups = [*self._backups[-2:], self._site.backup()]

    def _restore(self) -> None:
        """Put an older database or a fork in place, perhaps with its checkpoint."""
        mode = self.chance.choices(["database", "both", "fork"], [5, 3, 2])[0]
        backup = self.chance.choice(self._backups)
        if mode == "fork":
            backup = self._fork()
        tip, status = self._ledger.tip, self._ledger.status()
        self._suspended |= {
            name for name, out in zip(status.subjects, status.suspended, strict=True) if out
        }
        imports = self._recorded_imports()
        self._site.kill()
        self._close()
        self._site.restore(backup, checkpoint=mode == "both")
        noticed = False
        try:
            self._open()
        except LedgerBehind:
            noticed = True
            must(mode != "both", "a checkpoint that was put back with it does not fit")
            self._recover()
            self._open()
            # An interrupted recovery may have left a line that only the next writer synchronizes.
            self._ledger._engine.claim()
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a restore: {error}") from None
        same = self._ledger._engine.root_at(tip.commit_number) == tip.root
        must(noticed or same or mode == "both", f"a {mode} that was put back went unnoticed")
        if not same:
            self._rolled_back = True
            self._forget(noticed, imports)
        self._check()

    def _fork(self) -> Backup:
        """Return a copy of the database on which someone else has continued."""
        copy = self._site.clone()
        commits = self.chance.randint(1, 3)
        with Ledger.on_backend(copy.backend(), copy.store()) as other:
            for number in range(commits):
                other.receive([f"on a copy {number} {self.chance.random()}"])
            if self.chance.random() < 0.5 and not self._ended:
                known = [name for name, row in self._rows().items() if row.kind == "device"]
                other.reserve(QUERIES["1/4"], [self.chance.choice(known)], key="on a copy")
        backup = copy.backup()
        copy.end()
        own = commits if self.chance.random() < 0.7 else self.chance.randint(1, 3)
        self._nested = True
        for number in range(own):
            self._ledger.receive([f"on the original {number} {self.chance.random()}"])
        self._nested = False
        return backup

    def _lose_checkpoint(self) -> None:
        """Lose the checkpoint: every subject is then unconfirmed, and nothing is forgotten."""
        self._site.kill()
        self._close()
        self._site.lose_checkpoint()
        try:
            self._open()
        except LedgerBehind:
            self._recover(lost=True)
            self._open()
            self._ledger._engine.claim()
        else:
            raise Violation("a lost checkpoint went unnoticed")
        self._rolled_back = True
        rows = self._rows().items()
        self._unconfirmed = {name for name, row in rows if row.kind != "imported"}
        self._check()

    def _recover(self, *, lost: bool = False) -> None:
        """Recover, perhaps interrupted several times."""
        for attempt in range(5):
            backend = self._site.backend()
            fault = self._site.arm(self.chance) if self.chance.random() < 0.5 - attempt / 8 else ""
            try:
                Ledger.recover_on_backend(backend, self._site.store(), lost=lost)
                self._site.disarm()
                return
            except (Killed, LedgerStopped) as error:
                must(fault, f"cannot be recovered: {error!r}")
            except InvalidInput as error:
                must(attempt and "nothing to recover" in str(error), f"recover: {error}")
                self._site.disarm()
                backend.close()
                return
            self._site.disarm()
            if self.chance.random() < 0.5:
                self._site.lose_power(self.chance)
            else:
                self._site.kill()
            backend.close()
        raise Violation("cannot be recovered")

    def _recorded_imports(self) -> set[tuple[Any, str]]:
        return {
            (name, row.key)
            for name, subject in self._rows().items()
            if subject.kind == "imported"
            for row in self._chain(name)
        }

    def _forget(self, noticed: bool, imports: set[tuple[Any, str]]) -> None:
        """Expect only what the restored database can have; devices have the rest."""
        rows, status = self._rows(), self._ledger.status()
        states = dict(zip(status.subjects, status.states, strict=True))
        self._outcomes, self._receipts, self._confirmed = {}, {}, {}
        quarantined = self._quarantined_digests()
        for name, extras in self._extras.items():
            self._extras[name] = {
                digest: extra for digest, extra in extras.items() if digest in quarantined
            }
        present = self._recorded_imports()
        self._imports = {each: what for each, what in self._imports.items() if each in present}
        asked = {row.key for row in self._backend.scan(RequestRow, (json.dumps("sim"),))}
        answered = {row.key for row in self._chain("sim")}
        self._simulated = {
            key: (text, given)
            for key, (text, given) in self._simulated.items()
            if key in (asked if given == REFUSED else answered)
        }
        if noticed:
            self._lost |= {name: kind for name, kind in self.kinds.items() if name not in rows}
            self._unconfirmed = {name for name, row in rows.items() if row.kind != "imported"}
            must(self._ledger.audit().lost_imports >= len(imports - present), "imports were lost")
        else:
            self._lost = {}
            self._suspended = {name for name, state in states.items() if state == "suspended"}
            self._unconfirmed = {name for name, state in states.items() if state == "unconfirmed"}
            self._ended = status.ended
        held = [row.subject for row in self._backend.scan(QuarantineRow) if row.held]
        self._held &= set(map(json.loads, held))
        self.kinds = {name: row.kind for name, row in rows.items()}

    # -- the end, and what must hold

    def _settle(self) -> None:
        """Deliver everything, and let every device sync once without a fault."""
        self.chance.shuffle(self._network)
        for what, name, text in self._network:
            if what == "request":
                self._finish([text])
            else:
                self._deliver_answer(name, text)
        for _ in range(2):  # a rollback that one device proves makes the others sync again
            for name in DEVICES:
                self._converse(name)
            for name in DEVICES:
                self._check_settled(name)
        states = self._states()
        for name in DEVICES:
            good = name not in self._honest or states.get(name) != "unconfirmed"
            must(good, f"{name} is unconfirmed, and its device has synced")

    def _finish(self, requests: list[str]) -> list[str]:
        """Send requests without a fault."""
        answers = None
        while answers is None:
            answers = self._deliver_requests(requests)
        return answers

    def _converse(self, name: Any) -> None:
        if name not in self._honest:
            self._devices[name].restart()  # it may have been an old copy until now
        self._note_request(name)
        request = self._devices[name].sync()
        for _ in range(8):
            (answer,) = self._finish([request])
            request = self._deliver_answer(name, answer)
            if not request:
                return
        raise Violation(f"the conversation with {name} does not end")

    def _check_settled(self, name: Any) -> None:
        device, heads = self._devices[name], [row.head.hex() for row in self._chain(name)]
        own = [each.head for each in device.stored]
        if name in self._honest:
            must(heads == own, f"{name}: {len(heads)} recorded, {len(own)} on the device")
        else:
            shorter = min(len(heads), len(own))
            forked = heads[:shorter] != own[:shorter]
            must(forked or len(heads) >= len(own), f"{name}: the ledger lacks an exchange")
            if forked and len(own) <= len(heads):  # one that is ahead sends nothing of its chain
                must(self._states()[name] == "suspended", f"{name} has two chains and continues")

    def _states(self) -> dict[Any, str]:
        status = self._ledger.status()
        return dict(zip(status.subjects, status.states, strict=True))

    def _learn_in_flight(self, states: dict[Any, str]) -> None:
        """Find out whether a call that has returned nothing is recorded."""
        for name, what in self._in_flight.items():
            if what == "resolved" and states.get(name) == "unconfirmed":
                self._suspended.discard(name)
                self._unconfirmed.add(name)
            chain = self._chain(name)
            head = chain[-1].head if chain else first_head(POLICY.content_id, name)
            if what == (len(chain), head.hex()) and states.get(name) == "active":
                self._unconfirmed.discard(name)

    def _check_states(self) -> None:
        states = self._states()
        for name in self._lost.keys() & states.keys():
            if self._lost.pop(name) != "imported":
                self._unconfirmed.add(name)
        self._learn_in_flight(states)
        for name in self._suspended & states.keys():
            must(states[name] == "suspended", f"{name} is no longer suspended")
        for name in self._unconfirmed & states.keys():
            must(states[name] != "active", f"{name} is active, and its device has not synced")
        for name, kind in self.kinds.items():
            must(name in states, f"{name} is no longer registered ({kind})")

    def _check(self, *, last: bool = False) -> None:
        """Check everything that must hold."""
        ledger = self._ledger
        self._check_states()
        must(ledger.status([]).ended or not self._ended, "the study has not ended")
        for name, row in self._rows().items():
            chain, exchanges = self._chain(name), self._exchanges(name)
            heads = [each.head.hex() for each in chain]
            if last or self.chance.random() < 0.2:
                given = [each.response for each in ledger.transcript(name).exchanges]
                same = given == [response for _, response in exchanges]
                must(same, f"{name}: another transcript")
            if row.kind != "imported":
                must(within_budget(exchanges), f"{name} is over the budget of {BUDGET}/20")
            if row.kind == "device":
                for number, head in enumerate(heads, 1):
                    known = self.drawn[name].get(number, {})
                    must(head in known, f"{name} {number}: recorded and not drawn")
            sequence, head = self._confirmed.get(name, (0, ""))
            must(not sequence or heads[sequence - 1 : sequence] == [head],
                 f"{name} {sequence}: confirmed and not recorded")  # fmt: skip
        self._check_released()
        if last or self.chance.random() < 0.15:
            verified = ledger.verify()
            must(verified.good, str(verified))
        if last:
            self._check_audit()

    def _check_released(self) -> None:
        """Check that what the ledger returned is still there."""
        for (name, key), (text, response, _) in self._imports.items():
            given = [
                pair
                for row, pair in zip(self._chain(name), self._exchanges(name), strict=True)
                if row.key == key
            ]
            must(given == [(text, response)], f"the import {key} of {name} is {given}")
        chain = {
            row.key: pair
            for row, pair in zip(self._chain("sim"), self._exchanges("sim"), strict=True)
        }
        for key, (text, response) in self._simulated.items():
            expected = None if response == REFUSED else (text, response)
            must(chain.get(key) == expected, f"the simulated answer to {key} is not recorded")
        answered = any(row.sequence for row in self._rows().values())
        if answered and any(what in FINAL for _, what in self._outcomes.values()):
            unanswered: Any = self._ledger.answers().unanswered
            for (name, key), (text, what) in self._outcomes.items():
                if what in ("refused", "declined"):
                    listed = (name, f"epsilon {text}") in unanswered[what]
                    must(listed, f"{name} {key}: {what} and not listed")

    def _check_audit(self) -> None:
        audit = self._ledger.audit()
        extras = [name for name in self._extras if self._charge(name)]
        if not extras and not self._rolled_back and not self._accused:
            must(audit.good, f"the audit finds something: {audit}")
        listed = {name for name, _, _ in audit.extras}
        must(set(extras) <= listed, "an extra is not listed")
        must(self._suspended <= set(audit.suspended), "a suspended subject is not listed")

    def _damage(self) -> None:
        """Flip a bit or cut a file: that is noticed, or nothing has changed."""
        if next(iter(self._backend.scan(ExchangeRow)), None) is None:
            return
        names, recorded = self._ledger.subjects, self._read_answers()
        self._site.kill()
        self._close()
        if not self._site.damage(self.chance):
            return
        try:
            self._open()
            if self.chance.random() < 0.5 and not self._ended:
                for name, kind in self.kinds.items():
                    new = self._ledger.register([name], kind=kind)
                    must(not new, f"{name} was registered again after damage")
            must(self._read_answers() == recorded, "other answers after damage")
            if self._ledger.verify().good:
                must(self._ledger.subjects == names, "other subjects after damage")
                self._check()
        except (LedgerStopped, InvalidInput):
            return

    def _read_answers(self) -> dict[Any, list[tuple[str, Any]]]:
        """Return all answers, as an analyst gets them."""
        answers = self._ledger.answers()
        return {
            name: [
                (each.query.content_id, each.response)
                for each in answers.transcript(name).exchanges
            ]
            for name in answers.subjects
        }


def play(seed: int, kind: str | None = None) -> SimulatedStudy:
    """Play a seed; return its world."""
    names = list(KINDS)
    # Six of ten on the disk that fails, three in memory, one on a real file.
    kind = kind or names[(0, 0, 0, 0, 0, 0, 1, 1, 1, 2)[seed % 10]]
    world = SimulatedStudy(seed, kind)
    world.run()
    return world
