"""The normal distribution function from +, -, * and / only, like :mod:`.portable_exp`.

Proof of the bound: docs/theory/score_terms.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from expost.numbers.portable_exp import exp

__all__ = ["NORMAL_ERROR", "normal"]

NORMAL_ERROR = Fraction(512, 2**53)
"""Absolute error of :func:`normal`."""

_ROOT = 1 / math.sqrt(2 * math.pi)
_FAR = 8.5  # the tail beyond this is below 1e-17
_STEPS = 180


def normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Φ(x) with an absolute error of at most ``NORMAL_ERROR``, the same bits on every machine.

    .. math:: \Phi(x) = \frac12 + \varphi(x) \sum_n \frac{x^{2n+1}}{1 \cdot 3 \cdots (2n+1)}

    The result is between 0 and 1, and Φ(-x) = 1 - Φ(x).

    >>> normal(np.array([0.0, 1.96])).round(3).tolist()
    [0.5, 0.975]
    """
    size = np.minimum(np.abs(x), _FAR)
    square = size * size
    term = size
    total = size
    for n in range(1, _STEPS):
        term = term * square / (2 * n + 1)
        total = total + term
    above = np.minimum(0.5, _ROOT * exp(-0.5 * square) * total)
    return np.asarray(np.where(x < 0, 0.5 - above, 0.5 + above))
