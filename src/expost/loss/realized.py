"""What was realized, what could be at worst, and how much of it was used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import overload

from expost.domains import Domain
from expost.errors import InvalidInput, expect
from expost.loss.log_likelihood import flat, log_likelihood
from expost.numbers import Enclosure, Nats
from expost.queries import Query, check_query
from expost.solver import GAP, NODES, Effort, Progress
from expost.transcript import Transcript

__all__ = [
    "basic_loss",
    "realized_loss",
    "total_charge",
    "utilization",
    "worst_case_loss",
]


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
    total = log_likelihood(transcript.domain, transcript.exchanges)
    return total.closest(Effort(gap, nodes, threads, group, progress))


def worst_case_loss(query: Query, domain: Domain) -> Enclosure:
    r"""The guarantee of a query before any response: its epsilon, from its probabilities.

    .. math:: \max_y \log \frac{\max_x P[Q(x) = y]}{\min_x P[Q(x) = y]}
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return flat(domain).epsilon_of(query)


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
        total = log_likelihood(asked.domain, asked.exchanges)
        return total.utilization(total.closest(Effort()))
    check_query(asked)
    if domain is None:
        raise InvalidInput("the utilization of a query needs a domain")
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return flat(domain).utilization_of(asked)
