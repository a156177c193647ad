"""The odometer: the realized loss of a transcript, updated exchange by exchange."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost.cards import card
from expost.chain import Chain
from expost.domains import Domain, require_attributes
from expost.errors import expect
from expost.filters._account import Account, WorstCase
from expost.filters._levels import EVERYTHING, Level
from expost.filters.rules import Rule, Total
from expost.loss._log_likelihood import (
    LogLikelihood,
    check_length,
    log_likelihood,
)
from expost.numbers import Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Exchange, Transcript

if TYPE_CHECKING:
    from expost.loss._level_account import LevelAccount
    from expost.loss._levels import LevelLikelihood

__all__ = ["EXCHANGE", "Odometer", "enclose_peak", "peak_text"]


def peak_text(peak: Enclosure, loss: Enclosure) -> str:
    """Return the peak as people read it: "at most" if it may be as low as the loss at the end."""
    is_certain = peak.lower > loss.upper or peak.shown() == loss.shown()
    return peak.shown() if is_certain else f"at most {peak.shown()}"


def enclose_peak(
    sums: Sequence[Enclosure],
    last: Enclosure,
    loss_after: Callable[[int], Enclosure],
    loss_against: Callable[[float, int], Enclosure],
    gap: float,
    used_up: Callable[[], bool],
) -> tuple[Enclosure, int]:
    """Enclose the largest loss after any number of exchanges, and return that number.

    The lower end of the enclosure is the lower end of the loss after so many exchanges.

    No exchange changes the loss by more than its epsilon, up or down. So the loss after one
    exchange bounds all others by the sums of the epsilons between. The search goes next to the
    exchange with the highest bound, and ends when no bound exceeds the largest loss found by more
    than the gap. It visits each exchange at most once. Proof: docs/theory/filters.md.
    """
    lowers = np.array([sum_.lower for sum_ in sums])
    uppers = np.array([sum_.upper for sum_ in sums])
    counts = np.arange(len(sums))

    def tightened(bounds: NDArray[np.float64], count: int, upper: float) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            later, earlier = uppers - lowers[count], uppers[count] - lowers
        between = np.where(counts >= count, later, earlier)
        between = np.nextafter(np.where(np.isnan(between), np.inf, between), np.inf)
        between[count] = 0.0
        return np.minimum(bounds, np.nextafter(upper + between, np.inf))

    end = len(sums) - 1
    bounds, reached, highest = tightened(uppers, end, last.upper), last.lower, end
    waiting = np.ones(len(sums), dtype=np.bool_)
    waiting[[0, end]] = False
    while waiting.any() and not used_up():
        count = int(np.argmax(np.where(waiting, bounds, -np.inf)))
        if bounds[count] <= reached + gap:
            break
        waiting[count] = False
        loss = loss_against(reached + gap, count)
        if loss.upper > reached + gap:
            # It is the highest so far, so a tighter enclosure is worth a search.
            loss = loss_after(count)
        if loss.lower > reached:
            reached, highest = loss.lower, count
        bounds = tightened(bounds, count, loss.upper)
    return Enclosure(reached, max(reached, float(bounds.max()))), highest


_ZERO = Enclosure(0.0, 0.0)

#: The work of reading an exchange, in small nodes, not counting searches.
EXCHANGE = 10

#: The work of summing up an exchange again.
_SUM_AGAIN = 4


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Odometer(Account):
    """The realized loss along a transcript; it can fall (paper, section 4.2).

    An odometer is immutable, and a function of the transcript and, over a box, of the effort.
    :meth:`add` costs one pass over a finite domain. Over a box, a loss is searched for when it is
    first needed.

    Args:
        transcript: The transcript so far.
        effort: The limits of searches on a box.

    >>> import expost as xp
    >>> start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    >>> query = xp.randomized_response(epsilon="1/2")
    >>> after = start.add(query, "yes").add(query, "no")
    >>> [round(loss.upper, 6) for loss in after.history], round(after.spent.upper, 6)
    ([0.0, 0.5, 0.0], 1.0)
    """

    transcript: Transcript
    log_likelihood: LogLikelihood
    #: The sum of the epsilons at the start and after each exchange.
    basic_history: Chain[Enclosure]
    _effort: Effort
    #: The realized losses, unless they are searched for.
    _passes: Chain[Enclosure]
    #: The sums of the composition rules that were needed so far.
    _totals: dict[Rule, Total]
    #: ℓ at the levels of protection that were needed so far.
    _levels: dict[Level, LevelLikelihood]

    def __init__(self, transcript: Transcript, *, effort: Effort | None = None) -> None:
        expect(transcript, Transcript, "a transcript")
        expect(effort, Effort | None, "an Effort")
        self._set("transcript", transcript)
        self._set("_effort", effort or Effort())
        self._set("log_likelihood", log_likelihood(transcript.domain))
        self._set("basic_history", Chain([_ZERO]))
        self._set("_passes", Chain([_ZERO]))
        self._set("_totals", {})
        self._set("_levels", {})
        self._effort.charge_work(EXCHANGE * len(transcript))
        check_length(transcript.domain, transcript.exchanges)
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """Return the odometer after one more exchange."""
        return self._extend(self.transcript.add(query, response))

    def add_position(self, query: Query, position: int) -> Odometer:
        """Return the odometer after one more exchange, given the position of the response."""
        return self._extend(self.transcript.add_position(query, position))

    def _extend(self, transcript: Transcript) -> Odometer:
        longer, latest = self.prefix(len(self)), transcript.exchanges[-1]
        longer._set("transcript", transcript)
        longer._absorb(latest)
        prices = {rule: rule.price(latest.query, self.domain) for rule in self._totals}
        longer._set("_totals", {rule: self._totals[rule] + prices[rule] for rule in prices})
        levels = {
            level: likelihood.add(latest.query, latest.position, counted=not longer.is_infinite)
            for level, likelihood in self._levels.items()
        }
        longer._set("_levels", levels)
        return longer

    def total(self, rule: Rule) -> Total:
        """Return the sums of a composition rule; they are updated from the first use on."""
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
        """The realized loss, enclosed by the nearest doubles if it is exact."""
        return self.loss if self.searched else self.exact_loss.enclosure

    @cached_property
    def history(self) -> Chain[Enclosure]:
        """The realized loss at the start and after each exchange."""
        if not self.searched:
            return self._passes
        shared = self.with_effort(self.effort.with_work_limit())
        return Chain(shared.loss_after(count) for count in range(len(self) + 1))

    def loss_after(self, count: int) -> Enclosure:
        """Enclose the realized loss after the first ``count`` exchanges."""
        if not self.searched:
            return self._passes[count]
        if not self.effort.limit(0, max(1, _SUM_AGAIN * count)):
            return Enclosure(0.0, self.basic_history[count].upper)
        return self._after(count).loss(self.effort)

    def exact_loss_after(self, count: int) -> Nats:
        """Return the exact loss after the first ``count`` exchanges, over a finite domain."""
        return self._after(count).exact_loss

    def loss_against(self, limit: float, count: int | None = None) -> Enclosure:
        """Enclose the loss, by default now; a search ends when it is on one side of a limit.

        The search ignores the gap, and is limited by nodes.
        """
        count = len(self) if count is None else count
        if not self.searched:
            return self._passes[count]
        return self._after(count).loss_against(limit, self.effort)

    def _after(self, count: int) -> LogLikelihood:
        if count == len(self):
            return self.log_likelihood
        self.effort.charge_work(_SUM_AGAIN * count)
        return log_likelihood(self.domain, self.transcript.exchanges.first(count))

    @property
    def peak(self) -> Enclosure:
        """The largest realized loss at any point, start and end included.

        It bounds what anyone who saw only the first responses, however many, has learned.
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
        return enclose_peak(
            self.basic_history, self.loss, shared.loss_after, shared.loss_against,
            self.effort.gap, lambda: shared.effort.used_up,
        )  # fmt: skip

    def prefix(self, count: int, effort: Effort | None = None) -> Odometer:
        """Return the odometer after the first ``count`` exchanges, perhaps with another effort."""
        prefix = object.__new__(Odometer)
        for name in self.__dataclass_fields__:
            prefix._set(name, getattr(self, name))
        prefix._set("_effort", effort or self.effort)
        if count < len(self):
            # The losses before are not computed again.
            prefix._set("transcript", self.transcript.first(count))
            prefix._set("log_likelihood", self._after(count))
            prefix._set("basic_history", self.basic_history.first(count + 1))
            prefix._set("_totals", {})
            prefix._set("_levels", {})
            if not self.searched:
                prefix._set("_passes", self._passes.first(count + 1))
        return prefix

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons now: the bound of basic composition."""
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
        case = self.log_likelihood.worst_after(query, times, budget, self.effort)
        return replace(case, limit=budget)

    def plus_epsilon(self, query: Query, times: int, budget: Nats) -> WorstCase:
        case = self.log_likelihood.plus_epsilon(query, times, budget, self.effort)
        return replace(case, limit=budget)

    def without_last(self) -> tuple[Odometer, Query]:
        return self.prefix(len(self) - 1), self.transcript.exchanges[-1].query

    def at_level(self, level: Level) -> Account:
        return self if level == EVERYTHING else self.level_account(level)

    def level_account(self, level: Level) -> LevelAccount:
        """Return the account of the pairs of values that a level protects, but not of all pairs."""
        # Imported here, because most studies protect the person as a whole.
        from expost.loss._level_account import LevelAccount

        likelihood = self._levels.get(level)
        if likelihood is None:
            likelihood = self._levels[level] = self._compute_level(level)
        return LevelAccount(self, level, likelihood)

    def _compute_level(self, level: Level) -> LevelLikelihood:
        from expost.loss._levels import start_level

        level.check(self.domain)
        domain = require_attributes(self.domain, "levels are for records")
        likelihood = start_level(level, domain)
        for exchange in self.transcript.exchanges:
            likelihood = likelihood.add(
                exchange.query, exchange.position, counted=not self.is_infinite
            )
        return likelihood

    @property
    def is_infinite(self) -> bool:
        """Whether the responses rule some value out, over a finite domain."""
        return self.loss.lower == math.inf

    def with_effort(self, effort: Effort) -> Odometer:
        return self.prefix(len(self), effort)

    def with_known_losses(self, source: Odometer) -> Odometer:
        """Return this odometer with the loss and peak that one of the same transcript found."""
        copy = self.prefix(len(self))
        for name in {"loss", "_peak_and_exchange"} & source.__dict__.keys():
            copy._set(name, getattr(source, name))
        return copy

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
        history_is_known = not self.searched or "history" in self.__dict__
        return card(
            "Odometer",
            facts,
            columns=("", "response", "loss after it"),
            items=self.transcript.exchanges if history_is_known else (),
            row=lambda count, exchange: (
                count, exchange.response, self.history[count].shown(),
            ),
        )  # fmt: skip

    @property
    def loss_is_known(self) -> bool:
        """Whether the loss is known already; over a box the first use searches for it."""
        return not self.searched or "loss" in self.__dict__

    @property
    def peak_is_known(self) -> bool:
        """Whether the peak is known already; over a box the first use searches for it."""
        return not self.searched or "_peak_and_exchange" in self.__dict__
