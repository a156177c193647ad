"""The subject's side: decide, sample, record, release; and where the record is kept."""

from __future__ import annotations

from expost.session._file_session import FileSession, FileStore
from expost.session._history import HistoryFile
from expost.session._session import HALT, Analyst, Halt, Memory, Session, Store, interact

__all__ = [
    "HALT",
    "Analyst",
    "FileSession",
    "FileStore",
    "Halt",
    "HistoryFile",
    "Memory",
    "Session",
    "Store",
    "interact",
]
