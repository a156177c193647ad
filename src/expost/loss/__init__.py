"""The realized loss of a transcript: its log-likelihood, the extremes of that, and the history."""

from __future__ import annotations

from expost.loss.odometer import Odometer
from expost.loss.realized import realized_loss, utilization, worst_case_loss
from expost.loss.replay import Replay

__all__ = [
    "Odometer",
    "Replay",
    "realized_loss",
    "utilization",
    "worst_case_loss",
]
