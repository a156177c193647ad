"""The URL of a database: what is shown of it, and where its checkpoint is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from expost.errors import InvalidInput

__all__ = ["checkpoint_of", "on_server", "shown_url"]

_SCHEMES = ("postgresql://", "postgres://")


def on_server(place: object) -> bool:
    """Whether a ledger is named by the URL of a PostgreSQL."""
    return isinstance(place, str) and place.startswith(_SCHEMES)


def shown_url(url: str) -> str:
    """A URL for people: without user, password and options.

    >>> shown_url("postgresql://ann:secret@db.example:5433/study?sslmode=require")
    'postgresql://db.example:5433/study'
    """
    host, port, name, _ = _parts(url)
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


def checkpoint_of(url: str) -> Path:
    """The file of the checkpoint of a ledger, by where its tables are.

    Whoever the user is and however they log in: it is the same ledger.
    """
    told = "\n".join(_parts(url))
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(state) / "expost"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        raise InvalidInput(
            f"its default folder cannot be created ({error}); set XDG_STATE_HOME to a writable "
            "folder, or name a checkpoint file",
            "checkpoint",
        ) from None
    name = "".join(letter for letter in _parts(url)[2] if letter.isalnum() or letter in "-_")
    return folder / f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.checkpoint"


def _parts(url: str) -> tuple[str, str, str, str]:
    """Host, port and name of the database, and options such as the search path."""
    try:
        parts = urlsplit(url)
        port = str(parts.port or "")
    except ValueError:
        raise InvalidInput("is not the URL of a database") from None
    given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host = parts.hostname or given.get("host", "")
    name = parts.path.lstrip("/") or given.get("dbname", "")
    return host, port or given.get("port", ""), name, given.get("options", "")
