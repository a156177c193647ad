"""Limits of searches on boxes, their progress, and the work that they take.

Work is counted in small nodes, about 15 microseconds each, within a factor of two or so. It is not
a clock, so every machine stops at the same node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from expost._format import format_number
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
    "node_work",
    "root_work",
    "setup_work",
]


GAP = 0.01
SMALLEST_GAP = 1e-6
NODES = 100_000
#: Work limit of a call or a command, in small nodes (``solver/_effort.py``): about a second.
WORK = 150_000
#: Work limit of one decision: two or three seconds where it is hard.
DECISION_WORK = 500_000
#: Work limit of all decisions of a replay: a minute or so. Sessions took as long.
REPLAY_WORK = 10_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """The nodes and the loss of a search that still runs."""

    nodes: int
    loss: Enclosure


@dataclass(slots=True)
class Allowance:
    """Nodes or work that several searches share; each reduces what remains for the next."""

    remaining: float
    #: The allowance that this one is a share of.
    parent: Allowance | None = None

    def take(self, amount: float) -> None:
        self.remaining -= amount
        if self.parent is not None:
            self.parent.take(amount)


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
    #: The nodes that remain for all searches together; None if each only has its own limit.
    allowance: Allowance | None = field(default=None, repr=False, compare=False)
    #: The work that remains for everything; None if there is no such limit, or not yet.
    work: Allowance | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        with at("gap"):
            gap = double(self.gap)
            if not SMALLEST_GAP <= gap < math.inf:
                raise InvalidInput(
                    f"must be at least {format_number(SMALLEST_GAP)}, not {format_number(gap)}"
                )
        for name, most in (("nodes", 10**9), ("threads", 2), ("group", 10**9)):
            limit = getattr(self, name)
            if limit is not None:
                with at(name):
                    if not isinstance(number(limit), int) or not 1 <= limit <= most:
                        raise InvalidInput(f"must be an integer from 1 to {most:,}, not {limit}")

    def divide_gap(self, parts: int) -> Effort:
        """Return the effort for one of several parts whose gaps add up."""
        return replace(self, gap=max(SMALLEST_GAP, self.gap / max(1, parts)))

    def with_node_limit(self, nodes: int) -> Effort:
        """Return the effort with at most this many nodes for each search."""
        return replace(self, nodes=min(nodes, self.node_limit))

    def sharing_nodes(self, nodes: float) -> Effort:
        """Return the effort for successive searches that share this many nodes."""
        return replace(self, threads=1, allowance=Allowance(nodes))

    def for_decision(self) -> Effort:
        """Return the effort for one decision, which is equal in sessions, panels and commands."""
        limited = self.nodes is not None or self.allowance is not None
        return self if limited else replace(self, threads=1, work=Allowance(DECISION_WORK))

    def for_replay(self) -> Effort:
        """Return the effort that all decisions of a replay share."""
        if self.nodes is not None:
            return self.sharing_nodes(self.nodes)
        return replace(self, work=Allowance(REPLAY_WORK)).sharing_nodes(math.inf)

    def for_replayed_decision(self) -> Effort:
        """Return the effort for one decision of a replay, at most what a session gives it."""
        if self.work is None:
            return self
        return replace(self, work=Allowance(min(DECISION_WORK, self.work.remaining), self.work))

    def with_work_limit(self, times: float = 1.0) -> Effort:
        """Return the effort for a whole command or call, unless it has a limit already.

        ``times`` is above 1 for one that has more to do than others.
        """
        limited = self.nodes is not None or self.work is not None
        return self if limited else replace(self, work=Allowance(times * WORK))

    def with_share(self, share: float) -> Effort:
        """Return the effort for a part that may take this share of the remaining work."""
        if self.work is None:
            return self
        return replace(self, work=Allowance(share * self.work.remaining, self.work))

    def halves(self) -> tuple[Effort, Effort]:
        """Return two efforts, each with half of the remaining work; then :meth:`join` them."""
        if self.work is None:
            return self, self
        first, second = (replace(self, work=Allowance(self.work.remaining / 2)) for _ in range(2))
        return first, second

    def join(self, halves: tuple[Effort, Effort]) -> None:
        """Charge the work that two halves have used."""
        if self.work is not None:
            unused = sum(half.work.remaining for half in halves if half.work is not None)
            self.work.take(self.work.remaining - unused)

    @property
    def node_limit(self) -> int:
        """The limit of a single search."""
        return NODES if self.nodes is None else self.nodes

    @property
    def used_up(self) -> bool:
        """Whether nothing remains of a shared allowance."""
        return any(
            shared.remaining <= 0 for shared in (self.allowance, self.work) if shared is not None
        )

    def limit(self, used: int, size: float) -> int:
        """Return the most nodes for a search that has used ``used``, each of ``size`` work."""
        nodes = math.inf if self.allowance is None else self.allowance.remaining
        work = math.inf if self.work is None else self.work.remaining / size
        return int(min(self.node_limit, used + max(0, min(nodes, work))))

    def charge(self, nodes: int, size: float = 0.0) -> None:
        """Take nodes, and their work, from the shared allowances."""
        if self.allowance is not None:
            self.allowance.take(nodes)
        self.charge_work(nodes * size)

    def charge_work(self, work: float) -> None:
        """Take work from the shared allowance."""
        if self.work is not None:
            self.work.take(work)


# Operations per unit of work; the terms that fill the cache; operations of a factorization per
# unit; the work before the first term; and the nodes that a root takes as long as.
_UNIT = 64
_CACHE_TERMS = 1_000
_CUBES = 16_000
_SETUP = 40
_ROOT = 3


def node_work(terms: int, coordinates: int) -> float:
    """Estimate the work of a node: all terms with all coordinates, and a factorization."""
    passes = terms * (6 + coordinates) / _UNIT
    # Terms that do not stay in the cache take up to five times as long.
    return max(1.0, passes * (1 + min(4.0, terms / _CACHE_TERMS)) + coordinates**3 / _CUBES)


def root_work(terms: int, coordinates: int) -> float:
    """Estimate how much more work a root is than other nodes: its simplex takes longer."""
    return _ROOT * node_work(terms, coordinates)


def setup_work(terms: int, coordinates: int) -> float:
    """Estimate the work of preparing a search, term by term."""
    return _SETUP + terms * (24 + coordinates) / _UNIT
