"""A subject's value, which only the draw of a response may read."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from expost.transcript import Transcript

__all__ = ["NotCopyable", "Secret", "SecretValue", "scrub_traceback", "without_frames"]

P = ParamSpec("P")
T = TypeVar("T")


class NotCopyable:
    """A base class that forbids copying and pickling, because it holds a secret."""

    __slots__ = ()

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not copied")


class Secret(NotCopyable):
    """A subject's value while it is passed on, to be taken once; no repr shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def take(self) -> Any:
        """Return the value and forget it."""
        value, self._value = self._value, None
        return value


class SecretValue(NotCopyable):
    """The store of the value that a session answers for, whether or not it is the true one."""

    __slots__ = ()

    @property
    @abstractmethod
    def step(self) -> int:
        """The step at which the subject is, from 1."""

    @abstractmethod
    def position_at(self, step: int | None) -> Any:
        """Return the position of the value in the domain, at a step up to the current one."""

    @abstractmethod
    def next(self, changes: Secret) -> None:
        """Continue to the next step, with the changes since the current one."""

    def catch_up(self) -> None:
        """Read steps that other processes have added to the store; in memory there are none."""

    def check(self, transcript: Transcript) -> None:
        """Refuse a transcript with a query about a step that the store has not reached."""


def without_frames(error: BaseException) -> BaseException:
    """Remove the tracebacks of an error and of its causes.

    Functions that look up a value or draw a response have local variables that reveal it. Tools
    that report errors show them, even after an interrupt or a failure of the source.
    """
    pending: list[BaseException | None] = [error]
    while pending:
        linked = pending.pop()
        # Without a traceback an error was never raised, or is done: causes may form a cycle.
        if linked is not None and linked.__traceback__ is not None:
            linked.__traceback__ = None
            pending += [linked.__context__, linked.__cause__]
    return error


def scrub_traceback(function: Callable[P, T]) -> Callable[P, T]:
    """Remove the traceback of any error of a function whose local variables hold secrets."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            raise without_frames(error) from None

    return wrapper
