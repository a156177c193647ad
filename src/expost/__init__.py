"""Privacy accounting after the fact for local differential privacy.

Names are imported when they are first used, so that ``import expost`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The redundant aliases tell type checkers that these names are public.
    from expost.accounting import BasicFilter as BasicFilter
    from expost.accounting import BayesianFilter as BayesianFilter
    from expost.accounting import Decision as Decision
    from expost.accounting import Filter as Filter
    from expost.accounting import Odometer as Odometer
    from expost.accounting import SimplifiedFilter as SimplifiedFilter
    from expost.domains import Box as Box
    from expost.domains import FiniteSet as FiniteSet
    from expost.domains import integers as integers
    from expost.errors import BudgetExceeded as BudgetExceeded
    from expost.errors import ExpostError as ExpostError
    from expost.errors import InvalidInput as InvalidInput
    from expost.errors import OutsideDomain as OutsideDomain
    from expost.extrema import Effort as Effort
    from expost.extrema import Progress as Progress
    from expost.loss import realized_loss as realized_loss
    from expost.loss import realized_losses as realized_losses
    from expost.loss import utilization as utilization
    from expost.loss import worst_case_loss as worst_case_loss
    from expost.queries import Query as Query
    from expost.queries import channel as channel
    from expost.queries import linear as linear
    from expost.queries import logistic as logistic
    from expost.queries import perturbation as perturbation
    from expost.queries import randomized_response as randomized_response
    from expost.rounding import Enclosure as Enclosure
    from expost.rounding import Nats as Nats
    from expost.sampling import InsecureSource as InsecureSource
    from expost.sampling import Source as Source
    from expost.session import HALT as HALT
    from expost.session import Halt as Halt
    from expost.session import Session as Session
    from expost.session import interact as interact
    from expost.transcript import Exchange as Exchange
    from expost.transcript import Transcript as Transcript
    from expost.transcript import load as load

__all__ = [
    "HALT",
    "BasicFilter",
    "BayesianFilter",
    "Box",
    "BudgetExceeded",
    "Decision",
    "Effort",
    "Enclosure",
    "Exchange",
    "ExpostError",
    "Filter",
    "FiniteSet",
    "Halt",
    "InsecureSource",
    "InvalidInput",
    "Nats",
    "Odometer",
    "OutsideDomain",
    "Progress",
    "Query",
    "Session",
    "SimplifiedFilter",
    "Source",
    "Transcript",
    "channel",
    "integers",
    "interact",
    "linear",
    "load",
    "logistic",
    "perturbation",
    "randomized_response",
    "realized_loss",
    "realized_losses",
    "utilization",
    "worst_case_loss",
]
__version__ = "0.1.0"

_HOME = {
    "BasicFilter": "accounting",
    "BayesianFilter": "accounting",
    "Box": "domains",
    "BudgetExceeded": "errors",
    "Decision": "accounting",
    "Effort": "extrema",
    "Enclosure": "rounding",
    "Exchange": "transcript",
    "ExpostError": "errors",
    "Filter": "accounting",
    "FiniteSet": "domains",
    "HALT": "session",
    "Halt": "session",
    "InsecureSource": "sampling",
    "InvalidInput": "errors",
    "Nats": "rounding",
    "Odometer": "accounting",
    "OutsideDomain": "errors",
    "Progress": "extrema",
    "Query": "queries",
    "Session": "session",
    "SimplifiedFilter": "accounting",
    "Source": "sampling",
    "Transcript": "transcript",
    "channel": "queries",
    "integers": "domains",
    "interact": "session",
    "linear": "queries",
    "load": "transcript",
    "logistic": "queries",
    "perturbation": "queries",
    "randomized_response": "queries",
    "realized_loss": "loss",
    "realized_losses": "loss",
    "utilization": "loss",
    "worst_case_loss": "loss",
}

if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for Any

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'expost' has no attribute {name!r}")
        value = getattr(import_module(f"expost.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
