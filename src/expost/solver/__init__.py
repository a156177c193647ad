r"""Certified extremes of a log-likelihood over a box, by branch and bound.

**The problem.** The log-likelihood of a transcript on a box is a sum of *terms*: a link (such as a
logistic curve) of an affine *score* of the coordinates. The loss is its *spread*, the largest value
minus the smallest, over a continuum of points. The solver returns an :class:`Enclosure` of it. The
upper end is a bound whatever the search did: it does not rely on convergence, only on weak duality
and outward rounding. Proof: docs/theory/extrema.md.

**The pieces.** :class:`BoxSpread` (_spread.py) is the solver as other packages see it. _problem.py
packs terms and box into arrays, always as a maximization. _methods.py has four maximizers:
``CornerEnumeration`` and ``ConvexMaximizer`` for convex sums, ``ConcaveMaximizer``, and
:class:`BranchAndBound` for everything else. ``kernels/`` is the compiled part, which knows arrays
and no queries. :class:`Effort` (_effort.py) says when to stop, in nodes and never in seconds, so
that every machine stops at the same node.

**A request, end to end.** ``BoxSpread(terms, box)`` merges windows that touch, splits the terms
into blocks that share no coordinate, and packs two problems per block, one for each direction.
``narrow(effort)`` runs their maximizers until the enclosure is as narrow as ``effort.gap``;
``compare(limit, effort)`` stops as soon as the spread is known to be within a limit or above it. A
maximizer calls ``kernels.entries``, which runs machine code from the disk. Each step takes the open
node with the largest bound, halves it, bounds both halves by a dual bound
(``kernels.bound.dual_bound``), and tries a point. ``enclosure`` adds the blocks and their errors.

>>> import expost as xp
>>> from expost.solver import BoxSpread, Effort
>>> person = xp.Box(age=(0, 100))
>>> smoker = xp.logistic({"age": 0.1}, intercept=-4, epsilon=1)
>>> said_yes = smoker.on(person).term(1)
>>> spread = BoxSpread([said_yes, said_yes], person)
>>> spread.narrow(Effort(gap=0.001))
>>> spread.enclosure.width <= 0.001, round(spread.enclosure.upper, 2)
(True, 1.94)
>>> spread.highest_at, spread.lowest_at
((100.0,), (0.0,))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from expost.solver._effort import (
    GAP,
    NODES,
    SMALLEST_GAP,
    Allowance,
    Effort,
    Progress,
    node_work,
    root_work,
    setup_work,
)

if TYPE_CHECKING:
    from expost.solver._methods import (
        ROUNDING_ALONE,
        BranchAndBound,
        SearchTree,
        suitable_rules,
    )
    from expost.solver._problem import BoxColumns, TermArrays, pack_both_directions
    from expost.solver._spread import BoxSpread, independent_blocks
    from expost.solver.warm_up import load_kernels

__all__ = [
    "GAP",
    "NODES",
    "ROUNDING_ALONE",
    "SMALLEST_GAP",
    "Allowance",
    "BoxColumns",
    "BoxSpread",
    "BranchAndBound",
    "Effort",
    "Progress",
    "SearchTree",
    "TermArrays",
    "independent_blocks",
    "load_kernels",
    "node_work",
    "pack_both_directions",
    "root_work",
    "setup_work",
    "suitable_rules",
]

# What needs the kernels is imported when it is first used: finite domains never load them.
_MODULES = {
    "ROUNDING_ALONE": "_methods",
    "BranchAndBound": "_methods",
    "SearchTree": "_methods",
    "suitable_rules": "_methods",
    "BoxColumns": "_problem",
    "TermArrays": "_problem",
    "pack_both_directions": "_problem",
    "BoxSpread": "_spread",
    "independent_blocks": "_spread",
    "load_kernels": "warm_up",
}


if not TYPE_CHECKING:  # otherwise every name would be known to mypy

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
