"""Where ledgers of the simulator are stored, and what can fail there: a disk, memory, a file."""

from __future__ import annotations

import fcntl
import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import expost as xp
from expost.ledger import Backend, CheckpointFile, CheckpointStore, Ledger, StudyPolicy
from expost.ledger._digests import first_root
from expost.ledger._opening import create_checkpoint
from expost.ledger._sqlite import Sqlite
from expost.ledger.tables import ExchangeRow, RequestRow, SubjectRow
from support.memory_backend import MemoryBackend, MemoryRecords
from support.model_device import QUERIES, VALUES
from support.simulated_disk import Content, Disk, DiskStore, Killed, mounted

__all__ = ["FIRST", "KINDS", "POLICY", "Site", "create_on", "template", "template_records"]

FIRST: dict[Any, str] = {
    "ann": "device",
    "bob": "device",
    3: "device",
    "imp": "imported",
    "sim": "simulated",
}
"""The subjects that are registered from the start, with their kinds."""
POLICY = StudyPolicy(
    xp.FiniteSet(list(VALUES)), xp.BayesianFilter(epsilon=1), "simulated", "0f" * 16
)
TICKET_KEY = bytes(range(32))
_DATABASE = Path("study.db")
_CHECKPOINT = "checkpoint"


def create_on(backend: Backend, store: CheckpointStore) -> None:
    """Make a checkpoint for a new database, and register the first subjects."""
    create_checkpoint(store, POLICY, TICKET_KEY)
    with Ledger.on_backend(backend, store) as ledger:
        ledger.name_queries({f"epsilon {text}": query for text, query in QUERIES.items()})
        for name, kind in FIRST.items():
            ledger.register([name], kind=kind)


@lru_cache(maxsize=1)
def template() -> Disk:
    """Return a disk with a new ledger."""
    disk = Disk()
    with mounted(disk) as vfs:
        Sqlite.create(_DATABASE, POLICY.to_json(), first_root(POLICY.content_id), vfs=vfs)
        create_on(Sqlite.open(_DATABASE, vfs=vfs), DiskStore(disk))
    return disk


@lru_cache(maxsize=1)
def template_records() -> tuple[MemoryRecords, Disk]:
    """Return the records of a new ledger, and a disk with its checkpoint."""
    records, disk = MemoryRecords.create(POLICY.to_json(), first_root(POLICY.content_id)), Disk()
    create_on(MemoryBackend(records), DiskStore(disk))
    return records, disk


@dataclass(frozen=True)
class Backup:
    """A copy of a database and of its checkpoint."""

    database: Any
    checkpoint: bytes


class Site:
    """A database and its checkpoint, and the accidents that can happen to them."""

    shared = True
    """Whether several processes may open the database at the same time."""
    folder: Path | None = None
    """Where devices can store something."""

    def store(self) -> CheckpointStore:
        """Return the checkpoint, for a new process."""
        raise NotImplementedError

    def backend(self) -> Backend:
        """Open the database in a new process."""
        raise NotImplementedError

    def backup(self) -> Backup:
        """Copy the database and the checkpoint."""
        raise NotImplementedError

    def restore(self, backup: Backup, *, checkpoint: bool) -> None:
        """Put a database back, perhaps with its checkpoint. No process has it open."""
        raise NotImplementedError

    def lose_checkpoint(self) -> None:
        """Remove the checkpoint, and not its ticket key."""
        raise NotImplementedError

    def clone(self) -> Site:
        """Return a copy of the whole site, on which someone else continues."""
        raise NotImplementedError

    def kill(self) -> None:
        """End all processes."""

    def lose_power(self, chance: random.Random) -> None:
        """End the system."""
        self.kill()

    def steal_lock(self, holder: CheckpointStore) -> None:
        """Break the lock of the checkpoint, as some network file systems do."""

    def arm(self, chance: random.Random) -> str:
        """Choose a fault that will happen; return its name, or nothing."""
        return ""

    def disarm(self) -> None:
        """Remove the fault."""

    def damage(self, chance: random.Random) -> bool:
        """Flip a bit or cut a file; return whether that was possible."""
        return False

    def end(self) -> None:
        """Remove everything."""


