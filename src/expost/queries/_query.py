"""The base class of queries: public parameters, and the likelihood on a domain."""

from __future__ import annotations

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self, assert_never, overload

from expost._format import format_number, shorten
from expost._types import PathLike
from expost.domains import Attributes, Box, Domain, FiniteSet, join_names
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import canonical_bytes, json_text, readable_tree
from expost.files.durable import save
from expost.files.kinds import QUERY, explain_wrong_kind, read_replaceable
from expost.files.reading import parse
from expost.numbers import (
    INFINITE,
    Enclosure,
    ExactLike,
    Nats,
    decimal_text,
    double_above,
    double_below,
    exact,
    positive,
    scaled_exp,
)
from expost.queries._divergences import randomized_response_cumulant
from expost.queries._identity_cache import IdentityCache
from expost.queries._likelihood import BoxLikelihood, FiniteLikelihood, Likelihood

__all__ = [
    "LARGEST_EPSILON",
    "Query",
    "QueryWithEpsilon",
    "UnbiasedScore",
    "check_epsilon",
    "check_query",
    "delta_at",
    "read_delta",
    "read_epsilon",
]

if TYPE_CHECKING:
    from expost.queries._about import About, PartLikelihood


LARGEST_EPSILON = 500


@dataclass(frozen=True, slots=True)
class UnbiasedScore:
    """A score in a range, and an unbiased estimate of it from every response."""

    range: tuple[int | float, int | float]
    estimate: Callable[[Any], Fraction | float]
    #: Return the variance of the estimate where the score is this: a polynomial of degree two.
    variance: Callable[[float], float]


