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
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from expost.errors import InvalidInput, at, did_you_mean, read_at

__all__ = [
    "NumberText",
    "ParseCache",
    "array",
    "array_at",
    "as_list",
    "double",
    "has_duplicate_key",
    "members",
    "number",
    "parse",
    "read_integer",
    "read_list",
    "scalar",
    "split_kind",
    "text",
]

T = TypeVar("T")

LARGEST_INTEGER = 2**53
_SHORT = 16  # characters: what has fewer is below the largest integer
_INTEGER = re.compile(r"-?\d+")


class NumberText(str):
    """A JSON number, as written; its repr has no quotes, so that it differs from a label's."""

    __slots__ = ()
    __repr__ = str.__str__


class _Repeated(dict[str, Any]):
    """A JSON object in which a key came twice; its repr differs from that of any other object."""

    key: str

    def __repr__(self) -> str:
        return f"{self.key!r} twice in {super().__repr__()}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    repeated = _Repeated(result)
    counts = Counter(key for key, _ in pairs)
    repeated.key = max(counts, key=counts.__getitem__)
    return repeated


def parse(document: str) -> Any:
    """Parse JSON, keeping numbers as text. Field readers check duplicate keys and NaN."""
    try:
        return json.loads(
            document,
            parse_float=NumberText,
            parse_int=NumberText,
            parse_constant=NumberText,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        raise InvalidInput(f"not JSON: {error.msg}", position) from None
    except RecursionError:
        _too_deep(document)


def has_duplicate_key(document: str) -> bool:
    """Return whether a text is a JSON object that gives a name twice."""
    try:
        return isinstance(parse(document), _Repeated)
    except InvalidInput:
        return False


def _too_deep(document: str) -> NoReturn:
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', document):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > 100:
            break
    line = document.count("\n", 0, match.start()) + 1
    column = match.start() - document.rfind("\n", 0, match.start())
    raise InvalidInput("nested too deep", f"line {line} column {column}") from None


class ParseCache(Generic[T]):
    """A cache of objects made of parts of a document, by how these are written."""

    def __init__(self) -> None:
        self._cached: dict[str, T] = {}

    def get(self, tree: Any, make: Callable[[Any], T]) -> T:
        """Return the object made of a tree that is written alike, or make it now."""
        try:
            written = repr(tree)
        except RecursionError:  # nothing that a reader takes is nested that deep
            return make(tree)
        if written not in self._cached:
            self._cached[written] = make(tree)
        return self._cached[written]


def members(
    value: Any, required: Iterable[str] = (), optional: Iterable[str] | None = ()
) -> dict[str, Any]:
    """Read an object with exactly these members; ``optional=None`` allows any other name."""
    if not isinstance(value, dict):
        raise InvalidInput("must be an object")
    if isinstance(value, _Repeated):
        raise InvalidInput("appears twice", value.key)
    if optional is not None:
        allowed = (*required, *optional)
        if not value.keys() <= set(allowed):
            key = next(key for key in value if key not in allowed)
            hint = did_you_mean(key, allowed)
            raise InvalidInput(f"unknown field; known here: {', '.join(allowed)}{hint}", key[:60])
    for key in required:
        if key not in value:
            raise InvalidInput(f"{key!r} is missing")
    return value


def split_kind(value: Any, kinds: Mapping[str, T], family: str) -> tuple[T, dict[str, Any]]:
    """Read an object that names its kind: return the kind and the other members."""
    fields = members(value, required=("kind",), optional=None).copy()
    name = fields.pop("kind")
    kind = kinds.get(name) if type(name) is str else None
    if kind is None:
        with at("kind"):
            text(name)
            known = f"{', '.join(kinds)}{did_you_mean(name, kinds)}"
            raise InvalidInput(f"unknown {family}; known: {known}")
    return kind, fields


def array(value: Any) -> list[Any]:
    """Read a JSON list."""
    if not isinstance(value, list):
        raise InvalidInput("must be a list")
    return value


def array_at(fields: dict[str, Any], name: str) -> list[Any]:
    """Read a field that is a JSON list."""
    return read_at(name, array, fields[name])


def as_list(values: Any, expected: str = "a list") -> list[Any]:
    """Return a list of an ordered collection; refuse strings, sets and dictionaries.

    ``expected`` says in an error what is needed.
    """
    if type(values) is list:  # asking whether it is a Set takes longer than a copy
        return values.copy()
    if isinstance(values, (str, bytes, Set, Mapping)):
        raise InvalidInput(f"must be {expected}")
    try:
        return list(values)
    except TypeError:
        raise InvalidInput(f"must be {expected}") from None


def read_list(
    values: Any, read: Callable[[Any], T], name: str = "", expected: str = "a list"
) -> list[T]:
    """Read every entry of a list; an error names the index of the entry."""
    entries = values if type(values) is list else read_at(name, as_list, values, expected)
    result: list[T] = []
    try:
        for entry in entries:
            result.append(read(entry))
    except InvalidInput as error:
        raise error.within(f"{name}[{len(result)}]") from None
    return result


def text(value: Any) -> str:
    """Read a JSON string; a number is not one."""
    if not isinstance(value, str) or isinstance(value, NumberText):
        raise InvalidInput("must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput("is not valid Unicode text") from None
    return str(value)


def scalar(value: Any) -> int | float | str:
    """Read a label or a number: ``1.0`` is the integer 1, ``"1"`` is a label."""
    if isinstance(value, str) and not isinstance(value, NumberText):
        return text(value)
    return number(value, "a label or a number")


def number(value: Any, expected: str = "a number") -> int | float:  # name: as text, double
    """Read a finite number, as an integer if it is one that a double can hold."""
    kind = type(value)
    if kind is int and -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return int(value)
    if kind is NumberText:
        if len(value) < _SHORT and value.isdecimal():
            return int(value)
        if _INTEGER.fullmatch(value):
            value = int(value[:30])  # absurdly long ones are too large all the same
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        integer = int(value)
        if abs(integer) > LARGEST_INTEGER:
            raise InvalidInput("integer too large: at most 2^53")
        return integer
    result = double(value, expected)
    return int(result) if result.is_integer() and abs(result) <= LARGEST_INTEGER else result


def read_integer(value: Any, *, at_least: int | None = None) -> int:
    """Read an integer, not below a limit if there is one."""
    result = number(value, "an integer")
    if not isinstance(result, int):
        raise InvalidInput("must be an integer")
    if at_least is not None and result < at_least:
        raise InvalidInput(f"must be at least {at_least}")
    return result


_NUMBER_TYPES = (NumberText, float)
# float() would take these, but none of them is a number that a person wrote.
_OTHER_TYPES = (str, bool, np.bool_, np.ndarray, np.complexfloating, bytes)


def double(value: Any, expected: str = "a number") -> float:
    """Read a number that is used as the nearest double: a weight, a bound, a score."""
    if type(value) not in _NUMBER_TYPES and isinstance(value, _OTHER_TYPES):
        raise InvalidInput(f"must be {expected}")
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"must be {expected}") from None
    if not math.isfinite(result):
        raise InvalidInput("must be a finite number")
    return result
