"""What somebody can now know: statements, how sure of them the responses make one, who shows it."""

from __future__ import annotations

from expost.knowledge.belief import confidence
from expost.knowledge.composite import Composite
from expost.knowledge.gain import (
    allowed_confidence,
    gain_ratio,
    knowledge_gain,
    learning_limit,
    nats_of,
)
from expost.knowledge.samples import GainEstimate, Samples, estimated_gain
from expost.knowledge.statement import Statement
from expost.knowledge.witnesses import Witness, broken_limit, witness

__all__ = [
    "Composite",
    "GainEstimate",
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
    "nats_of",
    "witness",
]
