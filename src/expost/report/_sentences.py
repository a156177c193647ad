"""Sentences about what a loss means: odds, a breach, and how much each viewer has learned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from expost._format import format_factor, format_percent
from expost.filters._outcomes import breach_reason
from expost.loss import Replay
from expost.loss._odometer import peak_text
from expost.report._formatting import basic_text, filter_name, format_amount, with_unit

__all__ = [
    "COMPARE_TRANSCRIPTS",
    "NOISY",
    "breach_sentences",
    "odds_sentences",
    "viewer_losses",
]

NOISY = (
    "Responses are noisy: each is drawn at random around the truth. "
    "Do not take one for the subject's own answer."
)
COMPARE_TRANSCRIPTS = (
    "SHA-256 of the domain, the filter and all exchanges: files with equal ids have equal content. "
    "expost loss FILE --json prints the id of a file."
)
_UNDECIDED = Fraction(1, 2)


def odds_sentences(replay: Replay) -> Iterator[str]:
    """Explain the loss as a change of odds; if the budget was not respected, the peak."""
    from expost.knowledge import allowed_confidence  # other commands need no beliefs

    broken, filter_ = replay.respected is False, replay.filter
    loss = replay.peak if broken else replay.loss
    if loss.upper == math.inf:
        return
    if loss.negligible:
        yield "At this loss no odds change: someone undecided (50 %) is still undecided."
        return
    when, changed, was = ("the peak", "changed", "was") if broken else ("this loss", "change", "is")
    sure = f"at most {format_percent(allowed_confidence(_UNDECIDED, loss).upper)} sure"
    budget = ""
    # A budget with a delta bounds no single outcome.
    limit = None if filter_ is None else filter_.loss_limit
    if limit is not None and replay.respected is not None:
        most = allowed_confidence(_UNDECIDED, limit).upper
        budget = f"; the budget allows {format_percent(most)}"
    yield (
        f"At {when}, odds {changed} by a factor of at most {format_factor(loss.upper)}. "
        f"Someone undecided (50 %) {was} {sure}{budget}."
    )


def breach_sentences(replay: Replay) -> Iterator[str]:
    """Yield sentences about a budget that was not respected; nothing otherwise."""
    filter_ = replay.filter
    if filter_ is None or replay.respected is not False:
        return
    reason = breach_reason(replay.first_refused)
    yield f"The budget of {filter_.limit} ({filter_name(filter_)}) was not respected: {reason}."
    peak, loss = peak_text(replay.peak, replay.loss), format_amount(replay.loss)
    now = "" if peak == loss else f"; its current value of {loss} does not undo that"
    yield f"At its peak the loss was {with_unit(peak)}{now}."
    yield from odds_sentences(replay)
    yield f"For a viewer of only some responses, {_warn_of_parts(replay)}."


def viewer_losses(replay: Replay) -> Iterator[tuple[str, str]]:
    """Yield the largest loss for each kind of viewer (docs/explanation/who_sees_what.md)."""
    filter_ = replay.filter
    yield "all of these responses", format_amount(replay.loss)
    yield "only the first ones, however many", f"{format_amount(replay.peak)}, the peak"
    part = _warn_of_parts(replay)
    if filter_ is not None and replay.respected is not False:
        part = f"the budget, {filter_.limit}{'' if replay.respected else ', if it was respected'}"
        if not filter_.pure:
            part += "; with a delta it bounds no single outcome"
        if filter_.budget_of_person is None:
            part += f"; about the person as a whole, {_warn_of_parts(replay)}"
    yield "some of them, or only that a query was refused", part


def _warn_of_parts(replay: Replay) -> str:
    basic = basic_text(replay.basic.nearest, replay.odometer.transcript)
    return f"assume at least the sum of the epsilons, {basic}"
