"""Decisions and saturating queries by tally, which is all that they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from expost._types import Floats, Indices, Ints
from expost.ledger._catalog import Catalog
from expost.numbers import Nats
from expost.panel._kernel import FilterVerdicts, Kernel
from expost.panel._saturating import SaturatingQueryCache, SaturatingRequest
from expost.panel._state import State
from expost.queries import Query
from expost.tally import Summand, TallyIndex, unpack_counts

__all__ = ["Decider", "increased"]

# The most tallies that are remembered with their saturating queries.
_MAX_TALLIES = 1 << 16


class Decider:
    """A filter and what it says about tallies; and the saturating queries after them."""

    def __init__(self, kernel: Kernel, catalog: Catalog) -> None:
        self._kernel = kernel
        self._catalog = catalog
        self._forget_tallies()

    def accepted(
        self, tallies: Sequence[bytes], extras: Sequence[bytes], queries: Sequence[int]
    ) -> list[bool]:
        """Return whether the filter accepts each query after a tally.

        Extras are responses in quarantined messages, perhaps forged. A query is accepted only if it
        fits whichever of them were really given: each costs its epsilon.
        """
        cases = list(zip(tallies, extras, queries, strict=True))
        distinct = list(dict.fromkeys(cases))
        kernel_indices = self._catalog.kernel_indices(np.array([query for *_, query in distinct]))
        state = self.state([tally for tally, *_ in distinct])
        charges = self.charges([extra for _, extra, _ in distinct])
        accepted = self.decide(state, charges, kernel_indices).accepted.tolist()
        verdicts = dict(zip(distinct, accepted, strict=True))
        return [verdicts[case] for case in cases]

    def decide(self, state: State, charges: Floats, kernel_indices: Ints) -> FilterVerdicts:
        """Decide about a query for each subject, -1 for none; charges count as losses."""
        verdicts = [
            self._with_charges(one, charges, filter_.budget)
            for filter_, one in self._kernel.decide_by_filter(state, kernel_indices)
        ]
        return reduce(FilterVerdicts.both, verdicts)

    @staticmethod
    def _with_charges(verdicts: FilterVerdicts, charges: Floats, budget: Nats) -> FilterVerdicts:
        upper = increased(verdicts.upper, charges)
        fits = (charges == 0) | (upper <= budget.enclosure.lower)
        return FilterVerdicts(
            verdicts.accepted & fits, verdicts.undecided & fits, verdicts.lower, upper
        )

    def charges(self, extras: Sequence[bytes]) -> Floats:
        """Bound how much the extras of each subject can add to any of its losses."""
        return np.array([self._charge(packed) if packed else 0.0 for packed in extras])

    def _charge(self, extras: bytes) -> float:
        """Return the sum of the epsilons of extras, rounded up."""
        total = 0.0
        for response, count in unpack_counts(extras).items():
            query = self._catalog.query(self._catalog.response(response).query)
            epsilon = query.ceiling(self._kernel.domain).enclosure.upper
            total = np.nextafter(total + np.nextafter(count * epsilon, np.inf), np.inf)
        return float(total)

    def state(self, tallies: Sequence[bytes]) -> State:
        """Return the state of subjects with these tallies."""
        state = self._kernel.start(len(tallies))
        starts = np.cumsum([0, *(len(tally) // 8 for tally in tallies)])
        pairs = np.frombuffer(b"".join(tallies), dtype="<u4").reshape(-1, 2).astype(np.int64)
        if len(pairs):
            distinct, index_of = np.unique(pairs[:, 0], return_inverse=True)
            queries = [self._catalog.response(number).query for number in distinct.tolist()]
            kernel_indices = self._catalog.kernel_indices(np.array(queries))
            positions = self._catalog.positions_of(distinct)
            state.load(kernel_indices, positions, index_of, starts, pairs[:, 1])
        return state

    def saturating_queries(
        self, wanted: SaturatingRequest, tallies: Sequence[bytes]
    ) -> tuple[list[Query | None], Indices]:
        """Return the distinct queries for these tallies, and which of them each subject gets."""
        if len(self._tallies) > _MAX_TALLIES or self._revision != self._catalog.revision:
            self._forget_tallies()
        indices = np.array([self._tallies.intern(tally) for tally in tallies], dtype=np.intp)
        return self._saturating.queries(wanted, indices, self._summands)

    def _forget_tallies(self) -> None:
        self._saturating = SaturatingQueryCache(self._kernel)
        self._tallies = TallyIndex()
        self._revision = self._catalog.revision

    def _summands(self, tally: int) -> list[Summand]:
        summands = []
        for response, count in self._tallies.counts(tally).items():
            entry = self._catalog.response(response)
            summands.append(Summand(self._catalog.query(entry.query), entry.position, count))
        return summands


def increased(amounts: Floats, charges: Floats) -> Floats:
    """Add charges, rounded up; an amount without a charge stays as it is."""
    return np.where(charges > 0, np.nextafter(amounts + charges, np.inf), amounts)
