"""The records of a subject with attributes, one for each step so far; in memory or in a file.

A session answers for the frozen records, which stay within the limits of the domain. The last true
record is stored too: attributes that are not named at the next step keep their true value.

A history file is the secret: it belongs on the subject's device, apart from the transcript. A step
is on the disk before anything is answered about it. So a history is never behind its transcript,
whatever crashes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, cast

from expost._types import PathLike
from expost.domains import Attributes, Domain, Frozen, coordinates_of, join_names
from expost.errors import InvalidInput, OutsideDomain, at, expect
from expost.files.canonical import json_text
from expost.files.durable import lock_file, resolve_path, sync_directory, write_at
from expost.files.reading import members, parse
from expost.files.regular import (
    LARGEST,
    check_size,
    open_for_reading,
    others_may_read,
    others_may_write,
)
from expost.session._secret import Secret, SecretValue, scrub_traceback
from expost.transcript import Transcript

__all__ = ["History", "HistoryFile", "Positions", "locate_record"]


#: The positions of the values of a record, attribute by attribute.
Positions = tuple[int, ...]


class History(SecretValue):
    """The records so far. It reveals no record, nor whether the frozen record is the true one."""

    __slots__ = ("_domain", "_steps")

    def __init__(self, domain: Attributes) -> None:
        self._domain = domain
        # The true record and the frozen one, together: an interrupt leaves both or neither.
        self._steps: list[tuple[Positions, Frozen]] = []

    @property
    def step(self) -> int:
        """The step at which the subject is, from 1."""
        return len(self._steps)

    def position_at(self, step: int | None) -> Positions:
        """Return the frozen record of a step; without a step, the first one."""
        return self._steps[0 if step is None else step - 1][1].positions

    def add(self, record: Any) -> None:
        """Go on with the record at the next step, or start with that at the first."""
        self._append_step(locate_record(self._domain, record))

    @scrub_traceback
    def next(self, changes: Secret) -> None:
        """Advance to the next step; ``changes`` holds a mapping and keyword arguments."""
        if not self._domain.changes:
            raise InvalidInput("no attribute of this domain changes, so there is no next step")
        with self._turn():
            record = self._apply_changes(*changes.take())
            self._store_record(record)
            self._append_step(record)

    def check(self, transcript: Transcript) -> None:
        """Refuse a transcript that asked about a step which this history has not reached."""
        latest = max((exchange.query.step or 0 for exchange in transcript.exchanges), default=0)
        if latest > self.step:
            raise InvalidInput(
                f"the history is behind its transcript: it ends at step {self.step}, but a query "
                f"was about step {latest}. Use the latest copy of the history"
            )

    def _turn(self) -> AbstractContextManager[None]:
        """Keep others waiting while a step is added."""
        return nullcontext()

    def _store_record(self, record: Positions) -> None:
        """Store the next record durably, before any query about it is answered."""

    def _append_step(self, record: Positions) -> None:
        # The same is done whether or not the frozen record is the true one.
        if self._steps:
            true, frozen = self._steps[-1]
            self._check_constants(true, record)
            self._steps.append((record, frozen.next(record)))
        else:
            self._steps.append((record, Frozen.first(self._domain, record)))

    def _check_constants(self, before: Positions, now: Positions) -> None:
        attributes = zip(self._domain.names, self._domain.kinds, before, now, strict=True)
        for name, kind, old, new in attributes:
            if kind.change is None and old != new:
                raise OutsideDomain(f"{name} differs from the step before, and it does not change")

    def _apply_changes(self, mapping: Any, named: dict[str, Any]) -> Positions:
        expect({} if mapping is None else mapping, Mapping, "the attributes that changed")
        record = list(self._steps[-1][0])
        for name, value in {**(mapping or {}), **named}.items():
            # A name that is not known is not shown: it may be a value by mistake.
            if name not in self._domain.names:
                raise InvalidInput(
                    "unknown attribute (name not shown, in case it is a value); known: "
                    f"{join_names(self._domain.names)}"
                )
            if self._domain[name].change is None:
                raise InvalidInput("this attribute does not change", name)
            (index,) = self._domain.indices([name])
            record[index] = _locate_value(self._domain, name, value)
        return tuple(record)


def locate_record(domain: Attributes, record: Any) -> Positions:
    """Return the positions of a record. An error names an attribute, and never a value."""
    try:
        values = coordinates_of(record, domain.names)
    except Exception:  # whatever is wrong with a record, an error could show it
        raise OutsideDomain(
            f"a record must have exactly the attributes {join_names(domain.names)} (what it has is "
            "not shown)"
        ) from None
    pairs = zip(domain.names, values, strict=True)
    return tuple(_locate_value(domain, name, value) for name, value in pairs)


def _locate_value(domain: Attributes, name: str, value: Any) -> int:
    position = domain[name].values.locate(value)
    if position is None:
        raise OutsideDomain(f"the value of {name} is outside the domain (and is not shown here)")
    return position


class HistoryFile:
    """A file with the records of a subject whose attributes change, one for each step.

    Pass it instead of the value when a session starts. A line of the file is a record in JSON;
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
        path: PathLike,
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
        """True if the file exists and has a record in it."""
        try:
            with open_for_reading(self._path) as file:
                return file.readline(LARGEST).endswith(b"\n")
        except InvalidInput:
            return False

    def begin(self, transcript: Transcript, value: Any) -> None:
        """Create the file, with the record at the first step; there must not be any record yet.

        ``transcript`` will be answered from this file. Only its owner can read the file.
        """
        first = Secret(value)
        del value
        expect(transcript, Transcript, "a transcript")
        self._on(transcript.domain, strict=False).begin(transcript, first)

    def locate_in(self, domain: Domain) -> History:
        """Return the history in the file, for a session."""
        history = self._on(domain)
        history.catch_up()
        if not history.step:
            raise InvalidInput("holds no complete record yet", os.fspath(self._path))
        return history

    def _on(self, domain: Domain, *, strict: bool = True) -> _HistoryOnDisk:
        with at(os.fspath(self._path), ": "):
            if not domain.changes:
                raise InvalidInput("nothing changes on this domain; give the value and no history")
            path = resolve_path(self._path, strict=strict)
        changing = cast("Attributes", domain)  # nothing else changes
        return _HistoryOnDisk(changing, path, self._waiting, self._warn)


