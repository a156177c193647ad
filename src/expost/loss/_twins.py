r"""ℓ of two records that are equal except within one unit: how much they can differ.

.. math:: \max \ell(x) - \ell(x') \quad \text{over } x, x' \text{ that differ within the unit}

The variables of the unit appear twice, as twins, and all others once. Every table that touches
the unit is added for the first record and subtracted, with twins in place of its variables, for
the second. All other tables cancel. The largest sum is found by the same elimination as the
extremes of ℓ. Proof: docs/theory/levels.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from expost._types import Bools, Floats, Indices
from expost.domains import Attributes, Variable
from expost.filters import WorstCase
from expost.filters._levels import Unit
from expost.loss._components import Component, Marginals
from expost.loss._elimination import rank
from expost.loss._exponents import Combination, DistinctLikelihoods
from expost.loss._on_attributes import join_tables, query_about_part, split_components
from expost.loss._query_marginal import enclose, repeated, rounded_sum_error
from expost.loss._tables import ExactResponseTable, ResponseTable
from expost.numbers import Enclosure, ExactSum, Nats, down
from expost.queries import BySufficientTerms, FiniteLikelihood, Pairwise, PartLikelihood, Query
from expost.terms import multiply

__all__ = ["Pairs", "TwinLikelihood", "Twins"]


@dataclass(frozen=True, eq=False)
class _SubtractedExactTable(ExactResponseTable):
    """Exact likelihoods of the second record, by which those of the first are divided."""

    def powers(self, indices: Indices, sign: int) -> DistinctLikelihoods:
        likelihoods, index_of = super().powers(indices, sign)
        inverse = [Counter({b: -n for b, n in powers.items()}) for powers in likelihoods]
        return DistinctLikelihoods(inverse, index_of)


@dataclass(frozen=True, eq=False)
class _SubtractedTable(ResponseTable):
    """The table of the second record, which is subtracted."""

    @cached_property
    def exact(self) -> ExactResponseTable:
        return _SubtractedExactTable(self.variables, self.part, self.on_part.tally)

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        values = self.on_part.values.reshape(self.part.sizes).transpose(self.exact.axes)
        return np.stack([-values, values])

    def at(self, combination: Combination) -> Counter[int]:
        raise AssertionError("no record is looked up in a table that is subtracted")


@dataclass(frozen=True, slots=True)
class Twins:
    """The variables of a record, those of a unit twice."""

    domain: Attributes
    unit: Unit

    def of(self, variables: Iterable[Variable]) -> tuple[Variable, ...]:
        """Return the variables of the second record."""
        suffix = self.domain.twins[1]
        return tuple((v[0] + suffix, v[1]) if self.unit.has(v) else v for v in variables)

    def tables(self, table: ResponseTable) -> tuple[ResponseTable, ResponseTable]:
        """Return the table of the first record, and that of the second."""
        return table, _SubtractedTable(self.of(table.variables), table.on_part)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a query sees of two records: the indices of both, for every combination of a target."""

    #: The variables of the target in the order of axes, and their sizes.
    target: tuple[Variable, ...]
    sizes: tuple[int, ...]
    first: Indices
    second: Indices

    @classmethod
    def of(cls, twins: Twins, likelihood: PartLikelihood) -> Pairs:
        variables = likelihood.variables
        others = twins.of(variables)
        size = dict(zip((*variables, *others), likelihood.part.sizes * 2, strict=True))
        target = tuple(sorted(size, key=rank))
        sizes = tuple(size[variable] for variable in target)
        axes = tuple(target.index(variable) for variable in variables)
        other_axes = tuple(target.index(variable) for variable in others)
        return cls(target, sizes, _part_indices(sizes, axes), _part_indices(sizes, other_axes))


@lru_cache(maxsize=64)
def _part_indices(sizes: tuple[int, ...], axes: tuple[int, ...]) -> Indices:
    """Return the index in the part that a query sees, for every combination of a target."""
    coordinates = np.unravel_index(np.arange(math.prod(sizes)), sizes)
    part_sizes = [sizes[axis] for axis in axes]
    indices = np.ravel_multi_index([coordinates[axis] for axis in axes], part_sizes)
    return indices.astype(np.intp)


