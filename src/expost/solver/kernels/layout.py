"""Where everything lies in memory: one table per record, which gives its size and its views.

A record is one block of eight-byte words. Its class is the table: the fields in order, each with
its shape. A layout works out for given sizes where each begins. Python sees the fields as views,
and compiled code as arrays at addresses: a call with dozens of arrays would take longer than the
work.
"""

from __future__ import annotations

import ctypes
import math
from functools import cached_property, lru_cache
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Climb",
    "CornersOf",
    "Field",
    "Floats",
    "Frontier",
    "Ints",
    "Layout",
    "Links",
    "Node",
    "PackedProblem",
    "Pool",
    "Problem",
    "Record",
    "Work",
    "fields",
    "layout",
    "new_frontier",
    "new_work",
    "roomier",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The sizes of a shape are numbers, or names of numbers that a layout is made for.
PerTerm = Annotated[Floats, "n"]
PerCoordinate = Annotated[Floats, "d"]
PerVariable = Annotated[Floats, "n + d"]
IntPerTerm = Annotated[Ints, "n"]
IntPerCoordinate = Annotated[Ints, "d"]
IntPerVariable = Annotated[Ints, "n + d"]

WORD = 8
KNOTS = 64

# Columns of Problem.par. With h = ε/2: h, sinh h, cosh h, e^-h, e^h, 2/(e^ε - 1), argmax of -ψ''.
H, SINH, COSH, SHRINK, GROW, FOOT, PEAK = 0, 1, 2, 3, 4, 5, 6
# Of straight ones: where they bend or jump, with as much room for rounding as makes them larger;
# and of those that jump also with as much as makes them smaller.
LEFT, RIGHT, SURE_LEFT, SURE_RIGHT = SINH, COSH, SHRINK, GROW
# Of all: the largest slope, τ, and the rounding of ψ in units.
STEEPEST, TAU, ERROR = 7, 8, 9
PARAMETERS = 10

# In Problem.facts: how far the computed sum can be from the real one, for any point of the box;
# what clipping can change in a sum of RISING terms, or of FALLING ones; how many coordinates are
# not fixed, and how many are integers.
TOTAL_ERROR, CLIPPED_RISING, CLIPPED_FALLING, FREE, WHOLE = 0, 1, 2, 3, 4
FACTS = 5
VALUE, TIGHTENED = 0, 1  # in Work.found
VARIABLE, POINT = 0, 1  # in Work.branch
# In Frontier.known: the largest value that was found; a bound on all that is not in an open node;
# the gap when it last shrank; the bounds of the parent, of the worse one of its halves, and of the
# node that was made last.
LOWER, SETTLED, GAP, ABOVE, WORSE, BOUND = 0, 1, 2, 3, 4, 5
# In Frontier.counts: nodes that were made, open ones, and free slots; splits in a row that gained
# nothing; the parent, its level, and which of its halves is next; where the last node was made.
NODES, OPEN, SPARE, IDLE, PARENT, LEVEL, HALF, SLOT = 0, 1, 2, 3, 4, 5, 6, 7


class Problem(NamedTuple):
    """What is to be maximized."""

    facts: Annotated[Floats, FACTS]
    link: IntPerTerm
    table: IntPerTerm
    """Which row of the grid a term uses."""
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
    error: PerTerm
    """The rounding of m·ψ, in units of roundoff."""
    slack: PerTerm
    """How far a computed score can be from the real one, for any point of the box."""
    tau: PerTerm
    wall: PerVariable
    """A slope, per variable, that stands for leaving its interval."""
    chords: Annotated[Floats, "tables", "width"]
    """Slopes from each point of the grid to the next."""


class Links(NamedTuple):
    """The part of a problem that functions of a single score need: the whole is long to hand on."""

    link: Ints
    par: Floats
    m: Floats
    tau: Floats


class Work(NamedTuple):
    """The node at hand, and scratch."""

    found: Annotated[Floats, 2]
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
    aside: PerTerm
    """Where a parabola that touches a term in its middle is nearest to it elsewhere."""
    D: PerCoordinate
    M: Annotated[Floats, "d", "d"]
    F: Annotated[Floats, "d", "d"]
    scale: PerCoordinate
    focus: Annotated[Floats, "n", 3]
    learned: Annotated[Floats, "n", 4]
    """Per score: what splits there gained per unit of gap, below and above, summed and counted."""
    knot: Annotated[Floats, "n + d", KNOTS]
    rise: Annotated[Floats, "n + d", KNOTS]
    tab: Annotated[Floats, "n", "d + 1"]
    kept: Annotated[Floats, "n", "d + 1"]
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
    wanted: IntPerVariable
    labels: IntPerCoordinate
    cell: IntPerTerm
    kept_rows: IntPerTerm
    kept_cols: IntPerCoordinate
    arranged: Annotated[Ints, 1]
    """The node whose tableau is kept for its other half, or -1."""


class Node(NamedTuple):
    """A node that is stored: its box, where its simplex starts, and where it is to be split."""

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
    """Where a search is: a heap of open nodes, the free slots, and what is known so far."""

    known: Annotated[Floats, 6]
    counts: Annotated[Ints, 8]
    point: PerCoordinate
    """Where the largest value was found."""
    bounds: Annotated[Floats, "room"]
    levels: Annotated[Ints, "room"]
    slots: Annotated[Ints, "room"]
    spare: Annotated[Ints, "room"]


class CornersOf(NamedTuple):
    """Scratch to look at all corners of a convex sum, and the best one."""

    base: Annotated[Floats, "d + 1", "n"]
    low: Annotated[Floats, "d", "n"]
    high: Annotated[Floats, "d", "n"]
    x: PerCoordinate


