"""A transcript explained in plain sentences: its queries, its loss and its budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from typing import Any, Literal

from expost._format import align_columns, format_count, format_factor, format_share
from expost.cards import card
from expost.domains import Domain, Record, Value, join_names
from expost.errors import make_printable
from expost.files.canonical import plain_tree
from expost.filters._filter import Filter
from expost.filters._large_budgets import is_large, sure_text
from expost.loss import Odometer, Replay
from expost.loss import replay as replay_of
from expost.loss._log_likelihood import ExtremePair, PartLoss, capped_share, share_enclosure
from expost.numbers import Enclosure
from expost.report._formatting import (
    basic_text,
    domain_in_words,
    filter_name,
    format_amount,
    query_in_words,
    records_text,
    response_text,
    value_text,
    with_unit,
)
from expost.report._sentences import breach_sentences, odds_sentences
from expost.transcript import Exchange

__all__ = [
    "ExplainedExchange",
    "Explanation",
    "budget_sentences",
    "closing_sentences",
    "detail_sentences",
    "exchange_rows",
    "explain",
    "explanation_sentences",
    "loss_sentences",
]

#: How many exchanges at either end of a long transcript are always shown.
_SHOWN_AT_ENDS = 5

#: The share of the remaining work that the search for the loss after one of them may take.
_EFFORT_SHARE = 0.25

Change = Literal["up", "down", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class ExplainedExchange:
    """One exchange of an explanation, and the change of the loss."""

    index: int
    question: str
    exchange: Exchange
    before: Enclosure
    loss: Enclosure
    #: Unknown on a box if the enclosures before and after overlap.
    change: Change
    #: How many exchanges directly before this one are not shown.
    skipped: int

    def tree(self) -> dict[str, Any]:
        """Return the exchange as JSON."""
        return plain_tree(
            {
                "number": self.index,
                "asked": self.question,
                "response": self.exchange.response,
                "loss": self.loss,
                "change": self.change,
            }
        )


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A transcript explained: its exchanges, its loss and its budget; from :func:`explain`.

    As text it is what ``expost explain`` prints, and notebooks show it as a table.
    """

    domain: str
    exchanges: int
    #: If there are many: the first and the last few, the peak and the first refused exchange.
    steps: tuple[ExplainedExchange, ...]
    loss: Enclosure
    #: The loss by basic composition: the sum of the epsilons.
    basic: float
    #: Whether the budget was respected at every exchange, and the largest loss at any point.
    replay: Replay
    #: The amount that the filter counts against its budget; without a filter, the loss.
    filter_loss: Enclosure
    #: ``filter_loss`` as a share of the budget; above 1 only if the budget was not respected.
    used: Enclosure | None
    most_different: ExtremePair | None
    #: For records: a loss for each group of attributes that no query connects with another.
    parts: tuple[PartLoss, ...]

    def __repr__(self) -> str:
        return "\n".join(map(make_printable, explanation_sentences(self)))

    def _repr_html_(self) -> str:
        domain = self.replay.odometer.domain
        facts: dict[str, object] = {"value": self.domain, "answered": f"{self.exchanges:,}"}
        if self.left_out:
            facts["not shown"] = f"{self.left_out:,} in between"
        table = card(
            "Explanation",
            facts,
            columns=("", "asked", "response", "loss", ""),
            items=self.steps,
            row=lambda _index, step: (f"{step.index}.", *_exchange_cells(step, domain)),
            every=True,
        )
        first, last = (
            "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
            for sentences in (breach_sentences(self.replay), closing_sentences(self))
        )
        return first + table + last

    @property
    def filter(self) -> Filter | None:
        return self.replay.filter

    @property
    def left_out(self) -> int:
        return self.exchanges - len(self.steps)

    def tree(self) -> dict[str, Any]:
        """Return the explanation as JSON."""
        most_different = self.most_different
        parts = {"parts": [asdict(part) for part in self.parts]} if self.parts else {}
        return plain_tree(
            {
                "exchanges": self.exchanges,
                "left_out": self.left_out,
                "steps": [step.tree() for step in self.steps],
                "loss": self.loss,
                "basic": self.basic,
                "budget": None if self.filter is None else self.filter.budget.nearest,
                "used": self.used,
                **self.replay.course_tree(),
                **self.replay.levels_tree(),
                **parts,
                "most_apart": most_different and most_different.tree(),
            }
        )


