"""Random conversations of a device with a ledger, and random tickets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from conformance.sync_model import Bytes, Model
from support.random_documents import Tree, draw_subject

__all__ = ["CONVERSATIONS", "conversation", "conversations", "tickets"]

DOMAINS: list[tuple[Tree, Tree]] = [
    ({"values": ["no", "yes", "größer", "\U0001f600"]}, {}),
    ({"values": [0, 1, 2.5]}, {}),
    (
        {"attributes": {"\uff5a": ["a", "b"], "\U0001d54f": [1, 2, 3], "region": ["n", "s"]}},
        {"about": ["\U0001d54f", "\uff5a"]},
    ),
]
GREEDY: Tree = {"kind": "randomized_response", "epsilon": "50"}


def tickets(rng: Random) -> Tree:
    return {
        "ticket_key": rng.randbytes(32).hex(),
        "ledger": rng.randbytes(32).hex(),
        "subject": draw_subject(rng),
        "sequence": rng.choice([1, 2, 41, 10**6]),
        "previous": rng.randbytes(32).hex(),
        "query": rng.randbytes(32).hex(),
        "key": rng.choice(["week 1", "größe", "0x12", "'", "\U0001f600"]),
    }


class Ledger:
    """What answers are made of: the record of a device, as a model has it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        domain, self.about = rng.choice(DOMAINS)
        value = domain["values"][1] if "values" in domain else None
        kind = rng.choice(["basic", "simplified", "bayesian"])
        self.given: Tree = {
            "policy": {
                "version": 1,
                "study": "Smoking in the north",
                "nonce": rng.randbytes(16).hex(),
                "domain": domain,
                "filter": {"kind": kind, "epsilon": "10"},
            },
            "subject": draw_subject(rng),
            "value": value or {"\uff5a": "b", "\U0001d54f": 2, "region": "n"},
            "bytes": rng.randbytes(400).hex(),
            "exchanges": [],
        }

    def query(self) -> Tree:
        epsilon = self.rng.choice(["1/2", "1", "1/4"])
        kinds: list[Tree] = [
            {"kind": "randomized_response", "epsilon": epsilon},
            {"kind": "unary_encoding", "variant": "optimized", "epsilon": epsilon},
            {"kind": "local_hashing", "seed": "5eed", "buckets": 3, "epsilon": epsilon},
        ]
        return {**self.rng.choice(kinds), **self.about}

    def exchange(self, query: Tree | None = None) -> Tree:
        key, ticket = f"key {self.rng.getrandbits(32)}", self.rng.randbytes(32).hex()
        return {"key": key, "query": query or self.query(), "ticket": ticket}

    def store(self, count: int) -> None:
        """Let the device have so many exchanges."""
        self.given["exchanges"] = [self.exchange() for _ in range(count)]
        self.model = Model(self.given, Bytes(bytes.fromhex(self.given["bytes"])))
        for exchange in self.given["exchanges"]:
            self.model.answer(self.reservation(exchange))

    def reservation(self, exchange: Tree) -> Tree:
        place = {"sequence": len(self.model.heads), "previous": self.model.heads[-1]}
        return {**self.model.names, **exchange, **place}

    def answer(self, confirmed: int, reserved: Tree | None = None, **other: object) -> Tree:
        head = {"head": other.pop("head", None) or self.model.heads[confirmed]}
        state = {"confirmed": confirmed, **head, "state": "active", "receipts": []}
        return {**self.model.names, **state, "reservation": reserved, **other}


Answers = list[tuple[int | None, Tree]]


def nothing_to_do(ledger: Ledger) -> Answers:
    ledger.store(ledger.rng.choice([0, 0, 2]))
    return [(0, ledger.answer(len(ledger.model.messages)))]


def missing_messages(ledger: Ledger) -> Answers:
    ledger.store(4)
    confirmed = ledger.rng.choice([0, 0, 1, 2, 3])
    later = ledger.answer(4, ledger.reservation(ledger.exchange()))
    return [(0, ledger.answer(confirmed)), (1, later)]


