"""An append-only file of JSON objects: a line each, durable before the call returns.

Every line ends with a digest over itself and the digest of the line before, so that a changed or
missing line shows. After a crash, the last line may be incomplete; nothing was confirmed then, and
it is removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expost.errors import InvalidInput
from expost.files.durable import sync_directory, write_at
from expost.ledger.errors import LedgerBroken, LedgerDamaged

__all__ = ["Journal"]

Entry = Mapping[str, Any]

_DIGITS = 16


class Journal:
    """One file, which one process writes: the one that has claimed the ledger."""

    def __init__(self, path: Path, study: str) -> None:
        """Open or create the file. ``study`` is the policy id, with which the digests start."""
        self.path = path
        self._lock = threading.Lock()
        self._broken = False
        self._study = study
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            sync_directory(path.parent)
            self._check, self._end = study, 0
            for line, check in self._lines():
                self._check, self._end = check, self._end + len(line)
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", str(path)) from None

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield all entries, oldest first."""
        for line, _ in self._lines():
            yield json.loads(line.rpartition(b" ")[0])

    def append(self, entries: Sequence[Entry]) -> None:
        """Write entries, durably and together."""
        with self._lock:
            if self._broken:
                raise LedgerBroken(f"{self.path} could not be written; start the collector again")
            check, lines = self._check, []
            for entry in entries:
                text = json.dumps(entry).encode()
                check = _digest(check, text)
                lines.append(text + b" " + check.encode() + b"\n")
            data = b"".join(lines)
            self._broken = True
            try:
                write_at(self._file, data, self._end)
                os.fdatasync(self._file)
            except OSError as error:
                reason = f"{self.path} could not be written ({error.strerror})"
                raise LedgerBroken(reason) from None
            self._broken = False
            self._check, self._end = check, self._end + len(data)

    def close(self) -> None:
        os.close(self._file)

    def _lines(self) -> Iterator[tuple[bytes, str]]:
        """Yield complete lines with their digests; a damaged one before the end is an error."""
        check = self._study
        with self.path.open("rb") as file:
            for index, line in enumerate(file, 1):
                text, _, digest = line.rstrip(b"\n").rpartition(b" ")
                expected = _digest(check, text)
                complete = line.endswith(b"\n") and b"\0" not in line
                if not complete or digest != expected.encode():
                    if complete or file.read(1):
                        raise LedgerDamaged(f"line {index} of {self.path} is damaged; restore it")
                    return
                check = expected
                yield line, check


def _digest(previous: str, text: bytes) -> str:
    return hashlib.sha256(previous.encode() + text).hexdigest()[:_DIGITS]
