"""What a loss and a budget mean for people: odds, a breach, and who has learned how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from expost._format import format_percent
from expost.filters._outcomes import breach_reason
from expost.loss import Replay
from expost.loss._odometer import peak_text
from expost.report._formatting import basic_text, format_amount, with_unit

__all__ = ["NOISY", "breach_sentences", "factor_text", "odds_sentences", "viewer_losses"]

NOISY = (
    "Responses are noisy: each is drawn at random around the truth. "
    "Do not take one for the person's own answer."
)
_UNDECIDED = Fraction(1, 2)


def factor_text(nats: float) -> str:
    """Format the factor by which odds change."""
    if nats > math.log(1e6):
        return f"e^{nats:.6g}"
    factor = math.exp(nats)
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def odds_sentences(replay: Replay) -> Iterator[str]:
    """Explain the loss as a change of odds; if the budget was not respected, the peak."""
    from expost.knowledge import allowed_confidence  # other commands need no beliefs

    broken, filter_ = replay.respected is False, replay.filter
    loss = replay.peak if broken else replay.loss
    if loss.upper == math.inf:
        return
    was, then = ("was", " then") if broken else ("is", "")
    sure = f"at most {format_percent(allowed_confidence(_UNDECIDED, loss).upper)} sure{then}"
    factor = f"change{'d' * broken} by a factor of at most {factor_text(loss.upper)}"
    change = f"odds {factor}, e to the number of nats"
    if loss.negligible:
        change, sure = "no odds change", "as undecided as before"
    budget = ""
    # A budget with a delta bounds no single outcome.
    if filter_ is not None and filter_.pure and replay.respected is not None:
        most = allowed_confidence(_UNDECIDED, filter_.budget).upper
        budget = f"; the budget allows {format_percent(most)}"
    yield f"That is, {change}: somebody undecided (50 %) {was} {sure}{budget}."


def breach_sentences(replay: Replay) -> Iterator[str]:
    """Yield sentences about a budget that was not respected; nothing otherwise."""
    filter_ = replay.filter
    if filter_ is None or replay.respected is not False:
        return
    reason = breach_reason(replay.first_refused)
    yield f"The budget of {filter_.limit} ({filter_.kind} filter) was not respected: {reason}."
    peak, loss = peak_text(replay.peak, replay.loss), format_amount(replay.loss)
    now = "" if peak == loss else f"; that it is {loss} now is no excuse"
    yield f"At its peak the loss was {with_unit(peak)}{now}."
    yield from odds_sentences(replay)
    yield f"For somebody who saw only a part of the responses, {_warn_of_parts(replay)}."


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
    yield "a part of them, or only that a query was refused", part


def _warn_of_parts(replay: Replay) -> str:
    basic = basic_text(replay.basic.nearest, replay.odometer.transcript)
    return f"do not count on less than the sum of the epsilons, {basic}"
