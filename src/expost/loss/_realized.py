"""The realized loss, the worst case, and the share of one in the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import overload

from expost.domains import Domain
from expost.errors import InvalidInput, expect
from expost.loss._log_likelihood import (
    flat_log_likelihood,
    log_likelihood,
    share_of_charges,
    tightest_loss,
)
from expost.numbers import Enclosure, Nats
from expost.queries import Query, check_query
from expost.solver import GAP, Effort, Progress
from expost.transcript import Transcript, transcript_of

__all__ = ["basic_loss", "realized_loss", "share_of_basic", "total_charge", "worst_case_loss"]


def realized_loss(
    asked: object,
    *,
    gap: float = GAP,
    nodes: int | None = None,
    threads: int = 1,
    group: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Enclosure:
    r"""The most that an analyst can have learned from these responses, in nats.

    .. math:: \max_x \ell(x) - \min_x \ell(x), \quad \ell(x) = \sum_i \log P[Q_i(x) = y_i]

    ``asked`` is a transcript, a session or an odometer. The loss is infinite if the responses rule
    a value out. Over a finite domain the enclosure is the nearest doubles around the exact value.
    Over a box it is as wide as ``gap``, or wider if that takes more than ``nodes`` nodes, by
    default a few seconds of work; the other options are those of :class:`Effort`. Act on ``upper``.
    Proofs: docs/theory/realized_loss.md, docs/theory/extrema.md.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes")
    >>> round(xp.realized_loss(transcript).upper, 6)
    1.0
    >>> round(xp.realized_loss(transcript.add(query, "no")).upper, 6)
    0.0
    """
    transcript = transcript_of(asked)
    total = log_likelihood(transcript.domain, transcript.exchanges)
    return tightest_loss(total, Effort(gap, nodes, threads, group, progress))


def worst_case_loss(query: Query, domain: Domain) -> Enclosure:
    r"""What a query guarantees before any response: its epsilon, from its probabilities.

    .. math:: \max_y \log \frac{\max_x P[Q(x) = y]}{\min_x P[Q(x) = y]}

    >>> import expost as xp
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> round(worst_case_loss(query, xp.FiniteSet(["no", "yes"])).upper, 6)
    1.098612
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return flat_log_likelihood(domain).epsilon_of(query)


def basic_loss(transcript: Transcript) -> Nats:
    """What basic composition charges: the sum of the epsilons, exactly."""
    return total_charge(
        (exchange.query.ceiling(transcript.domain), 1) for exchange in transcript.exchanges
    )


def total_charge(charges: Iterable[tuple[Nats, int]]) -> Nats:
    """The sum of charges with their multiplicities."""
    return Nats.total(charges)


@overload
def share_of_basic(asked: Query, domain: Domain) -> Enclosure: ...


@overload
def share_of_basic(asked: Transcript) -> Enclosure: ...


def share_of_basic(asked: Query | Transcript, domain: Domain | None = None) -> Enclosure:
    """Return the realized loss as a share of basic composition (paper, section 3.3).

    For a query it is the smallest loss that one of its responses realizes, divided by its worst
    case: 1 exactly if the query fully utilizes its budget. For a transcript it is the realized loss
    divided by the sum of the epsilons. It is 0 if that sum is, and the enclosure is [0, 1] if both
    are infinite.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> round(share_of_basic(transcript).upper, 6)
    0.0
    """
    if isinstance(asked, Transcript):
        total = log_likelihood(asked.domain, asked.exchanges)
        return share_of_charges(total, tightest_loss(total, Effort()))
    check_query(asked)
    if domain is None:
        raise InvalidInput("the share of a query needs a domain")
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return flat_log_likelihood(domain).least_share_of_basic(asked)
