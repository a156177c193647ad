"""The subject's side: decide, sample, record, release; and where the record is kept."""

from __future__ import annotations

from expost.session.file import FileSession, FileStore
from expost.session.history_file import HistoryFile
from expost.session.interact import HALT, Analyst, Halt, interact
from expost.session.session import Session
from expost.session.store import Memory, Store

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
