"""A transcript as a page: its questions and responses, the loss and the remaining budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from expost._format import shorten
from expost.numbers import Enclosure
from expost.report._explanation import (
    Explanation,
    budget_sentences,
    detail_sentences,
    exchange_rows,
    loss_sentences,
)
from expost.report._figures import odometer_chart
from expost.report._formatting import basic_text, budget_text, format_amount, response_text
from expost.report._page import bullets, figure, page, paragraph, section, table
from expost.report._sentences import (
    COMPARE_TRANSCRIPTS,
    NOISY,
    breach_sentences,
    odds_sentences,
    viewer_losses,
)

__all__ = ["learned_table", "odometer_figure", "transcript_page"]

_NOT_COVERED = (
    "Answers that are not in this file, such as those in a second file about the same subject.",
    "Other data about the subject, and the answers of other subjects.",
    "A value that changed between responses without being declared as changing.",
    "A device that does not draw its responses with the probabilities of its queries.",
)
# A longer list is for programs, and slow to show.
_MOST = 1_000


def transcript_page(
    explanation: Explanation, losses: Sequence[Enclosure], *, name: str, date: str
) -> str:
    """Write a transcript as a page.

    Args:
        explanation: The explanation of the transcript.
        losses: The losses at the start and after each exchange.
        name: The name of the transcript file.
        date: The date of the page, as text.
    """
    replay, sections = explanation.replay, []
    if explanation.exchanges:
        sections = [
            odometer_figure(explanation, losses),
            section("Questions and responses", paragraph(NOISY), _list_exchanges(explanation)),
            section("How much each viewer can have learned", learned_table(explanation)),
            section("What the responses tell apart", paragraph(*detail_sentences(explanation))),
            section("Not covered by this page", bullets(_NOT_COVERED)),
        ]
    breach = list(breach_sentences(replay))
    if breach:
        verdict, *lead = breach
    else:
        verdict = " ".join(budget_sentences(explanation))
        lead = [" ".join(loss_sentences(explanation))]
        if explanation.exchanges:
            lead += odds_sentences(replay)
    return page(
        *sections,
        title=f"Responses of {shorten(name)}",
        verdict=verdict,
        breach=bool(breach),
        lead=filter(None, lead),
        file=name,
        date=date,
        ids=[("content id", replay.odometer.transcript.content_id, COMPARE_TRANSCRIPTS)],
        budget=budget_text(explanation.filter),
        facts=_list_facts(explanation, losses),
    )


def _list_facts(explanation: Explanation, losses: Sequence[Enclosure]) -> Iterator[tuple[str, str]]:
    odometer, filter_ = explanation.replay.odometer, explanation.filter
    if filter_ is not None:
        yield "budget respected", explanation.replay.respected_text
    if filter_ is not None and explanation.replay.respected is not False:
        # After a breach nothing remains of a promise, whatever the filter would still accept.
        yield "remaining", filter_.remaining_text(odometer)
    yield "realized loss", format_amount(explanation.loss)
    yield "at its peak", _describe_peak(explanation, losses)
    yield "basic composition", basic_text(explanation.basic, odometer.transcript)
    yield "queries answered", f"{explanation.exchanges:,}"
    yield "domain", explanation.domain


def _describe_peak(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """Describe the peak of the loss, and when it was reached if that is certain."""
    peak, searched = _find_peak(losses), explanation.replay.odometer.searched
    if explanation.replay.peak.upper <= explanation.loss.upper and (
        searched or peak == explanation.exchanges
    ):
        return f"{format_amount(explanation.loss)}, which is the loss now"
    other_losses = [loss.upper for count, loss in enumerate(losses) if count != peak]
    if searched and max(other_losses) >= losses[peak].lower:
        return format_amount(explanation.replay.peak)
    return f"{format_amount(explanation.replay.peak)}, first after query {peak:,}"


def _find_peak(losses: Sequence[Enclosure]) -> int:
    """Find the first exchange after which the loss, as shown, is the largest."""
    most = format_amount(max(losses, key=lambda loss: loss.upper))
    return next(count for count, loss in enumerate(losses) if format_amount(loss) == most)


def odometer_figure(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """Draw the loss after each response."""
    odometer, filter_ = explanation.replay.odometer, explanation.filter
    limit = "" if filter_ is None else f", the budget is {filter_.limit}"
    return figure(
        odometer_chart(odometer, losses, peak=_find_peak(losses)),
        alt=f"The realized loss after each of {explanation.exchanges:,} responses: "
        f"{format_amount(explanation.replay.peak)} at its peak and "
        f"{format_amount(explanation.loss)} now{limit}.",
        caption="The loss after each response, next to the charge of basic composition.",
        data_table=_list_losses(explanation, losses),
    )


def _list_losses(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """Write the losses that are drawn; of very many, a selection with the notable ones."""
    odometer = explanation.replay.odometer
    exchanges, basic = odometer.transcript.exchanges, odometer.basic_history
    step = -(-len(exchanges) // _MOST)
    notable = {_find_peak(losses), explanation.replay.first_refused or 0} - {0}
    shown_exchanges = sorted({*range(step, len(exchanges), step), len(exchanges), *notable})
    rows = [
        (
            f"{index:,}",
            response_text(exchange.response, exchange.query, odometer.domain),
            format_amount(losses[index]),
            format_amount(basic[index]),
        )
        for index, exchange in ((index, exchanges[index - 1]) for index in shown_exchanges)
    ]
    caption = (
        "After each response." if step == 1 else f"After every {step:,} responses, and at the peak."
    )
    head = ["query", "response", "loss", "basic composition"]
    return table(head, rows, caption=caption, of_text=True)


def learned_table(explanation: Explanation) -> str:
    """Write a table of the largest loss for each kind of viewer."""
    return table(
        ["who sees", "has learned at most"],
        list(viewer_losses(explanation.replay)),
        caption="In nats. The loss of a part alone does not bound what the part reveals.",
    )


def _list_exchanges(explanation: Explanation) -> str:
    caption = (
        "Losses are in nats, the logarithm of a factor of odds. Each is for a viewer of all "
        "responses so far. A number in brackets after a name is its weight in the score."
    )
    head = ["", "asked", "response", "loss", "change"]
    return table(head, [*exchange_rows(explanation, "{:,}")], caption=caption, of_text=True)