class Query(ABC):
    """A frozen, public question with its noise; it knows nothing of the subject.

    Construct one with a function such as :func:`randomized_response`. A family of your own extends
    this class (docs/how-to/families.md).
    """

    kind: ClassVar[str]
    #: The nominal guarantee in nats; None if only the probabilities give it.
    epsilon: Fraction | None

    #: The query is (charge, delta)-LDP; if delta is 0, no response exceeds the charge.
    delta: Fraction = Fraction(0)

    #: The step that it is about, if the value changes.
    step: int | None = None

    #: The cap on losses of a query from :func:`saturating`; a label, as ``question``.
    cap: Fraction | None = None

    #: The question of a query from :func:`saturating`.
    #:
    #: It is a label: files have it, and the content id does not depend on it.
    question: str | None = None

    @property
    def approximate(self) -> bool:
        """Whether its guarantee needs a delta; then only a filter with a delta can accept it."""
        return self.delta.numerator > 0  # a comparison of fractions takes ten times as long

    @property
    def asks(self) -> str:
        """The question in words that follow "asked:"; ``explain`` adds the epsilon."""
        return self.kind.replace("_", " ")

    def asks_on(self, domain: Domain) -> str:
        """Return the question in words, with the weights or scores that matter on a domain."""
        return self.asks

    @property
    def steepness(self) -> Fraction | None:
        """A bound on how fast D(x, x') changes with epsilon; None if it never falls."""
        return None

    @abstractmethod
    def tree(self) -> dict[str, Any]:
        """Return the parameters as JSON: exact numbers as fractions, others as doubles."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: dict[str, Any]) -> Query:
        """Read the parameters, without ``kind``, strictly."""

    @abstractmethod
    def with_epsilon(self, epsilon: Fraction) -> Query | None:
        """Return the query with another epsilon and equal structure; None if it has no epsilon."""

    def work(self, domain: Domain) -> int:
        """Estimate the microseconds to set up its likelihood; 0 unless that takes long."""
        return 0

    @abstractmethod
    def on_set(self, domain: FiniteSet) -> FiniteLikelihood:
        """Compute the likelihood on a finite set; :meth:`on` caches it."""

    def on_box(self, domain: Box) -> BoxLikelihood:
        """Compute the likelihood on a box, for families that have one there."""
        raise InvalidInput(f"{self.kind} needs a finite domain, not a box")

    def on_attributes(self, domain: Attributes) -> PartLikelihood:
        """Compute the likelihood on records, for queries about some of their attributes."""
        raise InvalidInput(
            "the domain has attributes; call query.about(…) with some of "
            f"{join_names(domain.names)}",
            "about",
        )

    def about(self, *names: str, at: int | None = None) -> About:
        """Ask the query about one or several attributes of a record.

        It sees their combinations as a finite set, in the order of ``names``. If an attribute
        changes, ``at`` is the step.

        >>> import expost as xp
        >>> xp.randomized_response(epsilon=1).about("region", "smokes", at=3)
        RandomizedResponse(epsilon=1).about('region', 'smokes', at=3)
        """
        from expost.queries._about import About  # which is a query itself

        return About(self, names, at)

    @overload
    def on(self, domain: FiniteSet) -> FiniteLikelihood: ...
    @overload
    def on(self, domain: Attributes) -> PartLikelihood: ...
    @overload
    def on(self, domain: Box) -> BoxLikelihood: ...
    @overload
    def on(self, domain: Domain) -> Likelihood[Any]: ...

    def on(self, domain: Domain) -> Likelihood[Any]:
        """Return the likelihood on a domain."""
        return _likelihoods.get(self, domain, lambda: self._bound_to(domain))

    def _bound_to(self, domain: Domain) -> Likelihood[Any]:
        expect(domain, Domain, "a FiniteSet, Attributes or a Box")
        likelihood: Likelihood[Any]
        match domain:
            case FiniteSet():
                likelihood = self.on_set(domain)
            case Attributes():
                likelihood = self.on_attributes(domain)
            case Box():
                likelihood = self.on_box(domain)
            case _:
                assert_never(domain)
        is_ours = type(self).__module__.startswith("expost.")
        if self.epsilon is not None and not self.delta and not is_ours:
            check_epsilon(self.kind, self.epsilon, likelihood)
        return likelihood

    def meaning(self, domain: Domain) -> UnbiasedScore:
        """Return the score that the query is about, and an unbiased estimate of it by response."""
        raise InvalidInput(f"{self.kind} is not about a score, so it has no mean")

    def charge(self, domain: Domain) -> Nats:
        """Return what basic composition charges: the nominal epsilon, or else the worst case."""
        if self._nominal is not None:
            return self._nominal
        likelihood = self.on(domain)
        assert isinstance(likelihood, FiniteLikelihood), "on a box every query has an epsilon"
        return likelihood.epsilon

    def ceiling(self, domain: Domain) -> Nats:
        """Return a bound for all responses: the charge, or infinity if there is a delta."""
        return INFINITE if self.delta else self.charge(domain)

    def cumulant(self, domain: Domain, exponent: Fraction) -> float:
        r"""Bound the cumulant at λ of the log-likelihood ratio L of any two values from above.

        .. math:: K(\lambda) \ge \log E\left[e^{\lambda L}\right], \quad \lambda > 0

        By default that of randomized response; infinite if there is a delta.
        """
        if self.delta:
            return math.inf
        return randomized_response_cumulant(self.charge(domain), exponent)

    def tagged_tree(self) -> dict[str, Any]:
        """Return the kind and the parameters, as in files."""
        return {"kind": self.kind, **self.tree()}

    def labeled_tree(self) -> dict[str, Any]:
        """Return the tree of a file: the kind, the parameters, and the labels."""
        tree = self.tagged_tree()
        if self.question is not None:
            tree["question"] = self.question
        return tree if self.cap is None else {**tree, "cap": self.cap}

    def to_json(self) -> str:
        """Write the content of a file with this query, as in a transcript."""
        return json_text(readable_tree(self.labeled_tree()), indent=1) + "\n"

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write a query file, durably; :func:`load_query` reads it, as do ``decide`` and ``ask``.

        An existing file is replaced only if it is a query file, or with ``overwrite``.
        """
        expect(path, (str, os.PathLike), "the name of a file")
        if not overwrite:
            with at(os.fspath(path), ": "):
                read_replaceable(path, QUERY)
        save(path, self.to_json)

    @classmethod
    def from_json(cls, document: str) -> Self:
        """Read the content of a query file, strictly; a family reads no query of another one.

        >>> Query.from_json('{"kind": "randomized_response", "epsilon": "1"}')
        RandomizedResponse(epsilon=1)
        """
        from expost.queries import query_from_json  # which knows all families

        expect(document, str, "the text of a file")
        with explain_wrong_kind(QUERY, document):
            query = query_from_json(parse(document))
        if not isinstance(query, cls):
            raise InvalidInput(f"must be {cls.kind!r}, not {query.kind!r}", "kind")
        return query

    @cached_property
    def content_id(self) -> str:
        """SHA-256 of the canonical encoding: equal for equal queries."""
        return hashlib.sha256(canonical_bytes(self.tagged_tree())).hexdigest()

    @cached_property
    def _nominal(self) -> Nats | None:
        return None if self.epsilon is None else Nats(self.epsilon)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Query) and self.kind == other.kind and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash((self.kind, self.epsilon))


