"""The simplex method on the hulls, which computes good multipliers."""

from __future__ import annotations

import math

from expost.solver.kernels.compiled import compiled
from expost.solver.kernels.layout import BoxProblem, Floats, Ints, Workspace

__all__ = ["pivot", "place_on_knots", "restore_basis", "simplex", "steepness"]


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
def restore_basis(problem: BoxProblem, work: Workspace) -> None:
    """Make the variables in ``labels`` nonbasic in the tableau, as far as possible.

    Scores are variables 0..n-1, coordinates n..n+d-1. The last column of the tableau is constant.
    """
    tab, rows, cols, label_index = work.tab, work.rows, work.cols, work.label_index
    n, d = problem.A.shape
    for k in range(n + d):
        label_index[k] = -1
    for j in range(d):
        label_index[work.labels[j]] = j
        cols[j] = n + j
    for i in range(n):
        rows[i] = i
        for j in range(d):
            tab[i, j] = problem.A[i, j]
        tab[i, d] = problem.c[i]
    for s in range(d):
        i = work.labels[s]
        if i >= n:
            continue
        best = -1
        size = 1e-9
        for j in range(d):
            if label_index[cols[j]] < 0 and abs(tab[i, j]) > size:
                best, size = j, abs(tab[i, j])
        if best >= 0:
            pivot(tab, i, best)
            rows[i] = cols[best]
            cols[best] = i
    for j in range(d):
        work.y[j] = work.values[label_index[cols[j]]] if label_index[cols[j]] >= 0 else -math.inf
    for j in range(d):
        work.labels[j], work.values[j] = cols[j], work.y[j]


@compiled
def place_on_knots(work: Workspace) -> None:
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
    """Return the slope of variable k in a cell of its hull; a wall outside its interval."""
    if cell < 0:
        return wall[k]
    return rise[k, cell] if cell < count[k] - 1 else -wall[k]


@compiled
def simplex(problem: BoxProblem, work: Workspace, limit: int) -> None:
    """Maximize the sum of the hulls; the multipliers are left in ``lam``, the point in ``x``.

    Nonbasic variables sit on knots. An edge is followed past knots as long as that gains.
    """
    tab, rows, cols, at = work.tab, work.rows, work.cols, work.at
    knot, rise, count, z, cell = work.knot, work.rise, work.knots, work.z, work.cell
    step, gain, wall = work.step, work.gain, problem.wall
    n, d = problem.A.shape
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
        to_knot = abs(knot[k, p + int(up)] - start)
        for i in range(n):
            r = up * tab[i, enter]
            s = cell[i] + 1 if r > 0.0 else cell[i]
            step[i] = math.inf
            if abs(r) > 1e-11 and 0 <= s < count[rows[i]]:
                step[i] = max(0.0, (knot[rows[i], s] - z[i]) / r)
        while True:
            block = -1
            length = to_knot
            for i in range(n):
                if step[i] < length:
                    block, length = i, step[i]
            if block < 0:
                p += int(up)
                here = steepness(rise, count, wall, k, p if up > 0.0 else p - 1)
                rate -= abs(here - steepness(rise, count, wall, k, p - 1 if up > 0.0 else p))
                if rate <= 0.0 or p == 0 or p == count[k] - 1:
                    break
                to_knot += abs(knot[k, p + int(up)] - knot[k, p])
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
