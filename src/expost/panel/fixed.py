"""Logarithms as integers: multiples of 2^-80, modulo 2^64.

A sum of such logarithms takes no rounding. Modulo 2^64 it says nothing of a number that may be
large, and everything of one that doubles have shown to be small: how far a loss is from a budget
that it nearly equals. Proof: docs/theory/panels.md.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.numbers import ExactSum, Nats
from expost.queries import FiniteLikelihood
from expost.terms import Powers

__all__ = ["FIXED_BITS", "NEAR", "fixed_logs", "ratio", "wrapped"]

FIXED_BITS = 80
NEAR = 2.0**-20
"""Numbers below this, scaled, are well within 2^63."""


def wrapped(number: Any) -> NDArray[np.int64]:
    """Integers of any size modulo 2^64, as signed words."""
    residues = np.asarray(number, dtype=object) & ((1 << 64) - 1)
    return np.asarray(residues, dtype=np.uint64).view(np.int64)


def fixed_logs(likelihood: FiniteLikelihood, position: int) -> NDArray[Any]:
    """The logarithms of the weights of a response, scaled, up to a constant.

    Integers of any size, each at most the exact number and less than two below. No weight is zero.
    """
    alike = likelihood.weight_labels(position)
    _, some, place = np.unique(alike, return_index=True, return_inverse=True)
    known = [_scaled(powers) for powers in likelihood.powers(position, some.tolist())]
    return np.array(known, dtype=object)[place]


def ratio(above: Powers, below: Powers) -> Counter[int]:
    """One weight over another, as exponents by their bases."""
    net: Counter[int] = Counter()
    for base, power in above:
        net[base] += power
    for base, power in below:
        net[base] -= power
    return net


@lru_cache(maxsize=1 << 12)
def _scaled(powers: Powers) -> int:
    """Different queries often have some of their weights in common."""
    product: Counter[int] = Counter()
    for base, exponent in powers:
        product[base] += exponent
    return Nats.of(ExactSum.product(product)).scaled(FIXED_BITS)
