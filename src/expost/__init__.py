"""Privacy accounting after the fact for local differential privacy.

Names are imported when they are first used, so that ``import expost`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The redundant aliases tell type checkers that these names are public.
    from expost.accounting import ApproximateFilter as ApproximateFilter
    from expost.accounting import BasicFilter as BasicFilter
    from expost.accounting import BayesianFilter as BayesianFilter
    from expost.accounting import CompositionFilter as CompositionFilter
    from expost.accounting import Decision as Decision
    from expost.accounting import Filter as Filter
    from expost.accounting import Odometer as Odometer
    from expost.accounting import Replay as Replay
    from expost.accounting import SimplifiedFilter as SimplifiedFilter
    from expost.accounting import replay as replay
    from expost.answers import Answers as Answers
    from expost.belief import Belief as Belief
    from expost.certificates import Certificate as Certificate
    from expost.certificates import certificate as certificate
    from expost.clients import ClientCheck as ClientCheck
    from expost.clients import check_client as check_client
    from expost.comparison import Comparison as Comparison
    from expost.comparison import compare as compare
    from expost.composition import Mixture as Mixture
    from expost.composition import Renyi as Renyi
    from expost.composition import Rogers as Rogers
    from expost.composition import Rule as Rule
    from expost.composition import Sums as Sums
    from expost.composition import Whitehouse as Whitehouse
    from expost.delta import delta_at as delta_at
    from expost.domains import Box as Box
    from expost.domains import FiniteSet as FiniteSet
    from expost.domains import categories as categories
    from expost.domains import integers as integers
    from expost.errors import BudgetExceeded as BudgetExceeded
    from expost.errors import ExpostError as ExpostError
    from expost.errors import InvalidInput as InvalidInput
    from expost.errors import OutsideDomain as OutsideDomain
    from expost.estimation import Distribution as Distribution
    from expost.estimation import Frequencies as Frequencies
    from expost.estimation import Intervals as Intervals
    from expost.estimation import Mean as Mean
    from expost.estimation import estimate_distribution as estimate_distribution
    from expost.estimation import estimate_frequencies as estimate_frequencies
    from expost.estimation import estimate_mean as estimate_mean
    from expost.extrema import Effort as Effort
    from expost.extrema import Progress as Progress
    from expost.file_session import FileSession as FileSession
    from expost.interop.priors import load_prior as load_prior
    from expost.interop.sklearn import from_sklearn as from_sklearn
    from expost.interop.tables import load_answers as load_answers
    from expost.knowledge import Composite as Composite
    from expost.knowledge import GainEstimate as GainEstimate
    from expost.knowledge import Samples as Samples
    from expost.knowledge import Statement as Statement
    from expost.knowledge import Witness as Witness
    from expost.knowledge import allowed_confidence as allowed_confidence
    from expost.knowledge import broken_limit as broken_limit
    from expost.knowledge import check_belief as check_belief
    from expost.knowledge import confidence as confidence
    from expost.knowledge import estimated_gain as estimated_gain
    from expost.knowledge import gain_ratio as gain_ratio
    from expost.knowledge import knowledge_gain as knowledge_gain
    from expost.knowledge import learning_limit as learning_limit
    from expost.knowledge import witness as witness
    from expost.loss import realized_loss as realized_loss
    from expost.loss import utilization as utilization
    from expost.loss import worst_case_loss as worst_case_loss
    from expost.losses import Losses as Losses
    from expost.losses import realized_losses as realized_losses
    from expost.queries import Query as Query
    from expost.queries import channel as channel
    from expost.queries import duchi as duchi
    from expost.queries import exponential_mechanism as exponential_mechanism
    from expost.queries import gaussian as gaussian
    from expost.queries import geometric as geometric
    from expost.queries import hadamard_response as hadamard_response
    from expost.queries import laplace as laplace
    from expost.queries import linear as linear
    from expost.queries import local_hashing as local_hashing
    from expost.queries import logistic as logistic
    from expost.queries import perturbation as perturbation
    from expost.queries import piecewise as piecewise
    from expost.queries import probit as probit
    from expost.queries import randomized_response as randomized_response
    from expost.queries import subset_selection as subset_selection
    from expost.queries import unary_encoding as unary_encoding
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
    "Answers",
    "ApproximateFilter",
    "BasicFilter",
    "BayesianFilter",
    "Belief",
    "Box",
    "BudgetExceeded",
    "Certificate",
    "ClientCheck",
    "Comparison",
    "Composite",
    "CompositionFilter",
    "Decision",
    "Distribution",
    "Effort",
    "Enclosure",
    "Exchange",
    "ExpostError",
    "FileSession",
    "Filter",
    "FiniteSet",
    "Frequencies",
    "GainEstimate",
    "Halt",
    "InsecureSource",
    "Intervals",
    "InvalidInput",
    "Losses",
    "Mean",
    "Mixture",
    "Nats",
    "Odometer",
    "OutsideDomain",
    "Progress",
    "Query",
    "Renyi",
    "Replay",
    "Rogers",
    "Rule",
    "Samples",
    "Session",
    "SimplifiedFilter",
    "Source",
    "Statement",
    "Sums",
    "Transcript",
    "Whitehouse",
    "Witness",
    "allowed_confidence",
    "broken_limit",
    "categories",
    "certificate",
    "channel",
    "check_belief",
    "check_client",
    "compare",
    "confidence",
    "delta_at",
    "duchi",
    "estimate_distribution",
    "estimate_frequencies",
    "estimate_mean",
    "estimated_gain",
    "exponential_mechanism",
    "from_sklearn",
    "gain_ratio",
    "gaussian",
    "geometric",
    "hadamard_response",
    "integers",
    "interact",
    "knowledge_gain",
    "laplace",
    "learning_limit",
    "linear",
    "load",
    "load_answers",
    "load_prior",
    "local_hashing",
    "logistic",
    "perturbation",
    "piecewise",
    "probit",
    "randomized_response",
    "realized_loss",
    "realized_losses",
    "replay",
    "subset_selection",
    "unary_encoding",
    "utilization",
    "witness",
    "worst_case_loss",
]
__version__ = "0.1.0"

_HOME = {
    "Answers": "answers",
    "ApproximateFilter": "accounting",
    "BasicFilter": "accounting",
    "BayesianFilter": "accounting",
    "Belief": "belief",
    "Box": "domains",
    "BudgetExceeded": "errors",
    "Certificate": "certificates",
    "ClientCheck": "clients",
    "Comparison": "comparison",
    "Composite": "knowledge",
    "CompositionFilter": "accounting",
    "Decision": "accounting",
    "Distribution": "estimation",
    "Effort": "extrema",
    "Enclosure": "rounding",
    "Exchange": "transcript",
    "ExpostError": "errors",
    "FileSession": "file_session",
    "Filter": "accounting",
    "FiniteSet": "domains",
    "Frequencies": "estimation",
    "GainEstimate": "knowledge",
    "HALT": "session",
    "Halt": "session",
    "InsecureSource": "sampling",
    "Intervals": "estimation",
    "InvalidInput": "errors",
    "Losses": "losses",
    "Mean": "estimation",
    "Mixture": "composition",
    "Nats": "rounding",
    "Odometer": "accounting",
    "OutsideDomain": "errors",
    "Progress": "extrema",
    "Query": "queries",
    "Renyi": "composition",
    "Replay": "accounting",
    "Rogers": "composition",
    "Rule": "composition",
    "Samples": "knowledge",
    "Session": "session",
    "SimplifiedFilter": "accounting",
    "Source": "sampling",
    "Statement": "knowledge",
    "Sums": "composition",
    "Transcript": "transcript",
    "Whitehouse": "composition",
    "Witness": "knowledge",
    "allowed_confidence": "knowledge",
    "broken_limit": "knowledge",
    "categories": "domains",
    "certificate": "certificates",
    "channel": "queries",
    "check_belief": "knowledge",
    "check_client": "clients",
    "compare": "comparison",
    "confidence": "knowledge",
    "delta_at": "delta",
    "duchi": "queries",
    "estimate_distribution": "estimation",
    "estimate_frequencies": "estimation",
    "estimate_mean": "estimation",
    "estimated_gain": "knowledge",
    "exponential_mechanism": "queries",
    "from_sklearn": "interop.sklearn",
    "gain_ratio": "knowledge",
    "gaussian": "queries",
    "geometric": "queries",
    "hadamard_response": "queries",
    "integers": "domains",
    "interact": "session",
    "knowledge_gain": "knowledge",
    "laplace": "queries",
    "learning_limit": "knowledge",
    "linear": "queries",
    "load": "transcript",
    "load_answers": "interop.tables",
    "load_prior": "interop.priors",
    "local_hashing": "queries",
    "logistic": "queries",
    "perturbation": "queries",
    "piecewise": "queries",
    "probit": "queries",
    "randomized_response": "queries",
    "realized_loss": "loss",
    "realized_losses": "losses",
    "replay": "accounting",
    "subset_selection": "queries",
    "unary_encoding": "queries",
    "utilization": "loss",
    "witness": "knowledge",
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
