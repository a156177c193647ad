r"""The log-likelihood of what was answered, over any kind of domain.

.. math:: \ell(x) = \sum_i \log P[Q_i(x) = y_i]

The realized loss is its spread, max ℓ - min ℓ. Callers ask a :class:`LogLikelihood`; only
:func:`flat` and :func:`log_likelihood` know which kinds there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet
from expost.filters import WorstCase
from expost.loss.extremes import Apart
from expost.loss.shares import PartLoss
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Exchange, Tally

__all__ = ["LogLikelihood", "check_length", "flat", "log_likelihood"]


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
    def charged(self) -> Added:
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
    def different(self) -> int:
        """How many different exchanges an exact loss goes through."""
        ...

    def add(self, query: Query, position: int) -> Self:
        """ℓ after one more response."""
        ...

    def loss(self, effort: Effort) -> Enclosure:
        """The realized loss, as closely as it is known without much work."""
        ...

    def closest(self, effort: Effort) -> Enclosure:
        """The same as closely as possible: the nearest doubles around an exact number."""
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

    def most_apart(self, effort: Effort) -> Apart | None:
        """The two values that the responses tell apart most, if any; None if no work is left."""
        ...

    def utilization(self, loss: Enclosure) -> Enclosure:
        """A loss as a share of the sum of the epsilons."""
        ...

    def epsilon_of(self, query: Query) -> Enclosure:
        """The worst case of a query on this domain, from its probabilities."""
        ...

    def utilization_of(self, query: Query) -> Enclosure:
        """The least share of its epsilon that a query uses on this domain."""
        ...


def flat(domain: Domain) -> LogLikelihood:
    """ℓ before anything is asked."""
    return log_likelihood(domain, ())


def log_likelihood(domain: Domain, exchanges: Iterable[Exchange]) -> LogLikelihood:
    """Return ℓ of some exchanges."""
    # Imported here, because loading the modules of all kinds takes longer than most losses.
    match domain:
        case FiniteSet():
            from expost.loss.on_set import SetLogLikelihood

            return SetLogLikelihood.of(domain, exchanges)
        case Attributes():
            from expost.loss.on_attributes import AttributesLogLikelihood

            return AttributesLogLikelihood.of(domain, exchanges)
        case Box():
            from expost.loss.on_box import BoxLogLikelihood

            return BoxLogLikelihood.of(domain, exchanges)
        case _:
            assert_never(domain)


def check_length(domain: Domain, exchanges: Iterable[Exchange]) -> None:
    """Refuse exchanges whose ℓ would take too long; only attributes that change have a limit."""
    if isinstance(domain, Attributes):
        from expost.loss import chained

        chained.check_length(domain, exchanges)
