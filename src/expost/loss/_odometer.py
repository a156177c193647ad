"""The odometer: the realized loss of a transcript, updated exchange by exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost.cards import card
from expost.chain import Chain
from expost.domains import Domain
from expost.errors import expect
from expost.filters._account import Account, WorstCase
from expost.filters.rules import Rule, Total
from expost.loss._log_likelihood import (
    LogLikelihood,
    check_length,
    flat_log_likelihood,
    log_likelihood,
)
from expost.numbers import Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Exchange, Transcript

__all__ = ["EXCHANGE", "Odometer", "largest_on_the_way", "peak_text"]


def peak_text(peak: Enclosure, loss: Enclosure) -> str:
    """The peak for people, beside the loss at the end: "at most" if it may be no more than that."""
    known = peak.lower > loss.upper or peak.shown() == loss.shown()
    return peak.shown() if known else f"at most {peak.shown()}"


def largest_on_the_way(
    sums: Sequence[Enclosure],
    last: Enclosure,
    loss_after: Callable[[int], Enclosure],
    loss_against: Callable[[float, int], Enclosure],
    gap: float,
    used_up: Callable[[], bool],
) -> tuple[Enclosure, int]:
    """Enclose the largest loss after any number of exchanges, and return where it was found.

    The loss at that place has the lower end of the enclosure.

    No exchange changes the loss by more than its epsilon, up or down, so a loss at one place bounds
    all others by the sums of the epsilons between. The search goes next to where that bound is
    highest, and ends when no bound exceeds what was found by more than the gap. It visits each
    place at most once. Proof: docs/theory/filters.md.
    """
    lowers = np.array([sum_.lower for sum_ in sums])
    uppers = np.array([sum_.upper for sum_ in sums])
    places = np.arange(len(sums))

    def seen(bounds: NDArray[np.float64], place: int, upper: float) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            later, earlier = uppers - lowers[place], uppers[place] - lowers
        between = np.where(places >= place, later, earlier)
        between = np.nextafter(np.where(np.isnan(between), np.inf, between), np.inf)
        between[place] = 0.0
        return np.minimum(bounds, np.nextafter(upper + between, np.inf))

    end = len(sums) - 1
    bounds, reached, highest = seen(uppers, end, last.upper), last.lower, end
    waiting = np.ones(len(sums), dtype=np.bool_)
    waiting[[0, end]] = False
    while waiting.any() and not used_up():
        place = int(np.argmax(np.where(waiting, bounds, -np.inf)))
        if bounds[place] <= reached + gap:
            break
        waiting[place] = False
        loss = loss_against(reached + gap, place)
        if loss.upper > reached + gap:
            # It is the highest so far, so its height is worth knowing.
            loss = loss_after(place)
        if loss.lower > reached:
            reached, highest = loss.lower, place
        bounds = seen(bounds, place, loss.upper)
    return Enclosure(reached, max(reached, float(bounds.max()))), highest


_ZERO = Enclosure(0.0, 0.0)

EXCHANGE = 10
"""How much work it is to go through an exchange, in small nodes, besides what is searched for."""

_AGAIN = 4
"""How much it is to add it up again."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Odometer(Account):
    """Tracks the realized loss along a transcript; it can fall (paper, section 4.2).

    An odometer is immutable, and a function of the transcript and, over a box, of the effort.
    :meth:`add` costs one pass over a finite domain. Over a box, a loss is searched for when it is
    first needed.

    >>> import expost as xp
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    >>> query = xp.randomized_response(epsilon="1/2")
    >>> after = start.add(query, "yes").add(query, "no")
    >>> [round(loss.upper, 6) for loss in after.history], round(after.spent.upper, 6)
    ([0.0, 0.5, 0.0], 1.0)
    """

    transcript: Transcript
    log_likelihood: LogLikelihood
    basic_history: Chain[Enclosure]
    """The sum of the epsilons at the start and after each exchange."""
    _effort: Effort
    _passes: Chain[Enclosure]
    """The realized losses, unless they are searched for."""
    _totals: dict[Rule, Total]
    """The sums of the composition rules that were needed so far."""

    def __init__(self, transcript: Transcript, *, effort: Effort | None = None) -> None:
        expect(transcript, Transcript, "a transcript")
        expect(effort, Effort | None, "an Effort")
        self._set("transcript", transcript)
        self._set("_effort", effort or Effort())
        self._set("log_likelihood", flat_log_likelihood(transcript.domain))
        self._set("basic_history", Chain([_ZERO]))
        self._set("_passes", Chain([_ZERO]))
        self._set("_totals", {})
        self._effort.charge_work(EXCHANGE * len(transcript))
        check_length(transcript.domain, transcript.exchanges)
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """The odometer after one more exchange."""
        return self._grown(self.transcript.add(query, response))

    def answered(self, query: Query, position: int) -> Odometer:
        """The same, given the position of the response."""
        return self._grown(self.transcript.answered(query, position))

    def _grown(self, transcript: Transcript) -> Odometer:
        longer, domain = object.__new__(Odometer), self.transcript.domain
        longer._set("transcript", transcript)
        for name in ("log_likelihood", "basic_history", "_effort", "_passes"):
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
        """The sums of a composition rule over the transcript; updated from the first use on."""
        total = self._totals.get(rule)
        if total is None:
            total, domain = Total(), self.transcript.domain
            for exchange in self.transcript.exchanges:
                total += rule.price(exchange.query, domain)
            self._totals[rule] = total
        return total

    def exact_total(self, rule: Rule) -> Nats:
        tally, domain = self.log_likelihood.tally, self.domain
        return Nats.total((rule.charge(part.query, domain)[0], part.times) for part in tally)

    def _absorb(self, exchange: Exchange) -> None:
        total = self.log_likelihood.add(exchange.query, exchange.position)
        self._set("log_likelihood", total)
        self._set("basic_history", self.basic_history.plus(total.spent))
        if not total.searched:
            self._set("_passes", self._passes.plus(total.loss(self.effort)))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def domain(self) -> Domain:
        return self.transcript.domain

    @property
    def effort(self) -> Effort:
        return self._effort

    @property
    def charged(self) -> RunningSum:
        return self.log_likelihood.charged

    @property
    def searched(self) -> bool:
        return self.log_likelihood.searched

    @cached_property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""
        return self.loss_after(len(self))

    @property
    def tightest_loss(self) -> Enclosure:
        """The same as closely as possible: the nearest doubles around it if it is exact."""
        return self.loss if self.searched else self.exact_loss.enclosure

    @cached_property
    def history(self) -> Chain[Enclosure]:
        """The realized loss at the start and after each exchange."""
        if not self.searched:
            return self._passes
        shared = self.with_effort(self.effort.with_work_limit())
        return Chain(shared.loss_after(count) for count in range(len(self) + 1))

    def loss_after(self, count: int) -> Enclosure:
        """The realized loss after the first ``count`` exchanges."""
        if not self.searched:
            return self._passes[count]
        if not self.effort.limit(0, max(1, _AGAIN * count)):
            return Enclosure(0.0, self.basic_history[count].upper)
        return self._after(count).loss(self.effort)

    def exact_loss_after(self, count: int) -> Nats:
        """The same over a finite domain, exactly."""
        return self._after(count).exact_loss

    def loss_against(self, limit: float, count: int | None = None) -> Enclosure:
        """The same, by default now, searched for until it is on one side of a limit.

        The search ignores the gap, and is limited by nodes.
        """
        count = len(self) if count is None else count
        if not self.searched:
            return self._passes[count]
        return self._after(count).loss_against(limit, self.effort)

    def _after(self, count: int) -> LogLikelihood:
        if count == len(self):
            return self.log_likelihood
        self.effort.charge_work(_AGAIN * count)
        return log_likelihood(self.domain, self.transcript.exchanges.first(count))

    @property
    def peak(self) -> Enclosure:
        """The largest realized loss on the way, start and end included.

        It bounds what anybody has learned who saw only the first responses, however many.
        """
        return self._peak_and_exchange[0]

    @property
    def peak_exchange(self) -> int:
        """The first exchange, from 1, whose loss is not certainly below the peak; 0 if none is.

        On a box it is the exchange with the largest loss that the search found.
        """
        return self._peak_and_exchange[1]

    @cached_property
    def _peak_and_exchange(self) -> tuple[Enclosure, int]:
        if not self.searched:
            lower = max(loss.lower for loss in self._passes)
            first = next(n for n, loss in enumerate(self._passes) if loss.upper >= lower)
            return Enclosure(lower, max(loss.upper for loss in self._passes)), first
        # All these searches share the limit of one.
        effort = self.effort.with_work_limit()
        shared = self.prefix(len(self), effort.sharing_nodes(effort.node_limit))
        return largest_on_the_way(
            self.basic_history, self.loss, shared.loss_after, shared.loss_against,
            self.effort.gap, lambda: shared.effort.used_up,
        )  # fmt: skip

    def prefix(self, count: int, effort: Effort | None = None) -> Odometer:
        """The odometer after the first ``count`` exchanges, perhaps with another effort."""
        same = object.__new__(Odometer)
        for name in self.__dataclass_fields__:
            same._set(name, getattr(self, name))
        same._set("_effort", effort or self.effort)
        if count < len(self):
            # What is known of the way there is not worked out again.
            same._set("transcript", self.transcript.first(count))
            same._set("log_likelihood", self._after(count))
            same._set("basic_history", self.basic_history.first(count + 1))
            same._set("_totals", {})
            if not self.searched:
                same._set("_passes", self._passes.first(count + 1))
        return same

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons now, which is what basic composition says."""
        return self.basic_history[-1]

    @property
    def exact_spent(self) -> Nats:
        return self.log_likelihood.exact_spent

    @property
    def distinct_exchanges(self) -> int:
        return self.log_likelihood.distinct_exchanges

    @property
    def exact_loss(self) -> Nats:
        """The realized loss over a finite domain, exactly."""
        return self.log_likelihood.exact_loss

    def worst_after(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return self.log_likelihood.worst_after(query, times, budget, self.effort)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        return self.log_likelihood.plus_epsilon(query, times, budget, self.effort)

    def without_last(self) -> tuple[Odometer, Query]:
        return self.prefix(len(self) - 1), self.transcript.exchanges[-1].query

    def with_effort(self, effort: Effort) -> Odometer:
        return self.prefix(len(self), effort)

    def with_known_losses(self, other: Odometer) -> Odometer:
        """The same, where another one of the same transcript has found its loss and its peak."""
        same = self.prefix(len(self))
        for name in {"loss", "_peak_and_exchange"} & other.__dict__.keys():
            same._set(name, getattr(other, name))
        return same

    def __len__(self) -> int:
        return len(self.transcript)

    def __repr__(self) -> str:
        # No loss here: over a box it would be searched for.
        return f"Odometer({format_count(len(self.__dict__.get('transcript', ())), 'exchange')})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "exchanges": len(self),
            "sum of epsilons": self.spent.shown(),
        }
        if self.loss_is_known:
            facts["realized loss"] = self.loss.shown()
        if self.peak_is_known and self.loss_is_known:
            facts["at its peak"] = peak_text(self.peak, self.loss)
        known = not self.searched or "history" in self.__dict__
        return card(
            "Odometer",
            facts,
            columns=("", "response", "loss after it"),
            items=self.transcript.exchanges if known else (),
            row=lambda number, exchange: (
                number, exchange.response, self.history[number].shown(),
            ),
        )  # fmt: skip

    @property
    def loss_is_known(self) -> bool:
        """Whether the loss is already known; over a box it is searched for when first needed."""
        return not self.searched or "loss" in self.__dict__

    @property
    def peak_is_known(self) -> bool:
        """The same for the peak."""
        return not self.searched or "_peak_and_exchange" in self.__dict__
