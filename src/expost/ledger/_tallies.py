"""Decisions and saturating queries by tally, which is all that they depend on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from expost._types import Indices, Ints
from expost.ledger._catalog import Catalog
from expost.panel._kernel import FilterVerdicts, Kernel
from expost.panel._saturating import SaturatingQueryCache, SaturatingRequest
from expost.panel._state import State
from expost.queries import Query
from expost.tally import Summand, TallyIndex, unpack_counts

__all__ = ["Decider", "SaturatingQueries"]


# The most verdicts that are remembered, and the most tallies with their saturating queries.
_MAX_VERDICTS = 1 << 14
_MAX_TALLIES = 1 << 16


class Decider:
    """A filter, and what it said about tallies."""

    def __init__(self, kernel: Kernel, catalog: Catalog) -> None:
        self._kernel = kernel
        self._catalog = catalog
        self._verdicts: dict[tuple[bytes, int], bool] = {}
        self._revision = catalog.revision

    def accepted(
        self, tallies: Sequence[bytes], extras: Sequence[bytes], queries: Sequence[int]
    ) -> list[bool]:
        """Return whether the filter accepts each query after a tally.

        Extras are responses in quarantined messages, perhaps forged. A query is accepted only if it
        fits whichever of them were really given: each costs its epsilon.
        """
        if len(self._verdicts) > _MAX_VERDICTS or self._revision != self._catalog.revision:
            self._verdicts.clear()
            self._revision = self._catalog.revision
        verdicts, pairs = self._verdicts, list(zip(tallies, queries, strict=True))
        new = list(dict.fromkeys(pair for pair in pairs if pair not in verdicts))
        if new:
            kernel_indices = self._catalog.kernel_indices(np.array([query for _, query in new]))
            state = self.state([tally for tally, _ in new])
            decisions = decide(self._kernel, state, kernel_indices)
            verdicts.update(zip(new, decisions.accepted.tolist(), strict=True))
        accepted = [verdicts[pair] for pair in pairs]
        for index in [index for index, extra in enumerate(extras) if extra and accepted[index]]:
            accepted[index] = self._fits(*pairs[index], extras[index])
        return accepted

    def _fits(self, tally: bytes, query: int, extras: bytes) -> bool:
        kernel_indices = self._catalog.kernel_indices(np.array([query]))
        worst = decide(self._kernel, self.state([tally]), kernel_indices).upper[0]
        total = np.nextafter(worst + self.charge(extras), np.inf)
        return bool(total <= self._kernel.filter.budget.enclosure.lower)

    def charge(self, extras: bytes) -> float:
        """Bound how much extras can add to any loss: the sum of their epsilons, rounded up."""
        total = 0.0
        for response, count in unpack_counts(extras).items():
            query = self._catalog.query(self._catalog.response(response).query)
            epsilon = query.ceiling(self._kernel.domain).enclosure.upper
            total = np.nextafter(total + np.nextafter(count * epsilon, np.inf), np.inf)
        return float(total)

    def state(self, tallies: Sequence[bytes]) -> State:
        """Return the state of subjects with these tallies."""
        state = self._kernel.start(len(tallies), track_peaks=False)
        sizes = np.array([len(tally) // 8 for tally in tallies], dtype=np.int64)
        pairs = np.frombuffer(b"".join(tallies), dtype="<u4").reshape(-1, 2).astype(np.int64)
        responses, counts = pairs[:, 0], pairs[:, 1]
        self._catalog.check_responses(responses)
        owners = np.repeat(np.arange(len(tallies)), sizes)
        if len(responses):
            distinct, index_of = np.unique(responses, return_inverse=True)
            kernel_indices = self._catalog.kernel_indices_of(distinct)
            positions = self._catalog.positions_of(distinct)
            state.load(kernel_indices, positions, index_of, owners, counts)
        return state


def decide(kernel: Kernel, state: State, questions: Ints) -> FilterVerdicts:
    """Return what the filter says about one question per subject; -1 asks nothing."""
    uniform = len(questions) > 0 and (questions == questions[0]).all()
    return kernel.decide(state, int(questions[0]) if uniform else questions)


class SaturatingQueries:
    """Saturating queries by tally: each is made once for all subjects in the same state."""

    def __init__(self, kernel: Kernel, catalog: Catalog) -> None:
        self._kernel = kernel
        self._catalog = catalog
        self._saturating = SaturatingQueryCache(kernel.registry)
        self._tallies = TallyIndex()
        self._revision = catalog.revision

    def queries(
        self, wanted: SaturatingRequest, tallies: Sequence[bytes]
    ) -> tuple[list[Query | None], Indices]:
        """Return the distinct queries for these tallies, and which of them each subject gets."""
        if len(self._tallies) > _MAX_TALLIES or self._revision != self._catalog.revision:
            self._saturating = SaturatingQueryCache(self._kernel.registry)
            self._tallies = TallyIndex()
            self._revision = self._catalog.revision
        indices = np.array([self._tallies.intern(tally) for tally in tallies], dtype=np.intp)
        return self._saturating.queries(wanted, indices, self._summands)

    def _summands(self, tally: int) -> list[Summand]:
        summands = []
        for response, count in self._tallies.counts(tally).items():
            entry = self._catalog.response(response)
            summands.append(Summand(self._catalog.query(entry.query), entry.position, count))
        return summands
