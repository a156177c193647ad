"""How hard to search on a box, what a search reports, and how much work it is.

Work is a count of small nodes, about 15 microseconds each, measured to a factor of two or so. It is
no clock, so every machine stops at the same node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from expost.errors import InvalidInput, at
from expost.files.reading import double, number
from expost.numbers import Enclosure

__all__ = [
    "DECISION_WORK",
    "GAP",
    "NODES",
    "REPLAY_WORK",
    "WORK",
    "Allowance",
    "Effort",
    "Progress",
    "of_node",
    "of_root",
    "of_set_up",
]


GAP = 0.01
SMALLEST_GAP = 1e-6
NODES = 100_000
WORK = 150_000
"""Work limit of a call or a command, in small nodes (``solver/_effort.py``): about a second."""
DECISION_WORK = 500_000
"""Work limit of one decision: two or three seconds where it is hard."""
REPLAY_WORK = 10_000_000
"""Work limit of all decisions of a replay: a minute or so. Sessions took as long."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a search knows while it runs."""

    nodes: int
    loss: Enclosure


@dataclass(slots=True)
class Allowance:
    """What several searches share, one after the other; it gets less as it is used."""

    left: float
    whole: Allowance | None = None
    """What it is a part of."""

    def take(self, amount: float) -> None:
        self.left -= amount
        if self.whole is not None:
            self.whole.take(amount)


