"""A transcript as a page: what was asked, what it gave away, what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from expost.errors import printable
from expost.numbers import Enclosure
from expost.report.explanation import Explanation
from expost.report.figures import odometer_figure, svg
from expost.report.page import facts, page, picture, table, text
from expost.report.sentences import change_text, closing
from expost.report.words import basic_text, kept_text, response_text, shown

__all__ = ["transcript_page"]

# A longer list is for programs, and slow to show.
_MOST = 1_000


def transcript_page(
    found: Explanation, losses: Sequence[Enclosure], *, name: str, date: str
) -> str:
    """A page that needs nothing from anywhere else.

    ``losses`` are those at the start and after each exchange, ``name`` is that of the file, and
    ``date`` says when it was as it is told here.
    """
    title = f"What was asked of the subject of {printable(name)}"
    meaning = " ".join(map(text, closing(found)))
    body = [
        f"<h1>{text(title)}</h1>",
        f'<p class="first">{meaning}</p>',
        facts(_facts(found, losses, name, date)),
    ]
    if found.exchanges:
        body += [_odometer(found, losses), "<h2>What was asked</h2>", _asked(found)]
        body += [_every_loss(found, losses)] if found.left_out else []
    return page(title, "\n".join(body))


def _facts(
    found: Explanation, losses: Sequence[Enclosure], name: str, date: str
) -> Iterator[tuple[str, str]]:
    odometer, guard = found.replay.odometer, found.guard
    transcript = odometer.transcript
    yield "file", printable(name)
    yield "date", printable(date)
    yield "content id", transcript.content_id
    yield "the value", printable(found.domain)
    yield "queries answered", f"{found.exchanges:,}"
    yield "realized loss", shown(found.loss)
    yield "at its peak", _peak(found, losses)
    yield "basic composition", basic_text(found.basic, transcript)
    if guard is None:
        yield "budget", "none: the transcript names no filter"
    else:
        yield "budget", f"{guard.limit} ({guard.kind} filter)"
        yield "kept", kept_text(found.replay)
        yield "left", shown(guard.remaining(odometer))


def _peak(found: Explanation, losses: Sequence[Enclosure]) -> str:
    """The largest loss on the way, and when it was reached, where that is certain."""
    if found.replay.peak.upper <= found.loss.upper:
        return f"{shown(found.loss)}, which is the loss now"
    place = _highest(losses)
    others = [loss.upper for count, loss in enumerate(losses) if count != place]
    if found.replay.odometer.searched and max(others) >= losses[place].lower:
        return shown(found.replay.peak)
    return f"{shown(found.replay.peak)}, after query {place:,}"


def _highest(losses: Sequence[Enclosure]) -> int:
    return max(range(len(losses)), key=lambda count: losses[count].upper)


def _odometer(found: Explanation, losses: Sequence[Enclosure]) -> str:
    odometer, guard = found.replay.odometer, found.guard
    limit = "" if guard is None else f", the budget is {guard.limit}"
    budget = None if guard is None else guard.budget
    drawing = odometer_figure(odometer, losses, budget, peak=_highest(losses), narrow=True)
    return picture(
        svg(drawing),
        alt=f"The realized loss after each of {found.exchanges:,} responses: "
        f"{shown(found.replay.peak)} at its peak and {shown(found.loss)} now{limit}.",
        caption="The loss after each response, beside what basic composition would charge.",
    )


def _asked(found: Explanation) -> str:
    domain = found.replay.odometer.domain
    rows = [
        (
            f"{step.number:,}",
            printable(step.asked),
            response_text(step.exchange.response, step.exchange.query, domain),
            shown(step.loss),
            change_text(step),
        )
        for step in found.steps
    ]
    caption = "Losses are in nats, for somebody who sees all responses up to there."
    if found.left_out:
        rows.insert(len(rows) // 2, ("…", f"{found.left_out:,} more", "", "", ""))
    head = ["", "asked", "response", "loss", "change"]
    return table(head, rows, caption=caption, words=True)


def _every_loss(found: Explanation, losses: Sequence[Enclosure]) -> str:
    """The numbers behind the picture, where the table above leaves some out."""
    if len(losses) > _MOST:
        return ""
    exchanges, domain = found.replay.odometer.transcript.exchanges, found.replay.odometer.domain
    rows = [
        (f"{number:,}", response_text(each.response, each.query, domain), shown(losses[number]))
        for number, each in enumerate(exchanges, start=1)
    ]
    listed = table(["query", "response", "loss"], rows, words=True)
    return f"<details><summary>The loss after every response</summary>{listed}</details>"
