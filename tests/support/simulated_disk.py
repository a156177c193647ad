"""A disk in memory that loses what was not synchronized, fills up and fails, as a seed says.

SQLite writes to it through a VFS, a checkpoint through :class:`DiskStore`. A power loss preserves
any 512-byte sectors written since the last synchronization, in any order. A killed process loses
nothing that it wrote.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import apsw

from expost.errors import InvalidInput
from expost.ledger import CheckpointStore
from expost.ledger.errors import LedgerBroken, LedgerLocked

__all__ = ["Disk", "DiskStore", "Killed", "mounted"]

SECTOR = 512


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Content:
    """A file: what a process reads, what is durable, and what was written since."""

    current: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)
    """Writes by their offsets, or lengths to which it was cut."""

    def write(self, offset: int, data: bytes) -> None:
        if len(self.current) < offset:
            self.current.extend(bytes(offset - len(self.current)))
        self.current[offset : offset + len(data)] = data
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        del self.current[size:]
        self.pending.append(size)

    def sync(self) -> None:
        self.durable, self.pending = bytes(self.current), []

    def lose_power(self, chance: random.Random) -> None:
        """Apply any of the sectors that were not synchronized, and none of the others."""
        left = bytearray(self.durable)
        sectors: list[tuple[int, bytes] | int] = []
        for each in self.pending:
            if isinstance(each, int):
                sectors.append(each)
                continue
            offset, data = each
            while data:
                size = SECTOR - offset % SECTOR
                sectors.append((offset, data[:size]))
                offset, data = offset + size, data[size:]
        share = chance.choice([0.0, 0.5, 0.9, 1.0])
        if chance.random() < 0.5:
            chance.shuffle(sectors)
        for each in sectors:
            if chance.random() >= share:
                continue
            if isinstance(each, int):
                del left[each:]
                continue
            offset, data = each
            if len(left) < offset:
                left.extend(bytes(offset - len(left)))
            left[offset : offset + len(data)] = data
        self.current, self.durable, self.pending = left, bytes(left), []


class Disk:
    """Files by their names. Every operation on them can be counted, stopped or refused."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self.room: int | None = None
        """How many more bytes can be written."""
        self.sync_fails = False
        self.life = 0
        """Counts processes: what an earlier one still does has no effect."""
        self.owner: object = None
        """The store that holds the lock of the checkpoint."""
        self.before: Callable[[str], None] = lambda what: None

    def copy(self) -> Disk:
        """Return a backup."""
        other = Disk()
        for name, content in self.files.items():
            data = bytes(content.current)
            other.files[name] = Content(bytearray(data), data)
        return other

    def restore(self, backup: Disk, names: Callable[[str], bool]) -> None:
        """Replace some files by those of a backup."""
        self.kill()
        self.files = {name: each for name, each in self.files.items() if not names(name)}
        self.files.update({name: each for name, each in backup.copy().files.items() if names(name)})

    def kill(self) -> None:
        """End the process; the system continues."""
        self.life += 1
        self.room, self.sync_fails, self.owner = None, False, None

    def lose_power(self, chance: random.Random) -> None:
        """End the system."""
        self.kill()
        for content in self.files.values():
            content.lose_power(chance)

    def wrote(self, size: int) -> None:
        self.before("write")
        if self.room is not None:
            self.room -= size
            if self.room < 0:
                raise apsw.FullError("the disk is full")

    def synced(self, content: Content) -> None:
        self.before("sync")
        if self.sync_fails:
            raise apsw.IOError("the disk does not answer")
        content.sync()


class DiskStore(CheckpointStore):
    """A checkpoint and its ticket key on such a disk."""

    def __init__(self, disk: Disk, name: str = "checkpoint") -> None:
        self._disk, self._name, self._life = disk, name, disk.life

    def __str__(self) -> str:
        return self._name

    def claim(self, *, create: bool = False) -> None:
        self._check_alive()
        if self._disk.owner not in (None, self):
            raise LedgerLocked("another process is writing to this ledger", self._name)
        if self._name not in self._disk.files and not create:
            raise InvalidInput("cannot be written: no such file", self._name)
        self._disk.owner = self
        try:
            self._disk.synced(self._disk.files.setdefault(self._name, Content()))
        except apsw.Error as error:
            raise LedgerBroken(f"the checkpoint could not be written ({error})") from None

    def size(self) -> int | None:
        content = self._disk.files.get(self._name)
        return None if content is None else len(content.current)

    def read(self, start: int) -> bytes:
        return bytes(self._disk.files[self._name].current[start:])

    def write(self, start: int, data: bytes) -> None:
        self._check_alive()
        content = self._disk.files[self._name]
        try:
            self._disk.wrote(len(data))
            content.write(start, data)
            if len(content.current) > start + len(data):
                self._disk.before("truncate")
                content.truncate(start + len(data))
            self._disk.synced(content)
        except apsw.Error as error:
            raise LedgerBroken(f"the checkpoint could not be written ({error})") from None

    def _check_alive(self) -> None:
        if self._life != self._disk.life:
            raise LedgerBroken("this process has ended")

    def ticket_key(self) -> bytes | None:
        content = self._disk.files.get(f"{self._name}.key")
        return None if content is None else bytes(content.current)

    def create_ticket_key(self, key: bytes) -> None:
        self._disk.files[f"{self._name}.key"] = Content(bytearray(key), key)

    def close(self) -> None:
        if self._disk.owner is self:
            self._disk.owner = None


class _Open:
    """A file as SQLite uses it."""

    def __init__(self, disk: Disk, name: str, delete: bool) -> None:
        self._disk, self._name, self._delete = disk, name, delete
        self._life = disk.life
        self._content = disk.files.setdefault(name, Content())

    def _dead(self) -> bool:
        return self._life != self._disk.life

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._content.current[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if not self._dead():
            self._disk.wrote(len(data))
            self._content.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        if not self._dead():
            self._disk.before("truncate")
            self._content.truncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if not self._dead():
            self._disk.synced(self._content)

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._content.current)

    def xClose(self) -> None:  # noqa: N802
        if self._delete and not self._dead():
            self._disk.files.pop(self._name, None)

    def xLock(self, level: int) -> None:  # noqa: N802
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0


class _Vfs(apsw.VFS):
    """The files of a disk, for the current process."""

    def __init__(self, name: str, disk: Disk) -> None:
        self._disk, self._life = disk, disk.life
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        asked = flags[0]
        create = asked & apsw.SQLITE_OPEN_CREATE
        if path is not None and path not in self._disk.files and not create:
            raise apsw.CantOpenError(path)
        flags[1] = asked
        path = path or f"temporary-{next(_numbers)}"
        return _Open(self._disk, path, bool(asked & apsw.SQLITE_OPEN_DELETEONCLOSE))

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        if self._life == self._disk.life:
            self._disk.before("delete")
            self._disk.files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in self._disk.files

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


_numbers = itertools.count()


@contextmanager
def mounted(disk: Disk) -> Iterator[str]:
    """Yield the name of a VFS on a disk, for one process."""
    name = f"faulty-{next(_numbers)}"
    vfs = _Vfs(name, disk)
    try:
        yield name
    finally:
        vfs.unregister()
