"""The dual bound of a node, which holds for any multipliers."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import (
    COSH,
    FOOT,
    LEFT,
    PEAK,
    RIGHT,
    SINH,
    BoxProblem,
    H,
    Links,
    Workspace,
)
from expost.solver.kernels.links import (
    BOWL,
    FALLING,
    HILL,
    LOGISTIC,
    MIRRORED,
    PROBIT,
    RISING,
    TENT,
    UNIT,
    second_derivative,
    slope,
    tilted_value,
    value,
)

__all__ = [
    "chord_bound",
    "conjugate_argmax",
    "curved_bound",
    "dual_bound",
    "plain_bound",
    "touching_bound",
]


@compiled
def conjugate_argmax(links: Links, i: int, lam: float) -> float:
    """Return approximately where m ψ(t) - λt is largest right of τ."""
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
    # The slopes of the other links fall from τ on, towards 0.
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
    """Bound m ψ(t) - λt over [lo, hi] from above, except for the rounding of its largest parts."""
    link, par, m = links.link, links.par, links.m[i]
    left, right = max(lo, links.tau[i]), hi
    if link[i] >= TENT:
        ends = max(tilted_value(links, i, lam, lo), tilted_value(links, i, lam, hi))
        if link[i] == BOWL:
            return ends
        if link[i] == HILL:
            return max(ends, tilted_value(links, i, lam, min(hi, max(lo, -lam / m))))
        first = tilted_value(links, i, lam, min(hi, max(lo, par[i, LEFT])))
        return max(ends, first, tilted_value(links, i, lam, min(hi, max(lo, par[i, RIGHT]))))
    best = -math.inf
    if lo < links.tau[i]:
        best = tilted_value(links, i, lam, lo)  # convex from here to left, where the rest begins
    if left >= right or link[i] == RISING or link[i] == FALLING:
        best = max(best, tilted_value(links, i, lam, hi))
    if left >= right:
        return best
    if link[i] == FALLING or (link[i] == RISING and left >= 1.0):
        return max(best, tilted_value(links, i, lam, left))  # level from here on
    if link[i] == RISING:
        right = min(right, 1.0)  # level beyond 1, and both ends of that are looked at
    t = min(right, max(left, conjugate_argmax(links, i, lam)))
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
    """Bound f(t) = m ψ(t) - λt - q/2 (t - mid)² over [lo, hi] from above, for a logistic term.

    ψ'' rises up to the peak, falls from there to 0, and is negative beyond, so on either side of
    the peak f is concave on an outer part and convex on an inner one. The tangent at any point of
    the outer part bounds that part; the inner part is bounded by its ends: one is the
    peak, the other is below the tangent.
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
        if m * second_derivative(par, i, outer) - q > -tiny and outer <= 0.0:
            best += tiny * (hi - lo) ** 2  # convex, but for what rounding may hide
            continue
        # The edge of the concave part, on its safe links.
        edge = peak
        inside = m * second_derivative(par, i, peak) - q
        if inside > -tiny:
            a, edge = peak, outer
            if right and outer > 0.0 and -q < -tiny:
                edge = 0.0
            outside = m * second_derivative(par, i, edge) - q
            for _ in range(5):
                t = a + (edge - a) * min(0.9, max(0.1, inside / (inside - outside)))
                f = m * second_derivative(par, i, t) - q
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
                    new = t - tilt / (m * second_derivative(par, i, t) - q)
                    t = new if a < new < b else 0.5 * (a + b)
                tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
        p0, p1 = min(peak, outer), max(peak, outer)
        away = (p1 - t) * max(tilt, 0.0) + (t - p0) * max(-tilt, 0.0)
        away += 32.0 * UNIT * (m * par[i, H] + abs(lam) + abs(q * (t - mid))) * (p1 - p0)
        best = max(best, m * value(link, par, i, t) - lam * t - 0.5 * q * (t - mid) ** 2 + away)
    return best


