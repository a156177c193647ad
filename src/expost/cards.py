"""What notebooks show instead of a repr: a small table of facts and one of rows, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TypeVar

__all__ = ["card", "nats"]

T = TypeVar("T")

_SHOWN = 5
"""How many rows are shown at either end of a long table."""

_LONGEST = 80


def card(
    title: str,
    facts: Mapping[str, object],
    *,
    columns: Sequence[str] = (),
    items: Sequence[T] = (),
    row: Callable[[int, T], Sequence[object]] | None = None,
) -> str:
    """A table of facts by name, and if there are items one with a row per item, numbered from 1."""
    lines = [f"<tr>{_cell(name, 'th')}{_cell(fact)}</tr>" for name, fact in facts.items()]
    caption = f'<caption style="text-align: left"><b>{escape(title)}</b></caption>'
    html = f"<table>{caption}{''.join(lines)}</table>"
    if row is None or not items:
        return html
    numbers = range(len(items))
    left_out = len(items) - 2 * _SHOWN
    lines = [_row(row(i + 1, items[i])) for i in (numbers if left_out <= 1 else numbers[:_SHOWN])]
    if left_out > 1:
        lines.append(f'<tr><td>…</td><td colspan="{len(columns) - 1}">{left_out:,} more</td></tr>')
        lines += [_row(row(i + 1, items[i])) for i in numbers[-_SHOWN:]]
    head = "".join(_cell(name, "th") for name in columns)
    return f"{html}<table><tr>{head}</tr>{''.join(lines)}</table>"


def nats(amount: float) -> str:
    """An amount of privacy in nats, as people read it.

    >>> nats(1.0986122886681098)
    '1.09861'
    """
    return f"{amount:.6g}"


def _row(cells: Sequence[object]) -> str:
    return f"<tr>{''.join(_cell(cell) for cell in cells)}</tr>"


def _cell(content: object, kind: str = "td") -> str:
    text = str(content)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f'<{kind} style="text-align: left">{escape(shown)}</{kind}>'
