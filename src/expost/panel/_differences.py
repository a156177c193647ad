r"""D(x, x') of a query, the largest log-ratio of any of its responses, as arrays use it.

.. math:: \max_{x, x'} \ell(x) - \ell(x') + D(x, x')

is the loss after the query at worst. A query sees a value, or many values as one; of those count
the largest and the smallest ℓ. Proofs: docs/theory/filters.md, docs/theory/audits.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.numbers import ExactSum, Nats
from expost.queries import BySufficientTerms, FiniteLikelihood, Pairwise
from expost.terms import Powers, multiply

__all__ = ["FIXED_BITS", "NEAR", "Differences", "differences", "fixed_logs", "ratio", "wrapped"]


class Differences(Protocol):
    """The two ways in which a query says how far two values are told apart."""

    def worst(self, highs: Floats, lows: Floats, spread: Floats) -> Floats:
        """Compute max ℓ(x) - ℓ(x') + D(x, x') of many subjects, a column each, in doubles.

        ``spread`` is the largest difference without D. Nothing is rounded but one sum, one
        difference and what ``highs`` and ``lows`` bring along.
        """

    def doubles(self) -> Floats:
        """Return D as a table, nearly."""

    def fixed(self) -> NDArray[np.int64]:
        """Return D as integers, multiples of 2^-80, each less than two from the exact number."""

    def exact(self, first: int, other: int) -> Nats:
        """Compute D of two values, exactly."""

    @property
    def size(self) -> int:
        """The work of writing these tables, in cells."""


def differences(likelihood: FiniteLikelihood) -> Differences:
    """Make the differences D of a query on a finite set."""
    if isinstance(likelihood, Pairwise):
        return _ByClasses(likelihood)
    assert isinstance(likelihood, BySufficientTerms), "there is no third kind"
    return _ByTerms(likelihood)


@dataclass(frozen=True, eq=False)
class _ByClasses:
    """D is epsilon for values of different classes, and zero within one."""

    likelihood: Pairwise

    @cached_property
    def _class_of(self) -> NDArray[np.intp]:
        classes = np.full(len(self.likelihood.domain), -1, dtype=np.intp)
        count = 0
        for value in range(len(classes)):
            if classes[value] < 0:
                classes[~self.likelihood.separated_from(value)] = count
                count += 1
        return classes

    @cached_property
    def _members(self) -> list[NDArray[np.intp]]:
        return [
            np.flatnonzero(self._class_of == tables) for tables in range(max(self._class_of) + 1)
        ]

    def worst(self, highs: Floats, lows: Floats, spread: Floats) -> Floats:
        if len(self._members) == 1:
            return spread
        epsilon = self.likelihood.epsilon.enclosure.upper
        if highs is lows and len(self._members) == len(highs):
            # The two extremes are different values, or all values are alike.
            return np.asarray(spread + epsilon)
        return np.maximum(spread, self._widest(highs, lows) + epsilon)

    def _widest(self, highs: Floats, lows: Floats) -> Floats:
        """Find the largest difference between values of different classes."""
        top, bottom = highs, lows
        if len(self._members) < len(highs):
            top = np.array([highs[members].max(axis=0) for members in self._members])
            bottom = np.array([lows[members].min(axis=0) for members in self._members])
        columns = np.arange(top.shape[1])
        first, last = top.argmax(axis=0), bottom.argmin(axis=0)
        highest, lowest = top[first, columns], bottom[last, columns]
        same = np.flatnonzero(first == last)
        result = highest - lowest
        if len(same):
            # Both extremes are in one class: one of them, and the next one outside of it.
            above, below = top[:, same], bottom[:, same]
            tables = np.arange(len(same))
            above[first[same], tables], below[last[same], tables] = -np.inf, np.inf
            result[same] = np.maximum(
                highest[same] - below.min(axis=0), above.max(axis=0) - lowest[same]
            )
        return np.asarray(result)

    def doubles(self) -> Floats:
        return np.where(self._apart, self.likelihood.epsilon.enclosure.upper, 0.0)

    def fixed(self) -> NDArray[np.int64]:
        return np.where(self._apart, wrapped(self.likelihood.epsilon.scaled(FIXED_BITS)), 0)

    @property
    def size(self) -> int:
        return len(self.likelihood.domain) ** 2

    def exact(self, first: int, other: int) -> Nats:
        differ = self._class_of[first] != self._class_of[other]
        return self.likelihood.epsilon if differ else Nats()

    @property
    def _apart(self) -> NDArray[np.bool_]:
        return np.asarray(self._class_of[:, None] != self._class_of)


@dataclass(frozen=True, eq=False)
class _ByTerms:
    """D is the largest difference of the logarithms of some responses; none of them is zero."""

    likelihood: BySufficientTerms

    @cached_property
    def _logs(self) -> list[Floats]:
        sufficient = self.likelihood.sufficient
        return [self.likelihood.term(position).logs[:, None] for position in sufficient]

    def worst(self, highs: Floats, lows: Floats, spread: Floats) -> Floats:
        result = np.zeros_like(spread)
        scratch = np.empty_like(highs)
        for logs in self._logs:
            highest = np.add(highs, logs, out=scratch).max(axis=0)
            lowest = (scratch if highs is lows else np.add(lows, logs, out=scratch)).min(axis=0)
            np.maximum(result, np.subtract(highest, lowest, out=highest), out=result)
        return result

    def doubles(self) -> Floats:
        return np.asarray(np.max([logs - logs.T for logs in self._logs], axis=0))

    def fixed(self) -> NDArray[np.int64]:
        likelihood = self.likelihood
        tables = [fixed_logs(likelihood, position) for position in likelihood.sufficient]
        return wrapped(np.max([logs[:, None] - logs for logs in tables], axis=0))

    def exact(self, first: int, other: int) -> Nats:
        likelihood = self.likelihood
        return max(
            Nats.of(ExactSum.product(ratio(*likelihood.powers(position, [first, other]))))
            for position in likelihood.sufficient
        )

    @property
    def size(self) -> int:
        return len(self.likelihood.domain) ** 2 * len(self.likelihood.sufficient)


FIXED_BITS = 80
#: Numbers below this, scaled, are well within 2^63.
NEAR = 2.0**-20


def wrapped(integers: Any) -> NDArray[np.int64]:
    """Reduce integers of any size modulo 2^64, to signed words."""
    residues = np.asarray(integers, dtype=object) & ((1 << 64) - 1)
    return np.asarray(residues, dtype=np.uint64).view(np.int64)


def fixed_logs(likelihood: FiniteLikelihood, position: int) -> NDArray[Any]:
    """Compute the scaled logarithms of the weights of a response, up to a constant.

    Integers of any size, each at most the exact number and less than two below. No weight is zero.
    """
    alike = likelihood.weight_labels(position)
    _, distinct, index_of = np.unique(alike, return_index=True, return_inverse=True)
    scaled_logs = [
        _scale_product(powers) for powers in likelihood.powers(position, distinct.tolist())
    ]
    return np.array(scaled_logs, dtype=object)[index_of]


def ratio(above: Powers, below: Powers) -> Counter[int]:
    """Divide one weight by another, as exponents by their bases."""
    net: Counter[int] = Counter()
    multiply(net, above, 1)
    multiply(net, below, -1)
    return net


@lru_cache(maxsize=1 << 12)
def _scale_product(powers: Powers) -> int:
    """Scale a product; cached, as different queries often share some of their weights."""
    product: Counter[int] = Counter()
    multiply(product, powers, 1)
    return Nats.of(ExactSum.product(product)).scaled(FIXED_BITS)
