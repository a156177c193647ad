"""Searches that remember why: a tree of cuts, and in each leaf the multipliers of its bound.

Nodes are not tightened here, so that whoever checks the proof needs to know cuts and multipliers
only. That takes more nodes than a search that need not explain itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from expost.domains import Box
from expost.extrema import kernels
from expost.extrema.box import blocks
from expost.extrema.branch_and_bound import Search, Tree
from expost.extrema.corners import Corners
from expost.extrema.effort import Effort
from expost.extrema.kernels import PackedSide
from expost.extrema.ready import ready
from expost.extrema.side import Floats, Sides, Terms, both_sides
from expost.queries.score_term import ScoreTerm

__all__ = ["Block", "Leaf", "Split", "prove"]

_MOST_CORNERS = 12
_DIGITS = 7

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A cut at a score or at a coordinate of the box; an integer one lies below it up to here."""

    kind: Literal["score", "coordinate"]
    index: int
    at: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the bound of a leaf is made of; without multipliers if all its corners are looked at."""

    multipliers: Numbers | None
    curvature: tuple[Numbers, Numbers, Numbers] | None = None
    """Curvatures of the terms, a centre, and a diagonal that is above them."""


Proof = list[Split | Leaf]
"""A tree, parent first, then all that is below its cut, then all that is above."""


@dataclass(frozen=True, slots=True)
class Block:
    """Terms, by their index, and why neither their sum nor its negative is larger anywhere."""

    terms: tuple[int, ...]
    largest: Proof
    smallest: Proof


def prove(terms: Sequence[tuple[ScoreTerm, int]], box: Box, effort: Effort) -> list[Block]:
    """Proofs for every block of terms that share no coordinate, for a gap in total."""
    ready()
    found = list(blocks(terms, box))
    tolerance = 0.49 * effort.gap / max(1, len(found))
    result = []
    for columns, block in found:
        pairs = [terms[index] for index in block]
        sides = both_sides(Terms.of(pairs, columns), Sides.of(box, columns))
        frame = _Frame.of(box, columns)
        largest, smallest = (_prove_side(side, frame, tolerance, effort.nodes) for side in sides)
        result.append(Block(tuple(block), largest, smallest))
    return result


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the coordinates of a block are in its box, and how they were scaled."""

    columns: Sequence[int]
    exponents: Sequence[int]
    fixed: Numbers
    """The lower ends of all coordinates of the box."""

    @classmethod
    def of(cls, box: Box, columns: Sequence[int]) -> _Frame:
        used = [box.sides[j] for j in columns]
        exponents = [
            0 if whole else math.frexp(max(abs(side.lower), abs(side.upper)))[1]
            for side, whole in zip(used, Sides.of(box, columns).integer, strict=True)
        ]
        return cls(columns, exponents, tuple(float(side.lower) for side in box.sides))

    def point(self, x: Floats) -> Numbers:
        """A point of the block, with all other coordinates at their lower ends."""
        whole = list(self.fixed)
        for j, e, value in zip(self.columns, self.exponents, x.tolist(), strict=True):
            whole[j] = math.ldexp(value, e)
        return tuple(whole)

    def diagonal(self, scaled: Floats) -> Numbers:
        whole = [0.0] * len(self.fixed)
        for j, e, value in zip(self.columns, self.exponents, scaled.tolist(), strict=True):
            whole[j] = math.ldexp(value, -2 * e)
        return tuple(whole)


def _prove_side(side: PackedSide, frame: _Frame, tolerance: float, nodes: int) -> Proof:
    free, _ = kernels.moving(*side)
    if free <= _MOST_CORNERS and Corners.of(side) is not None:
        return [Leaf(None)]
    search = Search(side)
    search.pursue(tolerance, nodes)
    tree = _ProofTree(side, search.rule)
    tree.offer(search.reached)
    tree.pursue(tolerance, nodes, math.inf, None)
    return list(tree.steps(frame))


@dataclass(slots=True)
class _Node:
    reason: list[Floats] | None
    split: tuple[int, float] | None = None
    halves: list[int] = field(default_factory=list)


class _ProofTree(Tree):
    """A tree that keeps the reasons of all its nodes."""

    cutting = False

    def __init__(self, side: PackedSide, rule: int) -> None:
        super().__init__(side, rule)
        self._shape = side.shape
        self._work: Any = kernels.make_work(self._floats, self._ints, *side.shape)
        self._known: list[_Node] = []
        self._place: dict[int, int] = {}

    def _grow(
        self,
        parent: int,
        half: int,
        slot: int,
        level: int,
        above: float,
        cut: float,
        tolerance: float,
    ) -> float:
        bound = super()._grow(parent, half, slot, level, above, cut, tolerance)
        work = self._work
        made_of = work.best_lam, work.best_q, work.best_centre, work.best_diagonal
        # Without a bound there is nothing in it.
        reason = [np.array(part) for part in made_of] if bound > -math.inf else None
        if half >= 0:
            n, d = self._shape
            whole = self._known[self._place[parent]]
            variable, point = self._pool[parent, 4 * d + 3 * n : 4 * d + 3 * n + 2]
            whole.split = int(variable), float(point)
            whole.halves.append(len(self._known))
            if bound >= above:
                reason = whole.reason
        self._place[slot] = len(self._known)
        self._known.append(_Node(reason))
        return bound

    def steps(self, frame: _Frame) -> Iterator[Split | Leaf]:
        """The tree, parent first."""
        n, _ = self._shape
        waiting = [0]
        while waiting:
            node = self._known[waiting.pop()]
            if node.split is None:
                yield _leaf(node, frame)
                continue
            waiting += reversed(node.halves)
            v, point = node.split
            if v < n:
                yield Split("score", v, point)
            else:
                column, exponent = frame.columns[v - n], frame.exponents[v - n]
                yield Split("coordinate", column, math.ldexp(point, exponent))


def _leaf(node: _Node, frame: _Frame) -> Leaf:
    if node.reason is None:
        return Leaf(())
    lam, q, centre, diagonal = node.reason
    if not q.any():
        return Leaf(_short(lam))
    return Leaf(_short(lam), (tuple(q.tolist()), frame.point(centre), frame.diagonal(diagonal)))


def _short(numbers: Iterable[float]) -> Numbers:
    """A few digits: any multipliers will do, and the bound hardly changes."""
    return tuple(float(f"{x:.{_DIGITS}g}") for x in numbers)
