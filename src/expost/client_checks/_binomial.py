r"""Exact binomial tails and Clopper-Pearson bounds, rounded to the safe side.

A tail is summed from its largest term on. Every bound here holds for the real numbers: factorials
come from Stirling's series, whose error is known, and rounding errors are accounted for. Proof:
docs/theory/audits.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from expost.numbers import down, up

__all__ = ["largest_share", "smallest_share", "tail"]

# Relative to the magnitudes that go into a logarithm: about ten roundings, and logarithms that may
# be off by four units in the last place, stay below 2^-48.
_ROUNDING = 2.0**-48
_LARGEST_EXACT = 128
_NEVER = 1e-300


@lru_cache(maxsize=1 << 14)
def tail(trials: int, hits: int, probability: float) -> float:
    """Return an upper bound on Pr(X >= hits) for X ~ Binomial(trials, probability).

    Above the mean it is tight to a relative 1e-6; up to the mean it is 1.

    >>> round(tail(trials=10, hits=9, probability=0.5), 6)  # exactly 11/1024
    0.010742
    """
    if hits <= 0 or probability >= 1 or hits <= trials * probability * (1 + 1e-15):
        return 1.0
    if probability <= 0:
        return 0.0
    choices, magnitude = _log_choices(trials, hits)
    first = hits * math.log(probability)
    log_of_misses = (trials - hits) * math.log1p(-probability)
    error = _ROUNDING * (magnitude - first - log_of_misses)
    total, terms = _sum_after(trials, hits, probability)
    # A term is a product of up to this many rounded factors.
    largest_term = math.exp(min(0.0, choices + first + log_of_misses + error))
    share = largest_term * total * (1 + terms * 2.0**-48)
    return min(1.0, max(_NEVER, up(up(share))))


def _sum_after(trials: int, hits: int, probability: float) -> tuple[float, int]:
    """Bound Pr(X >= hits) / Pr(X = hits) from above; also return the most factors of a term."""
    odds = probability / (1 - probability)
    deviation = math.sqrt(trials * probability * (1 - probability))
    count = min(trials - hits, 64 + int(10 * deviation))
    steps = np.arange(hits, hits + count, dtype=np.float64)
    terms = np.cumprod((trials - steps) / (steps + 1) * odds)
    total = 1.0 + float(terms.sum())
    if count < trials - hits:
        # Later terms have smaller quotients still, so a geometric series bounds the rest.
        quotient = (trials - hits - count) / (hits + count + 1) * odds
        total += float(terms[-1]) * quotient / (1 - quotient) if quotient < 1 else math.inf
    return total, 8 * (count + 8)


@lru_cache(maxsize=1 << 14)
def _log_choices(trials: int, hits: int) -> tuple[float, float]:
    """Bound log(binom(trials, hits)) from above; also return the magnitudes that went in."""
    fewer = min(hits, trials - hits)
    if fewer <= _LARGEST_EXACT:
        exact = math.log(math.comb(trials, fewer))
        return exact, exact
    parts = (
        _log_factorial(trials) + 1 / (1260 * float(trials) ** 5),
        -_log_factorial(hits),
        -_log_factorial(trials - hits),
    )
    return math.fsum(parts), 2 * math.fsum(map(abs, parts)) + 3 * trials


def _log_factorial(n: int) -> float:
    """Return a lower bound on log(n!), too low by less than 1/(1260·n^5), up to rounding."""
    # Stirling's series is enveloping: the error has the sign of the next term and is smaller.
    correction = 1 / (12 * n), -1 / (360 * float(n) ** 3)
    return math.fsum([(n + 0.5) * math.log(n), -n, 0.5 * math.log(2 * math.pi), *correction])


def smallest_share(trials: int, hits: int, error: float) -> float:
    """Return the Clopper-Pearson lower bound, wrong with probability at most ``error``.

    Under every smaller probability, this many hits or more have a chance of at most ``error``.

    >>> round(smallest_share(trials=100, hits=60, error=0.025), 4)
    0.4972
    """
    low, high = 0.0, hits / trials
    while high - low > 1e-13 * high:
        middle = (low + high) / 2 if low else high / 16
        if not low < middle < high:
            break
        if tail(trials, hits, middle) <= error:
            low = middle
        else:
            high = middle
        if high < _NEVER:
            return 0.0
    return low


def largest_share(trials: int, hits: int, error: float) -> float:
    """Return the Clopper-Pearson upper bound: one minus the lower bound for the misses.

    >>> round(largest_share(trials=100, hits=60, error=0.025), 4)
    0.6967
    """
    return min(1.0, up(1 - down(smallest_share(trials, trials - hits, error))))
