"""The integer weights of a truthful and of any other response at a given epsilon."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from expost.numbers import scaled_exp

__all__ = ["two_weights"]


@lru_cache(maxsize=1 << 14)
def two_weights(epsilon: Fraction) -> tuple[int, int]:
    """Weights (heavy, light) with heavy/light just below e^epsilon.

    light = 2^B and heavy = ⌊2^B e^epsilon⌋ with B = 40 + max(0, ⌈log₂ 1/epsilon⌉): the loss
    log(heavy/light) is at most epsilon, exactly, and misses it by less than 2^-40 of itself.
    """
    bits = 40
    while epsilon.numerator << (bits - 40) < epsilon.denominator:
        bits += 1
    return scaled_exp(epsilon, bits), 1 << bits
