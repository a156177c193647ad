"""Compiled kernels of the branch and bound: arrays in, arrays out, nothing of queries.

A *side* is always to maximize Σ m_i ψ_i(t_i), t = A x + c, over a box with real and integer
coordinates. Every ψ is increasing, convex left of τ and concave right of it; or it is straight
but for a kink or two jumps: TENT, VALLEY, WINDOW, HOLE; or a parabola: HILL, BOWL. One that is FLAT
is zero, and its t has to be 1, as the number of categories that somebody is in. A *node* is a box
[l, u] on x and intervals [L, U] on t; of a convex sum it is the corners of that. For any
multipliers λ, curvatures q, centre x̂ and diagonal D ≥ 0 with D - Σ q_i a_i a_iᵀ positive
semidefinite,

    Σ_i max over [L_i, U_i] of (m_i ψ_i(t) - λ_i t - q_i/2 (t - t̂_i)²) + λ·c
        + Σ_j max over {l_j, u_j} of ((Aᵀλ)_j x + D_j/2 (x - x̂_j)²)

is an upper bound on the node (``dual_bound``). It holds whatever λ, q, x̂ and D are: all the rest
of this file only makes it small. Proof: docs/theory/extrema.md.

All kernels are in this one file because a cached caller does not notice an edit in another one.
They run, slowly, without a compiler too (NUMBA_DISABLE_JIT=1).
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

import numpy as np

# Intel's vector library, where there is one, would give other bits than everybody else's.
os.environ.setdefault("NUMBA_DISABLE_INTEL_SVML", "1")

from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOGISTIC, RISING, FALLING, PROBIT, MIRRORED = 0, 1, 2, 3, 4
TENT, VALLEY, WINDOW, HOLE, FLAT = 5, 6, 7, 8, 9  # those from TENT on are straight in parts,
HILL, BOWL = 10, 11  # and these are -t²/2 and t²/2
# Columns of Side.par. With h = ε/2: h, sinh h, cosh h, e^-h, e^h, 2/(e^ε - 1), argmax of -ψ''.
H, SINH, COSH, SHRINK, GROW, FOOT, PEAK = 0, 1, 2, 3, 4, 5, 6
PARAMETERS = 7
# Of straight ones: where they bend or jump, with as much room for rounding as makes them larger;
# and of those that jump also with as much as makes them smaller.
LEFT, RIGHT, SURE_LEFT, SURE_RIGHT = SINH, COSH, SHRINK, GROW
# More columns of what a side is made of: the largest slope, τ, and the rounding of ψ in units.
STEEPEST, TAU, ERROR = PARAMETERS, PARAMETERS + 1, PARAMETERS + 2

UNIT = 2.0**-53
ROOT_HALF, ROOT_PI = math.sqrt(0.5), 1.0 / math.sqrt(math.pi)
TINY = 1e-300  # what products too small for doubles can lose, and more
KNOTS = 64
_CLOSER = 8
_EDGE = 2.0**-22  # how far from a jump to split
CANDIDATE = 2  # a variable and a point
PLAIN, CURVED = 0, 1
VALUE, TIGHTENED = 0, 1  # in Work.found
SCORES_FIRST, COORDINATES_ONLY, CORNERS = 0, 1, 2


class Side(NamedTuple):
    """What is to be maximized."""

    link: Ints
    par: Floats
    m: Floats
    error: Floats
    """The rounding of m·ψ, in units of roundoff."""
    A: Floats
    c: Floats
    lo: Floats
    hi: Floats
    integer: Ints
    slack: Floats
    """How far a computed score can be from the real one, for any point of the box."""
    tau: Floats
    wall: Floats
    """A slope, per variable, that stands for leaving its interval."""
    table: Ints
    """Which row of the grid a term uses."""
    grid: Floats
    heights: Floats
    chords: Floats
    """Slopes from each point of the grid to the next."""
    sizes: Ints
    total_error: float
    """How far the computed sum can be from the real one, for any point of the box."""


class Links(NamedTuple):
    """The part of a side that functions of a single score need: the whole is long to hand over."""

    link: Ints
    par: Floats
    m: Floats
    tau: Floats


class Work(NamedTuple):
    """The node at hand, and scratch."""

    found: Floats
    branch: Floats
    trial: Floats
    V: Floats
    l: Floats
    u: Floats
    L: Floats
    U: Floats
    x: Floats
    lam: Floats
    w: Floats
    weight: Floats
    q: Floats
    beta: Floats
    centre: Floats
    middle: Floats
    D: Floats
    M: Floats
    F: Floats
    scale: Floats
    focus: Floats
    learned: Floats
    """Per score: what splits there gained per unit of gap, below and above, summed and counted."""
    knot: Floats
    rise: Floats
    tab: Floats
    kept: Floats
    values: Floats
    z: Floats
    step: Floats
    gain: Floats
    gap: Floats
    part: Floats
    y: Floats
    grad: Floats
    newgrad: Floats
    best_lam: Floats
    best_q: Floats
    best_centre: Floats
    best_diagonal: Floats
    knots: Ints
    rows: Ints
    cols: Ints
    at: Ints
    wanted: Ints
    labels: Ints
    cell: Ints
    kept_rows: Ints
    kept_cols: Ints
    arranged: Ints
    """The node whose tableau is kept for its other half, or -1."""


def make_buffers(n: int, d: int) -> tuple[Floats, Ints]:
    """The memory of a :class:`Work` for n terms and d coordinates."""
    floats = 4 + 20 * d + 2 * d * d + 19 * n + 2 * (n + d) * KNOTS + 2 * n * (d + 1)
    buffer = np.zeros(floats)
    # Unit vectors in R⁴ to start from, neighbours at right angles.
    buffer[4 + d : 4 + 5 * d : 5] = 1.0
    return buffer, np.zeros(5 * n + 6 * d + 1, dtype=np.int64)


def node_size(n: int, d: int) -> int:
    """Doubles that a stored node takes."""
    return 4 * d + 3 * n + CANDIDATE + 2


def compiled(function: Any, *, counted: bool = False) -> Any:
    """Compile, and keep the result on disk where there is a place for it.

    Without counts of references, which cost a third of the time: arrays belong to the caller.
    """
    options = {"nogil": True, "error_model": "numpy", "_nrt": counted}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place for the cache
        return njit(**options)(function)


def handing_out(function: Any) -> Any:
    """Compile a function that makes arrays, or views of them, or calls one that does."""
    return compiled(function, counted=True)


class PackedSide(NamedTuple):
    """A :class:`Side` as two buffers, for the same reason as :func:`make_work`."""

    floats: Floats
    ints: Ints

    @property
    def shape(self) -> tuple[int, int]:
        """The number of terms and of coordinates."""
        return int(self.ints[0]), int(self.ints[1])

    @property
    def total_error(self) -> float:
        """As of the side."""
        return float(self.floats[0])


@handing_out
def unpack(floats: Floats, ints: Ints) -> Side:
    """Views of the two buffers of a side."""
    n, d, tables, width = ints[0], ints[1], ints[2], ints[3]
    rows = floats[1 : 1 + 5 * n].reshape((5, n))
    f = 1 + 5 * n
    lo = floats[f : f + d]
    f += d
    hi = floats[f : f + d]
    f += d
    wall = floats[f : f + n + d]
    f += n + d
    par = floats[f : f + n * PARAMETERS].reshape((n, PARAMETERS))
    f += n * PARAMETERS
    A = floats[f : f + n * d].reshape((n, d))
    f += n * d
    grid = floats[f : f + tables * width].reshape((tables, width))
    f += tables * width
    heights = floats[f : f + tables * width].reshape((tables, width))
    f += tables * width
    chords = floats[f : f + tables * width].reshape((tables, width))
    return Side(
        ints[4 : 4 + n], par, rows[0], rows[1], A, rows[2], lo, hi,
        ints[4 + 2 * n : 4 + 2 * n + d], rows[3], rows[4], wall, ints[4 + n : 4 + 2 * n], grid,
        heights, chords, ints[4 + 2 * n + d :], floats[0],
    )  # fmt: skip


@handing_out
def pack(
    rows: Floats, c: Floats, m: Floats, lo: Floats, hi: Floats, integer: Ints, sign: int,
    constants: Floats, link: Ints, table: Ints, grid: Floats, heights: Floats, sizes: Ints,
) -> tuple[Floats, Ints]:  # fmt: skip
    """The side that maximizes Σ m ψ(sign·(rows·x + c)), with all that no search changes."""
    n, d = rows.shape
    tables, width = grid.shape
    floats = np.empty(1 + 6 * n + 3 * d + n * PARAMETERS + n * d + 3 * tables * width)
    ints = np.empty(4 + 2 * n + d + tables, dtype=np.int64)
    ints[0], ints[1], ints[2], ints[3] = n, d, tables, width
    side = unpack(floats, ints)
    for j in range(d):
        # Coordinates of size 1, by powers of two: nothing is rounded, and no width is too small.
        _, exponent = math.frexp(max(abs(lo[j]), abs(hi[j])))
        exponent = 0 if integer[j] else exponent
        side.integer[j] = integer[j]
        side.lo[j] = math.ldexp(lo[j], -exponent)
        side.hi[j] = math.ldexp(hi[j], -exponent)
        for i in range(n):
            side.A[i, j] = sign * math.ldexp(rows[i, j], exponent)
    floats[0] = 0.0
    steepest = 0.0
    for i in range(n):
        for k in range(PARAMETERS):
            side.par[i, k] = constants[i, k]
        h, steepness = side.par[i, H], m[i] * constants[i, STEEPEST]
        steepest = max(steepest, steepness)
        side.m[i], side.c[i], side.link[i], side.table[i] = m[i], sign * c[i], link[i], table[i]
        side.tau[i] = constants[i, TAU]
        size = abs(c[i])
        for j in range(d):
            size += abs(side.A[i, j]) * max(abs(side.lo[j]), abs(side.hi[j]))
        side.slack[i] = (d + 4) * UNIT * size + TINY
        side.error[i] = m[i] * constants[i, ERROR]
        # A score is within its slack, a link within ``error`` units of roundoff, and the sum of n
        # terms loses n units of the sum of their sizes.
        floats[0] += min(steepness * side.slack[i], 2.0 * m[i] * h)
        floats[0] += UNIT * (side.error[i] + (n + 4) * m[i] * 2.0 * h)
    floats[0] *= 1.01
    for i in range(n):
        side.wall[i] = 50.0 * steepest + TINY
    for j in range(d):
        size = TINY
        for i in range(n):
            size += 2.0 * abs(side.A[i, j])
        side.wall[n + j] = side.wall[0] * size
    for i in range(n):
        for j in range(d):
            if link[i] == FLAT and side.A[i, j] != 0.0:
                side.wall[i] = max(side.wall[i], side.wall[n + j])
    for k in range(tables):
        side.sizes[k] = sizes[k]
        for s in range(width):
            side.grid[k, s] = grid[k, s]
            side.heights[k, s] = heights[k, s]
            side.chords[k, s] = 0.0
        for s in range(sizes[k] - 1):
            side.chords[k, s] = (heights[k, s + 1] - heights[k, s]) / (grid[k, s + 1] - grid[k, s])
    return floats, ints


@handing_out
def make_work(floats: Floats, ints: Ints, n: int, d: int) -> Work:
    """Views of two buffers: a call with dozens of arrays would take longer than the work."""
    f = 0
    found = floats[f : f + 2]
    f += 2
    branch = floats[f : f + 2]
    f += 2
    trial = floats[f : f + d]
    f += d
    V = floats[f : f + 4 * d].reshape((d, 4))
    f += 4 * d
    vectors = floats[f : f + 15 * d].reshape((15, d))
    f += 15 * d
    M = floats[f : f + d * d].reshape((d, d))
    f += d * d
    F = floats[f : f + d * d].reshape((d, d))
    f += d * d
    rows = floats[f : f + 12 * n].reshape((12, n))
    f += 12 * n
    focus = floats[f : f + 3 * n].reshape((n, 3))
    f += 3 * n
    learned = floats[f : f + 4 * n].reshape((n, 4))
    f += 4 * n
    knot = floats[f : f + (n + d) * KNOTS].reshape((n + d, KNOTS))
    f += (n + d) * KNOTS
    rise = floats[f : f + (n + d) * KNOTS].reshape((n + d, KNOTS))
    f += (n + d) * KNOTS
    tab = floats[f : f + n * (d + 1)].reshape((n, d + 1))
    f += n * (d + 1)
    kept = floats[f : f + n * (d + 1)].reshape((n, d + 1))
    return Work(
        found, branch, trial, V, vectors[0], vectors[1], rows[0], rows[1], vectors[2], rows[2],
        vectors[3], vectors[4], rows[3], rows[4], vectors[5], rows[5], vectors[6], M, F,
        vectors[7], focus, learned, knot, rise, tab, kept, vectors[8], rows[6], rows[7], vectors[9],
        rows[8], rows[9], vectors[10], vectors[11], vectors[12],
        rows[10], rows[11], vectors[13], vectors[14],
        ints[: n + d], ints[n + d : 2 * n + d], ints[2 * n + d : 2 * n + 2 * d],
        ints[2 * n + 2 * d : 2 * n + 3 * d], ints[2 * n + 3 * d : 3 * n + 4 * d],
        ints[3 * n + 4 * d : 3 * n + 5 * d], ints[3 * n + 5 * d : 4 * n + 5 * d],
        ints[4 * n + 5 * d : 5 * n + 5 * d], ints[5 * n + 5 * d : 5 * n + 6 * d],
        ints[5 * n + 6 * d :],
    )  # fmt: skip


# -- links ---------------------------------------------------------------------------------------


@compiled
def straight(kind: int, h: float, left: float, right: float, t: float) -> float:
    """ψ(t) of those from TENT on, whose jumps are at left and right; there the larger value."""
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
    """ψ_i(t), within 32 + 24h units of roundoff; PROBIT and MIRRORED within 128 + 64h."""
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
        return straight(link[i], h, par[i, LEFT], par[i, RIGHT], t)
    s = 1.0 if link[i] == RISING or link[i] == PROBIT else -1.0
    if link[i] == PROBIT or link[i] == MIRRORED:
        return s * (math.log1p(math.erfc(-s * t * ROOT_HALF) / par[i, FOOT]) - h)
    return s * (math.log1p((1.0 + min(1.0, max(-1.0, s * t))) / par[i, FOOT]) - h)


@compiled
def slope(link: Ints, par: Floats, i: int, t: float) -> float:
    """ψ_i'(t), from inside where there is a kink."""
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
def bend(par: Floats, i: int, t: float) -> float:
    """ψ_i''(t) of a logistic term."""
    e = math.exp(-abs(t))
    y = e * (e + 2.0 * par[i, COSH]) + 1.0
    r = 2.0 * par[i, SINH] * e * (1.0 - e * e) / (y * y)
    return -r if t > 0.0 else r


