"""What can be asked about a goal, at any epsilon: yes or no, a score, or one of several groups."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from expost._types import Floats, Indices
from expost.designs.outcomes import Kinds, Outcomes, Subsets
from expost.designs.support import Support
from expost.domains import Domain, FiniteSet
from expost.numbers import exact
from expost.queries import (
    LiftedLikelihood,
    Likelihood,
    Pairwise,
    Query,
    channel,
    hadamard_response,
    perturbation,
    randomized_response,
    subset_selection,
    two_weights,
)
from expost.queries.noise.piecewise import Piecewise
from expost.queries.scores.linear import Linear

__all__ = ["Group", "Question", "Score", "YesNo", "once", "table_of", "table_on"]

_MOST_SETS = 2_048
_FEWEST_STEPS, _MOST_STEPS = 64, 512


class Question(ABC):
    """A question of a study."""

    @abstractmethod
    def query(self, epsilon: Fraction) -> Query:
        """With two responses, or one for each group: for subjects who are asked repeatedly."""

    def best(self, support: Support, epsilon: Fraction) -> tuple[str, Floats]:
        """What tells most in one answer at this epsilon: its name, and Pr(response | value)."""
        return "", table_of(support, self.query(epsilon))

    @property
    def answers(self) -> Indices | None:
        """Of a question of yes or no: 1 or 0 for each value."""
        return None


@dataclass(frozen=True, eq=False)
class YesNo(Question):
    """A statement, which is true or false of each value."""

    says: Indices

    def query(self, epsilon: Fraction) -> Query:
        return perturbation(self.says.tolist(), range=(0, 1), epsilon=epsilon)

    @property
    def answers(self) -> Indices:
        return self.says


@dataclass(frozen=True, eq=False)
class Score(Question):
    """A score, of which one bit is told: a query at any other epsilon."""

    asked: Query

    def query(self, epsilon: Fraction) -> Query:
        query = self.asked.with_epsilon(epsilon)
        assert query is not None
        return query

    def best(self, support: Support, epsilon: Fraction) -> tuple[str, Floats]:
        """One bit, or the piecewise mechanism where that has the smaller variance."""
        one_bit = table_of(support, self.query(epsilon))
        wide = _piecewise(self.query(epsilon))
        if wide is None:
            return "one bit", one_bit
        table = table_of(support, wide)
        costs = [
            _variance(query, rows, support)
            for query, rows in ((self.query(epsilon), one_bit), (wide, table))
        ]
        return ("piecewise", table) if costs[1] < costs[0] else ("one bit", one_bit)


@dataclass(frozen=True, eq=False)
class Group(Question):
    """To which of several groups the value belongs: its own, or the value of one attribute."""

    of: Indices
    """The group of each value, from 0."""

    def query(self, epsilon: Fraction) -> Query:
        return _response_of_groups(epsilon, tuple(self.of.tolist()))

    def best(self, support: Support, epsilon: Fraction) -> tuple[str, Floats]:
        found = [
            (name, outcomes.table[:, outcomes.cells])
            for name, outcomes in once(self.of, support.weights, epsilon)
            if isinstance(outcomes, Kinds)
        ]
        # The least sum of variances, in the limit of many subjects.
        costs = [_cost(table, self.of, support.weights) for _, table in found]
        return found[int(np.argmin(costs))]


def once(of: Indices, weights: Floats, epsilon: Fraction) -> list[tuple[str, Outcomes]]:
    """List mechanisms that report the group of a value once, at this epsilon."""
    count, level = int(of.max()) + 1, float(epsilon)
    groups = FiniteSet(range(count))
    size = min(count - 1, max(1, round(count / (math.exp(level) + 1))))
    found: list[tuple[str, Outcomes]] = []

    def listed(name: str, query: Query) -> None:
        table = table_on(groups, range(count), query)[:, of]
        found.append((name, Kinds.of(table, weights, (1.0,), 1.0)))

    if size == 1:
        listed("randomized response", randomized_response(epsilon=epsilon))
    elif math.comb(count, size) <= _MOST_SETS:
        listed(f"subsets of {size}", subset_selection(size=size, epsilon=epsilon))
    else:
        sums = np.bincount(of, weights, minlength=count).astype(np.float64)
        found.append((f"subsets of {size}", Subsets(of, sums, size, math.exp(level))))
    if count > 2:
        order = 1 << count.bit_length()
        listed("Hadamard response", hadamard_response(order=order, epsilon=epsilon))
    return found


def table_of(support: Support, query: Query) -> Floats:
    """Pr(response | value): a row for each response, a column for each value of the support."""
    return table_on(support.domain, support.values, query)


def table_on(domain: Domain, values: Iterable[Any], query: Query) -> Floats:
    """The same at some values of a domain."""
    likelihood = query.on(domain)
    if isinstance(likelihood, Pairwise):
        # All responses are alike, and there may be very many entries.
        level = likelihood.epsilon.nearest
        spoken = [likelihood.supported_values(y) for y in range(len(likelihood.responses))]
        rows = np.exp(level * np.array(spoken, dtype=np.float64))
        return np.asarray(rows / rows.sum(axis=0))
    places = [domain.locate(value) for value in values]
    if isinstance(likelihood, LiftedLikelihood):
        # A row for each class of values is enough, of which there are few.
        classes = _listed(likelihood.seen, range(len(likelihood.seen.domain)))
        return np.asarray(classes.T[likelihood.where[np.array(places, dtype=np.intp)]].T)
    return _listed(likelihood, places)


def _listed(likelihood: Likelihood[Any], places: Iterable[Any]) -> Floats:
    pmfs = [likelihood.pmf(place) for place in places]
    positions = range(len(likelihood.responses))
    return np.array([[pmf.weight(y) / pmf.total for pmf in pmfs] for y in positions])


def _piecewise(query: Query) -> Query | None:
    """The piecewise mechanism about the same score, if its range has a grid of some hundred."""
    if not isinstance(query, Linear) or query.range is None:
        return None
    low, high = map(exact, query.range)
    common = Fraction(
        math.gcd(low.numerator * high.denominator, high.numerator * low.denominator),
        low.denominator * high.denominator,
    )
    steps = (high - low) / common
    if steps > _MOST_STEPS:
        return None
    grid = common / math.ceil(_FEWEST_STEPS / steps)
    narrow = Piecewise(query.score, query.range, grid, query.epsilon, 1)
    return replace(narrow, window=narrow.usual_window)


def _variance(query: Query, table: Floats, support: Support) -> float:
    """The mean variance of the unbiased estimate from one response."""
    meaning, responses = query.meaning(support.domain), query.on(support.domain).responses
    estimates = np.array([float(meaning.estimate(response)) for response in responses])
    return float((estimates**2 @ table - (estimates @ table) ** 2) @ support.weights)


def _cost(table: Floats, of: Indices, weights: Floats) -> float:
    """The sum of the variances of the shares of all groups, in the limit, for one subject."""
    outcomes = Kinds.of(table, weights, (1.0,), 1.0)
    if len(outcomes.weights) <= int(of.max()):
        return math.inf
    return float(np.trace(np.linalg.pinv(outcomes.information)))


@lru_cache(maxsize=64)
def _response_of_groups(epsilon: Fraction, of: tuple[int, ...]) -> Query:
    """Randomized response about groups, as a channel of classes."""
    count = max(of) + 1
    heavy, light = two_weights(epsilon)
    total = heavy + (count - 1) * light
    rows = [
        [Fraction(heavy if own == said else light, total) for said in range(count)]
        for own in range(count)
    ]
    return channel(rows, of=of)
