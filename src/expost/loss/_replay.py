"""Replays: every exchange of a transcript is decided again, after those before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from expost._types import Progress
from expost.cards import card
from expost.errors import expect
from expost.files.canonical import plain_tree
from expost.filters import BayesianFilter, Filter, Level, SimplifiedFilter
from expost.filters._outcomes import respected_cell, respected_text
from expost.loss._log_likelihood import check_length, share_of_charges
from expost.loss._odometer import EXCHANGE, Odometer, peak_text
from expost.numbers import Enclosure, Nats, down, up
from expost.queries import Query
from expost.solver import GAP, Effort
from expost.transcript import Transcript, transcript_of

__all__ = ["Headroom", "Replay", "replay", "replay_with_effort"]


_QUICK_NODES = 16
_EXCHANGES_AHEAD = 16
_LONGEST_WAIT = 64


class Headroom:
    """An upper bound on the loss of a replay so far, which saves searches over a box.

    No exchange changes the loss by more than its epsilon. So a search that finds the loss well
    below the budget decides many exchanges to come. Proof: docs/theory/filters.md.
    """

    def __init__(self, filter_: Filter) -> None:
        self._budget = filter_.budget.enclosure
        self._upper = 0.0
        self._wait = 0
        self._patience = 1

    def fits(self, odometer: Odometer, query: Query) -> bool:
        """Return whether the loss so far plus the epsilon of a query is surely within budget."""
        charge = query.ceiling(odometer.domain).enclosure.upper
        if up(self._upper + charge) <= self._budget.lower:
            return True
        if self._wait or odometer.effort.used_up:
            self._wait = max(0, self._wait - 1)
            return False
        # A quick search shows that the budget is not near; close to it, it seldom decides.
        effort = replace(odometer.effort, nodes=min(_QUICK_NODES, odometer.effort.node_limit))
        limit = down(self._budget.lower - _EXCHANGES_AHEAD * charge)
        self._upper = min(self._upper, odometer.with_effort(effort).loss_against(limit).upper)
        fits = up(self._upper + charge) <= self._budget.lower
        self._patience = 1 if fits else min(2 * self._patience, _LONGEST_WAIT)
        self._wait = 0 if fits else self._patience
        return fits

    def record(self, query: Query, odometer: Odometer, *, accepted: bool) -> None:
        """Record an exchange; one that a pure filter accepts ends within the budget."""
        self._upper = up(self._upper + query.ceiling(odometer.domain).enclosure.upper)
        if accepted:
            self._upper = min(self._upper, self._budget.upper)


# Shares of the remaining work: for the loss, then for the peak.
_LOSS_SHARE, _PEAK_SHARE = 0.6, 0.6


@dataclass(frozen=True, slots=True)
class Replay:
    """A report on whether a budget was respected at every exchange, and on the largest loss.

    :func:`replay` returns it. ``respected`` is a fact about the transcript: whether the
    condition of its filter held at every exchange, given those before. It is None if a search could
    not tell, or if the transcript names no filter. Proof: docs/theory/filters.md.
    """

    respected: bool | None
    #: The index of the first exchange, from 1, that the filter certainly refuses.
    #:
    #: None even if the budget was not respected, where the search for that exchange ran out of
    #: nodes.
    first_refused: int | None
    #: The realized loss at the end.
    loss: Enclosure
    #: The largest realized loss at any point.
    peak: Enclosure
    #: The filter that decided again: that of the transcript, unless another was passed.
    filter: Filter | None
    #: The odometer at the end.
    odometer: Odometer = field(repr=False, compare=False)
    #: The first exchange, from 1, at which the peak was reached; 0 if the loss was always 0.
    #:
    #: On a box it is the exchange with the largest loss that the search found.
    peak_exchange: int = field(default=0, repr=False, compare=False)

    @property
    def basic(self) -> Nats:
        """The bound of basic composition: the sum of the epsilons."""
        return self.odometer.exact_spent

    @property
    def share_of_basic(self) -> Enclosure:
        """The realized loss as a share of basic composition."""
        return share_of_charges(self.odometer.log_likelihood, self.loss)

    @property
    def level_losses(self) -> list[tuple[Level, Enclosure]]:
        """The losses at the end at each level that the filter protects, next to ``loss``.

        There are none if every budget is about the person as a whole.
        """
        filters = () if self.filter is None else self.filter.members
        levels = dict.fromkeys(one.level for one in filters if one.is_at_level)
        return [(level, self.odometer.at_level(level).exact_loss.enclosure) for level in levels]

    def levels_tree(self) -> dict[str, Any]:
        """Return the losses at the levels as JSON; nothing if there are no levels."""
        levels = [{"protects": level.tree(), "loss": loss} for level, loss in self.level_losses]
        return plain_tree({"levels": levels} if levels else {})

    def tree(self) -> dict[str, Any]:
        """Return the loss, the budget and whether it was respected as JSON."""
        transcript = self.odometer.transcript
        tree = {
            "loss": self.loss,
            "basic": self.basic.nearest,
            "exchanges": len(transcript),
            "share_of_basic": self.share_of_basic,
            "budget": None if self.filter is None else self.filter.budget.nearest,
            **self.course_tree(),
            **self.levels_tree(),
            "content_id": transcript.content_id,
        }
        return plain_tree(tree)

    def course_tree(self) -> dict[str, Any]:
        """Return the part of :meth:`tree` that is about the course, not the end."""
        tree = {"budget_respected": self.respected, "first_refused": self.first_refused}
        return plain_tree({**tree, "peak": self.peak})

    @property
    def respected_text(self) -> str:
        """Whether the budget was respected at every exchange, or why not, for people."""
        return respected_text(self.respected, self.first_refused)

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"budget": "none" if self.filter is None else self.filter.limit}
        if self.filter is not None:
            facts["respected"] = respected_cell(self.respected, self.first_refused)
        facts["realized loss at the end"] = self.loss.shown()
        levels = self.level_losses
        for level, loss in levels:
            facts[f"about {level.about}"] = loss.shown()
        if levels:
            facts["not covered"] = " ".join(level.gap for level, _ in levels)
        facts["at its peak"] = peak_text(self.peak, self.loss)
        return card("Replay", facts)


def replay(
    history: object,
    *,
    filter: Filter | None = None,
    gap: float = GAP,
    nodes: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Check whether the budget of a transcript was respected, by deciding every exchange again.

    On a box, more nodes can turn undecided into respected or not respected, and never one of those
    into the other. On a finite domain everything is decided, unless the exact comparisons of a very
    long transcript take more than ``nodes``: each counts as one for every four different responses,
    and as 12 for every step of a value that changes.

    Args:
        history: A transcript, a session or an odometer.
        filter: Another filter to replay; it accepts all exchanges before ``first_refused``.
        gap: The largest width of a loss on a box, in nats.
        nodes: The most nodes of all decisions together.
        progress: A function that is called with the number of decided exchanges and their total.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1))
    >>> up_and_down = start.add(query, "yes").add(query, "yes").add(query, "no")
    >>> found = xp.replay(up_and_down)
    >>> found.respected, found.first_refused
    (False, 2)
    >>> round(found.peak.upper, 6), round(found.loss.upper, 6)
    (2.0, 1.0)
    """
    expect(filter, Filter | None, "a filter, such as BayesianFilter(epsilon=1)", "filter")
    return replay_with_effort(transcript_of(history), Effort(gap, nodes), progress, filter)


