"""Knowledge gain: how much the responses change the confidence in a statement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, assert_never

from expost.domains import Attributes, Box, Domain, FiniteSet, Record, Value
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import plain_tree
from expost.knowledge._belief import Belief, exact_likelihoods
from expost.knowledge._record_belief import RecordBelief
from expost.knowledge._statement import Statement
from expost.loss import worst_case_loss
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.loss._on_box import BoxLogLikelihood, exact_ratio
from expost.numbers import (
    INFINITE,
    Enclosure,
    ExactLike,
    Nats,
    double_above,
    double_below,
    exact,
    positive,
    scaled_exp,
)
from expost.queries import BySufficientTerms, FiniteLikelihood, Pairwise, Query, check_query
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = [
    "AnyBelief",
    "Witness",
    "allowed_confidence",
    "broken_limit",
    "confidence",
    "exp_above",
    "gain_ratio",
    "knowledge_gain",
    "learning_limit",
    "nats_of",
    "witness",
]

AnyBelief = Belief | RecordBelief


def confidence(belief: AnyBelief, statement: Statement) -> Fraction:
    r"""Return the probability of a statement under a belief, exactly (paper, section 2.2).

    .. math:: Q(f) = \sum_x P[f(x)] \, Q(x)

    >>> import expost as xp
    >>> from expost.knowledge import Belief, Statement
    >>> ages = xp.FiniteSet([20, 40, 60])
    >>> confidence(Belief.uniform(ages), Statement(ages, "value >= 40"))
    Fraction(2, 3)
    """
    expect(belief, AnyBelief, "a Belief")
    return belief.confidence(statement)


def gain_ratio(belief: AnyBelief, statement: Statement, transcript: Transcript) -> Fraction:
    r"""Return the knowledge gain as the paper defines it: an exact ratio (section 2.2).

    .. math:: Q(f \mid y) / Q(f)

    >>> import expost as xp
    >>> from expost.knowledge import Belief, Statement
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(smokes).add(query, 1)
    >>> gain_ratio(Belief.uniform(smokes), Statement(smokes, "value == 'yes'"), transcript)
    Fraction(3, 2)
    """
    before = confidence(belief, statement)
    if before == 0:
        raise InvalidInput("the belief rules the statement out, and no response changes that")
    return confidence(belief.updated(transcript), statement) / before


def knowledge_gain(belief: AnyBelief, statement: Statement, transcript: Transcript) -> Enclosure:
    r"""Return the knowledge gain in nats: the logarithm of :func:`gain_ratio`.

    .. math:: \log Q(f \mid y) - \log Q(f)

    It is negative if the responses speak against the statement, and minus infinity if they rule it
    out. Its absolute value is at most the realized loss. Proof: docs/theory/knowledge.md.

    >>> import expost as xp
    >>> from expost.knowledge import Belief, Statement
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> transcript = xp.Transcript(smokes).add(query, 1)
    >>> yes = Statement(smokes, "value == 'yes'")
    >>> gain = knowledge_gain(Belief.uniform(smokes), yes, transcript)
    >>> round(gain.upper, 3), round(xp.realized_loss(transcript).upper, 3)
    (0.405, 1.099)
    """
    return nats_of(gain_ratio(belief, statement, transcript))


def nats_of(ratio: Fraction) -> Enclosure:
    """Return the logarithm of a ratio, between nearest doubles; minus infinity for zero.

    >>> from fractions import Fraction
    >>> round(nats_of(Fraction(3, 2)).upper, 3)
    0.405
    """
    return Nats(ratio=ratio).enclosure if ratio else Enclosure(-math.inf, -math.inf)


def learning_limit(query: Query, domain: Domain) -> Enclosure:
    """Return the most that a response can change any confidence in any statement, in nats.

    It is what the query guarantees before any response, so this is :func:`worst_case_loss` under
    the name that it has in section 3.1 of the paper. Proof: docs/theory/knowledge.md.

    >>> import expost as xp
    >>> limit = learning_limit(xp.randomized_response(epsilon=1), xp.FiniteSet(["no", "yes"]))
    >>> round(limit.upper, 6)
    1.0
    """
    return worst_case_loss(query, domain)


# Beyond this e^-epsilon is not a normal double, and no bounds are much better than 0 and 1.
_LARGEST = 700
_BITS = 80


def allowed_confidence(before: Fraction, epsilon: Nats | Enclosure) -> Enclosure:
    r"""Return the range that a confidence cannot leave if the loss is at most epsilon.

    .. math:: \frac{p}{p + (1-p) e^\varepsilon} \le Q(f \mid y)
              \le \frac{p e^\varepsilon}{p e^\varepsilon + 1 - p}

    The odds change by at most a factor of e^epsilon, either way; no narrower range holds for every
    query. ``before`` is the confidence p before any response. The range is rounded outward. Proof:
    docs/theory/knowledge.md.

    >>> from fractions import Fraction
    >>> import expost as xp
    >>> budget = xp.BayesianFilter(epsilon=1).budget
    >>> allowed = allowed_confidence(Fraction(1, 10), budget)
    >>> round(allowed.lower, 3), round(allowed.upper, 3)
    (0.039, 0.232)
    """
    if not 0 <= before <= 1:
        raise InvalidInput("a confidence is between 0 and 1")
    if before in (0, 1):
        return Enclosure(float(before), float(before))
    factor = exp_above(epsilon)
    if factor is None:
        return Enclosure(0.0, 1.0)
    lowest = before / (before + (1 - before) * factor)
    highest = before * factor / (before * factor + 1 - before)
    return Enclosure(double_below(lowest), double_above(highest))


def exp_above(epsilon: Nats | Enclosure) -> Fraction | None:
    """Return a rational just above e^epsilon, or None if it would be too large."""
    if isinstance(epsilon, Enclosure):
        if not epsilon.upper <= _LARGEST:
            return None
        epsilon = Nats(Fraction(epsilon.upper))
    if epsilon.ratio is None or epsilon.rational > _LARGEST:
        return None
    if epsilon.rational == 0:
        return epsilon.ratio
    return epsilon.ratio * Fraction(scaled_exp(epsilon.rational, _BITS) + 1, 1 << _BITS)


_IMPOSSIBLE = "no value can have given these responses"


@dataclass(frozen=True, slots=True)
class Witness:
    """A belief that is concentrated on two values, and the statement that it is one of them.

    :func:`witness` and :func:`broken_limit` return it, and have examples.
    """

    #: A value that makes the responses likeliest.
    likeliest: Value | Record
    #: A value that makes them least likely.
    unlikeliest: Value | Record
    belief: Belief
    statement: Statement
    before: Fraction
    after: Fraction
    #: The exact realized loss; on a box, the exact lower bound that the two points prove.
    loss: Nats
    #: The response that breaks the limit, from :func:`broken_limit`.
    response: Value | None = None

    @property
    def gain(self) -> Enclosure:
        """The knowledge gain in nats; minus infinity if the loss is infinite."""
        return nats_of(self.after / self.before)

    def tree(self) -> dict[str, Any]:
        """Return the witness as JSON; belief and statement follow from the two values."""
        tree = {
            "likeliest": self.likeliest,
            "unlikeliest": self.unlikeliest,
            "before": float(self.before),
            "after": float(self.after),
            "gain": self.gain,
            "loss": self.loss.enclosure,
            "response": self.response,
        }
        return plain_tree(tree)


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
    allowed = read_at("delta", positive, delta, at_most=10**6)
    domain = transcript.domain
    match domain:
        case FiniteSet():
            return _find_witness(domain, domain.values, exact_likelihoods(transcript), allowed)
        case Attributes():
            return _between_records(transcript, domain, allowed)
        case Box():
            return _between_points(transcript, domain, allowed)
        case _:
            assert_never(domain)


def _between_records(transcript: Transcript, domain: Attributes, allowed: Fraction) -> Witness:
    """Return a witness on two records, traced back from the exact extremes."""
    extremes = AttributesLogLikelihood.of(domain, transcript.exchanges).two_records
    if extremes is None:
        raise InvalidInput(_IMPOSSIBLE)
    records = [extremes.likeliest, extremes.unlikeliest]
    likelihoods = [extremes.ratio.denominator, extremes.ratio.numerator]
    return _find_witness(FiniteSet(["likeliest", "unlikeliest"]), records, likelihoods, allowed)


def _between_points(transcript: Transcript, box: Box, allowed: Fraction) -> Witness:
    """Return a witness on the two points that the search found, with their exact weights."""
    above, below = BoxLogLikelihood.of(box, transcript.exchanges).searched_points(Effort())
    ratio = exact_ratio(transcript.tally, box, above, below)
    if ratio < 1:
        above, below, ratio = below, above, 1 / ratio
    points = list(dict.fromkeys((above, below)))
    likelihoods = [ratio.numerator, ratio.denominator][: len(points)]
    domain = FiniteSet(points, names=box.column_names)
    return _find_witness(domain, [box.value(point) for point in points], likelihoods, allowed)


def _find_witness(
    domain: FiniteSet,
    values: Sequence[Value | Record],
    likelihoods: Sequence[int],
    allowed: Fraction,
) -> Witness:
    """Return a witness on the values with the largest and the smallest likelihood."""
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
        after=belief.posterior(likelihoods).confidence(statement),
        loss=loss,
    )


def broken_limit(
    query: Query, domain: FiniteSet | Attributes, epsilon: ExactLike
) -> Witness | None:
    """Find a belief and a statement that gain more than ``epsilon`` from a response, if any do.

    The ``response`` of the result changes the confidence in its ``statement`` by more than a
    factor of e^epsilon. Such a witness exists if and only if the query is not epsilon-LDP.
    (Paper, Theorem 3.2.) Of attributes it is about the part that the query sees.

    Args:
        query: The query to test.
        domain: The values that the subject may have.
        epsilon: The limit that a response would have to break.

    Returns:
        The belief, the statement and the response; None if the query is epsilon-LDP.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> query = xp.randomized_response(epsilon=1)
    >>> broken_limit(query, smokes, 1) is None, broken_limit(query, smokes, "0.9").gain.lower > 0.9
    (True, True)
    """
    check_query(query)
    expect(domain, FiniteSet | Attributes, "a FiniteSet or Attributes")
    if isinstance(domain, Attributes):
        domain = query.on(domain).part
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
        candidate = witness(transcript, delta)
        if candidate.after == 0 or Nats(ratio=candidate.after / candidate.before) > limit:
            return replace(candidate, response=response)
        delta /= 2  # the loss is above the limit, so a gain near enough to it is as well


def _loudest(likelihood: FiniteLikelihood) -> int:
    """Return a response that realizes the largest loss."""
    if isinstance(likelihood, Pairwise):
        return likelihood.separating_response(0, int(likelihood.separated_from(0).argmax()))
    assert isinstance(likelihood, BySufficientTerms), "these are the two kinds"
    return max(likelihood.sufficient, key=lambda position: likelihood.term(position).loss)
