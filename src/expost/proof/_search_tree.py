"""Searches that remember why: a tree of cuts, and in each leaf the multipliers of its bound.

Nodes are not tightened here, so that a checker needs only cuts and multipliers. That takes more
nodes than a search that need not explain itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from expost.domains import Box, Integers
from expost.solver import (
    BoxColumns,
    BranchAndBound,
    Effort,
    SearchTree,
    TermArrays,
    independent_blocks,
    load_kernels,
    pack_both_directions,
    suitable_rules,
)
from expost.solver.kernels.branching import CORNERS
from expost.solver.kernels.layout import (
    ABOVE,
    BOUND,
    PARENT,
    POINT,
    SLOT,
    VARIABLE,
    Floats,
    PackedProblem,
)
from expost.terms import ScoreTerm

__all__ = ["Block", "CoordinateSplit", "EndsSplit", "Leaf", "Proof", "ScoreSplit", "prove"]


#: The work to write and to check a term of a node, in small nodes.
_WRITTEN = 5


@dataclass(frozen=True, slots=True)
class ScoreSplit:
    """A cut at a value of the affine form of a term."""

    term: int
    at: float


@dataclass(frozen=True, slots=True)
class CoordinateSplit:
    """A cut at a column of the box; an integer one lies below it up to here."""

    column: int
    at: float


@dataclass(frozen=True, slots=True)
class EndsSplit:
    """A cut into the two ends of a column, for a sum that is convex in it."""

    column: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """The parts of the bound of a leaf, for affine forms and for columns of the box."""

    multipliers: Floats
    #: Lower ends of the affine forms; ``high`` has the upper ones.
    low: Floats
    high: Floats
    curvatures: Floats
    centre: dict[int, float]
    #: Infinite at columns that are fixed, where it may be anything.
    diagonal: dict[int, float]


Split = ScoreSplit | CoordinateSplit | EndsSplit
#: A tree: a node comes before everything below its cut, and that before everything above it.
Proof = list[Split | Leaf]


@dataclass(frozen=True, slots=True)
class Block:
    """Terms, by their index, and proofs that bound their sum and its negative."""

    terms: tuple[int, ...]
    largest: Proof
    smallest: Proof


def prove(
    terms: Sequence[tuple[ScoreTerm, int]], box: Box, effort: Effort, unclipped: Sequence[bool]
) -> list[Block]:
    """Prove a bound for every block of terms that share no coordinate, for a gap in total.

    ``unclipped`` are linear terms that are never clipped, not even by rounding.
    """
    load_kernels()
    blocks = list(independent_blocks(terms, box))
    tolerance = 0.49 * effort.gap / max(1, len(blocks))
    result, sides_left = [], 2 * len(blocks)
    for columns, block in blocks:
        pairs = [terms[index] for index in block]
        sides = pack_both_directions(TermArrays.of(pairs, columns), BoxColumns.of(box, columns))
        proofs = []
        for side, sign in zip(sides, (1, -1), strict=True):
            rules = suitable_rules(side, corners=all(unclipped[index] for index in block))
            sides_left -= 1
            tree = _tree(side, rules, tolerance, effort.with_share(1 / (1 + sides_left)))
            proofs.append(list(tree.steps(_Frame.of(box, columns, len(pairs), sign))))
        result.append(Block(tuple(block), *proofs))
    return result


@dataclass(frozen=True, slots=True)
class _Frame:
    """The scaling of a side's normal form: a sign, and powers of two for coordinates."""

    columns: Sequence[int]
    exponents: Sequence[int]
    terms: int
    sign: int

    @classmethod
    def of(cls, box: Box, columns: Sequence[int], terms: int, sign: int) -> _Frame:
        exponents = [
            0 if isinstance(box.columns[j], Integers) else math.frexp(box.reach[j])[1]
            for j in columns
        ]
        return cls(columns, exponents, terms, sign)

    def scaled(self, values: Floats, power: int) -> dict[int, float]:
        """Scale a number per coordinate to the columns of the box."""
        with np.errstate(over="ignore", under="ignore"):  # what is too large for a proof says so
            sizes = np.ldexp(values, power * np.array(self.exponents, dtype=np.int64))
        return dict(zip(self.columns, sizes.tolist(), strict=True))


