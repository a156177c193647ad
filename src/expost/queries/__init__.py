"""The query families, by the ``kind`` that they have in a file."""

from __future__ import annotations

from typing import Any

from expost.files.reading import of_kind
from expost.queries.likelihood import BoxLikelihood, FiniteLikelihood, Likelihood
from expost.queries.noise.gaussian import Gaussian, gaussian
from expost.queries.noise.geometric import Geometric, geometric
from expost.queries.noise.laplace import Laplace, laplace
from expost.queries.noise.piecewise import Piecewise, piecewise
from expost.queries.query import Query, check_query
from expost.queries.scores.duchi import Duchi, duchi
from expost.queries.scores.linear import Linear, linear
from expost.queries.scores.logistic import Logistic, logistic
from expost.queries.scores.probit import Probit, probit
from expost.queries.tables.channel import Channel, channel
from expost.queries.tables.exponential_mechanism import ExponentialMechanism, exponential_mechanism
from expost.queries.tables.perturbation import Perturbation, perturbation
from expost.queries.values.hadamard_response import HadamardResponse, hadamard_response
from expost.queries.values.local_hashing import LocalHashing, local_hashing
from expost.queries.values.randomized_response import RandomizedResponse, randomized_response
from expost.queries.values.subset_selection import SubsetSelection, subset_selection
from expost.queries.values.unary_encoding import UnaryEncoding, unary_encoding

__all__ = [
    "FAMILIES",
    "BoxLikelihood",
    "Channel",
    "Duchi",
    "ExponentialMechanism",
    "FiniteLikelihood",
    "Gaussian",
    "Geometric",
    "HadamardResponse",
    "Laplace",
    "Likelihood",
    "Linear",
    "LocalHashing",
    "Logistic",
    "Perturbation",
    "Piecewise",
    "Probit",
    "Query",
    "RandomizedResponse",
    "SubsetSelection",
    "UnaryEncoding",
    "channel",
    "check_query",
    "duchi",
    "exponential_mechanism",
    "gaussian",
    "geometric",
    "hadamard_response",
    "laplace",
    "linear",
    "local_hashing",
    "logistic",
    "perturbation",
    "piecewise",
    "probit",
    "query_from_json",
    "randomized_response",
    "subset_selection",
    "unary_encoding",
]

FAMILIES: dict[str, type[Query]] = {
    family.kind: family
    for family in (
        Channel,
        RandomizedResponse,
        UnaryEncoding,
        SubsetSelection,
        LocalHashing,
        HadamardResponse,
        Geometric,
        ExponentialMechanism,
        Perturbation,
        Linear,
        Logistic,
        Probit,
        Duchi,
        Laplace,
        Gaussian,
        Piecewise,
    )
}


def query_from_json(value: Any) -> Query:
    """The query of a file, by its kind."""
    kind, fields = of_kind(value, FAMILIES, "query")
    return kind.from_json(fields)
