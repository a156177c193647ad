"""Where a session keeps what was asked and answered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from expost.loss.odometer import Odometer
from expost.queries import Query
from expost.transcript import Exchange, Transcript

__all__ = ["Memory", "Store"]


@runtime_checkable
class Store(Protocol):
    """Keeps the exchanges of one subject, one after the other.

    A session takes a turn, decides, draws a response, has it recorded, and only then releases it.
    What is recorded is spent, whether or not it was released. Hand a store of your own to
    :meth:`Session.resume`.
    """

    @abstractmethod
    def turn(self, known: Odometer) -> AbstractContextManager[Odometer]:
        """Keep others from recording, and give what is recorded by now.

        That is ``known`` and what others have added to it since. Raise an error if it is anything
        else.
        """

    @abstractmethod
    def record(self, exchange: Exchange) -> None:
        """Add an exchange durably: once this returns, no crash loses it.

        It is called at most once in a turn. If it fails, nothing is released, and the error loses
        its traceback, whose variables may show the response.
        """

    def check(self, transcript: Transcript, query: Query) -> None:
        """Refuse a query that could not be recorded after this transcript; none by default."""
        return


class Memory(Store):
    """Keeps nothing beyond the process: the session itself has the transcript."""

    @contextmanager
    def turn(self, known: Odometer) -> Iterator[Odometer]:
        yield known

    def record(self, exchange: Exchange) -> None:
        pass