@compiled
def height(links: Links, i: int, lam: float, t: float) -> float:
    """m ψ(t) - λt."""
    return links.m[i] * value(links.link, links.par, i, t) - lam * t


# -- the dual bound ------------------------------------------------------------------------------


@compiled
def crest(links: Links, i: int, lam: float) -> float:
    """Where m ψ(t) - λt is largest right of τ, about."""
    mu = lam / links.m[i]
    if mu <= 0.0:
        return math.inf
    if links.link[i] == LOGISTIC:
        y = links.par[i, SINH] / mu - links.par[i, COSH]
        return math.log(y + math.sqrt(y * y - 1.0)) if y > 1.0 else 0.0
    if links.link[i] == RISING:
        return min(1.0, 1.0 / mu - links.par[i, FOOT] - 1.0)  # level beyond 1
    if links.link[i] == FALLING:
        return 1.0
    # Any other slope falls from τ on, and is 0 at last.
    a, b = links.tau[i], links.tau[i] + 40.0
    for _ in range(40):
        t = 0.5 * (a + b)
        if slope(links.link, links.par, i, t) > mu:
            a = t
        else:
            b = t
    return a


@compiled
def plain_bound(links: Links, i: int, lam: float, lo: float, hi: float) -> float:
    """An upper bound on m ψ(t) - λt over [lo, hi], but for the rounding of its largest parts."""
    link, par, m = links.link, links.par, links.m[i]
    left, right = max(lo, links.tau[i]), hi
    if link[i] >= TENT:
        ends = max(height(links, i, lam, lo), height(links, i, lam, hi))
        if link[i] == BOWL:
            return ends
        if link[i] == HILL:
            return max(ends, height(links, i, lam, min(hi, max(lo, -lam / m))))
        first = height(links, i, lam, min(hi, max(lo, par[i, LEFT])))
        return max(ends, first, height(links, i, lam, min(hi, max(lo, par[i, RIGHT]))))
    best = -math.inf
    if lo < links.tau[i]:
        best = height(links, i, lam, lo)  # convex from here to left, where the rest begins
    if left >= right or link[i] == RISING or link[i] == FALLING:
        best = max(best, height(links, i, lam, hi))
    if left >= right:
        return best
    if link[i] == FALLING or (link[i] == RISING and left >= 1.0):
        return max(best, height(links, i, lam, left))  # level from here on
    if link[i] == RISING:
        right = min(right, 1.0)  # level beyond 1, and both ends of that are looked at
    t = min(right, max(left, crest(links, i, lam)))
    # By concavity the tangent at any t bounds the piece, so it does not matter where t landed.
    rise = m * slope(link, par, i, t)
    tilt = rise - lam
    away = (right - t) * max(tilt, 0.0) + (t - left) * max(-tilt, 0.0)
    blur = 32.0 if link[i] != PROBIT and link[i] != MIRRORED else 96.0 + 4.0 * t * t
    away += blur * UNIT * (rise + abs(lam)) * (right - left)
    return max(best, m * value(link, par, i, t) - lam * t + away)


