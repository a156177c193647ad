"""Ledgers for tests: the stores that all have to pass, and a small study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import expost as xp
from expost.ledger import Backend, CheckpointFile, Ledger, Place, StudyPolicy
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.connecting import create_database
from expost.ledger.digests import first_root
from expost.ledger.postgres import Postgres
from expost.ledger.sqlite import Sqlite
from support.disks import Disk, DiskPlace, mounted
from support.postgres import fresh, named_server, shared_server
from support.vaults import Door, Vault

__all__ = ["POLICY", "SHARED", "STORES", "Opened", "Store", "opened"]

POLICY = StudyPolicy(
    xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1), "a study", "ab" * 16
)

Opened = Callable[[], Backend]
"""Opens one more door to the same store, as another worker would."""


@contextmanager
def in_memory(folder: Path, policy: StudyPolicy) -> Iterator[tuple[Opened, Place]]:
    vault = Vault(policy.to_json(), [first_root(policy.content_id)])
    yield lambda: Door(vault), DiskPlace(Disk(), "checkpoint")


@contextmanager
def over_a_vfs(folder: Path, policy: StudyPolicy) -> Iterator[tuple[Opened, Place]]:
    disk = Disk()
    with mounted(disk) as vfs:
        path = Path("study.db")
        create_database(path, policy.to_json(), first_root(policy.content_id), vfs=vfs)
        yield lambda: Sqlite.open(path, vfs=vfs), DiskPlace(disk, "checkpoint")


@contextmanager
def on_a_file(folder: Path, policy: StudyPolicy) -> Iterator[tuple[Opened, Place]]:
    path = folder / "study.db"
    create_database(path, policy.to_json(), first_root(policy.content_id))
    yield lambda: Sqlite.open(path), CheckpointFile(folder / "study.checkpoint")


@contextmanager
def on_a_server(folder: Path, policy: StudyPolicy) -> Iterator[tuple[Opened, Place]]:
    with fresh(named_server() or shared_server().dsn) as dsn:
        Postgres.create(dsn, policy.to_json(), first_root(policy.content_id))
        yield lambda: Postgres.open(dsn), CheckpointFile(folder / "study.checkpoint")


Store = Callable[[Path, StudyPolicy], AbstractContextManager[tuple[Opened, Place]]]
STORES: dict[str, Store] = {
    "memory": in_memory, "vfs": over_a_vfs, "sqlite": on_a_file, "postgres": on_a_server,
}  # fmt: skip
"""Every store that a ledger may be kept in; one suite holds for all of them."""

SHARED = {"memory", "postgres", "sqlite"}
"""Those that several workers may have open."""


@contextmanager
def opened(store: str, folder: Path, policy: StudyPolicy = POLICY) -> Iterator[Ledger]:
    """A new ledger in a store."""
    with ExitStack() as stack:
        open_backend, place = stack.enter_context(STORES[store](folder, policy))
        backend = open_backend()
        Checkpoint(place, policy.content_id, 1).write(backend.tip())
        yield stack.enter_context(Ledger.on(backend, place, every=1))