def explain(history: object) -> Explanation:
    """Explain a transcript. Over a box this searches for the loss after each step that is shown.

    Args:
        history: A transcript, a session, an odometer, or the replay of one.

    Returns:
        The explanation, whose text is what ``expost explain`` prints.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon="1/2")
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> found = xp.report.explain(transcript)
    >>> [(step.question, step.change) for step in found.steps]
    [('the value itself, at epsilon 0.5', 'up'), ('the value itself, at epsilon 0.5', 'down')]
    """
    replay = history if isinstance(history, Replay) else replay_of(history)
    filter_, odometer = replay.filter, replay.odometer
    odometer = odometer.with_effort(odometer.effort.with_work_limit()).with_known_losses(odometer)
    transcript, exchanges = odometer.transcript, len(odometer)
    shown_exchanges = _choose_exchanges(replay)
    losses = _find_losses(odometer, shown_exchanges, replay)
    filter_loss = replay.loss
    # The replay has searched for this loss if the filter counts the realized loss on a box.
    if filter_ is not None and not (filter_.loss_limit and filter_.by_loss and odometer.searched):
        filter_loss = filter_.loss(odometer)
    share = capped_share if replay.respected else share_enclosure
    return Explanation(
        domain=domain_in_words(transcript.domain),
        exchanges=exchanges,
        steps=tuple(
            ExplainedExchange(
                exchange,
                query_in_words(transcript.exchanges[exchange - 1].query, transcript.domain),
                transcript.exchanges[exchange - 1],
                losses[exchange - 1],
                losses[exchange],
                _compare_losses(odometer, exchange, losses[exchange - 1], losses[exchange]),
                exchange - previous - 1,
            )
            for previous, exchange in pairwise([0, *shown_exchanges])
        ),
        loss=replay.loss,
        basic=replay.basic.nearest,
        replay=replay,
        filter_loss=filter_loss,
        used=(
            None
            if filter_ is None
            else share(filter_loss, filter_.binding(odometer).budget.enclosure)
        ),
        most_different=odometer.log_likelihood.extreme_pair(odometer.effort),
        parts=odometer.log_likelihood.by_part,
    )


def _choose_exchanges(replay: Replay) -> list[int]:
    """Return the exchanges to show: all, or the ends with the peak and the first refused one."""
    every = list(range(1, len(replay.odometer) + 1))
    if len(every) <= 2 * _SHOWN_AT_ENDS + 1:
        return every
    notable = {replay.peak_exchange, replay.first_refused or 0} - {0}
    return sorted({*every[:_SHOWN_AT_ENDS], *notable, *every[-_SHOWN_AT_ENDS:]})


def _find_losses(
    odometer: Odometer, shown_exchanges: list[int], replay: Replay
) -> dict[int, Enclosure]:
    """Return the losses before and after each shown exchange, by the number of exchanges so far."""
    filter_ = replay.filter
    losses = {len(odometer): replay.loss}
    for exchange in shown_exchanges:
        for count in (exchange - 1, exchange):
            if count not in losses:
                effort = odometer.effort.with_share(_EFFORT_SHARE)
                loss = odometer.with_effort(effort).loss_after(count)
                # A respected budget bounds the loss at every point, wherever the search stopped.
                if filter_ is not None and replay.respected:
                    loss = filter_.capped(loss)
                losses[count] = loss
    return losses


def _compare_losses(
    odometer: Odometer, exchange: int, before: Enclosure, after: Enclosure
) -> Change:
    """Find the direction of the true change of the loss at an exchange."""
    if after.lower > before.upper:
        return "up"
    if after.upper < before.lower:
        return "down"
    if odometer.searched:
        # Two enclosures that overlap are no proof that nothing changed, unless both are one number.
        return "same" if before.lower == before.upper == after.lower == after.upper else "unknown"
    exact_before, exact_after = map(odometer.exact_loss_after, (exchange - 1, exchange))
    if exact_before == exact_after:
        return "same"
    return "up" if exact_after > exact_before else "down"


_CHANGE_TEXTS = {"up": "up", "down": "down", "same": "as before", "unknown": "not told apart"}