@compiled
def curved_bound(
    links: Links, i: int, lam: float, q: float, mid: float, lo: float, hi: float, start: float
) -> float:
    """An upper bound on f(t) = m ψ(t) - λt - q/2 (t - mid)² over [lo, hi], for a logistic term.

    ψ'' rises up to the peak, falls from there to 0, and is negative beyond, so on either side of
    the peak f is concave on an outer part and convex on an inner one. The tangent at any point of
    the outer part bounds that part; the inner part is bounded by its ends, of which one is the
    peak and the other one is below the tangent.
    """
    link, par, m = links.link, links.par, links.m[i]
    best = -math.inf
    peak = min(hi, max(lo, -par[i, PEAK]))
    tiny = 1e-14 * (m * par[i, H] + abs(q))
    for right in range(2):
        outer = hi if right else lo
        best = max(
            best, m * value(link, par, i, outer) - lam * outer - 0.5 * q * (outer - mid) ** 2
        )
        if peak == outer:
            continue
        f = m * value(link, par, i, peak) - lam * peak - 0.5 * q * (peak - mid) ** 2
        best = max(best, f)
        if m * bend(par, i, outer) - q > -tiny and outer <= 0.0:
            best += tiny * (hi - lo) ** 2  # convex, but for what rounding may hide
            continue
        # The edge of the concave part, on its safe links.
        edge = peak
        inside = m * bend(par, i, peak) - q
        if inside > -tiny:
            a, edge = peak, outer
            if right and outer > 0.0 and -q < -tiny:
                edge = 0.0
            outside = m * bend(par, i, edge) - q
            for _ in range(5):
                t = a + (edge - a) * min(0.9, max(0.1, inside / (inside - outside)))
                f = m * bend(par, i, t) - q
                if f > -tiny:
                    a, inside = t, f
                else:
                    edge, outside = t, f
        t = edge
        tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
        out = 1.0 if right else -1.0
        if tilt * out > 0.0:
            t = outer
            tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
            if tilt * out < 0.0:
                # The maximum is inside: Newton's steps, kept between what is known.
                a, b = min(edge, outer), max(edge, outer)
                t = min(b, max(a, start))
                for _ in range(6):
                    tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
                    if abs(tilt) < 1e-12:
                        break
                    if tilt > 0.0:
                        a = t
                    else:
                        b = t
                    new = t - tilt / (m * bend(par, i, t) - q)
                    t = new if a < new < b else 0.5 * (a + b)
                tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
        p0, p1 = min(peak, outer), max(peak, outer)
        away = (p1 - t) * max(tilt, 0.0) + (t - p0) * max(-tilt, 0.0)
        away += 32.0 * UNIT * (m * par[i, H] + abs(lam) + abs(q * (t - mid))) * (p1 - p0)
        best = max(best, m * value(link, par, i, t) - lam * t - 0.5 * q * (t - mid) ** 2 + away)
    return best


@compiled
def chord_bound(
    links: Links, i: int, lam: float, q: float, mid: float, lo: float, hi: float
) -> float:
    """An upper bound on f(t) = m ψ(t) - λt - q/2 (t - mid)² over [lo, hi], q ≥ 0, if FALLING.

    Between -1 and 1 f'' = m/G² - q rises with t, G = foot + 1 - t. So left of any t it is at most
    what it is there, and right of it f is concave, or convex, or concave and then convex.
    """
    m, foot = links.m[i], links.par[i, FOOT]
    a, b = min(1.0, max(-1.0, lo)), min(1.0, max(-1.0, hi))
    t = min(b, max(a, mid))
    G = foot + 1.0 - t
    off = 4.0 * UNIT * (foot + 2.0) / G
    if not 0.0 <= off < 0.1:
        return math.inf
    rise = m / G
    tilt = rise - lam - q * (t - mid)
    away = (b - t) * max(tilt, 0.0) + (t - a) * max(-tilt, 0.0)
    away += 0.5 * max(0.0, rise / G * (1.0 + 4.0 * off) - q) * (t - a) ** 2
    away += (2.0 * off * rise + 8.0 * UNIT * (abs(lam) + abs(q * (t - mid)))) * (b - a)
    best = height(links, i, lam, t) - 0.5 * q * (t - mid) ** 2 + away
    best = max(best, height(links, i, lam, b) - 0.5 * q * (b - mid) ** 2)
    # It is level beyond, where a parabola that opens downwards is below its tangents.
    for end in range(2):
        beyond = hi - max(lo, 1.0) if end else min(hi, -1.0) - lo
        if beyond > 0.0:
            t = max(lo, 1.0) if end else min(hi, -1.0)
            tilt = -lam - q * (t - mid)
            away = max(0.0, tilt if end else -tilt) + 8.0 * UNIT * (abs(lam) + abs(q * (t - mid)))
            f = height(links, i, lam, t) - 0.5 * q * (t - mid) ** 2
            best = max(best, f + away * beyond * (1.0 + 4.0 * UNIT))
    return best


@compiled
def dual_bound(side: Side, work: Work) -> float:
    """The bound of the node for the λ, q, x̂ and D in ``work``, rounded up.

    Leaves Aᵀλ in ``w`` and Σ|λ_i a_ij| in ``weight``.
    """
    A, lam, w, weight = side.A, work.lam, work.w, work.weight
    links = Links(side.link, side.par, side.m, side.tau)
    n, d = A.shape
    for j in range(d):
        w[j] = 0.0
        weight[j] = 0.0
    total = 0.0
    size = 0.0  # of everything that was added, and what else roundoff is relative to
    for i in range(n):
        y, q, lo, hi = lam[i], work.q[i], work.L[i], work.U[i]
        if q == 0.0:
            work.part[i] = plain_bound(links, i, y, lo, hi)
        else:
            mid = work.middle[i]
            if side.link[i] == FALLING:
                work.part[i] = chord_bound(links, i, y, q, mid, lo, hi)
            else:
                k = 0
                while k < work.knots[i] - 1 and work.rise[i, k] > y:
                    k += 1
                work.part[i] = curved_bound(links, i, y, q, mid, lo, hi, work.knot[i, k])
            far = max(abs(lo - mid), abs(hi - mid)) + side.slack[i]
            size += 2.0 * abs(q) * far * (far + abs(lo) + abs(hi) + side.slack[i] / UNIT)
        total += work.part[i] + y * side.c[i]
        size += side.error[i] + abs(y) * (abs(side.c[i]) + 2.0 * max(abs(lo), abs(hi)))
        for j in range(d):
            p = y * A[i, j]
            w[j] += p
            weight[j] += abs(p)
    for j in range(d):
        l, u, D, x = work.l[j], work.u[j], work.D[j], work.centre[j]
        total += max(w[j] * l + 0.5 * D * (l - x) ** 2, w[j] * u + 0.5 * D * (u - x) ** 2)
        reach = max(abs(l), abs(u))
        size += weight[j] * reach + 8.0 * D * (reach + abs(x)) ** 2
    total += (2 * n + 2 * d + 20) * UNIT * size
    return total if total == total else math.inf  # what overflows is no bound


# -- intervals -----------------------------------------------------------------------------------


@compiled
def propagate(side: Side, work: Work, rounds: int) -> bool:
    """Tighten scores by coordinates and coordinates by scores, outward; False if nothing is left.

    A score's range is computed within its slack. Where rows use coordinates that an earlier
    row has tightened meanwhile, their ranges are too wide, which is safe.
    """
    A, slack, l, u, L, U = side.A, side.slack, work.l, work.u, work.L, work.U
    n, d = A.shape
    for turn in range(rounds):
        changed = False
        for i in range(n):
            low = side.c[i]
            high = side.c[i]
            for j in range(d):
                a = A[i, j]
                low += a * (l[j] if a >= 0.0 else u[j])
                high += a * (u[j] if a >= 0.0 else l[j])
            L[i] = max(L[i], low - slack[i])
            U[i] = min(U[i], high + slack[i])
            if L[i] > U[i]:
                return False
            # What a score that is cut on one side leaves to a coordinate, from its other end.
            above = U[i] - low + 2.0 * slack[i]
            below = high - L[i] + 2.0 * slack[i]
            if turn + 1 == rounds or min(above, below) > 0.999999 * (high - low):
                continue
            for j in range(d):
                a = abs(A[i, j])
                if a == 0.0:
                    continue
                for cut in range(2):
                    reach = (below if cut else above) / a * (1.0 + 4.0 * UNIT)
                    if not reach < u[j] - l[j]:
                        continue
                    if (A[i, j] > 0.0) == (cut == 0):
                        new = l[j] + max(reach, 0.0)
                        new += 2.0 * UNIT * abs(new)
                        new = math.floor(new) if side.integer[j] else new
                        changed = changed or new < u[j]
                        u[j] = min(u[j], new)
                    else:
                        new = u[j] - max(reach, 0.0)
                        new -= 2.0 * UNIT * abs(new)
                        new = math.ceil(new) if side.integer[j] else new
                        changed = changed or new > l[j]
                        l[j] = max(l[j], new)
                    if l[j] > u[j]:
                        return False
        if not changed and turn + 1 < rounds:
            return True
    return True


