"""Responses as tables spell them."""

from __future__ import annotations

from typing import Any

from expost.errors import InvalidInput
from expost.files.reading import NumberText, number, parse, scalar
from expost.queries import Likelihood
from expost.transcript import no_such_response

__all__ = ["response_position", "written"]


def response_position(likelihood: Likelihood[Any], response: Any) -> int:
    """The position of a response from a table: of the response itself, or of what it spells."""
    tried = [response, written(response)] if isinstance(response, str) else [response]
    found = {place for place in map(likelihood.position, tried) if place is not None}
    if len(found) > 1:
        raise InvalidInput("is a label of this query, and also writes a number of it")
    if not found:
        raise InvalidInput(no_such_response(likelihood))
    return found.pop()


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
