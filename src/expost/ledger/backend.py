"""Where a ledger is kept: a handful of methods, and what each of them promises.

The core decides, draws and chains; a backend keeps. One suite of tests holds for all of them:
tests/ledger/test_backends.py.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from expost.ledger.records import Change, Head, Kept, Outcome, QueryWord, ResponseWord, Tip

__all__ = ["DECLINED", "Backend", "Looked", "Row", "Stale"]

DECLINED = -1
"""The response of a request that a device declined."""


class Stale(Exception):
    """Somebody else was faster: nothing was added. Read again, decide again."""


class Row(NamedTuple):
    """A request as it is kept."""

    key: str
    subject: int
    query: int
    sequence: int
    response: int
    commit: int


class Looked(NamedTuple):
    """What there is for several requests, in their order."""

    outcomes: list[dict[int, Outcome]]
    heads: Sequence[Iterable[Head]]
    ended: bool
    """Whether the study is closed."""


class Backend(Protocol):
    """Keeps one ledger. Its methods are called by one thread at a time."""

    @abstractmethod
    def policy(self) -> str:
        """The document of the policy, which was given when the ledger was created."""

    @abstractmethod
    def tip(self) -> Tip:
        """The last commit; before the first one that is 0, with the first root."""

    @abstractmethod
    def root(self, commit: int) -> bytes | None:
        """The root after some commit; None if there is no such commit."""

    @abstractmethod
    def queries(self, after: int = 0) -> list[QueryWord]:
        """The queries whose number is larger, in order."""

    @abstractmethod
    def introduced(self) -> list[tuple[QueryWord, int]]:
        """All queries, and their commits."""

    @abstractmethod
    def responses(self, after: int = 0) -> list[ResponseWord]:
        """The responses whose number is larger, in order."""

    @abstractmethod
    def subjects(self, after: int = 0) -> list[tuple[int, str]]:
        """The subjects whose number is larger, in order: numbers and names."""

    @abstractmethod
    def numbers(self, names: Sequence[str]) -> list[int]:
        """The numbers of subjects by their names; 0 for nobody."""

    @abstractmethod
    def size(self) -> int:
        """How many subjects there are; their numbers are from 1 to this."""

    @abstractmethod
    def heads(self, subjects: Sequence[int]) -> list[Head]:
        """Where some subjects are. What is damaged is an error, never another head."""

    @abstractmethod
    def waiting(self, first: int, last: int) -> list[int]:
        """Who has an open reservation, of the subjects with numbers from the first to the last."""

    @abstractmethod
    def outcomes(self, key: str, subjects: Sequence[int]) -> dict[int, Outcome]:
        """What became of a request of some subjects; those who never had it are left out."""

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked:
        """All that several requests are decided on, each given by its key and its subjects."""
        return Looked(
            [self.outcomes(key, subjects) for key, subjects in asked],
            [self.heads(subjects) for _, subjects in asked],
            bool(self.ended()),
        )

    @abstractmethod
    def append(self, change: Change, lines: Sequence[bytes], after: Tip | None = None) -> Tip:
        """Add a change in one commit, durably: once this returns, no crash loses it.

        ``lines`` are what the root of the commit is a digest of. Where the last exchange of
        whoever answers is, is set in the heads after their answers, if those are in columns.

        Raise :class:`Stale`, and add nothing, unless every head that it is based on is still
        the last one of its subject, no request had an outcome, and no word or subject is there by
        that number or content; or if the last commit is not the one ``after`` which it must come.
        Raise ``Broken`` if it is not known whether it is recorded.
        """

    @abstractmethod
    def exchanges(self, subject: int, head: Head) -> list[Row]:
        """The exchanges of one subject, in order, found one from the other back from a head."""

    @abstractmethod
    def unlinked(self) -> list[int]:
        """The subjects whose exchanges are not found one from the other, back from the last."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """All requests that were answered, refused or declined, in no order."""

    @abstractmethod
    def reservations(self) -> Iterator[Row]:
        """All reservations there ever were, in no order; they have no responses."""

    @abstractmethod
    def registered(self) -> Iterator[tuple[int, str, int]]:
        """All subjects: number, name, and commit."""

    @abstractmethod
    def closures(self) -> list[tuple[int, int]]:
        """Who was closed: number, and commit."""

    @abstractmethod
    def moved_in(self, commits: Sequence[int]) -> list[int]:
        """The subjects for whom something was answered, reserved or closed in some commits."""

    @abstractmethod
    def reason_kept(self, subject: int, digest: str) -> str | None:
        """Why a message was kept; None if it was not."""

    @abstractmethod
    def kept(self) -> list[tuple[Kept, int]]:
        """The messages that did not fit, and their commits."""

    @abstractmethod
    def ended(self) -> int:
        """The commit in which the study was closed; 0 if it is open."""

    @abstractmethod
    def roots(self) -> Iterator[bytes]:
        """The roots before the first commit and after each, in order."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """All reads within see the same commit."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it. What was recorded stays."""
