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
    """A subject's value on its way to where it is kept; no repr shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def taken(self) -> Any:
        """Hand over the value and forget it."""
        value, self._value = self._value, None
        return value


class SecretValue(NotCopyable):
    """The value that a session answers for. It does not tell whether that is the true one."""

    __slots__ = ()

    @property
    @abstractmethod
    def step(self) -> int:
        """The step at which the subject is, from 1."""

    @abstractmethod
    def position_at(self, step: int | None) -> Any:
        """Return the position of the value in the domain, at a step that has come."""

    @abstractmethod
    def next(self, changes: Secret) -> None:
        """Go on to the next step."""

    def catch_up(self) -> None:
        """Read what others added; in memory there are no others."""

    def check(self, transcript: Transcript) -> None:
        """Refuse a transcript in which a step was asked about that has not come here."""


def without_frames(error: BaseException) -> BaseException:
    """Remove the tracebacks of an error and of its causes.

    Functions that look up a value or draw a response have local variables that reveal it. Tools
    that report errors show them, also after an interrupt or a failure of the source.
    """
    exception: list[BaseException | None] = [error]
    for linked in exception:
        if linked is not None and linked.__traceback__ is not None:
            linked.__traceback__ = None
            exception += [linked.__context__, linked.__cause__]
    return error


def scrub_traceback(function: Callable[P, T]) -> Callable[P, T]:
    """Remove the traceback of any error of a function whose local variables hold secrets."""

    @functools.wraps(function)
    def called(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return function(*arguments, **named)
        except BaseException as error:
            raise without_frames(error) from None

    return called
