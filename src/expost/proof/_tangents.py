"""The best points for tangents: near the largest values of a curve, if it is concave there.

Doubles will do. The checker takes any point where the curve is concave, and checks that itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from expost.proof.verify import Curve

__all__ = ["tangents"]

_STEPS = 60
_INWARD = 1e-6


def tangents(
    curve: Curve, m: int, lam: float, q: float, middle: float, low: float, high: float
) -> list[float]:
    """Find points near the maxima of m ψ(t) - λt - q/2 (t - middle)² where it is concave.

    None if the checker's own choice, a kink, is best.
    """
    if curve.kind in ("laplace", "piecewise", "straight") or not low < high:
        return []
    if curve.kind == "linear":
        return [middle] if q else _on_line(curve, m, lam)
    slopes = _probit(curve) if curve.kind == "probit" else _logistic(curve)

    def rising(t: float) -> bool:
        return m * slopes(t)[0] - lam - q * (t - middle) > 0

    def convex(t: float) -> bool:
        return m * slopes(t)[1] - q > 0

    bend = float(curve.bend)
    start = bend - math.copysign(float(curve.reach), m) if q > 0 else bend
    start = min(high, max(low, start))
    points = []
    for end in (low, high):
        if end == start or convex(end):
            continue
        inner = start
        if convex(start):
            inner = _last(convex, start, end)
            inner += _INWARD * (end - inner)
        # Where it is concave the slope falls.
        points.append(_last(rising, *sorted((inner, end))))
    return points


def _on_line(curve: Curve, m: int, lam: float) -> list[float]:
    if m < 0:
        return [float(curve.low) - 1]  # level there
    rise, low, high = float(curve.size), float(curve.low), float(curve.high)
    steep = [m * rise / (high - low) / grown for grown in (1.0, 1 + rise)]
    if lam <= 0:
        return [high + 1]
    if lam <= steep[1]:
        return []
    return [max(low, m / lam + low - (high - low) / rise)] if rise else [high + 1]


def _logistic(curve: Curve) -> Callable[[float], tuple[float, float]]:
    size = float(curve.size)

    def slopes(t: float) -> tuple[float, float]:
        y = math.exp(min(600.0, max(-600.0, -t)))
        share = 1 / (1 + y)
        weight = 1 + size * share
        slope = size * share * (share * y) / weight
        return slope, slope * (share * (y - 1)) - slope * slope

    return slopes


def _probit(curve: Curve) -> Callable[[float], tuple[float, float]]:
    size = float(curve.size)

    def slopes(t: float) -> tuple[float, float]:
        density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        slope = size * density / (1 + size * math.erfc(-t / math.sqrt(2)) / 2)
        return slope, -slope * (t + slope)

    return slopes


def _last(before: Callable[[float], bool], a: float, b: float) -> float:
    """Bisect for the end of the interval from a, towards b, where ``before`` holds."""
    for _ in range(_STEPS):
        t = (a + b) / 2
        a, b = (t, b) if before(t) else (a, t)
    return b
