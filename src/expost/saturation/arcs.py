r"""Random sets of values as arcs of a circle, and the channel that they make.

Each class of values has an arc. A uniform point of the circle is drawn, and S is the set of values
on whose arcs it is. With q the length of an arc, the channel is

.. math:: M(S \mid x) = \frac{\Pr[S] \, E^{1[x \in S]}}{1 + (E - 1) \, q_x} .

Everything is in integers: lengths are parts of ``circle``. Proof: docs/theory/saturating.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

__all__ = ["Arcs", "Table", "bits_of", "rounded"]

Table = list[list[Fraction]]
"""A row of probabilities for each class, a column for each set."""


@dataclass(frozen=True)
class Arcs:
    """An arc for each class: where it starts, and how long it is, up to all of the circle."""

    circle: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @cached_property
    def sets(self) -> dict[tuple[bool, ...], int]:
        """The sets, by whether each class is in, and on how much of the circle."""
        circle, arcs = self.circle, list(zip(self.starts, self.lengths, strict=True))
        ends = {(start + length) % circle for start, length in arcs}
        cuts = sorted({0, *(start % circle for start in self.starts), *ends})
        found: dict[tuple[bool, ...], int] = {}
        for cut, following in zip(cuts, [*cuts[1:], circle], strict=True):
            inside = tuple([(cut - start) % circle < length for start, length in arcs])
            found[inside] = found.get(inside, 0) + following - cut
        return found

    @property
    def saturates(self) -> bool:
        """Whether every set has values in it and outside of it: then no loss is below log E."""
        return all(any(inside) and not all(inside) for inside in self.sets)

    def table(self, ratio: Fraction) -> Table:
        """The channel for E = ratio, exactly."""
        heavy, light = ratio.as_integer_ratio()
        rows = []
        for number, length in enumerate(self.lengths):
            total = light * self.circle + (heavy - light) * length
            rows.append(
                [
                    Fraction(share * (heavy if inside[number] else light), total)
                    for inside, share in self.sets.items()
                ]
            )
        return rows


def bits_of(rows: Table, most: int) -> int:
    """How long the common denominator of a table is; it is not followed beyond ``most``."""
    common = 1
    for row in rows:
        common = math.lcm(common, *(entry.denominator for entry in row))
        if common.bit_length() > most:
            break
    return common.bit_length()


def rounded(rows: Table, bits: int) -> Table:
    """Every entry rounded down to so many bits, and what is left put on the row's largest."""
    result = []
    for row in rows:
        short = [(entry.numerator << bits) // entry.denominator for entry in row]
        largest = max(range(len(short)), key=short.__getitem__)
        short[largest] += (1 << bits) - sum(short)
        result.append([Fraction(weight, 1 << bits) for weight in short])
    return result
