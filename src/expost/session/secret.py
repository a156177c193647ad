"""A subject's value, which nothing but the draw of a response may look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from expost.domains import Domain, amiss

__all__ = ["Secret", "without_frames"]


class Secret:
    """A subject's value, of which only the place in the domain is kept; no repr shows either.

    It is neither copied nor pickled.
    """

    __slots__ = ("_value", "amiss", "place")

    def __init__(self, value: Any) -> None:
        self._value = value
        self.place: Any = None
        self.amiss = ""
        """What is wrong with its names, if it is not in the domain for that reason."""

    def locate(self, domain: Domain) -> bool:
        """Whether the value is in the domain."""
        try:
            self.place = domain.locate(self._value)
            if self.place is None and domain.names is not None:
                self.amiss = _safely_amiss(self._value, domain.names)
            self._value = None
        except BaseException as error:
            raise without_frames(error) from None
        return self.place is not None

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not copied")


def _safely_amiss(value: Any, names: Sequence[str]) -> str:
    try:
        return amiss(value, names)
    except Exception:  # whatever is wrong with a value, an error could show it
        return ""


def without_frames(error: BaseException) -> BaseException:
    """An error that tells nothing of where it happened.

    Functions that look up a value or draw a response have local variables that reveal it. Tools
    that report errors show them, also after an interrupt or a failure of the source.
    """
    found: list[BaseException | None] = [error]
    for each in found:
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            found += [each.__context__, each.__cause__]
    return error