class QueryWithEpsilon(Query):
    """A frozen dataclass with a field ``epsilon``, which is read exactly as it was written."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    def with_epsilon(self, epsilon: Fraction) -> Self:
        # Every family is a dataclass. This base is none: its field would come before theirs.
        return replace(self, epsilon=epsilon)  # type: ignore[type-var]


# Four likelihoods on a million values, with a few doubles for each, stay below 200 MB.
_likelihoods = IdentityCache[Likelihood[Any]](attrgetter("footprint"), max_size=1 << 22)


def check_query(query: object) -> None:
    """Refuse anything that is not a query, with a helpful message."""
    expect(query, Query, "a query, such as randomized_response(epsilon=1)")


def read_epsilon(epsilon: ExactLike) -> Fraction:
    """Read a query's epsilon exactly as it was written."""
    return read_at("epsilon", positive, epsilon, at_most=LARGEST_EPSILON)


def read_delta(delta: ExactLike, field_name: str = "delta") -> Fraction:
    """Read a delta exactly as it was written."""
    with at(field_name):
        value = exact(delta)
        if not 0 < value < 1:
            raise InvalidInput(f"must be between 0 and 1, not {shorten(str(delta))}")
        return value


def check_epsilon(kind: str, epsilon: Fraction, likelihood: Likelihood[Any]) -> None:
    """Refuse a likelihood whose largest log-ratio is more than this epsilon.

    That is exact on a finite set. On a box what is certainly more is refused.
    """
    nominal = Nats(epsilon)
    if isinstance(likelihood, FiniteLikelihood):
        reached, respected = likelihood.epsilon.enclosure, likelihood.epsilon <= nominal
    elif isinstance(likelihood, BoxLikelihood):
        reached = likelihood.epsilon
        respected = reached.lower <= nominal.enclosure.upper
    else:
        return  # for a part of a record the likelihood on the part was checked
    if reached.lower == math.inf:
        raise InvalidInput(
            f"got {decimal_text(epsilon)}, but {kind} has a response that only some values can "
            "give, so its loss is infinite. Make every weight positive, or leave out epsilon",
            "epsilon",
        )
    if not respected:
        raise InvalidInput(
            f"got {decimal_text(epsilon)}, but the weights of {kind} have a loss of up to "
            f"{_shown(reached, epsilon)}. Round them so that no two weights of one response differ "
            "by more than a factor of e^epsilon",
            "epsilon",
        )


def _shown(reached: Enclosure, epsilon: Fraction) -> str:
    """Format with as many digits as distinguish it from the epsilon."""
    short = format_number(reached.upper)
    return repr(reached.upper) if Fraction(short) <= epsilon else short


_BITS = 160


@overload
def delta_at(query: Query, domain: Domain, epsilon: ExactLike) -> Enclosure: ...
@overload
def delta_at(query: Query, domain: Domain, *, ratio: ExactLike) -> Fraction: ...
def delta_at(
    query: Query,
    domain: Domain,
    epsilon: ExactLike | None = None,
    *,
    ratio: ExactLike | None = None,
) -> Enclosure | Fraction:
    r"""Return the least δ at which a query is (ε, δ)-LDP.

    .. math:: \delta(\varepsilon) = \max_{x, x'} \sum_y
              \max(0,\; P[y \mid x] - e^\varepsilon P[y \mid x'])

    At ``ratio`` = e^ε it is an exact fraction. On a box only noise on a grid has one (laplace,
    gaussian). Proof: docs/theory/approximate.md.

    >>> from expost import FiniteSet, channel
    >>> noisy = channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> delta_at(noisy, FiniteSet(["no", "yes"]), ratio=2)
    Fraction(1, 4)
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    if (epsilon is None) == (ratio is None):
        raise InvalidInput("give either epsilon or ratio")
    likelihood = query.on(domain)
    if epsilon is None:
        assert ratio is not None
        with at("ratio"):
            exact_ratio = exact(ratio)
            if exact_ratio < 1:
                raise InvalidInput(f"must be at least 1, not {shorten(str(ratio))}")
        return likelihood.delta(exact_ratio)
    with at("epsilon"):
        nats = exact(epsilon)
        if nats != 0:
            nats = positive(nats, at_most=LARGEST_EPSILON)
    below, unit = Fraction(1), Fraction(0)
    if nats:
        below, unit = Fraction(scaled_exp(nats, _BITS), 2**_BITS), Fraction(1, 2**_BITS)
    lower, upper = likelihood.delta(below + unit), likelihood.delta(below)
    # Adding zero turns -0.0 into 0.0.
    return Enclosure(double_below(lower), double_above(upper) + 0.0)
