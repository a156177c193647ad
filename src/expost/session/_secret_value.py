"""What a subject is, at every step so far: the one thing that a session keeps secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet, describe_mismatch
from expost.errors import InvalidInput, OutsideDomain, at
from expost.files.reading import as_list
from expost.session._history import History, HistoryFile
from expost.session._secret import Secret, Single, unseen
from expost.transcript import Transcript

__all__ = ["Constant", "Given", "Past", "first_of", "whole_of"]


class Past(Protocol):
    """What is answered for. Whether that is what is true, nobody is told."""

    @property
    def step(self) -> int:
        """The step at which the subject is, from 1."""

    def place(self, step: int | None) -> Any:
        """Where the value is in the domain, at a step that has come."""

    def next(self, changes: Secret) -> None:
        """Go on to the next step."""

    def catch_up(self) -> None:
        """See what others added."""

    def check(self, transcript: Transcript) -> None:
        """Refuse a transcript in which a step was asked about that has not come here."""


class Given(Protocol):
    """A value as somebody gives it to a session."""

    def past(self, domain: Domain) -> Past:
        """What it is on a domain."""


def first_of(value: Any) -> Given:
    """A value, or the record at the first step if there are steps."""
    return value if isinstance(value, HistoryFile) else _Kept(Secret(value), first=True)


def whole_of(value: Any) -> Given:
    """A value, or the records of all steps if there are steps."""
    return value if isinstance(value, HistoryFile) else _Kept(Secret(value), first=False)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A value that is kept in memory."""

    secret: Secret
    first: bool

    def past(self, domain: Domain) -> Past:
        match domain:
            case FiniteSet() | Box():
                return Constant(domain, self.secret)
            case Attributes():
                return self._history(domain)
            case _:
                assert_never(domain)

    @unseen
    def _history(self, domain: Attributes) -> Past:
        history, value = History(domain), self.secret.taken()
        if self.first or not domain.changes:
            history.add(value)
            return history
        for step, record in enumerate(_listed(value), 1):
            with at(f"step {step}", ": "):
                history.add(record)
        return history


def _listed(value: Any) -> list[Any]:
    try:
        records = as_list(value)
    except InvalidInput:
        records = []
    if not records:
        raise InvalidInput("must be a list of records, one for each step so far, from the first on")
    return records


def _safely_amiss(value: Any, names: Sequence[str]) -> str:
    """What is wrong with the names of a value, if that is what is wrong."""
    try:
        return describe_mismatch(value, names) if names else ""
    except Exception:  # whatever is wrong with a value, an error could show it
        return ""


class Constant(Single):
    """A value that does not change."""

    __slots__ = ("_place",)

    step = 1

    @unseen
    def __init__(self, domain: Domain, secret: Secret) -> None:
        value = secret.taken()
        self._place = domain.locate(value)
        if self._place is None:
            reason = "the value is outside the domain (and is not shown here)"
            wrong = _safely_amiss(value, domain.names or ())
            raise OutsideDomain(f"{reason}: {wrong}" if wrong else reason)

    def place(self, step: int | None) -> Any:
        return self._place

    def next(self, changes: Secret) -> None:
        raise InvalidInput("the value does not change on this domain, so there is no next step")

    def catch_up(self) -> None:
        pass

    def check(self, transcript: Transcript) -> None:
        pass
