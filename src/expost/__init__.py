"""Privacy accounting after the fact for local differential privacy.

Names are imported when they are first used, so that ``import expost`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.accounting import (
        BasicFilter,
        BayesianFilter,
        Decision,
        Odometer,
        SimplifiedFilter,
    )
    from expost.domains import Box, FiniteSet, integers
    from expost.errors import BudgetExceeded, ExpostError, InvalidInput, OutsideDomain
    from expost.loss import realized_loss, utilization, worst_case_loss
    from expost.queries import channel, perturbation, randomized_response
    from expost.rounding import Enclosure
    from expost.sampling import InsecureSource
    from expost.session import HALT, Session, interact
    from expost.transcript import Exchange, Transcript, load

_HOME = {
    "BasicFilter": "accounting",
    "BayesianFilter": "accounting",
    "Box": "domains",
    "BudgetExceeded": "errors",
    "Decision": "accounting",
    "Enclosure": "rounding",
    "Exchange": "transcript",
    "ExpostError": "errors",
    "FiniteSet": "domains",
    "HALT": "session",
    "InsecureSource": "sampling",
    "InvalidInput": "errors",
    "Odometer": "accounting",
    "OutsideDomain": "errors",
    "Session": "session",
    "SimplifiedFilter": "accounting",
    "Transcript": "transcript",
    "channel": "queries",
    "integers": "domains",
    "interact": "session",
    "load": "transcript",
    "perturbation": "queries",
    "randomized_response": "queries",
    "realized_loss": "loss",
    "utilization": "loss",
    "worst_case_loss": "loss",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'expost' has no attribute {name!r}")
    value = getattr(import_module(f"expost.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
