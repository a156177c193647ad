"""Whom some commits concern and how far they came, as the lines of a checkpoint say it.

A round over many subjects is noted in columns, and put together when a line is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.ledger.packed import Packed
from expost.ledger.ranges import Ranges
from expost.ledger.records import Head, Tip

__all__ = ["CLOSED", "DIGITS", "Reached", "line_of", "said_of", "said_of_commits"]

Ints = NDArray[np.int64]
Place = tuple[int, str]
"""Up to which exchange, and the first digits of the head after it, if that is known."""

DIGITS = 16
"""How many of a head there are; and of the digest of a line."""

CLOSED = "closed"
"""What there is in place of a head for whoever is closed."""

_BYTES = DIGITS // 2
_HEAD = f"V{_BYTES}"
# Numbers of subjects are sorted with those of exchanges below them, which have fewer bits.
_SHIFT = 32
# Before this a line says which commits it is about; after it, who was registered in them.
_SUBJECTS = b', "subjects": '
_NOBODY = b"[]"
# After this it says how far everybody came. No name has it, for its quotes are escaped.
_HEADS = b', "heads": '


def _reached(head: Head) -> Place:
    """How far a subject is, with its head if that is known.

    Whoever was reserved or closed is one farther: a database that has lost that must not go on.
    The two are told apart, for one that has the reservation may have lost the closing.
    """
    if head.closed:
        return head.sequence + 1, CLOSED
    return (head.sequence + 1, "") if head.reserved else (head.sequence, head.digest.hex()[:DIGITS])


class Reached:
    """For whom something was recorded in some commits, and how far they came."""

    __slots__ = ("_answers", "_names", "_others", "_unread", "commits")

    def __init__(self, commits: Ranges | None = None) -> None:
        self._names: dict[int, str] = {}
        self._unread: list[bytes] = []
        """More names, as lines have them."""
        self.commits = commits or Ranges()
        """The commits of which nobody is left out."""
        self._answers: list[tuple[Ints, Ints, bytes]] = []
        """Numbers, sequence numbers and first bytes of heads, in the order of commits."""
        self._others: dict[int, Place] = {}
        """Whoever is reserved or closed."""

    @property
    def names(self) -> dict[int, str]:
        """Of who was registered, as JSON."""
        for written in self._unread:
            self._names.update(_as_json(json.loads(written)))
        self._unread.clear()
        return self._names

    @property
    def written_names(self) -> bytes:
        """The same as a line has it; what one line says of everybody is not read for that."""
        if len(self._unread) == 1 and not self._names:
            return self._unread[0]
        pairs = [f"[{number}, {name}]" for number, name in sorted(self.names.items())]
        return f"[{', '.join(pairs)}]".encode()

    def answered(self, numbers: Ints, sequences: Ints, digests: Packed) -> None:
        """Some have answered: their exchanges have these numbers, and heads after them."""
        if len(numbers):
            heads = np.frombuffer(digests.whole, dtype=np.uint8).reshape(len(numbers), -1)
            self._answers.append((numbers, sequences, heads[:, :_BYTES].tobytes()))

    def moved(self, number: int, head: Head) -> None:
        """Somebody is here now."""
        self._put(number, *_reached(head))

    def _put(self, number: int, sequence: int, heads: str) -> None:
        """Somebody is here, or some neighbours are who answered as often."""
        if heads in ("", CLOSED):
            place = sequence, heads
            # With several processes a line may come after one that knows more.
            self._others[number] = max(place, self._others.get(number, place))
        else:
            count = len(heads) // DIGITS
            columns = np.arange(number, number + count), np.full(count, sequence)
            self._answers.append((*columns, bytes.fromhex(heads)))

    @property
    def largest(self) -> int:
        """The largest number of a subject who is somewhere; 0 if there is nobody."""
        answered = [int(numbers.max()) for numbers, _, _ in self._answers]
        return max([*answered, *self._others], default=0)

    def add(self, more: Reached) -> None:
        """Take in what was recorded later."""
        self._names.update(more._names)
        self._unread += more._unread
        self._answers += more._answers
        for number, place in more._others.items():
            self._put(number, *place)
        for first, last in more.commits:
            self.commits.add(first, last)

    @property
    def places(self) -> dict[int, Place]:
        """Where everybody is."""
        return {
            number + place: (sequence, heads[place * DIGITS : (place + 1) * DIGITS] or heads)
            for number, sequence, heads in self.runs()
            for place in range(max(1, len(heads) // DIGITS))
        }

    def runs(self) -> Iterator[tuple[int, int, str]]:
        """The same, of neighbours who answered as often only the first number, and all heads.

        What somebody answered last counts, or a reservation or closing that is farther.
        """
        numbers, sequences, heads = self._latest()
        others, kept = dict(self._others), np.ones(len(numbers), dtype=np.bool_)
        for place in np.flatnonzero(np.isin(numbers, [*others])).tolist():
            number, answered = (
                int(numbers[place]),
                (int(sequences[place]), heads[place].tobytes().hex()),
            )
            kept[place] = answered > others[number]
            if kept[place]:
                del others[number]
        numbers, sequences, digits = numbers[kept], sequences[kept], heads[kept].tobytes().hex()
        apart = (np.diff(numbers) != 1) | (np.diff(sequences) != 0)
        bounds = [0, *(np.flatnonzero(apart) + 1).tolist(), len(numbers)] if len(numbers) else []
        for start, stop in pairwise(bounds):
            own = digits[start * DIGITS : stop * DIGITS]
            yield int(numbers[start]), int(sequences[start]), own
        for number, (sequence, head) in sorted(others.items()):
            yield number, sequence, head

    def _latest(self) -> tuple[Ints, Ints, NDArray[np.void]]:
        """The last exchange of whoever answered, in the order of their numbers."""
        none = np.zeros(0, dtype=np.int64)
        numbers = np.concatenate([none, *(each for each, _, _ in self._answers)])
        sequences = np.concatenate([none, *(each for _, each, _ in self._answers)])
        order = np.argsort(numbers << _SHIFT | sequences, kind="stable")
        last = order[np.flatnonzero(np.diff(numbers[order], append=0))]
        heads = np.frombuffer(b"".join(each for _, _, each in self._answers), dtype=_HEAD)
        return numbers[last], sequences[last], heads[last]


def line_of(policy_id: str, said: Reached, tip: Tip) -> bytes:
    """All in one line: a loss of power leaves all of it, or what does not count."""
    heads = [f'[{number}, {sequence}, "{head}"]' for number, sequence, head in said.runs()]
    head = {
        "commits": tip.commits,
        "ledger": policy_id,
        "root": tip.root.hex(),
        "covers": list(said.commits),
    }
    begin, end = json.dumps(head)[:-1].encode(), f"[{', '.join(heads)}]}}".encode()
    text = b"".join([begin, _SUBJECTS, said.written_names, _HEADS, end])
    return b"".join([text, b" ", _digest(text), b"\n"])


def said_of_commits(text: bytes) -> list[Any]:
    """What each line of a text says of commits, but for those that were cut off or damaged."""
    whole = filter(None, map(_whole, text.split(b"\n")))
    return [json.loads(line.partition(_SUBJECTS)[0] + b"}") for line in whole]


def said_of(text: bytes) -> Reached:
    """What all lines of a text say together."""
    whole = Reached()
    for line in filter(None, map(_whole, text.split(b"\n"))):
        begin, _, rest = line.partition(_SUBJECTS)
        names, _, heads = rest.partition(_HEADS)
        said = Reached(Ranges(json.loads(begin + b"}")["covers"]))
        if names != _NOBODY:
            said._unread.append(names)
        for run in json.loads(heads[:-1]):
            said._put(*run)
        whole.add(said)
    return whole


def _as_json(subjects: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, str]]:
    """Numbers, and names as JSON: of all in one go, in which no text has a new line."""
    texts = json.dumps([name for _, name in subjects], separators=("\n", ":"))[1:-1].split("\n")
    return zip([number for number, _ in subjects], texts, strict=False)


def _whole(line: bytes) -> bytes:
    """The JSON of a line; nothing if it was cut off or damaged."""
    text, _, digest = line.rpartition(b" ")
    return text if digest == _digest(text) else b""


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:DIGITS].encode()
