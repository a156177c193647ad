"""Witnesses: a belief and a statement that prove that the loss is not an overestimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

from expost.domains import Attributes, Box, FiniteSet, Record, Value
from expost.errors import InvalidInput, at, expect
from expost.files.canonical import plain
from expost.knowledge.belief import Belief, exact_likelihoods
from expost.knowledge.gain import nats_of
from expost.knowledge.statement import Statement
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.loss._on_box import BoxLogLikelihood, exact_ratio
from expost.numbers import INFINITE, Enclosure, ExactLike, Nats, exact, positive
from expost.queries import About, Query, check_query
from expost.queries.likelihood import BySufficientTerms, FiniteLikelihood
from expost.queries.values.pairwise import Pairwise
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["Witness", "broken_limit", "witness"]

_IMPOSSIBLE = "no value can have given these responses"


@dataclass(frozen=True, slots=True)
class Witness:
    """A belief that is concentrated on two values, and the statement that it is one of them.

    :func:`witness` and :func:`broken_limit` return it, and have examples.
    """

    likeliest: Value | Record
    """A value that makes the responses likeliest."""
    unlikeliest: Value | Record
    """A value that makes them least likely."""
    belief: Belief
    statement: Statement
    before: Fraction
    after: Fraction
    loss: Nats
    """The exact realized loss; on a box, the exact lower bound that the two points prove."""
    response: Value | None = None
    """The response that breaks the limit, from :func:`broken_limit`."""

    @property
    def gain(self) -> Enclosure:
        """The knowledge gain in nats; minus infinity if the loss is infinite."""
        return nats_of(self.after / self.before)

    def tree(self) -> dict[str, Any]:
        """The witness as JSON; belief and statement follow from the two values."""
        return plain(
            {
                "likeliest": self.likeliest,
                "unlikeliest": self.unlikeliest,
                "before": float(self.before),
                "after": float(self.after),
                "gain": self.gain,
                "loss": self.loss.enclosure,
                "response": self.response,
            }
        )


def witness(transcript: Transcript, delta: ExactLike) -> Witness:
    r"""Find a belief and a statement whose gain is within ``delta`` nats of the realized loss.

    It proves that the loss is no overestimate. The belief gives the likeliest value a probability p
    and the unlikeliest one the rest; the statement says that the value is the likeliest one. With r
    the ratio of their likelihoods,

    .. math:: \log r - \text{gain} = \log(1 + p(r - 1)) \le \delta
              \quad\text{for}\quad p \le \delta / (r - 1) ,

    and p is the largest of 1/2, 1/3, … that is small enough.

    Of attributes the two values are records, as far as they were asked about, and the belief is
    over the labels "likeliest" and "unlikeliest". On a box they are the best points that a search
    finds, and the belief is over them alone. Their exact ratio takes the place of the realized
    loss, which is at least as large.

    If the loss is infinite, the statement is about the unlikeliest value instead: the responses
    rule it out, and the gain is minus infinity. (Paper, Lemma 3.2, where delta is about the ratio
    and p can be above one.) Proof: docs/theory/knowledge.md.

    >>> import expost as xp
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, 1)
    >>> found = witness(transcript, delta="0.01")
    >>> found.likeliest, found.before, found.after, found.loss
    ('yes', Fraction(1, 200), Fraction(3, 202), Nats(ln(3)))
    """
    expect(transcript, Transcript, "a transcript")
    with at("delta"):
        allowed = positive(delta, at_most=10**6)
    domain = transcript.domain
    match domain:
        case FiniteSet():
            return _between(domain, domain.values, exact_likelihoods(transcript), allowed)
        case Attributes():
            return _between_records(transcript, domain, allowed)
        case Box():
            return _between_points(transcript, domain, allowed)
        case _:
            assert_never(domain)


def _between_records(transcript: Transcript, domain: Attributes, allowed: Fraction) -> Witness:
    """Return a witness on two records, traced back from the exact extremes."""
    found = AttributesLogLikelihood.of(domain, transcript.exchanges).two_records
    if found is None:
        raise InvalidInput(_IMPOSSIBLE)
    records = [found.likeliest, found.unlikeliest]
    likelihoods = [found.ratio.denominator, found.ratio.numerator]
    names = FiniteSet(["likeliest", "unlikeliest"])
    return _between(names, records, likelihoods, allowed)


def _between_points(transcript: Transcript, box: Box, allowed: Fraction) -> Witness:
    """Return a witness on the two points that the search found, with their exact weights."""
    above, below = BoxLogLikelihood.of(box, transcript.exchanges).found(Effort())
    ratio = exact_ratio(transcript.tally, box, above, below)
    if ratio < 1:
        above, below, ratio = below, above, 1 / ratio
    points = list(dict.fromkeys((above, below)))
    likelihoods = [ratio.numerator, ratio.denominator][: len(points)]
    domain = FiniteSet(points, names=box.column_names)
    values = [box.value(point) for point in points]
    return _between(domain, values, likelihoods, allowed)


def _between(
    domain: FiniteSet,
    values: Sequence[Value | Record],
    likelihoods: Sequence[int],
    allowed: Fraction,
) -> Witness:
    """A witness on the values with the largest and the smallest likelihood."""
    highest, lowest = max(likelihoods), min(likelihoods)
    if highest == 0:
        raise InvalidInput(_IMPOSSIBLE)
    top, bottom = likelihoods.index(highest), likelihoods.index(lowest)
    loss, about, parts = INFINITE, bottom, 2
    if lowest > 0:
        ratio = Fraction(highest, lowest)
        loss, about, parts = Nats(ratio=ratio), top, max(2, math.ceil((ratio - 1) / allowed))
    weights = [0] * len(domain)
    weights[top] += 1
    weights[bottom] += parts - 1
    belief = Belief.from_weights(domain, weights)
    statement = Statement(domain, {domain.values[about]: 1})
    return Witness(
        likeliest=values[top],
        unlikeliest=values[bottom],
        belief=belief,
        statement=statement,
        before=belief.confidence(statement),
        after=belief.given(likelihoods).confidence(statement),
        loss=loss,
    )


def broken_limit(
    query: Query, domain: FiniteSet | Attributes, epsilon: ExactLike
) -> Witness | None:
    """Find a belief and a statement that gain more than ``epsilon`` from a response, if any do.

    The ``response`` of the result changes the confidence in its ``statement`` by more than a
    factor of e^epsilon. Such a witness exists if and only if the query is not epsilon-LDP.
    (Paper, Theorem 3.2.) Of attributes it is about the part that the query sees.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.randomized_response(epsilon=1)
    >>> broken_limit(query, smokes, 1) is None, broken_limit(query, smokes, "0.9").gain.lower > 0.9
    (True, True)
    """
    check_query(query)
    expect(domain, FiniteSet | Attributes, "a FiniteSet or Attributes")
    if isinstance(domain, Attributes):
        domain, query = query.on(domain).part, query.query if isinstance(query, About) else query
    with at("epsilon"):
        limit = Nats(exact(epsilon))
        if limit < Nats():
            raise InvalidInput("must not be negative")
    likelihood = query.on(domain)
    if likelihood.epsilon <= limit:
        return None
    response = likelihood.responses[_loudest(likelihood)]
    transcript, delta = Transcript(domain).add(query, response), Fraction(1)
    while True:
        found = witness(transcript, delta)
        if found.after == 0 or Nats(ratio=found.after / found.before) > limit:
            return replace(found, response=response)
        delta /= 2  # the loss is above the limit, so a gain near enough to it is as well


def _loudest(likelihood: FiniteLikelihood) -> int:
    """A response that realizes the largest loss."""
    if isinstance(likelihood, Pairwise):
        return likelihood.telling(0, int(likelihood.told_from(0).argmax()))
    assert isinstance(likelihood, BySufficientTerms), "these are the two kinds"
    return max(likelihood.sufficient, key=lambda position: likelihood.term(position).loss)
