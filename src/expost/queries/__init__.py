"""The query families, by the ``kind`` that they have in a file.

Families are grouped by what they are about: the value itself (``values``), a table (``tables``),
one bit about a score (``scores``), and a number or a score with noise (``noise``).
"""

from __future__ import annotations

from typing import Any, TypeVar

from expost._types import PathLike
from expost.errors import InvalidInput, at
from expost.files.reading import array, split_kind
from expost.files.regular import read_file
from expost.queries._about import About, LiftedLikelihood, PartLikelihood, common_part, read_about
from expost.queries._divergences import randomized_response_cumulant
from expost.queries._likelihood import (
    BitProbabilities,
    BoxLikelihood,
    BySufficientTerms,
    FiniteLikelihood,
    LazyResponses,
    Likelihood,
    Pairwise,
    count_responses,
    two_weights,
)
from expost.queries._query import (
    LARGEST_EPSILON,
    Query,
    QueryWithEpsilon,
    UnbiasedScore,
    check_query,
    delta_at,
    read_delta,
)
from expost.queries.noise._discrete_gaussian import GaussianNoise
from expost.queries.noise._integer_noise import NoisyInteger
from expost.queries.noise.gaussian import Gaussian, gaussian
from expost.queries.noise.geometric import Geometric, geometric
from expost.queries.noise.laplace import Laplace, laplace
from expost.queries.noise.piecewise import Piecewise, piecewise
from expost.queries.scores._aligned import BoxScore, SetScore
from expost.queries.scores._one_bit import OneBitGrid, one_bit_weights
from expost.queries.scores.duchi import Duchi, duchi
from expost.queries.scores.linear import Linear, linear
from expost.queries.scores.logistic import Logistic, logistic
from expost.queries.scores.probit import Probit, probit
from expost.queries.tables._table import TableLikelihood
from expost.queries.tables.channel import Channel, channel
from expost.queries.tables.exponential_mechanism import ExponentialMechanism, exponential_mechanism
from expost.queries.tables.perturbation import Perturbation, perturbation
from expost.queries.tables.survey_designs import (
    SURVEY_DESIGNS,
    crosswise,
    forced_response,
    unrelated_question,
    warner,
)
from expost.queries.values.hadamard_response import HadamardResponse, hadamard_response
from expost.queries.values.local_hashing import LocalHashing, local_hashing
from expost.queries.values.randomized_response import RandomizedResponse, randomized_response
from expost.queries.values.subset_selection import SubsetSelection, subset_selection
from expost.queries.values.unary_encoding import UnaryEncoding, unary_encoding

__all__ = [
    "FAMILIES",
    "LARGEST_EPSILON",
    "SURVEY_DESIGNS",
    "About",
    "BitProbabilities",
    "BoxLikelihood",
    "BoxScore",
    "BySufficientTerms",
    "Channel",
    "Duchi",
    "ExponentialMechanism",
    "FiniteLikelihood",
    "Gaussian",
    "GaussianNoise",
    "Geometric",
    "HadamardResponse",
    "Laplace",
    "LazyResponses",
    "LiftedLikelihood",
    "Likelihood",
    "Linear",
    "LocalHashing",
    "Logistic",
    "NoisyInteger",
    "OneBitGrid",
    "Pairwise",
    "PartLikelihood",
    "Perturbation",
    "Piecewise",
    "Probit",
    "Query",
    "QueryWithEpsilon",
    "RandomizedResponse",
    "SetScore",
    "SubsetSelection",
    "TableLikelihood",
    "UnaryEncoding",
    "UnbiasedScore",
    "channel",
    "check_query",
    "common_part",
    "count_responses",
    "crosswise",
    "delta_at",
    "duchi",
    "exponential_mechanism",
    "forced_response",
    "gaussian",
    "geometric",
    "hadamard_response",
    "laplace",
    "linear",
    "load_query",
    "local_hashing",
    "logistic",
    "one_bit_weights",
    "perturbation",
    "piecewise",
    "probit",
    "query_from_json",
    "randomized_response",
    "randomized_response_cumulant",
    "read_about",
    "read_delta",
    "register",
    "subset_selection",
    "two_weights",
    "unary_encoding",
    "unrelated_question",
    "warner",
]

Family = TypeVar("Family", bound=Query)

FAMILIES: dict[str, type[Query]] = {
    family.kind: family
    for family in (
        Channel, RandomizedResponse, UnaryEncoding, SubsetSelection, LocalHashing, HadamardResponse,
        Geometric, ExponentialMechanism, Perturbation, Linear, Logistic, Probit, Duchi, Laplace,
        Gaussian, Piecewise,
    )
}  # fmt: skip


def register(family: type[Family]) -> type[Family]:
    """Make a query family of your own known, so that files can hold its queries: a class decorator.

    Sessions, losses and reports then work with it, and transcripts are saved and read again. The
    checker of proofs shares no code with this package, so it rejects the family as "unknown kind".
    Import the module of the family before reading such a file. docs/how-to/families.md walks
    through an example.
    """
    kind = getattr(family, "kind", None)
    if not isinstance(family, type) or not issubclass(family, Query):
        raise InvalidInput("must be a class of queries: one that extends Query")
    if not isinstance(kind, str) or not kind.isidentifier():
        raise InvalidInput("must be a name, such as 'my_family'", "kind")
    registered = FAMILIES.get(kind)
    # A module that is run again defines its classes again.
    redefined = registered is not None and _name(registered) == _name(family)
    if registered is not None and not redefined:
        raise InvalidInput(f"{kind!r} is taken by {registered.__name__}", "kind")
    FAMILIES[kind] = family
    return family


def _name(family: type[Query]) -> tuple[str, str]:
    return family.__module__, family.__qualname__


def load_query(path: PathLike) -> Query:
    """Read a file with one query, strictly: unknown fields and duplicate keys are errors.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import expost as xp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xp.randomized_response(epsilon=1).save(Path(folder) / "smokes.json")
    ...     xp.queries.load_query(Path(folder) / "smokes.json")
    RandomizedResponse(epsilon=1)
    """
    return read_file(path, Query.from_json)


def query_from_json(value: Any) -> Query:
    """Read the query of a file, by its ``kind``; an error names the field.

    >>> query_from_json({"kind": "randomized_response", "epsilon": "1"})
    RandomizedResponse(epsilon=1)
    """
    kind, fields = split_kind(value, FAMILIES, "query")
    if "about" not in fields:
        if "at" in fields:
            raise InvalidInput("requires about", "at")
        return kind.from_fields(fields)
    with at("about"):
        names = tuple(array(fields.pop("about")))
    if fields.get("at", 0) is None:
        raise InvalidInput("must be an integer; leave it out if no attribute changes", "at")
    step = fields.pop("at", None)
    return About(kind.from_fields(fields), names, step)
