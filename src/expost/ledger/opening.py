"""Opening a ledger: only one that is as far as its checkpoint says, unless it is recovered."""

from __future__ import annotations

import os
from pathlib import Path

from expost.errors import InvalidInput, at, expect
from expost.files.durable import followed
from expost.ledger.backend import Backend
from expost.ledger.checkpoint import Checkpoint, CheckpointFile, Place, ReadOnlyCheckpoint
from expost.ledger.connecting import create_database, is_writable
from expost.ledger.core import Core
from expost.ledger.digests import first_root
from expost.ledger.errors import Behind, Damaged
from expost.ledger.policy import StudyPolicy
from expost.ledger.postgres import Postgres, checkpoint_of, on_server, shown_url
from expost.ledger.reached import Reached
from expost.ledger.sqlite import Sqlite

__all__ = [
    "check",
    "checkpoint_place",
    "cover",
    "create_backend",
    "open_backend",
    "policy_of",
]

Path_ = str | os.PathLike[str]


def checkpoint_place(place: Path_, given: Path_ | None) -> Place:
    """Where checkpoints are kept, if nothing else is said: beside the database.

    Beside a server there is no place, so it is in a folder of the user.
    """
    expect(given, (str, os.PathLike, type(None)), "the name of a file")
    if on_server(place):
        return CheckpointFile(checkpoint_of(str(place)) if given is None else Path(given))
    database = followed(place, strict=False)
    path = Path(f"{database}.checkpoint" if given is None else given)
    if os.path.exists(database) and not is_writable(database):
        return ReadOnlyCheckpoint(path)
    return CheckpointFile(path)


def create_backend(place: Path_, policy: StudyPolicy) -> None:
    """Make a new database."""
    expect(place, (str, os.PathLike), "the name of a file")
    document, root = policy.to_json(), first_root(policy.content_id)
    with at(_shown(place), ": "):
        if on_server(place):
            Postgres.create(str(place), document, root)
        else:
            create_database(Path(place), document, root)


def open_backend(place: Path_) -> Backend:
    """Open the database that is there."""
    expect(place, (str, os.PathLike), "the name of a file")
    try:
        with at(_shown(place), ": "):
            return Postgres.open(str(place)) if on_server(place) else Sqlite.open(followed(place))
    except Damaged as error:
        raise Damaged(f"{_shown(place)}: {error}") from None


def _shown(place: Path_) -> str:
    """The name of a ledger for people; a URL may have a password."""
    return shown_url(str(place)) if on_server(place) else os.fspath(place)


def policy_of(backend: Backend) -> StudyPolicy:
    """The policy that a ledger was created with."""
    try:
        policy = StudyPolicy.from_json(backend.policy())
    except InvalidInput as error:
        raise Damaged(f"the policy cannot be read ({error})") from None
    if backend.root(0) != first_root(policy.content_id):
        raise Damaged("the policy is not the one that the ledger was created with")
    return policy


def check(backend: Backend, checkpoint: Checkpoint) -> None:
    """Refuse a database that is not as far as its checkpoint."""
    last, tip = checkpoint.last(), backend.tip()
    if last is None:
        raise Behind(
            "the checkpoint of the ledger is missing, so nobody knows whether the database is "
            "complete; recover it if the checkpoint was lost"
        )
    if last.commits > tip.commits:
        raise Behind(
            f"the database has {tip.commits:,} commits, and there were {last.commits:,}: it is an "
            "older copy; bring the newer one back, or recover it, which closes whoever has "
            "answered since"
        )
    if backend.root(last.commits) != last.root:
        raise Behind(
            f"the database is another one since commit {last.commits:,} or before; bring the right "
            "one back, or recover it, which closes whoever is concerned"
        )


def cover(core: Core) -> None:
    """Write about all commits of which no line is there.

    Whoever made them was killed, or will write about them, too.
    """
    size, tip = core.backend.size(), core.backend.tip()
    missing = core.checkpoint.missing(tip.commits)
    if missing:
        said = Reached(missing)
        registered = core.backend.registered()
        said.names.update(
            {number: name for number, name, commit in registered if commit in missing}
        )
        moved = core.backend.moved_in(missing.numbers())
        for number, head in zip(moved, core.backend.heads(moved), strict=True):
            said.moved(number, head)
        core.checkpoint.fill(said, tip)
    core.checkpoint.complete(tip, size)