@compiled
def tighten(side: Side, work: Work, bound: float, cut: float) -> None:
    """Drop coordinates and scores for which a plain bound shows that all is at most ``cut``.

    The bound falls by w per unit that a coordinate moves from its better end, and by what a score
    loses against its best one.
    """
    l, u, w = work.l, work.u, work.w
    links = Links(side.link, side.par, side.m, side.tau)
    n, d = side.A.shape
    for j in range(d):
        sure = abs(w[j]) - (n + 4) * UNIT * work.weight[j]
        if sure <= 0.0 or bound - cut >= sure * (u[j] - l[j]):
            continue
        work.found[TIGHTENED] = 1.0
        reach = (bound - cut) / sure * (1.0 + 8.0 * UNIT)
        if w[j] > 0.0:
            new = u[j] - reach
            new -= 2.0 * UNIT * abs(new)
            l[j] = max(l[j], math.ceil(new) if side.integer[j] else new)
        else:
            new = l[j] + reach
            new += 2.0 * UNIT * abs(new)
            u[j] = min(u[j], math.floor(new) if side.integer[j] else new)
    for i in range(n):
        lam, lo, hi = work.lam[i], work.L[i], work.U[i]
        far = max(abs(lo), abs(hi))
        blur = UNIT * (4.0 * side.error[i] + 80.0 * (abs(lam) + side.wall[i]) * far)
        enough = work.part[i] - (bound - cut) - blur
        low = height(links, i, lam, lo)
        high = height(links, i, lam, hi)
        if lo >= hi or (low > enough and high > enough) or side.link[i] >= TENT:
            continue
        # From its best point a term falls towards both ends, or is convex there.
        best = lo if low > high else hi
        concave = side.tau[i] < hi
        if concave:
            top = min(hi, max(lo, side.tau[i], crest(links, i, lam)))
            if height(links, i, lam, top) >= max(low, high):
                best = top
        for end in range(2):
            safe = hi if end else lo
            if (high if end else low) > enough or best == safe:
                continue
            if concave and end == 1 and best == lo:
                continue  # there may be a second hill in between
            near = best
            for _ in range(6):
                t = 0.5 * (safe + near)
                if height(links, i, lam, t) <= enough:
                    safe = t
                else:
                    near = t
            work.found[TIGHTENED] = 1.0
            if end:
                work.U[i] = safe
            else:
                work.L[i] = safe


# -- curvature -----------------------------------------------------------------------------------


@compiled
def curvatures(side: Side, work: Work) -> bool:
    """Set q by β, and D such that D - Σ q a aᵀ is certainly positive semidefinite."""
    A, l, u, centre = side.A, work.l, work.u, work.centre
    q, M, scale = work.q, work.M, work.scale
    n, d = A.shape
    for j in range(d):
        centre[j] = min(u[j], max(l[j], centre[j]))
        r = 0.5 * (u[j] - l[j])
        scale[j] = math.sqrt(0.8 * (u[j] - centre[j]) * (centre[j] - l[j]) + 0.2 * r * r)
        for k in range(d):
            M[j, k] = 0.0
    mass = 0.0
    for i in range(n):
        q[i] = 0.0
        mid = side.c[i]
        for j in range(d):
            mid += A[i, j] * centre[j]
        work.middle[i] = mid
        lo, hi = work.L[i], work.U[i]
        if side.link[i] != LOGISTIC or lo >= hi or hi - lo > 20.0:
            continue
        peak = min(hi, max(lo, -side.par[i, PEAK]))
        most = side.m[i] * max(
            bend(side.par, i, lo), bend(side.par, i, peak), bend(side.par, i, hi)
        )
        # Half of a negative curvature leaves the term concave everywhere on the interval.
        q[i] = (work.beta[i] if most > 0.0 else 0.5) * most
        for j in range(d):
            a = q[i] * A[i, j] * scale[j]
            mass += abs(a * A[i, j]) * scale[j]
            for k in range(j + 1):
                M[j, k] += a * A[i, k] * scale[k]
    return dominate(work, mass, 4)


@compiled
def dominate(work: Work, mass: float, sweeps: int) -> bool:
    """Set D such that it is certainly above Σ q a aᵀ, which is in M, scaled; False if that fails.

    ``mass`` is Σ |q| (scale a)², by which the rounding of M is measured. Coordinates whose scale
    is 0 are fixed and left out.
    """
    D, M, V, F, scale = work.D, work.M, work.V, work.F, work.scale
    d = len(D)
    # The smallest diagonal above M is the dual of a small semidefinite program, which a few
    # sweeps of the mixing method nearly solve.
    trace = 0.0
    for _ in range(sweeps):
        trace = 0.0
        for j in range(d):
            g0 = g1 = g2 = g3 = 0.0
            for k in range(d):
                if k != j:
                    e = M[j, k] if k < j else M[k, j]
                    g0 += e * V[k, 0]
                    g1 += e * V[k, 1]
                    g2 += e * V[k, 2]
                    g3 += e * V[k, 3]
            norm = math.sqrt(g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3)
            D[j] = max(0.0, M[j, j] + norm)
            trace += D[j]
            if norm > 0.0:
                V[j, 0] = g0 / norm
                V[j, 1] = g1 / norm
                V[j, 2] = g2 / norm
                V[j, 3] = g3 / norm
    # A Cholesky factorization that runs to its end proves it, less a margin for its rounding.
    margin = 2e-9 * (trace + d * mass)
    shift = 1e-3 * trace / d
    for _ in range(12):
        good = True
        for j in range(d):
            if not good or scale[j] == 0.0:
                continue
            for k in range(j + 1):
                if scale[k] == 0.0:
                    continue
                f = -M[j, k]
                if j == k:
                    f += D[j] + shift - margin
                for e in range(k):
                    if scale[e] > 0.0:
                        f -= F[j, e] * F[k, e]
                if j > k:
                    F[j, k] = f / F[k, k]
                elif f > 0.0:
                    F[j, j] = math.sqrt(f)
                else:
                    good = mass == 0.0
        if good:
            for j in range(d):
                # Rounded up: D may be larger, never smaller.
                D[j] = (D[j] + shift) / scale[j] ** 2 * (1 + 8 * UNIT) if scale[j] > 0.0 else 0.0
            return True
        shift = 2.0 * shift + 1e-3 * (trace + mass) / d
    return False


@compiled
def adapt(side: Side, work: Work) -> None:
    """Move curvature to the terms whose hulls gain by it, and the centre towards the optimum.

    The derivative of the bound by q_i is half of what a unit of it costs in D, less what it takes
    off the hull at the optimum.
    """
    A, x, V, scale = side.A, work.x, work.V, work.scale
    n, d = A.shape
    for i in range(n):
        if work.q[i] <= 0.0:
            continue
        t = side.c[i]
        g0 = g1 = g2 = g3 = 0.0
        for j in range(d):
            t += A[i, j] * x[j]
            a = A[i, j] * scale[j]
            g0 += a * V[j, 0]
            g1 += a * V[j, 1]
            g2 += a * V[j, 2]
            g3 += a * V[j, 3]
        cost = g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3 + 1e-300
        gain = 0.0
        for s in range(work.knots[i] - 1):
            if work.knot[i, s] < t < work.knot[i, s + 1]:
                gain = (work.knot[i, s + 1] - t) * (t - work.knot[i, s])
        change = min(1.3, max(0.8, math.sqrt(gain / cost)))
        work.beta[i] = min(1.0, max(0.03, work.beta[i] * change))
    for j in range(d):
        work.centre[j] = 0.5 * (work.centre[j] + min(work.u[j], max(work.l[j], x[j])))


# -- piecewise-linear hulls ----------------------------------------------------------------------


@compiled
def build_hulls(side: Side, work: Work) -> None:
    """The upper hull of every variable's function, through its ends, table and focus points."""
    knot, rise, count, grid, heights = work.knot, work.rise, work.knots, side.grid, side.heights
    n, d = side.A.shape
    for i in range(n):
        lo, hi, m, mid, curve = work.L[i], work.U[i], side.m[i], work.middle[i], 0.5 * work.q[i]
        row = side.table[i]
        knot[i, 0] = lo
        count[i] = 1
        if lo >= hi:
            continue
        if curve == 0.0 and work.focus[i, 0] == math.inf:
            # A line from the lower end to where it touches, then chords of the table.
            low = m * value(side.link, side.par, i, lo)
            high = m * value(side.link, side.par, i, hi)
            # Left of τ a term is convex, and no point but its end can be on the hull.
            a, end = 0, side.sizes[row]
            while a < end:
                half = (a + end) // 2
                if grid[row, half] > lo and grid[row, half] >= side.tau[i]:
                    end = half
                else:
                    a = half + 1
            while end < side.sizes[row] and grid[row, end] < hi:
                end += 1
            b = end
            while a < b:
                half = (a + b) // 2
                here = m * heights[row, half]
                if half + 1 < end:
                    after = m * side.chords[row, half]
                else:
                    after = (high - here) / (hi - grid[row, half])
                if here - low >= after * (grid[row, half] - lo):
                    b = half
                else:
                    a = half + 1
            k = 1
            last, t = low, lo
            if a < end:
                knot[i, 1] = grid[row, a]
                rise[i, 0] = (m * heights[row, a] - low) / (grid[row, a] - lo)
                for g in range(a, end - 1):
                    rise[i, k] = m * side.chords[row, g]
                    k += 1
                    knot[i, k] = grid[row, g + 1]
                k += 1
                last, t = m * heights[row, end - 1], grid[row, end - 1]
            rise[i, k - 1] = (high - last) / (hi - t)
            knot[i, k] = hi
            count[i] = k + 1
            continue
        # Left of τ a term is convex, and no point but its end can be on the hull.
        tau = side.tau[i] if curve <= 0.0 else lo
        size = side.sizes[row]
        g, b = 0, size
        while g < b:
            half = (g + b) // 2
            if side.grid[row, half] > lo and side.grid[row, half] >= tau:
                b = half
            else:
                g = half + 1
        extra = 0
        while extra < 3 and not (work.focus[i, extra] > lo and work.focus[i, extra] >= tau):
            extra += 1
        before = m * value(side.link, side.par, i, lo) - curve * (lo - mid) ** 2
        k = 1
        more = True
        while more:
            t = side.grid[row, g] if g < size else math.inf
            aside = work.focus[i, extra] if extra < 3 else math.inf
            if min(t, aside) >= hi:
                t = hi
                f = m * value(side.link, side.par, i, hi)
                more = False
            elif t <= aside:
                f = m * side.heights[row, g]
                g += 1
                extra += t == aside
            else:
                t = aside
                f = m * value(side.link, side.par, i, t)
                extra += 1
            f -= curve * (t - mid) ** 2
            s = (f - before) / (t - knot[i, k - 1])
            while k >= 2 and rise[i, k - 2] <= s:
                before -= rise[i, k - 2] * (knot[i, k - 1] - knot[i, k - 2])
                k -= 1
                s = (f - before) / (t - knot[i, k - 1])
            rise[i, k - 1] = s
            knot[i, k] = t
            before = f
            k += 1
        count[i] = k
    for j in range(d):
        knot[n + j, 0] = work.l[j]
        count[n + j] = 1
        if work.l[j] < work.u[j]:
            knot[n + j, 1] = work.u[j]
            rise[n + j, 0] = 0.5 * work.D[j] * (work.l[j] + work.u[j] - 2.0 * work.centre[j])
            count[n + j] = 2


