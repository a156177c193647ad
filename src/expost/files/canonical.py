"""Trees as JSON: for people, and as bytes that are equal exactly for equal content."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from expost.numbers import Enclosure, decimal_text

__all__ = [
    "canonical_bytes",
    "json_text",
    "map_leaves",
    "plain_tree",
    "readable_tree",
    "value_tree",
]

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def map_leaves(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a tree of dictionaries and lists with every leaf replaced."""
    if isinstance(tree, dict):
        return {key: map_leaves(value, leaf) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [map_leaves(entry, leaf) for entry in tree]
    return leaf(tree)


def plain_tree(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a result in what JSON can hold: an enclosure by its ends, infinity as ``"inf"``."""
    return {key: map_leaves(value, _plain) for key, value in tree.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Enclosure):
        return {"lower": _plain(value.lower), "upper": _plain(value.upper)}
    if isinstance(value, float) and math.isnan(value):
        return None
    return str(value) if value in (math.inf, -math.inf) else value


def readable_tree(tree: Any) -> Any:
    """Return a tree for people: exact numbers as decimals or "p/q", doubles as JSON numbers."""
    from expost.files.reading import number  # brings numpy along, and a JSON text needs none

    def leaf(value: Any) -> Any:
        if type(value) is float and math.isfinite(value) and not value.is_integer():
            return value
        if isinstance(value, Fraction):
            return decimal_text(value)
        return number(value) if isinstance(value, float) else value

    return map_leaves(tree, leaf)


def value_tree(value: Any) -> Any:
    """Return the JSON shape of a value or a response: a label, a double, or a list of these."""
    if isinstance(value, tuple):
        return [x if isinstance(x, str) else float(x) for x in value]
    return value if isinstance(value, str) else float(value)


def canonical_bytes(tree: Any) -> bytes:
    """Return a tree as bytes that are equal exactly for equal content.

    Keys are sorted by UTF-16 code units, as in RFC 8785.
    """
    return _ENCODER.encode(_normal_form(tree)).encode()


def _normal_form(tree: Any) -> Any:
    """Return a tree with sorted keys and with all numbers as strings, equal ones written alike."""
    if isinstance(tree, float):
        return (tree + 0.0).hex()  # adding zero makes -0.0 the 0.0 that it equals
    if isinstance(tree, str):
        # A label must not pass for the number whose text it has.
        return "'" + tree if tree.startswith(("0x", "-0x", "'")) else tree
    if isinstance(tree, dict):
        names = sorted(tree, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return {name: _normal_form(tree[name]) for name in names}
    if isinstance(tree, (list, tuple)):
        return list(map(_normal_form, tree))
    return str(tree) if isinstance(tree, Fraction) else tree


def json_text(tree: Any, *, indent: int | None = None) -> str:
    """Write a tree as JSON that looks like what it is.

    Characters that control a terminal or the direction of writing are escaped, and all others that
    are not printable. Other characters outside of ASCII stay as they are.
    """
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=indent)
    return re.sub(r"[^\x20-\x7e\n]", _escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]
