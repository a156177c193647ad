"""Merging windows that touch and have the same score.

A score where two windows touch is inside exactly one of them. Separate terms do not know that:
within rounding of a jump, a score may be on either side. So windows that touch are merged, which is
exact:

    WINDOW(a, b) + WINDOW(b, c) = WINDOW(a, c) - ε/2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from expost.terms.on_box import EVERYWHERE, Link, ScoreTerm

__all__ = ["joined"]


def joined(terms: Counter[ScoreTerm]) -> tuple[Counter[ScoreTerm], Fraction]:
    """The same sum with fewer windows, and a constant to be added."""
    # Alike in all but their windows; equal forms are not enough, if they come from other numbers.
    alike: dict[ScoreTerm, list[ScoreTerm]] = {}
    for term in terms:
        if term.link is Link.WINDOW:
            alike.setdefault(replace(term, window=EVERYWHERE), []).append(term)
    if not alike:
        return terms, Fraction(0)
    result, constant = Counter(terms), Fraction(0)
    for windows in alike.values():
        half = Fraction(windows[0].epsilon) / 2
        starting: dict[float, list[ScoreTerm]] = {}
        for term in windows:
            starting.setdefault(term.window[0], []).append(term)
        while windows:
            left = windows.pop()
            touching = starting.get(left.window[1], [])
            right = next((term for term in touching if result[term]), None)
            if right is None or not result[left]:
                continue
            times = min(result[left], result[right])
            result[left] -= times
            result[right] -= times
            constant -= half * times
            both = replace(left, window=(left.window[0], right.window[1]))
            windows.append(left)
            if both.window == EVERYWHERE:
                constant += half * times
                continue
            result[both] += times
            windows.append(both)
            starting[both.window[0]].append(both)
    return +result, constant
