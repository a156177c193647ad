"""What a response says about the answer: mutual information, all values alike before.

In doubles, and in decimals where doubles cannot tell which is more. Decimals are the same on every
machine, so whoever makes a query makes the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from expost._types import Floats
from expost.numbers import decimal_context
from expost.saturation.arcs import Arcs

__all__ = ["Told"]

_CONTEXT = decimal_context(60, ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Told:
    """The values of each class count so much, and R times that if they are in the set."""

    counts: tuple[Fraction, ...]
    ratios: tuple[Fraction, ...]
    answers: tuple[int, ...]

    @cached_property
    def _answer_of(self) -> Floats:
        return np.eye(max(self.answers) + 1)[list(self.answers)]

    @cached_property
    def _light(self) -> Floats:
        return np.array([float(count) for count in self.counts]) @ self._answer_of

    @cached_property
    def _more(self) -> Floats:
        pairs = zip(self.counts, self.ratios, strict=True)
        more = np.array([float(count * (ratio - 1)) for count, ratio in pairs])
        return np.asarray(more[:, None] * self._answer_of)

    @cached_property
    def noise(self) -> float:
        """Far more than what doubles are off where little is told, or where R is large."""
        return 1e-13 * float(self._more.sum())

    def nearly(self, level: float, starts: Floats, shares: Floats) -> float:
        """With A = level and these arcs, in doubles."""
        starts = starts % 1.0
        cuts = np.unique(np.concatenate([[0.0], starts, (starts + shares) % 1.0]))
        middles = (cuts + np.append(cuts[1:], 1.0)) / 2
        inside = (middles[:, None] - starts) % 1.0 < shares
        more = inside @ self._more
        all_more = more.sum(axis=1, keepdims=True) / self._light.sum()
        said = (self._light + more) * (np.log1p(more / self._light) - np.log1p(all_more))
        return float(level * (np.diff(np.append(cuts, 1.0)) @ said.sum(axis=1)))

    def closely(self, level: Fraction, arcs: Arcs) -> Decimal:
        """The same to about fifty digits."""
        sets, chances = arcs.sets
        known: dict[Fraction, Decimal] = {}

        def entropy(mass: Fraction, out_of: Fraction) -> Decimal:
            """mass · log(mass/out_of)."""
            share = mass / out_of
            if share not in known:
                known[share] = _CONTEXT.ln(_decimal(share))
            return _CONTEXT.multiply(_decimal(mass), known[share])

        light = self._by_answer([False] * len(self.counts))
        all_light, total = sum(light, Fraction(0)), Decimal(0)
        for inside, chance in zip(sets.tolist(), chances, strict=True):
            masses = self._by_answer(inside)
            # The set says: Σ m log(m/l) - M log(M/L), with l and L the masses of no set.
            said = -entropy(sum(masses, Fraction(0)), all_light)
            for mass, before in zip(masses, light, strict=True):
                said = _CONTEXT.add(said, entropy(mass, before))
            total = _CONTEXT.fma(said, Decimal(chance), total)
        return _CONTEXT.divide(_CONTEXT.multiply(total, _decimal(level)), Decimal(arcs.circle))

    def _by_answer(self, inside: Sequence[bool]) -> list[Fraction]:
        masses = [Fraction(0)] * (max(self.answers) + 1)
        for count, ratio, answer, heavy in zip(
            self.counts, self.ratios, self.answers, inside, strict=True
        ):
            masses[answer] += count * ratio if heavy else count
        return masses


def _decimal(number: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))
