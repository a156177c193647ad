"""How far a ledger had come, kept outside of its database, so that a rollback is noticed.

Lines are only added, and are on the disk before anything that they cover is released. The format
is in docs/reference/ledger.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from expost.errors import InvalidInput
from expost.files.durable import save, sync_directory
from expost.ledger.errors import Broken
from expost.ledger.records import Tip

__all__ = ["Checkpoint", "CheckpointFile", "Place", "Reached"]

_DIGITS = 16
_START = re.compile(rb'\{"commits": (\d+),')
# A file is replaced by a shorter one when it is twice as long as that, and so much longer.
_GROWTH = 4 << 20


@dataclass(slots=True)
class Reached:
    """For whom something was recorded, and how far they came."""

    names: dict[int, str] = field(default_factory=dict)
    """Of who was registered, as JSON."""
    heads: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Up to which exchange, and the first digits of the head after it, if that is known."""

    def add(self, more: Reached) -> None:
        """Take in what was recorded later."""
        self.names.update(more.names)
        for number, reached in more.heads.items():
            # With several processes a line may come after one that knows more.
            self.heads[number] = max(reached, self.heads.get(number, reached))


class Place(Protocol):
    """Where checkpoints are kept."""

    @abstractmethod
    def read(self) -> bytes | None:
        """All lines, which are on the disk then; None if there is nothing at all."""

    @abstractmethod
    def append(self, lines: bytes) -> int:
        """Add lines durably, and say how long it is now."""

    @abstractmethod
    def replace(self, text: bytes) -> None:
        """Put other lines in the place of all, durably; a crash leaves the old or the new ones."""


class CheckpointFile(Place):
    """A file. Several processes may add to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                # What a process that was killed wrote is not there for sure before this.
                os.fsync(file.fileno())
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", str(self.path)) from None

    def append(self, lines: bytes) -> int:
        try:
            with self._locked() as descriptor:
                size = os.fstat(descriptor).st_size
                # What a crash cut off must not run into what follows.
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    lines = b"\n" + lines
                written = os.write(descriptor, lines)
                if written != len(lines):
                    raise OSError(28, "No space left on device")
                os.fdatasync(descriptor)
                return size + written
        except OSError as error:
            raise Broken(
                f"the checkpoint {self.path} could not be written ({error.strerror}); open the "
                "ledger again when that is mended"
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, while no other process has it; not one that was replaced meanwhile."""
        while True:
            fresh = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._is_at(descriptor):
                    if fresh:
                        sync_directory(self.path.parent)
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _is_at(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def replace(self, text: bytes) -> None:
        save(self.path, lambda: text)


class Checkpoint:
    """Writes a checkpoint at every so many commits, and knows the last one."""

    def __init__(self, place: Place, policy_id: str, every: int) -> None:
        self.place = place
        self.policy_id = policy_id
        self.every = every
        self._since = Reached()
        self._commits = 0
        self._shortest = 0

    def note(self, more: Reached, tip: Tip) -> None:
        """Something was recorded.

        Names are written at once: another process may say how far they came, and who they are
        must be known by then, also if this one is killed.
        """
        self._since.add(more)
        self._commits += 1
        if self._commits >= self.every or more.names:
            self.write(tip)

    def write(self, tip: Tip) -> None:
        """Write one now."""
        size = self.place.append(_line(self.policy_id, self._since, tip))
        self._since, self._commits = Reached(), 0
        if size > 2 * self._shortest + _GROWTH:
            self.shorten()

    def flush(self, tip: Callable[[], Tip]) -> None:
        """Write one if there are commits that none covers."""
        if self._commits:
            self.write(tip())

    def shorten(self) -> None:
        """Say the same in fewer lines."""
        last = self.last()
        if last is None:
            return
        text = _line(self.policy_id, self.reached(), last)
        self.place.replace(text)
        self._shortest = len(text)

    def restart(self, reached: Reached, tip: Tip) -> None:
        """Begin again from what there is now."""
        self.place.replace(_line(self.policy_id, reached, tip))
        self._since, self._commits = Reached(), 0

    def last(self) -> Tip | None:
        """The last one that was written; None if there is none of this ledger."""
        found = [each for line in self._lines() if (each := _START.match(line))]
        numbered = [(int(each[1]), each.string) for each in found]
        for _, line in sorted(numbered, key=lambda each: each[0], reverse=True):
            tree = _tree(line)
            if tree is not None:
                if tree["ledger"] != self.policy_id:
                    raise InvalidInput("is the checkpoint of another ledger", self._name)
                return Tip(tree["commits"], bytes.fromhex(tree["root"]))
        return None

    def reached(self) -> Reached:
        """How far every subject had come, and who they are."""
        whole = Reached()
        for tree in map(_tree, self._lines()):
            if tree is not None:
                names = {number: json.dumps(name) for number, name in tree["subjects"]}
                heads = {number: (sequence, head) for number, sequence, head in tree["heads"]}
                whole.add(Reached(names, heads))
        return whole

    def _lines(self) -> list[bytes]:
        return (self.place.read() or b"").split(b"\n")

    @property
    def _name(self) -> str:
        return str(getattr(self.place, "path", "checkpoint"))


def _line(policy_id: str, reached: Reached, tip: Tip) -> bytes:
    """All in one line: a loss of power leaves all of it, or what does not count."""
    names = [f"[{number}, {name}]" for number, name in sorted(reached.names.items())]
    heads = [
        f'[{number}, {sequence}, "{head}"]'
        for number, (sequence, head) in sorted(reached.heads.items())
    ]
    start = json.dumps({"commits": tip.commits, "ledger": policy_id, "root": tip.root.hex()})
    rest = f'"subjects": [{", ".join(names)}], "heads": [{", ".join(heads)}]'
    text = f"{start[:-1]}, {rest}}}".encode()
    return text + b" " + _digest(text) + b"\n"


def _tree(line: bytes) -> Any:
    """What a line says; None if it was cut off or damaged."""
    text, _, digest = line.rpartition(b" ")
    return json.loads(text) if text and digest == _digest(text) else None


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:_DIGITS].encode()
