"""Lists in plain words."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["listed"]

_LISTED = 4
_LONGEST = 40


def listed(words: Sequence[object], joint: str = "and") -> str:
    """``A, B and C``, or ``A, B, C, D and 7 more``; a long word is cut."""
    shown = [_short(str(word)) for word in words[: _LISTED + 1]]
    if len(words) > len(shown):
        shown[-1] = f"{len(words) - _LISTED:,} more"
    return f" {joint} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…"
