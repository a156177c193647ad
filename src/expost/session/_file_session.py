"""A subject whose transcript is a file: decide, sample, record durably, release."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from expost._types import PathLike
from expost.errors import InvalidInput, at, expect
from expost.files.durable import lock_file, replace, resolve_path
from expost.files.regular import read_contents, read_text
from expost.files.transcript_text import TranscriptText
from expost.loss import Odometer
from expost.queries import Query
from expost.sampling import Source
from expost.session._history import HistoryFile
from expost.session._secret_value import wrap_value
from expost.session._session import Session, Store
from expost.solver import Effort
from expost.transcript import Exchange, Transcript, append_exchange

__all__ = ["FileSession", "FileStore"]


class FileSession(Session):
    """A session whose transcript is a file, under the filter that the file names.

    A response is returned only after it is durably recorded. A response that a crash interrupts was
    never released; if it had been recorded, it counts as spent. Several processes may have sessions
    on one file: they are answered one after the other, each after reading what the others added.

    Args:
        path: The transcript file. It must exist and name a filter.
        value: The subject's value; where attributes change, a :class:`HistoryFile`.
        source: The source of randomness, by default that of the operating system.
        effort: The limits of searches on a box.
        waiting: Called when another process has held the file for a second.

    Raises:
        InvalidInput: There is no such file, or it is not a transcript with a filter.
        OutsideDomain: The value is not in the domain. The error does not show it.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start.save(Path(folder) / "ann.json")
    ...     session = xp.FileSession(Path(folder) / "ann.json", "yes")
    ...     response = session.ask(xp.randomized_response(epsilon=1))
    ...     len(xp.load_transcript(Path(folder) / "ann.json"))
    1
    """

    __slots__ = ()

    def __init__(
        self,
        path: PathLike,
        value: Any,
        *,
        source: Source | None = None,
        effort: Effort | None = None,
        waiting: Callable[[], None] | None = None,
    ) -> None:
        secret = wrap_value(value)
        del value  # as in Session
        expect(path, (str, os.PathLike), "the name of a file")
        if not os.path.lexists(path):
            del path  # perhaps it is the value, in the place of the file
            raise InvalidInput(
                "no such file (name not shown, in case it is the value itself); "
                "pass the file before the value"
            )
        with at(os.fspath(path), ": "):
            store = FileStore(path, waiting)
            transcript = store.load()
            guard = transcript.required_filter
        if transcript.domain.changes and not isinstance(secret, HistoryFile):
            raise InvalidInput("attributes change; pass a HistoryFile as the value")
        self._start(transcript, guard, secret, store, source, effort)


class FileStore(Store):
    """Keeps a transcript in a file, which is durably replaced as a whole at every exchange."""

    def __init__(self, path: PathLike, waiting: Callable[[], None] | None = None) -> None:
        self._path = resolve_path(path)
        self._waiting = waiting
        self._cleaned = False
        self._growing: TranscriptText | None = None

    def load(self) -> Transcript:
        """Read the transcript; a session starts from it."""
        self._text = read_text(self._path)
        return Transcript.from_json(self._text)

    def check(self, transcript: Transcript, query: Query) -> None:
        # A file must never grow beyond what can be read again.
        transcript.check_work(query, len(self._text))

    @contextmanager
    def turn(self, odometer: Odometer) -> Iterator[Odometer]:
        with ExitStack() as turn:
            with at(str(self._path), ": "):
                self._held = turn.enter_context(lock_file(self._path, self._waiting))
                self._clean()
                recorded = self._caught_up(odometer)
            self._transcript = recorded.transcript
            yield recorded

    def _clean(self) -> None:
        """Remove temporary files of processes that were killed before they recorded anything.

        Only who holds the lock writes such a file, and now that is this process.
        """
        if self._cleaned:
            return
        with os.scandir(self._path.parent) as entries:
            stale = [entry.path for entry in entries if _is_temporary(entry.name, self._path)]
        for path in stale:
            with suppress(OSError):
                os.unlink(path)
        self._cleaned = True

    def _caught_up(self, odometer: Odometer) -> Odometer:
        """Read what others have recorded since."""
        text = read_contents(self._held)
        if text == self._text:
            return odometer
        before, transcript = odometer.transcript, Transcript.from_json(text)
        if not transcript.continues(before):
            raise InvalidInput("the file no longer continues what this session has read")
        self._text = text
        return Odometer(transcript, effort=odometer.effort)

    def record(self, exchange: Exchange) -> None:
        # Dropped until all is done: after a failure the file may hold this exchange or not.
        growing, self._growing = self._growing, None
        if growing is None or len(growing) != len(self._transcript):
            growing = self._transcript.growing()
        append_exchange(exchange, growing)
        text = growing.text()
        # What another program wrote may have been longer, by spaces alone, and so allowed more.
        self._transcript.check_work(exchange.query, len(text))
        with at(str(self._path), ": "):
            replace(self._path, lambda: text, _temporary(self._path), self._held)
        self._text, self._growing = text, growing


def _temporary(path: Path) -> Path:
    """Return a file name that no process has used before."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")


def _is_temporary(name: str, path: Path) -> bool:
    """Return whether a name is a temporary one of this file, not of ``NAME.json.old``."""
    return re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}\.new", name) is not None
