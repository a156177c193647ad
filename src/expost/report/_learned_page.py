"""How much the answers changed the confidence in a statement, as sentences and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator

from expost._format import format_factor, format_number, format_percent
from expost.errors import make_printable
from expost.knowledge import ConfidenceChange
from expost.loss import Replay
from expost.numbers import NEGLIGIBLE
from expost.report._figures import confidence_chart
from expost.report._formatting import budget_text, format_amount, with_unit
from expost.report._page import figure, page, paragraph, table
from expost.report._sentences import COMPARE_TRANSCRIPTS, NOISY, breach_sentences

__all__ = ["learned_page", "learned_sentences"]


def learned_sentences(learned: ConfidenceChange, replay: Replay) -> Iterator[str]:
    """Yield sentences about the confidence before and after, and its range; a breach first."""
    yield from breach_sentences(replay)
    yield " ".join(_compare_confidence(learned))
    yield from _explain_change(learned)


def _compare_confidence(learned: ConfidenceChange) -> tuple[str, str]:
    """Return a sentence about the confidence before and after, and one about its range."""
    floor, ceiling = format_percent(learned.allowed.lower), format_percent(learned.allowed.upper)
    allowance = {
        "respected": "The budget allows",
        "respected with a delta": "A budget with a delta bounds no single outcome; "
        "a loss as large as that of these answers allows",
        "not respected": f"A loss as large as at its peak, {format_amount(learned.peak)}, allows",
        "undecided": "Whether the budget was respected is undecided; "
        "the loss of these answers allows",
        "none": "There is no budget; a loss as large as that of these answers allows",
    }[learned.state]
    before, after = format_percent(float(learned.before)), format_percent(learned.after)
    return (
        f"Before: {before}. After these answers: {after}.",
        f"{allowance} between {floor} and {ceiling}.",
    )


def _explain_change(learned: ConfidenceChange) -> Iterator[str]:
    if learned.gain is None:
        yield "The prior rules the statement out, and no answer changes that."
    elif learned.gain == -math.inf:
        yield "The answers rule the statement out."
    else:
        error = learned.standard_error
        about = (
            ""
            if error is None
            else f" (standard error {format_number(error, 2)}, from the samples)"
        )
        yield f"The knowledge gain is {_format_gain(learned.gain)}{about}.{_describe_odds(learned)}"
    loss = learned.loss.upper
    if loss < math.inf:
        yield (
            "For anyone who sees all of these answers, no statement about this subject can have "
            f"gained or lost more than {with_unit(format_amount(loss))}: a factor of "
            f"{format_factor(loss)} of its odds."
        )
    else:
        yield "The answers rule some value out, so there are statements that lost everything."
    if format_amount(learned.peak) != format_amount(learned.loss):
        peak = format_amount(learned.peak)
        yield f"For anyone who saw only the first ones it is {peak}, the peak."
    if learned.assumed:
        yield make_printable(learned.assumed)


def _format_gain(gain: float) -> str:
    """Format a gain in nats, and the factor that it means."""
    gain = 0.0 if abs(gain) < NEGLIGIBLE else gain
    if abs(gain) > 700:
        return with_unit(format_number(gain))
    factor = format_number(math.exp(gain), 3)
    amount = with_unit(format_number(gain, 3))
    return f"{amount}: {'' if factor == '1' else f'{factor} times '}as sure as before"


def _describe_odds(learned: ConfidenceChange) -> str:
    """Describe the factor by which the odds changed, which a loss limits."""
    before, after = float(learned.before), learned.after
    if not (0 < before < 1 and 0 < after < 1):
        return ""
    factor = format_number(after / (1 - after) * ((1 - before) / before), 3)
    changed = "not changed" if factor == "1" else f"changed by a factor of {factor}"
    return f" Its odds have {changed}."


def learned_page(
    learned: ConfidenceChange, replay: Replay, *, name: str, prior: str, date: str
) -> str:
    """Write the change of a confidence as a page.

    Args:
        learned: The change of the confidence.
        replay: The replay of the transcript.
        name: The name of the transcript file.
        prior: The source of the prior.
        date: The date of the page, as text.
    """
    transcript, filter_ = replay.odometer.transcript, replay.filter
    # Only a budget that was respected allows anything.
    between = {"respected": "allowed", "not respected": "with the loss at its peak"}.get(
        learned.state, "with such a loss"
    )
    before, after = float(learned.before), learned.after
    floor, ceiling = learned.allowed.lower, learned.allowed.upper
    rows = [
        ("before", format_percent(before)),
        ("after", format_percent(after)),
        (f"{between}, at least", format_percent(floor)),
        (f"{between}, at most", format_percent(ceiling)),
    ]
    breach = list(breach_sentences(replay))
    lines = [*breach, *_compare_confidence(learned)]
    drawn = figure(
        confidence_chart(before, after, floor, ceiling, between=between),
        alt=f"Before {format_percent(before)}, after {format_percent(after)}, {between} between "
        f"{format_percent(floor)} and {format_percent(ceiling)}.",
        caption="Confidence in the statement, from 0 to 100 %.",
        data_table=table(["", "confidence"], rows),
    )
    return page(
        drawn,
        *map(paragraph, _explain_change(learned)),
        paragraph(NOISY),
        title=f"Confidence in the statement: {learned.statement}",
        verdict=lines[0],
        breach=bool(breach),
        lead=lines[1:],
        file=name,
        date=date,
        ids=[("content id", transcript.content_id, COMPARE_TRANSCRIPTS)],
        budget=budget_text(filter_),
        facts=[
            *([] if filter_ is None else [("budget respected", replay.respected_text)]),
            ("prior", prior),
            ("realized loss", format_amount(learned.loss)),
            ("at its peak", format_amount(learned.peak)),
            ("queries answered", f"{len(transcript):,}"),
        ],
    )