@compiled
def look_closer(side: Side, work: Work) -> None:
    """Set focus points around the optimum, so that the next hulls are finer there."""
    n, d = side.A.shape
    for i in range(n):
        t = side.c[i]
        for j in range(d):
            t += side.A[i, j] * work.x[j]
        width = 0.0
        for s in range(work.knots[i] - 1):
            if work.knot[i, s] <= t <= work.knot[i, s + 1]:
                width = max(width, work.knot[i, s + 1] - work.knot[i, s])
        work.focus[i, 0] = t - 0.125 * width
        work.focus[i, 1] = t
        work.focus[i, 2] = t + 0.125 * width


# -- simplex on the hulls ------------------------------------------------------------------------


@compiled
def pivot(tab: Floats, r: int, col: int) -> None:
    """Exchange the basic variable of row r with the nonbasic one of a column."""
    n, width = tab.shape
    inverse = 1.0 / tab[r, col]
    for k in range(width):
        tab[r, k] *= -inverse
    tab[r, col] = inverse
    for i in range(n):
        f = tab[i, col]
        if i != r and f != 0.0:
            tab[i, col] = 0.0
            for k in range(width):
                tab[i, k] += f * tab[r, k]


@compiled
def arrange(side: Side, work: Work, again: bool) -> None:
    """The tableau in which work.labels are nonbasic, as far as that can be.

    Scores are variables 0..n-1, coordinates n..n+d-1. The last column of the tableau is constant.
    ``again`` if the labels are those of the last time: two halves of a node start alike.
    """
    tab, rows, cols, wanted = work.tab, work.rows, work.cols, work.wanted
    n, d = side.A.shape
    for k in range(n + d):
        wanted[k] = -1
    for j in range(d):
        wanted[work.labels[j]] = j
        cols[j] = work.kept_cols[j] if again else n + j
    for i in range(n):
        rows[i] = work.kept_rows[i] if again else i
        for j in range(d):
            tab[i, j] = work.kept[i, j] if again else side.A[i, j]
        tab[i, d] = work.kept[i, d] if again else side.c[i]
    for s in range(0 if again else d):
        i = work.labels[s]
        if i >= n:
            continue
        best = -1
        size = 1e-9
        for j in range(d):
            if wanted[cols[j]] < 0 and abs(tab[i, j]) > size:
                best, size = j, abs(tab[i, j])
        if best >= 0:
            pivot(tab, i, best)
            rows[i] = cols[best]
            cols[best] = i
    for i in range(n):
        work.kept_rows[i] = rows[i]
        for j in range(d + 1):
            work.kept[i, j] = tab[i, j]
    for j in range(d):
        work.kept_cols[j] = cols[j]
        work.y[j] = work.values[wanted[cols[j]]] if wanted[cols[j]] >= 0 else -math.inf
    for j in range(d):
        work.labels[j], work.values[j] = cols[j], work.y[j]


@compiled
def seat(work: Work) -> None:
    """Put every nonbasic variable on the knot nearest to its value."""
    for j in range(len(work.at)):
        k = work.cols[j]
        p = 0
        while (
            p + 1 < work.knots[k] and 2.0 * work.values[j] > work.knot[k, p] + work.knot[k, p + 1]
        ):
            p += 1
        work.at[j] = p


@compiled
def steepness(rise: Floats, count: Ints, wall: Floats, k: int, cell: int) -> float:
    """The slope of variable k in a cell of its hull; a wall on either side of its interval."""
    if cell < 0:
        return wall[k]
    return rise[k, cell] if cell < count[k] - 1 else -wall[k]


@compiled
def simplex(side: Side, work: Work, limit: int) -> None:
    """Maximize the sum of the hulls; the multipliers are left in ``lam``, the point in ``x``.

    Nonbasic variables sit on knots. An edge is followed past knots until going on is a loss.
    """
    tab, rows, cols, at = work.tab, work.rows, work.cols, work.at
    knot, rise, count, z, cell = work.knot, work.rise, work.knots, work.z, work.cell
    step, gain, wall = work.step, work.gain, side.wall
    n, d = side.A.shape
    for i in range(n):
        t = tab[i, d]
        for j in range(d):
            t += tab[i, j] * knot[cols[j], at[j]]
        z[i] = t
        s = -1
        while s + 1 < count[rows[i]] and knot[rows[i], s + 1] <= t:
            s += 1
        cell[i] = s
    for j in range(d):
        gain[j] = 0.0
    for i in range(n):
        f = steepness(rise, count, wall, rows[i], cell[i])
        for j in range(d):
            gain[j] += f * tab[i, j]
    for turn in range(limit + 1):
        enter = -1
        best = 1e-7
        up = 1.0
        for j in range(d):
            k = cols[j]
            p = at[j]
            reach = knot[k, count[k] - 1] - knot[k, 0]
            if p < count[k] - 1 and (gain[j] + rise[k, p]) * reach > best:
                best, enter, up = (gain[j] + rise[k, p]) * reach, j, 1.0
            if p > 0 and -(gain[j] + rise[k, p - 1]) * reach > best:
                best, enter, up = -(gain[j] + rise[k, p - 1]) * reach, j, -1.0
        if enter < 0 or turn == limit:
            break
        k = cols[enter]
        p = at[enter]
        start = knot[k, p]
        rate = best / (knot[k, count[k] - 1] - knot[k, 0])
        own = abs(knot[k, p + int(up)] - start)
        for i in range(n):
            r = up * tab[i, enter]
            s = cell[i] + 1 if r > 0.0 else cell[i]
            step[i] = math.inf
            if abs(r) > 1e-11 and 0 <= s < count[rows[i]]:
                step[i] = max(0.0, (knot[rows[i], s] - z[i]) / r)
        while True:
            block = -1
            length = own
            for i in range(n):
                if step[i] < length:
                    block, length = i, step[i]
            if block < 0:
                p += int(up)
                here = steepness(rise, count, wall, k, p if up > 0.0 else p - 1)
                rate -= abs(here - steepness(rise, count, wall, k, p - 1 if up > 0.0 else p))
                if rate <= 0.0 or p == 0 or p == count[k] - 1:
                    break
                own += abs(knot[k, p + int(up)] - knot[k, p])
            else:
                r = up * tab[block, enter]
                b = rows[block]
                s = cell[block] + (1 if r > 0.0 else -1)
                change = steepness(rise, count, wall, b, s)
                change -= steepness(rise, count, wall, b, cell[block])
                rate -= abs(r) * abs(change)
                if rate <= 0.0:
                    break
                for j in range(d):
                    gain[j] += change * tab[block, j]
                cell[block] = s
                s = s + 1 if r > 0.0 else s
                step[block] = math.inf
                if 0 <= s < count[b]:
                    step[block] = max(length, (knot[b, s] - z[block]) / r)
        for i in range(n):
            z[i] += length * up * tab[i, enter]
        if block < 0:
            at[enter] = p
        else:
            at[enter] = cell[block] + 1 if up * tab[block, enter] > 0.0 else cell[block]
            here = steepness(rise, count, wall, rows[block], cell[block])
            pivot(tab, block, enter)
            cols[enter] = rows[block]
            rows[block] = k
            z[block] = start + up * length
            cell[block] = p if up > 0.0 else p - 1
            # What the entering variable was worth is now with the others, by its row.
            worth = gain[enter] + steepness(rise, count, wall, k, cell[block])
            gain[enter] = -here
            for j in range(d):
                gain[j] += worth * tab[block, j]
    # Multipliers are the slopes of basic scores and the marginal values of nonbasic ones.
    for i in range(n):
        k = rows[i]
        if k < n:
            work.lam[k] = steepness(rise, count, wall, k, cell[i])
        else:
            work.x[k - n] = z[i]
    for j in range(d):
        k = cols[j]
        if k < n:
            work.lam[k] = -gain[j]
        else:
            work.x[k - n] = knot[k, at[j]]
        work.labels[j] = k
        work.values[j] = knot[k, at[j]]


