"""Domains, numbers and lists as people type them: ``no,yes``, ``0..10``, ``age=10..100``."""

from __future__ import annotations

import re
from typing import Any

from expost.errors import InvalidInput
from expost.files.reading import NumberText

__all__ = [
    "ends",
    "entries",
    "labels",
    "named",
    "number",
    "numbers",
    "side",
    "values",
]

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"0|-?[1-9]\d*")
_CELL = re.compile(r"""\s*(?:"((?:[^"]|"")*)"|([^,"]*))\s*(?=,|$)""")
_INTEGERS = "integers:"

# More than that nobody types as a range by mistake; a file may list them.
_MOST = 1_000_000


def values(text: str) -> dict[str, Any]:
    """A finite domain in its JSON shape.

    >>> values("no, yes"), values("1..3")
    ({'values': ['no', 'yes']}, {'values': ['1', '2', '3']})
    """
    if ".." not in text:
        return {"values": entries(text)}
    lower, upper = (_whole(end) for end in ends(text))
    if lower > upper:
        raise InvalidInput("the lower end comes first, such as 0..10")
    if upper - lower >= _MOST:
        raise InvalidInput(f"a range has at most {_MOST:,} values")
    return {"values": [NumberText(value) for value in range(lower, upper + 1)]}


def side(text: str) -> Any:
    """A coordinate of a box in its JSON shape: real numbers, integers or categories.

    >>> side("10..100"), side("integers:0..1"), side("n,s")
    (['10', '100'], {'integers': ['0', '1']}, {'categories': ['n', 's']})
    """
    if text.startswith(_INTEGERS):
        return {"integers": ends(text.removeprefix(_INTEGERS))}
    return ends(text) if ".." in text else {"categories": labels(text)}


def named(text: str, *, example: str) -> tuple[str, str]:
    """What a text says of what: ``age=10..100``."""
    name, equals, what = text.partition("=")
    if not (equals and name.strip() and what.strip()):
        raise InvalidInput(f"must be a name and what it is, such as {example}")
    return name.strip(), what.strip()


def ends(text: str) -> list[NumberText]:
    """The two ends of a range, ``0..12``."""
    lower, dots, upper = text.partition("..")
    if not dots:
        raise InvalidInput("must be two numbers with two dots between them, such as 0..12")
    return [number(lower), number(upper)]


def number(text: str) -> NumberText:
    """A number as it was typed, exact: the reader of a field says what it becomes."""
    if not _NUMBER.fullmatch(text.strip()):
        raise InvalidInput("must be a number" + (", with a point: 1.5" if "," in text else ""))
    return NumberText(text.strip())


def entries(text: str) -> list[Any]:
    """Labels and numbers between commas; what stands in quotes is a label, whatever it looks like.

    They are all labels if one of them would not print back as it was typed: 1.10 is not 1.1 where
    they are versions.

    >>> entries("never, 1, 2.5"), entries('"1", 2')
    (['never', '1', '2.5'], ['1', '2'])
    >>> [type(each).__name__ for each in (*entries('"1", 2'), *entries("1.9, 1.10"))]
    ['str', 'NumberText', 'str', 'str']
    """
    cells = _cells(text)
    looks = [not quoted and _NUMBER.fullmatch(cell) is not None for cell, quoted in cells]
    numbers = [cell for (cell, _), number in zip(cells, looks, strict=True) if number]
    if not all(map(_prints_back, numbers)):
        return [cell for cell, _ in cells]
    return [
        NumberText(cell) if number else cell for (cell, _), number in zip(cells, looks, strict=True)
    ]


def numbers(text: str) -> list[NumberText]:
    """Numbers between commas."""
    return [number(label) for label in labels(text)]


def labels(text: str) -> list[str]:
    """Texts between commas, whatever they look like; what is to have a comma stands in quotes."""
    return [cell for cell, _ in _cells(text)]


def _cells(text: str) -> list[tuple[str, bool]]:
    """What is between commas, and whether it was in quotes."""
    example = "must be a list such as never,sometimes,often"
    cells, end = [], -1
    while end < len(text):
        found = _CELL.match(text, end + 1)
        if found is None:
            raise InvalidInput(example)
        quoted, plain = found.groups()
        cells.append((plain.strip(), False) if quoted is None else (quoted.strip(), True))
        end = found.end()
    if not all(cell for cell, _ in cells):
        raise InvalidInput(f"{example}, with no empty entry")
    return [(cell.replace('""', '"'), quoted) for cell, quoted in cells]


def _prints_back(number: str) -> bool:
    return _WHOLE.fullmatch(number) is not None or number == str(float(number))


def _whole(text: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise InvalidInput("the ends must be integers; list other numbers, such as 0.5,1.5")
    return int(text)
