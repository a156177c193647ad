"""Independent oracles: the paper's formulas in fractions and mpmath. Imports nothing of expost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath

Vector = Sequence[Fraction]
"""Pr(response | value) for each value."""


def product(vectors: Sequence[Vector], size: int) -> list[Fraction]:
    """P(x), the likelihood of a transcript at every value (Algorithm 2)."""
    return [math.prod((v[x] for v in vectors), start=Fraction(1)) for x in range(size)]


def ratio(likelihoods: Vector) -> Fraction | None:
    """L = max P / min P (Definition of privacy loss); None where it is infinite."""
    return None if min(likelihoods) == 0 else max(likelihoods) / min(likelihoods)


def at_most(number: Fraction | None, *, epsilon: Fraction | None, limit: Fraction | None) -> bool:
    """Whether a ratio is at most e^epsilon, or at most a rational limit."""
    if number is None:
        return False
    if limit is not None:
        return number <= limit
    assert epsilon is not None
    for digits in (60, 400, 3000):
        with mpmath.workdps(digits):
            difference = mpmath.log(_mpf(number)) - _mpf(epsilon)
            if abs(difference) > mpmath.mpf(10) ** (10 - digits):
                return bool(difference < 0)
    raise AssertionError("a ratio equals e^epsilon only if epsilon is zero")


def epsilon_of(columns: Sequence[Vector]) -> Fraction | None:
    """e^epsilon of a channel: the worst ratio of any column that is not all zero."""
    ratios = [ratio(column) for column in columns if any(column)]
    return None if None in ratios else max(r for r in ratios if r is not None)


def bayesian_accepts(
    likelihoods: Vector,
    columns: Sequence[Vector],
    *,
    epsilon: Fraction | None,
    limit: Fraction | None,
) -> bool:
    """Algorithm 2: no response pushes max P / min P over the limit."""
    if min(likelihoods) == 0:
        return False
    return all(
        at_most(
            ratio([p * q for p, q in zip(likelihoods, column, strict=True)]),
            epsilon=epsilon,
            limit=limit,
        )
        for column in columns
        if any(column)
    )


def randomized_response(size: int, epsilon: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Probabilities of the truth and of any other value."""
    e = mpmath.exp(_mpf(epsilon))
    return e / (e + size - 1), 1 / (e + size - 1)


def perturbation(score: float, low: float, high: float, epsilon: Fraction) -> mpmath.mpf:
    """Pr(high end | score), equation (2) of the paper."""
    e = mpmath.exp(_mpf(epsilon))
    share = (mpmath.mpf(score) - low) / (mpmath.mpf(high) - low)
    return share * (e - 1) / (e + 1) + 1 / (e + 1)


def sigmoid(score: float | Fraction) -> mpmath.mpf:
    """The logistic function of a score."""
    return 1 / (1 + mpmath.exp(-_mpf(Fraction(score))))


def one_bit(share: mpmath.mpf, epsilon: Fraction) -> mpmath.mpf:
    """Pr(high response) at a share between 0 and 1, equation (2) of the paper."""
    e = mpmath.exp(_mpf(epsilon))
    return (1 + share * (e - 1)) / (e + 1)


def affine(weights: Sequence[float], intercept: float, point: Sequence[float]) -> Fraction:
    """A weighted sum of coordinates in rational numbers."""
    products = (Fraction(w) * Fraction(x) for w, x in zip(weights, point, strict=True))
    return sum(products, Fraction(intercept))


def logistic_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """2 artanh(tanh(e/4) tanh(z/2)), without the cancellation at large epsilon."""
    half, at = mpmath.mpf(epsilon) / 2, _mpf(z)
    return mpmath.log1p(mpmath.exp(at + half)) - mpmath.log1p(mpmath.exp(at - half)) - half


def clipped_link(z: Fraction, epsilon: float) -> mpmath.mpf:
    """log(1 + tanh(e/2) clip(z, -1, 1)), without the cancellation at large epsilon."""
    growth = mpmath.expm1(mpmath.mpf(epsilon))
    share = _mpf((1 + max(Fraction(-1), min(Fraction(1), z))) / 2)
    return mpmath.log1p(share * growth) - mpmath.log1p(growth / 2)


def log(number: Fraction) -> mpmath.mpf:
    """The logarithm in the working precision."""
    return mpmath.log(_mpf(number))


def _mpf(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator
