"""A small study in a world where everything fails, as a seed says; and what must hold in it.

What was released, by the ledger or by a device, is remembered here, apart from the ledger. After
every accident the ledger is opened again and compared with that:

- what was released is recorded, once, and under its key for good; so are refusals;
- every prefix of every transcript is within the budget, by formulas of our own;
- what a rollback took away is noticed when the ledger is opened, and whoever it concerns is closed,
  also after one of several workers was killed and another one went on;
- what a flipped bit or a cut changed is never released: whoever reads it notices it, or verifying.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import expost as xp
from expost.errors import InvalidInput
from expost.ledger import Behind, Ledger, LedgerStopped
from expost.ledger.checkpoint import Checkpoint
from expost.sampling import InsecureSource
from support.disks import Killed
from support.sites import KINDS, POLICY, SUBJECTS, VALUES

__all__ = ["KINDS", "Violation", "World", "played"]

BUDGET = 1.0
EPSILONS = ("1/4", "1/2", "3/10")
QUERIES = {text: xp.randomized_response(epsilon=text) for text in EPSILONS}
STEPS = ("decided", "drawn", "committed", "checkpointed")
REFUSED = "refused"


class Violation(AssertionError):
    """Something that must hold does not."""


def must(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)


class Device:
    """A subject's device: it keeps what it drew, and sends the same bytes again."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._stored: dict[int, tuple[str, bytes]] = {}

    def answer(self, reservation: Any) -> tuple[bytes, str]:
        """What it sends, and what it drew."""
        known = self._stored.get(reservation.sequence)
        if known is None or known[0] != reservation.key:
            response = self._chance.choice(VALUES)
            head = xp.ledger.digests.next_head(
                bytes.fromhex(reservation.previous),
                xp.ledger.digests.link(reservation.query.content_id, response),
                reservation.sequence,
            )
            tree = {
                "ledger": reservation.ledger,
                "subject": reservation.subject,
                "sequence": reservation.sequence,
                "key": reservation.key,
                "query": reservation.query.content_id,
                "response": response,
                "head": head.hex(),
            }
            known = self._stored[reservation.sequence] = (
                reservation.key, json.dumps(tree).encode(),
            )  # fmt: skip
        return known[1], json.loads(known[1])["response"]

    def restore(self) -> None:
        """From a backup in which the last draw is missing."""
        if self._stored:
            del self._stored[max(self._stored)]


