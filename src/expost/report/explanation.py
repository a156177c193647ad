"""What happened to a subject, in plain words: what was asked, what it did, what it means now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal

from expost.domains import Categories, Domain, Integers, Side
from expost.filters.filter import Filter
from expost.loss.extremes import Apart
from expost.loss.replay import Replay
from expost.loss.shares import part_of, share_between
from expost.numbers import Enclosure
from expost.queries import (
    Channel,
    ExponentialMechanism,
    Geometric,
    Linear,
    LocalHashing,
    Perturbation,
    Query,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from expost.queries.noise.grid import OnGrid
from expost.queries.scores.regression import Regression
from expost.queries.scores.score import Score
from expost.transcript import Exchange

__all__ = ["Account", "Step", "explain", "in_words", "listed"]

_SHOWN = 5
"""How many exchanges at either end of a long transcript are told of."""

_LISTED = 4
_LONGEST = 40

Change = Literal["up", "down", "same"]


@dataclass(frozen=True, slots=True)
class Step:
    """One exchange, and what it did to the odometer."""

    number: int
    asked: str
    exchange: Exchange
    loss: Enclosure
    change: Change


@dataclass(frozen=True, slots=True)
class Account:
    """A transcript, told."""

    domain: str
    exchanges: int
    steps: tuple[Step, ...]
    """The first and the last few, if there are many."""
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

    @property
    def guard(self) -> Filter | None:
        return self.replay.guard

    @property
    def left_out(self) -> int:
        return self.exchanges - len(self.steps)


def explain(replay: Replay) -> Account:
    """Tell what a transcript holds. Over a box this searches for a loss per step that is told."""
    guard, odometer = replay.guard, replay.odometer
    transcript, exchanges = odometer.transcript, len(odometer)
    # Where the budget was kept no loss on the way exceeded it, wherever the searches stop.
    kept = guard is not None and guard.pure and replay.kept
    told = list(range(1, exchanges + 1))
    if exchanges > 2 * _SHOWN + 1:
        told = [*told[:_SHOWN], *told[-_SHOWN:]]
    losses: dict[int, Enclosure] = {exchanges: replay.loss}
    for number in told:
        for count in (number - 1, number):
            if count not in losses:
                loss = odometer.loss_after(count)
                losses[count] = guard.capped(loss) if guard is not None and kept else loss
    held = replay.loss if guard is None else guard.loss(odometer)
    share = part_of if replay.kept else share_between
    return Account(
        domain=_domain_in_words(transcript.domain),
        exchanges=exchanges,
        steps=tuple(
            Step(
                number,
                in_words(transcript.exchanges[number - 1].query, transcript.domain),
                transcript.exchanges[number - 1],
                losses[number],
                _change(losses[number - 1], losses[number]),
            )
            for number in told
        ),
        loss=replay.loss,
        basic=odometer.exact_spent.nearest,
        replay=replay,
        held=held,
        used=None if guard is None else share(held, guard.budget.enclosure),
        apart=odometer.log_likelihood.most_apart(),
    )


def _change(before: Enclosure, after: Enclosure) -> Change:
    """Which way the loss surely went; enclosures that overlap do not tell."""
    if after.lower > before.upper:
        return "up"
    return "down" if after.upper < before.lower else "same"


def in_words(query: Query, domain: Domain) -> str:
    """What a query asks, and how much it could give away."""
    epsilon = query.charge(domain)
    amount = str(epsilon) if epsilon.ratio == 1 else f"{epsilon.nearest:.6g}"
    delta = f" and delta {float(query.delta):.6g}" if query.delta else ""
    return f"{_subject_of(query)}, at epsilon {amount}{delta}"


@singledispatch
def _subject_of(query: Query) -> str:
    return query.kind.replace("_", " ")


@_subject_of.register
def _(query: RandomizedResponse) -> str:
    return "the value itself"


@_subject_of.register
def _(query: UnaryEncoding) -> str:
    return "a noisy bit for each value"


@_subject_of.register
def _(query: SubsetSelection) -> str:
    return f"{query.size} values, the true one more likely among them"


@_subject_of.register
def _(query: LocalHashing) -> str:
    return f"which of {query.hash.buckets} buckets the value is hashed to"


@_subject_of.register
def _(query: Geometric) -> str:
    return f"the value with noise, from {query.range[0]} to {query.range[1]}"


@_subject_of.register
def _(query: ExponentialMechanism) -> str:
    return f"which is best of {listed(query.responses, 'or')}"


@_subject_of.register
def _(query: Channel) -> str:
    return f"a channel to {listed(query.responses, 'or')}"


@_subject_of.register
def _(query: Perturbation) -> str:
    return f"a score from {query.range[0]:g} to {query.range[1]:g}"


@_subject_of.register
def _(query: Linear) -> str:
    ends = "" if query.range is None else f" from {query.range[0]:g} to {query.range[1]:g}"
    return f"a score{ends} of {_coordinates(query.score)}"


@_subject_of.register
def _(query: OnGrid) -> str:
    ends = f"from {query.range[0]:g} to {query.range[1]:g}"
    return f"a score {ends} of {_coordinates(query.score)}, with noise"


@_subject_of.register
def _(query: Regression) -> str:
    return f"a yes-or-no prediction from {_coordinates(query.score)}"


def _coordinates(score: Score) -> str:
    used = [j for j, weight in enumerate(score.weights) if weight not in (0.0, {})]
    if score.names is None:
        return f"{len(used)} of {len(score.weights)} coordinates"
    return listed([score.names[j] for j in used]) or "no coordinate"


def _side_in_words(side: Side) -> str:
    if isinstance(side, Categories):
        return f"one of {listed(side.labels, 'or')}"
    kind = "an integer " if isinstance(side, Integers) else ""
    return f"{kind}from {side.lower:g} to {side.upper:g}"


def _domain_in_words(domain: Domain) -> str:
    if domain.sides:
        names = domain.names or [f"[{index}]" for index in range(len(domain.sides))]
        sides = [
            f"{name} {_side_in_words(side)}" for name, side in zip(names, domain.sides, strict=True)
        ]
        return f"a point of a box: {listed(sides)}"
    if domain.names is not None:
        return f"one of {len(domain.values):,} points, by {listed(domain.names)}"
    return f"one of {len(domain.values):,}: {listed(domain.values, 'or')}"


def listed(words: Sequence[object], joint: str = "and") -> str:
    """``A, B and C``, or ``A, B, C, D and 7 more``; a long word is cut."""
    shown = [_short(str(word)) for word in words[: _LISTED + 1]]
    if len(words) > len(shown):
        shown[-1] = f"{len(words) - _LISTED:,} more"
    return f" {joint} ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…"
