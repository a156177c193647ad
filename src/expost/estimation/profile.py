r"""The least mean of a score over all mixtures that are likely enough, with a bound on it.

.. math:: \min_{p \ge 0,\, \sum p = 1} s \cdot p
          \quad\text{subject to}\quad F(p) = \sum_i n_i \log \sum_j L_{ij}\, p_j \ge c

For every q, however it was found, with the slopes G of F/n at q, and for every m ≥ 0, no mixture
that is likely enough has a mean below

.. math:: \min_j \; s_j - m \left(G_j - e^{(c - F(q))/n}\right)

The search is a primal-dual interior-point method. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expost._types import Floats
from expost.estimation.likeliest import curvature, positive_solver, reach, slopes_of

__all__ = ["End", "Problem", "inside"]


# A step goes at most this share of the way to the edge, and aims at no less than this share of
# the mean product.
_EDGE = 0.99
_LEFT = 1e-3
_ROOM = 0.01
_SHORT = 0.6
_SHORTER = 0.7
_SHORTEST = 1e-9
_STEPS = 100

# The search ends when the bound is within this share of its distance from the estimate.
_CLOSE = 1e-3
_ROUNDING = 1e-10

# A search starts where this share of what the likelihood may fall by is left.
_START = 0.7


@dataclass(frozen=True, slots=True)
class End:
    """How far down a mean goes."""

    reached: float
    """A mixture that is likely enough has this mean."""
    bound: float
    """None has a lower one."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Mixtures whose log-likelihood is at least ``floor``, and scores between 0 and 1."""

    table: Floats
    counts: Floats
    scores: Floats
    floor: float

    @cached_property
    def shares(self) -> Floats:
        """What part of the observations each row is."""
        return np.asarray(self.counts / self.counts.sum())

    def room(self, mixed: Floats) -> float:
        """How far the log-likelihood per observation is above the floor."""
        if not (mixed > 0).all():
            return -math.inf
        return float(self.shares @ np.log(mixed)) - self.floor / float(self.counts.sum())

    def bound(self, slopes: Floats, room: float, price: float) -> float:
        """What no mean that is likely enough is below."""
        return float((self.scores - price * (slopes - math.exp(-room))).min()) - _ROUNDING

    def least(self, start: Floats, estimate: float) -> End:
        """Search from a mixture inside, without zeros, until it is close."""
        here = _begin(self, start)
        reached, bound = float(self.scores @ start), 0.0
        for _ in range(_STEPS):
            reached = min(reached, float(self.scores @ here.weights))
            bound = max(bound, self.bound(here.slopes, here.room, here.price))
            if reached - bound <= max(_CLOSE * (estimate - bound), 2 * _ROUNDING):
                break
            # Where rounding stops it, it starts again from further inside.
            here = here.moved() or _begin(self, (here.weights + start) / 2)
        return End(reached, min(bound, reached))


def inside(table: Floats, counts: Floats, weights: Floats, floor: float) -> Floats:
    """A mixture without zeros near the likeliest, well above the floor."""
    top = float(counts @ np.log(table @ weights))
    share, size = 0.1, len(weights)
    while True:
        mixture: Floats = (1 - share) * weights + share / size
        mixed = table @ mixture
        if (mixed > 0).all() and float(counts @ np.log(mixed)) >= floor + _START * (top - floor):
            return mixture
        share /= 4


@dataclass(frozen=True, eq=False)
class _Point:
    """Where a search is: a mixture, and what its conditions are worth."""

    problem: Problem
    weights: Floats
    slack: Floats
    """What it costs that no weight is negative."""
    price: float
    """What it costs that the mixture is likely enough: the mean, per unit of log-likelihood."""
    level: float
    """What it costs that the weights sum to one."""
    stuck: bool
    """Whether the last step was short: then the next one leads away from the edges."""

    @cached_property
    def mixed(self) -> Floats:
        return np.asarray(self.problem.table @ self.weights)

    @cached_property
    def slopes(self) -> Floats:
        return slopes_of(self.problem.table, self.problem.shares / self.mixed)

    @cached_property
    def room(self) -> float:
        return self.problem.room(self.mixed)

    def moved(self) -> _Point | None:
        """Towards the solution (Mehrotra 1992); None at the limit of rounding."""
        problem, weights, slack, price, room = (
            self.problem, self.weights, self.slack, self.price, self.room
        )  # fmt: skip
        if not room > 0:
            return None
        size = len(weights)
        curved = price * curvature(problem.table, problem.shares, self.mixed)
        curved += (price / room) * np.outer(self.slopes, self.slopes)
        curved[np.diag_indices(size)] += slack / weights
        if not np.isfinite(curved).all():
            return None
        solve = positive_solver(curved)
        ones = solve(np.ones(size))
        missed = problem.scores - price * self.slopes - slack + self.level

        def towards(target: float) -> tuple[Floats, Floats, float, float]:
            right = target / weights - slack - missed + self.slopes * (target / room - price)
            move = solve(right)
            level = float(move.sum() / ones.sum())
            move = move - level * ones
            turn = (target - slack * move) / weights - slack
            dearer = (target - price * float(self.slopes @ move)) / room - price
            return move, turn, dearer, level

        mean = (float(weights @ slack) + price * room) / (size + 1)
        target = mean
        if not self.stuck:
            move, turn, dearer, _ = towards(0.0)
            far, left = self._within(move, reach(weights, move), 0.0)
            dual = min(reach(slack, turn), _reach(price, dearer))
            ahead = float((weights + far * move) @ (slack + dual * turn))
            ahead = (ahead + (price + dual * dearer) * max(left, 0.0)) / (size + 1)
            target = mean * max(_LEFT, min(1.0, ahead / mean) ** 3)
        move, turn, dearer, level = towards(target)
        far, left = self._within(move, _EDGE * reach(weights, move), _ROOM * room)
        dual = _EDGE * min(reach(slack, turn), _reach(price, dearer))
        if left <= 0:
            return None
        found = weights + far * move
        return _Point(
            problem,
            found / found.sum(),
            slack + dual * turn,
            price + dual * dearer,
            self.level + dual * level,
            min(far, dual) < _SHORT,
        )

    def _within(self, move: Floats, length: float, least: float) -> tuple[float, float]:
        """How far a move can go so that this much room is left, and the room there."""
        change = self.problem.table @ move
        while length > _SHORTEST:
            room = self.problem.room(self.mixed + length * change)
            if room > least:
                return length, room
            length *= _SHORTER
        return 0.0, 0.0


def _begin(problem: Problem, start: Floats) -> _Point:
    """All conditions are as far from being met."""
    room = problem.room(problem.table @ start)
    target = max(float(problem.scores @ start), 1e-3) / (len(start) + 1)
    return _Point(problem, start, target / start, target / room, 0.0, stuck=False)


def _reach(number: float, move: float) -> float:
    return 1.0 if move >= 0 else min(1.0, -number / move)