# -- points --------------------------------------------------------------------------------------


@compiled
def sure(kind: int, par: Floats, i: int, t: float, slack: float) -> float:
    """ψ_i of a WINDOW or a HOLE, wherever near t; the smaller value if its jump is as near."""
    left, right = par[i, SURE_LEFT], par[i, SURE_RIGHT]
    if kind == WINDOW:
        return par[i, H] if left + slack <= t <= right - slack else -par[i, H]
    return par[i, H] if t <= left - slack or t >= right + slack else -par[i, H]


@compiled
def choose_categories(side: Side, x: Floats, point: Floats) -> None:
    """Where exactly one of some coordinates is 1, let it be that of the largest x."""
    n, d = side.A.shape
    for i in range(n):
        if side.link[i] != FLAT:
            continue
        best = -1
        for j in range(d):
            if side.A[i, j] != 0.0:
                point[j] = 0.0
                if best < 0 or x[j] > x[best]:
                    best = j
        point[best] = 1.0


@compiled
def evaluate(side: Side, x: Floats, grad: Floats) -> float:
    """Σ m ψ(a·x + c), and its gradient."""
    n, d = side.A.shape
    for j in range(d):
        grad[j] = 0.0
    total = 0.0
    for i in range(n):
        t = side.c[i]
        for j in range(d):
            t += side.A[i, j] * x[j]
        if side.link[i] == WINDOW or side.link[i] == HOLE:
            total += side.m[i] * sure(side.link[i], side.par, i, t, side.slack[i])
            continue
        total += side.m[i] * value(side.link, side.par, i, t)
        s = side.m[i] * slope(side.link, side.par, i, t)
        for j in range(d):
            grad[j] += s * side.A[i, j]
    return total


@compiled
def ascend(side: Side, work: Work, from_here: float, worth: float) -> float:
    """Climb from work.trial if its value is above a threshold, while steps are worth it.

    Projected gradients with the step lengths of Barzilai and Borwein. Integers stay as they are.
    """
    lo, hi, x, y, grad, newgrad = side.lo, side.hi, work.trial, work.y, work.grad, work.newgrad
    d = len(x)
    best = -math.inf
    rate = 0.0
    for j in range(d):
        y[j] = x[j]
    for turn in range(30):
        f = evaluate(side, y, newgrad)
        if f <= best:
            rate *= 0.25
        else:
            gained = f - best
            moved = 0.0
            bent = 0.0
            size = 0.0
            for j in range(d):
                s = y[j] - x[j]
                moved += s * s
                bent += s * (newgrad[j] - grad[j])
                x[j] = y[j]
                grad[j] = newgrad[j]
                if hi[j] > lo[j] and not side.integer[j]:
                    size = max(size, abs(grad[j]) / (hi[j] - lo[j]))
            best = f
            if f < from_here or gained < worth or size == 0.0:
                break
            if turn == 0:
                rate = 0.25 / size
            else:
                rate = moved / -bent if bent < 0.0 else 4.0 * rate
        moved = 0.0
        for j in range(d):
            if not side.integer[j]:
                y[j] = min(hi[j], max(lo[j], x[j] + rate * grad[j]))
                moved = max(moved, abs(y[j] - x[j]) / (hi[j] - lo[j] + 1e-300))
        if moved < 1e-9:
            break
    return best


# -- nodes ---------------------------------------------------------------------------------------


@compiled
def beside_jump(kind: int, par: Floats, i: int, lo: float, t: float, hi: float) -> float:
    """Next to the jump that is nearest to t, on its lower side, so that one part has no jump."""
    out = _EDGE if kind == WINDOW else -_EDGE
    left, right = par[i, LEFT] - out, par[i, RIGHT] + out
    if not lo < left or (right < hi and abs(right - t) < abs(left - t)):
        return right
    return left


@compiled
def choose_branch(side: Side, work: Work, rule: int, lower: float) -> float:
    """Set where to split next, as (variable, point), or -1 if nothing is left to split.

    ``lower`` is the value of a point.

    Returns the sum of the hulls at the relaxed optimum.
    """
    l, u, L, U, x, gap = work.l, work.u, work.L, work.U, work.x, work.gap
    n, d = side.A.shape
    total = 0.0
    missed = 0.0
    most = 0.0
    work.branch[0] = -1.0
    for i in range(n):
        gap[i] = 0.0
        if U[i] <= L[i]:
            total += side.m[i] * value(side.link, side.par, i, L[i])
            continue
        curve = 0.5 * work.q[i]
        t = side.c[i]
        for j in range(d):
            t += side.A[i, j] * x[j]
        t = min(U[i], max(L[i], t))
        s = 0
        while s < work.knots[i] - 2 and work.knot[i, s + 1] < t:
            s += 1
        # The hull at t, from the knot before it.
        a = work.knot[i, s]
        f = side.m[i] * value(side.link, side.par, i, a) - curve * (a - work.middle[i]) ** 2
        f += work.rise[i, s] * (t - a)
        f += curve * (t - work.middle[i]) ** 2
        gap[i] = max(0.0, f - side.m[i] * value(side.link, side.par, i, t))
        total += f
        missed += gap[i]
        if rule == SCORES_FIRST and gap[i] > 1e-10:
            # What a split at this score is likely to gain, from the gains of earlier ones.
            gained = work.learned[i]
            below = gap[i] * (gained[0] + 1.0) / (gained[1] + 1.0)
            above = gap[i] * (gained[2] + 1.0) / (gained[3] + 1.0)
            if (below + 1e-4) * (above + 1e-4) <= most:
                continue
            margin = 0.05 * (U[i] - L[i])
            at = 0.75 * t + 0.25 * side.tau[i] if side.link[i] < HILL else t
            at = min(U[i] - margin, max(L[i] + margin, at))
            if side.link[i] == WINDOW or side.link[i] == HOLE:
                at = beside_jump(side.link[i], side.par, i, L[i], t, U[i])
                if not L[i] < at < U[i]:
                    continue
            most = (below + 1e-4) * (above + 1e-4)
            work.branch[0] = i
            work.branch[1] = at
    # Where the hulls are not to blame for most of it, coordinates between integers are.
    if work.branch[0] >= 0.0 and missed >= 0.5 * (total - lower):
        return total
    work.branch[0] = -1.0
    best = 0.0
    for j in range(d):
        if l[j] >= u[j]:
            continue
        # Where no hull is above its term, any split is as good.
        score = 1e-12 * (u[j] - l[j]) / (side.hi[j] - side.lo[j])
        gaps = 0.0
        for i in range(n):
            if gap[i] > 0.0:
                gaps += gap[i] * abs(side.A[i, j]) / (U[i] - L[i])
        score += gaps * (u[j] - l[j])
        score += 0.5 * work.D[j] * max(0.0, (u[j] - x[j]) * (x[j] - l[j]))
        if side.integer[j]:
            score += abs(x[j] - np.rint(x[j]))
        if score > best:
            best = score
            middle = 0.5 * (l[j] + u[j])
            work.branch[0] = n + j
            work.branch[1] = math.floor(middle) if side.integer[j] else middle
    return total


@compiled
def plant(side: Side, work: Work) -> None:
    """The root: the whole box, with its middle and the corner that most terms would like."""
    n, d = side.A.shape
    for j in range(d):
        work.l[j], work.u[j] = side.lo[j], side.hi[j]
        work.centre[j] = 0.5 * (side.lo[j] + side.hi[j])
        liked = 0.0
        for i in range(n):
            liked += side.m[i] * side.A[i, j]
        work.values[j] = side.hi[j] if liked > 0.0 else side.lo[j]
        work.labels[j] = n + j
    for i in range(n):
        flat = side.link[i] == FLAT
        work.L[i], work.U[i] = 1.0 if flat else -math.inf, 1.0 if flat else math.inf
        work.beta[i] = 0.3
        work.focus[i, 0] = work.focus[i, 1] = work.focus[i, 2] = math.inf


@compiled
def load(side: Side, work: Work, pool: Floats, basis: Ints, slot: int, half: int) -> int:
    """Bring one half of a stored node into ``work``, or the root if half < 0; its mode."""
    n, d = side.A.shape
    if half < 0:
        plant(side, work)
        return PLAIN
    for j in range(d):
        work.l[j] = pool[slot, j]
        work.u[j] = pool[slot, d + j]
        work.values[j] = pool[slot, 2 * d + j]
        work.centre[j] = pool[slot, 3 * d + j]
        work.labels[j] = basis[slot, j]
    for i in range(n):
        work.L[i] = pool[slot, 4 * d + i]
        work.U[i] = pool[slot, 4 * d + n + i]
        work.beta[i] = pool[slot, 4 * d + 2 * n + i]
        work.focus[i, 0] = work.focus[i, 1] = work.focus[i, 2] = math.inf
    base = 4 * d + 3 * n
    v = int(pool[slot, base])
    point = pool[slot, base + 1]
    if half == 0:
        if v < n:
            work.U[v] = point
        else:
            work.u[v - n] = point
    elif v < n:
        work.L[v] = point
    else:
        work.l[v - n] = point + 1.0 if side.integer[v - n] else point
    return int(pool[slot, base + 2])


