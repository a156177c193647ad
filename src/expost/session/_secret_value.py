"""The secret of a session: the value of a subject, at every step so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet, describe_mismatch
from expost.errors import InvalidInput, OutsideDomain, at
from expost.files.reading import as_list
from expost.session._history import History, HistoryFile
from expost.session._secret import Secret, SecretValue, scrub_traceback

__all__ = ["Constant", "ValueSource", "wrap_value"]


@dataclass(frozen=True, slots=True)
class _ValueInMemory:
    """A value that is kept in memory."""

    secret: Secret
    first: bool

    def locate_in(self, domain: Domain) -> SecretValue:
        match domain:
            case FiniteSet() | Box():
                return Constant(domain, self.secret)
            case Attributes():
                return self._history(domain)
            case _:
                assert_never(domain)

    @scrub_traceback
    def _history(self, domain: Attributes) -> SecretValue:
        history, value = History(domain), self.secret.take()
        if self.first or not domain.changes:
            history.add(value)
            return history
        for step, record in enumerate(_list_records(value), 1):
            with at(f"step {step}", ": "):
                history.add(record)
        return history


#: A value as somebody gives it to a session.
ValueSource = HistoryFile | _ValueInMemory


def wrap_value(value: Any, *, first: bool = False) -> ValueSource:
    """Wrap a value; if there are steps, the records of all of them, or of the first one."""
    return value if isinstance(value, HistoryFile) else _ValueInMemory(Secret(value), first)


def _list_records(value: Any) -> list[Any]:
    try:
        records = as_list(value)
    except InvalidInput:
        records = []
    if not records:
        raise InvalidInput(
            "must be a list of records, one for each step so far, starting with the first"
        )
    return records


def _safe_mismatch(value: Any, names: Sequence[str]) -> str:
    """Say what is wrong with the names of a value, if that is what is wrong."""
    try:
        return describe_mismatch(value, names) if names else ""
    except Exception:  # whatever is wrong with a value, an error could show it
        return ""


class Constant(SecretValue):
    """A value that does not change."""

    __slots__ = ("_position",)

    step = 1

    @scrub_traceback
    def __init__(self, domain: Domain, secret: Secret) -> None:
        value = secret.take()
        self._position = domain.locate(value)
        if self._position is None:
            reason = "the value is outside the domain (and is not shown here)"
            wrong = _safe_mismatch(value, domain.names or ())
            raise OutsideDomain(f"{reason}: {wrong}" if wrong else reason)

    def position_at(self, step: int | None) -> Any:
        return self._position

    def next(self, changes: Secret) -> None:
        raise InvalidInput("the value does not change on this domain, so there is no next step")
