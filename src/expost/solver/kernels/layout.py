"""The memory layout of records that Python and compiled code share.

A record is one block of eight-byte words. Its class is the table: the fields in order, each with
its shape. A layout computes where each begins, for the sizes of one problem. Python sees the
fields as views, and compiled code as arrays at addresses: a call with dozens of arrays would take
longer than the work.
"""

from __future__ import annotations

import ctypes
import math
from functools import cached_property, lru_cache
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BoxProblem",
    "ClimbArrays",
    "CornerScratch",
    "Field",
    "Floats",
    "Frontier",
    "Ints",
    "Layout",
    "Links",
    "Node",
    "NodePool",
    "PackedProblem",
    "PackedRecord",
    "Workspace",
    "enlarged_frontier",
    "fields",
    "layout",
    "new_frontier",
    "new_workspace",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A shape consists of integers, and of names of sizes that a layout gets.
PerTerm = Annotated[Floats, "n"]
PerCoordinate = Annotated[Floats, "d"]
PerVariable = Annotated[Floats, "n + d"]
IntPerTerm = Annotated[Ints, "n"]
IntPerCoordinate = Annotated[Ints, "d"]
IntPerVariable = Annotated[Ints, "n + d"]

WORD = 8
KNOTS = 64

# Columns of BoxProblem.par: with h = ε/2: h, sinh h, cosh h, e^-h, e^h, 2/(e^ε - 1), argmax -ψ''.
H, SINH, COSH, SHRINK, GROW, FOOT, PEAK = 0, 1, 2, 3, 4, 5, 6
# For straight links: where they bend or jump, rounded so that they get larger; for those that
# jump also rounded so that they get smaller.
LEFT, RIGHT, SURE_LEFT, SURE_RIGHT = SINH, COSH, SHRINK, GROW
# For all links: the largest slope, τ, and the rounding of ψ in units.
STEEPEST, TAU, ERROR = 7, 8, 9
PARAMETERS = 10

# In BoxProblem.facts: how far the computed sum can be from the real one, for any point of the box;
# what clipping can change in a sum of RISING terms, or of FALLING ones; how many coordinates are
# not fixed, and how many are integers.
TOTAL_ERROR, CLIPPED_RISING, CLIPPED_FALLING, FREE, INTEGERS = 0, 1, 2, 3, 4
FACTS = 5
VALUE, TIGHTENED = 0, 1  # in Workspace.outcome
VARIABLE, POINT = 0, 1  # in Workspace.branch
# In Frontier.status: the best value so far; a bound on everything that is not in an open node;
# the gap when it last shrank; the bounds of the parent, of its worse half, and of the last node.
LOWER, SETTLED, GAP, ABOVE, WORSE, BOUND = 0, 1, 2, 3, 4, 5
# In Frontier.counts: nodes that were made, open ones, and free slots; splits in a row that gained
# nothing; the parent, its level, and which of its halves is next; where the last node was made.
NODES, OPEN, SPARE, IDLE, PARENT, LEVEL, HALF, SLOT = 0, 1, 2, 3, 4, 5, 6, 7


class BoxProblem(NamedTuple):
    """A sum of links over a box, which is to be maximized."""

    facts: Annotated[Floats, FACTS]
    link: IntPerTerm
    #: Which row of the grid a term uses.
    table: IntPerTerm
    sizes: Annotated[Ints, "tables"]
    par: Annotated[Floats, "n", PARAMETERS]
    grid: Annotated[Floats, "tables", "width"]
    heights: Annotated[Floats, "tables", "width"]
    m: PerTerm
    c: PerTerm
    integer: IntPerCoordinate
    lo: PerCoordinate
    hi: PerCoordinate
    A: Annotated[Floats, "n", "d"]
    #: The rounding of m·ψ, in units of roundoff.
    error: PerTerm
    #: How far a computed score can be from the real one, for any point of the box.
    slack: PerTerm
    tau: PerTerm
    #: A slope, per variable, that stands for leaving its interval.
    wall: PerVariable


class Links(NamedTuple):
    """The part of a problem that functions of a single score need; all of it takes long to pass."""

    link: Ints
    par: Floats
    m: Floats
    tau: Floats