@compiled
def touching_bound(
    links: Links,
    i: int,
    lam: float,
    q: float,
    mid: float,
    lo: float,
    hi: float,
    second_contact: float,
) -> float:
    """Bound f(t) = m ψ(t) - λt - q/2 (t - mid)² over [lo, hi] from above, for a logistic term.

    Good where λ is the slope in the middle and q such that f is largest there. If q > 0, f is
    concave, convex around the peak of ψ'', and concave again; the second hill is near ``aside``.
    If q < 0 it is convex, concave and convex. The tangent at any point of a concave part bounds
    that part; a convex part is bounded by its ends, each of them an end of [lo, hi] or below a
    tangent.
    """
    link, par, m = links.link, links.par, links.m[i]
    tiny = 1e-14 * (m * par[i, H] + abs(q))
    peak = min(hi, max(lo, -par[i, PEAK]))
    t = min(hi, max(lo, mid))
    if m * second_derivative(par, i, t) - q > -tiny and not (q > 0.0 and t >= 0.0):
        return math.inf
    best = tilted_value(links, i, lam, lo) - 0.5 * q * (lo - mid) ** 2
    best = max(best, tilted_value(links, i, lam, hi) - 0.5 * q * (hi - mid) ** 2)
    left, right = lo, hi
    two = q > 0.0 and m * second_derivative(par, i, peak) - q > -tiny
    if two:
        left, right = (peak, hi) if t >= peak else (lo, peak)
    most = m * par[i, H] + abs(lam) + abs(q) * (hi - lo)
    tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
    away = (right - t) * max(tilt, 0.0) + (t - left) * max(-tilt, 0.0)
    away += 32.0 * UNIT * (most + abs(q * (t - mid))) * (right - left)
    best = max(best, tilted_value(links, i, lam, t) - 0.5 * q * (t - mid) ** 2 + away)
    left, right = (lo, peak) if t >= peak else (peak, hi)
    outer = lo if t >= peak else hi
    if not two or left == right:
        return best
    if outer <= 0.0 and m * second_derivative(par, i, outer) - q > -tiny:
        return best + tiny * (hi - lo) ** 2  # convex, but for what rounding may hide
    t = min(right, max(left, second_contact))
    bound = math.inf
    for turn in range(6):
        if m * second_derivative(par, i, t) - q > -tiny and t < 0.0:
            t = outer
        tilt = m * slope(link, par, i, t) - lam - q * (t - mid)
        away = (right - t) * max(tilt, 0.0) + (t - left) * max(-tilt, 0.0)
        away += 32.0 * UNIT * (most + abs(q * (t - mid))) * (right - left)
        f = tilted_value(links, i, lam, t) - 0.5 * q * (t - mid) ** 2 + away
        bound = min(bound, f)
        if bound <= best or turn == 5:
            break
        t = min(right, max(left, t - tilt / (m * second_derivative(par, i, t) - q)))
    return max(best, bound)


@compiled
def chord_bound(
    links: Links, i: int, lam: float, q: float, mid: float, lo: float, hi: float
) -> float:
    """Bound f(t) = m ψ(t) - λt - q/2 (t - mid)² over [lo, hi] from above, q ≥ 0, if FALLING.

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
    best = tilted_value(links, i, lam, t) - 0.5 * q * (t - mid) ** 2 + away
    best = max(best, tilted_value(links, i, lam, b) - 0.5 * q * (b - mid) ** 2)
    # It is level beyond, where a parabola that opens downwards is below its tangents.
    for end in range(2):
        beyond = hi - max(lo, 1.0) if end else min(hi, -1.0) - lo
        if beyond > 0.0:
            t = max(lo, 1.0) if end else min(hi, -1.0)
            tilt = -lam - q * (t - mid)
            away = max(0.0, tilt if end else -tilt) + 8.0 * UNIT * (abs(lam) + abs(q * (t - mid)))
            f = tilted_value(links, i, lam, t) - 0.5 * q * (t - mid) ** 2
            best = max(best, f + away * beyond * (1.0 + 4.0 * UNIT))
    return best


@compiled
def dual_bound(problem: BoxProblem, work: Workspace, touching: bool) -> float:
    """Return the bound of the node for the λ, q, x̂ and D in ``work``, rounded up.

    ``touching`` if curvatures are those of parabolas that touch their terms in the middle.
    Leaves Aᵀλ in ``w`` and Σ|λ_i a_ij| in ``weight``.
    """
    A, lam, w, weight = problem.A, work.lam, work.w, work.weight
    links = Links(problem.link, problem.par, problem.m, problem.tau)
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
            if problem.link[i] == FALLING:
                work.part[i] = chord_bound(links, i, y, q, mid, lo, hi)
            elif touching:
                work.part[i] = touching_bound(links, i, y, q, mid, lo, hi, work.second_contact[i])
            else:
                k = 0
                while k < work.knots[i] - 1 and work.rise[i, k] > y:
                    k += 1
                work.part[i] = curved_bound(links, i, y, q, mid, lo, hi, work.knot[i, k])
            far = max(abs(lo - mid), abs(hi - mid)) + problem.slack[i]
            size += 2.0 * abs(q) * far * (far + abs(lo) + abs(hi) + problem.slack[i] / UNIT)
        total += work.part[i] + y * problem.c[i]
        size += problem.error[i] + abs(y) * (abs(problem.c[i]) + 2.0 * max(abs(lo), abs(hi)))
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
