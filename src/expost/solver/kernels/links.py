"""The links ψ: their values and slopes, within known errors."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import (
    COSH,
    FOOT,
    GROW,
    LEFT,
    RIGHT,
    SHRINK,
    SINH,
    BoxProblem,
    Floats,
    H,
    Ints,
    Links,
)

__all__ = ["piecewise_value", "score", "second_derivative", "slope", "tilted_value", "value"]


# Kinds of links. Those from TENT on are piecewise linear, and the last two are -t²/2 and t²/2.
LOGISTIC, RISING, FALLING, PROBIT, MIRRORED = 0, 1, 2, 3, 4
TENT, VALLEY, WINDOW, HOLE, FLAT = 5, 6, 7, 8, 9
HILL, BOWL = 10, 11

UNIT = 2.0**-53
TINY = 1e-300  # what products too small for doubles can lose, and more
ROOT_HALF, ROOT_PI = math.sqrt(0.5), 1.0 / math.sqrt(math.pi)


@compiled
def piecewise_value(kind: int, h: float, left: float, right: float, t: float) -> float:
    """Return ψ(t) of a link from TENT on; at a jump, left or right, the larger value."""
    if kind >= HILL:
        return 0.5 * t * t if kind == BOWL else -0.5 * t * t
    if kind <= VALLEY:
        return abs(t) if kind == VALLEY else -abs(t)
    if kind == WINDOW:
        return h if left <= t <= right else -h
    if kind == HOLE:
        return -h if left < t < right else h
    return 0.0


@compiled
def value(link: Ints, par: Floats, i: int, t: float) -> float:
    """Return ψ_i(t), within 32 + 24h units of roundoff; PROBIT and MIRRORED within 128 + 64h."""
    h = par[i, H]
    if link[i] == LOGISTIC:
        # clip(t, -h, h) + log((1 + e^-|t+h|) / (1 + e^-|t-h|)), and odd: no cancellation.
        a = abs(t)
        e = math.exp(-a)
        low = e * par[i, SHRINK]
        high = e * par[i, GROW] if a >= h else par[i, SHRINK] / e
        r = min(a, h) + math.log((1.0 + low) / (1.0 + high))
        return r if t >= 0.0 else -r
    if link[i] >= TENT:
        return piecewise_value(link[i], h, par[i, LEFT], par[i, RIGHT], t)
    s = 1.0 if link[i] == RISING or link[i] == PROBIT else -1.0
    if link[i] == PROBIT or link[i] == MIRRORED:
        return s * (math.log1p(math.erfc(-s * t * ROOT_HALF) / par[i, FOOT]) - h)
    return s * (math.log1p((1.0 + min(1.0, max(-1.0, s * t))) / par[i, FOOT]) - h)


@compiled
def slope(link: Ints, par: Floats, i: int, t: float) -> float:
    """Return ψ_i'(t), from inside where there is a kink."""
    if link[i] == LOGISTIC:
        e = math.exp(-abs(t))
        return 2.0 * par[i, SINH] * e / (e * (e + 2.0 * par[i, COSH]) + 1.0)
    if link[i] == PROBIT or link[i] == MIRRORED:
        u = t if link[i] == PROBIT else -t
        density = 2.0 * ROOT_HALF * ROOT_PI * math.exp(-0.5 * t * t)
        return density / (par[i, FOOT] + math.erfc(-u * ROOT_HALF))
    if link[i] > VALLEY:
        return 0.0 if link[i] < HILL else t if link[i] == BOWL else -t
    if link[i] >= TENT:
        return 1.0 if (t > 0.0) == (link[i] == VALLEY) else -1.0
    if abs(t) > 1.0:
        return 0.0
    return 1.0 / (par[i, FOOT] + 1.0 + (t if link[i] == RISING else -t))


@compiled
def second_derivative(par: Floats, i: int, t: float) -> float:
    """Return ψ_i''(t) of a logistic term."""
    e = math.exp(-abs(t))
    y = e * (e + 2.0 * par[i, COSH]) + 1.0
    r = 2.0 * par[i, SINH] * e * (1.0 - e * e) / (y * y)
    return -r if t > 0.0 else r


@compiled
def score(problem: BoxProblem, i: int, x: Floats) -> float:
    """Return the score of a term at a point, a·x + c."""
    t = problem.c[i]
    for j in range(len(x)):
        t += problem.A[i, j] * x[j]
    return t


@compiled
def tilted_value(links: Links, i: int, lam: float, t: float) -> float:
    """Return m ψ(t) - λt."""
    return links.m[i] * value(links.link, links.par, i, t) - lam * t
