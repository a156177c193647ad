"""The history of a subject as a file of its own, a line for each step, which only grows.

It is the secret: it belongs on the subject's device, and with no transcript. A step is on the disk
before anything is answered about it, so a history is never behind its transcript, whatever crashes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from expost.domains import Attributes, Domain
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import json_text
from expost.files.durable import followed, locked, sync_directory
from expost.files.permissions import others_may_read, others_may_write
from expost.files.reading import members, parse
from expost.files.regular import LARGEST, check_size, opened
from expost.session.history import History, Places, located
from expost.session.secret import Secret, unseen
from expost.transcript import Transcript

__all__ = ["HistoryFile"]


class HistoryFile:
    """Where the records of a subject whose attributes change are kept, one for each step.

    It takes the place of the value when a session starts. A line of the file is a record in JSON;
    the steps are the lines that are complete. Others must not be able to write to it. ``waiting``
    is called when another process has held the file for a second, and ``warn`` with a line if
    others may read it.

    >>> import os, tempfile
    >>> import expost as xp
    >>> place = tempfile.TemporaryDirectory()
    >>> person = xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"]))
    >>> transcript = xp.Transcript(person, xp.BayesianFilter(epsilon=2))
    >>> history = HistoryFile(os.path.join(place.name, "ann.jsonl"))
    >>> history.begin(transcript, {"region": "south", "smokes": "no"})
    >>> session = xp.Session.resume(transcript, history)
    >>> session.next(smokes="yes")
    >>> session.step
    2
    >>> place.cleanup()
    """

    __slots__ = ("_path", "_waiting", "_warn")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        waiting: Callable[[], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        expect(path, (str, os.PathLike), "the name of a file")
        self._path = path
        self._waiting = waiting
        self._warn = warn or warnings.warn

    @property
    def begun(self) -> bool:
        """Whether the file is there, with a record in it."""
        try:
            with opened(self._path) as file:
                return file.readline(LARGEST).endswith(b"\n")
        except InvalidInput:
            return False

    def begin(self, transcript: Transcript, value: Any) -> None:
        """Make the file, with the record at the first step; there must not be any record yet.

        The transcript is the one that is to be answered from it. Nobody else may read the file.
        """
        first = Secret(value)
        del value
        expect(transcript, Transcript, "a transcript")
        self._on(transcript.domain, strict=False).begin(transcript, first)

    def past(self, domain: Domain) -> History:
        """What the file holds, for a session."""
        history = self._on(domain)
        history.catch_up()
        if not history.step:
            raise InvalidInput("holds no complete record yet", os.fspath(self._path))
        return history

    def _on(self, domain: Domain, *, strict: bool = True) -> _OnDisk:
        with at(os.fspath(self._path), ": "):
            if not domain.changes:
                raise InvalidInput("nothing changes on this domain; give the value and no history")
            path = followed(self._path, strict=strict)
        changing = cast("Attributes", domain)  # nothing else changes
        return _OnDisk(changing, path, self._waiting, self._warn)


class _OnDisk(History):
    """A history with its file, of which it knows the lines that it has seen."""

    __slots__ = ("_held", "_known", "_path", "_waiting", "_warn")

    def __init__(
        self,
        domain: Attributes,
        path: Path,
        waiting: Callable[[], None] | None,
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(domain)
        self._path = path
        self._waiting = waiting
        self._warn = warn
        self._known = b""

    @unseen
    def begin(self, transcript: Transcript, first: Secret) -> None:
        """Start the file with the record at the first step."""
        self.check(transcript)
        places = located(self._domain, first.taken())
        _make(self._path)
        with self._turn():
            if self.step:
                raise InvalidInput("holds a history already", str(self._path))
            self._keep(places)

    @unseen
    def catch_up(self) -> None:
        with self._turn():
            pass

    def check(self, transcript: Transcript) -> None:
        with at(str(self._path), ": "):
            super().check(transcript)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with ExitStack() as turn:
            with at(str(self._path), ": "):
                self._held = turn.enter_context(locked(self._path, self._waiting))
                self._check_mode()
                self._see()
            yield

    def _check_mode(self) -> None:
        status = os.fstat(self._held.fileno())
        if others_may_write(status):
            raise InvalidInput("others may write to it; chmod 600 leaves it to its owner")
        if others_may_read(status) and not self._known:
            self._warn(f"others may read {self._path}; chmod 600 leaves it to its owner")

    def _see(self) -> None:
        """Read the lines that others added. One that a crash cut off was never a step."""
        content = self._held.read(LARGEST + 1)
        check_size(len(content))
        complete = content[: content.rfind(b"\n") + 1]
        lines = complete.split(b"\n")[:-1]
        if complete == self._known and len(lines) == self.step:
            return
        if not complete.startswith(self._known):
            raise InvalidInput("the file no longer continues what this session has read")
        # Whoever added them may have been killed before they were on the disk.
        os.fsync(self._held.fileno())
        sync_directory(self._path.parent)
        try:
            for line in lines[self.step :]:
                with at(f"line {self.step + 1}", ": "):
                    self.add(_record(line))
        finally:
            self._known = b"".join(line + b"\n" for line in lines[: self.step])

    def _keep(self, places: Places) -> None:
        record = dict(zip(self._domain.names, self._domain.value(places), strict=True))
        line, end, file = f"{json_text(record)}\n".encode(), len(self._known), self._held.fileno()
        with at(str(self._path), ": "):
            check_size(end + len(line))
        try:
            os.ftruncate(file, end)  # what a crash cut off goes
            _write(file, line, end)
            os.fsync(file)
            sync_directory(self._path.parent)
        except BaseException as error:
            # Some of it may be there, or all of it and not on the disk: it was not a step.
            with suppress(OSError):
                os.ftruncate(file, end)
            if isinstance(error, OSError):
                raise type(error)(error.errno, error.strerror, str(self._path)) from None
            raise
        self._known += line


def _record(line: bytes) -> dict[str, Any]:
    try:
        return members(parse(line.decode()), optional=None)
    except (InvalidInput, UnicodeDecodeError):
        raise InvalidInput("is not a record in JSON (what it is is not shown here)") from None


def _make(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass  # and perhaps empty
    except OSError as error:
        raise InvalidInput(f"cannot be made: {error.strerror}", str(path)) from None


def _write(file: int, line: bytes, start: int) -> None:
    while line:
        written = os.pwrite(file, line, start)
        line, start = line[written:], start + written