@dataclass(frozen=True)
class Effort:
    """When a search over a box stops. Limits are nodes, not seconds, so every machine agrees.

    ``gap`` is the wanted width of the loss, in nats. ``nodes`` limits each search (one for the
    largest and one for the smallest log-likelihood of each block of queries), by default to
    100,000. By default there is also a limit of work, in units of a small node; a node with many
    queries or coordinates counts more. One decision may use 500,000 units, which takes two or
    three seconds; most decisions take milliseconds. All decisions of a replay share 10,000,000,
    and everything else that a call or a command does shares 150,000. If ``nodes`` is given, there
    is no limit of work: fewer nodes decide sooner and leave more queries undecided, which means
    refused. ``threads`` may be 2, one per side, with the same result. ``group`` bounds the loss by
    a sum over groups of that many queries (paper, appendix C), which is looser. ``progress`` is
    called during a search.

    >>> import expost as xp
    >>> person = xp.Box(age=(0, 100))
    >>> session = xp.Session(
    ...     person, [34], filter=xp.BayesianFilter(epsilon=1), effort=xp.solver.Effort(nodes=10_000)
    ... )
    """

    gap: float = GAP
    nodes: int | None = None
    threads: int = 1
    group: int | None = None
    progress: Callable[[Progress], None] | None = None
    allowance: Allowance | None = field(default=None, repr=False, compare=False)
    """Nodes that are left for all searches together; None where each has its own limit alone."""
    work: Allowance | None = field(default=None, repr=False, compare=False)
    """Work that is left for all that is done; None where there is no such limit, or not yet."""

    def __post_init__(self) -> None:
        with at("gap"):
            gap = double(self.gap)
            if not SMALLEST_GAP <= gap < math.inf:
                raise InvalidInput(f"must be at least {SMALLEST_GAP:g}")
        for name, most in (("nodes", 10**9), ("threads", 2), ("group", 10**9)):
            limit = getattr(self, name)
            if limit is not None:
                with at(name):
                    if not isinstance(number(limit), int) or not 1 <= limit <= most:
                        raise InvalidInput(f"must be an integer from 1 to {most}")

    def shared(self, parts: int) -> Effort:
        """The effort for one of several parts whose gaps add up."""
        return self._but(gap=max(SMALLEST_GAP, self.gap / max(1, parts)))

    def glance(self, nodes: int) -> Effort:
        """The same with so many nodes for each search, or fewer where it has fewer."""
        return self._but(nodes=min(nodes, self.most))

    def within(self, nodes: float) -> Effort:
        """The effort for searches that share this many nodes, one after the other."""
        return self._but(threads=1, allowance=Allowance(nodes))

    def deciding(self) -> Effort:
        """Return the effort for one decision: the same in a session, a panel and a command."""
        given = self.nodes is not None or self.allowance is not None
        return self if given else self._but(threads=1, work=Allowance(DECISION_WORK))

    def replaying(self) -> Effort:
        """Return the effort that all decisions of a replay share."""
        if self.nodes is not None:
            return self.within(self.nodes)
        return self._but(work=Allowance(REPLAY_WORK)).within(math.inf)

    def one_of_several(self) -> Effort:
        """Return the effort for one decision of a replay, at most what a session gives it."""
        if self.work is None:
            return self
        return self._but(work=Allowance(min(DECISION_WORK, self.work.left), self.work))

    def bounded(self, times: float = 1.0) -> Effort:
        """The same for all that a command or a call does, unless it is for a part of one.

        ``times`` is for one with more to do than others, or with less.
        """
        given = self.nodes is not None or self.work is not None
        return self if given else self._but(work=Allowance(times * WORK))

    def part(self, share: float) -> Effort:
        """The same for what may take so much of the work that is left, and leaves the rest."""
        if self.work is None:
            return self
        return self._but(work=Allowance(share * self.work.left, self.work))

    def halves(self) -> tuple[Effort, Effort]:
        """The same twice, each for half of the work that is left; then :meth:`join` them."""
        if self.work is None:
            return self, self
        first, second = (self._but(work=Allowance(self.work.left / 2)) for _ in range(2))
        return first, second

    def join(self, halves: tuple[Effort, Effort]) -> None:
        """Take what was used of two halves."""
        if self.work is not None:
            used = self.work.left - sum(half.work.left for half in halves if half.work is not None)
            self.work.take(used)

    def _but(self, **others: Any) -> Effort:
        """The same with some fields that need no check: a loss of a small box makes five of them.

        ``dataclasses.replace`` would look at all fields again, as at what a person wrote.
        """
        effort = object.__new__(Effort)
        vars(effort).update(vars(self), **others)
        return effort

    @property
    def most(self) -> int:
        """The limit of a single search."""
        return NODES if self.nodes is None else self.nodes

    @property
    def used_up(self) -> bool:
        """Whether nothing is left of what searches share."""
        return any(shared.left <= 0 for shared in (self.allowance, self.work) if shared is not None)

    def limit(self, used: int, size: float) -> int:
        """Up to how many nodes a search may go that has used so many, each so much work."""
        nodes = math.inf if self.allowance is None else self.allowance.left
        work = math.inf if self.work is None else self.work.left / size
        return int(min(self.most, used + max(0, min(nodes, work))))

    def charge(self, nodes: int, size: float = 0.0) -> None:
        """Take nodes from what is shared, and their work."""
        if self.allowance is not None:
            self.allowance.take(nodes)
        self.set_up(nodes * size)

    def set_up(self, work: float) -> None:
        """Take work that is not that of nodes."""
        if self.work is not None:
            self.work.take(work)


_UNIT = 64
_MANY = 1_000
_CUBES = 16_000
_ANY = 40
_ROOT = 3


def of_node(terms: int, coordinates: int) -> float:
    """A node goes through all terms, each with all coordinates, and factors a matrix of these."""
    passes = terms * (6 + coordinates) / _UNIT
    # What does not stay in the cache takes up to five times as long.
    return max(1.0, passes * (1 + min(4.0, terms / _MANY)) + coordinates**3 / _CUBES)


def of_root(terms: int, coordinates: int) -> float:
    """What the first node of a search takes more than others: its simplex goes on for longer."""
    return _ROOT * of_node(terms, coordinates)


def of_set_up(terms: int, coordinates: int) -> float:
    """A search is set up term by term, however few nodes it takes."""
    return _ANY + terms * (24 + coordinates) / _UNIT
