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
    What is recorded is spent, whether or not it was released.
    """

    @abstractmethod
    def turn(self, known: Odometer) -> AbstractContextManager[Odometer]:
        """Keep everybody else from recording, and give what is recorded by now.

        That is ``known`` and what others added to it since. If it is anything else, refuse.
        """

    @abstractmethod
    def record(self, exchange: Exchange) -> None:
        """Add an exchange, for good: when this returns, no crash loses it.

        Called within a turn, at most once in each. If it fails, nothing is released, and the error
        loses its frames, for their variables may show the response.
        """

    def check(self, transcript: Transcript, query: Query) -> None:
        """Refuse a query that could not be recorded after this transcript; by default none."""
        return


class Memory(Store):
    """Keeps nothing beyond the process: what the session knows is all there is."""

    @contextmanager
    def turn(self, known: Odometer) -> Iterator[Odometer]:
        yield known

    def record(self, exchange: Exchange) -> None:
        pass