def not_recorded(ledger: Ledger) -> Answers:
    ledger.store(3)
    receipt = {**ledger.model.names, "outcome": "quarantined", "sequence": 3, "key": "k"}
    receipts = [{**receipt, "reason": "the ticket is not of this ledger"}]
    return [(0, ledger.answer(1)), (1, ledger.answer(2, receipts=receipts))]


def old_copy(ledger: Ledger) -> Answers:
    ledger.store(ledger.rng.choice([0, 2]))
    more = len(ledger.model.messages) + ledger.rng.randint(1, 3)
    return [(0, ledger.answer(more, head=ledger.rng.randbytes(32).hex()))]


def fork(ledger: Ledger) -> Answers:
    ledger.store(2)
    confirmed = ledger.rng.randint(1, 2)
    reserved = ledger.reservation(ledger.exchange())
    return [(0, ledger.answer(confirmed, reserved, head=ledger.rng.randbytes(32).hex()))]


def stale_nonce(ledger: Ledger) -> Answers:
    ledger.store(2)
    answer = ledger.answer(2, ledger.reservation(ledger.exchange()))
    return [(None, answer)]


def repeated_answer(ledger: Ledger) -> Answers:
    ledger.store(1)
    reserved = ledger.reservation(ledger.exchange())
    first = ledger.rng.choice([reserved, None])
    return [(0, ledger.answer(1, first)), (0, ledger.answer(1, reserved))]


def another_number(ledger: Ledger) -> Answers:
    ledger.store(1)
    reserved = ledger.reservation(ledger.exchange())
    return [(0, ledger.answer(1, {**reserved, "sequence": ledger.rng.choice([1, 3])}))]


def another_head(ledger: Ledger) -> Answers:
    ledger.store(1)
    reserved = ledger.reservation(ledger.exchange())
    previous = ledger.rng.choice([ledger.model.heads[0], "0" * 64])
    return [(0, ledger.answer(1, {**reserved, "previous": previous}))]


def answered(ledger: Ledger) -> Answers:
    ledger.store(ledger.rng.choice([0, 2]))
    own = len(ledger.model.messages)
    reserved = ledger.reservation(ledger.exchange())
    first = ledger.answer(own, reserved)
    ledger.model.answer(reserved)
    return [(0, first), (1, ledger.answer(own + 1))]


def declined(ledger: Ledger) -> Answers:
    """A declined reservation that comes once more."""
    ledger.store(1)
    about = ledger.rng.choice([ledger.about, {"about": ["nowhere"]}])
    answer = ledger.answer(1, ledger.reservation(ledger.exchange({**GREEDY, **about})))
    return [(0, answer), (1, answer)]


def declined_key_again(ledger: Ledger) -> Answers:
    """A declined reservation, then its key with another query, at the same number."""
    ledger.store(1)
    reserved = ledger.reservation(ledger.exchange({**GREEDY, **ledger.about}))
    other = {"query": ledger.query(), "ticket": ledger.rng.randbytes(32).hex()}
    return [(0, ledger.answer(1, reserved)), (1, ledger.answer(1, {**reserved, **other}))]


CONVERSATIONS: list[Callable[[Ledger], Answers]] = [
    nothing_to_do, missing_messages, not_recorded, old_copy, fork, stale_nonce, repeated_answer,
    another_number, another_head, answered, declined, declined_key_again,
]  # fmt: skip


def conversation(play: Callable[[Ledger], Answers]) -> Callable[[Random], Tree]:
    """A function that makes cases of one kind."""

    def make(rng: Random) -> Tree:
        ledger = Ledger(rng)
        answers = [{"to": number, "answer": answer} for number, answer in play(ledger)]
        return {**ledger.given, "answers": answers}

    make.__name__ = play.__name__
    return make


def conversations(rng: Random) -> Tree:
    """The stored exchanges of a device, and answers to its requests, which count from 0."""
    return conversation(rng.choice(CONVERSATIONS))(rng)