class World:
    """One study, from a seed."""

    def __init__(self, seed: int, kind: str = "disk", steps: int = 14) -> None:
        self.chance = random.Random(seed)
        self.kind = kind
        self._steps = steps
        self._source = InsecureSource(seed)
        self._site = KINDS[kind](self.chance)
        self._values = [self.chance.choice(VALUES) for _ in SUBJECTS]
        self._lately: list[Any] = [None]
        """Who was asked last, and is often asked again."""
        self._known: dict[tuple[Any, str], tuple[str, Any]] = {}
        """What was released: by subject and key, the query and the response, or a refusal."""
        self._keys: dict[str, str] = {}
        self._devices = {name: Device(self.chance) for name in SUBJECTS}
        self._network: list[bytes] = []
        self._receipts: dict[bytes, tuple[str, str]] = {}
        self._sent: Counter[bytes] = Counter()
        self._kill_at = ""
        self._nested = False
        self._ledgers: list[Ledger] = []
        self._every = self.chance.choice([1, 1, 1, 3])
        """A checkpoint at every so many commits; what came after the last one may be lost."""
        self._left_out = False
        """Whether a worker was killed who perhaps left a commit out of the checkpoint."""

    def run(self) -> None:
        """Live through it."""
        try:
            self._open()
            self._backup = self._site.backup()
            for _ in range(self._steps):
                what = self.chance.random()
                if what < 0.5:
                    self._ask()
                elif what < 0.62:
                    self._reserve()
                elif what < 0.78:
                    self._deliver()
                elif what < 0.82:
                    self.chance.choice(list(self._devices.values())).restore()
                elif what < 0.86:
                    self._ledgers[0].register(self.chance.sample(SUBJECTS, 3))
                elif what < 0.9:
                    self._backup = self._site.backup()
                elif what < 0.93:
                    self._restore()
                else:
                    self._reopen()
            self._reopen()
            self._check(last=True)
            if self.chance.random() < 0.3:
                self._damage()
        finally:
            self._site.disarm()
            self._site.kill()
            self._close()
            self._site.end()

    def _open(self) -> None:
        for number in range(self._site.workers):
            self._ledgers.append(self._opened(number))
        self._left_out = False

    def _opened(self, number: int) -> Ledger:
        backend = self._site.backend(number)
        try:
            return Ledger.on(
                backend,
                self._site.place(),
                every=self._every,
                source=self._source,
                step=self._step if not number else lambda name: None,
            )
        except BaseException:
            backend.close()
            raise

    def _close(self) -> None:
        for ledger in self._ledgers:
            ledger._core.backend.close()
        self._ledgers = []

    def _reopen(self) -> None:
        """The process ends, perhaps the system too, and starts again: nothing may be missing."""
        self._site.disarm()
        if self.chance.random() < 0.5:
            self._site.lose_power(self.chance)
        else:
            self._site.kill()
        self._close()
        try:
            self._open()
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a crash: {error}") from None
        self._check()

    def _step(self, name: str) -> None:
        if name == self._kill_at:
            raise Killed
        crowded = self._site.workers > 1 and name in ("decided", "drawn")
        if crowded and not self._nested and self.chance.random() < 0.4:
            self._nested = True
            try:
                self._ask(worker=1)
            finally:
                self._nested = False

    def _ask(self, worker: int = 0) -> None:
        key, text = self._request()
        here = self._ledgers[worker].subjects
        if self.chance.random() < 0.5 or not {*self._lately} <= {*here}:
            self._lately = self.chance.sample(here, self.chance.randint(1, 3))
        names = self._lately
        values = [self._values[SUBJECTS.index(name)] for name in names]
        fault = "" if self._nested or self.chance.random() < 0.6 else self._arm()
        try:
            replies = self._ledgers[worker].ask(QUERIES[text], values, names, key=key)
        except InvalidInput as error:
            must("open reservation" in str(error), f"a good request is refused: {error}")
            self._site.disarm()
            self._kill_at = ""
        except Killed:
            if self._site.workers > 1 and (self.kind == "file" or self.chance.random() < 0.7):
                self._one_dies(key, text, names, values)
            else:
                self._crashed("power" if fault == "power" else "kill")
        except LedgerStopped:
            must(bool(fault), "stopped without a reason")
            self._crashed(self.chance.choice(["kill", "power"]))
        else:
            # The very moment of release: what is armed may still go off.
            self._take_down(names, key, text, replies)
            if fault:
                self._crashed("power" if fault == "power" else "kill")

    def _take_down(self, names: list[Any], key: str, text: str, replies: Any) -> None:
        """What was released."""
        for name, answered, response in zip(
            names, replies.answered.tolist(), replies.responses, strict=True
        ):
            self._released(name, key, text, response if answered else REFUSED)

    def _one_dies(self, key: str, text: str, names: list[Any], values: list[Any]) -> None:
        """One worker is killed. The other one goes on, and perhaps answers its request."""
        self._kill_at, self._left_out, self._nested = "", True, True
        self._site.disarm()
        self._ledgers[0]._core.backend.close()
        if self.chance.random() < 0.8:
            try:
                replies = self._ledgers[1].ask(QUERIES[text], values, names, key=key)
                self._take_down(names, key, text, replies)
            except InvalidInput as error:
                must("open reservation" in str(error), f"a good request is refused: {error}")
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            self._ask(worker=1)
        self._nested = False
        if self.chance.random() < 0.5:
            self._restore()
            return
        try:
            self._ledgers[0] = self._opened(0)
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a worker was killed: {error}") from None
        self._left_out = False
        self._check()

    def _request(self) -> tuple[str, str]:
        if self._keys and self.chance.random() < 0.35:
            key = self.chance.choice(list(self._keys))
        else:
            key = f"k{len(self._keys)}"
        return key, self._keys.setdefault(key, self.chance.choice(EPSILONS))

    def _arm(self) -> str:
        if self.chance.random() < (0.4 if self._site.workers == 1 else 0.7):
            self._kill_at = self.chance.choice((*STEPS, "committed", "committed"))
            return self.chance.choice(["kill", "power"])
        return str(self._site.arm(self.chance))

    def _crashed(self, how: str) -> None:
        self._kill_at = ""
        self._site.disarm()
        if how == "power":
            self._site.lose_power(self.chance)
        else:
            self._site.kill()
        self._close()
        try:
            self._open()
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a crash: {error}") from None
        self._check()

    def _released(self, name: Any, key: str, text: str, response: Any) -> None:
        before = self._known.setdefault((name, key), (text, response))
        must(before == (text, response), f"the key {key} of {name} has two outcomes")

    def _reserve(self) -> None:
        key, text = self._request()
        name = self.chance.choice(self._ledgers[0].subjects)
        known = self._known.get((name, key))
        try:
            (found,) = self._ledgers[0].reserve(QUERIES[text], [name], key=key)
        except InvalidInput as error:
            must("open reservation" in str(error), f"a good request is refused: {error}")
            return
        if found is None:
            self._released(name, key, text, REFUSED)
            return
        if known is not None:
            must(known[1] != REFUSED, f"the refused key {key} of {name} was reserved")
            return  # it was asked before, and answered
        message, _ = self._devices[name].answer(found)
        self._network.append(message)
        if self.chance.random() < 0.2:
            self._network.append(message)

    def _deliver(self) -> None:
        if not self._network:
            return
        place = self.chance.randrange(len(self._network))
        message = self._network[place]
        if self.chance.random() < 0.8:
            del self._network[place]
        (receipt,) = self._ledgers[0].receive([message])
        said = (receipt.outcome, receipt.head)
        tree = json.loads(message)
        if receipt.outcome == "recorded":
            text = next(t for t, q in QUERIES.items() if q.content_id == tree["query"])
            self._released(tree["subject"], tree["key"], text, tree["response"])
        must(self._receipts.setdefault(message, said) == said, "a message has two receipts")

    def _restore(self) -> None:
        """A backup takes the place of the database; the checkpoint stays."""
        last = Checkpoint(self._site.place(), POLICY.content_id, 1).last()
        assert last is not None
        if self._every > 1:
            self._forget_window(last.commits)
        self._site.kill()
        self._close()
        self._site.restore(self._backup)
        left_out = self._left_out or (self._every > 1 and self._site.workers > 1)
        try:
            self._open()
        except Behind:
            self._close()
            self._recover(left_out)
            self._open()
            self._forget_lost()
        except (LedgerStopped, InvalidInput) as error:
            raise Violation(f"cannot be opened after a restore: {error}") from None
        else:
            must(self._ledgers[0].tip.commits >= last.commits, "a rollback went unnoticed")
        self._check()
        self._backup = self._site.backup()

    def _recover(self, left_out: bool) -> None:
        """Close whoever is concerned; if nobody knows who that is, everybody."""
        try:
            closed = Ledger.recover_on(self._site.backend(), self._site.place())
        except InvalidInput as error:
            must("close everybody" in str(error) and left_out, f"cannot be recovered: {error}")
            backend = self._site.backend()
            closed = Ledger.recover_on(backend, self._site.place(), everybody=True)
        must(set(closed) <= set(SUBJECTS), "somebody else was closed")

    def _forget_window(self, commits: int) -> None:
        """What came after the last checkpoint may be lost, and nobody notices."""
        ledger = self._ledgers[-1]
        names = ledger.subjects
        for row in ledger._core.backend.rows():
            if row.commit > commits:
                self._known.pop((names[row.subject - 1], row.key), None)
        self._receipts.clear()

    def _forget_lost(self) -> None:
        """Who lost an exchange must be closed; what was lost is not expected any more."""
        rows, closed = self._rows(), self._closed()
        for (name, key), (_, response) in list(self._known.items()):
            if (name, key) not in rows:
                must(response == REFUSED or name in closed, f"{name} lost an exchange and goes on")
                del self._known[name, key]
        for message, (outcome, _) in list(self._receipts.items()):
            name = json.loads(message)["subject"]
            if outcome == "kept" or (name, json.loads(message)["key"]) not in rows:
                del self._receipts[message]

    def _damage(self) -> None:
        """A bit is flipped, or a file is cut: somebody notices, or nothing has changed."""
        recorded = self._given()
        self._site.kill()
        self._close()
        if not self._site.damage(self.chance):
            return
        self._nested = True  # one worker is enough
        try:
            self._open()
            if self.chance.random() < 0.5:
                self._repeat_all()
            must(self._given() == recorded, "answers are not those that were recorded")
            for number, name in enumerate(self._ledgers[0].subjects):
                if self.chance.random() < 0.5:
                    values = [self._values[SUBJECTS.index(name)]]
                    self._ledgers[0].ask(QUERIES["1/4"], values, [name], key=f"after {number}")
            if self._ledgers[0].verify().good:
                self._check()
        except (LedgerStopped, InvalidInput):
            return

    def _repeat_all(self) -> None:
        """Whatever is asked again is what was released the first time."""
        known = list(self._known.items())
        for (name, key), (text, released) in self.chance.sample(known, len(known)):
            values = [self._values[SUBJECTS.index(name)]]
            replies = self._ledgers[0].ask(QUERIES[text], values, [name], key=key)
            again = replies.responses[0] if replies.answered[0] else REFUSED
            must(again == released, f"{name} {key}: something else is released")

    def _given(self) -> dict[Any, list[tuple[str, Any]]]:
        """All answers, as an analyst gets them."""
        if not self._ledgers[0].status().exchanges.any():
            return {}
        answers = self._ledgers[0].answers()
        return {
            name: [
                (each.query.content_id, each.response)
                for each in answers.transcript(name).exchanges
            ]
            for name in answers.subjects
        }

    def _rows(self) -> dict[tuple[Any, str], tuple[str, Any]]:
        """What the ledger has recorded, by subject and key."""
        core = self._ledgers[0]._core
        core.learn()
        names = self._ledgers[0].subjects
        result: dict[tuple[Any, str], tuple[str, Any]] = {}
        for row in core.backend.rows():
            name = names[row.subject - 1]
            must((name, row.key) not in result, "a request is recorded twice")
            query = core.words.query(row.query)
            response: Any = REFUSED
            if row.response > 0:
                response = json.loads(core.words.response(row.response).response)
            result[name, row.key] = (str(query.epsilon), response)
        return result

    def _closed(self) -> set[Any]:
        status = self._ledgers[0].status()
        closed = zip(status.subjects, status.closed.tolist(), strict=True)
        return {name for name, shut in closed if shut}

    def _check(self, last: bool = False) -> None:
        """All that must hold."""
        ledger, rows = self._ledgers[0], self._rows()
        for (name, key), outcome in self._known.items():
            found = rows.get((name, key))
            must(found is not None, f"{name} {key}: released and not recorded")
            must(found == outcome, f"{name} {key}: recorded as something else")
        if last or self.chance.random() < 0.2:  # which takes longer than all the rest
            verified = ledger.verify()
            must(verified.good, str(verified))
        for name in ledger.subjects:
            self._check_budget(name, ledger.transcript(name))
        kept = {bytes(each.message) for each, _ in ledger._core.backend.kept()}
        for message, (said, _) in self._receipts.items():
            must(said != "kept" or message in kept, "a message that was kept is not there")

    def _check_budget(self, name: Any, transcript: xp.Transcript) -> None:
        """Every prefix, by the formula of randomized response."""
        logs: dict[Any, float] = dict.fromkeys(VALUES, 0.0)
        for exchange in transcript.exchanges:
            assert exchange.query.epsilon is not None
            logs[exchange.response] += float(exchange.query.epsilon)
            loss = max(logs.values()) - min(logs.values())
            must(loss <= BUDGET + 1e-9, f"{name} is over the budget: {loss}")


def played(seed: int, kind: str | None = None) -> str:
    """Play a seed, and say in which kind of world."""
    names = list(KINDS)
    # Six of ten on the disk that fails, three in memory, one on a real file.
    kind = kind or names[(0, 0, 0, 0, 0, 0, 1, 1, 1, 2)[seed % 10]]
    World(seed, kind).run()
    return kind
