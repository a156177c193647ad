r"""The largest factor by which a response can raise what the best guess gains, over all priors.

For one response with likelihoods l, one guess with gains g, and a prior p of any scale,

.. math:: F(p) = \frac{\sum_x p_x l_x g_x \cdot \sum_x p_x}{\sum_x p_x l_x \cdot V(p)}

where V is the gain of the best guess before the response. Among the priors whose expected
likelihood is u, the maximum of F is a linear program; branch and bound searches over u. Lower
bounds are exact values of F at a prior. Upper bounds come from weak duality, so they hold whatever
the simplex method did. Proof: docs/theory/knowledge.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.errors import InvalidInput
from expost.files.reading import double, read_integer
from expost.numbers import Enclosure, Nats, double_above, down, up

__all__ = ["Game", "Limits", "search"]


# Every sum here has at most a few hundred terms, each with a relative error of a few times 2^-53.
_SLACK = 2.0**-38
_UNDERFLOW = 2.0**-900


@dataclass(frozen=True, slots=True)
class Limits:
    """The width at which a search ends, in nats, and its limit of nodes."""

    gap: float = 0.001
    nodes: int = 5_000

    def __post_init__(self) -> None:
        if not double(self.gap) >= 1e-9:
            raise InvalidInput(f"must be at least 1e-9, not {self.gap}", "gap")
        read_integer(self.nodes, at_least=1)


@dataclass(frozen=True, eq=False)
class Game:
    """One response against some guesses; priors are scaled to p >= 0 with rows·(p, …) <= limits."""

    column: Sequence[int]
    rows: Floats
    limits: Floats
    guesses: Floats
    best: Callable[[Sequence[int]], Fraction]
    #: An upper bound on profit·p, for a profit >= 0, from any multipliers of the rows.
    cover: Callable[[Floats, Floats], float]

    @cached_property
    def likelihoods(self) -> Floats:
        most = max(self.column)
        return np.array([weight / most for weight in self.column])

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """True where the likelihood is positive, even if it is too small for a double."""
        return np.array([weight > 0 for weight in self.column])

    def bounds(self, guess: int, low: float, high: float) -> Iterator[tuple[float, Floats]]:
        """Yield upper bounds on F for priors with low <= u <= high, each with a prior to try.

        With V(p) <= 1, F is the gain divided by u. It is also the total of p times the share of
        the likelihood that is gained, which is at most the largest gain of the guess.
        """
        likelihoods, gains = self.likelihoods, self.guesses[guess]
        most, prior = self._most(np.ones(len(likelihoods)), low, high)
        yield most * float(gains[self.possible].max()) * (1 + _SLACK), prior
        if low > 0:
            most, prior = self._most(likelihoods * gains, low, high)
            yield most / low * (1 + _SLACK), prior

    def _most(self, profit: Floats, low: float, high: float) -> tuple[float, Floats]:
        """Return an upper bound on profit·p for these priors, and a prior that may attain it."""
        likelihoods, size = self.likelihoods, len(self.column)
        rows = np.zeros((len(self.rows) + 2, self.rows.shape[1]))
        rows[:-2] = self.rows
        rows[-2, :size] = low - likelihoods
        rows[-1, :size] = likelihoods - high
        objective = np.zeros(rows.shape[1])
        objective[:size] = profit
        point, duals = linear_program(objective, rows, np.append(self.limits, [0.0, 0.0]))
        # Weak duality: profit·p <= (profit + a·(l - low) - b·(l - high))·p for all a, b >= 0.
        above, below = duals[-2], duals[-1]
        terms = profit + above * (likelihoods - low) - below * (likelihoods - high)
        error = _SLACK * (profit + (above + below) * (likelihoods + high)) + _UNDERFLOW
        return self.cover(np.maximum(0.0, terms + error), duals[:-2]), point[:size]

    def exact_factor(self, prior: Floats) -> Fraction:
        """Return the exact F of the best guess at a prior."""
        scaled = prior / prior.max()
        weights = [int(p * 2**60) for p in scaled]
        after = [p * weight for p, weight in zip(weights, self.column, strict=True)]
        before, gained = self.best(weights), self.best(after)
        if before == 0 or not any(after):
            return Fraction(0)
        return gained * sum(weights) / (before * sum(after))


class _Node(NamedTuple):
    negative_bound: float
    game: int
    guess: int
    low: float
    high: float


def search(
    games: Sequence[Game], limits: Limits, proven_factor: Fraction = Fraction(1)
) -> Enclosure:
    """Return the largest log F of any of these responses, any guess and any prior.

    It is at least log ``proven_factor``; a prior that is sure of a value attains F = 1.
    """
    best, goal = proven_factor, Fraction(math.exp(limits.gap))
    heap: list[_Node] = []
    for index, game in enumerate(games):
        least, most = min(game.column), max(game.column)
        bound = double_above(Fraction(most, least)) if least else math.inf
        low = max(0.0, down(float(game.likelihoods.min())))
        for guess in range(len(game.guesses)):
            if least < most and game.guesses[guess][game.possible].any():
                heapq.heappush(heap, _Node(-bound, index, guess, low, 1.0))
    nodes = 0
    while heap and nodes < limits.nodes:
        if heap[0].negative_bound >= -best * goal:
            break
        node = heapq.heappop(heap)
        game = games[node.game]
        middle = math.sqrt(node.low * node.high) if node.low else node.high / 4
        for low, high in ((node.low, middle), (middle, node.high)):
            if not low < high:
                continue
            nodes += 1
            bound = -node.negative_bound
            for below, prior in game.bounds(node.guess, low, high):
                bound = min(bound, below)
                for candidate in _candidates(game, node.guess, prior):
                    best = max(best, game.exact_factor(candidate))
            if bound > best:
                heapq.heappush(heap, _Node(-bound, node.game, node.guess, low, high))
    reached = Nats(ratio=best).enclosure
    bound = -heap[0].negative_bound if heap else 0.0
    return Enclosure(reached.lower, max(reached.upper, up(up(math.log(bound))) if bound else 0.0))


def _candidates(game: Game, guess: int, prior: Floats) -> list[Floats]:
    """Return a prior, and one with some weight on the value from which the guess gains most."""
    if not prior.any():
        return []
    touched = prior.copy()
    touched[np.argmax(np.where(game.possible, game.guesses[guess], -1.0))] += prior.max() * 2.0**-20
    return [prior, touched] if (prior @ game.likelihoods) > 0 else [touched]


def linear_program(objective: Floats, rows: Floats, limits: Floats) -> tuple[Floats, Floats]:
    """Maximize objective·v for rows·v <= limits and v >= 0; return v and the multipliers.

    A plain tableau in doubles, for limits >= 0. It promises nothing: callers turn any multipliers
    into a valid bound.
    """
    count, size = rows.shape
    table = np.zeros((count + 1, size + count + 1))
    table[:count, :size] = rows
    table[:count, size:-1] = np.eye(count)
    table[:count, -1] = limits
    table[count, :size] = -objective
    basis = np.arange(size, size + count)
    for step in range(50 * (size + count)):
        costs = table[count, :-1]
        # The steepest column first; if that takes long, Bland's rule, which never cycles.
        entering = int(costs.argmin() if step < 2 * (size + count) else (costs < -1e-11).argmax())
        if costs[entering] >= -1e-11:
            break
        column = table[:count, entering]
        usable = np.flatnonzero(column > 1e-11)
        if not len(usable):
            break
        ratios = np.maximum(0.0, table[usable, -1]) / column[usable]
        ties = usable[ratios <= ratios.min() * (1 + 1e-12) + 1e-15]
        if not len(ties):
            break  # not a number
        leaving = int(ties[basis[ties].argmin()])
        table[leaving] /= table[leaving, entering]
        other_rows = np.arange(count + 1) != leaving
        table[other_rows] -= np.outer(table[other_rows, entering], table[leaving])
        basis[leaving] = entering
    values = np.zeros(size + count)
    values[basis] = table[:count, -1]
    clean = np.nan_to_num(np.append(values[:size], table[count, size:-1]), posinf=0.0)
    return np.maximum(0.0, clean[:size]), np.maximum(0.0, clean[size:])
