"""What an observer can know after the responses: beliefs, statements, gains and witnesses.

A :class:`Belief` says what an observer considers likely, and a :class:`Statement` what they want to
know. :func:`confidence` is how sure the belief makes them of the statement, and
:func:`knowledge_gain` how much the responses changed that, in nats. It never exceeds the realized
loss, whatever the belief and the statement; a :func:`witness` shows that the loss can be attained.
Over :class:`Attributes` a
:class:`RecordBelief` is a belief, and on a box :class:`Samples` take its place.

>>> import expost as xp
>>> from expost.knowledge import Belief, Statement, confidence
>>> ages = xp.FiniteSet([20, 40, 60, 80])
>>> before, old = Belief.uniform(ages), Statement(ages, "value >= 60")
>>> question = xp.perturbation([20, 40, 60, 80], range=(20, 80), epsilon=1)
>>> after = before.updated(xp.Transcript(ages).add(question, 80))
>>> confidence(before, old), round(float(confidence(after, old)), 3)
(Fraction(1, 2), 0.654)
"""

from __future__ import annotations

from expost.knowledge.belief import Belief
from expost.knowledge.composite import Composite
from expost.knowledge.gain import (
    allowed_confidence,
    confidence,
    gain_ratio,
    knowledge_gain,
    learning_limit,
    nats_of,
)
from expost.knowledge.priors import load_prior
from expost.knowledge.record_belief import RecordBelief
from expost.knowledge.samples import GainEstimate, Samples, estimated_gain
from expost.knowledge.statement import Statement
from expost.knowledge.witnesses import Witness, broken_limit, witness

__all__ = [
    "Belief",
    "Composite",
    "GainEstimate",
    "RecordBelief",
    "Samples",
    "Statement",
    "Witness",
    "allowed_confidence",
    "broken_limit",
    "confidence",
    "estimated_gain",
    "gain_ratio",
    "knowledge_gain",
    "learning_limit",
    "load_prior",
    "nats_of",
    "witness",
]
