"""Devices whose responses a test chooses, and a small study for them.

A phone knows the protocol and nothing of the package: it computes its chain itself.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import expost as xp
from expost.ledger import Ledger, Receipt

__all__ = [
    "HALF",
    "OTHER",
    "QUARTER",
    "SMOKES",
    "ScriptedDevice",
    "a_ledger",
    "reserved",
    "restore",
]

SMOKES = xp.FiniteSet(["no", "yes"])
HALF = xp.randomized_response(epsilon="1/2")
QUARTER = xp.randomized_response(epsilon="1/4")
OTHER = xp.randomized_response(epsilon="1/8")


def a_ledger(folder: Path, budget: Any = 1, **options: Any) -> Ledger:
    """Return a new ledger in the file ``study.db`` of a folder."""
    guard = xp.BayesianFilter(epsilon=budget)
    return Ledger.create(folder / "study.db", SMOKES, filter=guard, **options)


def reserved(ledger: Ledger, query: Any, subjects: Any = None, key: str | None = None) -> list[str]:
    """Reserve, and return the outcomes."""
    return [outcome.outcome for outcome in ledger.reserve(query, subjects, key=key)]


def restore(backup: Path, place: Path) -> None:
    """Put a backup where a database is, as an operator would."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{place}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(backup, place)


class ScriptedDevice:
    """A device: the messages it has sent, and the head after each of them."""

    def __init__(self, ledger: Ledger, subject: Any = "ann") -> None:
        self.ledger_id, self.subject = ledger.policy.content_id, subject
        start = f'{{"ledger":1,"policy":"{self.ledger_id}","subject":{json.dumps(subject)}}}'
        self.heads = [hashlib.sha256(start.encode()).hexdigest()]
        self.sent: list[str] = []
        self.documents: dict[str, Any] = {}

    def request(self, messages: Any = (), **changed: Any) -> str:
        """Return a sync request."""
        fields = {
            "ledger": self.ledger_id,
            "subject": self.subject,
            "sequence": len(self.sent),
            "head": self.heads[-1],
            "nonce": "00" * 16,
            "messages": [*messages],
            "queries": self.documents if messages else {},
        }
        return json.dumps({**fields, **changed})

    def sync(self, ledger: Ledger, messages: Any = (), **changed: Any) -> dict[str, Any]:
        """Send a request, and return the answer."""
        (answer,) = ledger.sync([self.request(messages, **changed)])
        found: dict[str, Any] = json.loads(answer.to_json())
        return found

    def catch_up(self, ledger: Ledger) -> dict[str, Any]:
        """Sync until the ledger has everything; return the last answer."""
        answer = self.sync(ledger)
        while answer["confirmed"] < len(self.sent):
            before = answer["confirmed"]
            answer = self.sync(ledger, self.sent[before:])
            assert answer["confirmed"] > before, answer
        return answer

    def reservation(self, ledger: Ledger) -> dict[str, Any]:
        """Fetch the open reservation."""
        found: dict[str, Any] = self.sync(ledger)["reservation"]
        assert found is not None, "nothing is reserved"
        return found

    def message(
        self, reservation: dict[str, Any], asked: Any = HALF, response: Any = "yes", **changed: Any
    ) -> str:
        """Return the message that answers a reservation. None removes a field."""
        said = f'{{"query":"{asked.content_id}","response":"{response}",'
        said += f'"sequence":{reservation["sequence"]}}}'
        before = bytes.fromhex(reservation["previous"])
        fields = {
            **{name: value for name, value in reservation.items() if name != "query"},
            "query": asked.content_id,
            "response": response,
            "head": hashlib.sha256(said.encode() + before).hexdigest(),
            **changed,
        }
        return json.dumps({name: x for name, x in fields.items() if x is not None})

    def declined(self, reservation: dict[str, Any], query: Any = HALF) -> str:
        return self.message(reservation, query, response=None, head=None, declined=True)

    def store(self, message: str, document: Any = None) -> str:
        """Make a message part of this device's record."""
        fields = json.loads(message)
        self.sent.append(message)
        self.heads.append(fields["head"])
        if document is not None:
            self.documents[fields["query"]] = document
        return message

    def answer(self, ledger: Ledger, query: Any = HALF, response: str = "yes") -> str:
        """Answer the open reservation, store the message, and return it unsent."""
        reservation = self.reservation(ledger)
        return self.store(self.message(reservation, query, response), reservation["query"])

    def send(self, ledger: Ledger, query: Any = HALF, response: str = "yes") -> Receipt:
        """Answer the open reservation, and send the message."""
        (receipt,) = ledger.receive([self.answer(ledger, query, response)])
        assert receipt.outcome == "recorded", receipt
        return receipt
