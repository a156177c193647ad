"""ℓ of many subjects on a finite domain, in arrays; on a set a row for each value.

Besides its answers, every subject has the largest difference of its ℓ now and at its peak. Passes
go over blocks of subjects, which stay in the cache. Proof: docs/theory/audits.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from expost._types import Floats, Indices
from expost.domains import Domain, FiniteSet
from expost.filters._many_accounts import Accounts, BudgetComparison, LossBounds
from expost.loss import LogLikelihood, log_likelihood
from expost.numbers import UNIT, Nats
from expost.panel._compiled_query import (
    TERM_ERROR,
    TINY,
    CompiledFiniteQuery,
    CompiledQuery,
    QueryRegistry,
    as_finite,
)
from expost.panel._differences import FIXED_BITS, wrapped
from expost.panel._log import Counted
from expost.panel._selection import Selection
from expost.panel._state import State, StateAccounts
from expost.panel._ties import PairGaps, TieComparison, compare
from expost.queries import Query
from expost.solver import Effort

__all__ = ["FiniteAccounts", "FiniteState", "SetState"]


# A sum, a difference and what is added to it round once each, and so do the bounds.
_ROUNDINGS = TERM_ERROR + 8


class FiniteState(State):
    """The answers of so many subjects on a set or on records."""

    #: The number of roundings of a subject's sums for each response.
    roundings: ClassVar[int] = 1

    def __init__(self, domain: Domain, registry: QueryRegistry, count: int) -> None:
        super().__init__(domain, registry, count)
        self._spread: Floats | None = np.zeros(count)
        #: The largest ``spread`` along the way.
        self.peak = np.zeros(count)
        #: Whether the responses of a subject rule some value out; then its loss is infinite.
        self.impossible = np.zeros(count, dtype=np.bool_)
        self._size = np.zeros(count)

    @property
    def spread(self) -> Floats:
        """max ℓ - min ℓ now, in doubles; :meth:`around` says how far off."""
        if self._spread is None:
            self._spread = self._measured()
        return self._spread

    def accounts(self, selection: Selection) -> Accounts:
        return FiniteAccounts(self, selection)

    def _absorb(self, compiled: CompiledQuery, codes: Indices, selection: Selection) -> None:
        compiled = as_finite(compiled)
        self._add(compiled, codes, selection)
        self.peak[selection.subscript] = np.maximum(
            self.peak[selection.subscript], self.spread[selection.subscript]
        )
        self._size[selection.subscript] += compiled.size
        if compiled.impossible.any():
            self.impossible[selection.subscript] |= compiled.impossible[codes]

    def _absorb_counted(self, counted: Counted) -> None:
        # At most as many roundings as responses: a product for each different one, and a sum.
        queries = [as_finite(compiled) for compiled in counted.compiled_queries]
        self._add_counted(counted)
        self._spread = None
        self._size = counted.sums(np.array([compiled.size for compiled in queries]))
        pairs = zip(queries, counted.codes.tolist(), strict=True)
        impossible = np.array([compiled.impossible[code] for compiled, code in pairs])
        if impossible.any():
            self.impossible = counted.sums(impossible)

    def slack(self, selection: Selection, added: float = 0.0) -> Floats:
        """Return a bound on the rounding error of ℓ(x) - ℓ(x'), plus D of at most this size."""
        exchanges, size = self.exchanges[selection.subscript], self._size[selection.subscript]
        # Each of the two ends is a sum of terms, in any order: their errors, and a rounding for
        # each of them. The odd thousandth covers the rounding of this bound.
        slack = (self.roundings * exchanges + float(_ROUNDINGS)) * (size + added)
        slack *= 2.001 * UNIT
        slack += TINY * (2.001 * exchanges + 2)
        return np.asarray(slack)

    def around(self, amounts: Floats, slack: Floats, selection: Selection) -> tuple[Floats, Floats]:
        """Lower and upper bounds of losses, from doubles and what they may be off."""
        lower, upper = np.maximum(amounts - slack, 0.0), amounts + slack
        ruled_out = self.impossible[selection.subscript]
        if ruled_out.any():
            lower[ruled_out] = upper[ruled_out] = np.inf
        unanswered = self.exchanges[selection.subscript] == 0
        if unanswered.any():
            upper[unanswered & (amounts == 0)] = 0.0
        return lower, upper

    def losses(self, selection: Selection) -> tuple[Floats, Floats]:
        """Bound the realized losses now, which are never above the sum of the epsilons."""
        return self._capped(self.spread[selection.subscript], selection)

    def peaks(self, selection: Selection) -> tuple[Floats, Floats]:
        """Bound the largest realized losses along the way."""
        assert self.log.counted is None, "a tally has no order"
        return self._capped(self.peak[selection.subscript], selection)

    def _capped(self, amounts: Floats, selection: Selection) -> tuple[Floats, Floats]:
        lower, upper = self.around(amounts, self.slack(selection), selection)
        _, spent_upper = self.spent.around(selection, None)
        return lower, np.maximum(lower, np.minimum(upper, spent_upper))

    @abstractmethod
    def _add(self, compiled: CompiledFiniteQuery, codes: Indices, selection: Selection) -> None:
        """Add responses to ℓ, and update ``spread`` for these subjects."""

    @abstractmethod
    def _add_counted(self, counted: Counted) -> None:
        """Add counted responses to ℓ alone."""

    @abstractmethod
    def _measured(self) -> Floats:
        """Return max ℓ - min ℓ of every subject."""

    @abstractmethod
    def worst(self, compiled: CompiledFiniteQuery, selection: Selection) -> Floats:
        """Compute max ℓ(x) - ℓ(x') + D(x, x') in doubles."""

    def compare(
        self,
        compiled: CompiledFiniteQuery | None,
        plus_epsilon_only: bool,
        indices: Indices,
        budget: Nats,
    ) -> TieComparison:
        """Compare losses with a budget that doubles cannot tell them from.

        Without a query, compare losses now; else losses after it or, with ``plus_epsilon_only``,
        losses now plus its epsilon. Rationals decide subjects that are neither within nor above,
        which by default are all of them.
        """
        undecided = np.zeros(len(indices), dtype=np.bool_)
        return TieComparison(undecided, undecided)


@dataclass(frozen=True, eq=False)
class FiniteAccounts(StateAccounts):
    """The accounts of some subjects on a finite domain."""

    state: FiniteState

    def _compile(self, query: Query) -> CompiledFiniteQuery:
        return as_finite(self.state.registry.of(query))

    def loss(self) -> LossBounds:
        lower, upper = self.state.losses(self.selection)
        return LossBounds(
            lower, upper, self._make_settler(None, False, lambda total: total.exact_loss)
        )

    def worst_after(self, query: Query, budget: Nats) -> LossBounds:
        compiled, state = self._compile(query), self.state
        slack = state.slack(self.selection, compiled.size)
        lower, upper = state.around(state.worst(compiled, self.selection), slack, self.selection)

        def exact(total: LogLikelihood) -> Nats:
            worst = total.worst_after(query, 1, budget, Effort()).exact
            assert worst is not None, "over a finite domain everything is exact"
            return worst()

        return LossBounds(lower, upper, self._make_settler(compiled, False, exact))

    def plus_epsilon(self, query: Query, budget: Nats) -> LossBounds:
        compiled, state = self._compile(query), self.state
        epsilon = compiled.likelihood.epsilon
        amounts = state.spread[self.selection.subscript] + epsilon.enclosure.upper
        slack = state.slack(self.selection, compiled.size)
        lower, upper = state.around(amounts, slack, self.selection)
        settle = self._make_settler(compiled, True, lambda total: total.exact_loss + epsilon)
        return LossBounds(lower, upper, settle)

    def _make_settler(
        self,
        compiled: CompiledFiniteQuery | None,
        plus_epsilon_only: bool,
        exact: Callable[[LogLikelihood], Nats],
    ) -> Callable[[Indices, Nats], BudgetComparison]:
        """Settle ties in words, and what remains in rationals, once for every tally."""

        def settle(rows: Indices, budget: Nats) -> BudgetComparison:
            state = self.state
            indices, index_of = state.distinct_by_tally(self.selection.indices_of(rows))
            compared = state.compare(compiled, plus_epsilon_only, indices, budget)
            within = compared.within.copy()
            within_by_tally: dict[Any, bool] = {}
            for row in np.flatnonzero(~(within | compared.above)).tolist():
                subject_index = int(indices[row])
                key = state.tally(subject_index)
                if key not in within_by_tally:
                    total = log_likelihood(state.domain, state.exact_exchanges(subject_index))
                    within_by_tally[key] = exact(total) <= budget
                within[row] = within_by_tally[key]
            return BudgetComparison.decided(within[index_of])

        return settle


_BLOCK = 1 << 16
# Of so many subjects one has to answer for a pass over all of them.
_MOST = 6
# The most pairs of values, times responses, that are written as a table to compare ties.
_LARGEST_TABLE = 1 << 18


class SetState(FiniteState):
    """ℓ at every value, up to a constant for each subject."""

    domain: FiniteSet

    def __init__(self, domain: FiniteSet, registry: QueryRegistry, count: int) -> None:
        super().__init__(domain, registry, count)
        self.values = np.zeros((len(domain), count))
        self._pair_gaps: dict[tuple[int, bool] | None, PairGaps | None] = {}

    def _add(self, compiled: CompiledFiniteQuery, codes: Indices, selection: Selection) -> None:
        logs, size = compiled.logs, max(1, _BLOCK // len(self.values))
        if selection.indices is not None and len(selection) * _MOST > self.count:
            # Nothing is added for all others, which takes less than picking these out.
            all_subjects = np.full(self.count, logs.shape[1], dtype=np.intp)
            all_subjects[selection.indices] = codes
            logs, codes = np.hstack([logs, np.zeros((len(logs), 1))]), all_subjects
            selection = Selection(self.count)
        spread = self.spread
        for rows, index in selection.blocks(size):
            block = self.values[:, index]
            block += logs.take(codes[rows], axis=1)
            if selection.indices is not None:
                self.values[:, index] = block
            spread[index] = block.max(axis=0) - block.min(axis=0)

    def _add_counted(self, counted: Counted) -> None:
        pairs = zip(counted.compiled_queries, counted.codes.tolist(), strict=True)
        logs = np.array([as_finite(compiled).logs[:, code] for compiled, code in pairs])
        self.values = counted.sums(logs)

    def _measured(self) -> Floats:
        return np.asarray(self.values.max(axis=0) - self.values.min(axis=0))

    def worst(self, compiled: CompiledFiniteQuery, selection: Selection) -> Floats:
        spread = self.spread[selection.subscript]
        if compiled.infinite:
            return np.full(len(selection), np.inf)
        result = np.empty(len(selection))
        for rows, index in selection.blocks(max(1, _BLOCK // len(self.values))):
            block = self.values[:, index]
            result[rows] = compiled.differences.worst(block, block, spread[rows])
        return result

    def compare(
        self,
        compiled: CompiledFiniteQuery | None,
        plus_epsilon_only: bool,
        indices: Indices,
        budget: Nats,
    ) -> TieComparison:
        pair_gaps = self._tables(compiled, plus_epsilon_only)
        if pair_gaps is None:
            return super().compare(compiled, plus_epsilon_only, indices, budget)
        selection = Selection(self.count, indices)
        added = 0.0 if compiled is None else compiled.size
        slack = self.slack(selection, added) + 4 * UNIT * budget.enclosure.upper
        return compare(
            self.values.take(indices, axis=1), slack, indices, self.log, pair_gaps, budget
        )

    def _tables(
        self, compiled: CompiledFiniteQuery | None, plus_epsilon_only: bool
    ) -> PairGaps | None:
        """Return what is added for every pair of values; None if there are too many pairs."""
        key = None if compiled is None else (compiled.index, plus_epsilon_only)
        if key not in self._pair_gaps:
            self._pair_gaps[key] = self._table(compiled, plus_epsilon_only)
        return self._pair_gaps[key]

    def _table(
        self, compiled: CompiledFiniteQuery | None, plus_epsilon_only: bool
    ) -> PairGaps | None:
        shape = len(self.domain), len(self.domain)
        if compiled is None:
            return PairGaps(
                np.zeros(shape), np.zeros(shape, dtype=np.int64), lambda first, other: Nats()
            )
        if len(self.domain) ** 2 > _LARGEST_TABLE:
            return None
        if plus_epsilon_only:
            epsilon = compiled.likelihood.epsilon
            words = wrapped(epsilon.scaled(FIXED_BITS))
            doubles = np.full(shape, epsilon.enclosure.upper)
            return PairGaps(doubles, np.full(shape, words), lambda first, other: epsilon)
        if compiled.differences.size > _LARGEST_TABLE:
            return None
        differences = compiled.differences
        return PairGaps(differences.doubles(), differences.fixed(), differences.exact)
