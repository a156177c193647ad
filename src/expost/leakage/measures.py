r"""Vulnerability and leakage (paper, sections 2.3, 3.4 and 4.5).

A vulnerability is what the best guess gains on average, an exact number from 0 to 1. A leakage is
the logarithm of the factor by which responses raise it, in nats, between the nearest doubles; it is
below zero where the best guess became worse. Proofs: docs/theory/leakage.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import overload

from expost.domains import FiniteSet, finite
from expost.errors import InvalidInput, expect
from expost.knowledge.belief import Belief, exact_likelihoods
from expost.leakage.channels import columns
from expost.leakage.gains import Gain
from expost.leakage.guesses import Guesses
from expost.leakage.search import Limits
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from expost.transcript import Transcript

__all__ = [
    "average_leakage",
    "bayes_capacity",
    "capacity",
    "expected_vulnerability",
    "leakage_history",
    "max_case_leakage",
    "posterior_vulnerability",
    "realized_leakage",
    "vulnerability",
]


def vulnerability(belief: Belief, gain: Gain) -> Fraction:
    r"""What the best guess gains under a belief.

    .. math:: V_g(Q) = \max_w \sum_x Q(x)\, g(w, x)
    """
    return _share(_guesses(belief, gain), belief)


def posterior_vulnerability(belief: Belief, gain: Gain, transcript: Transcript) -> Fraction:
    r"""What the best guess gains after the responses of a transcript.

    .. math:: V_g(Q \mid y) = \max_w \sum_x Q(x \mid y)\, g(w, x)
    """
    guesses = _guesses(belief, gain)
    return _share(guesses, belief.updated(transcript))


def realized_leakage(belief: Belief, gain: Gain, transcript: Transcript) -> Enclosure:
    r"""How much the responses of a transcript helped the best guess.

    .. math:: \log V_g(Q \mid y) - \log V_g(Q)

    Never above the realized loss, and never below minus that.
    """
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    return _log(_share(guesses, belief.updated(transcript)) / before)


def leakage_history(belief: Belief, gain: Gain, transcript: Transcript) -> tuple[Enclosure, ...]:
    """The realized leakage at the start and after each exchange, as in an odometer's history."""
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    expect(transcript, Transcript, "a transcript")
    result, now = [_log(Fraction(1))], belief
    for exchange in transcript.exchanges:
        now = now.updated(Transcript(transcript.domain).add(exchange.query, exchange.response))
        result.append(_log(_share(guesses, now) / before))
    return tuple(result)


def expected_vulnerability(belief: Belief, gain: Gain, query: Query | Sequence[Query]) -> Fraction:
    r"""What the best guess gains after a response, on average over the responses.

    .. math:: \sum_y Q(y)\, V_g(Q \mid y)

    ``query`` may be several queries that are asked whatever the responses.
    """
    guesses = _guesses(belief, gain)
    joint = columns(query, belief.domain)
    return (
        sum(
            (factor * guesses.best(_product(belief, column)) for column, factor in joint.items()),
            start=Fraction(0),
        )
        / belief.total
    )


def average_leakage(belief: Belief, gain: Gain, query: Query | Sequence[Query]) -> Enclosure:
    r"""How much a response helps the best guess, on average: never below zero.

    .. math:: \log \sum_y Q(y)\, V_g(Q \mid y) - \log V_g(Q)
    """
    before = _positive(_guesses(belief, gain), belief)
    return _log(expected_vulnerability(belief, gain, query) / before)


def max_case_leakage(belief: Belief, gain: Gain, query: Query | Sequence[Query]) -> Enclosure:
    r"""How much a response helps the best guess, at most.

    .. math:: \max_y \log V_g(Q \mid y) - \log V_g(Q)

    Over the responses that the belief holds possible. Never above the worst-case loss.
    """
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    after = (_product(belief, column) for column in columns(query, belief.domain))
    return _log(max(guesses.best(q) / sum(q) for q in after if any(q)) / before)


@overload
def capacity(gain: Gain, asked: Transcript, *, gap: float = ..., nodes: int = ...) -> Enclosure: ...
@overload
def capacity(
    gain: Gain,
    asked: Query | Sequence[Query],
    domain: FiniteSet,
    *,
    gap: float = ...,
    nodes: int = ...,
) -> Enclosure: ...
def capacity(
    gain: Gain,
    asked: Transcript | Query | Sequence[Query],
    domain: FiniteSet | None = None,
    *,
    gap: float = 0.001,
    nodes: int = 5_000,
) -> Enclosure:
    r"""The largest leakage under any prior: the g-capacity.

    .. math:: \sup_Q \log V_g(Q \mid y) - \log V_g(Q)

    Of a transcript for its responses y, of a query for the worst of its responses. Between the
    nearest doubles for :class:`Identity` and :class:`Property`. For others it is as wide as
    ``gap``, or wider if that takes more than ``nodes`` nodes; act on ``upper``.
    """
    expect(gain, Gain, "a gain function, such as Identity()")
    limits = Limits(gap, nodes)
    if isinstance(asked, Transcript):
        likelihoods = exact_likelihoods(asked)
        values = finite(asked.domain, "leakage needs a finite domain, not a box")
        if not any(likelihoods):
            raise InvalidInput("no value can have given these responses")
        return gain.on(values).capacity([likelihoods], limits)
    if domain is None:
        raise InvalidInput("the capacity of a query needs a domain")
    return gain.on(domain).capacity(list(columns(asked, domain)), limits)


def bayes_capacity(query: Query | Sequence[Query], domain: FiniteSet) -> Enclosure:
    r"""The largest average leakage under any prior and any gain function.

    .. math:: \log \sum_y \max_x P[y \mid x]

    A single guess at the value, with all values alike, reaches it (Alvim et al. 2012).
    """
    joint = columns(query, domain)
    return _log(sum((factor * max(column) for column, factor in joint.items()), start=Fraction(0)))


def _guesses(belief: Belief, gain: Gain) -> Guesses:
    expect(belief, Belief, "a belief")
    expect(gain, Gain, "a gain function, such as Identity()")
    return gain.on(belief.domain)


def _share(guesses: Guesses, belief: Belief) -> Fraction:
    return guesses.best(belief.weights) / belief.total


def _positive(guesses: Guesses, belief: Belief) -> Fraction:
    before = _share(guesses, belief)
    if before == 0:
        raise InvalidInput("no guess gains anything under this belief, so there is no leakage")
    return before


def _product(belief: Belief, column: Iterable[int]) -> list[int]:
    return [q * likelihood for q, likelihood in zip(belief.weights, column, strict=True)]


def _log(ratio: Fraction) -> Enclosure:
    return Nats(ratio=ratio).enclosure if ratio else Enclosure(-math.inf, -math.inf)
