"""The paper's way of accounting for responses: in groups, whose losses are added up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from expost.domains import Domain
from expost.filters import Account, WorstCase
from expost.filters.rules import Rule, Total
from expost.loss import Odometer, worst_case_loss
from expost.numbers import Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["GROUP", "Groups"]

GROUP = 10
_GROUP_GAP = 0.002
_ZERO = Enclosure(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Groups(Account):
    """The sum of the losses of groups of queries, an upper bound (paper, appendix C).

    If it does not show that a budget is respected, the sum of the epsilons decides, so that it is
    never worse than basic composition.
    """

    full: Enclosure
    """The losses of the groups that are complete."""
    current: Odometer
    """The group that is not."""
    everything: Odometer
    """Everything that was asked and charged; its loss is not used."""
    _worst: dict[Query, Enclosure] = field(default_factory=dict, repr=False)

    @classmethod
    def start(cls, empty: Odometer) -> Groups:
        # The gaps of the groups add up, so each must be smaller.
        effort = replace(empty.effort, gap=min(_GROUP_GAP, empty.effort.gap))
        current = empty.with_effort(effort)
        return cls(_ZERO, current, current)

    def add(self, query: Query, response: Any) -> Groups:
        everything = self.everything.add(query, response)
        current = self.current.add(query, response)
        if len(current) < GROUP:
            return Groups(self.full, current, everything)
        return Groups(self.full + current.loss, self._empty(), everything)

    def _empty(self) -> Odometer:
        return Odometer(Transcript(self.domain), effort=self.effort)

    @property
    def domain(self) -> Domain:
        return self.everything.domain

    def __len__(self) -> int:
        return len(self.everything)

    @property
    def effort(self) -> Effort:
        return self.everything.effort

    @property
    def searched(self) -> bool:
        return True

    @property
    def loss(self) -> Enclosure:
        return self.full + self.current.loss

    @property
    def exact_loss(self) -> Nats:
        raise NotImplementedError("a bound is never exact")

    @property
    def charged(self) -> RunningSum:
        return self.everything.charged

    @property
    def exact_spent(self) -> Nats:
        return self.everything.exact_spent

    @property
    def distinct_exchanges(self) -> int:
        return 0

    def total(self, rule: Rule) -> Total:
        return self.everything.total(rule)

    def exact_total(self, rule: Rule) -> Nats:
        return self.everything.exact_total(rule)

    def loss_against(self, limit: float) -> Enclosure:
        return self.loss

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        assert times == 1, "what is answered next closes its group"
        if query not in self._worst:  # many budgets ask the same
            responses = query.on(self.domain).responses
            after = [self.add(query, response).loss for response in responses]
            lower, upper = max(loss.lower for loss in after), max(loss.upper for loss in after)
            self._worst[query] = Enclosure(lower, upper)
        return self._or_basic(self._worst[query], query)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        assert times == 1, "as above"
        return self._or_basic(self.loss + worst_case_loss(query, self.domain), query)

    def _or_basic(self, held: Enclosure, query: Query) -> WorstCase:
        return WorstCase(held, exact=lambda: self.exact_spent + query.ceiling(self.domain))

    def without_last(self) -> tuple[Groups, Query]:
        *before, last = self.everything.transcript.exchanges
        shorter = Groups.start(self._empty())
        for exchange in before:
            shorter = shorter.add(exchange.query, exchange.response)
        return shorter, last.query

    def with_effort(self, effort: Effort) -> Groups:
        return replace(
            self,
            current=self.current.with_effort(effort),
            everything=self.everything.with_effort(effort),
        )
