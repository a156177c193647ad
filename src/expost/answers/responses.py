"""Responses as tables spell them."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.files.reading import NumberText, number, parse, scalar
from expost.queries import Likelihood, Query
from expost.transcript import no_such_response

__all__ = ["check_spelled", "response_position", "written"]


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 30


def response_position(likelihood: Likelihood[Any], response: Any, query: str) -> int:
    """The position of a response from a table: of the response itself, or of what it spells.

    ``query`` is what it is called. An error shows the response, for responses are public.
    """
    tried = [response, written(response)] if isinstance(response, str) else [response]
    found = {place for place in map(likelihood.position, tried) if place is not None}
    if len(found) > 1:
        raise InvalidInput(f"is a label of {query}, and also writes a number of it")
    if not found:
        raise InvalidInput(f"{_SHORT.repr(response)} {no_such_response(likelihood, query)}")
    return found.pop()


def check_spelled(domain: Domain, pairs: Iterable[tuple[Query, Any]]) -> None:
    """Refuse a text that only spells a response: in Python, unlike in a table, "1" is not 1."""
    seen: set[tuple[int, str]] = set()
    for row, (query, response) in enumerate(pairs, start=1):
        if not isinstance(response, str) or (id(query), response) in seen:
            continue
        seen.add((id(query), response))
        likelihood = query.on(domain)
        if likelihood.position(response) is None:
            reason = no_such_response(likelihood, f"this {query.kind}")
            raise InvalidInput(f"{_SHORT.repr(response)} {reason}", f"row {row}: response")


def written(response: str) -> Any:
    """The number, or the tuple of numbers and labels, that a text spells; None if neither.

    >>> written("12"), written('["north", 34]'), written("yes")
    (12, ('north', 34), None)
    """
    try:
        value = parse(response)
        if isinstance(value, list):
            return tuple(scalar(entry) for entry in value)
        return number(value) if isinstance(value, NumberText) else None
    except InvalidInput:
        return None
