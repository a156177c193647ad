"""What somebody can know after the responses: beliefs, statements, gains and witnesses."""

from __future__ import annotations

from expost.knowledge.composite import Composite
from expost.knowledge.gain import (
    allowed_confidence,
    gain_ratio,
    knowledge_gain,
    learning_limit,
    nats_of,
)
from expost.knowledge.samples import GainEstimate, Samples, estimated_gain
from expost.knowledge.statement import Statement, check_belief, confidence
from expost.knowledge.witnesses import Witness, broken_limit, witness

__all__ = [
    "Composite",
    "GainEstimate",
    "Samples",
    "Statement",
    "Witness",
    "allowed_confidence",
    "broken_limit",
    "check_belief",
    "confidence",
    "estimated_gain",
    "gain_ratio",
    "knowledge_gain",
    "learning_limit",
    "nats_of",
    "witness",
]
