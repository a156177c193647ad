"""A model of a subject's device, which follows the protocol, and the budget by a formula.

It shares nothing with ``expost.device``, and draws what a seed says. A real device has the same
methods here: :class:`RealDevice`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import expost as xp
from expost.device.device import Device, Refused
from expost.ledger._catalog import query_document
from expost.ledger._digests import chain_prefix, first_head, next_head

__all__ = [
    "BUDGET",
    "QUERIES",
    "UNITS",
    "VALUES",
    "Drawn",
    "ModelDevice",
    "RealDevice",
    "Refused",
    "fits",
    "within_budget",
]

VALUES = ("a", "b", "c")
QUERIES = {text: xp.randomized_response(epsilon=text) for text in ("1/4", "1/2", "3/10")}
UNITS = {"1/4": 5, "1/2": 10, "3/10": 6}
"""The epsilons of these queries, in twentieths."""
BUDGET = 20
BY_ID = {query.content_id: text for text, query in QUERIES.items()}
_DOCUMENTS = {text: json.loads(query_document(query)) for text, query in QUERIES.items()}

Exchange = tuple[str, str]
"""The epsilon of a query, and a response."""


def losses(exchanges: Sequence[Exchange]) -> dict[str, int]:
    """Return the log-likelihood of each value, in twentieths, up to a constant."""
    logs = dict.fromkeys(VALUES, 0)
    for text, response in exchanges:
        logs[response] += UNITS[text]
    return logs


def within_budget(exchanges: Sequence[Exchange]) -> bool:
    """Return whether every prefix is within the budget, by the formula of randomized response."""
    return all(
        max(logs.values()) - min(logs.values()) <= BUDGET
        for logs in (losses(exchanges[: end + 1]) for end in range(len(exchanges)))
    )


def fits(exchanges: Sequence[Exchange], text: str, charge: int = 0) -> bool:
    """Return whether a query is within the budget after exchanges, whatever the response.

    ``charge`` is the sum of the epsilons of extras.
    """
    logs = losses(exchanges)
    for response in VALUES:
        after = {**logs, response: logs[response] + UNITS[text]}
        if max(after.values()) - min(after.values()) + charge > BUDGET:
            return False
    return True


class Drawn(NamedTuple):
    """An exchange that a device has stored."""

    message: str
    #: The epsilon of the query.
    text: str
    response: str
    head: str


@dataclass
class ModelDevice:
    """A device without a disk."""

    subject: Any
    ledger: str
    chance: random.Random
    #: Queries that it declines, because it does not know their kind.
    unknown: frozenset[str] = frozenset()
    stored: list[Drawn] = field(default_factory=list)
    old_copy: bool = False
    nonce: str = ""
    offered: frozenset[int] = frozenset()
    declined: str = ""

    def backup(self) -> Any:
        return list(self.stored)

    def restore(self, backup: Any) -> None:
        self.stored = list(backup)
        self.restart()

    def restart(self) -> None:
        """Lose everything that is only in memory."""
        self.old_copy, self.nonce, self.offered, self.declined = False, "", frozenset(), ""

    def close(self) -> None:
        pass

    def head(self, number: int) -> str:
        if number:
            return self.stored[number - 1].head
        return first_head(self.ledger, self.subject).hex()

    def sync(self) -> str:
        self.declined = ""
        return self._request([])

    def _request(self, messages: Sequence[str]) -> str:
        self.nonce = f"{self.chance.getrandbits(128):032x}"
        trees = [json.loads(message) for message in messages]
        recorded = [tree for tree in trees if "head" in tree]
        self.offered = frozenset(tree["sequence"] for tree in recorded)
        return json.dumps(
            {
                "ledger": self.ledger,
                "subject": self.subject,
                "sequence": len(self.stored),
                "head": self.head(len(self.stored)),
                "nonce": self.nonce,
                "messages": list(messages),
                "queries": {tree["query"]: _DOCUMENTS[BY_ID[tree["query"]]] for tree in recorded},
            }
        )

    def is_current(self, answer: dict[str, Any]) -> bool:
        """Return whether an answer is for the latest request; it uses up the nonce."""
        current = self.nonce != "" and answer["nonce"] == self.nonce
        if current:
            self.nonce = ""
        return current

    def take(self, text: str) -> str:
        answer = json.loads(text)
        if (answer["ledger"], answer["subject"]) != (self.ledger, self.subject):
            raise Refused("the answer is not for this device")
        if not self.is_current(answer):
            raise Refused("stale answer")
        own, confirmed, reservation = len(self.stored), answer["confirmed"], answer["reservation"]
        if confirmed > own or self.old_copy:
            return self.found_old(reservation)
        if answer["head"] != self.head(confirmed):
            raise Refused("the ledger has another record of this device")
        if confirmed < own:
            if confirmed + 1 in self.offered:
                raise Refused(f"the ledger did not record number {confirmed + 1}")
            return self._request([each.message for each in self.stored[confirmed:]])
        return "" if reservation is None else self.answer(reservation)

    def found_old(self, reservation: Any) -> str:
        """The ledger has more than this device."""
        self.old_copy = True
        raise Refused("this device is an old copy")

    def answer(self, reservation: dict[str, Any]) -> str:
        """Decide about a reservation, draw, store, and return the request with the message."""
        own, previous = len(self.stored), self.head(len(self.stored))
        if (reservation["sequence"], reservation["previous"]) != (own + 1, previous):
            raise Refused("the reservation does not follow")
        text = next(text for text, tree in _DOCUMENTS.items() if tree == reservation["query"])
        query_id = QUERIES[text].content_id
        message = {**reservation, "query": query_id}
        exchanges = [(each.text, each.response) for each in self.stored]
        if text in self.unknown or not fits(exchanges, text):
            if reservation["ticket"] == self.declined:
                return ""
            request = self._request([json.dumps({**message, "declined": True})])
            self.declined = reservation["ticket"]
            return request
        response = "a" if self.chance.random() < 0.5 else self.chance.choice(VALUES)
        head = next_head(bytes.fromhex(previous), chain_prefix(query_id, response), own + 1).hex()
        sent = json.dumps({**message, "response": response, "head": head})
        self.stored.append(Drawn(sent, text, response, head))
        return self._request([sent])


class RealDevice:
    """The device that the package ships, on a store in a folder."""

    def __init__(self, subject: Any, policy: str, chance: random.Random, folder: Path) -> None:
        self.subject = subject
        self.unknown: frozenset[str] = frozenset()
        self._chance = chance
        self._path = folder / f"device-{subject}"
        Device.create(str(self._path), policy, subject, json.dumps(chance.choice(VALUES)))
        self._device = self._open()

    def _open(self) -> Device:
        return Device(str(self._path), self._chance.randbytes)

    @property
    def stored(self) -> list[Drawn]:
        trees = [(message, json.loads(message)) for message in self._device._sent]
        return [
            Drawn(message, BY_ID[tree["query"]], tree["response"], tree["head"])
            for message, tree in trees
        ]

    def head(self, number: int) -> str:
        return self._device.heads[number]

    def backup(self) -> Any:
        return self._path.read_bytes()

    def restore(self, backup: Any) -> None:
        self._device.close()
        self._path.write_bytes(backup)
        self._device = self._open()

    def restart(self) -> None:
        self._device.close()
        self._device = self._open()

    def close(self) -> None:
        self._device.close()

    def sync(self) -> str:
        return self._device.sync()

    def take(self, text: str) -> str:
        return self._device.take(text)
