r"""The log-likelihood ℓ of the responses so far, over any kind of domain.

.. math:: \ell(x) = \sum_i \log P[Q_i(x) = y_i]

The realized loss is its spread, max ℓ - min ℓ. Callers use the base class :class:`LogLikelihood`;
only :func:`log_likelihood` and :func:`check_length` know which kinds of domains there are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet, Record, Value
from expost.filters import WorstCase
from expost.numbers import Enclosure, Nats, RunningSum, down, up
from expost.queries import FiniteLikelihood, Query
from expost.solver import Effort
from expost.tally import Tally
from expost.transcript import Exchange

__all__ = [
    "ExtremePair",
    "FiniteLogLikelihood",
    "LogLikelihood",
    "PartLoss",
    "cap_loss",
    "capped_share",
    "check_length",
    "exact_share",
    "log_likelihood",
    "share_enclosure",
    "share_of_charges",
    "tightest_loss",
]


@dataclass(frozen=True, slots=True)
class PartLoss:
    """The loss about attributes that no query ties to any others; such losses add up."""

    names: tuple[str, ...]
    loss: Enclosure


def exact_share(used: Nats, total: Nats) -> Enclosure:
    """Return the share of a total that was used, from 0 to 1; 0 of 0 is 0."""
    if used == total and not total.is_infinite:
        used_up = 1.0 if total > Nats() else 0.0
        return Enclosure(used_up, used_up)
    if used == Nats() or (total.is_infinite and not used.is_infinite):
        return Enclosure(0.0, 0.0)
    return capped_share(used.enclosure, total.enclosure)


def capped_share(used: Enclosure, total: Enclosure) -> Enclosure:
    """Enclose the share of a total that was used, from 0 to 1."""
    share = share_enclosure(used, total)
    return Enclosure(min(1.0, share.lower), min(1.0, share.upper))


def share_enclosure(used: Enclosure, total: Enclosure) -> Enclosure:
    """Enclose the share of a budget that was used, which may be above 1 or infinite."""
    if used.upper == 0 or total.upper == 0:
        return Enclosure(0.0, 0.0)
    if total.upper == math.inf:  # infinity can be any share of infinity
        return Enclosure(0.0, math.inf)
    if used.lower == math.inf:
        return used
    most = up(used.upper / total.lower) if total.lower > 0 else math.inf
    return Enclosure(max(0.0, down(used.lower / total.upper)), most)


def cap_loss(loss: Enclosure, most: Enclosure) -> Enclosure:
    """Cap a loss: neither rounding nor an unfinished search lifts it above basic composition."""
    return Enclosure(loss.lower, max(loss.lower, min(loss.upper, most.upper)))


@dataclass(frozen=True, slots=True)
class ExtremePair:
    """Two values: the responses are likeliest for one and least likely for the other."""

    likeliest: Value | Record
    unlikeliest: Value | Record
    #: The difference of their log-likelihoods, about; infinite if the second is ruled out.
    difference: float
    #: How many other values tie with either, as far as doubles show; None on boxes and records.
    tied_values: tuple[int, int] | None
    #: Whether other values may differ more, because a search found these.
    example: bool = False

    def tree(self) -> dict[str, object]:
        """Return the pair as JSON."""
        return {
            "likeliest": self.likeliest,
            "unlikeliest": self.unlikeliest,
            "difference": self.difference,
            "others": self.tied_values,
            "example": self.example,
        }


@dataclass(frozen=True, eq=False)
class LogLikelihood(ABC):
    """The log-likelihood ℓ of a tally. Immutable; an effort matters only if there is a search."""

    #: Whether every loss takes a search and is never exact, as on a box.
    searched: ClassVar[bool]
    domain: Domain
    tally: Tally
    #: The sum of the epsilons if it is known from the exchange before.
    _charged: RunningSum | None = field(repr=False)

    @cached_property
    def charged(self) -> RunningSum:
        """The sum of the epsilons, which no loss exceeds."""
        if self._charged is not None:
            return self._charged
        total = RunningSum()
        for part in self.tally:
            total += RunningSum.of(part.query.ceiling(self.domain)) * part.times
        return total

    def _charged_with(self, query: Query, times: int = 1) -> RunningSum:
        return self.charged + RunningSum.of(query.ceiling(self.domain)) * times

    @cached_property
    def spent(self) -> Enclosure:
        """The sum of the epsilons, enclosed by doubles."""
        return self.charged.enclosure

    @property
    def exact_spent(self) -> Nats:
        """The exact sum of the epsilons."""
        return Nats.total((part.query.ceiling(self.domain), part.times) for part in self.tally)

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        """For records: the losses about groups of attributes that no query ties together."""
        return ()

    @property
    @abstractmethod
    def distinct_exchanges(self) -> int:
        """How many different exchanges an exact loss reads."""

    @abstractmethod
    def add(self, query: Query, position: int) -> Self:
        """Return ℓ after one more response."""

    @abstractmethod
    def loss(self, effort: Effort) -> Enclosure:
        """Enclose the realized loss, as tightly as is possible without much work."""

    @abstractmethod
    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        """Enclose the realized loss; a search ends when it is on one side of a limit."""

    @property
    @abstractmethod
    def exact_loss(self) -> Nats:
        """The exact realized loss, unless it is searched for."""

    @abstractmethod
    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        """Bound the loss after a query is asked several times, at worst over responses."""

    @abstractmethod
    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        """Bound the loss before the last of these queries, and add its epsilon."""

    @abstractmethod
    def extreme_pair(self, effort: Effort) -> ExtremePair | None:
        """Find the two values that the responses distinguish most; None if there are none."""

    @abstractmethod
    def epsilon_of(self, query: Query) -> Enclosure:
        """Enclose the worst case of a query on this domain, from its probabilities."""

    @abstractmethod
    def least_share_of_basic(self, query: Query) -> Enclosure:
        """Enclose the least share of its epsilon that a response to a query uses."""


def log_likelihood(domain: Domain, exchanges: Iterable[Exchange] = ()) -> LogLikelihood:
    """Return ℓ of some exchanges, by default of none."""
    # Imported here, because loading the modules of all kinds takes longer than most losses.
    match domain:
        case FiniteSet():
            from expost.loss._on_set import SetLogLikelihood

            return SetLogLikelihood.of(domain, exchanges)
        case Attributes():
            from expost.loss._on_attributes import AttributesLogLikelihood

            return AttributesLogLikelihood.of(domain, exchanges)
        case Box():
            from expost.loss._on_box import BoxLogLikelihood

            return BoxLogLikelihood.of(domain, exchanges)
        case _:
            assert_never(domain)


def tightest_loss(total: LogLikelihood, effort: Effort) -> Enclosure:
    """Enclose the loss as tightly as possible: by the nearest doubles if it is exact."""
    return total.loss(effort) if total.searched else total.exact_loss.enclosure


def share_of_charges(total: LogLikelihood, loss: Enclosure) -> Enclosure:
    """Return a loss as a share of the sum of the epsilons, from the exact loss if there is one."""
    if total.searched:
        return capped_share(loss, total.exact_spent.enclosure)
    return exact_share(total.exact_loss, total.exact_spent)


def check_length(domain: Domain, exchanges: Iterable[Exchange]) -> None:
    """Refuse exchanges whose ℓ would take too long; only attributes that change have a limit."""
    if isinstance(domain, Attributes):
        from expost.loss import _components

        _components.check_step_count(domain, exchanges)


@dataclass(frozen=True, eq=False)
class FiniteLogLikelihood(LogLikelihood):
    """The log-likelihood over a finite domain, with an exact loss."""

    searched: ClassVar[bool] = False

    @property
    @abstractmethod
    def spread(self) -> Enclosure:
        """An enclosure of max ℓ - min ℓ."""

    @abstractmethod
    def _likelihood(self, query: Query) -> FiniteLikelihood:
        """Return the likelihood of a query over the parts of a value that it depends on."""

    @property
    def distinct_exchanges(self) -> int:
        return len(self.tally)

    def loss(self, effort: Effort) -> Enclosure:
        return self._loss

    @cached_property
    def _loss(self) -> Enclosure:
        return cap_loss(self.spread, self.spent)

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        return self._loss

    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        epsilon = self._likelihood(query).epsilon
        before = WorstCase(self._loss, exact=lambda: self.exact_loss)
        if times > 1:
            before = self.worst_after(query, times - 1, budget, effort)
        exact = before.exact
        assert exact is not None, "over a finite domain everything is exact"
        return WorstCase(before.loss + epsilon.enclosure, exact=lambda: exact() + epsilon)

    def epsilon_of(self, query: Query) -> Enclosure:
        return self._likelihood(query).epsilon.enclosure

    def least_share_of_basic(self, query: Query) -> Enclosure:
        likelihood = self._likelihood(query)
        return exact_share(likelihood.least_loss, likelihood.epsilon)
