"""How hard to try on a continuous domain, and what is known so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from expost.errors import InvalidInput, at
from expost.files.reading import double, number
from expost.numbers import Enclosure

__all__ = ["GAP", "NODES", "NODES_OF_DECISION", "Allowance", "Effort", "Progress"]

GAP = 0.01
SMALLEST_GAP = 1e-6
NODES = 100_000
NODES_OF_DECISION = 2_000


@dataclass(frozen=True, slots=True)
class Progress:
    """What a search knows while it runs."""

    nodes: int
    loss: Enclosure


@dataclass(slots=True)
class Allowance:
    """Nodes that several searches share, one after the other."""

    left: int


@dataclass(frozen=True, slots=True)
class Effort:
    """When a search over a box stops. Limits are nodes, not seconds, so every machine agrees.

    ``gap`` is the wanted width of the loss, in nats. ``nodes`` limits each search (one for the
    largest and one for the smallest log-likelihood of each block of queries). By default that is
    100,000, but all searches of one decision share 2,000, because somebody is waiting. ``threads``
    may be 2, one per side, with the same result. ``group`` bounds the loss by a sum over groups of
    that many queries (paper, appendix C), which is looser. ``progress`` is called during a search.

    >>> import expost as xp
    >>> person = xp.Box(age=(0, 100))
    >>> session = xp.Session(
    ...     person, [34], filter=xp.BayesianFilter(epsilon=1), effort=xp.Effort(nodes=10_000)
    ... )
    """

    gap: float = GAP
    nodes: int | None = None
    threads: int = 1
    group: int | None = None
    progress: Callable[[Progress], None] | None = None
    allowance: Allowance | None = field(default=None, repr=False, compare=False)
    """What all searches together have left; None if each has only its own limit."""

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
        return replace(self, gap=max(SMALLEST_GAP, self.gap / max(1, parts)))

    def within(self, nodes: int) -> Effort:
        """The effort for searches that share this many nodes, one after the other."""
        return replace(self, threads=1, allowance=Allowance(nodes))

    def deciding(self) -> Effort:
        """The effort for one decision."""
        given = self.nodes is not None or self.allowance is not None
        return self if given else self.within(NODES_OF_DECISION)

    @property
    def most(self) -> int:
        """The limit of a single search."""
        return NODES if self.nodes is None else self.nodes

    @property
    def used_up(self) -> bool:
        """Whether the shared nodes are used up."""
        return self.allowance is not None and self.allowance.left <= 0

    def limit(self, used: int) -> int:
        """The total up to which a search may go on that has used this many nodes."""
        if self.allowance is None:
            return self.most
        return min(self.most, used + max(0, self.allowance.left))

    def charge(self, nodes: int) -> None:
        """Take nodes from the shared ones."""
        if self.allowance is not None:
            self.allowance.left -= nodes
