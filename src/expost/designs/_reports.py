"""Reports of a full value at the full budget: the mechanisms, and their outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, assert_never

import numpy as np

from expost._types import Floats, Indices
from expost.designs._accuracy import (
    ExactOutcomes,
    LikelihoodOutcomes,
    ObservedGroup,
    Outcomes,
    affordable_groups,
)
from expost.domains import Domain, FiniteSet
from expost.estimation._support import response_probabilities
from expost.knowledge import locate_all
from expost.queries import (
    LiftedLikelihood,
    Pairwise,
    Query,
    hadamard_response,
    randomized_response,
    subset_selection,
)

__all__ = [
    "FrequencyOutcomes",
    "Mechanism",
    "Report",
    "SubsetOutcomes",
    "response_table_on",
]

#: Subjects sampled for the information, if there are too many kinds of responses.
_SAMPLED_SUBJECTS = 20_000
_FEWEST_GROUPS = 8
_MOST_RESPONSES = 2_048
_MORE_GROUPS = 10
_MOST_PRODUCTS = 200_000_000


class Mechanism(Enum):
    """A mechanism that reports a value of a finite set (a frequency oracle)."""

    RANDOMIZED_RESPONSE = "randomized response"
    SUBSET_SELECTION = "subset selection"
    HADAMARD_RESPONSE = "Hadamard response"
    UNARY_ENCODING = "unary encoding"


@dataclass(frozen=True)
class Report:
    """One report of one of ``count`` values by a mechanism, which supports some of the values."""

    mechanism: Mechanism
    count: int
    epsilon: Fraction
    #: The number of values in a subset.
    size: int
    #: The probability that a report supports the true value.
    true: float
    #: The probability that it supports some other value.
    other: float
    #: The probability that it supports the true value and some other one.
    true_pair: float
    #: The probability that it supports two values that are not true.
    other_pair: float

    @classmethod
    def of(cls, mechanism: Mechanism, count: int, epsilon: Fraction) -> Report:
        """Return the report with the mechanism's best parameters."""
        ratio = math.exp(float(epsilon))
        match mechanism:
            case Mechanism.RANDOMIZED_RESPONSE | Mechanism.SUBSET_SELECTION:
                size = 1
                if mechanism is Mechanism.SUBSET_SELECTION:
                    size = min(count - 1, max(1, round(count / (ratio + 1))))
                true = size * ratio / (size * ratio + count - size)
                other = (size - true) / (count - 1)
                true_pair = true * (size - 1) / (count - 1)
                pairs = size * (size - 1) - 2 * true * (size - 1)
                other_pair = pairs / ((count - 1) * max(1, count - 2))
                chances = (true, other, true_pair, other_pair)
            case Mechanism.HADAMARD_RESPONSE:
                size, true = 1, ratio / (ratio + 1)
                chances = (true, 0.5, true / 2, 0.25)
            case Mechanism.UNARY_ENCODING:
                size, other = 1, 1 / (ratio + 1)
                chances = (0.5, other, other / 2, other**2)
            case _:
                assert_never(mechanism)
        return cls(mechanism, count, epsilon, size, *chances)

    @property
    def gap(self) -> float:
        """How much more likely a report supports the true value than another one."""
        return self.true - self.other

    def support_chances(self, weights: Floats) -> Floats:
        """Compute the probability that a report supports each value."""
        return np.asarray(self.other + self.gap * weights)

    def sum_of_variances(self, weights: Floats) -> float:
        """Sum the variances of the unbiased frequencies of all values, for one subject."""
        chances = self.support_chances(weights)
        return float((chances * (1 - chances)).sum()) / self.gap**2

    @property
    def is_listed(self) -> bool:
        """Whether its responses are few enough to list."""
        is_short = math.comb(self.count, self.size) <= _MOST_RESPONSES
        return is_short and self.mechanism is not Mechanism.UNARY_ENCODING

    @property
    def query(self) -> Query:
        """The query, if its responses are listed."""
        match self.mechanism:
            case Mechanism.RANDOMIZED_RESPONSE:
                return randomized_response(epsilon=self.epsilon)
            case Mechanism.SUBSET_SELECTION:
                return subset_selection(size=self.size, epsilon=self.epsilon)
            case Mechanism.HADAMARD_RESPONSE:
                return hadamard_response(order=1 << self.count.bit_length(), epsilon=self.epsilon)
            case Mechanism.UNARY_ENCODING:
                raise AssertionError("its responses are not listed")

    @property
    def table(self) -> Floats:
        """Pr(response | value), if the responses are listed."""
        return response_table_on(FiniteSet(range(self.count)), range(self.count), self.query)

    def is_likelihood_affordable(self, subjects: int) -> bool:
        """Return whether enough groups of so many subjects can be estimated by likelihood."""
        rows = min(subjects, math.comb(self.count, self.size))
        return affordable_groups(rows, self.count) >= _FEWEST_GROUPS

    def outcomes(self, groups: Indices, weights: Floats, subjects: int) -> Outcomes:
        """Return the outcomes of a report of each value's group."""
        cells = np.bincount(groups, weights, minlength=self.count).astype(np.float64)
        if self.is_likelihood_affordable(subjects):
            if self.is_listed:
                return ExactOutcomes.of(self.table[:, groups], weights, (1.0,), 1.0)
            if self.mechanism is Mechanism.SUBSET_SELECTION:
                ratio = math.exp(float(self.epsilon))
                return SubsetOutcomes(groups, cells, (1.0,), 1.0, self.size, ratio)
        return FrequencyOutcomes(groups, cells, (1.0,), 1.0, self)


