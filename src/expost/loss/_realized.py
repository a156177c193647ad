"""The realized loss of a transcript, the worst case of a query, and shares of basic composition."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from expost.domains import Domain
from expost.errors import InvalidInput, expect
from expost.loss._log_likelihood import (
    log_likelihood,
    share_of_charges,
    tightest_loss,
)
from expost.numbers import Enclosure, Nats
from expost.queries import Query, check_query
from expost.solver import GAP, Effort, Progress
from expost.transcript import Transcript, transcript_of

__all__ = ["basic_loss", "realized_loss", "share_of_basic", "worst_case_loss"]


def realized_loss(
    history: object,
    *,
    gap: float = GAP,
    nodes: int | None = None,
    threads: int = 1,
    group: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Enclosure:
    r"""Bound what anyone who sees these responses can have learned, in nats.

    .. math:: \max_x \ell(x) - \min_x \ell(x), \quad \ell(x) = \sum_i \log P[Q_i(x) = y_i]

    The loss is infinite if the responses rule a value out. Act on ``upper``. Over a finite domain
    the enclosure is the nearest doubles around the exact value. Proofs:
    docs/theory/realized_loss.md, docs/theory/extrema.md.

    Args:
        history: A transcript, a session or an odometer.
        gap: The width of the enclosure over a box, in nats.
        nodes: The most nodes of the search over a box, by default a few seconds of work. If they
            do not suffice, the enclosure is wider than ``gap``.
        threads: See :class:`Effort`.
        group: See :class:`Effort`.
        progress: Called with the progress of the search.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes")
    >>> round(xp.realized_loss(transcript).upper, 6)
    1.0
    >>> round(xp.realized_loss(transcript.add(query, "no")).upper, 6)
    0.0
    """
    transcript = transcript_of(history)
    total = log_likelihood(transcript.domain, transcript.exchanges)
    return tightest_loss(total, Effort(gap, nodes, threads, group, progress))


def worst_case_loss(query: Query, domain: Domain) -> Enclosure:
    r"""Enclose the worst case of a query before any response, from its probabilities.

    .. math:: \max_y \log \frac{\max_x P[Q(x) = y]}{\min_x P[Q(x) = y]}

    >>> import expost as xp
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> round(worst_case_loss(query, xp.FiniteSet(["no", "yes"])).upper, 6)
    1.098612
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return log_likelihood(domain).epsilon_of(query)


def basic_loss(transcript: Transcript) -> Nats:
    """Return the bound of basic composition: the sum of the epsilons, exactly."""
    domain, exchanges = transcript.domain, transcript.exchanges
    return Nats.total((exchange.query.ceiling(domain), 1) for exchange in exchanges)


@overload
def share_of_basic(query_or_transcript: Query, domain: Domain) -> Enclosure: ...


@overload
def share_of_basic(query_or_transcript: Transcript) -> Enclosure: ...


def share_of_basic(
    query_or_transcript: Query | Transcript, domain: Domain | None = None
) -> Enclosure:
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
    if isinstance(query_or_transcript, Transcript):
        total = log_likelihood(query_or_transcript.domain, query_or_transcript.exchanges)
        return share_of_charges(total, tightest_loss(total, Effort()))
    check_query(query_or_transcript)
    if domain is None:
        raise InvalidInput("the share of a query needs a domain")
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    return log_likelihood(domain).least_share_of_basic(query_or_transcript)
