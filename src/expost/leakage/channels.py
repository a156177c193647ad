"""The channel of one query, or of several together: a column of likelihoods per response."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from expost.domains import Attributes, FiniteSet
from expost.errors import InvalidInput, at, expect
from expost.files.reading import items
from expost.queries import About, Query, check_query
from expost.queries.about import common_part
from expost.queries.lazy import Lazy

__all__ = ["Columns", "columns", "on_part"]

Columns = dict[tuple[int, ...], Fraction]
"""From likelihoods in lowest terms to the factor that makes them probabilities.

Responses with proportional likelihoods say the same about the value, so they are one column.
"""

_MOST_ENTRIES = 1 << 22


def columns(asked: Query | Sequence[Query], domain: FiniteSet) -> Columns:
    """The columns of a query, or of several that are asked whatever the responses.

    >>> import expost as xp
    >>> columns(xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.FiniteSet(["no", "yes"]))
    {(3, 1): Fraction(1, 4), (1, 3): Fraction(1, 4)}
    """
    expect(domain, FiniteSet, "a FiniteSet: leakage is for finite domains")
    queries = [asked] if isinstance(asked, Query) else items(asked)
    result: Columns = {(1,) * len(domain): Fraction(1)}
    for index, query in enumerate(queries):
        with at("" if isinstance(asked, Query) else f"[{index}]", ""):
            check_query(query)
            single = _single(query, domain)
            if len(result) * len(single) * len(domain) > _MOST_ENTRIES:
                raise InvalidInput(_too_many(len(result) * len(single), len(domain)))
        joint: Columns = defaultdict(Fraction)
        for first, share in result.items():
            for second, other in single.items():
                _add(joint, [a * b for a, b in zip(first, second, strict=True)], share * other)
        result = dict(joint)
    return result


def on_part(
    asked: Query | Sequence[Query], domain: FiniteSet | Attributes
) -> tuple[Query | Sequence[Query], FiniteSet]:
    """Queries on a finite set; if they are about a part of records, on that part."""
    if not isinstance(domain, Attributes):
        return asked, domain
    queries = [asked] if isinstance(asked, Query) else items(asked)
    for query in queries:
        check_query(query)
    part = common_part(queries, domain, "leakage is for finite sets")
    return [query.query for query in queries if isinstance(query, About)], part


def _single(query: Query, domain: FiniteSet) -> Columns:
    likelihood = query.on(domain)
    responses = likelihood.responses
    # There can be more responses than len() can return.
    count = responses.size if isinstance(responses, Lazy) else len(responses)
    if count * len(domain) > _MOST_ENTRIES:
        raise InvalidInput(_too_many(count, len(domain)))
    result: Columns = defaultdict(Fraction)
    for position in range(count):
        weights = likelihood.weights(position)
        likeliest = int(np.argmax(weights))
        probability = likelihood.pmf(likeliest).probability(position)
        _add(result, weights.tolist(), probability / int(weights[likeliest]))
    return dict(result)


def _add(result: Columns, weights: Sequence[int], factor: Fraction) -> None:
    common = math.gcd(*weights)
    if common:  # a response that no value can give is none
        result[tuple(weight // common for weight in weights)] += factor * common


def _too_many(responses: int, values: int) -> str:
    shown = f"{responses:,}" if responses < 10**15 else f"about 10^{len(str(responses)) - 1}"
    return (
        f"{shown} responses on {values:,} values are too many to go through, which this measure "
        "needs; the leakage of responses that were given has no such limit"
    )
