r"""Random sets of values as arcs of a circle, and the channel that they make.

Each class of values has an arc. A uniform point of the circle is drawn, and S is the set of values
on whose arcs it is. With q the length of an arc and R the ratio of its class, the channel is

.. math:: M(S \mid x) = \frac{\Pr[S] \, R_x^{1[x \in S]}}{1 + (R_x - 1) \, q_x} .

Everything is in integers: lengths are parts of ``circle``. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arcs", "Table"]

Sets = NDArray[np.bool_]
"""A row for each set, a column for each class: whether it is in."""


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities in lowest terms: a row of weights for each class, and what each adds up to."""

    rows: list[list[int]]
    total: int

    def rounded(self, bits: int) -> Table:
        """Every entry rounded down to so many bits, and what is left put on the row's largest."""
        rows = []
        for row in self.rows:
            short = [(weight << bits) // self.total for weight in row]
            largest = max(range(len(short)), key=short.__getitem__)
            short[largest] += (1 << bits) - sum(short)
            rows.append(short)
        return Table(rows, 1 << bits)


@dataclass(frozen=True, eq=False)
class Arcs:
    """An arc for each class: where it starts, and how long it is, up to all of the circle."""

    circle: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @cached_property
    def sets(self) -> tuple[Sets, list[int]]:
        """The different sets, and on how much of the circle each of them is."""
        circle = self.circle
        starts = [start % circle for start in self.starts]
        ends = [(s + n) % circle for s, n in zip(self.starts, self.lengths, strict=True)]
        cuts = sorted({0, *starts, *ends})
        place = {cut: number for number, cut in enumerate(cuts)}
        first = np.array([place[start] for start in starts])
        pieces = np.array([place[end] for end in ends]) - first
        pieces %= len(cuts)
        pieces[[length == circle for length in self.lengths]] = len(cuts)
        inside = (np.arange(len(cuts))[:, None] - first) % len(cuts) < pieces
        found: dict[bytes, int] = {}
        rows, chances = list[int](), list[int]()
        for number, (cut, end) in enumerate(zip(cuts, [*cuts[1:], circle], strict=True)):
            own = found.setdefault(inside[number].tobytes(), len(rows))
            if own == len(rows):
                rows.append(number)
                chances.append(0)
            chances[own] += end - cut
        return inside[rows], chances

    @property
    def saturates(self) -> bool:
        """Whether every set has values in it and outside of it: then no loss is below log E."""
        sets, _ = self.sets
        return bool(sets.any(axis=1).all()) and not bool(sets.all(axis=1).any())

    def table(self, ratios: Sequence[Fraction], most_bits: int | None = None) -> Table | None:
        """The channel, exactly; None if its common denominator is longer than so many bits."""
        sets, chances = self.sets
        totals = []
        for ratio, length in zip(ratios, self.lengths, strict=True):
            heavy, light = ratio.as_integer_ratio()
            totals.append(light * self.circle + (heavy - light) * length)
        common = math.lcm(*totals)
        rows = []
        for ratio, total, own in zip(ratios, totals, sets.T.tolist(), strict=True):
            heavy, light = (weight * (common // total) for weight in ratio.as_integer_ratio())
            rows.append(
                [
                    chance * (heavy if inside else light)
                    for chance, inside in zip(chances, own, strict=True)
                ]
            )
        shared = math.gcd(common, *(weight for row in rows for weight in row))
        if most_bits is not None and (common // shared).bit_length() > most_bits:
            return None
        return Table([[weight // shared for weight in row] for row in rows], common // shared)
