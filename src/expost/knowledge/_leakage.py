r"""Vulnerability and leakage (paper, sections 2.3, 3.4 and 4.5).

A vulnerability is the expected gain of the best guess, an exact number from 0 to 1. A leakage is
the logarithm of the factor by which responses raise it, in nats, between the nearest doubles. It is
negative if the best guess became worse. Proofs: docs/theory/knowledge.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import overload

import numpy as np

from expost.domains import Attributes, FiniteSet, require_finite
from expost.errors import InvalidInput, at, expect
from expost.files.reading import as_list
from expost.knowledge._belief import Belief, likelihoods_on
from expost.knowledge._capacity_search import Limits
from expost.knowledge._gain import nats_of
from expost.knowledge._gain_functions import GainFunction, Guesses
from expost.numbers import Enclosure
from expost.queries import Query, check_query, common_part, count_responses
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


def vulnerability(belief: Belief, gain: GainFunction) -> Fraction:
    r"""Return the expected gain of the best guess under a belief, before any response.

    .. math:: V_g(Q) = \max_w \sum_x Q(x)\, g(w, x)

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> vulnerability(Belief(smokes, {"no": "2/3", "yes": "1/3"}), Identity())
    Fraction(2, 3)
    """
    return _share(_guesses(belief, gain), belief)


def posterior_vulnerability(belief: Belief, gain: GainFunction, transcript: Transcript) -> Fraction:
    r"""Return the expected gain of the best guess after the responses of a transcript.

    .. math:: V_g(Q \mid y) = \max_w \sum_x Q(x \mid y)\, g(w, x)

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        transcript: The responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(smokes).add(query, 1)
    >>> posterior_vulnerability(Belief.uniform(smokes), Identity(), transcript)
    Fraction(3, 4)
    """
    return _share(_guesses(belief, gain), belief.updated(transcript))


def realized_leakage(belief: Belief, gain: GainFunction, transcript: Transcript) -> Enclosure:
    r"""Compute how much the responses of a transcript helped the best guess, in nats.

    .. math:: \log V_g(Q \mid y) - \log V_g(Q)

    Its absolute value is at most the realized loss, whatever the belief and the gain function.

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        transcript: The responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(smokes).add(query, 1)
    >>> leakage = realized_leakage(Belief.uniform(smokes), Identity(), transcript)
    >>> round(leakage.upper, 3), round(xp.realized_loss(transcript).upper, 3)
    (0.405, 1.099)
    """
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    return nats_of(_share(guesses, belief.updated(transcript)) / before)


def leakage_history(
    belief: Belief, gain: GainFunction, transcript: Transcript
) -> tuple[Enclosure, ...]:
    """Return the realized leakage at the start and after each exchange.

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        transcript: The responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(smokes).add(query, 1).add(query, 0)
    >>> history = leakage_history(Belief.uniform(smokes), Identity(), transcript)
    >>> [round(leakage.upper, 3) for leakage in history]
    [0.0, 0.405, 0.0]
    """
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    expect(transcript, Transcript, "a transcript")
    result, now = [nats_of(Fraction(1))], belief
    for exchange in transcript.exchanges:
        now = now.updated(
            Transcript(transcript.domain).add_position(exchange.query, exchange.position)
        )
        result.append(nats_of(_share(guesses, now) / before))
    return tuple(result)


def expected_vulnerability(
    belief: Belief, gain: GainFunction, query: Query | Sequence[Query]
) -> Fraction:
    r"""Return the gain of the best guess after a response, averaged over the responses.

    .. math:: \sum_y Q(y)\, V_g(Q \mid y)

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        query: The query, or a list of queries that are all asked, whatever the responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> expected_vulnerability(Belief.uniform(smokes), Identity(), [query] * 3)
    Fraction(27, 32)
    """
    guesses = _guesses(belief, gain)
    joint = channel_columns(query, belief.domain)
    pairs = ((_product(belief, column), factor) for column, factor in joint.items())
    total = sum((factor * guesses.best(weights) for weights, factor in pairs), start=Fraction(0))
    return total / belief.total


def average_leakage(
    belief: Belief, gain: GainFunction, query: Query | Sequence[Query]
) -> Enclosure:
    r"""Compute how much a response helps the best guess on average, in nats; never negative.

    .. math:: \log \sum_y Q(y)\, V_g(Q \mid y) - \log V_g(Q)

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        query: The query, or a list of queries that are all asked, whatever the responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> round(average_leakage(Belief.uniform(smokes), Identity(), query).upper, 3)
    0.405
    """
    before = _positive(_guesses(belief, gain), belief)
    return nats_of(expected_vulnerability(belief, gain, query) / before)


def max_case_leakage(
    belief: Belief, gain: GainFunction, query: Query | Sequence[Query]
) -> Enclosure:
    r"""Compute how much the most helpful response helps the best guess, in nats.

    .. math:: \max_y \log V_g(Q \mid y) - \log V_g(Q)

    The maximum is over the responses that are possible under the belief. It never exceeds the
    worst-case loss.

    Args:
        belief: The prior over the values of the domain.
        gain: What a guess is worth, such as :class:`Identity`.
        query: The query, or a list of queries that are all asked, whatever the responses.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/2", "1/2"]])
    >>> round(max_case_leakage(Belief.uniform(smokes), Identity(), query).upper, 3)
    0.288
    """
    guesses = _guesses(belief, gain)
    before = _positive(guesses, belief)
    after = (_product(belief, column) for column in channel_columns(query, belief.domain))
    return nats_of(max(guesses.best(q) / sum(q) for q in after if any(q)) / before)


@overload
def capacity(
    gain: GainFunction, transcript_or_query: Transcript, *, gap: float = ..., nodes: int = ...
) -> Enclosure: ...
@overload
def capacity(
    gain: GainFunction,
    transcript_or_query: Query | Sequence[Query],
    domain: FiniteSet | Attributes,
    *,
    gap: float = ...,
    nodes: int = ...,
) -> Enclosure: ...
def capacity(
    gain: GainFunction,
    transcript_or_query: Transcript | Query | Sequence[Query],
    domain: FiniteSet | Attributes | None = None,
    *,
    gap: float = 0.001,
    nodes: int = 5_000,
) -> Enclosure:
    r"""Return the largest leakage under any prior, in nats: the g-capacity.

    .. math:: \sup_Q \log V_g(Q \mid y) - \log V_g(Q)

    For a transcript, y are its responses. For a query on a ``domain``, y is the worst of its
    responses. It never exceeds the loss, and bounds what an adversary with this goal can gain. On
    :class:`Attributes` all queries have to be about one part of a record, and so is the goal.

    The result is within the nearest doubles for :class:`Identity` and :class:`Property`. For
    other gains its width is at most ``gap``, unless the search reaches its limit of ``nodes``.
    Act on ``upper``.

    >>> import expost as xp
    >>> from expost.knowledge import Identity
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> round(capacity(Identity(), query, smokes).upper, 3)
    0.405
    """
    expect(gain, GainFunction, "a gain function, such as Identity()")
    limits = Limits(gap, nodes)
    if isinstance(transcript_or_query, Transcript):
        values, likelihoods = _values_and_likelihoods(transcript_or_query)
        if not any(likelihoods):
            raise InvalidInput("no value can have given these responses")
        return gain.on(values).capacity([likelihoods], limits)
    if domain is None:
        raise InvalidInput("the capacity of a query needs a domain")
    queries, values = queries_on_part(transcript_or_query, domain)
    return gain.on(values).capacity(list(channel_columns(queries, values)), limits)


def bayes_capacity(query: Query | Sequence[Query], domain: FiniteSet | Attributes) -> Enclosure:
    r"""Return the largest average leakage under any prior and any gain function, in nats.

    .. math:: \log \sum_y \max_x P[y \mid x]

    One guess at the value under a uniform prior attains it (Alvim et al. 2012).

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> round(bayes_capacity(xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), smokes).upper, 3)
    0.405
    """
    joint = channel_columns(*queries_on_part(query, domain))
    terms = (factor * max(column) for column, factor in joint.items())
    return nats_of(sum(terms, start=Fraction(0)))


def _values_and_likelihoods(transcript: Transcript) -> tuple[FiniteSet, tuple[int, ...]]:
    """Return the values that responses are about, and the likelihood of each."""
    domain = transcript.domain
    values: FiniteSet
    if isinstance(domain, Attributes):
        queries = [summand.query for summand in transcript.tally]
        values = common_part(queries, domain, "leakage is for finite sets")
    else:
        values = require_finite(domain, "leakage needs a finite domain, not a box")
    return values, likelihoods_on(values, transcript.tally)


def _guesses(belief: Belief, gain: GainFunction) -> Guesses:
    expect(belief, Belief, "a belief (of records, belief.marginal(…) about a part)")
    expect(gain, GainFunction, "a gain function, such as Identity()")
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


#: From likelihoods in lowest terms to the factor that makes them probabilities.
#:
#: Responses with proportional likelihoods say the same about the value, so they are one column.
ChannelColumns = dict[tuple[int, ...], Fraction]

_MOST_ENTRIES = 1 << 22


def channel_columns(query: Query | Sequence[Query], domain: FiniteSet) -> ChannelColumns:
    """Return the columns of a query, or of several asked together.

    >>> import expost as xp
    >>> channel_columns(xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.FiniteSet(["no", "yes"]))
    {(3, 1): Fraction(1, 4), (1, 3): Fraction(1, 4)}
    """
    expect(domain, FiniteSet, "a FiniteSet: leakage is for finite domains")
    queries = [query] if isinstance(query, Query) else as_list(query)
    result: ChannelColumns = {(1,) * len(domain): Fraction(1)}
    for index, each_query in enumerate(queries):
        with at("" if isinstance(query, Query) else f"[{index}]", ""):
            check_query(each_query)
            single = _query_columns(each_query, domain)
            if len(result) * len(single) * len(domain) > _MOST_ENTRIES:
                raise InvalidInput(_too_many(len(result) * len(single), len(domain)))
        joint: ChannelColumns = defaultdict(Fraction)
        for first, share in result.items():
            for second, other in single.items():
                _add(joint, [a * b for a, b in zip(first, second, strict=True)], share * other)
        result = dict(joint)
    return result


def queries_on_part(
    query: Query | Sequence[Query], domain: FiniteSet | Attributes
) -> tuple[Query | Sequence[Query], FiniteSet]:
    """Return queries and their finite set; for records, the part that the queries are about."""
    if not isinstance(domain, Attributes):
        return query, domain
    queries = [query] if isinstance(query, Query) else as_list(query)
    for each_query in queries:
        check_query(each_query)
    return queries, common_part(queries, domain, "leakage is for finite sets")


def _query_columns(query: Query, domain: FiniteSet) -> ChannelColumns:
    likelihood = query.on(domain)
    count = count_responses(likelihood.responses)
    if count * len(domain) > _MOST_ENTRIES:
        raise InvalidInput(_too_many(count, len(domain)))
    result: ChannelColumns = defaultdict(Fraction)
    for position in range(count):
        weights = likelihood.weights(position)
        likeliest = int(np.argmax(weights))
        probability = likelihood.pmf(likeliest).probability(position)
        _add(result, weights.tolist(), probability / int(weights[likeliest]))
    return dict(result)


def _add(result: ChannelColumns, weights: Sequence[int], factor: Fraction) -> None:
    common = math.gcd(*weights)
    if common:  # a response that no value can give is none
        result[tuple(weight // common for weight in weights)] += factor * common


def _too_many(responses: int, values: int) -> str:
    shown = f"{responses:,}" if responses < 10**15 else f"about 10^{len(str(responses)) - 1}"
    return (
        f"{shown} responses on {values:,} values are too many to go through, which this measure "
        "needs; the leakage of responses that were given has no such limit"
    )