def kill_after(disk: Disk, count: int) -> None:
    """Kill the process at an operation on a disk, after so many others."""
    left = count

    def before(what: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    disk.before = before


def damage_checkpoint(content: Content, chance: random.Random) -> None:
    """Flip a bit of a file, or cut it."""
    if chance.random() < 0.3:
        del content.current[chance.randrange(len(content.current)) :]
    else:
        content.current[chance.randrange(len(content.current))] ^= 1 << chance.randrange(8)
    content.sync()


class DiskSite(Site):
    """SQLite over a VFS that fails."""

    shared = False

    def __init__(self, chance: random.Random, disk: Disk | None = None) -> None:
        self.disk = disk or template().copy()
        self._mounted = ExitStack()

    def store(self) -> CheckpointStore:
        return DiskStore(self.disk)

    def backend(self) -> Backend:
        return Sqlite.open(_DATABASE, vfs=self._mounted.enter_context(mounted(self.disk)))

    def backup(self) -> Backup:
        return Backup(self.disk.copy(), bytes(self.disk.files[_CHECKPOINT].current))

    def restore(self, backup: Backup, *, checkpoint: bool) -> None:
        self.disk.restore(backup.database, lambda name: checkpoint or "study" in name)

    def lose_checkpoint(self) -> None:
        del self.disk.files[_CHECKPOINT]

    def clone(self) -> Site:
        return DiskSite(random.Random(0), self.disk.copy())

    def kill(self) -> None:
        self.disk.kill()

    def lose_power(self, chance: random.Random) -> None:
        self.disk.lose_power(chance)

    def arm(self, chance: random.Random) -> str:
        fault = chance.choice(["kill", "power", "full", "sync"])
        if fault == "full":
            self.disk.room = chance.randrange(40_000)
        elif fault == "sync":
            self.disk.sync_fails = True
        else:
            kill_after(self.disk, chance.randrange(30))
        return fault

    def disarm(self) -> None:
        self.disk.before = lambda what: None
        self.disk.room, self.disk.sync_fails = None, False

    def damage(self, chance: random.Random) -> bool:
        names = [name for name, file in self.disk.files.items() if file.current]
        weights = [0.2 if name == _CHECKPOINT else 1 for name in names if "key" not in name]
        name = chance.choices([name for name in names if "key" not in name], weights)[0]
        if name == _CHECKPOINT or chance.random() < 0.5:
            damage_checkpoint(self.disk.files[name], chance)
            return True
        return self._change_a_response(chance)

    def _change_a_response(self, chance: random.Random) -> bool:
        """Flip bits where it hurts most: an exchange gets another response of its query."""
        import apsw

        with mounted(self.disk) as vfs:
            connection = apsw.Connection("study.db", vfs=vfs)
            connection.pragma("locking_mode", "exclusive")
            connection.execute("DROP TRIGGER exchanges_no_update")
            rows = connection.execute(
                "SELECT e.subject, e.sequence, r.number FROM exchanges e JOIN responses r"
                " ON r.query = e.query AND r.number <> e.response"
            ).fetchall()
            if rows:
                connection.execute(
                    "UPDATE exchanges SET response = ?3 WHERE subject = ?1 AND sequence = ?2",
                    chance.choice(rows),
                )
            connection.close()
        return bool(rows)

    def end(self) -> None:
        self._mounted.close()


class MemorySite(Site):
    """MemoryRecords in memory, with a checkpoint on a disk that fails."""

    backend_class = MemoryBackend

    def __init__(
        self, chance: random.Random, records: MemoryRecords | None = None, disk: Disk | None = None
    ) -> None:
        first, its_disk = template_records()
        self.records = records or first.copy()
        self.disk = disk or its_disk.copy()
        self._ending: tuple[str, str] | None = None

    def store(self) -> CheckpointStore:
        return DiskStore(self.disk)

    def backend(self) -> Backend:
        return self.backend_class(self.records, self._end_commit)

    def _end_commit(self, moment: str) -> str:
        """Let a commit fail, or kill the process, before or after it is written."""
        if self._ending is None or self._ending[0] != moment:
            return ""
        if self._ending[1] == "kill":
            raise Killed
        return self._ending[1]

    def backup(self) -> Backup:
        return Backup(self.records.copy(), bytes(self.disk.files[_CHECKPOINT].current))

    def restore(self, backup: Backup, *, checkpoint: bool) -> None:
        self.kill()
        self.records.restore(backup.database)
        if checkpoint:
            data = backup.checkpoint
            self.disk.files[_CHECKPOINT] = Content(bytearray(data), data)

    def lose_checkpoint(self) -> None:
        del self.disk.files[_CHECKPOINT]

    def clone(self) -> Site:
        return type(self)(random.Random(0), self.records.copy(), self.disk.copy())

    def kill(self) -> None:
        self.disk.kill()

    def lose_power(self, chance: random.Random) -> None:
        self.disk.lose_power(chance)

    def steal_lock(self, holder: CheckpointStore) -> None:
        self.disk.owner = None

    def arm(self, chance: random.Random) -> str:
        if chance.random() < 0.5:
            reason = chance.choice(["the commit failed", "kill"])
            self._ending = (chance.choice(["before", "after"]), reason)
            return "commit"
        fault = chance.choice(["kill", "power", "full", "sync"])
        if fault == "full":
            self.disk.room = chance.randrange(300)
        elif fault == "sync":
            self.disk.sync_fails = True
        else:
            kill_after(self.disk, chance.randrange(4))
        return fault

    def disarm(self) -> None:
        self._ending = None
        self.disk.before = lambda what: None
        self.disk.room, self.disk.sync_fails = None, False

    def damage(self, chance: random.Random) -> bool:
        """Change a field of a row, lose a row, or damage the checkpoint."""
        if chance.random() < 0.2:
            damage_checkpoint(self.disk.files[_CHECKPOINT], chance)
            return True
        table = chance.choice([ExchangeRow, ExchangeRow, SubjectRow, RequestRow])
        rows = self.records.tables[table]
        if not rows:
            return False
        key = chance.choice(sorted(rows))
        if chance.random() < 0.2:
            del rows[key]
            return True
        row, place = rows[key], chance.randrange(len(key), len(rows[key]))
        rows[key] = type(row)(*(_changed(x) if n == place else x for n, x in enumerate(row)))
        return True

    def end(self) -> None:
        pass


def _changed(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\1"
    return value + 1 if isinstance(value, int) else f"{value}x"


class FileSite(Site):
    """SQLite and a checkpoint in real files, which several processes may open."""

    def __init__(self, chance: random.Random, files: dict[str, bytes] | None = None) -> None:
        memory = Path("/dev/shm")
        self._temporary = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.folder = Path(self._temporary.name)
        if files is None:
            files = {name: bytes(file.current) for name, file in template().files.items()}
            files["checkpoint.key"] = TICKET_KEY.hex().encode()
        self._write(files)

    def _write(self, files: dict[str, bytes]) -> None:
        assert self.folder is not None
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            (self.folder / name).chmod(0o600)

    def _files(self) -> dict[str, bytes]:
        assert self.folder is not None
        found = [*self.folder.glob("study.db*"), *self.folder.glob("checkpoint*")]
        return {path.name: path.read_bytes() for path in found if path.suffix != ".db-shm"}

    def store(self) -> CheckpointStore:
        assert self.folder is not None
        return CheckpointFile(self.folder / _CHECKPOINT)

    def backend(self) -> Backend:
        assert self.folder is not None
        return Sqlite.open(self.folder / _DATABASE)

    def backup(self) -> Backup:
        files = self._files()
        database = {name: content for name, content in files.items() if "study" in name}
        return Backup(database, files[_CHECKPOINT])

    def restore(self, backup: Backup, *, checkpoint: bool) -> None:
        assert self.folder is not None
        for path in self.folder.glob("study.db*"):
            path.unlink()
        self._write(backup.database)
        if checkpoint:
            self._write({_CHECKPOINT: backup.checkpoint})

    def lose_checkpoint(self) -> None:
        assert self.folder is not None
        (self.folder / _CHECKPOINT).unlink()

    def clone(self) -> Site:
        return FileSite(random.Random(0), self._files())

    def steal_lock(self, holder: CheckpointStore) -> None:
        assert isinstance(holder, CheckpointFile)
        if holder._file is not None:
            fcntl.flock(holder._file, fcntl.LOCK_UN)

    def end(self) -> None:
        self._temporary.cleanup()


KINDS: dict[str, Callable[[random.Random], Site]] = {
    "disk": DiskSite, "memory": MemorySite, "file": FileSite,
}  # fmt: skip
"""The kinds of sites, by name; support.servers adds "server"."""
