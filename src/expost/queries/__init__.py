"""The query families, by the ``kind`` that they have in a file."""

from __future__ import annotations

from typing import Any

from expost.errors import InvalidInput, at
from expost.queries.base import BoxLikelihood, FiniteLikelihood, Likelihood, Query, check_query
from expost.queries.channel import Channel, channel
from expost.queries.linear import Linear, linear
from expost.queries.logistic import Logistic, logistic
from expost.queries.perturbation import Perturbation, perturbation
from expost.queries.randomized_response import RandomizedResponse, randomized_response
from expost.reading import members, text

__all__ = [
    "FAMILIES",
    "BoxLikelihood",
    "Channel",
    "FiniteLikelihood",
    "Likelihood",
    "Linear",
    "Logistic",
    "Perturbation",
    "Query",
    "RandomizedResponse",
    "channel",
    "check_query",
    "linear",
    "logistic",
    "perturbation",
    "query_from_json",
    "randomized_response",
]

FAMILIES: dict[str, type[Query]] = {
    family.kind: family for family in (Channel, RandomizedResponse, Perturbation, Linear, Logistic)
}


def query_from_json(value: Any) -> Query:
    """The query of a file, by its kind."""
    fields = members(value, required=("kind",), optional=None)
    with at("kind"):
        kind = text(fields["kind"])
        family = FAMILIES.get(kind)
        if family is None:
            raise InvalidInput(f"unknown query; known: {', '.join(FAMILIES)}")
    return family.from_json({name: field for name, field in fields.items() if name != "kind"})
