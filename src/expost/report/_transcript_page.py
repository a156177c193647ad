"""A transcript as a page: what was asked, what it gave away, what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from expost.numbers import Enclosure
from expost.report._explanation import Explanation, change_text, closing
from expost.report._figures import odometer_chart
from expost.report._formatting import basic_text, budget_text, response_text, shown
from expost.report._page import Header, bullets, figure, page, paragraph, section, table
from expost.report._sentences import NOISY, breach, viewers

__all__ = ["learned_table", "odometer_figure", "peak_text", "transcript_page"]

_NOT_COVERED = (
    "Not covered: what is not in this file, such as other answers of the same person, a second "
    "file about them, other data, or what others answer.",
    "Nor a value that changed between responses without being declared as changing, nor a device "
    "that does something else than its queries say.",
)
# A longer list is for programs, and slow to show.
_MOST = 1_000


def transcript_page(
    explanation: Explanation, losses: Sequence[Enclosure], *, name: str, date: str
) -> str:
    """A page that needs nothing from anywhere else.

    ``losses`` are those at the start and after each exchange, ``name`` is that of the file, and
    ``date`` says when it was as it is told here.
    """
    header = Header(
        about=f"What was asked of the subject of {name}",
        summary=" ".join(closing(explanation)),
        first=list(breach(explanation.replay)),
        file=name,
        date=date,
        content_id=explanation.replay.odometer.transcript.content_id,
        budget=budget_text(explanation.filter),
        facts=list(_facts(explanation, losses)),
    )
    if not explanation.exchanges:
        return page(header)
    return page(
        header,
        odometer_figure(explanation, losses),
        section("What was asked", paragraph(NOISY), _asked(explanation)),
        section("Who has learned what", learned_table(explanation), bullets(_NOT_COVERED)),
    )


def _facts(explanation: Explanation, losses: Sequence[Enclosure]) -> Iterator[tuple[str, str]]:
    odometer, filter_ = explanation.replay.odometer, explanation.filter
    if filter_ is not None:
        yield "budget respected", explanation.replay.respected_text
    if filter_ is not None and explanation.replay.respected is not False:
        # After a breach nothing remains of a promise, whatever the filter would still accept.
        yield "remaining", filter_.remaining_text(odometer)
    yield "realized loss", shown(explanation.loss)
    yield "at its peak", peak_text(explanation, losses)
    yield "basic composition", basic_text(explanation.basic, odometer.transcript)
    yield "queries answered", f"{explanation.exchanges:,}"
    yield "the value", explanation.domain


def peak_text(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """The largest loss on the way, and when it was reached, where that is certain."""
    peak, searched = _highest(losses), explanation.replay.odometer.searched
    if explanation.replay.peak.upper <= explanation.loss.upper and (
        searched or peak == explanation.exchanges
    ):
        return f"{shown(explanation.loss)}, which is the loss now"
    other_losses = [loss.upper for count, loss in enumerate(losses) if count != peak]
    if searched and max(other_losses) >= losses[peak].lower:
        return shown(explanation.replay.peak)
    return f"{shown(explanation.replay.peak)}, first after query {peak:,}"


def _highest(losses: Sequence[Enclosure]) -> int:
    """The first place where the loss is as large, for people, as anywhere."""
    most = shown(max(losses, key=lambda loss: loss.upper))
    return next(count for count, loss in enumerate(losses) if shown(loss) == most)


def odometer_figure(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """The loss after each response, as a figure with its numbers."""
    odometer, filter_ = explanation.replay.odometer, explanation.filter
    limit = "" if filter_ is None else f", the budget is {filter_.limit}"
    return figure(
        odometer_chart(odometer, losses, peak=_highest(losses)),
        alt=f"The realized loss after each of {explanation.exchanges:,} responses: "
        f"{shown(explanation.replay.peak)} at its peak and {shown(explanation.loss)} now{limit}.",
        caption="The loss after each response, beside what basic composition would charge.",
        data_table=_every_loss(explanation, losses),
    )


def _every_loss(explanation: Explanation, losses: Sequence[Enclosure]) -> str:
    """The numbers behind the picture; of very many, a selection with the notable ones."""
    odometer = explanation.replay.odometer
    exchanges, basic = odometer.transcript.exchanges, odometer.basic_history
    step = -(-len(exchanges) // _MOST)
    notable = {_highest(losses), explanation.replay.first_refused or 0} - {0}
    shown_exchanges = sorted({*range(step, len(exchanges), step), len(exchanges), *notable})
    rows = [
        (
            f"{index:,}",
            response_text(exchange.response, exchange.query, odometer.domain),
            shown(losses[index]),
            shown(basic[index]),
        )
        for index in shown_exchanges
        for exchange in (exchanges[index - 1],)
    ]
    caption = (
        "After each response." if step == 1 else f"After every {step:,} responses, and at the peak."
    )
    head = ["query", "response", "loss", "basic composition"]
    return table(head, rows, caption=caption, of_text=True)


def learned_table(explanation: Explanation) -> str:
    """Who has learned at most how much."""
    caption = "In nats. The loss of a part by itself is no bound on what the part tells."
    return table(
        ["who sees", "has learned at most"], list(viewers(explanation.replay)), caption=caption
    )


def _asked(explanation: Explanation) -> str:
    domain = explanation.replay.odometer.domain
    rows = []
    for step in explanation.steps:
        if step.skipped:
            rows.append(("…", f"{step.skipped:,} more", "", "", ""))
        rows.append(
            (
                f"{step.index:,}",
                step.question,
                response_text(step.exchange.response, step.exchange.query, domain),
                shown(step.loss),
                change_text(step),
            )
        )
    caption = (
        "Losses are in nats, natural logarithms of factors of odds, for somebody who sees all "
        "responses up to there. A number in brackets after a name is its weight in the score."
    )
    head = ["", "asked", "response", "loss", "change"]
    return table(head, rows, caption=caption, of_text=True)
