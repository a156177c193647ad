"""The normal distribution function from +, -, * and / only, as for the exponential function.

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
_FAR = 8.5  # beyond this less than 1e-17 is left
_STEPS = 180


def normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Φ(x) within NORMAL_ERROR, between 0 and 1, and Φ(-x) = 1 - Φ(x).

    .. math:: \Phi(x) = \frac12 + \varphi(x) \sum_n \frac{x^{2n+1}}{1 \cdot 3 \cdots (2n+1)}
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