class Workspace(NamedTuple):
    """The current node, and scratch memory."""

    outcome: Annotated[Floats, 2]
    branch: Annotated[Floats, 2]
    trial: PerCoordinate
    V: Annotated[Floats, "d", 4]
    l: PerCoordinate
    u: PerCoordinate
    L: PerTerm
    U: PerTerm
    x: PerCoordinate
    lam: PerTerm
    w: PerCoordinate
    weight: PerCoordinate
    q: PerTerm
    beta: PerTerm
    centre: PerCoordinate
    middle: PerTerm
    #: Where a parabola that touches a term in the middle comes nearest to it again.
    second_contact: PerTerm
    D: PerCoordinate
    M: Annotated[Floats, "d", "d"]
    F: Annotated[Floats, "d", "d"]
    scale: PerCoordinate
    focus: Annotated[Floats, "n", 3]
    #: Gains of splits at each score per unit of gap, below and above, summed and counted.
    split_gains: Annotated[Floats, "n", 4]
    knot: Annotated[Floats, "n + d", KNOTS]
    rise: Annotated[Floats, "n + d", KNOTS]
    tab: Annotated[Floats, "n", "d + 1"]
    values: PerCoordinate
    z: PerTerm
    step: PerTerm
    gain: PerCoordinate
    gap: PerTerm
    part: PerTerm
    y: PerCoordinate
    grad: PerCoordinate
    newgrad: PerCoordinate
    best_lam: PerTerm
    best_q: PerTerm
    best_centre: PerCoordinate
    best_diagonal: PerCoordinate
    knots: IntPerVariable
    rows: IntPerTerm
    cols: IntPerCoordinate
    at: IntPerCoordinate
    label_index: IntPerVariable
    labels: IntPerCoordinate
    cell: IntPerTerm


class Node(NamedTuple):
    """A stored node: its box, where its simplex starts, and where to split it."""

    l: PerCoordinate
    u: PerCoordinate
    values: PerCoordinate
    centre: PerCoordinate
    D: PerCoordinate
    L: PerTerm
    U: PerTerm
    beta: PerTerm
    branch: Annotated[Floats, 2]
    mode: Annotated[Floats, 1]
    gap: Annotated[Floats, 1]
    labels: IntPerCoordinate


class Frontier(NamedTuple):
    """The state of a search: a heap of open nodes, the free slots, and the bounds so far."""

    status: Annotated[Floats, 6]
    counts: Annotated[Ints, 8]
    #: The point with the best value.
    point: PerCoordinate
    bounds: Annotated[Floats, "room"]
    levels: Annotated[Ints, "room"]
    slots: Annotated[Ints, "room"]
    spare: Annotated[Ints, "room"]


class CornerScratch(NamedTuple):
    """Scratch memory for all corners of a convex sum, and the best corner."""

    base: Annotated[Floats, "d + 1", "n"]
    low: Annotated[Floats, "d", "n"]
    high: Annotated[Floats, "d", "n"]
    x: PerCoordinate


class ClimbArrays(NamedTuple):
    """The signs of several concave sums, the points where they are largest, values and gaps."""

    signs: Annotated[Floats, "rows", "n"]
    values: Annotated[Floats, "rows"]
    gaps: Annotated[Floats, "rows"]
    at: Annotated[Floats, "rows", "d"]
    x: PerCoordinate
    y: PerCoordinate
    grad: PerCoordinate
    old: PerCoordinate


# -- layouts -------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A field of a record: its name, its shape, and what its words are."""

    name: str
    shape: tuple[int | str, ...]
    type: type[np.float64 | np.int64]


@lru_cache
def fields(record: type) -> tuple[Field, ...]:
    """Return the table of a record."""
    hints = get_type_hints(record, include_extras=True).items()
    return tuple(
        Field(name, hint.__metadata__, np.int64 if hint.__origin__ == Ints else np.float64)
        for name, hint in hints
    )


def _address(array: Floats | Ints) -> int:
    # NumPy's own ways take several times as long, and a small search needs six addresses.
    return ctypes.addressof(ctypes.c_char.from_buffer(array.data))


class Layout:
    """The offsets and shapes of the fields of a record, for certain sizes."""

    def __init__(self, record: type, sizes: dict[str, int]) -> None:
        self.record = record
        self.size = 0
        self.spans: dict[str, tuple[slice, type, tuple[int, ...]]] = {}
        rows = []
        for field in fields(record):
            shape = [sizes[size] if isinstance(size, str) else size for size in field.shape]
            rows.append([self.size, *shape, 1][:3])
            start, self.size = self.size, self.size + math.prod(shape)
            self.spans[field.name] = slice(start, self.size), field.type, tuple(shape)
        self._directory = np.array(rows, dtype=np.int64)
        #: The address of a table for compiled code: offset, length and width of every field.
        self.address = _address(self._directory)

    def views(self, words: Floats) -> Any:
        """Return views of all fields of a block."""
        return self.record(**{name: self.view(words, name) for name in self.spans})

    def view(self, words: Floats, name: str) -> Any:
        """Return a view of one field of a block."""
        span, kind, shape = self.spans[name]
        view = words[span] if kind is np.float64 else words[span].view(np.int64)
        return view.reshape(shape) if len(shape) > 1 else view


@lru_cache(maxsize=256)
def layout(record: type, n: int, d: int, **sizes: int) -> Layout:
    """Return the layout of a record for n terms and d coordinates."""
    return Layout(record, {"n": n, "d": d, "n + d": n + d, "d + 1": d + 1, **sizes})