def _tree(side: PackedProblem, rules: list[int], tolerance: float, effort: Effort) -> _ProofTree:
    search = BranchAndBound(side, rules)
    effort.charge_work(search.root_work)
    search.advance(tolerance, effort.with_share(0.5).limit(0, search.node_work))
    effort.charge(search.nodes, search.node_work)
    tree = _ProofTree(side, search.rule)
    tree.accept_incumbent(search.incumbent, search.point)
    terms, coordinates = side.shape
    size = search.node_work + terms * (_WRITTEN + coordinates / 10)
    tree.advance(tolerance, effort.limit(0, size), math.inf, None)
    effort.charge(tree.nodes, size)
    return tree


@dataclass(slots=True)
class _Node:
    reason: list[Floats]
    low: Floats
    high: Floats
    fixed: NDArray[np.bool_]
    split: tuple[int, float] | None = None
    halves: list[int] = field(default_factory=list)


class _ProofTree(SearchTree):
    """A tree that keeps the reasons of all its nodes."""

    cutting = False

    def __init__(self, side: PackedProblem, rule: int) -> None:
        super().__init__(side, rule)
        self._shape = side.shape
        self._nodes_made: list[_Node] = []
        self._index_of_slot: dict[int, int] = {}

    def _make_nodes(self, tolerance: float, nodes: int, enough: float, steps: int) -> bool:
        before = self.nodes
        unfinished = super()._make_nodes(tolerance, nodes, enough, 1)
        if self.nodes > before:
            self._record_node()
        return unfinished

    def _record_node(self) -> None:
        """Remember the node that was made last."""
        work, frontier = self._work.views, self._frontier.views
        slot, parent = int(frontier.counts[SLOT]), int(frontier.counts[PARENT])
        above, bound = float(frontier.status[ABOVE]), float(frontier.status[BOUND])
        made_of = work.best_lam, work.best_q, work.best_centre, work.best_diagonal
        reason, fixed = [np.array(part) for part in made_of], work.l == work.u
        if self._nodes_made:
            parent_node = self._nodes_made[self._index_of_slot[parent]]
            branch = self._pool.node(parent).branch
            parent_node.split = int(branch[VARIABLE]), float(branch[POINT])
            parent_node.halves.append(len(self._nodes_made))
            if bound >= above or bound == -math.inf:
                # Nothing better was found, or nothing at all, for there is no such point.
                reason, fixed = parent_node.reason, parent_node.fixed
        self._index_of_slot[slot] = len(self._nodes_made)
        self._nodes_made.append(_Node(reason, np.array(work.L), np.array(work.U), fixed))

    def steps(self, frame: _Frame) -> Iterator[Split | Leaf]:
        """Yield the tree, parent first."""
        n, _ = self._shape
        waiting = [0]
        while waiting:
            node = self._nodes_made[waiting.pop()]
            if node.split is None:
                yield _leaf(node, frame)
                continue
            v, point = node.split
            if self.rule == CORNERS:
                waiting += reversed(node.halves)
                yield EndsSplit(frame.columns[v - n])
            elif v >= n:
                waiting += reversed(node.halves)
                at = math.ldexp(point, frame.exponents[v - n])
                yield CoordinateSplit(frame.columns[v - n], at)
            else:
                # Below for the negative of a form is above for the form.
                waiting += node.halves[:: -frame.sign]
                yield ScoreSplit(v, frame.sign * point)


def _leaf(node: _Node, frame: _Frame) -> Leaf:
    n, sign = frame.terms, frame.sign
    lam, q, centre, diagonal = node.reason
    low, high = sign * node.low[:n], sign * node.high[:n]
    return Leaf(
        multipliers=sign * lam[:n],
        low=np.minimum(low, high),
        high=np.maximum(low, high),
        curvatures=q[:n],
        centre=frame.scaled(centre, 1),
        diagonal=frame.scaled(np.where(node.fixed, math.inf, diagonal), -2),
    )
