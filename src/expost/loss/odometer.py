"""The odometer: what somebody who sees all of it has learned, as a fold over a transcript."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from expost.cards import card, nats
from expost.chain import Chain
from expost.domains import Domain
from expost.errors import expect
from expost.filters.account import Account, WorstCase
from expost.filters.rules import Rule, Total
from expost.loss.choose import compared, realized_spread
from expost.loss.log_likelihood import BoxLogLikelihood, LogLikelihood, flat
from expost.loss.on_set import exact_spread
from expost.loss.peak import largest_on_the_way
from expost.loss.realized import total_charge
from expost.loss.worst_on_box import loss_after_responses, loss_plus_epsilon
from expost.loss.worst_on_set import epsilon_on_set, worst_on_set
from expost.numbers import Added, Enclosure, Nats
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Exchange, Transcript

__all__ = ["Odometer"]

_ZERO = Enclosure(0.0, 0.0)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Odometer(Account):
    """The realized loss after every exchange; it can fall (paper, section 4.2).

    Everything here is a function of the transcript and, over a box, of the effort. :meth:`add`
    costs one pass over a finite domain; over a box, losses are searched for when asked for.
    """

    transcript: Transcript
    log_likelihood: LogLikelihood | BoxLogLikelihood
    basic_history: Chain[Enclosure]
    """The sum of the epsilons at the start and after each exchange."""
    _effort: Effort
    _charged: Added
    _passes: Chain[Enclosure]
    """The realized losses over a finite domain."""
    _totals: dict[Rule, Total]
    """What composition rules that were asked for have summed up."""

    def __init__(self, transcript: Transcript, *, effort: Effort | None = None) -> None:
        expect(transcript, Transcript, "a transcript")
        expect(effort, Effort | None, "an Effort")
        self._set("transcript", transcript)
        self._set("_effort", effort or Effort())
        self._set("log_likelihood", flat(transcript.domain))
        self._set("basic_history", Chain([_ZERO]))
        self._set("_charged", Added())
        self._set("_passes", Chain([_ZERO]))
        self._set("_totals", {})
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """The odometer after one more exchange."""
        return self._grown(self.transcript.add(query, response))

    def answered(self, query: Query, position: int) -> Odometer:
        """The same by the position of the response."""
        return self._grown(self.transcript.answered(query, position))

    def _grown(self, transcript: Transcript) -> Odometer:
        longer, domain = object.__new__(Odometer), self.transcript.domain
        longer._set("transcript", transcript)
        for name in ("log_likelihood", "basic_history", "_effort", "_charged", "_passes"):
            longer._set(name, getattr(self, name))
        latest = longer.transcript.exchanges[-1]
        longer._set(
            "_totals",
            {
                rule: total + rule.price(latest.query, domain)
                for rule, total in self._totals.items()
            },
        )
        longer._absorb(latest)
        return longer

    def total(self, rule: Rule) -> Total:
        """What a composition rule sums up over the transcript; kept up to date once asked for."""
        total = self._totals.get(rule)
        if total is None:
            total, domain = Total(), self.transcript.domain
            for exchange in self.transcript.exchanges:
                total += rule.price(exchange.query, domain)
            self._totals[rule] = total
        return total

    def exact_total(self, rule: Rule) -> Nats:
        exchanges, domain = self.transcript.exchanges, self.domain
        return total_charge((rule.charge(step.query, domain)[0], 1) for step in exchanges)

    def _absorb(self, exchange: Exchange) -> None:
        total = self.log_likelihood.add(exchange)
        charged = self.charged + Added.of(exchange.query.ceiling(self.transcript.domain))
        spent = charged.enclosure
        self._set("log_likelihood", total)
        self._set("_charged", charged)
        self._set("basic_history", self.basic_history.plus(spent))
        if isinstance(total, LogLikelihood):
            self._set("_passes", self._passes.plus(realized_spread(total, spent, self.effort)))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def domain(self) -> Domain:
        return self.transcript.domain

    @property
    def effort(self) -> Effort:
        return self._effort

    @property
    def charged(self) -> Added:
        return self._charged

    @property
    def searched(self) -> bool:
        return isinstance(self.log_likelihood, BoxLogLikelihood)

    @cached_property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""
        return self.loss_after(len(self))

    @cached_property
    def history(self) -> Chain[Enclosure]:
        """The realized loss at the start and after each exchange."""
        if isinstance(self.log_likelihood, LogLikelihood):
            return self._passes
        return Chain(self.loss_after(count) for count in range(len(self) + 1))

    def loss_after(self, count: int) -> Enclosure:
        """The realized loss after the first so many exchanges."""
        if isinstance(self.log_likelihood, LogLikelihood):
            return self._passes[count]
        first = self.log_likelihood.first(count)
        return realized_spread(first, self.basic_history[count], self.effort)

    def loss_against(self, limit: float, count: int | None = None) -> Enclosure:
        """The same, now if not said else; on a box searched for until it is on one side of a limit.

        Whatever the gap that is wanted, within the limit of nodes.
        """
        count = len(self) if count is None else count
        if isinstance(self.log_likelihood, LogLikelihood):
            return self._passes[count]
        first = self.log_likelihood.first(count)
        return compared(first, limit, self.basic_history[count], self.effort)

    @cached_property
    def peak(self) -> Enclosure:
        """The largest realized loss on the way, start and end included.

        It bounds what somebody has learned who saw the beginning, however much, and not the rest.
        """
        if isinstance(self.log_likelihood, LogLikelihood):
            lower = max(loss.lower for loss in self._passes)
            return Enclosure(lower, max(loss.upper for loss in self._passes))
        # All these searches together have the limit of one.
        shared = self.prefix(len(self), self.effort.within(self.effort.most))
        return largest_on_the_way(
            self.basic_history, self.loss, shared.loss_after, shared.loss_against,
            self.effort.gap, lambda: shared.effort.used_up,
        )  # fmt: skip

    def prefix(self, count: int, effort: Effort | None = None) -> Odometer:
        """The odometer after the first so many exchanges, perhaps with another effort."""
        if count < len(self):
            return Odometer(self.transcript.first(count), effort=effort or self.effort)
        same = object.__new__(Odometer)
        for name in self.__dataclass_fields__:
            same._set(name, getattr(self, name))
        same._set("_effort", effort or self.effort)
        return same

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons now, which is what basic composition says."""
        return self.basic_history[-1]

    @property
    def exact_spent(self) -> Nats:
        """The same, exactly."""
        domain = self.transcript.domain
        if isinstance(self.log_likelihood, LogLikelihood):
            summands = self.log_likelihood.tally
            return total_charge((part.query.ceiling(domain), part.times) for part in summands)
        return total_charge((step.query.ceiling(domain), 1) for step in self.transcript.exchanges)

    @property
    def different(self) -> int:
        """How many different responses of different queries there are, which exact sums go through.

        Over a box nothing but epsilons is summed exactly.
        """
        if isinstance(self.log_likelihood, LogLikelihood):
            return len(self.log_likelihood.tally)
        return 0

    @cached_property
    def exact_loss(self) -> Nats:
        """The realized loss over a finite domain, exactly."""
        assert isinstance(self.log_likelihood, LogLikelihood), "over a box nothing is exact"
        return exact_spread(self.log_likelihood)

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        if self.searched:
            return loss_after_responses(self, query, budget, times)
        return worst_on_set(self, query, times)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        if self.searched:
            return loss_plus_epsilon(self, query, budget, times)
        return epsilon_on_set(self, query, times)

    def without_last(self) -> tuple[Odometer, Query]:
        return self.prefix(len(self) - 1), self.transcript.exchanges[-1].query

    def with_effort(self, effort: Effort) -> Odometer:
        return self.prefix(len(self), effort)

    def __len__(self) -> int:
        return len(self.transcript)

    def __repr__(self) -> str:
        # No loss here: over a box it would be searched for.
        return f"Odometer({len(self.__dict__.get('transcript', ()))} exchanges)"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "exchanges": len(self),
            "sum of epsilons": nats(self.spent.upper),
        }
        if self.loss_is_known:
            facts["realized loss"] = nats(self.loss.upper)
        if self.peak_is_known:
            facts["at its peak"] = nats(self.peak.upper)
        known = isinstance(self.log_likelihood, LogLikelihood) or "history" in self.__dict__
        return card(
            "Odometer",
            facts,
            columns=("", "response", "loss after it"),
            items=self.transcript.exchanges if known else (),
            row=lambda number, exchange: (
                number, exchange.response, nats(self.history[number].upper),
            ),
        )  # fmt: skip

    @property
    def loss_is_known(self) -> bool:
        """Whether the loss now is at hand; over a box it is searched for when first asked for."""
        return isinstance(self.log_likelihood, LogLikelihood) or "loss" in self.__dict__

    @property
    def peak_is_known(self) -> bool:
        """The same for the peak."""
        return isinstance(self.log_likelihood, LogLikelihood) or "peak" in self.__dict__
