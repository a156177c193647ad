r"""The log-likelihood ℓ of the responses so far, over any kind of domain.

.. math:: \ell(x) = \sum_i \log P[Q_i(x) = y_i]

The realized loss is its spread, max ℓ - min ℓ. Callers use the protocol :class:`LogLikelihood`;
only :func:`log_likelihood` and :func:`check_length` know which kinds of domains there are.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Generic, Protocol, Self, TypeVar, assert_never

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
    "TalliedLogLikelihood",
    "cap_loss",
    "capped_share",
    "check_length",
    "exact_share",
    "flat_log_likelihood",
    "log_likelihood",
    "share_enclosure",
    "share_of_charges",
    "tightest_loss",
]


@dataclass(frozen=True, slots=True)
class PartLoss:
    """The loss about some attributes that no question ties to any others: such losses add up."""

    names: tuple[str, ...]
    loss: Enclosure


def exact_share(used: Nats, whole: Nats) -> Enclosure:
    """How much of a whole was used, from 0 to 1; 0 of 0 is 0."""
    if used == whole and not whole.is_infinite:
        used_up = 1.0 if whole > Nats() else 0.0
        return Enclosure(used_up, used_up)
    if used == Nats() or (whole.is_infinite and not used.is_infinite):
        return Enclosure(0.0, 0.0)
    return capped_share(used.enclosure, whole.enclosure)


def capped_share(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same, given enclosures."""
    share = share_enclosure(used, whole)
    return Enclosure(min(1.0, share.lower), min(1.0, share.upper))


def share_enclosure(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same for a budget: what counts against it may be above it, or infinite."""
    if used.upper == 0 or whole.upper == 0:
        return Enclosure(0.0, 0.0)
    if whole.upper == math.inf:  # infinity can be any share of infinity
        return Enclosure(0.0, math.inf)
    if used.lower == math.inf:
        return used
    most = up(used.upper / whole.lower) if whole.lower > 0 else math.inf
    return Enclosure(max(0.0, down(used.lower / whole.upper)), most)


def cap_loss(loss: Enclosure, most: Enclosure) -> Enclosure:
    """The loss, which rounding or an unfinished search never lifts above basic composition."""
    return Enclosure(loss.lower, max(loss.lower, min(loss.upper, most.upper)))


@dataclass(frozen=True, slots=True)
class ExtremePair:
    """A value for which the responses are likeliest, and one for which they are least likely."""

    likeliest: Value | Record
    unlikeliest: Value | Record
    difference: float
    """How far apart their log-likelihoods are, about; infinite if the second is ruled out."""
    others: tuple[int, int] | None
    """How many other values are as likely as either, as far as doubles can tell; None if they are
    not counted, as on a box or of records."""
    example: bool = False
    """Whether others may be further apart, because these are what a search has found."""


class LogLikelihood(Protocol):
    """ℓ of some responses over a domain. Immutable; an effort matters only if there is a search."""

    @property
    def searched(self) -> bool:
        """Whether every loss costs a search, and is never exact."""
        ...

    @property
    def tally(self) -> Tally:
        """The responses, counted."""
        ...

    @property
    def charged(self) -> RunningSum:
        """The sum of the epsilons, which no loss exceeds."""
        ...

    @property
    def spent(self) -> Enclosure:
        """The same in doubles."""
        ...

    @property
    def exact_spent(self) -> Nats:
        """The same exactly."""
        ...

    @property
    def distinct_exchanges(self) -> int:
        """How many different exchanges an exact loss goes through."""
        ...

    def add(self, query: Query, position: int) -> Self:
        """ℓ after one more response."""
        ...

    def loss(self, effort: Effort) -> Enclosure:
        """The realized loss, as closely as it is known without much work."""
        ...

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        """The same, searched for until it is on one side of a limit."""
        ...

    @property
    def exact_loss(self) -> Nats:
        """The same exactly, unless it is searched for."""
        ...

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        """The realized loss after some more queries, at worst over responses."""
        ...

    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        """The same before the last of these queries, plus its epsilon."""
        ...

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        """Of records: the losses about attributes that no question ties together, which add up."""
        ...

    def extreme_pair(self, effort: Effort) -> ExtremePair | None:
        """The two values that the responses tell apart most, if any; None if no work is left."""
        ...

    def epsilon_of(self, query: Query) -> Enclosure:
        """The worst case of a query on this domain, from its probabilities."""
        ...

    def least_share_of_basic(self, query: Query) -> Enclosure:
        """The least share of its epsilon that a query uses on this domain."""
        ...


def flat_log_likelihood(domain: Domain) -> LogLikelihood:
    """ℓ before anything is asked."""
    return log_likelihood(domain, ())


def log_likelihood(domain: Domain, exchanges: Iterable[Exchange]) -> LogLikelihood:
    """Return ℓ of some exchanges."""
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


D = TypeVar("D", FiniteSet, Attributes, Box)


@dataclass(frozen=True, eq=False)
class TalliedLogLikelihood(Generic[D]):
    """Counted responses over a domain, and the sum of their epsilons, which bounds the loss."""

    domain: D
    tally: Tally
    _charged: RunningSum | None = field(repr=False)
    """If it is known from the exchange before; otherwise it is summed when first needed."""

    @cached_property
    def charged(self) -> RunningSum:
        if self._charged is not None:
            return self._charged
        total = RunningSum()
        for part in self.tally:
            total += RunningSum.of(part.query.ceiling(self.domain)) * part.times
        return total

    def _charged_with(self, query: Query, times: int = 1) -> RunningSum:
        return self.charged + RunningSum.of(query.ceiling(self.domain)) * times

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        return ()

    @cached_property
    def spent(self) -> Enclosure:
        return self.charged.enclosure

    @property
    def exact_spent(self) -> Nats:
        return Nats.total((part.query.ceiling(self.domain), part.times) for part in self.tally)


F = TypeVar("F", FiniteSet, Attributes)


@dataclass(frozen=True, eq=False)
class FiniteLogLikelihood(TalliedLogLikelihood[F]):
    """What sets and records have in common."""

    searched: ClassVar[bool] = False

    @property
    @abstractmethod
    def spread(self) -> Enclosure:
        """An enclosure of max ℓ - min ℓ."""

    @property
    @abstractmethod
    def exact_loss(self) -> Nats:
        """max ℓ - min ℓ, exactly."""

    @abstractmethod
    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        """The realized loss after some more queries, at worst over responses."""

    @abstractmethod
    def _likelihood(self, query: Query) -> FiniteLikelihood:
        """The likelihood of a query over what it sees of a value."""

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
