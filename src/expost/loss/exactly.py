"""ℓ over what is finite: a loss is known in doubles at once, and exactly where that is needed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

from expost.domains import Attributes, FiniteSet
from expost.filters import WorstCase
from expost.loss.shares import capped, share_of
from expost.loss.tallied import Tallied
from expost.numbers import Enclosure, Nats
from expost.queries import FiniteLikelihood, Query
from expost.solver import Effort

__all__ = ["ExactLogLikelihood"]

D = TypeVar("D", FiniteSet, Attributes)


@dataclass(frozen=True, eq=False)
class ExactLogLikelihood(Tallied[D]):
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
    def _seen(self, query: Query) -> FiniteLikelihood:
        """The likelihood of a query over what it sees of a value."""

    @property
    def different(self) -> int:
        return len(self.tally)

    def loss(self, effort: Effort) -> Enclosure:
        return self._loss

    @cached_property
    def _loss(self) -> Enclosure:
        return capped(self.spread, self.spent)

    def closest(self, effort: Effort) -> Enclosure:
        return self.exact_loss.enclosure

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        return self._loss

    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        epsilon = self._seen(query).epsilon
        before = WorstCase(self._loss, exact=lambda: self.exact_loss)
        if times > 1:
            before = self.worst_after(query, times - 1, budget, effort)
        exact = before.exact
        assert exact is not None, "over a finite domain everything is exact"
        return WorstCase(before.loss + epsilon.enclosure, exact=lambda: exact() + epsilon)

    def epsilon_of(self, query: Query) -> Enclosure:
        return self._seen(query).epsilon.enclosure

    def utilization(self, loss: Enclosure) -> Enclosure:
        return share_of(self.exact_loss, self.exact_spent)

    def utilization_of(self, query: Query) -> Enclosure:
        likelihood = self._seen(query)
        return share_of(likelihood.least_loss, likelihood.epsilon)