@dataclass(frozen=True, eq=False)
class SubsetOutcomes(LikelihoodOutcomes):
    """Outcomes of subset selection with too many subsets of cells to list."""

    method: ClassVar[str] = "simulated"
    size: int
    #: The factor by which a set is more likely for the cells in it.
    ratio: float

    @cached_property
    def scores(self) -> Floats:
        rows, _ = self._draw_group(_SAMPLED_SUBJECTS, np.random.default_rng(0))
        return np.asarray(rows / (rows @ self.weights)[:, None] / math.sqrt(_SAMPLED_SUBJECTS))

    @property
    def kind_count(self) -> int:
        return math.comb(len(self.weights), self.size)

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[ObservedGroup]:
        for _ in range(repetitions):
            yield self._draw_group(subjects, generator)

    def _draw_group(self, subjects: int, generator: np.random.Generator) -> ObservedGroup:
        count, size = len(self.weights), self.size
        true_cells = generator.choice(count, size=subjects, p=self.weights)
        sort_keys = generator.random((subjects, count))
        inside_weight = size * self.ratio
        inside = generator.random(subjects) * (inside_weight + count - size) < inside_weight
        # The true cell sorts first if the subset has it, and last otherwise.
        sort_keys[np.arange(subjects), true_cells] = np.where(inside, -1.0, 2.0)
        chosen = np.argpartition(sort_keys, size - 1, axis=1)[:, :size]
        rows = np.full((subjects, count), 1 / self.ratio)
        np.put_along_axis(rows, chosen, 1.0, axis=1)
        return rows, np.ones(subjects)


@dataclass(frozen=True, eq=False)
class FrequencyOutcomes(Outcomes):
    """Reports of the full value, with too many values for an estimate by likelihood.

    A report supports some values. The share of reports that support a value gives its unbiased
    frequency, with a variance in closed form (Wang et al. 2017). The estimate is the distribution
    nearest to these frequencies. Cells are the values.
    """

    method: ClassVar[str] = "frequencies"
    report: Report

    def determined_part(self, rows: Floats) -> Floats:
        return rows

    def limit_variances(self, rows: Floats) -> Floats:
        report, chances = self.report, self.report.support_chances(self.weights)
        sums, means = rows.sum(axis=1), rows @ self.weights
        # Both of two values are supported with other_pair + slope · (sum of their weights).
        slope = report.true_pair - report.other_pair
        squares = rows**2 @ (chances - report.other_pair - 2 * slope * self.weights)
        squares += report.other_pair * sums**2 + 2 * slope * sums * means
        return np.asarray(np.maximum(0.0, (squares - (rows @ chances) ** 2) / report.gap**2))

    def errors(
        self, rows: Floats, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[tuple[Floats, Floats]]:
        report, weights = self.report, self.weights
        # A group takes so little that there can be more of them.
        repetitions = min(_MORE_GROUPS * repetitions, _MOST_PRODUCTS // rows.size)
        for counts in generator.multinomial(subjects, weights, size=repetitions):
            # The noise of different values is independent, except for a sum that is fixed where
            # each report supports the same number of values.
            support = generator.binomial(counts, report.true)
            support += generator.binomial(subjects - counts, report.other)
            frequencies = (support / subjects - report.other) / report.gap
            if report.mechanism in (Mechanism.RANDOMIZED_RESPONSE, Mechanism.SUBSET_SELECTION):
                frequencies += (1 - frequencies.sum()) / len(frequencies)
            nearest = _nearest_distribution(frequencies)
            yield rows @ (nearest - weights), rows @ (frequencies - weights)


def _nearest_distribution(frequencies: Floats) -> Floats:
    """Return the nearest probabilities that sum to one: subtract a constant and cut at zero."""
    descending = np.sort(frequencies)[::-1]
    constants = (np.cumsum(descending) - 1) / np.arange(1, len(descending) + 1)
    constant = constants[np.flatnonzero(descending > constants)[-1]]
    return np.asarray(np.maximum(0.0, frequencies - constant))


def response_table_on(domain: Domain, values: Iterable[Any], query: Query) -> Floats:
    """Compute Pr(response | value) at some values of a domain."""
    likelihood = query.on(domain)
    if isinstance(likelihood, Pairwise):
        # All responses are alike, and there may be very many entries.
        log_ratio = likelihood.epsilon.nearest
        supported = [likelihood.supported_values(y) for y in range(len(likelihood.responses))]
        rows = np.exp(log_ratio * np.array(supported, dtype=np.float64))
        return np.asarray(rows / rows.sum(axis=0))
    points: list[Any] = list(locate_all(domain, values))
    if isinstance(likelihood, LiftedLikelihood):
        # A row for each class of values is enough, of which there are few.
        return response_probabilities(likelihood.original)[likelihood.indices[points]].T
    pmfs = [likelihood.pmf(point) for point in points]
    positions = range(len(likelihood.responses))
    return np.array([[pmf.weight(y) / pmf.total for pmf in pmfs] for y in positions])