@compiled
def store(side: Side, work: Work, pool: Floats, basis: Ints, slot: int, mode: int) -> None:
    """Keep the node at hand."""
    n, d = side.A.shape
    for j in range(d):
        pool[slot, j] = work.l[j]
        pool[slot, d + j] = work.u[j]
        pool[slot, 2 * d + j] = work.values[j]
        pool[slot, 3 * d + j] = work.centre[j]
        basis[slot, j] = work.labels[j]
    for i in range(n):
        pool[slot, 4 * d + i] = work.L[i]
        pool[slot, 4 * d + n + i] = work.U[i]
        pool[slot, 4 * d + 2 * n + i] = work.beta[i]
    base = 4 * d + 3 * n
    pool[slot, base] = work.branch[0]
    pool[slot, base + 1] = work.branch[1]
    pool[slot, base + 2] = mode
    v = int(work.branch[0])
    pool[slot, base + 3] = work.gap[v] if 0 <= v < n else 0.0


@compiled
def learn(side: Side, work: Work, pool: Floats, parent: int, half: int, gain: float) -> None:
    """Note what the split of a parent at a score has gained on one half."""
    n, d = side.A.shape
    base = 4 * d + 3 * n
    v = int(pool[parent, base])
    gap = pool[parent, base + 3]
    if v < n and gap > 1e-6:
        work.learned[v, 2 * half] += min(10.0, max(0.0, gain) / gap)
        work.learned[v, 2 * half + 1] += 1.0


@compiled
def note(work: Work) -> None:
    """Keep what the bound at hand was made of, for a proof."""
    for i in range(len(work.lam)):
        work.best_lam[i] = work.lam[i]
        work.best_q[i] = work.q[i]
    for j in range(len(work.D)):
        work.best_centre[j] = work.centre[j]
        work.best_diagonal[j] = work.D[j]


