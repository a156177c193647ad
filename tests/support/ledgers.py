"""Ledgers for tests: every backend that has to pass, and a small study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import expost as xp
from expost.ledger import Backend, CheckpointFile, CheckpointStore, Ledger, StudyPolicy
from expost.ledger.digests import first_root
from expost.ledger.ledger import create_checkpoint
from expost.ledger.postgres import Postgres
from expost.ledger.sqlite import Sqlite
from support.disks import Disk, DiskStore, mounted
from support.postgres import fresh, named_server, shared_server
from support.vaults import Records, Vault

__all__ = ["POLICY", "SHARED", "STORES", "OpenBackend", "Store", "opened"]

POLICY = StudyPolicy(
    xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1), "a study", "ab" * 16
)

OpenBackend = Callable[[], Backend]
"""Opens the same database once more, as another process would."""


@contextmanager
def in_memory(folder: Path, policy: StudyPolicy) -> Iterator[tuple[OpenBackend, CheckpointStore]]:
    records = Records.create(policy.to_json(), first_root(policy.content_id))
    yield lambda: Vault(records), DiskStore(Disk())


@contextmanager
def over_a_vfs(folder: Path, policy: StudyPolicy) -> Iterator[tuple[OpenBackend, CheckpointStore]]:
    disk = Disk()
    with mounted(disk) as vfs:
        path = Path("study.db")
        Sqlite.create(path, policy.to_json(), first_root(policy.content_id), vfs=vfs)
        yield lambda: Sqlite.open(path, vfs=vfs), DiskStore(disk)


@contextmanager
def on_a_file(folder: Path, policy: StudyPolicy) -> Iterator[tuple[OpenBackend, CheckpointStore]]:
    path = folder / "study.db"
    Sqlite.create(path, policy.to_json(), first_root(policy.content_id))
    yield lambda: Sqlite.open(path), CheckpointFile(folder / "study.db.checkpoint")


@contextmanager
def on_a_server(folder: Path, policy: StudyPolicy) -> Iterator[tuple[OpenBackend, CheckpointStore]]:
    with fresh(named_server() or shared_server().dsn) as dsn:
        Postgres.create(dsn, policy.to_json(), first_root(policy.content_id))
        yield lambda: Postgres.open(dsn), CheckpointFile(folder / "study.db.checkpoint")


Store = Callable[[Path, StudyPolicy], AbstractContextManager[tuple[OpenBackend, CheckpointStore]]]
STORES: dict[str, Store] = {
    "memory": in_memory, "vfs": over_a_vfs, "sqlite": on_a_file, "postgres": on_a_server,
}  # fmt: skip
"""Everything that can store a ledger; one suite holds for all of them."""

SHARED = {"memory", "postgres", "sqlite"}
"""Those that several processes may open."""


@contextmanager
def opened(store: str, folder: Path, policy: StudyPolicy = POLICY) -> Iterator[Ledger]:
    """Yield a new ledger in a store."""
    with ExitStack() as stack:
        open_backend, checkpoint = stack.enter_context(STORES[store](folder, policy))
        create_checkpoint(checkpoint, policy, bytes(range(32)))
        yield stack.enter_context(Ledger.on(open_backend(), checkpoint))
