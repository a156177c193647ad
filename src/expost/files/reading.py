"""Strict reading of JSON: text becomes checked Python values, or an error that names the place.

Numbers keep the text that was written, because ``0.3`` means 3/10 in one field and the nearest
double in another. Only the reader of a field knows which.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import nullcontext
from typing import Any, NoReturn, TypeVar

import numpy as np

from expost.errors import InvalidInput, at

__all__ = [
    "NumberText",
    "array",
    "double",
    "each",
    "items",
    "members",
    "number",
    "of_kind",
    "parse",
    "scalar",
    "text",
    "whole",
]

T = TypeVar("T")

LARGEST_INTEGER = 2**53


class NumberText(str):
    """A JSON number, as written."""

    __slots__ = ()


class _Object(dict[str, Any]):
    """A JSON object that remembers whether a key came twice."""

    repeated: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object(pairs)
    if len(result) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        result.repeated = max(counts, key=counts.__getitem__)
    return result


def parse(document: str) -> Any:
    """JSON with its number texts kept. Duplicate keys and NaN are left to the field readers."""
    try:
        return json.loads(
            document,
            parse_float=NumberText,
            parse_int=NumberText,
            parse_constant=NumberText,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InvalidInput(f"not JSON: {error.msg}", place) from None
    except RecursionError:
        _too_deep(document)


def _too_deep(document: str) -> NoReturn:
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', document):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > 100:
            break
    line = document.count("\n", 0, match.start()) + 1
    column = match.start() - document.rfind("\n", 0, match.start())
    raise InvalidInput("nested too deep", f"line {line} column {column}") from None


def members(
    value: Any, required: Iterable[str] = (), optional: Iterable[str] | None = ()
) -> dict[str, Any]:
    """An object with exactly these members; ``optional=None`` allows any further name."""
    if not isinstance(value, dict):
        raise InvalidInput("must be an object")
    if isinstance(value, _Object) and value.repeated is not None:
        raise InvalidInput("is given twice", value.repeated)
    if optional is not None:
        allowed = [*required, *optional]
        for key in value:
            if key not in allowed:
                raise InvalidInput(f"unknown field; known here: {', '.join(allowed)}", key[:60])
    for key in required:
        if key not in value:
            raise InvalidInput(f"{key!r} is missing")
    return value


def of_kind(value: Any, kinds: Mapping[str, T], what: str) -> tuple[T, dict[str, Any]]:
    """What an object names as its kind, and its other members."""
    fields = members(value, required=("kind",), optional=None)
    with at("kind"):
        kind = kinds.get(text(fields["kind"]))
        if kind is None:
            raise InvalidInput(f"unknown {what}; known: {', '.join(kinds)}")
    return kind, {name: field for name, field in fields.items() if name != "kind"}


def array(value: Any) -> list[Any]:
    """A JSON list."""
    if not isinstance(value, list):
        raise InvalidInput("must be a list")
    return value


def items(values: Any) -> list[Any]:
    """A list of what has an order; a text, a set or a dictionary is more likely a slip."""
    if isinstance(values, (str, bytes, Set, Mapping)):
        raise InvalidInput("must be a list")
    try:
        return list(values)
    except TypeError:
        raise InvalidInput("must be a list") from None


def each(values: Any, read: Callable[[Any], T], place: str = "") -> list[T]:
    """Read every entry of a list; an error names the index of the entry."""
    with at(place) if place else nullcontext():
        entries = items(values)
    result: list[T] = []
    try:
        for entry in entries:
            result.append(read(entry))
    except InvalidInput as error:
        with at(f"{place}[{len(result)}]"):
            raise error from None
    return result


def text(value: Any) -> str:
    """A JSON string; a number is not one."""
    if not isinstance(value, str) or isinstance(value, NumberText):
        raise InvalidInput("must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput("is not valid Unicode text") from None
    return str(value)


def scalar(value: Any) -> int | float | str:
    """A label or a number of a domain or a response: ``1.0`` is the integer 1, ``"1"`` a label."""
    if isinstance(value, str) and not isinstance(value, NumberText):
        return text(value)
    return number(value, "a label or a number")


def number(value: Any, what: str = "a number") -> int | float:
    """A finite number, as an integer if it is one that a double can hold."""
    if isinstance(value, NumberText) and re.fullmatch(r"-?\d+", value):
        value = int(value[:30])  # absurdly long ones are too large all the same
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        integer = int(value)
        if abs(integer) > LARGEST_INTEGER:
            raise InvalidInput("integer too large: at most 2^53")
        return integer
    result = double(value, what)
    return int(result) if result.is_integer() and abs(result) <= LARGEST_INTEGER else result


def whole(value: Any, *, at_least: int | None = None) -> int:
    """An integer, not below a limit if there is one."""
    result = number(value, "an integer")
    if not isinstance(result, int):
        raise InvalidInput("must be an integer")
    if at_least is not None and result < at_least:
        raise InvalidInput(f"must be at least {at_least}")
    return result


# float() would take these, but none of them is a number that a person wrote.
_NOT_NUMBERS = (bool, np.bool_, np.ndarray, np.complexfloating, bytes)


def double(value: Any, what: str = "a number") -> float:
    """A number that is used as the nearest double: a weight, a bound, a score."""
    is_text = isinstance(value, str) and not isinstance(value, NumberText)
    if isinstance(value, _NOT_NUMBERS) or is_text:
        raise InvalidInput(f"must be {what}")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"must be {what}") from None
    if not math.isfinite(result):
        raise InvalidInput("must be a finite number")
    return result
