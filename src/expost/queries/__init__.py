"""The query families, by the ``kind`` that they have in a file."""

from __future__ import annotations

from typing import Any

from expost.queries.base import BoxLikelihood, FiniteLikelihood, Likelihood, Query, check_query
from expost.queries.channel import Channel, channel
from expost.queries.duchi import Duchi, duchi
from expost.queries.exponential_mechanism import (
    ExponentialMechanism,
    exponential_mechanism,
)
from expost.queries.gaussian import Gaussian, gaussian
from expost.queries.geometric import Geometric, geometric
from expost.queries.hadamard_response import HadamardResponse, hadamard_response
from expost.queries.laplace import Laplace, laplace
from expost.queries.linear import Linear, linear
from expost.queries.local_hashing import LocalHashing, local_hashing
from expost.queries.logistic import Logistic, logistic
from expost.queries.perturbation import Perturbation, perturbation
from expost.queries.piecewise import Piecewise, piecewise
from expost.queries.probit import Probit, probit
from expost.queries.randomized_response import RandomizedResponse, randomized_response
from expost.queries.subset_selection import SubsetSelection, subset_selection
from expost.queries.unary_encoding import UnaryEncoding, unary_encoding
from expost.reading import of_kind

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
