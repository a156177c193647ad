"""A scale from 0 to 100 % as a drawing: where a confidence was, where it is, where it can be."""

from __future__ import annotations

import math
from html import escape

__all__ = ["drawing", "percent"]

_LEFT, _RIGHT, _WIDTH, _HEIGHT = 40, 680, 720, 172
_BEFORE, _AFTER, _ALLOWED, _INK, _FAINT = "#b4552d", "#0b6e8a", "#cfe3ea", "#222222", "#8a8a8a"


def percent(share: float) -> str:
    """A share for people: whole per cents, and more digits only where 0 or 100 are near."""
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    rest = min(share, 1 - share)
    # Two digits of the smaller part: 23 %, 0.12 %, 99.97 %.
    if rest < 1e-6:
        return "under 0.0001 %" if share < 0.5 else "over 99.9999 %"
    text = f"{100 * share:.{max(0, -1 - math.floor(math.log10(rest)))}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def drawing(
    before: float,
    after: float | None,
    lower: float,
    upper: float,
    *,
    title: str = "",
    between: str = "allowed",
) -> str:
    """An SVG of its own, without anything from outside; ``after`` is left out if None.

    ``between`` says what it is that can be between ``lower`` and ``upper``.
    """
    marks = [(before, _BEFORE, 62, "before", "#ffffff")]
    words = f"Before {percent(before)}, "
    if after is not None:
        marks.append((after, _AFTER, 40, "after", _AFTER))
        words += f"after {percent(after)}, "
    words += f"{between} between {percent(lower)} and {percent(upper)}."
    ends = f"{between}: {percent(lower)} to {percent(upper)}"
    # Lines first and words last, so that no line goes through a word.
    parts = [
        f'<rect x="{_x(lower):.1f}" y="84" width="{max(2, _x(upper) - _x(lower)):.1f}" height="36" '
        f'fill="{_ALLOWED}" rx="4"/>',
        _line(0, 102, 1, 102, _INK),
        *(_tick(tenth / 10) for tenth in range(11)),
        *(_line(at, top + 4, at, 96, color, "2 3") for at, color, top, _, _ in marks),
        "" if after is None else _arrow(before, after),
        *(
            f'<circle cx="{_x(at):.1f}" cy="102" r="7" fill="{fill}" stroke="{color}" '
            'stroke-width="3"/>'
            for at, color, _, _, fill in marks
        ),
        *(_label(at, top, f"{name}: {percent(at)}", color) for at, color, top, name, _ in marks),
        _label((lower + upper) / 2, 160, ends, _INK),
        f'<text x="{_WIDTH // 2}" y="18" font-size="16" text-anchor="middle">',
        f"{escape(title)}</text>",
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" role="img" fill="{_INK}" '
        f'font-family="system-ui, sans-serif"><title>{escape(words)}</title>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _x(share: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * share


def _line(start: float, top: float, end: float, bottom: float, color: str, dashes: str = "") -> str:
    return (
        f'<line x1="{_x(start):.1f}" y1="{top}" x2="{_x(end):.1f}" y2="{bottom}" '
        f'stroke="{color}" stroke-width="1.5" stroke-dasharray="{dashes or "none"}"/>'
    )


def _label(share: float, y: int, text: str, color: str) -> str:
    # Near an end of the scale a label around its place would be cut.
    half = 4.4 * len(text)
    x = min(max(_x(share), half), _WIDTH - half)
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="14" font-weight="600" fill="{color}" '
        'text-anchor="middle" stroke="#ffffff" stroke-width="5" paint-order="stroke">'
        f"{escape(text)}</text>"
    )


def _tick(share: float) -> str:
    large = round(share * 10) % 5 == 0
    line = _line(share, 96 if large else 99, share, 108 if large else 105, _INK)
    if not large:
        return line
    return (
        f'{line}<text x="{_x(share):.1f}" y="136" font-size="12" fill="{_FAINT}" '
        f'text-anchor="middle">{100 * share:.0f} %</text>'
    )


def _arrow(before: float, after: float) -> str:
    start, end = _x(before), _x(after)
    sign = 1 if end > start else -1
    if abs(end - start) < 26:
        return ""  # the two marks touch
    tip = end - 9 * sign
    return (
        f'<line x1="{start + 9 * sign:.1f}" y1="102" x2="{tip - 6 * sign:.1f}" y2="102" '
        f'stroke="{_AFTER}" stroke-width="4"/>'
        f'<path d="M {tip:.1f} 102 l {-9 * sign} -6 v 12 z" fill="{_AFTER}"/>'
    )