def _told_apart(likelihood: Pairwise, pairs: Pairs) -> Bools:
    """Return for every combination of a target whether the query distinguishes the records."""
    apart = np.zeros(len(pairs.first), dtype=np.bool_)
    order = np.argsort(pairs.first, kind="stable")
    starts = np.searchsorted(pairs.first[order], np.arange(len(likelihood.domain) + 1)).tolist()
    for value in range(len(likelihood.domain)):
        rows = order[starts[value] : starts[value + 1]]
        apart[rows] = likelihood.separated_from(value)[pairs.second[rows]]
    return apart


@dataclass(frozen=True, eq=False)
class TwinLikelihood:
    """The difference of ℓ of two records that are equal except within a unit."""

    twins: Twins
    components: tuple[Component, ...]

    @classmethod
    def of(cls, twins: Twins, tables: Iterable[ResponseTable]) -> TwinLikelihood:
        """Return the difference from the tables that touch the unit."""
        both = [twin for table in tables for twin in twins.tables(table)]
        return cls(twins, tuple(join_tables(twins.domain.twins[0], both)))

    def add(self, query: Query, position: int) -> TwinLikelihood:
        """Return the difference after one more response."""
        likelihood = query.on(self.twins.domain)
        tied, other_components = self._split(likelihood.variables)
        matching = (table for table in tied.tables if table.variables == likelihood.variables)
        table = next(matching, None) or ResponseTable.flat(likelihood)
        first, second = self.twins.tables(table.add(query_about_part(query), position))
        component = tied.with_table(first).with_table(second)
        component.check()
        return TwinLikelihood(self.twins, (*other_components, component))

    def _split(self, variables: Sequence[Variable]) -> tuple[Component, list[Component]]:
        both = (*variables, *self.twins.of(variables))
        return split_components(self.twins.domain.twins[0], self.components, both)

    @property
    def tables(self) -> list[ResponseTable]:
        """The tables of the first record."""
        every = (table for part in self.components for table in part.tables)
        return [table for table in every if not isinstance(table, _SubtractedTable)]

    @cached_property
    def loss(self) -> WorstCase:
        """The largest difference."""
        return WorstCase(_total(self.components), lambda: Nats.of(_product(self.components)))

    def worst_after(self, query: Query, times: int) -> WorstCase:
        """Bound the largest difference after a query is asked several times.

        The query distinguishes some value from another one, so that no response is impossible.
        """
        likelihood = query.on(self.twins.domain)
        tied, other_components = self._split(likelihood.variables)
        pairs = Pairs.of(self.twins, likelihood)
        marginals = tied.marginals(pairs.target, pairs.sizes)
        rest = _OtherComponents(_total(other_components), _powers(other_components), tied.error)
        on_part = likelihood.on_part
        if isinstance(on_part, Pairwise):
            return rest.worst_pair(marginals, pairs, on_part, times)
        assert isinstance(on_part, BySufficientTerms), "there is no third kind"
        return rest.worst_term(marginals, pairs, on_part, times)


