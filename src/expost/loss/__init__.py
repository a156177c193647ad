"""The realized loss of a transcript: its log-likelihood, the extremes of that, and the history."""

from __future__ import annotations

from expost.loss._log_likelihood import LogLikelihood, log_likelihood
from expost.loss._odometer import Odometer
from expost.loss._realized import realized_loss, share_of_basic, worst_case_loss
from expost.loss._replay import Replay, replay

__all__ = [
    "LogLikelihood",
    "Odometer",
    "Replay",
    "log_likelihood",
    "realized_loss",
    "replay",
    "share_of_basic",
    "worst_case_loss",
]
