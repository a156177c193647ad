"""Privacy accounting after the fact for local differential privacy.

Names are imported when they are first used, so that ``import expost`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The redundant aliases tell type checkers that these names are public.
    from expost.answers import Answers as Answers
    from expost.audit.losses import Losses as Losses
    from expost.audit.losses import realized_losses as realized_losses
    from expost.audit.tables import load_answers as load_answers
    from expost.clients import ClientCheck as ClientCheck
    from expost.clients import check_client as check_client
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
    from expost.filters.approximate import ApproximateFilter as ApproximateFilter
    from expost.filters.basic import BasicFilter as BasicFilter
    from expost.filters.bayesian import BayesianFilter as BayesianFilter
    from expost.filters.by_rule import CompositionFilter as CompositionFilter
    from expost.filters.decision import Decision as Decision
    from expost.filters.filter import Filter as Filter
    from expost.filters.rules import Mixture as Mixture
    from expost.filters.rules import Renyi as Renyi
    from expost.filters.rules import Rogers as Rogers
    from expost.filters.rules import Rule as Rule
    from expost.filters.rules import Sums as Sums
    from expost.filters.rules import Whitehouse as Whitehouse
    from expost.filters.simplified import SimplifiedFilter as SimplifiedFilter
    from expost.knowledge import Composite as Composite
    from expost.knowledge import GainEstimate as GainEstimate
    from expost.knowledge import Samples as Samples
    from expost.knowledge import Statement as Statement
    from expost.knowledge import Witness as Witness
    from expost.knowledge import allowed_confidence as allowed_confidence
    from expost.knowledge import broken_limit as broken_limit
    from expost.knowledge import confidence as confidence
    from expost.knowledge import estimated_gain as estimated_gain
    from expost.knowledge import gain_ratio as gain_ratio
    from expost.knowledge import knowledge_gain as knowledge_gain
    from expost.knowledge import learning_limit as learning_limit
    from expost.knowledge import witness as witness
    from expost.knowledge.belief import Belief as Belief
    from expost.knowledge.priors import load_prior as load_prior
    from expost.loss.odometer import Odometer as Odometer
    from expost.loss.realized import realized_loss as realized_loss
    from expost.loss.realized import utilization as utilization
    from expost.loss.realized import worst_case_loss as worst_case_loss
    from expost.loss.replay import Replay as Replay
    from expost.loss.replay import replay as replay
    from expost.numbers import Enclosure as Enclosure
    from expost.numbers import Nats as Nats
    from expost.proof.certificate import Certificate as Certificate
    from expost.proof.certificate import certificate as certificate
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
    from expost.queries.delta import delta_at as delta_at
    from expost.queries.from_sklearn import from_sklearn as from_sklearn
    from expost.report.comparison import Comparison as Comparison
    from expost.report.comparison import compare as compare
    from expost.sampling import InsecureSource as InsecureSource
    from expost.sampling import Source as Source
    from expost.session.file import FileSession as FileSession
    from expost.session.interact import HALT as HALT
    from expost.session.interact import Halt as Halt
    from expost.session.interact import interact as interact
    from expost.session.session import Session as Session
    from expost.solver import Effort as Effort
    from expost.solver import Progress as Progress
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
    "ApproximateFilter": "filters.approximate",
    "BasicFilter": "filters.basic",
    "BayesianFilter": "filters.bayesian",
    "Belief": "knowledge.belief",
    "Box": "domains",
    "BudgetExceeded": "errors",
    "Certificate": "proof.certificate",
    "ClientCheck": "clients",
    "Comparison": "report.comparison",
    "Composite": "knowledge",
    "CompositionFilter": "filters.by_rule",
    "Decision": "filters.decision",
    "Distribution": "estimation",
    "Effort": "solver",
    "Enclosure": "numbers",
    "Exchange": "transcript",
    "ExpostError": "errors",
    "FileSession": "session.file",
    "Filter": "filters.filter",
    "FiniteSet": "domains",
    "Frequencies": "estimation",
    "GainEstimate": "knowledge",
    "HALT": "session.interact",
    "Halt": "session.interact",
    "InsecureSource": "sampling",
    "Intervals": "estimation",
    "InvalidInput": "errors",
    "Losses": "audit.losses",
    "Mean": "estimation",
    "Mixture": "filters.rules",
    "Nats": "numbers",
    "Odometer": "loss.odometer",
    "OutsideDomain": "errors",
    "Progress": "solver",
    "Query": "queries",
    "Renyi": "filters.rules",
    "Replay": "loss.replay",
    "Rogers": "filters.rules",
    "Rule": "filters.rules",
    "Samples": "knowledge",
    "Session": "session.session",
    "SimplifiedFilter": "filters.simplified",
    "Source": "sampling",
    "Statement": "knowledge",
    "Sums": "filters.rules",
    "Transcript": "transcript",
    "Whitehouse": "filters.rules",
    "Witness": "knowledge",
    "allowed_confidence": "knowledge",
    "broken_limit": "knowledge",
    "categories": "domains",
    "certificate": "proof.certificate",
    "channel": "queries",
    "check_client": "clients",
    "compare": "report.comparison",
    "confidence": "knowledge",
    "delta_at": "queries.delta",
    "duchi": "queries",
    "estimate_distribution": "estimation",
    "estimate_frequencies": "estimation",
    "estimate_mean": "estimation",
    "estimated_gain": "knowledge",
    "exponential_mechanism": "queries",
    "from_sklearn": "queries.from_sklearn",
    "gain_ratio": "knowledge",
    "gaussian": "queries",
    "geometric": "queries",
    "hadamard_response": "queries",
    "integers": "domains",
    "interact": "session.interact",
    "knowledge_gain": "knowledge",
    "laplace": "queries",
    "learning_limit": "knowledge",
    "linear": "queries",
    "load": "transcript",
    "load_answers": "audit.tables",
    "load_prior": "knowledge.priors",
    "local_hashing": "queries",
    "logistic": "queries",
    "perturbation": "queries",
    "piecewise": "queries",
    "probit": "queries",
    "randomized_response": "queries",
    "realized_loss": "loss.realized",
    "realized_losses": "audit.losses",
    "replay": "loss.replay",
    "subset_selection": "queries",
    "unary_encoding": "queries",
    "utilization": "loss.realized",
    "witness": "knowledge",
    "worst_case_loss": "loss.realized",
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
