"""Knowledge gain: how much the responses change the confidence in a statement."""

from __future__ import annotations

import math
from fractions import Fraction

from expost.domains import Domain
from expost.errors import InvalidInput, expect
from expost.knowledge.belief import Belief
from expost.knowledge.record_belief import RecordBelief
from expost.knowledge.statement import Statement
from expost.loss import worst_case_loss
from expost.numbers import Enclosure, Nats, double_above, double_below, scaled_exp
from expost.queries import Query
from expost.transcript import Transcript

__all__ = [
    "AnyBelief",
    "allowed_confidence",
    "confidence",
    "exp_above",
    "gain_ratio",
    "knowledge_gain",
    "learning_limit",
    "nats_of",
]

AnyBelief = Belief | RecordBelief


def confidence(belief: AnyBelief, statement: Statement) -> Fraction:
    r"""The probability of a statement under a belief, exactly (paper, section 2.2).

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
    r"""The knowledge gain as the paper defines it: an exact ratio (section 2.2).

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
    r"""The knowledge gain in nats: the logarithm of :func:`gain_ratio`, within nearest doubles.

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
    """The logarithm of a ratio, within nearest doubles; minus infinity if the ratio is zero.

    >>> from fractions import Fraction
    >>> round(nats_of(Fraction(3, 2)).upper, 3)
    0.405
    """
    return Nats(ratio=ratio).enclosure if ratio else Enclosure(-math.inf, -math.inf)


def learning_limit(query: Query, domain: Domain) -> Enclosure:
    """The most that a response can change anybody's confidence in any statement, in nats.

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
    r"""The range that a confidence cannot leave if the loss is at most epsilon.

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
    """A rational that is at least e^epsilon and barely above it; None if it would be too large."""
    if isinstance(epsilon, Enclosure):
        if not epsilon.upper <= _LARGEST:
            return None
        epsilon = Nats(Fraction(epsilon.upper))
    if epsilon.ratio is None or epsilon.rational > _LARGEST:
        return None
    if epsilon.rational == 0:
        return epsilon.ratio
    return epsilon.ratio * Fraction(scaled_exp(epsilon.rational, _BITS) + 1, 1 << _BITS)
