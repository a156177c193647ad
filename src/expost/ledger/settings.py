"""What a ledger needs of SQLite, read back from every connection that is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from expost.errors import InvalidInput

if TYPE_CHECKING:
    import apsw

__all__ = ["OLDEST", "REQUIRED", "Required", "apply", "check_version"]

OLDEST = (3, 51, 3)
"""Before this, two connections could reset a write-ahead log that was still needed."""


class Required(NamedTuple):
    """A setting: what to ask for, which values will do when it is read back, and why."""

    asked: str
    good: tuple[Any, ...]
    why: str


REQUIRED = {
    "synchronous": Required("FULL", (2, 3), "a loss of power would take back what was released"),
    "fullfsync": Required("ON", (1,), "a loss of power would take back what was released"),
    "checkpoint_fullfsync": Required("ON", (1,), "a loss of power could damage the database"),
    "cell_size_check": Required("ON", (1,), "a damaged page would be read as if it were not"),
    "trusted_schema": Required("OFF", (0,), "a file from elsewhere could run code of its own"),
    "mmap_size": Required("0", (0, None), "an error of the disk would end the process"),
    "foreign_keys": Required("ON", (1,), "a response could have no query"),
}


def check_version(version: str) -> None:
    """Refuse a SQLite with a known bug."""
    if tuple(int(part) for part in version.split(".")[:3]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InvalidInput(
            f"SQLite {version} can lose commits (the WAL-reset bug); {oldest} or newer is needed: "
            "pip install -U apsw"
        )


def apply(connection: apsw.Connection) -> None:
    """Set everything, and refuse what is weaker when it is read back."""
    mode = connection.pragma("journal_mode")
    if mode != "wal":
        raise InvalidInput(
            f"its journal mode is {mode!r}, and a loss of power could damage it; mend it with "
            "PRAGMA journal_mode=wal in the sqlite3 shell"
        )
    for name, (asked, good, why) in REQUIRED.items():
        connection.pragma(name, asked)
        found = connection.pragma(name)
        if found not in good:
            raise InvalidInput(f"PRAGMA {name} is {found!r} and cannot be set to {asked}: {why}")
