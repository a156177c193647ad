"""How much work nodes and set-ups are, in small nodes: about 15 microseconds each.

Measured, and good to a factor of two or so. It is a count and no clock, so that every machine stops
at the same.
"""

from __future__ import annotations

__all__ = ["of_node", "of_root", "of_set_up"]

_UNIT = 64
_MANY = 1_000
_CUBES = 16_000
_ANY = 40
_ROOT = 3


def of_node(terms: int, coordinates: int) -> float:
    """A node goes through all terms, each with all coordinates, and factors a matrix of these."""
    passes = terms * (6 + coordinates) / _UNIT
    # What does not stay in the cache takes up to five times as long.
    return max(1.0, passes * (1 + min(4.0, terms / _MANY)) + coordinates**3 / _CUBES)


def of_root(terms: int, coordinates: int) -> float:
    """What the first node of a search takes more than others: its simplex goes on for longer."""
    return _ROOT * of_node(terms, coordinates)


def of_set_up(terms: int, coordinates: int) -> float:
    """A search is set up term by term, however few nodes it takes."""
    return _ANY + terms * (24 + coordinates) / _UNIT
