"""URLs of PostgreSQL databases: what they name, how messages show them, and default checkpoints."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote

from expost.errors import InvalidInput

__all__ = ["checkpoint_path", "is_database_url", "shown_url"]

# With no second @, and no #, there is no doubt about where a password ends.
_URL = re.compile(r"postgres(?:ql)?://(?:[^@/?#]*@)?([^@/?#]*)(?:/([^@?#]*))?(?:\?([^@#]*))?")


def is_database_url(database: object) -> bool:
    """Return whether a ledger is named by the URL of a PostgreSQL database."""
    return isinstance(database, str) and database.startswith(("postgresql://", "postgres://"))


def shown_url(url: str) -> str:
    """Return a URL for messages: without user, password and options.

    >>> shown_url("postgresql://ann:secret@db.example:5433/study?sslmode=require")
    'postgresql://db.example:5433/study'
    """
    host, name, _ = _url_parts(url)
    return f"postgresql://{quote(host, safe=':,[]')}/{quote(name)}"


def checkpoint_path(url: str) -> Path:
    """Return the default checkpoint file of a ledger, and create its folder.

    It depends on where the tables are, and not on the user.
    """
    parts = _url_parts(url)
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        folder = Path(state) / "expost"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home directory
        raise InvalidInput(
            f"its default folder cannot be created ({error}); set XDG_STATE_HOME to a writable "
            "folder, or pass a checkpoint file",
            "checkpoint",
        ) from None
    name = "".join(letter for letter in parts[1] if letter.isalnum() or letter in "-_")
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return folder / f"{name}-{digest}.checkpoint"


def _url_parts(url: str) -> tuple[str, str, str]:
    """Return the host with its port, the name of the database, and options (the search path)."""
    match = _URL.fullmatch(url)
    if match is None:
        raise InvalidInput(
            "is not the URL of a database; in names and passwords, write @ as %40, / as %2F, "
            "? as %3F and # as %23"
        )
    host, name, query = (part or "" for part in match.groups())
    options = {key: values[-1] for key, values in parse_qs(query).items()}
    host = unquote(host).lower() or options.get("host", "")
    host += f":{options['port']}" if "port" in options else ""
    return host, unquote(name) or options.get("dbname", ""), options.get("options", "")
