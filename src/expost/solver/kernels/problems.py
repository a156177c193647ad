"""Fields of a problem that follow from its inputs."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import (
    CLIPPED_FALLING,
    CLIPPED_RISING,
    ERROR,
    FOOT,
    FREE,
    INTEGERS,
    STEEPEST,
    TAU,
    TOTAL_ERROR,
    BoxProblem,
    H,
)
from expost.solver.kernels.links import FALLING, FLAT, RISING, TINY, UNIT

__all__ = ["clipping_error", "derive_fields"]


@compiled
def derive_fields(problem: BoxProblem) -> None:
    """Compute all fields that follow from the inputs."""
    facts, m = problem.facts, problem.m
    n, d = problem.A.shape
    facts[TOTAL_ERROR] = 0.0
    steepest = 0.0
    for i in range(n):
        h, steepness = problem.par[i, H], m[i] * problem.par[i, STEEPEST]
        steepest = max(steepest, steepness)
        problem.tau[i] = problem.par[i, TAU]
        size = abs(problem.c[i])
        for j in range(d):
            size += abs(problem.A[i, j]) * max(abs(problem.lo[j]), abs(problem.hi[j]))
        problem.slack[i] = (d + 4) * UNIT * size + TINY
        problem.error[i] = m[i] * problem.par[i, ERROR]
        # A score is within its slack, a link within ``error`` units of roundoff, and the sum of n
        # terms loses n units of the sum of their sizes.
        facts[TOTAL_ERROR] += min(steepness * problem.slack[i], 2.0 * m[i] * h)
        facts[TOTAL_ERROR] += UNIT * (problem.error[i] + (n + 4) * m[i] * 2.0 * h)
    facts[TOTAL_ERROR] *= 1.01
    for i in range(n):
        problem.wall[i] = 50.0 * steepest + TINY
    for j in range(d):
        size = TINY
        for i in range(n):
            size += 2.0 * abs(problem.A[i, j])
        problem.wall[n + j] = problem.wall[0] * size
    for i in range(n):
        for j in range(d):
            if problem.link[i] == FLAT and problem.A[i, j] != 0.0:
                problem.wall[i] = max(problem.wall[i], problem.wall[n + j])
    facts[CLIPPED_RISING] = clipping_error(problem, RISING)
    facts[CLIPPED_FALLING] = clipping_error(problem, FALLING)
    facts[FREE] = facts[INTEGERS] = 0.0
    for j in range(d):
        facts[FREE] += problem.lo[j] < problem.hi[j]
        facts[INTEGERS] += problem.integer[j]


@compiled
def clipping_error(problem: BoxProblem, kind: int) -> float:
    """Bound what clipping changes in a sum of RISING or FALLING terms that rounding alone clips.

    Infinite if other terms occur.
    """
    n, d = problem.A.shape
    total = 0.0
    for i in range(n):
        if problem.link[i] != kind:
            return math.inf
        reach = 0.0
        middle = problem.c[i]
        for j in range(d):
            reach += abs(problem.A[i, j]) * 0.5 * (problem.hi[j] - problem.lo[j])
            middle += problem.A[i, j] * 0.5 * (problem.hi[j] + problem.lo[j])
        outside = max(0.0, abs(middle) + reach + 4.0 * problem.slack[i] - 1.0)
        total += problem.m[i] * outside / problem.par[i, FOOT]
    return total * 1.01