@dataclass(frozen=True, slots=True)
class _OtherComponents:
    """What other components add to every difference, and the error of the tied one."""

    loss: Enclosure
    powers: Counter[int]
    error: float

    def worst_pair(
        self, marginals: Marginals, pairs: Pairs, likelihood: Pairwise, times: int
    ) -> WorstCase:
        """Return the largest difference, plus epsilon where the query distinguishes records."""
        sums, apart = marginals.highs, _told_apart(likelihood, pairs)
        now = self.loss + enclose(float(sums.max()), 0.0, self.error)
        if not apart.any():
            return WorstCase(now, lambda: self._exact(marginals, _near(sums, self.error)))
        epsilon = likelihood.epsilon * times
        told = np.where(apart, sums, -np.inf)
        widest = int(told.argmax())
        # Of a pair and its reverse, one difference is not negative.
        wide = self.loss + enclose(max(0.0, float(told[widest])), 0.0, self.error)
        wide = wide + epsilon.enclosure

        def exact() -> Nats:
            return max(
                self._exact(marginals, _near(sums, self.error)),
                self._exact(marginals, _near(told, self.error)) + epsilon,
            )

        response = likelihood.separating_response(
            int(pairs.first[widest]), int(pairs.second[widest])
        )
        loss = Enclosure(max(now.lower, wide.lower), max(now.upper, wide.upper))
        return WorstCase(loss, exact, likelihood.responses[response])

    def _exact(self, marginals: Marginals, indices: Indices) -> Nats:
        powers = self.powers.copy()
        powers.update(marginals.highest(indices))
        return Nats.of(ExactSum.product(powers))

    def worst_term(
        self, marginals: Marginals, pairs: Pairs, likelihood: BySufficientTerms, times: int
    ) -> WorstCase:
        """Return the largest difference after one of the sufficient responses, repeated."""
        cases = {
            position: self._with_term(marginals, pairs, likelihood, position, times)
            for position in likelihood.sufficient
        }
        lower = max(loss.lower for loss, _ in cases.values())
        worst = max(cases, key=lambda position: cases[position][0].upper)

        def exact() -> Nats:
            near = [position for position, (loss, _) in cases.items() if loss.upper >= lower]
            return max(
                self._exact_with(marginals, pairs, likelihood, position, times, cases[position][1])
                for position in near
            )

        loss = Enclosure(lower, cases[worst][0].upper)
        return WorstCase(loss, exact, likelihood.responses[worst])

    def _with_term(
        self,
        marginals: Marginals,
        pairs: Pairs,
        likelihood: FiniteLikelihood,
        position: int,
        times: int,
    ) -> tuple[Enclosure, Indices]:
        """Return the largest difference after a response, and where it may be attained."""
        logs, log_error = repeated(likelihood.term(position), times)
        logs = np.broadcast_to(logs, len(likelihood.domain))
        change = logs[pairs.first] - logs[pairs.second]
        # The difference of two logarithms rounds once, and so does its sum with the marginal.
        change_error = rounded_sum_error(2 * log_error, 0.0, float(change.max()), 0.0)
        sums = marginals.highs + change
        highest = max(0.0, float(sums.max()))
        error = rounded_sum_error(self.error, change_error, float(sums.max()), float(sums.min()))
        return self.loss + enclose(highest, 0.0, error), _near(sums, error)

    def _exact_with(
        self,
        marginals: Marginals,
        pairs: Pairs,
        likelihood: FiniteLikelihood,
        position: int,
        times: int,
        indices: Indices,
    ) -> Nats:
        """Return the largest difference after a response exactly, among some combinations."""
        different, kind = marginals.powers(indices, 1)
        labels = np.unique(likelihood.weight_labels(position), return_inverse=True)[1].reshape(-1)
        first, second = pairs.first[indices], pairs.second[indices]
        keys = np.stack([kind, labels[first], labels[second]])
        _, distinct = np.unique(keys, axis=1, return_index=True)
        best = ExactSum.product(Counter())
        for index in distinct.tolist():
            powers = self.powers.copy()
            powers.update(different[int(kind[index])])
            above, below = likelihood.powers(position, [int(first[index]), int(second[index])])
            multiply(powers, above, times)
            multiply(powers, below, -times)
            candidate = ExactSum.product(powers)
            if ExactSum.total([(candidate, 1), (best, -1)]).sign > 0:
                best = candidate
        return Nats.of(best)


def _near(sums: Floats, error: float) -> Indices:
    """Return the indices of all sums that may be the largest."""
    return np.flatnonzero(sums >= down(float(sums.max()) - 2 * error))


def _total(components: Iterable[Component]) -> Enclosure:
    """Return the sum of the largest differences of some components.

    Where the unit is not tied to other variables, the two records have components of their own,
    and the maximum of one of them can be negative.
    """
    parts = list(components)
    highest = math.fsum(part.extremes[0] for part in parts)
    error = math.fsum(part.error for part in parts)
    return enclose(max(0.0, highest), 0.0, rounded_sum_error(error, 0.0, highest, 0.0))


def _powers(components: Iterable[Component]) -> Counter[int]:
    """Return the powers whose product has the logarithm of the sum of the largest differences."""
    total: Counter[int] = Counter()
    for part in components:
        total.update(part.exact_high)
    return total


def _product(components: Iterable[Component]) -> ExactSum:
    return ExactSum.product(_powers(components))
