"""How much more, or less, sure of a statement the responses make somebody."""

from __future__ import annotations

import math
from fractions import Fraction

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.knowledge.belief import Belief, confidence
from expost.knowledge.statement import Statement
from expost.loss.realized import worst_case_loss
from expost.numbers import Enclosure, Nats, double_above, double_below, scaled_exp
from expost.queries import Query
from expost.transcript import Transcript

__all__ = [
    "allowed_confidence",
    "exp_above",
    "gain_ratio",
    "knowledge_gain",
    "learning_limit",
    "nats_of",
]


def gain_ratio(belief: Belief, statement: Statement, transcript: Transcript) -> Fraction:
    r"""The knowledge gain as the paper writes it, exactly: a ratio.

    .. math:: Q(f \mid y) / Q(f)

    (Paper, section 2.2.)
    """
    before = confidence(belief, statement)
    if before == 0:
        raise InvalidInput("the belief rules the statement out, and no response changes that")
    return confidence(belief.updated(transcript), statement) / before


def knowledge_gain(belief: Belief, statement: Statement, transcript: Transcript) -> Enclosure:
    r"""The knowledge gain in nats: the logarithm of :func:`gain_ratio`, between nearest doubles.

    .. math:: \log Q(f \mid y) - \log Q(f)

    Negative where the responses speak against the statement, minus infinity where they rule it
    out. It is never further from zero than the realized loss. Proof: docs/theory/knowledge.md.
    """
    return nats_of(gain_ratio(belief, statement, transcript))


def nats_of(ratio: Fraction) -> Enclosure:
    """The logarithm of a ratio that may be zero."""
    return Nats(ratio=ratio).enclosure if ratio else Enclosure(-math.inf, -math.inf)


def learning_limit(query: Query, domain: Domain) -> Enclosure:
    """The most that a response can change anybody's confidence in any statement, in nats.

    It is the guarantee of the query before any response, so this is :func:`worst_case_loss`
    under the name that section 3.1 of the paper has for it. Proof: docs/theory/knowledge.md.
    """
    return worst_case_loss(query, domain)


# Beyond this e^-epsilon is no normal double, and 0 and 1 are as near as doubles get.
_LARGEST = 700
_BITS = 80


def allowed_confidence(before: Fraction, epsilon: Nats | Enclosure) -> Enclosure:
    r"""Between what a confidence can end up if the loss is at most epsilon.

    .. math:: \frac{p}{p + (1-p) e^\varepsilon} \le Q(f \mid y)
              \le \frac{p e^\varepsilon}{p e^\varepsilon + 1 - p}

    The odds change by a factor of e^epsilon at most, either way; no narrower range holds for every
    query. Rounded outward. Proof: docs/theory/knowledge.md.
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
    """A rational that is not below e^epsilon, and hardly above; None where that is too large."""
    if isinstance(epsilon, Enclosure):
        if not epsilon.upper <= _LARGEST:
            return None
        epsilon = Nats(Fraction(epsilon.upper))
    if epsilon.ratio is None or epsilon.rational > _LARGEST:
        return None
    if epsilon.rational == 0:
        return epsilon.ratio
    return epsilon.ratio * Fraction(scaled_exp(epsilon.rational, _BITS) + 1, 1 << _BITS)