def explanation_sentences(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation; a breach comes first."""
    n = explanation.exchanges
    if broken := list(breach_sentences(explanation.replay)):
        yield from (*broken, "")
    yield f"The subject's value is {explanation.domain}."
    if not n:
        yield "Nothing has been asked yet."
    else:
        yield f"{n:,} quer{'ies were' if n > 1 else 'y was'} answered, with noise:"
        yield ""
        head = ("", "asked", "response", "loss", "")
        yield from align_columns([head, *exchange_rows(explanation)])
        yield ""
    yield from closing_sentences(explanation)


def closing_sentences(explanation: Explanation) -> Iterator[str]:
    """Yield sentences about the loss, the budget, and the two most different values.

    They do not explain a budget that was not respected: :func:`breach_sentences` does that first.
    """
    yield from loss_sentences(explanation)
    if explanation.exchanges and explanation.replay.respected is not False:
        yield from odds_sentences(explanation.replay)
    yield from budget_sentences(explanation)
    yield from detail_sentences(explanation)


def loss_sentences(explanation: Explanation) -> Iterator[str]:
    """Yield a sentence about the loss, and one about its peak if that was higher."""
    if not explanation.exchanges:
        return
    replay, loss = explanation.replay, explanation.loss
    basic = basic_text(explanation.basic, replay.odometer.transcript)
    if loss.lower == math.inf:
        yield "All of these responses together rule a value out, so their loss is unbounded."
        return
    yield (
        f"All of these responses together reveal at most {with_unit(format_amount(loss))}; "
        f"basic composition charges {basic}."
    )
    for level, level_loss in replay.level_losses:
        amount = with_unit(format_amount(level_loss))
        yield f"About {level.about} they reveal at most {amount}. {level.gap}"
    # On a box the search for the peak may have gone further than the one for the loss.
    peak = format_amount(replay.peak)
    higher = replay.peak.upper > loss.upper and peak != format_amount(loss)
    if higher and replay.respected is not False:
        yield f"The first ones alone revealed up to {with_unit(peak)}, the peak."


def exchange_rows(
    explanation: Explanation, index_format: str = "{}."
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the cells of the exchanges that are shown, with a row for each gap between them."""
    domain = explanation.replay.odometer.domain
    for step in explanation.steps:
        if step.skipped:
            yield "…", f"{step.skipped:,} more", "", "", ""
        yield index_format.format(step.index), *_exchange_cells(step, domain)


def _exchange_cells(step: ExplainedExchange, domain: Domain) -> tuple[str, str, str, str]:
    """Write the cells of an exchange: its question, its response, the loss and its change."""
    response = response_text(step.exchange.response, step.exchange.query, domain)
    before, loss = format_amount(step.before), format_amount(step.loss)
    hidden = step.change in ("up", "down") and before == loss
    change = _CHANGE_TEXTS[step.change] + (", by less than is shown" if hidden else "")
    return step.question, response, loss, change


def budget_sentences(explanation: Explanation) -> Iterator[str]:
    """Yield whether the budget was respected, and how much of it is used.

    If it was not, :func:`breach_sentences` says so instead.
    """
    filter_, replay = explanation.filter, explanation.replay
    if filter_ is None or explanation.used is None:
        yield "The transcript names no filter, so there is no budget."
        return
    budget = f"The budget of {filter_.limit} ({filter_name(filter_)})"
    used = format_amount(explanation.filter_loss)
    if not explanation.exchanges:
        yield f"{budget} is untouched."
    elif replay.respected and len(filter_.members) > 1:
        yield f"The budget of {filter_.limit} was respected at every exchange."
        for one in filter_.members:
            used = format_amount(one.loss(replay.odometer))
            yield f"Of {one.limit} ({filter_name(one)}), {used} is used now."
    elif replay.respected:
        share = (
            "0 %" if explanation.filter_loss.negligible else format_share(explanation.used.upper)
        )
        yield f"{budget} was respected at every exchange; {used} of it, {share}, is used now."
    elif replay.respected is None:
        yield f"{budget}: it is undecided whether it was respected at every exchange."
        yield f"More nodes (--nodes) can decide it. Now {used} counts against it."
    if is_large(filter_.budget):
        yield f"The budget of {filter_.limit} is very large: {sure_text(filter_.budget)}."


def detail_sentences(explanation: Explanation) -> Iterator[str]:
    """Yield the losses of independent attributes, and the two most different values."""
    if not explanation.exchanges:
        return
    if len(explanation.parts) > 1:
        largest = sorted(explanation.parts, key=lambda part: part.loss.upper, reverse=True)
        losses = [f"{' with '.join(part.names)} {format_amount(part.loss)}" for part in largest]
        yield (
            "Answers about different attributes do not cancel, and their losses add up: "
            f"{join_names(losses)}."
        )
    extremes, domain = explanation.most_different, explanation.replay.odometer.domain
    if extremes is None:
        if explanation.loss.lower < math.inf:
            yield "No two values were found that these responses tell apart."
        else:
            yield "No value can have given all of these responses."
        return
    if isinstance(extremes.likeliest, dict) and isinstance(extremes.unlikeliest, dict):
        above, below = records_text(extremes.likeliest, extremes.unlikeliest)
    else:
        ties_above, ties_below = extremes.tied_values or (0, 0)
        above = _describe_value(extremes.likeliest, domain, ties_above)
        below = _describe_value(extremes.unlikeliest, domain, ties_below)
    if extremes.difference == math.inf:
        yield f"The responses are likeliest for {above}, and impossible for {below}."
    elif extremes.example:
        yield f"For example, the responses are {_format_ratio(extremes)} as likely at {above}"
        yield f"as at {below}."
    else:
        yield (
            f"The responses are {_format_ratio(extremes)} as likely for {above} as for {below}; "
            "no two values are further apart."
        )


def _describe_value(value: Value | Record, domain: Domain, tied_values: int) -> str:
    assert not isinstance(value, dict), "two records are described together"
    alike = f" (and {format_count(tied_values, 'other value')} alike)" if tied_values else ""
    return f"{value_text(value, domain)}{alike}"


def _format_ratio(extremes: ExtremePair) -> str:
    return f"{format_factor(extremes.difference, digits=4)} times"
