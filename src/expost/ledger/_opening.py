"""Open or create the database and the checkpoint of a ledger."""

from __future__ import annotations

import os
from pathlib import Path

from expost._types import PathLike
from expost.errors import at, expect
from expost.files.durable import resolve_path
from expost.ledger._checkpoint import Checkpoint, CheckpointFile, CheckpointStore
from expost.ledger._digests import first_root
from expost.ledger._policy import StudyPolicy
from expost.ledger._postgres import Postgres
from expost.ledger._sqlite import Sqlite
from expost.ledger.backend import Backend, Tip
from expost.ledger.database_url import checkpoint_path, is_database_url, shown_url
from expost.ledger.errors import LedgerDamaged

__all__ = [
    "PathLike",
    "checkpoint_file",
    "create_checkpoint",
    "create_database",
    "open_backend",
]


def create_database(database: PathLike, policy: StudyPolicy) -> None:
    """Make the file or the tables of a new ledger."""
    document, root = policy.to_json(), first_root(policy.content_id)
    with at(_shown(database), ": "):
        if is_database_url(database):
            Postgres.create(str(database), document, root)
        else:
            Sqlite.create(Path(database), document, root)


def create_checkpoint(store: CheckpointStore, policy: StudyPolicy, ticket_key: bytes) -> None:
    """Make the checkpoint and the ticket key of a new ledger."""
    store.create_ticket_key(ticket_key)
    checkpoint = Checkpoint(store, policy.content_id)
    checkpoint.claim(create=True)
    try:
        checkpoint.append(Tip(0, first_root(policy.content_id)), [])
    finally:
        checkpoint.close()


def checkpoint_file(database: PathLike, checkpoint: PathLike | None) -> CheckpointFile:
    """Return where the checkpoint is: by default next to the database file.

    For a server it is in a folder of the user.
    """
    expect(database, (str, os.PathLike), "the name of a file")
    expect(checkpoint, (str, os.PathLike, type(None)), "the name of a file")
    if checkpoint is not None:
        return CheckpointFile(Path(checkpoint))
    if is_database_url(database):
        return CheckpointFile(checkpoint_path(str(database)))
    return CheckpointFile(Path(f"{resolve_path(database, strict=False)}.checkpoint"))


def open_backend(database: PathLike) -> Backend:
    try:
        with at(_shown(database), ": "):
            if is_database_url(database):
                return Postgres.open(str(database))
            return Sqlite.open(resolve_path(database))
    except LedgerDamaged as error:
        raise LedgerDamaged(f"{_shown(database)}: {error}") from None


def _shown(database: PathLike) -> str:
    """Return the name of a ledger for messages; a URL may have a password."""
    return shown_url(str(database)) if is_database_url(database) else os.fspath(database)
