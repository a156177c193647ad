"""An explanation in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from expost.cards import count
from expost.domains import Domain, Record, Value, some
from expost.filters._large_budgets import is_large, sure_text
from expost.loss.extremes import Apart
from expost.report.explanation import Explanation, Told
from expost.report.meaning import breach, in_odds
from expost.report.records import records_text
from expost.report.words import basic_text, in_nats, response_text, shown, value_text

__all__ = ["change_text", "closing", "row_of", "sentences"]

_CHANGES = {"up": "up", "down": "down", "same": "as before", "unknown": "not told apart"}


def sentences(found: Explanation) -> Iterator[str]:
    """What was asked, and what came of it; a breach comes first."""
    n, domain = found.exchanges, found.replay.odometer.domain
    if broken := list(breach(found.replay)):
        yield from (*broken, "")
    yield f"The subject's value is {found.domain}."
    if not n:
        yield "Nothing was asked so far."
    else:
        yield f"{n:,} quer{'ies were' if n > 1 else 'y was'} answered, with noise:"
        yield ""
        yield from _table(found, domain)
        yield ""
    yield from closing(found)


def closing(found: Explanation) -> Iterator[str]:
    """What somebody has learned, what is left, and which values are far apart.

    Of a budget that was not kept it says no more: :func:`breach` does that, before all else.
    """
    transcript = found.replay.odometer.transcript
    n, domain = found.exchanges, transcript.domain
    if n:
        peak, loss = found.replay.peak, found.loss
        yield (
            f"Somebody who sees all of these responses has learned at most {in_nats(shown(loss))}; "
            f"basic composition says {basic_text(found.basic, transcript)}."
        )
        # On a box the search for the peak may have gone further than the one for the loss.
        higher = peak.upper > loss.upper and shown(peak) != shown(loss)
        if found.replay.kept is not False:
            yield from in_odds(found.replay)
            if higher:
                first = f"at most {shown(peak)}, the peak"
                yield f"Somebody who saw only the first ones has learned {first}."
        yield from _parts(found)
    yield from _budget(found)
    if n:
        yield from _apart(found, domain)


def _table(found: Explanation, domain: Domain) -> Iterator[str]:
    """A row per exchange, in columns, with a gap where some are left out."""
    head = ("", "asked", "response", "loss", "")
    rows = [row_of(step, domain) for step in found.steps]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    yield _line(head, widths)
    for step, row in zip(found.steps, rows, strict=True):
        if step.skipped:
            yield f"{'…':<{widths[0]}}  {step.skipped:,} more"
        yield _line(row, widths)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()


def row_of(step: Told, domain: Domain) -> tuple[str, str, str, str, str]:
    """One exchange: its number, what was asked, the response, and what became of the loss."""
    response = response_text(step.exchange.response, step.exchange.query, domain)
    return f"{step.number}.", step.asked, response, shown(step.loss), change_text(step)


def change_text(step: Told) -> str:
    """Which way the loss went, and that it did where the digits do not show it."""
    hidden = step.change in ("up", "down") and shown(step.before) == shown(step.loss)
    return _CHANGES[step.change] + (", by less than is shown" if hidden else "")


def _parts(found: Explanation) -> Iterator[str]:
    if len(found.parts) > 1:
        largest = sorted(found.parts, key=lambda part: part.loss.upper, reverse=True)
        each = [f"{' with '.join(part.names)} {shown(part.loss)}" for part in largest]
        yield (
            "Answers about different attributes do not cancel, and their losses add up: "
            f"{some(each)}."
        )


def _budget(found: Explanation) -> Iterator[str]:
    if found.guard is None or found.used is None:
        yield "The transcript names no filter, so there is no budget."
        return
    if is_large(found.guard.budget):
        yield f"The budget of {found.guard.limit} is very large: {sure_text(found.guard.budget)}."
    budget = f"The budget of {found.guard.limit} ({found.guard.kind} filter)"
    replay, used = found.replay, shown(found.held)
    if not found.exchanges:
        yield f"{budget} is untouched."
    elif replay.kept:
        share = "0 %" if found.held.negligible else f"{100 * found.used.upper:.3g} %"
        yield f"{budget} was kept at every exchange; now {used} of it is used: {share}."
    elif replay.kept is None:
        yield f"{budget}: whether it was kept at every exchange was not decided; more nodes"
        yield f"may tell (--nodes). At the end {used} is held against it."


def _apart(found: Explanation, domain: Domain) -> Iterator[str]:
    apart = found.apart
    if apart is None:
        possible = found.loss.lower < math.inf
        yield (
            "Nothing was found that tells two values apart."
            if possible
            else "No value can have given all of these responses."
        )
        return
    if isinstance(apart.likeliest, dict) and isinstance(apart.unlikeliest, dict):
        above, below = records_text(apart.likeliest, apart.unlikeliest)
    else:
        above = _value(apart.likeliest, domain, apart.others and apart.others[0])
        below = _value(apart.unlikeliest, domain, apart.others and apart.others[1])
    if apart.difference == math.inf:
        yield f"The responses are likeliest for {above}, and impossible for {below}."
    elif apart.example:
        yield f"For example, the responses are {_times(apart)} as likely at {above}"
        yield f"as at {below}."
    else:
        yield (
            f"The responses are {_times(apart)} as likely for {above} as for {below}; "
            "no two values are further apart."
        )


def _value(value: Value | Record, domain: Domain, others: int | None) -> str:
    assert not isinstance(value, dict), "of records there are two"
    text = value_text(value, domain)
    return f"{text} (and {count(others, 'other value')} alike)" if others else text


def _times(apart: Apart) -> str:
    if apart.difference > 700:
        return f"e^{apart.difference:.6g} times"
    return f"{math.exp(apart.difference):.4g} times"
