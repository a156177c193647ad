"""A subject whose transcript is a file: decide, sample, record durably, release."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from expost.accounting import Odometer
from expost.durable import locked, replace
from expost.errors import InvalidInput, at, expect
from expost.extrema import Effort
from expost.sampling import Source
from expost.session import Secret, Session, named_filter
from expost.transcript import Transcript, read_text

__all__ = ["FileSession"]


class FileSession(Session):
    """Answers queries under the filter that a transcript file names, and keeps the file.

    A response is returned only when the file holds it for good. Whatever a crash interrupts was
    never released; if it had been recorded, it is spent. Several processes may have sessions of
    one file: they are answered one after the other, each after reading what the others added.
    """

    __slots__ = ("_path", "_temporary", "_text")

    def __init__(
        self,
        path: str | os.PathLike[str],
        value: Any,
        *,
        source: Source | None = None,
        effort: Effort | None = None,
    ) -> None:
        secret = Secret(value)
        del value  # as in Session
        expect(path, (str, os.PathLike), "the name of a file")
        with at(os.fspath(path), ": "):
            self._path = _followed(path)
            self._temporary = self._path.with_name(f".{self._path.name}.new")
            self._text = read_text(self._path)
            transcript = Transcript.from_json(self._text)
            guard = named_filter(transcript)
        self._start(transcript, guard, secret, source, effort)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with super()._turn(), ExitStack() as held:
            with at(str(self._path), ": "):
                held.enter_context(locked(self._path))
                # Left by a process that was killed before it recorded, let alone released.
                self._temporary.unlink(missing_ok=True)
                self._catch_up()
            yield

    def _catch_up(self) -> None:
        """Read what others have recorded since."""
        text = read_text(self._path)
        if text == self._text:
            return
        known, transcript = self.transcript, Transcript.from_json(text)
        same = (transcript.domain, transcript.filter) == (known.domain, known.filter)
        if not same or transcript.exchanges[: len(known)] != known.exchanges:
            raise InvalidInput("the file does not go on where this session knew it to be")
        self._odometer = Odometer(transcript, effort=self._odometer.effort)
        self._text = text

    def _record(self, odometer: Odometer) -> None:
        replace(self._path, odometer.transcript.to_json, self._temporary)
        self._text = odometer.transcript.to_json()
        super()._record(odometer)


def _followed(path: str | os.PathLike[str]) -> Path:
    """Where a file really is: one file, one lock, whatever links lead to it."""
    try:
        return Path(os.path.realpath(path, strict=True))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise InvalidInput("cannot be read: not a file name") from None
