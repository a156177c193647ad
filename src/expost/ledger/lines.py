"""What the root of a commit is a digest of: lines about everything that it adds.

The format is in docs/reference/ledger.md.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping

import numpy as np

from expost.ledger.records import Answered, Change, Kept, QueryWord

__all__ = [
    "END",
    "answers",
    "closed",
    "declined",
    "exchange",
    "kept",
    "lines_of",
    "query",
    "refused",
    "reserved",
    "subject",
]

END = b"end\n"

exchange = struct.Struct(">QQ32s").pack
"""The number of a subject, of its exchange, and the head after it; in order as bytes, too."""

_EXCHANGE = np.dtype([("subject", ">u8"), ("sequence", ">u8"), ("head", "V32")])
# Up to so many exchanges, each by itself takes less than all together.
_FEW = 24


def answers(key: str, exchanges: Iterable[bytes]) -> bytes:
    """All exchanges under one key; by a digest, for there may be very many."""
    digest = hashlib.sha256(b"".join(sorted(exchanges))).hexdigest()
    return f"answers {digest} {json.dumps(key)}\n".encode()


def _exchanges(answered: Answered) -> Iterable[bytes]:
    """Those of a commit, in which nobody is twice."""
    subjects, after = answered.subjects, answered.after
    if len(answered) <= _FEW:
        return map(exchange, subjects, after.sequence, after.digest)
    rows, numbers = np.empty(len(answered), dtype=_EXCHANGE), answered.numbers
    rows["subject"], rows["sequence"] = numbers, after.sequences
    rows["head"] = np.frombuffer(after.digest.whole, dtype="V32")
    if (np.diff(numbers) <= 0).any():
        rows = rows[np.argsort(numbers)]
    return [rows.tobytes()]


def closed(number: int) -> bytes:
    return b"closed %d\n" % number


def declined(number: int, query_id: str, key: str) -> bytes:
    return f"declined {number} {query_id} {json.dumps(key)}\n".encode()


def refused(number: int, query_id: str, key: str) -> bytes:
    return f"refused {number} {query_id} {json.dumps(key)}\n".encode()


def reserved(number: int, sequence: int, query_id: str, key: str) -> bytes:
    return f"reserved {number} {sequence} {query_id} {json.dumps(key)}\n".encode()


def kept(message: Kept) -> bytes:
    reason = json.dumps(message.reason)
    return f"kept {message.subject} {message.digest} {reason}\n".encode()


def query(word: QueryWord) -> bytes:
    """A content id stands for the document."""
    return f"query {word.content_id} {json.dumps(word.name)}\n".encode()


def subject(number: int, name: str) -> bytes:
    return f"subject {number} {name}\n".encode()


def lines_of(change: Change, query_ids: Mapping[int, str]) -> list[bytes]:
    """The lines of a commit."""
    added = Answered.of(change.answers)
    by_key: dict[str, list[bytes]] = {key: [] for key in dict.fromkeys(added.keys)}
    if len(by_key) == 1:  # a round
        by_key[added.keys[0]] += _exchanges(added)
    else:
        packed = map(exchange, added.subjects, added.after.sequence, added.after.digest)
        for key, each in zip(added.keys, packed, strict=True):
            by_key[key].append(each)
    result = [answers(key, own) for key, own in by_key.items()]
    result += map(closed, added.closing)
    result += [refused(move.subject, query_ids[move.query], move.key) for move in change.refused]
    result += [declined(move.subject, query_ids[move.query], move.key) for move in change.declined]
    result += [
        reserved(move.subject, move.before.sequence + 1, query_ids[move.query], move.key)
        for move in change.reserved
    ]
    result += [closed(move.subject) for move in change.closed]
    result += map(kept, change.kept)
    result += map(query, change.queries)
    result += [subject(number, name) for number, name, _ in change.subjects]
    return [*result, END] if change.end else result
