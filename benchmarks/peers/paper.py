"""The paper's solver: Algorithm 6, with the differences of convex functions of section 5.

As printed, but for two slips. The loop goes on while the lowest LB is *below* UB_g - δ, and UB_g
starts at ∞ and takes the minimum. And the logarithms in the split of a truncated linear regression
go on as a tangent below the clamp, where their argument would run out; f and g stay convex, and
their difference is the clamp.

The convex programs are made linear by tangents and solved by HiGHS. What it reports is no bound
yet: weak duality makes one of any multipliers, so LB holds whatever HiGHS did, up to the rounding
of a sum.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit, logit

from benchmarks.instances import Array, Instance

__all__ = ["DELTA", "Convex", "Found", "Program", "branch_and_bound", "descend", "relax", "split"]

DELTA = 0.01
# How far tangents may be below their functions, all together, before there are more of them.
ACCURACY = 1e-4
FIRST_TANGENTS, ROUNDS = 9, 20
# What a step of a local search has to gain so that there is another one.
ENOUGH, LOCAL_STEPS, LOCAL_ROUNDS = 1e-3, 5, 2
ROUNDING = 1e-9

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Convex:
    """A convex function F for each score; F(v) - m·v is least at ``stationary(m)`` or an end."""

    value: Function
    slope: Function
    stationary: Function


FLAT = Convex(np.zeros_like, np.zeros_like, np.zeros_like)


def split(instance: Instance) -> tuple[Convex, Convex]:
    """f and g of section 5.3: the log-likelihood of each term is f - g, up to a constant."""
    k, epsilon = instance.growth, np.log1p(instance.growth)

    def either(logistic: Function, linear: Function) -> Function:
        return lambda v: np.where(instance.logistic, logistic(v), linear(v))

    def log(v: Array) -> Array:
        return np.where(v < 0, k * v, np.log1p(k * np.maximum(v, 0)))

    f = Convex(
        either(lambda v: np.logaddexp(0, v + epsilon), lambda v: np.maximum(0, -k * v)),
        either(lambda v: expit(v + epsilon), lambda v: np.where(v < 0, -k, 0)),
        either(lambda m: _logit(m) - epsilon, np.zeros_like),
    )
    g = Convex(
        either(lambda v: np.logaddexp(0, v), lambda v: -np.minimum(epsilon, log(v))),
        either(expit, lambda v: np.where(v < 1, -k / (1 + k * np.clip(v, 0, 1)), 0)),
        either(_logit, lambda m: np.clip(-1 / np.minimum(m, -1e-300) - 1 / k, 0, 1)),
    )
    return f, g


def _logit(m: Array) -> Array:
    return np.asarray(logit(np.clip(m, 1e-300, 1 - 1e-16)))


@dataclass(frozen=True)
class Found:
    """The least f - g over the box, or g - f: nowhere below ``bound``, ``value`` at ``point``."""

    bound: float
    value: float
    point: Array
    nodes: int
    seconds: float
    finished: bool


def branch_and_bound(
    instance: Instance,
    sense: int,
    *,
    delta: float = DELTA,
    seconds: float = math.inf,
) -> Found:
    """The least f - g for the smallest log-likelihood (-1), or g - f for the largest (+1)."""
    start = time.process_time()
    f, g = split(instance)
    if sense > 0:
        f, g = g, f
    root = np.array(instance.ranges)
    queue: list[tuple[float, int, Array]] = []
    best, best_point, created = math.inf, (instance.lower + instance.upper) / 2, count()

    def bound(ranges: Array) -> None:
        nonlocal best, best_point
        program = Program(instance, f, ranges)
        lower, point = relax(program, g)
        if point is not None:
            value, point = descend(program, g, point)
            if value < best:
                best, best_point = value, point
        heapq.heappush(queue, (lower, next(created), ranges))

    def spent() -> float:
        return time.process_time() - start

    bound(root)
    while queue[0][0] < best - delta and spent() < seconds:
        _, _, ranges = heapq.heappop(queue)
        for half in _branch(ranges, root):
            bound(half)
    assert queue[0][0] <= best + ROUNDING, "a bound is above a point"
    lowest = min(queue[0][0], best)
    return Found(lowest, best, best_point, next(created), spent(), lowest >= best - delta)


def _branch(ranges: Array, box: Array) -> tuple[Array, Array]:
    """Two halves, along the edge that is longest beside what it was in the beginning."""
    lengths, first = np.diff(ranges, axis=0)[0], np.diff(box, axis=0)[0]
    edge = int(np.argmax(np.divide(lengths, first, out=np.zeros_like(first), where=first > 0)))
    remaining, right = ranges.copy(), ranges.copy()
    remaining[1, edge] = right[0, edge] = ranges[:, edge].mean()
    return remaining, right


def relax(program: Program, g: Convex) -> tuple[float, Array | None]:
    """LB: g gives way to its secants H, which are above it on these ranges (appendix D)."""
    low, high = program.ranges
    at_low, width = g.value(low), high - low
    slopes = np.divide(g.value(high) - at_low, width, out=g.slope(low), where=width > 0)
    lower, point = program.minimize(slopes)
    return lower - math.fsum(at_low - slopes * low), point


def descend(program: Program, g: Convex, point: Array) -> tuple[float, Array]:
    """UB: tangents in the place of g, again and again, which is the convex-concave procedure."""
    rows, offsets = program.instance.affine

    def value(x: Array) -> float:
        v = rows @ x + offsets
        return math.fsum(program.f.value(v) - g.value(v))

    best = value(point)
    for _ in range(LOCAL_STEPS):
        _, other = program.minimize(g.slope(rows @ point + offsets), rounds=LOCAL_ROUNDS)
        if other is None or value(other) > best - ENOUGH:
            break
        best, point = value(other), other
    return best, point


class Program:
    """Least f(v) - slopes·v, for x in its box and v = rows·x + offsets in ranges.

    A linear program in x, v and t, where t is above tangents of f. These are kept for other slopes.
    """

    def __init__(self, instance: Instance, f: Convex, ranges: Array) -> None:
        self.instance, self.f, self.ranges = instance, f, ranges
        self._rows, self._offsets = instance.affine
        n, d = self._rows.shape
        self._sides = np.stack([instance.lower, instance.upper])
        self._tangents, self._limits = np.empty((0, d + 2 * n)), np.empty(0)
        first, last = f.slope(ranges)
        for step in np.linspace(0, 1, FIRST_TANGENTS):
            self._touch(np.clip(f.stationary(first + step * (last - first)), *ranges))

    def minimize(self, slopes: Array, rounds: int = ROUNDS) -> tuple[float, Array | None]:
        """A bound from below, and a point of the box; ∞ where no point has such scores."""
        n, d = self._rows.shape
        bounds = np.hstack([self._sides, self.ranges, np.outer([-np.inf, np.inf], np.ones(n))]).T
        scores = np.hstack([self._rows, -np.eye(n), np.zeros((n, n))])
        cost = np.concatenate([np.zeros(d), -slopes, np.ones(n)])
        for _ in range(rounds):
            solution = linprog(
                cost, self._tangents, self._limits, scores, -self._offsets, bounds, "highs-ds"
            )
            if solution.status != 0:
                return self._without_point(slopes), None
            v, t = solution.x[d : d + n], solution.x[d + n :]
            if math.fsum(self.f.value(v) - t) < ACCURACY:
                break
            self._touch(v)
        return self._dual(self.f, slopes, solution.eqlin.marginals), np.clip(
            solution.x[:d], *self._sides
        )

    def _touch(self, v: Array) -> None:
        n, d = self._rows.shape
        slopes = self.f.slope(v)
        below = np.hstack([np.zeros((n, d)), np.diag(slopes), -np.eye(n)])
        self._tangents = np.vstack([self._tangents, below])
        self._limits = np.append(self._limits, slopes * v - self.f.value(v))

    def _without_point(self, slopes: Array) -> float:
        """∞ where multipliers prove that there are no such scores, else what needs no solver."""
        n, d = self._rows.shape
        bounds = np.hstack([self._sides, self.ranges, np.outer([0, np.inf], np.ones(2 * n))]).T
        scores = np.hstack([self._rows, -np.eye(n), np.eye(n), -np.eye(n)])
        cost = np.append(np.zeros(d + n), np.ones(2 * n))
        solution = linprog(cost, A_eq=scores, b_eq=-self._offsets, bounds=bounds, method="highs-ds")
        zero = np.zeros(n)
        if solution.status == 0 and self._dual(FLAT, zero, solution.eqlin.marginals) > ROUNDING:
            return math.inf
        return self._dual(self.f, slopes, zero)

    def _dual(self, f: Convex, slopes: Array, multipliers: Array) -> float:
        """The least f(v) - slopes·v + multipliers·(v - rows·x - offsets), each in its box."""
        m = slopes - multipliers
        candidates = *self.ranges, np.clip(f.stationary(m), *self.ranges)
        of_scores = np.min([f.value(v) - m * v for v in candidates], axis=0)
        of_box = np.min(-multipliers @ self._rows * self._sides, axis=0)
        return math.fsum([*of_scores, *of_box, *(-multipliers * self._offsets)])