@compiled
def grow_node(
    side: Side, work: Work, pool: Floats, basis: Ints, parent: int, half: int, slot: int,
    rule: int, cutting: bool, level: int, lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    """Make one half of a node, or its root, a node of its own in ``slot``; returns its bound.

    ``lower`` is the best known value, ``above`` the bound of the parent. Unless ``cutting``, a
    half is taken whole, and only its scores follow from its coordinates: proofs are easier to
    check that way. Nothing is stored if the bound is at most ``cut``. Whatever the stored box
    leaves out of the half is at most ``cut`` too. The value of a point that was found is left in
    ``found``.
    """
    n, d = side.A.shape
    work.found[VALUE] = -math.inf
    work.found[TIGHTENED] = 0.0
    mode = load(side, work, pool, basis, parent, half)
    if not propagate(side, work, 3 if cutting else 1):
        work.arranged[0] = -1
        return -math.inf
    arrange(side, work, half == 1 and work.arranged[0] == parent)
    work.arranged[0] = parent if half == 0 else -1
    best = math.inf
    plain = math.inf
    left = 2 if mode == CURVED else 1
    try_curved = mode == PLAIN and rule == COORDINATES_ONLY and level % 3 == 0
    closer = _CLOSER
    while left > 0:
        left -= 1
        if mode == CURVED and not curvatures(side, work):
            if plain < math.inf:
                break
            mode, left = PLAIN, 0
        if mode == PLAIN:
            for i in range(n):
                work.q[i] = 0.0
            for j in range(d):
                work.D[j] = 0.0
        build_hulls(side, work)
        seat(work)
        simplex(side, work, 400 if level == 0 else 60)
        bound = dual_bound(side, work)
        if bound < best and not cutting:
            note(work)
        # What tightening dropped from the box is at most cut, and that is all that is known of it.
        best = min(best, max(bound, cut) if work.found[TIGHTENED] else bound)
        if half >= 0 and best == bound and closer == _CLOSER:
            learn(side, work, pool, parent, half, above - max(bound, cut))
        if best <= cut:
            return best
        if work.found[VALUE] == -math.inf:
            for j in range(d):
                x = min(work.u[j], max(work.l[j], work.x[j]))
                work.trial[j] = np.rint(x) if side.integer[j] else x
            choose_categories(side, work.x, work.trial)
            worth = max(1e-9, 0.02 * tolerance)
            work.found[VALUE] = ascend(side, work, lower - 0.3 * (best - lower), worth)
        if mode == CURVED:
            adapt(side, work)
            if left > 0 or plain <= best < math.inf:
                continue
        relaxed = choose_branch(side, work, rule, max(lower, work.found[VALUE]))
        if mode == PLAIN:
            excess = bound - max(cut, max(lower, work.found[VALUE]) + tolerance)
            if closer > 0 and excess > 0.0 and bound - relaxed > 0.2 * excess:
                # The hulls are too coarse, rather than too far above the terms.
                closer -= 1
                left = 1
                look_closer(side, work)
                continue
            if cutting:
                tighten(side, work, bound, cut)
        store(side, work, pool, basis, slot, mode)
        if try_curved:
            try_curved = False
            plain = best
            mode, left = CURVED, 3 if level == 0 else 2
            if level == 0:
                for j in range(d):
                    work.centre[j] = work.x[j]
    return best


# -- nodes of a convex sum -----------------------------------------------------------------------


@compiled
def beyond(side: Side, kind: int) -> float:
    """What clipping can change in a sum of RISING or FALLING terms that rounding alone clips.

    Infinite if there are other terms.
    """
    n, d = side.A.shape
    total = 0.0
    for i in range(n):
        if side.link[i] != kind:
            return math.inf
        reach = 0.0
        middle = side.c[i]
        for j in range(d):
            reach += abs(side.A[i, j]) * 0.5 * (side.hi[j] - side.lo[j])
            middle += side.A[i, j] * 0.5 * (side.hi[j] + side.lo[j])
        outside = max(0.0, abs(middle) + reach + 4.0 * side.slack[i] - 1.0)
        total += side.m[i] * outside / side.par[i, FOOT]
    return total * 1.01


@compiled
def flip(side: Side, work: Work) -> None:
    """Lead the corner in ``centre`` to one that is better than all its neighbours in the node."""
    A, m, x, G = side.A, side.m, work.centre, work.part
    n, d = A.shape
    for i in range(n):
        t = side.c[i]
        for j in range(d):
            t += A[i, j] * x[j]
        G[i] = side.par[i, FOOT] + 1.0 - t
    moved = True
    for _ in range(20):
        if not moved:
            break
        moved = False
        for j in range(d):
            if work.l[j] >= work.u[j]:
                continue
            other = work.l[j] if x[j] == work.u[j] else work.u[j]
            step = other - x[j]
            loss = 0.0
            product = 1.0
            for i in range(n):
                ratio = 1.0 - A[i, j] * step / G[i]
                if m[i] != 1.0:
                    loss += m[i] * math.log(ratio)
                    continue
                product *= ratio
                if product > 1e90 or product < 1e-90:
                    loss += math.log(product)
                    product = 1.0
            if loss + math.log(product) < -1e-9:
                moved = True
                x[j] = other
                for i in range(n):
                    G[i] -= A[i, j] * step


@compiled
def bow(side: Side, work: Work) -> None:
    """The tangents at the corner in ``centre``, and curvatures that lift them to the far ends.

    With q a tangent meets its term again at the largest score; it is above it in between, because
    ψ'' rises. D is then as small as it gets.
    """
    A, l, u, M, scale = side.A, work.l, work.u, work.M, work.scale
    n, d = A.shape
    for j in range(d):
        scale[j] = u[j] - l[j]
        for k in range(j + 1):
            M[j, k] = 0.0
    mass = 0.0
    for i in range(n):
        t = side.c[i]
        for j in range(d):
            t += A[i, j] * work.centre[j]
        G = side.par[i, FOOT] + 1.0 - t
        r = min(0.999999, max(0.0, (work.U[i] - t) / G))
        q = 1.0 + r * (2.0 / 3.0 + 0.5 * r)
        if r > 0.01:
            q = -2.0 * (math.log1p(-r) + r) / (r * r)
        work.middle[i] = t
        work.lam[i] = side.m[i] / G
        # A little more, so that f is surely concave at the corner.
        work.q[i] = q * work.lam[i] / G * (1.0 + 1e-6)
        for j in range(d):
            if scale[j] > 0.0:
                a = work.q[i] * A[i, j] * scale[j]
                mass += abs(a * A[i, j]) * scale[j]
                for k in range(j + 1):
                    M[j, k] += a * A[i, k] * scale[k]
    if not dominate(work, mass, 8):
        for i in range(n):
            work.q[i] = 0.0
        for j in range(d):
            work.D[j] = 0.0


@compiled
def part_of_end(work: Work, j: int, x: float) -> float:
    """What an end of a coordinate adds to the bound."""
    return work.w[j] * x + 0.5 * work.D[j] * (x - work.centre[j]) ** 2


@compiled
def fix(side: Side, work: Work, bound: float, cut: float) -> bool:
    """Fix coordinates at one end where the bound shows that the other one is at most ``cut``."""
    l, u = work.l, work.u
    n, d = side.A.shape
    fixed = False
    for j in range(d):
        if l[j] >= u[j]:
            continue
        low, high = part_of_end(work, j, l[j]), part_of_end(work, j, u[j])
        reach = max(abs(l[j]), abs(u[j]))
        blur = (n + 8) * UNIT * work.weight[j] * reach
        blur += 32.0 * UNIT * work.D[j] * (reach + abs(work.centre[j])) ** 2
        if bound - cut + 2.0 * UNIT * (abs(bound) + abs(cut)) > abs(high - low) - 2.0 * blur:
            continue
        fixed = True
        work.found[TIGHTENED] = 1.0
        if high > low:
            l[j] = u[j]
        else:
            u[j] = l[j]
    return fixed


@compiled
def grow_corner(
    side: Side, work: Work, pool: Floats, basis: Ints, parent: int, half: int, slot: int,
    cutting: bool, cut: float,
) -> float:  # fmt: skip
    """:func:`grow_node` for a convex sum, whose halves are the two ends of a coordinate.

    The bound is made at the best corner of the node that flips lead to. It holds for corners, and
    so for all of the box.
    """
    n, d = side.A.shape
    work.found[VALUE] = -math.inf
    work.found[TIGHTENED] = 0.0
    load(side, work, pool, basis, parent, half)
    if half < 0:
        for j in range(d):
            work.centre[j] = work.values[j]
    if half == 1:
        j = int(pool[parent, 4 * d + 3 * n]) - n
        work.l[j] = work.u[j]
    clipped = 2.0 * beyond(side, FALLING)
    best = math.inf
    while True:
        propagate(side, work, 1)
        for j in range(d):
            work.centre[j] = work.u[j] if work.centre[j] >= work.u[j] else work.l[j]
        flip(side, work)
        work.found[VALUE] = max(work.found[VALUE], evaluate(side, work.centre, work.grad))
        bow(side, work)
        bound = dual_bound(side, work) + clipped
        bound += UNIT * abs(bound)
        if bound < best and not cutting:
            note(work)
        best = min(best, max(bound, cut) if work.found[TIGHTENED] else bound)
        if best <= cut or not cutting or not fix(side, work, bound, cut):
            break
    work.branch[0] = -1.0
    most = -math.inf
    for j in range(d):
        gain = part_of_end(work, j, work.l[j]) + part_of_end(work, j, work.u[j])
        gain -= 2.0 * part_of_end(work, j, work.centre[j])
        if work.l[j] < work.u[j] and gain > most:
            most = gain
            work.branch[0] = n + j
            work.branch[1] = work.l[j]
    store(side, work, pool, basis, slot, PLAIN)
    return best


@handing_out
def grow(
    side_floats: Floats, side_ints: Ints, floats: Floats, ints: Ints, pool: Floats, basis: Ints,
    parent: int, half: int, slot: int, rule: int, cutting: bool, level: int,
    lower: float, cut: float, tolerance: float, above: float,
) -> float:  # fmt: skip
    """:func:`grow_node` for a side and scratch that are given as buffers."""
    side = unpack(side_floats, side_ints)
    work = make_work(floats, ints, *side.A.shape)
    if rule == CORNERS:
        return grow_corner(side, work, pool, basis, parent, half, slot, cutting, cut)
    return grow_node(
        side, work, pool, basis, parent, half, slot, rule, cutting, level, lower, cut,
        tolerance, above,
    )  # fmt: skip


# -- convex and concave sums ---------------------------------------------------------------------


@handing_out
def moving(floats: Floats, ints: Ints) -> tuple[int, int]:
    """How many coordinates are not fixed, and how many are integers."""
    side = unpack(floats, ints)
    free = 0
    whole = 0
    for j in range(len(side.lo)):
        free += side.lo[j] < side.hi[j]
        whole += side.integer[j]
    return free, whole


@handing_out
def clipping(floats: Floats, ints: Ints, kind: int) -> float:
    """:func:`beyond` for a side that is given as buffers."""
    return beyond(unpack(floats, ints), kind)


@handing_out
def best_corner(floats: Floats, ints: Ints) -> float:
    """The largest sum of FALLING terms, unclipped, over all corners.

    With b = 1 + (1 - t)/foot a term is h - log b. The b are built up coordinate by coordinate, so
    each is a sum of d products however many corners there are; only the levels below the
    coordinate that flips are renewed.
    """
    side = unpack(floats, ints)
    A, m, foot = side.A, side.m, side.par[:, FOOT]
    n, d = A.shape
    base = np.empty((d + 1, n))
    step = np.empty((d, 2, n))
    free = 0
    shift = 0.0
    for i in range(n):
        base[d, i] = 1.0 + (1.0 - side.c[i]) / foot[i]
        shift += m[i] * side.par[i, H]
    for j in range(d):
        if side.lo[j] == side.hi[j]:
            for i in range(n):
                base[d, i] -= A[i, j] * side.lo[j] / foot[i]
            continue
        for i in range(n):
            step[free, 0, i] = A[i, j] * side.lo[j] / foot[i]
            step[free, 1, i] = A[i, j] * side.hi[j] / foot[i]
        free += 1
    for i in range(n):
        base[free, i] = base[d, i]
    best = -math.inf
    for code in range(1 << free):
        # The coordinates whose bits differ from the last code are the lowest ones.
        changed = free if code == 0 else 1
        while changed < free and (code >> (changed - 1)) & 1 == 0:
            changed += 1
        for k in range(changed - 1, -1, -1):
            taken = (code >> k) & 1
            for i in range(n):
                base[k, i] = base[k + 1, i] - step[k, taken, i]
        total = 0.0
        product = 1.0
        for i in range(n):
            if m[i] == 1.0:
                product *= base[0, i]
                if product > 1e90:  # and no factor is above 1e217
                    total -= math.log(product)
                    product = 1.0
            else:
                total -= m[i] * math.log(base[0, i])
        total -= math.log(product)
        best = max(best, total)
    return best + shift


@handing_out
def climb(
    floats: Floats, ints: Ints, signs: Floats, tolerance: float, values: Floats, gaps: Floats
) -> None:  # fmt: skip
    """For each row of signs the largest sum of RISING terms, unclipped, of scores σ_i t_i.

    With b = 1 + (1 + σt)/foot a term is log b - h, which is concave.

    Projected gradients. By concavity no point is above a value by more than its gap, which is
    the largest rise of the tangent over the box (Frank and Wolfe), with the rounding of it.
    """
    side = unpack(floats, ints)
    A, m, lo, hi, foot = side.A, side.m, side.lo, side.hi, side.par[:, FOOT]
    n, d = A.shape
    size = 0.0
    shift = 0.0
    for i in range(n):
        size += m[i] * (1.0 + 2.0 * side.par[i, H])
        for j in range(d):
            size += m[i] * abs(A[i, j]) / foot[i] * (hi[j] - lo[j])
        shift += m[i] * side.par[i, H]
    blur = (n + d + 20) * 4.0 * UNIT * size
    x, y, grad, old = np.empty(d), np.empty(d), np.empty(d), np.zeros(d)
    for s in range(len(signs)):
        for j in range(d):
            g = 0.0
            for i in range(n):
                g += signs[s, i] * m[i] * A[i, j] / (foot[i] + 1.0)
            y[j] = hi[j] if g > 0.0 else lo[j]
            x[j] = y[j]
        best = -math.inf
        gap = math.inf
        rate = 0.0
        for turn in range(200):
            total = 0.0
            product = 1.0
            for j in range(d):
                old[j] = grad[j]
                grad[j] = 0.0
            for i in range(n):
                t = side.c[i]
                for j in range(d):
                    t += A[i, j] * y[j]
                base = foot[i] + 1.0 + signs[s, i] * t
                if m[i] == 1.0:
                    product *= base / foot[i]
                    if product > 1e90:  # and no factor is above 1e217
                        total += math.log(product)
                        product = 1.0
                else:
                    total += m[i] * math.log(base / foot[i])
                slant = signs[s, i] * m[i] / base
                for j in range(d):
                    grad[j] += slant * A[i, j]
            total += math.log(product)
            rise = blur
            for j in range(d):
                rise += max(grad[j] * (hi[j] - y[j]), grad[j] * (lo[j] - y[j]))
            if turn == 0 or total + rise < best + gap:
                best, gap = total, rise
            if gap <= tolerance:
                break
            moved = 0.0
            bent = 0.0
            steep = 0.0
            for j in range(d):
                step = y[j] - x[j]
                moved += step * step
                bent += step * (grad[j] - old[j])
                steep = max(steep, abs(grad[j]))
                x[j] = y[j]
            rate = moved / -bent if turn > 0 and bent < 0.0 else max(4.0 * rate, 0.1 / steep)
            for j in range(d):
                y[j] = min(hi[j], max(lo[j], x[j] + rate * grad[j]))
        values[s] = best - shift
        gaps[s] = gap