def replay_with_effort(
    transcript: Transcript,
    effort: Effort,
    progress: Progress | None = None,
    filter_: Filter | None = None,
) -> Replay:
    """Replay a transcript with an :class:`Effort`; see :func:`replay`."""
    if filter_ is None:
        filter_ = transcript.filter
    else:
        filter_.check_domain(transcript.domain)
    bounded = effort.with_work_limit()
    check_length(transcript.domain, transcript.exchanges)
    odometer = Odometer(transcript.first(0))
    deciding = (
        effort.for_replay() if odometer.searched else bounded.sharing_nodes(bounded.node_limit)
    )
    odometer = odometer.with_effort(deciding)
    bounded.charge_work(EXCHANGE * len(transcript))
    respected, first_refused = True, None
    decide = None if filter_ is None else _decider(filter_, searched=odometer.searched)
    for index, exchange in enumerate(transcript.exchanges, start=1):
        if progress is not None:
            progress(index, len(transcript))
        if decide is not None and first_refused is None:
            accepted = decide(odometer, exchange.query)
            first_refused = index if accepted is False else None
            respected = respected and accepted is True
        odometer = odometer.add_position(exchange.query, exchange.position)
    # The loss has its own nodes, and leaves some of the work.
    odometer = odometer.with_effort(bounded.with_share(_LOSS_SHARE))
    loss = odometer.tightest_loss
    if filter_ is not None and odometer.searched:
        loss = filter_.realized(odometer)
    highest = odometer.with_effort(bounded.with_share(_PEAK_SHARE)).with_known_losses(odometer)
    peak, peak_exchange = highest.peak, highest.peak_exchange
    odometer = odometer.with_effort(effort).with_known_losses(odometer)
    if filter_ is None:
        return Replay(None, None, loss, peak, None, odometer, peak_exchange)
    if respected:
        # Accepted exchanges end within the budget, even if the searches for a report stop early.
        loss, peak = filter_.capped(loss), filter_.capped(peak)
    peak = Enclosure(max(peak.lower, loss.lower), peak.upper)
    # A loss above the budget at any point broke it, even where no single decision is known.
    limit = filter_.loss_limit
    above = limit is not None and peak.lower > limit.enclosure.upper
    verdict = False if first_refused is not None or above else respected or None
    return Replay(verdict, first_refused, loss, peak, filter_, odometer, peak_exchange)


def _decider(filter_: Filter, *, searched: bool) -> Callable[[Odometer, Query], bool | None]:
    """Return a function that decides the exchanges of a replay, one after the other."""
    # Loss + epsilon is what these two filters hold at most; any other may hold more.
    by_loss = all(isinstance(one, BayesianFilter | SimplifiedFilter) for one in filter_.members)
    headroom = Headroom(filter_) if by_loss and searched else None

    def verdict(odometer: Odometer, query: Query) -> bool | None:
        if odometer.effort.used_up:
            return None
        return filter_.verdict(odometer.with_effort(odometer.effort.for_replayed_decision()), query)

    def decide(odometer: Odometer, query: Query) -> bool | None:
        if headroom is None or query.approximate:
            return verdict(odometer, query)
        accepted: bool | None = headroom.fits(odometer, query)
        if not accepted:
            accepted = verdict(odometer, query)
        headroom.record(query, odometer, accepted=accepted is True)
        return accepted

    return decide