T = TypeVar("T")


class PackedRecord(Generic[T]):
    """A block of words with its layout."""

    def __init__(self, layout: Layout, words: Floats | None = None) -> None:
        self.layout = layout
        self.words = np.zeros(layout.size) if words is None else words
        #: The addresses of the block and of its layout.
        self.reference = _address(self.words), layout.address

    @cached_property
    def views(self) -> T:
        """Views of all fields."""
        views: T = self.layout.views(self.words)
        return views

    def view(self, name: str) -> Any:
        """Return a view of one field."""
        return self.layout.view(self.words, name)


class PackedProblem(PackedRecord[BoxProblem]):
    """A problem as one block."""

    #: The count of terms, and of coordinates.
    shape: tuple[int, ...]

    def __init__(self, layout: Layout, links: Floats, *inputs: Floats) -> None:
        """Copy the inputs; the fields from ``error`` on, which follow from them, are zero.

        ``links`` has the fields before ``m``, in their order, and ``inputs`` those from ``m`` on.
        """
        _, _, self.shape = layout.spans["A"]
        first, *_ = layout.spans["error"]
        derived = np.zeros(layout.size - first.start)
        super().__init__(layout, np.concatenate([links, *inputs, derived]))

    @property
    def total_error(self) -> float:
        """A bound on the distance of the computed sum from the real one."""
        return float(self.words[TOTAL_ERROR])

    @property
    def clipped_rising(self) -> float:
        """A bound on what clipping changes in a sum of RISING terms; infinite if others occur."""
        return float(self.words[CLIPPED_RISING])

    @property
    def clipped_falling(self) -> float:
        """A bound on what clipping changes in a sum of FALLING terms; infinite if others occur."""
        return float(self.words[CLIPPED_FALLING])

    @property
    def free_count(self) -> int:
        """The count of coordinates that are not fixed."""
        return int(self.words[FREE])

    @property
    def integer_count(self) -> int:
        """The count of integer coordinates."""
        return int(self.words[INTEGERS])


def new_workspace(n: int, d: int) -> PackedRecord[Workspace]:
    """Return a :class:`Workspace` for n terms and d coordinates."""
    workspace = layout(Workspace, n, d)
    return PackedRecord(workspace, _initial_workspace(workspace).copy())


@lru_cache(maxsize=64)
def _initial_workspace(workspace: Layout) -> Floats:
    words = np.zeros(workspace.size)
    # Unit vectors in R⁴ to start from, neighbours at right angles.
    workspace.view(words, "V").reshape(-1)[::5] = 1.0
    return words


def new_frontier(n: int, d: int, room: int) -> PackedRecord[Frontier]:
    """Return a :class:`Frontier` before the first node, with room for ``room`` nodes."""
    frontier = layout(Frontier, n, d, room=room)
    return PackedRecord(frontier, _initial_frontier(frontier).copy())


@lru_cache(maxsize=64)
def _initial_frontier(frontier: Layout) -> Floats:
    words = np.zeros(frontier.size)
    status, counts, spare = (frontier.view(words, name) for name in ("status", "counts", "spare"))
    status[LOWER], status[SETTLED], status[GAP] = -math.inf, math.inf, math.inf
    counts[SPARE], counts[HALF] = len(spare), 2
    spare[:] = np.arange(len(spare) - 1, -1, -1)
    return words


def enlarged_frontier(
    frontier: PackedRecord[Frontier], n: int, d: int, room: int
) -> PackedRecord[Frontier]:
    """Return a copy of a frontier with room for ``room`` nodes."""
    larger, old = new_frontier(n, d, room), frontier.views
    for name, part in old._asdict().items():
        larger.view(name)[: len(part)] = part
    spare, added = int(old.counts[SPARE]), room - len(old.spare)
    larger.view("spare")[spare : spare + added] = np.arange(room - 1, len(old.spare) - 1, -1)
    larger.view("counts")[SPARE] += added
    return larger


class NodePool:
    """The stored nodes of a search."""

    def __init__(self, n: int, d: int, room: int) -> None:
        self.layout = layout(Node, n, d)
        self._words = np.empty((room, self.layout.size))

    @property
    def reference(self) -> tuple[int, int, int]:
        """The addresses of the first node and of its layout, and the size of a node."""
        return _address(self._words), self.layout.address, self._words.itemsize * self.layout.size

    def __len__(self) -> int:
        return len(self._words)

    def double(self) -> None:
        """Double the room."""
        self._words = np.concatenate([self._words, np.empty_like(self._words)])

    def node(self, slot: int) -> Node:
        """Return the node in a slot."""
        views: Node = self.layout.views(self._words[slot])
        return views
