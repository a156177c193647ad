"""The digests of a ledger: a chain for each subject, and one of all commits.

The format is in docs/reference/ledger.md; devices and checkers compute the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from expost.answers import Subject
from expost.files.canonical import canonical

__all__ = ["first_head", "first_root", "link", "next_head", "next_heads", "next_root"]


def first_head(policy_id: str, subject: Subject) -> bytes:
    """The head of a subject who answered nothing so far."""
    tree = {"ledger": 1, "policy": policy_id, "subject": subject}
    return hashlib.sha256(canonical(tree)).digest()


def link(query_id: str, response: object) -> bytes:
    """What the exchanges with one query and one response have in common, for :func:`next_head`."""
    return canonical({"query": query_id, "response": response})[:-1] + b',"sequence":'


def next_head(previous: bytes, shared: bytes, sequence: int) -> bytes:
    """The head after exchange number ``sequence``.

    This is the digest of a canonical tree, which has its keys in this order, and the head before.
    """
    return next_heads((previous,), (shared,), (sequence,))[0]


def next_heads(
    previous: Iterable[bytes], shared: Iterable[bytes], sequences: Iterable[int]
) -> list[bytes]:
    """The same for many subjects, in columns."""
    begun: dict[tuple[bytes, int], Any] = {}  # few, for many say the same in a round
    result = []
    for head, said, number in zip(previous, shared, sequences, strict=True):
        start = begun.get((said, number))
        if start is None:
            start = begun[said, number] = hashlib.sha256(b"%b%d}" % (said, number))
        whole = start.copy()
        whole.update(head)
        result.append(whole.digest())
    return result


def first_root(policy_id: str) -> bytes:
    """The root before the first commit."""
    return hashlib.sha256(canonical({"ledger": 1, "policy": policy_id})).digest()


def next_root(previous: bytes, lines: Iterable[bytes]) -> bytes:
    """The root after a commit of these lines."""
    whole = hashlib.sha256(previous.hex().encode() + b"\n")
    whole.update(b"".join(sorted(lines)))
    return whole.digest()
