"""Small tables that show results: HTML in notebooks and text elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from expost._format import align_columns, shorten

__all__ = ["View", "card"]

T = TypeVar("T")

#: How many rows are shown at either end of a long table.
_SHOWN = 5

_LONGEST = 80
_LONGEST_FACT = 160


def card(
    title: str,
    facts: Mapping[str, object],
    *,
    columns: Sequence[str] = (),
    items: Sequence[T] = (),
    row: Callable[[int, T], Sequence[object]] | None = None,
    every: bool = False,
) -> str:
    """Write HTML tables of facts by name and of items, which are numbered from 1.

    Of many items only those at both ends are shown, unless ``every`` is set.
    """
    lines = [
        f"<tr>{_cell(name, 'th')}{_cell(fact, longest=_LONGEST_FACT)}</tr>"
        for name, fact in facts.items()
    ]
    caption = f'<caption style="text-align: left"><b>{escape(title)}</b></caption>'
    html = f"<table>{caption}{''.join(lines)}</table>"
    if row is None or not items:
        return html
    first, left_out, last = (range(len(items)), 0, range(0)) if every else _ends(len(items))
    lines = [_row(row(i + 1, items[i])) for i in first]
    if left_out:
        lines.append(f'<tr><td>…</td><td colspan="{len(columns) - 1}">{left_out:,} more</td></tr>')
        lines += [_row(row(i + 1, items[i])) for i in last]
    head = "".join(_cell(name, "th") for name in columns)
    return f"{html}<table><tr>{head}</tr>{''.join(lines)}</table>"


@dataclass(frozen=True, slots=True)
class View:
    """The view of a result with many rows: text for its repr, and HTML.

    >>> rows = [("Ann", 34), ("Bo", 5)]
    >>> print(View("Ages(2)", {"in": "years"}, ("name", "age"), len(rows), rows.__getitem__))
    Ages(2)
    name  age
    Ann   34
    Bo    5
    in: years
    """

    title: str
    facts: Mapping[str, object]
    columns: Sequence[str]
    size: int
    #: The cells of a row, by its number from 0.
    row: Callable[[int], Sequence[object]]

    def __str__(self) -> str:
        first, left_out, last = _ends(self.size)
        rows = [[_line(cell, _LONGEST) for cell in self.row(i)] for i in (*first, *last)]
        lines = align_columns([self.columns, *rows])
        if left_out:
            lines.insert(1 + len(first), f"… {left_out:,} more")
        facts = [f"{name}: {_line(fact, _LONGEST_FACT)}" for name, fact in self.facts.items()]
        return "\n".join([self.title, *lines, *facts])

    def html(self) -> str:
        """Write the view for notebooks."""
        return card(
            self.title,
            self.facts,
            columns=self.columns,
            items=range(self.size),
            row=lambda _index, index: self.row(index),
        )


def _ends(size: int) -> tuple[range, int, range]:
    """Choose the items that are shown: the first ones, the count left out, and the last ones."""
    left_out = size - 2 * _SHOWN
    if left_out <= 1:
        return range(size), 0, range(0)
    return range(_SHOWN), left_out, range(size - _SHOWN, size)


def _row(cells: Sequence[object]) -> str:
    return f"<tr>{''.join(_cell(cell) for cell in cells)}</tr>"


def _cell(content: object, kind: str = "td", longest: int = _LONGEST) -> str:
    return f'<{kind} style="text-align: left">{escape(shorten(str(content), longest))}</{kind}>'


def _line(content: object, longest: int) -> str:
    """Put a text on one line of a terminal, whatever it contains."""
    return shorten("".join(c if c.isprintable() else "?" for c in str(content)), longest)