class Climb(NamedTuple):
    """The signs of many concave sums; where each is largest, that value, and how sure it is."""

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
    """The table of a record."""
    hints = get_type_hints(record, include_extras=True).items()
    return tuple(
        Field(name, hint.__metadata__, np.int64 if hint.__origin__ == Ints else np.float64)
        for name, hint in hints
    )


def _address(array: Floats | Ints) -> int:
    # NumPy's own ways to say it take several times as long, and a small search asks six times.
    return ctypes.addressof(ctypes.c_char.from_buffer(array.data))


class Layout:
    """A record for given sizes: where each field begins, and its shape."""

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
        self.address = _address(self._directory)
        """Of a table for compiled code: offset, length and width of every field."""

    def views(self, words: Floats) -> Any:
        """The fields of a block."""
        return self.record(**{name: self.view(words, name) for name in self.spans})

    def view(self, words: Floats, name: str) -> Any:
        """One field of a block."""
        span, kind, shape = self.spans[name]
        view = words[span] if kind is np.float64 else words[span].view(np.int64)
        return view.reshape(shape) if len(shape) > 1 else view


@lru_cache(maxsize=256)
def layout(record: type, n: int, d: int, **others: int) -> Layout:
    """The layout of a record for n terms and d coordinates."""
    return Layout(record, {"n": n, "d": d, "n + d": n + d, "d + 1": d + 1, **others})


T = TypeVar("T")


class Record(Generic[T]):
    """A block of words with its layout."""

    def __init__(self, layout: Layout, words: Floats | None = None) -> None:
        self.layout = layout
        self.words = np.zeros(layout.size) if words is None else words
        self.address = _address(self.words)

    @cached_property
    def views(self) -> T:
        """All fields."""
        views: T = self.layout.views(self.words)
        return views

    def view(self, name: str) -> Any:
        """One field."""
        return self.layout.view(self.words, name)


class PackedProblem(Record[Problem]):
    """A problem as one block."""

    shape: tuple[int, ...]
    """The number of terms, and of coordinates."""

    def __init__(self, place: Layout, links: Floats, *given: Floats) -> None:
        """What is worked out of the fields that are given is zero yet.

        ``links`` has the fields before ``m``, in their order, and ``given`` those from there on.
        """
        _, _, self.shape = place.spans["A"]
        first, *_ = place.spans["error"]
        rest = np.zeros(place.size - first.start)
        super().__init__(place, np.concatenate([links, *given, rest]))

    @property
    def total_error(self) -> float:
        """How far the computed sum can be from the real one."""
        return float(self.words[TOTAL_ERROR])

    @property
    def clipped_rising(self) -> float:
        """What clipping can change in a sum of RISING terms; infinite if there are others."""
        return float(self.words[CLIPPED_RISING])

    @property
    def clipped_falling(self) -> float:
        """What clipping can change in a sum of FALLING terms; infinite if there are others."""
        return float(self.words[CLIPPED_FALLING])

    @property
    def free(self) -> int:
        """How many coordinates are not fixed."""
        return int(self.words[FREE])

    @property
    def whole(self) -> int:
        """How many coordinates are integers."""
        return int(self.words[WHOLE])


def new_work(n: int, d: int) -> Record[Work]:
    """A :class:`Work` for n terms and d coordinates."""
    place = layout(Work, n, d)
    return Record(place, _at_rest(place).copy())


@lru_cache(maxsize=64)
def _at_rest(place: Layout) -> Floats:
    words = np.zeros(place.size)
    # Unit vectors in R⁴ to start from, neighbours at right angles.
    place.view(words, "V").reshape(-1)[::5] = 1.0
    return words


def new_frontier(n: int, d: int, room: int) -> Record[Frontier]:
    """A :class:`Frontier` before the first node, with room for so many."""
    place = layout(Frontier, n, d, room=room)
    return Record(place, _blank(place).copy())


@lru_cache(maxsize=64)
def _blank(place: Layout) -> Floats:
    words = np.zeros(place.size)
    known, counts, spare = (place.view(words, name) for name in ("known", "counts", "spare"))
    known[LOWER], known[SETTLED], known[GAP] = -math.inf, math.inf, math.inf
    counts[SPARE], counts[HALF] = len(spare), 2
    spare[:] = np.arange(len(spare) - 1, -1, -1)
    return words


def roomier(frontier: Record[Frontier], n: int, d: int, room: int) -> Record[Frontier]:
    """The same with room for so many nodes."""
    larger, old = new_frontier(n, d, room), frontier.views
    for name, part in old._asdict().items():
        larger.view(name)[: len(part)] = part
    left, added = int(old.counts[SPARE]), room - len(old.spare)
    larger.view("spare")[left : left + added] = np.arange(room - 1, len(old.spare) - 1, -1)
    larger.view("counts")[SPARE] += added
    return larger


class Pool:
    """Nodes that are stored."""

    def __init__(self, n: int, d: int, room: int) -> None:
        self.layout = layout(Node, n, d)
        self._words = np.empty((room, self.layout.size))
        self.address = _address(self._words)

    def __len__(self) -> int:
        return len(self._words)

    def double(self) -> None:
        """Make room for as many again."""
        self._words = np.concatenate([self._words, np.empty_like(self._words)])
        self.address = _address(self._words)

    def node(self, slot: int) -> Node:
        """One of them."""
        views: Node = self.layout.views(self._words[slot])
        return views

    def address_of(self, slot: int) -> int:
        """Where it begins."""
        return self.address + slot * self.layout.size * WORD
