"""A transcript as a page: what was asked, what it gave away, what remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from expost.errors import printable
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
    found: Explanation, losses: Sequence[Enclosure], *, name: str, date: str
) -> str:
    """A page that needs nothing from anywhere else.

    ``losses`` are those at the start and after each exchange, ``name`` is that of the file, and
    ``date`` says when it was as it is told here.
    """
    header = Header(
        about=f"What was asked of the subject of {printable(name)}",
        summary=" ".join(closing(found)),
        first=list(breach(found.replay)),
        file=printable(name),
        date=printable(date),
        content_id=found.replay.odometer.transcript.content_id,
        budget=budget_text(found.guard),
        facts=list(_facts(found, losses)),
    )
    if not found.exchanges:
        return page(header)
    return page(
        header,
        odometer_figure(found, losses),
        section("What was asked", paragraph(NOISY), _asked(found)),
        section("Who has learned what", learned_table(found), bullets(_NOT_COVERED)),
    )


def _facts(found: Explanation, losses: Sequence[Enclosure]) -> Iterator[tuple[str, str]]:
    odometer, guard = found.replay.odometer, found.guard
    if guard is not None:
        yield "budget respected", found.replay.respected_text
    if guard is not None and found.replay.respected is not False:
        # After a breach nothing remains of a promise, whatever the filter would still accept.
        yield "remaining", guard.remaining_text(odometer)
    yield "realized loss", shown(found.loss)
    yield "at its peak", peak_text(found, losses)
    yield "basic composition", basic_text(found.basic, odometer.transcript)
    yield "queries answered", f"{found.exchanges:,}"
    yield "the value", printable(found.domain)


def peak_text(found: Explanation, losses: Sequence[Enclosure]) -> str:
    """The largest loss on the way, and when it was reached, where that is certain."""
    place, searched = _highest(losses), found.replay.odometer.searched
    if found.replay.peak.upper <= found.loss.upper and (searched or place == found.exchanges):
        return f"{shown(found.loss)}, which is the loss now"
    others = [loss.upper for count, loss in enumerate(losses) if count != place]
    if searched and max(others) >= losses[place].lower:
        return shown(found.replay.peak)
    return f"{shown(found.replay.peak)}, first after query {place:,}"


def _highest(losses: Sequence[Enclosure]) -> int:
    """The first place where the loss is as large, for people, as anywhere."""
    most = shown(max(losses, key=lambda loss: loss.upper))
    return next(count for count, loss in enumerate(losses) if shown(loss) == most)


def odometer_figure(found: Explanation, losses: Sequence[Enclosure]) -> str:
    """The loss after each response, as a figure with its numbers."""
    odometer, guard = found.replay.odometer, found.guard
    limit = "" if guard is None else f", the budget is {guard.limit}"
    return figure(
        odometer_chart(odometer, losses, peak=_highest(losses)),
        alt=f"The realized loss after each of {found.exchanges:,} responses: "
        f"{shown(found.replay.peak)} at its peak and {shown(found.loss)} now{limit}.",
        caption="The loss after each response, beside what basic composition would charge.",
        numbers=_every_loss(found, losses),
    )


def _every_loss(found: Explanation, losses: Sequence[Enclosure]) -> str:
    """The numbers behind the picture; of very many, a selection with the notable ones."""
    odometer = found.replay.odometer
    exchanges, basic = odometer.transcript.exchanges, odometer.basic_history
    step = -(-len(exchanges) // _MOST)
    notable = {_highest(losses), found.replay.first_refused or 0} - {0}
    numbers = sorted({*range(step, len(exchanges), step), len(exchanges), *notable})
    rows = [
        (
            f"{number:,}",
            response_text(each.response, each.query, odometer.domain),
            shown(losses[number]),
            shown(basic[number]),
        )
        for number in numbers
        for each in (exchanges[number - 1],)
    ]
    caption = (
        "After each response." if step == 1 else f"After every {step:,} responses, and at the peak."
    )
    head = ["query", "response", "loss", "basic composition"]
    return table(head, rows, caption=caption, words=True)


def learned_table(found: Explanation) -> str:
    """Who has learned at most how much."""
    caption = "In nats. The loss of a part by itself is no bound on what the part tells."
    return table(["who sees", "has learned at most"], list(viewers(found.replay)), caption=caption)


def _asked(found: Explanation) -> str:
    domain = found.replay.odometer.domain
    rows = []
    for step in found.steps:
        if step.skipped:
            rows.append(("…", f"{step.skipped:,} more", "", "", ""))
        rows.append(
            (
                f"{step.number:,}",
                printable(step.asked),
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
    return table(head, rows, caption=caption, words=True)
