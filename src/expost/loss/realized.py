"""What was realized, what could be at worst, and how much of it was used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import overload

from expost.domains import Box, Domain, FiniteSet
from expost.errors import InvalidInput, expect
from expost.loss.choose import capped, realized_spread
from expost.loss.log_likelihood import BoxLogLikelihood, LogLikelihood
from expost.loss.on_set import exact_spread
from expost.numbers import Enclosure, Nats, down, up
from expost.queries import Query, check_query
from expost.solver import GAP, NODES, Effort, Progress
from expost.transcript import Exchange, Transcript

__all__ = [
    "basic_loss",
    "exact_realized_loss",
    "part_of",
    "realized_loss",
    "share_between",
    "share_of",
    "total_charge",
    "utilization",
    "worst_case_loss",
]


_UNLIMITED = Enclosure(math.inf, math.inf)


def realized_loss(
    transcript: Transcript,
    *,
    gap: float = GAP,
    nodes: int = NODES,
    threads: int = 1,
    group: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Enclosure:
    r"""The knowledge that an analyst who sees all of these responses has gained, at most.

    .. math:: \max_x \ell(x) - \min_x \ell(x), \quad \ell(x) = \sum_i \log P[Q_i(x) = y_i]

    Infinite where a likelihood is zero. Over a finite domain the enclosure is the nearest doubles
    around the exact value. Over a box it is as wide as ``gap``, or wider if that takes more than
    ``nodes`` nodes; the other options are those of :class:`Effort`. Act on ``upper``. Proofs:
    docs/theory/realized_loss.md, docs/theory/extrema.md.
    """
    expect(transcript, Transcript, "a transcript")
    effort = Effort(gap, nodes, threads, group, progress)
    if isinstance(transcript.domain, FiniteSet):
        return exact_realized_loss(transcript).enclosure
    total = BoxLogLikelihood.of(transcript.domain, transcript.exchanges)
    loss = realized_spread(total, _UNLIMITED, effort)
    if loss.upper < 0.999 * math.fsum(term.epsilon for term in total.terms):
        return loss  # far from the sum of the epsilons, which need not be known exactly then
    return capped(loss, basic_loss(transcript).enclosure)


def exact_realized_loss(transcript: Transcript) -> Nats:
    """The realized loss over a finite domain as the exact number that it is."""
    expect(transcript, Transcript, "a transcript")
    assert isinstance(transcript.domain, FiniteSet)
    total = LogLikelihood.flat(transcript.domain)
    for exchange in transcript.exchanges:
        total = total.add(exchange)
    return exact_spread(total)


def worst_case_loss(query: Query, domain: Domain) -> Enclosure:
    r"""The guarantee of a query before any response: its epsilon, from its probabilities.

    .. math:: \max_y \log \frac{\max_x P[Q(x) = y]}{\min_x P[Q(x) = y]}
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet or a Box")
    if isinstance(domain, FiniteSet):
        return query.on(domain).epsilon.enclosure
    return capped(query.on(domain).epsilon, query.ceiling(domain).enclosure)


def _response_losses(query: Query, box: Box, positions: Sequence[int]) -> list[Enclosure]:
    """The loss that each of some responses realizes on its own."""
    start, most = BoxLogLikelihood.flat(box), query.ceiling(box).enclosure
    effort, responses = Effort(gap=1e-6), query.on(box).responses
    return [
        realized_spread(start.add(Exchange(query, responses[position], position)), most, effort)
        for position in positions
    ]


def basic_loss(transcript: Transcript) -> Nats:
    """What basic composition charges: the sum of the epsilons, exactly."""
    return total_charge(
        (exchange.query.ceiling(transcript.domain), 1) for exchange in transcript.exchanges
    )


def total_charge(charges: Iterable[tuple[Nats, int]]) -> Nats:
    """The sum of charges with their multiplicities."""
    return Nats.total(charges)


@overload
def utilization(asked: Query, domain: Domain) -> Enclosure: ...
@overload
def utilization(asked: Transcript) -> Enclosure: ...
def utilization(asked: Query | Transcript, domain: Domain | None = None) -> Enclosure:
    """The share of its guarantee that a query or a composition uses (paper, section 3.3).

    Of a query: the smallest loss that one of its responses realizes, over its worst case. It is 1
    exactly if the query fully utilizes its budget. Of a transcript: the realized loss over the sum
    of the epsilons. Zero where nothing was to be used. Where both are infinite there is no such
    share, and it is anywhere from 0 to 1.
    """
    if isinstance(asked, Transcript):
        if isinstance(asked.domain, FiniteSet):
            return share_of(exact_realized_loss(asked), basic_loss(asked))
        return part_of(realized_loss(asked), basic_loss(asked).enclosure)
    check_query(asked)
    if domain is None:
        raise InvalidInput("the utilization of a query needs a domain")
    expect(domain, Domain, "a FiniteSet or a Box")
    if isinstance(domain, FiniteSet):
        likelihood = asked.on(domain)
        return share_of(likelihood.least_loss, likelihood.epsilon)
    worst, quietest = worst_case_loss(asked, domain), asked.on(domain).quietest
    if quietest is None:
        return part_of(Enclosure(0.0, worst.upper), worst)
    losses = _response_losses(asked, domain, quietest)
    least = Enclosure(min(loss.lower for loss in losses), min(loss.upper for loss in losses))
    return part_of(least, worst)


def share_of(used: Nats, whole: Nats) -> Enclosure:
    """How much of a whole was used, from 0 to 1; nothing of nothing is 0."""
    if used == whole and not whole.is_infinite:
        used_up = 1.0 if whole > Nats() else 0.0
        return Enclosure(used_up, used_up)
    if used == Nats() or (whole.is_infinite and not used.is_infinite):
        return Enclosure(0.0, 0.0)
    return part_of(used.enclosure, whole.enclosure)


def part_of(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same, where only enclosures are known."""
    share = share_between(used, whole)
    return Enclosure(min(1.0, share.lower), min(1.0, share.upper))


def share_between(used: Enclosure, whole: Enclosure) -> Enclosure:
    """The same of a budget: what is held against it may be above it, or infinite."""
    if used.upper == 0 or whole.upper == 0:
        return Enclosure(0.0, 0.0)
    if whole.upper == math.inf:  # of infinity, what is infinite can be any share
        return Enclosure(0.0, math.inf)
    if used.lower == math.inf:
        return used
    most = up(used.upper / whole.lower) if whole.lower > 0 else math.inf
    return Enclosure(max(0.0, down(used.lower / whole.upper)), most)
