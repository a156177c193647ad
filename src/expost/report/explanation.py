"""What happened to a subject, in plain words: what was asked, and what it means now."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from itertools import pairwise
from typing import Any, Literal

from expost.cards import card
from expost.errors import printable
from expost.files.canonical import plain
from expost.filters._filter import Filter
from expost.loss.extremes import Apart
from expost.loss.odometer import Odometer
from expost.loss.replay import Replay
from expost.loss.replay import replay as replay_of
from expost.loss.shares import PartLoss, part_of, share_between
from expost.numbers import Enclosure
from expost.report.words import domain_in_words, query_in_words
from expost.transcript import Exchange

__all__ = ["Explanation", "Told", "explain"]

_SHOWN = 5
"""How many exchanges at either end of a long transcript are always shown."""

_EACH = 0.25
"""What the loss after one of them may take of the work that is left."""

Change = Literal["up", "down", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Told:
    """One exchange of an explanation, and what it did to the loss."""

    number: int
    asked: str
    exchange: Exchange
    before: Enclosure
    loss: Enclosure
    change: Change
    """Unknown where enclosures overlap on a box: the loss may be what it was, or not."""
    skipped: int
    """How many exchanges directly before this one are not shown."""

    def tree(self) -> dict[str, Any]:
        """The exchange as JSON."""
        return plain(
            {
                "number": self.number,
                "asked": self.asked,
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
    steps: tuple[Told, ...]
    """If there are many: the first and the last few, the peak and the first refused exchange."""
    loss: Enclosure
    basic: float
    """What basic composition says: the sum of the epsilons."""
    replay: Replay
    """Whether the budget was kept at every exchange, and the largest loss on the way."""
    held: Enclosure
    """What the filter holds against its budget; the loss, if there is no filter."""
    used: Enclosure | None
    """That, as a share of the budget; above 1 if it was not kept, and more is held."""
    apart: Apart | None
    parts: tuple[PartLoss, ...]
    """Of records: the losses about attributes that no question ties together."""

    def __repr__(self) -> str:
        from expost.report.sentences import sentences  # which are about an explanation

        return "\n".join(map(printable, sentences(self)))

    def _repr_html_(self) -> str:
        from expost.report.meaning import breach
        from expost.report.sentences import closing, row_of

        domain = self.replay.odometer.domain
        facts: dict[str, object] = {"value": self.domain, "answered": f"{self.exchanges:,}"}
        if self.left_out:
            facts["not shown"] = f"{self.left_out:,} in between"
        table = card(
            "Explanation",
            facts,
            columns=("", "asked", "response", "loss", ""),
            items=self.steps,
            row=lambda _number, step: row_of(step, domain),
            every=True,
        )
        first, last = (
            "".join(f"<p>{escape(sentence)}</p>" for sentence in told)
            for told in (breach(self.replay), closing(self))
        )
        return first + table + last

    @property
    def guard(self) -> Filter | None:
        return self.replay.filter

    @property
    def left_out(self) -> int:
        return self.exchanges - len(self.steps)

    def tree(self) -> dict[str, Any]:
        """The explanation as JSON."""
        apart = self.apart
        parts = {"parts": [asdict(part) for part in self.parts]} if self.parts else {}
        return plain(
            {
                "exchanges": self.exchanges,
                "left_out": self.left_out,
                "steps": [step.tree() for step in self.steps],
                "loss": self.loss,
                "basic": self.basic,
                "budget": None if self.guard is None else self.guard.budget.nearest,
                "used": self.used,
                **self.replay.course(),
                **parts,
                "most_apart": apart and asdict(apart),
            }
        )


def explain(asked: object) -> Explanation:
    """Explain a transcript. Over a box this searches for the loss after each step that is shown.

    ``asked`` is a transcript, a session, an odometer, or the replay of one.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon="1/2")
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> found = xp.report.explain(transcript)
    >>> [(step.asked, step.change) for step in found.steps]
    [('the value itself, at epsilon 0.5', 'up'), ('the value itself, at epsilon 0.5', 'down')]
    """
    replay = asked if isinstance(asked, Replay) else replay_of(asked)
    guard, known = replay.filter, replay.odometer
    odometer = known.with_effort(known.effort.bounded()).knowing(known)
    transcript, exchanges = odometer.transcript, len(odometer)
    # Where the budget was kept no loss on the way exceeded it, wherever the searches stop.
    kept = guard is not None and guard.pure and replay.kept
    told = list(range(1, exchanges + 1))
    if exchanges > 2 * _SHOWN + 1:
        notable = {replay.peak_exchange, replay.first_refused or 0} - {0}
        told = sorted({*told[:_SHOWN], *notable, *told[-_SHOWN:]})
    losses: dict[int, Enclosure] = {exchanges: replay.loss}
    for number in told:
        for count in (number - 1, number):
            if count not in losses:
                loss = odometer.with_effort(odometer.effort.part(_EACH)).loss_after(count)
                losses[count] = guard.capped(loss) if guard is not None and kept else loss
    held = replay.loss
    if guard is not None and not (guard.pure and guard.by_loss and odometer.searched):
        held = guard.loss(odometer)  # elsewhere that is what the replay has searched for
    share = part_of if replay.kept else share_between
    return Explanation(
        domain=domain_in_words(transcript.domain),
        exchanges=exchanges,
        steps=tuple(
            Told(
                number,
                query_in_words(transcript.exchanges[number - 1].query, transcript.domain),
                transcript.exchanges[number - 1],
                losses[number - 1],
                losses[number],
                _change(odometer, number, losses[number - 1], losses[number]),
                number - previous - 1,
            )
            for previous, number in pairwise([0, *told])
        ),
        loss=replay.loss,
        basic=replay.basic.nearest,
        replay=replay,
        held=held,
        used=None if guard is None else share(held, guard.budget.enclosure),
        apart=odometer.log_likelihood.most_apart(odometer.effort),
        parts=odometer.log_likelihood.by_part,
    )


def _change(odometer: Odometer, number: int, before: Enclosure, after: Enclosure) -> Change:
    """Which way the loss really went at an exchange."""
    if after.lower > before.upper:
        return "up"
    if after.upper < before.lower:
        return "down"
    if odometer.searched:
        # Two enclosures that overlap are no proof that nothing changed, unless both are one number.
        return "same" if before.lower == before.upper == after.lower == after.upper else "unknown"
    was, became = odometer.exact_loss_after(number - 1), odometer.exact_loss_after(number)
    return "same" if was == became else "up" if became > was else "down"
