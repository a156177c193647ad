"""Domains, numbers and lists as people type them: ``no,yes``, ``0..10``, ``age=10..100``."""

from __future__ import annotations

import re
from typing import Any

from expost.errors import InvalidInput
from expost.files.reading import NumberText

__all__ = [
    "parse_definition",
    "parse_entries",
    "parse_labels",
    "parse_number",
    "parse_numbers",
    "parse_range",
    "parse_side",
    "parse_values",
]

_DECIMAL = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INTEGER = re.compile(r"0|-?[1-9]\d*")
_CELL = re.compile(r"""\s*(?:"((?:[^"]|"")*)"|([^,"]*))\s*(?=,|$)""")
_INTEGERS = "integers:"

# A longer range is a typing mistake; a file may list its values.
_MOST_VALUES = 1_000_000


def parse_values(text: str) -> dict[str, Any]:
    """Parse a finite domain into its JSON shape.

    >>> parse_values("no, yes"), parse_values("1..3")
    ({'values': ['no', 'yes']}, {'values': [1, 2, 3]})
    """
    if ".." not in text:
        return {"values": parse_entries(text)}
    lower, upper = (_parse_integer(end) for end in parse_range(text))
    if lower > upper:
        raise InvalidInput(f"{text!r}: the lower end comes first, as in 0..10")
    if upper - lower >= _MOST_VALUES:
        raise InvalidInput(f"a range has at most {_MOST_VALUES:,} values")
    return {"values": [NumberText(value) for value in range(lower, upper + 1)]}


def parse_side(text: str) -> Any:
    """Parse a side of a box into its JSON shape: real numbers, integers or categories.

    >>> parse_side("10..100"), parse_side("integers:0..1"), parse_side("n,s")
    ([10, 100], {'integers': [0, 1]}, {'categories': ['n', 's']})
    """
    if text.startswith(_INTEGERS):
        return {"integers": parse_range(text.removeprefix(_INTEGERS))}
    return parse_range(text) if ".." in text else {"categories": parse_labels(text)}


def parse_definition(text: str, *, example: str) -> tuple[str, str]:
    """Split a name from its definition: ``age=10..100``."""
    name, equals, definition = text.partition("=")
    if not (equals and name.strip() and definition.strip()):
        raise InvalidInput(f"{text!r}: expected NAME=…, such as {example}")
    return name.strip(), definition.strip()


def parse_range(text: str) -> list[NumberText]:
    """Parse the two ends of a range, ``0..12``."""
    lower, dots, upper = text.partition("..")
    if not dots:
        raise InvalidInput(f"{text!r} is not a range; write two numbers as in 0..12")
    return [parse_number(lower), parse_number(upper)]


def parse_number(text: str) -> NumberText:
    """Check that a text is a number and keep its digits; the reader of a field converts it."""
    if not _DECIMAL.fullmatch(text.strip()):
        raise InvalidInput(f"{text!r} is not a number{'; write 1.5' if ',' in text else ''}")
    return NumberText(text.strip())


def parse_entries(text: str) -> list[Any]:
    """Parse labels and numbers between commas; an entry in quotes is always a label.

    All entries are labels if one number would not print back as it was typed, because they may be
    versions: 1.10 is not 1.1.

    >>> parse_entries("never, 1, 2.5"), parse_entries('"1", 2')
    (['never', 1, 2.5], ['1', 2])
    >>> [type(each).__name__ for each in (*parse_entries('"1", 2'), *parse_entries("1.9, 1.10"))]
    ['str', 'NumberText', 'str', 'str']
    """
    cells = _split_cells(text)
    numbers = {cell for cell, quoted in cells if not quoted and _DECIMAL.fullmatch(cell)}
    # Whether each prints back as it was typed.
    if not all(_INTEGER.fullmatch(digits) or digits == str(float(digits)) for digits in numbers):
        return [cell for cell, _ in cells]
    return [NumberText(cell) if cell in numbers and not quoted else cell for cell, quoted in cells]


def parse_numbers(text: str) -> list[NumberText]:
    """Parse numbers between commas."""
    return [parse_number(label) for label in parse_labels(text)]


def parse_labels(text: str) -> list[str]:
    """Parse labels between commas; put a label that has a comma in quotes."""
    return [cell for cell, _ in _split_cells(text)]


def _split_cells(text: str) -> list[tuple[str, bool]]:
    """Split a text at commas; return each cell and whether it was in quotes."""
    expected = "must be a list such as never,sometimes,often"
    cells, end = [], -1
    while end < len(text):
        match = _CELL.match(text, end + 1)
        if match is None:
            raise InvalidInput(expected)
        quoted, plain = match.groups()
        cells.append((plain.strip(), False) if quoted is None else (quoted.strip(), True))
        end = match.end()
    if not all(cell for cell, _ in cells):
        raise InvalidInput(f"{expected}, with no empty entry")
    return [(cell.replace('""', '"'), quoted) for cell, quoted in cells]


def _parse_integer(text: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise InvalidInput(f"{str(text)!r} is not an integer; list other numbers, as in 0.5,1.5")
    return int(text)
