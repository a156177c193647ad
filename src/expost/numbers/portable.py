"""exp, the logistic function and Φ from +, -, * and / only: every machine gets the same bits.

Mathematical libraries differ in the last digit of exp, so with them two machines could sample from
different integer weights. Here every step is exact or an operation that IEEE 754 rounds correctly,
and NumPy applies them one by one. Proof of the bounds: docs/theory/score_terms.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXP_ERROR", "NORMAL_ERROR", "SIGMOID_ERROR", "exp", "normal", "sigmoid"]

#: Relative error of :func:`exp`, if the result is a normal double.
EXP_ERROR = Fraction(4, 2**53)

#: Relative error of :func:`sigmoid`, if the result is a normal double.
SIGMOID_ERROR = Fraction(8, 2**53)

#: Absolute error of :func:`normal`.
NORMAL_ERROR = Fraction(512, 2**53)

# ln 2 in two parts. The first has 32 bits, so that its product with an exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")

# 1/n!, correctly rounded. For |r| < 0.35 what follows is below 0.05 units of roundoff.
_COEFFICIENTS = [1 / math.factorial(n) for n in range(13, -1, -1)]

_ROOT = 1 / math.sqrt(2 * math.pi)
_CUTOFF = 8.5  # the tail beyond has less than 1e-17
_STEPS = 180


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e^x with a relative error of at most ``EXP_ERROR``; all machines get equal bits.

    Below the normal doubles the error is at most one smallest double.

    >>> exp(np.array([0.0, 1.0])).round(12).tolist()
    [1.0, 2.718281828459]
    """
    # Beyond these bounds the result is 0 or infinite anyway.
    x = np.minimum(np.maximum(x, -746.0), 710.0)
    power = np.rint(x * _PER_LN2)
    reduced = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.full_like(reduced, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        series *= reduced
        series += coefficient
    # Two factors, because a single one may not be a normal double; only the last product rounds.
    half = np.floor(power / 2).astype(np.int32)
    remaining = power.astype(np.int32) - half
    with np.errstate(over="ignore"):
        return np.asarray(series * np.ldexp(1.0, half) * np.ldexp(1.0, remaining))


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1/(1 + e^-x), however small, with a relative error of at most ``SIGMOID_ERROR``."""
    tail = exp(-np.abs(x))
    return np.asarray(np.where(x < 0, tail, 1.0) / (1.0 + tail))


def normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return Φ(x) within NORMAL_ERROR, between 0 and 1, and Φ(-x) = 1 - Φ(x).

    .. math:: \Phi(x) = \frac12 + \varphi(x) \sum_n \frac{x^{2n+1}}{1 \cdot 3 \cdots (2n+1)}
    """
    size = np.minimum(np.abs(x), _CUTOFF)
    square = size * size
    largest = float(square.max(initial=0.0))
    term = size
    total = size
    for n in range(1, _STEPS):
        term = term * square / (2 * n + 1)
        before, total = total, total + term
        # Terms fall from where 2n + 1 is above the square: what changes nothing then never will.
        if n % 8 == 0 and 2 * n + 1 > largest and (total == before).all():
            break
    above = np.minimum(0.5, _ROOT * exp(-0.5 * square) * total)
    return np.asarray(np.where(x < 0, 0.5 - above, 0.5 + above))
