"""The delta of a query at an epsilon, from its probabilities."""

from __future__ import annotations

from fractions import Fraction
from typing import overload

from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.numbers import (
    Enclosure,
    ExactLike,
    double_above,
    double_below,
    exact,
    positive,
    scaled_exp,
)
from expost.queries.query import LARGEST_EPSILON, Query, check_query

__all__ = ["delta_at"]

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
    r"""The least δ at which a query is (ε, δ)-LDP.

    .. math:: \delta(\varepsilon) = \max_{x, x'} \sum_y
              \max(0,\; P[y \mid x] - e^\varepsilon P[y \mid x'])

    At ``ratio`` = e^ε it is an exact fraction. On a box only noise on a grid has one (laplace,
    gaussian). Proof: docs/theory/gaussian.md.

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
        return likelihood.delta(_at_least_one(ratio))
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


def _at_least_one(ratio: ExactLike) -> Fraction:
    with at("ratio"):
        value = exact(ratio)
        if value < 1:
            raise InvalidInput("must be at least 1")
        return value
