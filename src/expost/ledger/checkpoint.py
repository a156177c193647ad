"""How far a ledger had come, kept outside of its database, so that a rollback is noticed.

Lines are only added, and are on the disk before anything that they cover is released. The format
is in docs/reference/ledger.md.
"""

from __future__ import annotations

import fcntl
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from expost.errors import InvalidInput
from expost.files.durable import save, sync_directory
from expost.ledger.errors import READ_ONLY, Broken
from expost.ledger.ranges import Ranges
from expost.ledger.reached import Reached, line_of, said_of, said_of_commits
from expost.ledger.records import Tip

__all__ = ["Checkpoint", "CheckpointFile", "Place", "ReadOnlyCheckpoint"]

# A file is replaced by a shorter one when it is four times as long as that, and so much longer.
_GROWTH = 4 << 20
# What a subject takes in the shortest one, about: a number, a name, some digits.
_ENTRY = 36
_LARGEST = 1 << 40


class Place(Protocol):
    """Where checkpoints are kept."""

    @abstractmethod
    def read(self) -> bytes | None:
        """All lines, which are on the disk then; None if there is nothing at all."""

    @abstractmethod
    def append(self, lines: bytes) -> int:
        """Add lines durably, and say how long it is now."""

    @abstractmethod
    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Put what a function makes of all lines in their place, durably.

        Nobody adds a line meanwhile. A crash leaves the old lines or the new ones.
        """


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
            raise self._broken(error.strerror) from None

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        try:
            # Whoever waits for the lock finds out that this is not the file any more.
            with self._locked() as descriptor, open(descriptor, "rb", closefd=False) as file:
                text = change(file.read())
                save(self.path, lambda: text, most=_LARGEST)
        except OSError as error:
            raise self._broken(error.strerror) from None
        except InvalidInput as error:
            raise self._broken(error.reason) from None

    def _broken(self, why: str | None) -> Broken:
        return Broken(
            f"the checkpoint {self.path} could not be written ({why}); open the ledger again when "
            "that is mended"
        )

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


class ReadOnlyCheckpoint(Place):
    """The checkpoint of a ledger that this process may not write, as it was at first.

    It is read before the database, which other processes may continue: so it is never ahead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: bytes | None = None
        try:
            self._lines = path.read_bytes()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None

    def read(self) -> bytes | None:
        return self._lines

    def append(self, lines: bytes) -> int:
        return 0  # nothing was recorded, so there is nothing that a rollback could lose

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        raise InvalidInput(READ_ONLY)


class Checkpoint:
    """Writes a checkpoint at every so many commits, and knows what the last ones say."""

    def __init__(self, place: Place, policy_id: str, every: int) -> None:
        self.place = place
        self.policy_id = policy_id
        self.every = every
        self.named = 0
        """Up to which number it is sure to know who the subjects are."""
        self._since = Reached()
        self._waiting = 0
        """Of how many commits something was released, or will be, that no line is about."""
        self._tip = Tip(0, b"")
        self._written = 0
        self._shortest = 0
        self._broken = False

    def note(self, more: Reached, tip: Tip) -> None:
        """Something was recorded, in the commit at the tip.

        Names are written at once: another process may say how far they came, and who they are
        must be known by then, also if this one is killed.
        """
        self._since.add(more)
        self._since.commits.add(tip.commits, tip.commits)
        if more.names and min(more.names) <= self.named + 1:
            self.named = max(self.named, *more.names)
        self._wait(tip, at_once=bool(more.names))

    def show(self, commit: int, tip: Callable[[], Tip]) -> None:
        """Something is released that perhaps another process recorded, in a commit up to this.

        That one may have been killed before it wrote a line about it, so it counts here. This line
        says only that there is such a commit: so a rollback past it is noticed, and a recovery
        knows that it does not know all.
        """
        if self._broken:
            raise Broken("an earlier write failed; open the ledger again")
        if commit > self._written and commit not in self._since.commits:
            self._wait(tip())

    def _wait(self, tip: Tip, *, at_once: bool = False) -> None:
        self._tip = max(self._tip, tip)
        self._waiting += 1
        if self._waiting >= self.every or at_once:
            self.flush()

    def fill(self, more: Reached, tip: Tip) -> None:
        """Write what others left out."""
        self._since.add(more)
        self.write(tip)

    def write(self, tip: Tip) -> None:
        """Write one now."""
        if self._broken:
            raise Broken("an earlier write failed; open the ledger again")
        self._broken = True
        size = self.place.append(line_of(self.policy_id, self._since, tip))
        self._broken = False
        self._since, self._waiting = Reached(), 0
        self._written = max(self._written, tip.commits)
        if size > 4 * self._shortest + _GROWTH:
            self._shorten()

    def flush(self) -> None:
        """Write one if there are commits that none is about."""
        if self._waiting:
            self.write(self._tip)

    def complete(self, tip: Tip, subjects: int) -> None:
        """All commits up to the tip are there, and the names of so many subjects."""
        self._written, self.named = max(self._written, tip.commits), subjects
        self._shortest = max(self._shortest, _ENTRY * subjects)

    def _shorten(self) -> None:
        """Say the same in fewer lines."""

        def shorter(text: bytes) -> bytes:
            tips, line = self._tips(text), text
            if tips:
                line = line_of(self.policy_id, said_of(text), max(tips))
                self._shortest = len(line)
            return line

        self.place.rewrite(shorter)

    def restart(self, reached: Reached, tip: Tip) -> None:
        """Begin again from what there is now."""
        line = line_of(self.policy_id, reached, tip)
        self.place.rewrite(lambda text: line)
        self._since, self._waiting = Reached(), 0

    def tips(self) -> list[Tip]:
        """How far the ledger had come at each line."""
        return self._tips(self._text())

    def last(self) -> Tip | None:
        """How far it had come, at the most; None if there is no line at all."""
        return max(self.tips(), default=None)

    def missing(self, commits: int) -> Ranges:
        """Which commits no line covers, out of so many."""
        covered = Ranges()
        for said in said_of_commits(self._text()):
            for first, last in said["covers"]:
                covered.add(first, last)
        return covered.missing(1, commits)

    def reached(self) -> Reached:
        """How far every subject had come, and who they are."""
        return said_of(self._text())

    def _text(self) -> bytes:
        return self.place.read() or b""

    def _tips(self, text: bytes) -> list[Tip]:
        lines = said_of_commits(text)
        if any(said["ledger"] != self.policy_id for said in lines):
            name = str(getattr(self.place, "path", "checkpoint"))
            raise InvalidInput("is the checkpoint of another ledger", name)
        return [Tip(said["commits"], bytes.fromhex(said["root"])) for said in lines]
