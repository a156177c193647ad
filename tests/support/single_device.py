"""A device of a subject, and the answers of a ledger to its requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expost.device.device import Device

__all__ = [
    "POLICY",
    "QUERY",
    "a_device",
    "answer",
    "answered",
    "message_in",
    "reservation",
    "reserving",
    "synced",
]

POLICY = {
    "version": 1,
    "study": "Smoking in the north",
    "nonce": "00112233445566778899aabbccddeeff",
    "domain": {"values": ["sehr geheim", "no", "yes"]},
    "filter": {"kind": "bayesian", "epsilon": "1"},
}
QUERY = {"kind": "randomized_response", "epsilon": "0.5"}


def a_device(tmp_path: Path, policy: Any = POLICY, value: str = '"sehr geheim"') -> Device:
    path = str(tmp_path / "store")
    Device.create(path, json.dumps(policy), "ann", value)
    return Device(path)


def reservation(ann: Any, query: Any = QUERY, **other: Any) -> dict[str, Any]:
    """The reservation of the exchange that follows a device's own record."""
    fields = {
        "ledger": ann.policy.id,
        "subject": ann.subject,
        "sequence": len(ann.heads),
        "previous": ann.heads[-1],
        "key": f"week {len(ann.heads)}",
        "query": query,
        "ticket": f"{len(ann.heads):064x}",
    }
    return {**fields, **other}


def answer(ann: Any, request: str, confirmed: int | None = None, **other: Any) -> str:
    """The answer to a request by a ledger that has recorded so many exchanges, or all of them."""
    known = len(ann.heads) - 1 if confirmed is None else confirmed
    fields = {
        "ledger": ann.policy.id,
        "subject": ann.subject,
        "nonce": json.loads(request)["nonce"],
        "confirmed": known,
        "head": ann.heads[known] if known < len(ann.heads) else "0" * 64,
        "state": "active",
        "receipts": [],
        "reservation": None,
    }
    return json.dumps({**fields, **other})


def reserving(ann: Any, query: Any = QUERY, **other: Any) -> str:
    """An answer to a new request, with a reservation."""
    return answer(ann, ann.sync(), reservation=reservation(ann, query, **other))


def message_in(request: str) -> dict[str, Any]:
    """The only message in a request."""
    (message,) = json.loads(request)["messages"]
    found: dict[str, Any] = json.loads(message)
    return found


def answered(ann: Any, query: Any = QUERY, **other: Any) -> dict[str, Any]:
    """The message that a device sends for a reservation of a query."""
    return message_in(ann.take(reserving(ann, query, **other)))


def synced(ann: Device, ledger: Any, send: Callable[[str], None] = lambda _: None) -> int:
    """Let a device and a ledger talk until there is nothing more to send; return the requests.

    ``send`` is called with every request.
    """
    request, count = ann.sync(), 0
    while request:
        send(request)
        (reply,) = ledger.sync([request])
        request, count = ann.take(reply.to_json()), count + 1
    return count
