"""The digests of a ledger: chains of subjects, roots of commits, tickets.

The formats are in docs/reference/ledger.md; devices and checkers compute the same bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from expost.answers import Subject
from expost.files.canonical import canonical_bytes

__all__ = ["Tickets", "chain_prefix", "first_head", "first_root", "next_head", "next_root"]

#: Hexadecimal digits of the digests in a checkpoint.
_SHORT = 16


def first_head(policy_id: str, subject: Subject) -> bytes:
    """Return the head of a chain without exchanges."""
    tree = {"ledger": 1, "policy": policy_id, "subject": subject}
    return hashlib.sha256(canonical_bytes(tree)).digest()


def chain_prefix(query_id: str, response: object) -> bytes:
    """Return the part of the chained bytes that all exchanges with this response share."""
    return canonical_bytes({"query": query_id, "response": response})[:-1] + b',"sequence":'


def next_head(previous: bytes, prefix: bytes, sequence: int) -> bytes:
    """Return the head after exchange number ``sequence``; ``prefix`` is its :func:`chain_prefix`.

    This is the digest of a canonical tree, whose keys are in this order, and of the head before.
    """
    return hashlib.sha256(b"%b%d}%b" % (prefix, sequence, previous)).digest()


def first_root(policy_id: str) -> bytes:
    """Return the root before the first commit."""
    return hashlib.sha256(canonical_bytes({"ledger": 2, "policy": policy_id})).digest()


def next_root(previous: bytes, lines: Iterable[bytes]) -> bytes:
    """Return the root after a commit that adds rows with these lines."""
    digest = hashlib.sha256(previous.hex().encode() + b"\n")
    digest.update(b"".join(sorted(lines)))
    return digest.digest()


@dataclass(frozen=True)
class Tickets:
    """The ticket key of a ledger, and everything that it authenticates.

    A ticket proves that this ledger reserved an exchange, even if its database has forgotten it.
    The same key makes the digests of the checkpoint, which reveal nothing without it.
    """

    policy_id: str
    key: bytes = field(repr=False)

    def ticket(
        self, subject: Subject, sequence: int, previous: str, key: str, query_id: str
    ) -> str:
        """Return the ticket of a reservation."""
        tree = {
            "amendment": None,
            "key": key,
            "ledger": self.policy_id,
            "previous": previous,
            "query": query_id,
            "sequence": sequence,
            "subject": subject,
        }
        return hmac.digest(self.key, canonical_bytes(tree), "sha256").hex()

    def subject_digest(self, name: str) -> str:
        """Return the digest that stands for a subject's name (JSON) in the checkpoint."""
        return self._short_digest("subject", name)

    def import_digest(self, name: str, key: str, query_id: str, response: str) -> str:
        """Return the digest that stands for a recorded import in the checkpoint."""
        return self._short_digest("import", name, key, query_id, response)

    def _short_digest(self, *parts: str) -> str:
        return hmac.digest(self.key, json.dumps(parts).encode(), "sha256").hex()[:_SHORT]
