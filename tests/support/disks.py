"""A disk in memory that forgets what was not synchronized, fills up, and fails, as a seed says.

SQLite writes to it through a VFS. A loss of power keeps any sectors of 512 bytes of what was
written since the last synchronization, in any order; a killed process loses nothing of it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import apsw

from expost.ledger import Place
from expost.ledger.errors import Broken

__all__ = ["Disk", "DiskPlace", "Killed", "mounted"]

SECTOR = 512


class Killed(BaseException):
    """The process ended here."""


@dataclass
class Content:
    """A file: what is there, what is on the disk for sure, and what was written since."""

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
        """What is left of it: any of the sectors that were not synchronized."""
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
    """Files by their names. All that is done to them may be counted, stopped or refused."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self.room: int | None = None
        """How many more bytes may be written."""
        self.sync_fails = False
        self.life = 0
        """Of the process: what an earlier one still does has no effect."""
        self.before: Callable[[str], None] = lambda what: None

    def copy(self) -> Disk:
        """A backup of what is there."""
        other = Disk()
        for name, content in self.files.items():
            data = bytes(content.current)
            other.files[name] = Content(bytearray(data), data)
        return other

    def restore(self, backup: Disk, names: Callable[[str], bool]) -> None:
        """Put the files of a backup in the place of some."""
        self.life += 1
        self.files = {name: each for name, each in self.files.items() if not names(name)}
        self.files.update({name: each for name, each in backup.copy().files.items() if names(name)})

    def kill(self) -> None:
        """The process ends; the system goes on."""
        self.life += 1
        self.room, self.sync_fails = None, False

    def lose_power(self, chance: random.Random) -> None:
        """The system ends, too."""
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


class DiskPlace(Place):
    """A checkpoint on such a disk."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk, self._name, self._life = disk, name, disk.life

    def read(self) -> bytes | None:
        content = self._disk.files.get(self._name)
        if content is None:
            return None
        content.sync()
        return bytes(content.current)

    def append(self, lines: bytes) -> int:
        assert self._disk.life == self._life
        content = self._disk.files.setdefault(self._name, Content())
        if content.current and content.current[-1:] != b"\n":
            lines = b"\n" + lines
        try:
            self._disk.wrote(len(lines))
            content.write(len(content.current), lines)
            self._disk.synced(content)
        except apsw.Error as error:
            raise Broken(f"the checkpoint could not be written ({error})") from None
        return len(content.current)

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        text = change(self.read() or b"")
        self._disk.files[self._name] = Content(bytearray(text), text)


class _Open:
    """A file as SQLite sees it."""

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
    """The files of a disk for the process that lives now."""

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
    """The name of a VFS on a disk, for a process that lives as long."""
    name = f"faulty-{next(_numbers)}"
    vfs = _Vfs(name, disk)
    try:
        yield name
    finally:
        vfs.unregister()
