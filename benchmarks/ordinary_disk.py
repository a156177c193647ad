"""A ledger on a disk as most people have it, whatever the one is on which benchmarks run.

There, a synchronized write comes back in a fraction of a millisecond, because what it is written to
is memory. Where it has to reach a disk, it takes some milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

import expost as xp
from expost.ledger.checkpoint import CheckpointFile
from expost.ledger.sqlite import Sqlite

__all__ = ["LONGER", "opened"]

LONGER = 0.002
"""How many seconds longer a synchronization takes than on the disk that there is."""

_NAME = "ordinary"


@contextmanager
def opened(place: Path) -> Iterator[xp.Ledger]:
    """A ledger that is there, as if it were on such a disk."""
    disk = _Disk(_NAME, "")
    checkpoint = _Checkpoint(Path(f"{place}.checkpoint"))
    with xp.Ledger.on(Sqlite.open(place, vfs=_NAME), checkpoint) as ledger:
        yield ledger
    disk.unregister()


class _Disk(apsw.VFS):
    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        return _File("", name, flags)


class _File(apsw.VFSFile):
    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        time.sleep(LONGER)


class _Checkpoint(CheckpointFile):
    def append(self, lines: bytes) -> int:
        size = super().append(lines)
        time.sleep(LONGER)
        return size
