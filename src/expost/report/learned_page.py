"""What the answers did to somebody's confidence in a statement, as sentences and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator

from expost.errors import printable
from expost.knowledge.learned import Learned
from expost.numbers.enclosure import NEGLIGIBLE
from expost.report.page import page, text
from expost.report.scale import drawing, percent
from expost.report.words import shown

__all__ = ["learned_page", "learned_sentences"]


def learned_sentences(found: Learned) -> Iterator[str]:
    """How sure they were, are and may be, and why."""
    yield _sentence(found)
    yield from _reasons(found)


def _sentence(found: Learned) -> str:
    floor, ceiling = percent(found.allowed.lower), percent(found.allowed.upper)
    who = {
        "kept": "The budget allows",
        "kept with a delta": "A budget with a delta bounds no single outcome; "
        "a loss as large as that of these answers allows",
        "not kept": "The budget was not kept; a loss as large as that of these answers allows",
        "undecided": "Whether the budget was kept is undecided; the loss of these answers allows",
        "none": "There is no budget; a loss as large as that of these answers allows",
    }[found.state]
    return (
        f"Before: {percent(float(found.before))}. After these answers: {percent(found.after)}. "
        f"{who} between {floor} and {ceiling}."
    )


def _reasons(found: Learned) -> Iterator[str]:
    if found.gain is None:
        yield "The prior rules the statement out, and no answer changes that."
    elif found.gain == -math.inf:
        yield "The answers rule the statement out."
    else:
        error = found.standard_error
        about = "" if error is None else f" (standard error {error:.2g}, from the samples)"
        yield f"The knowledge gain is {_signed(found.gain)}{about}."
    loss = found.loss.upper
    if loss < math.inf:
        yield (
            "For somebody who sees all of these answers, no statement about this person can have "
            f"gained or lost more than {shown(loss)}."
        )
    else:
        yield "The answers rule some value out, so there are statements that lost everything."
    if shown(found.peak) != shown(found.loss):
        yield f"For somebody who saw only the first ones it is {shown(found.peak)}, the peak."
    if found.assumed:
        yield printable(found.assumed)


def _signed(gain: float) -> str:
    """Nats, and what they mean."""
    gain = 0.0 if abs(gain) < NEGLIGIBLE else gain
    if abs(gain) > 700:
        return f"{gain:.6g} nats"
    factor = math.exp(gain)
    return f"{gain:.3g} nats: {factor:.3g} times as sure as before"


def learned_page(found: Learned) -> str:
    """A page that needs nothing from anywhere else."""
    title = text(printable(found.statement))
    picture = drawing(
        float(found.before),
        found.after,
        found.allowed.lower,
        found.allowed.upper,
        # Only a budget that was kept allows anything.
        between="allowed" if found.state == "kept" else "with such a loss",
    )
    reasons = " ".join(map(text, _reasons(found)))
    body = f"""<h1>How sure is somebody of this: {title}</h1>
<p class="first">{text(_sentence(found))}</p>
{picture}
<p>{reasons}</p>"""
    return page(printable(found.statement), body)
