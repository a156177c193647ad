"""Where ledgers of the simulator are kept, and what can go wrong there: a disk, memory, a file."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import apsw

import expost as xp
from expost.ledger import Ledger, StudyPolicy
from expost.ledger.checkpoint import Checkpoint, CheckpointFile, Place
from expost.ledger.connecting import create_database
from expost.ledger.digests import first_root
from expost.ledger.sqlite import Sqlite
from support.disks import Disk, DiskPlace, Killed, mounted
from support.vaults import Door, Vault

__all__ = ["KINDS", "POLICY", "SUBJECTS", "VALUES", "template"]

VALUES = ("a", "b", "c")
SUBJECTS = ("ann", "bob", 3, "dora")
POLICY = StudyPolicy(
    xp.FiniteSet(list(VALUES)), xp.BayesianFilter(epsilon=1), "simulated", "0f" * 16
)


@lru_cache(maxsize=1)
def template() -> Disk:
    """A disk with a new ledger, and everybody registered."""
    disk = Disk()
    with mounted(disk) as vfs:
        root = first_root(POLICY.content_id)
        create_database(Path("study.db"), POLICY.to_json(), root, vfs=vfs)
        place = DiskPlace(disk, "checkpoint")
        backend = Sqlite.open(Path("study.db"), vfs=vfs)
        Checkpoint(place, POLICY.content_id, 1).write(backend.tip())
        ledger = Ledger.on(backend, place, every=1)
        ledger.register(SUBJECTS[:-1])
        ledger.close()
    return disk


class OnDisk:
    """SQLite over a VFS that fails."""

    workers = 1

    def __init__(self, chance: random.Random) -> None:
        self.disk = template().copy()
        self._lives = ExitStack()

    def place(self) -> Place:
        return DiskPlace(self.disk, "checkpoint")

    def backend(self, number: int = 0) -> Any:
        vfs = self._lives.enter_context(mounted(self.disk))
        return Sqlite.open(Path("study.db"), vfs=vfs)

    def backup(self) -> Any:
        return self.disk.copy()

    def restore(self, backup: Disk) -> None:
        self.disk.restore(backup, lambda name: name != "checkpoint")

    def kill(self) -> None:
        self.disk.kill()

    def lose_power(self, chance: random.Random) -> None:
        self.disk.lose_power(chance)

    def damage(self, chance: random.Random) -> bool:
        names = [name for name in self.disk.files if name.startswith("study.db")]
        content = self.disk.files[chance.choice(names)].current
        if not content:
            return False
        if chance.random() < 0.4:
            return self._change_a_response(chance)
        if chance.random() < 0.25:
            del content[chance.randrange(len(content)) :]
        else:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        return True

    def _change_a_response(self, chance: random.Random) -> bool:
        """A flipped bit where it hurts most: a request has another response of its query."""
        with mounted(self.disk) as vfs:
            connection = apsw.Connection("study.db", vfs=vfs)
            connection.pragma("locking_mode", "exclusive")
            connection.execute("DROP TRIGGER requests_last")
            rows = connection.execute(
                "SELECT r.key, r.subject, w.number FROM requests r JOIN responses w"
                " ON w.query = r.query AND w.number <> r.response WHERE r.sequence > 0"
            ).fetchall()
            if rows:
                key, subject, number = chance.choice(rows)
                connection.execute(
                    "UPDATE requests SET response = ? WHERE key = ? AND subject = ?",
                    (number, key, subject),
                )
            connection.close()
        return bool(rows)

    def arm(self, chance: random.Random) -> str:
        """Something that will go wrong."""
        disk = self.disk
        fault = chance.choice(["kill", "power", "full", "sync"])
        if fault == "full":
            disk.room = chance.randrange(40_000)
        elif fault == "sync":
            disk.sync_fails = True
        else:
            left = chance.randrange(30)

            def before(what: str) -> None:
                nonlocal left
                left -= 1
                if left < 0:
                    raise Killed

            disk.before = before
        return fault

    def disarm(self) -> None:
        self.disk.before = lambda what: None
        self.disk.room, self.disk.sync_fails = None, False

    def end(self) -> None:
        self._lives.close()


class InVault:
    """A store in memory, with two workers."""

    workers = 2
    door: type[Door] = Door

    def __init__(self, chance: random.Random) -> None:
        self.vault = Vault(POLICY.to_json(), [first_root(POLICY.content_id)])
        self.disk = Disk()
        self._ending = ""
        ledger_place = self.place()
        Checkpoint(ledger_place, POLICY.content_id, 1).write(Door(self.vault).tip())
        with Ledger.on(Door(self.vault), ledger_place, every=1) as ledger:
            ledger.register(SUBJECTS[:-1])

    def place(self) -> Place:
        return DiskPlace(self.disk, "checkpoint")

    def backend(self, number: int = 0) -> Any:
        def committing() -> str:
            ending, self._ending = self._ending, ""
            return ending

        return self.door(self.vault, committing if not number else lambda: "")

    def backup(self) -> Any:
        return self.vault.copy()

    def restore(self, backup: Vault) -> None:
        self.vault = backup.copy()

    def kill(self) -> None:
        self.disk.kill()

    def lose_power(self, chance: random.Random) -> None:
        self.disk.lose_power(chance)

    def damage(self, chance: random.Random) -> bool:
        """A request has another response of its query."""
        others = [
            (place, word.number)
            for place, row in self.vault.requests.items()
            for word in self.vault.responses
            if row.response > 0 and word.query == row.query and word.number != row.response
        ]
        if others:
            place, number = chance.choice(others)
            self.vault.requests[place] = self.vault.requests[place]._replace(response=number)
        return bool(others)

    def arm(self, chance: random.Random) -> str:
        self._ending = chance.choice(["lost", "kept"])
        return "commit"

    def disarm(self) -> None:
        self._ending = ""

    def end(self) -> None:
        pass


class OnFile:
    """SQLite on a real file, with two workers that have a connection each."""

    workers = 2

    def __init__(self, chance: random.Random) -> None:
        memory = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self._path = Path(self._folder.name) / "study.db"
        for name, content in template().files.items():
            target = self._path if name == "study.db" else self._path.with_name("study.checkpoint")
            target.write_bytes(content.current)

    def place(self) -> Place:
        return CheckpointFile(self._path.with_name("study.checkpoint"))

    def backend(self, number: int = 0) -> Any:
        return Sqlite.open(self._path)

    def _files(self) -> list[Path]:
        return [self._path, Path(f"{self._path}-wal"), Path(f"{self._path}-shm")]

    def backup(self) -> Any:
        return {path: path.read_bytes() for path in self._files()[:2] if path.exists()}

    def restore(self, backup: dict[Path, bytes]) -> None:
        for path in self._files():
            path.unlink(missing_ok=True)
        for path, data in backup.items():
            path.write_bytes(data)

    def kill(self) -> None:
        pass

    def lose_power(self, chance: random.Random) -> None:
        pass

    def damage(self, chance: random.Random) -> bool:
        return False

    def arm(self, chance: random.Random) -> str:
        return ""

    def disarm(self) -> None:
        pass

    def end(self) -> None:
        self._folder.cleanup()


KINDS: dict[str, Callable[[random.Random], Any]] = {
    "disk": OnDisk, "vault": InVault, "file": OnFile,
}  # fmt: skip
