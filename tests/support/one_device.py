"""A device of a subject, and what it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from expost.device.device import Device

__all__ = ["POLICY", "QUERY", "a_device", "reservation"]

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


def reservation(ann: Device, query: Any = QUERY, **other: Any) -> str:
    fields = {
        "ledger": ann.policy.id,
        "subject": "ann",
        "sequence": len(ann.heads),
        "previous": ann.heads[-1],
        "key": f"week {len(ann.heads)}",
        "query": query,
    }
    return json.dumps({**fields, **other})
