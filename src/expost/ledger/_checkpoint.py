"""The checkpoint: a file outside the database that reveals a rollback or a fork.

It has a line for every commit, written and synchronized after the database commit and before
anything of that commit leaves the process:

    {"commit": 41, "root": ROOT, "events": ["registered 0123456789abcdef device", ...]} CHECK

CHECK chains the lines. Events list what no device can send again, by digests that reveal nothing
without the ticket key: registrations, suspensions, extras, imports, the end of the study. The
ticket key is in a file next to the checkpoint. The format is in docs/reference/ledger.md.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from expost.errors import InvalidInput
from expost.files.durable import sync_directory, write_at
from expost.ledger.backend import Tip
from expost.ledger.errors import LedgerBroken, LedgerDamaged, LedgerLocked, LedgerReadOnly

__all__ = ["Checkpoint", "CheckpointFile", "CheckpointLine", "CheckpointStore", "CheckpointTail"]

_DIGITS = 16
_BLOCK = 1 << 16
_REPAIR_HINT = "restore it, or move it away and run recover --lost"
_KEY = re.compile(rb"[0-9a-f]{64}\n?")


class CheckpointLine(NamedTuple):
    """A line of the checkpoint."""

    tip: Tip
    events: Sequence[str]
    check: str


class CheckpointTail(NamedTuple):
    """The end of the checkpoint."""

    last: CheckpointLine | None
    #: The offset at which the last complete line ends.
    end: int
    #: True if an unfinished line follows, as after a crash during a write.
    torn: bool


class CheckpointStore(Protocol):
    """Storage of a checkpoint and its ticket key."""

    @abstractmethod
    def claim(self, *, create: bool = False) -> None:
        """Lock the checkpoint for this process; raise :class:`LedgerLocked` if another has it."""

    @abstractmethod
    def size(self) -> int | None:
        """Return its size in bytes; None if it does not exist."""

    @abstractmethod
    def read(self, start: int) -> bytes:
        """Return its bytes from an offset on."""

    @abstractmethod
    def write(self, start: int, data: bytes) -> None:
        """Write data at an offset, which become its end, durably."""

    @abstractmethod
    def ticket_key(self) -> bytes | None:
        """Return the ticket key; None if it does not exist."""

    @abstractmethod
    def create_ticket_key(self, key: bytes) -> None:
        """Store a new ticket key, durably."""

    @abstractmethod
    def close(self) -> None:
        """Release the lock."""


class CheckpointFile(CheckpointStore):
    """A checkpoint in a file of mode 600, with the ticket key in a file next to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.key_path = Path(f"{path}.key")
        self._file: int | None = None

    def __str__(self) -> str:
        return str(self.path)

    def claim(self, *, create: bool = False) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise LedgerReadOnly(f"cannot be written: {error.strerror}", str(self.path)) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise LedgerLocked(
                "another process is writing to this ledger; stop it, or send the request to it",
                str(self.path),
            ) from None
        self._file = file
        self._check_file()
        os.fsync(file)
        if create:
            sync_directory(self.path.parent)

    def size(self) -> int | None:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", str(self.path)) from None

    def read(self, start: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read()
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", str(self.path)) from None

    def write(self, start: int, data: bytes) -> None:
        self._check_file()
        assert self._file is not None, "claimed before"
        try:
            write_at(self._file, data, start)
            os.ftruncate(self._file, start + len(data))
            os.fdatasync(self._file)
        except OSError as error:
            raise LedgerBroken(
                f"the checkpoint {self.path} could not be written ({error.strerror}); open the "
                "ledger again when that is fixed"
            ) from None

    def _check_file(self) -> None:
        """Refuse a file that was replaced, or that has a second name."""
        assert self._file is not None, "claimed before"
        opened = os.fstat(self._file)
        try:
            unchanged = os.path.samestat(opened, self.path.stat())
        except OSError:
            unchanged = False
        if not unchanged:
            raise LedgerBroken(f"the checkpoint {self.path} was replaced or removed; open it again")
        if opened.st_nlink != 1:
            raise LedgerBroken(
                f"the checkpoint {self.path} has {opened.st_nlink} names (hard links); remove all "
                "but one"
            )

    def ticket_key(self) -> bytes | None:
        try:
            text = self.key_path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", str(self.key_path)) from None
        if not _KEY.fullmatch(text):
            raise LedgerDamaged(f"{self.key_path} does not hold a ticket key")
        return bytes.fromhex(text.decode())

    def create_ticket_key(self, key: bytes) -> None:
        try:
            file = os.open(self.key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(file, key.hex().encode() + b"\n")
                os.fsync(file)
            finally:
                os.close(file)
            sync_directory(self.path.parent)
        except FileExistsError:
            raise InvalidInput("already exists", str(self.key_path)) from None
        except OSError as error:
            raise InvalidInput(f"cannot be created: {error.strerror}", str(self.key_path)) from None

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None


class Checkpoint:
    """The lines of a checkpoint: read from the end, and appended one by one."""

    def __init__(self, store: CheckpointStore, policy_id: str) -> None:
        self.store = store
        self._policy_id = policy_id
        #: The end, as the claimed file was left by this process.
        self._tail: CheckpointTail | None = None

    def claim(self, *, create: bool = False) -> CheckpointTail:
        """Lock the file; only then can lines be appended."""
        self.store.claim(create=create)
        self._tail = self.tail()
        return self._tail

    def close(self) -> None:
        self.store.close()

    def tail(self) -> CheckpointTail:
        """Read the end of the file."""
        size = self.store.size()
        if not size:
            return CheckpointTail(None, 0, torn=False)
        window = _BLOCK
        while True:
            start = max(0, size - window)
            *lines, unfinished = self.store.read(start).split(b"\n")
            if start == 0 or len(lines) > 3:
                break
            window *= 4
        size = start + sum(map(len, lines)) + len(lines) + len(unfinished)
        # Unless the window starts the file, its first line is cut off.
        previous_checks = [self._policy_id if start == 0 else "", *map(_check_of, lines)]
        for count in (0, 1):
            index = len(lines) - 1 - count
            if index < (0 if start == 0 else 1):
                break
            line = _parse(lines[index], previous_checks[index])
            if line is not None:
                after = lines[index + 1 :]
                end = size - len(unfinished) - sum(map(len, after)) - len(after)
                return CheckpointTail(line, end, torn=end < size)
        if start == 0 and len(lines) <= 1:
            # The very first line was never finished.
            return CheckpointTail(None, 0, torn=True)
        raise LedgerDamaged(f"the checkpoint {self.store} is damaged at its end")

    def lines(self) -> Iterator[CheckpointLine]:
        """Yield all lines. A damaged one is an error: it may hide what a recovery needs."""
        tail, content = self.tail(), self.store.read(0)
        check = self._policy_id
        for line_number, text in enumerate(content[: tail.end].split(b"\n")[:-1], 1):
            line = _parse(text, check)
            if line is None:
                raise LedgerDamaged(
                    f"line {line_number} of the checkpoint {self.store} is damaged; {_REPAIR_HINT}"
                )
            check = line.check
            yield line
        # After a crash there is at most part of a line. If it has its end, a sector is missing.
        unfinished = content[tail.end :]
        if (
            (b"\n" in unfinished and b"\0" not in unfinished)
            or _parse(unfinished, check)
            or _parse(unfinished[:-1], check)
        ):
            raise LedgerDamaged(
                f"the last line of the checkpoint {self.store} is damaged; {_REPAIR_HINT}"
            )

    def covers(self, tip: Tip) -> bool:
        """Return whether a whole line says that this commit had this root."""
        size, window = self.store.size() or 0, _BLOCK
        wanted = f'"commit": {tip.commit_number}, "root": "{tip.root.hex()}"'.encode()
        while True:
            start = max(0, size - window)
            if wanted in self.store.read(start).rpartition(b"\n")[0]:
                return True
            if start == 0:
                return False
            window *= 16

    def append(self, tip: Tip, events: Sequence[str]) -> None:
        """Write the line of a commit, durably."""
        tail = self._tail
        assert tail is not None, "claimed before"
        size = self.store.size()
        if size is None or (size != tail.end and not tail.torn):
            raise LedgerBroken(f"the checkpoint {self.store} was changed by another process")
        fields = {"commit": tip.commit_number, "root": tip.root.hex(), "events": list(events)}
        text = json.dumps(fields)
        check = _check(tail.last.check if tail.last else self._policy_id, text.encode())
        data = f"{text} {check}\n".encode()
        if tail.torn:
            self.store.write(tail.end, b"")  # or a crash could mix the old rest with the new line
        self.store.write(tail.end, data)
        line = CheckpointLine(tip, events, check)
        self._tail = CheckpointTail(line, tail.end + len(data), torn=False)


def _check(previous: str, text: bytes) -> str:
    return hashlib.sha256(previous.encode() + text).hexdigest()[:_DIGITS]


def _check_of(line: bytes) -> str:
    return line.rpartition(b" ")[2].decode(errors="replace")


def _parse(line: bytes, previous: str) -> CheckpointLine | None:
    """Return a line, or None if it is damaged."""
    text, _, check = line.rpartition(b" ")
    if _check(previous, text).encode() != check:
        return None
    fields = json.loads(text)
    tip = Tip(fields["commit"], bytes.fromhex(fields["root"]))
    return CheckpointLine(tip, fields["events"], check.decode())
