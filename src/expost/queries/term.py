"""The likelihood of one response over a finite domain: exact weights and their logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.rounding import INFINITE, UNIT, Nats

__all__ = ["Term", "Weights", "as_weights"]

Weights = NDArray[Any]
"""Integer weights, one per value: int64, or Python integers (object) where those do not fit."""

_FITS = 2**62

# Three roundings on the way to w/ref, the condition of the logarithm, and a logarithm that may be
# off by four units in the last place stay below 16 units of roundoff relative to the result; 32
# leaves a factor of two. Proof: docs/theory/realized_loss.md.
_LOG_ERROR = 32 * UNIT

# What a quotient can lose when it is too small for a normal double.
_UNDERFLOW = 2.0**-1070


def as_weights(weights: Sequence[Any] | NDArray[Any], total: int) -> Weights:
    """An array of integers none of which exceeds ``total``, in the narrowest exact type."""
    return np.array(weights, dtype=np.int64 if total < _FITS else object)


class Term:
    """The likelihood of one response at every value of a finite domain, up to a constant factor.

    ``weights`` are exact. ``logs`` are their logarithms in doubles, up to one common constant and
    each within ``error`` of the real number; minus infinity where the weight is zero.
    """

    __slots__ = ("error", "logs", "weights")

    def __init__(self, weights: Weights) -> None:
        weights.setflags(write=False)
        self.weights = weights
        smallest, largest = _positive_range(weights)
        # The middle of the logarithms becomes zero: sums stay small, and so do their errors.
        reference = math.isqrt(smallest * largest)
        excess = _quotients(weights - reference, reference)
        near = np.abs(excess) < 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            if near.all():
                logs = np.log1p(excess)
            else:
                logs = np.where(near, np.log1p(excess), np.log(_quotients(weights, reference)))
        logs.setflags(write=False)
        self.logs: NDArray[np.float64] = logs
        span = float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0))
        self.error = 0.0 if smallest == largest else _LOG_ERROR * span + _UNDERFLOW

    @property
    def loss(self) -> Nats:
        """The loss that this response realizes on its own."""
        smallest, largest = int(self.weights.min()), int(self.weights.max())
        return Nats(ratio=Fraction(largest, smallest)) if smallest else INFINITE


def _positive_range(weights: Weights) -> tuple[int, int]:
    positive = weights if weights.all() else weights[weights > 0]
    return int(positive.min()), int(positive.max())


def _quotients(numerators: Weights, denominator: int) -> NDArray[np.float64]:
    if numerators.dtype == object:
        # True division of Python integers is correctly rounded at any size.
        return np.array([n / denominator for n in numerators.tolist()], dtype=np.float64)
    return np.asarray(numerators / denominator, dtype=np.float64)