class _HistoryOnDisk(History):
    """A history with its file, of which it knows the lines that it has seen."""

    __slots__ = ("_held", "_path", "_read_bytes", "_waiting", "_warn")

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
        self._read_bytes = b""

    @scrub_traceback
    def begin(self, transcript: Transcript, first: Secret) -> None:
        """Start the file with the record at the first step."""
        self.check(transcript)
        record = locate_record(self._domain, first.take())
        _create_file(self._path)
        with self._turn():
            if self.step:
                raise InvalidInput("holds a history already", str(self._path))
            self._store_record(record)

    @scrub_traceback
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
                self._held = turn.enter_context(lock_file(self._path, self._waiting))
                self._check_mode()
                self._read_added_lines()
            yield

    def _check_mode(self) -> None:
        status = os.fstat(self._held.fileno())
        if others_may_write(status):
            raise InvalidInput(f"is writable by others; run chmod 600 {self._path}")
        if others_may_read(status) and not self._read_bytes:
            self._warn(f"{self._path} is readable by others; run chmod 600 {self._path}")

    def _read_added_lines(self) -> None:
        """Read the lines that others added. One that a crash cut off was never a step."""
        content = self._held.read(LARGEST + 1)
        check_size(len(content))
        complete = content[: content.rfind(b"\n") + 1]
        lines = complete.split(b"\n")[:-1]
        if complete == self._read_bytes and len(lines) == self.step:
            return
        if not complete.startswith(self._read_bytes):
            raise InvalidInput("the file no longer continues what this session has read")
        # The process that added them may have been killed before they were on the disk.
        os.fsync(self._held.fileno())
        sync_directory(self._path.parent)
        try:
            for line in lines[self.step :]:
                with at(f"line {self.step + 1}", ": "):
                    self.add(_parse_record(line))
        finally:
            self._read_bytes = b"".join(line + b"\n" for line in lines[: self.step])

    def _store_record(self, positions: Positions) -> None:
        record = dict(zip(self._domain.names, self._domain.value(positions), strict=True))
        line = f"{json_text(record)}\n".encode()
        end, file = len(self._read_bytes), self._held.fileno()
        with at(str(self._path), ": "):
            check_size(end + len(line))
        try:
            os.ftruncate(file, end)  # what a crash cut off goes
            write_at(file, line, end)
            os.fsync(file)
            sync_directory(self._path.parent)
        except BaseException as error:
            # Some of it may be there, or all of it and not on the disk: it was not a step.
            with suppress(OSError):
                os.ftruncate(file, end)
            if isinstance(error, OSError):
                raise type(error)(error.errno, error.strerror, str(self._path)) from None
            raise
        self._read_bytes += line


def _parse_record(line: bytes) -> dict[str, Any]:
    try:
        return members(parse(line.decode()), optional=None)
    except (InvalidInput, UnicodeDecodeError):
        raise InvalidInput("not a record in JSON (contents not shown)") from None


def _create_file(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass  # and perhaps empty
    except OSError as error:
        raise InvalidInput(f"cannot be made: {error.strerror}", str(path)) from None
