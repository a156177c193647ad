"""The likelihood of one response over a finite domain: exact weights and their logarithms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.numbers import INFINITE, UNIT, Nats
from expost.numbers.exact_sum import ExactSum

__all__ = ["Powers", "Term", "Weights", "as_weights", "logs_of"]

Weights = NDArray[Any]
"""Integer weights, one per value: int64, or Python integers (object) where those do not fit."""

Powers = tuple[tuple[int, int], ...]
"""A weight as a product of powers, by base and exponent, up to a factor that values share."""

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


def logs_of(weights: Weights) -> NDArray[np.float64]:
    """The logarithms of positive weights of any size, about."""
    if weights.dtype == object:
        return np.array([math.log(weight) for weight in weights.tolist()], dtype=np.float64)
    return np.asarray(np.log(weights), dtype=np.float64)


class Term:
    """The likelihood of one response at every value of a finite domain, up to a constant factor.

    ``logs`` are the logarithms of its exact weights in doubles, up to one common constant and each
    within ``error`` of the real number; minus infinity where the weight is zero.
    """

    __slots__ = ("_widest", "error", "logs")

    def __init__(self, weights: Weights) -> None:
        weights.setflags(write=False)
        smallest, largest = _positive_range(weights)
        self._widest: Counter[int] | None = Counter({largest: 1})
        self._widest[smallest] -= 1
        if not weights.all():
            self._widest = None
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

    @classmethod
    def falling(cls, distances: NDArray[np.int64], heavy: int, light: int) -> Term:
        """Of weights (light/heavy)^distance, which are never written out.

        A logarithm is a product of two doubles: half an integer, and one next to log(heavy/light).
        """
        term = cls.__new__(cls)
        nearest, farthest = int(distances.min()), int(distances.max())
        rate = Nats.of(ExactSum.product(Counter({heavy: 1, light: -1}))).enclosure
        steps = np.asarray((farthest - nearest) / 2 - (distances - nearest), dtype=np.float64)
        term.logs = steps * rate.upper
        term.logs.setflags(write=False)
        span = farthest - nearest
        term._widest = Counter({heavy: span, light: -span})
        # Rates too small for a normal double are off by more than a unit of themselves.
        error = span * (_LOG_ERROR * rate.upper + rate.width)
        term.error = error + _UNDERFLOW if span else 0.0
        return term

    def shared_by(self, heavier: NDArray[np.bool_]) -> Term:
        """The term of values each of which has the heavier or the lighter of two weights.

        This is the term of the lighter and the heavier one: logarithms are not taken again.
        """
        term = Term.__new__(Term)
        both = bool(heavier.any()) and not heavier.all()
        low, high = self.logs.tolist() if both else (0.0, 0.0)
        term.logs = np.where(heavier, high, low)
        term.logs.setflags(write=False)
        term._widest = self._widest if both else Counter()
        term.error = self.error if both else 0.0
        return term

    @property
    def loss(self) -> Nats:
        """The loss that this response realizes on its own."""
        return INFINITE if self._widest is None else Nats.of(ExactSum.product(self._widest))


def _positive_range(weights: Weights) -> tuple[int, int]:
    positive = weights if weights.all() else weights[weights > 0]
    return int(positive.min()), int(positive.max())


def _quotients(numerators: Weights, denominator: int) -> NDArray[np.float64]:
    if numerators.dtype == object:
        # True division of Python integers is correctly rounded at any size.
        return np.array([n / denominator for n in numerators.tolist()], dtype=np.float64)
    return np.asarray(numerators / denominator, dtype=np.float64)
