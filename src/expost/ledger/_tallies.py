"""Tallies of subjects in bytes, and decisions about them.

A tally counts how often each response was given: pairs of a response's number and a count, 32 bits
each, little-endian, in the order of responses. A loss depends on nothing else, so a decision is
remembered by the tally and the query.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from expost._types import Indices, Ints
from expost.ledger._catalog import Catalog
from expost.panel.kernel import Kernel, Verdicts, groups
from expost.panel.questions import Questions
from expost.panel.saturating import Saturating, Wanted
from expost.panel.state import State
from expost.queries import Query
from expost.transcript import Summand

__all__ = ["Decider", "SaturatingQueries", "add_response", "pack", "unpack"]


# The most verdicts that are remembered, and the most tallies with their saturating queries.
_MAX_VERDICTS = 1 << 14
_MAX_TALLIES = 1 << 16
# The most counts that are written out as a table, over all subjects of a state.
_MAX_TABLE = 1 << 22


def unpack(tally: bytes) -> dict[int, int]:
    """Return how often each response was given, by its number."""
    return dict(struct.iter_unpack("<II", tally))


def pack(counts: Mapping[int, int]) -> bytes:
    """Return a tally in bytes; counts of zero are left out."""
    words = [number for pair in sorted(counts.items()) if pair[1] for number in pair]
    return struct.pack(f"<{len(words)}I", *words)


def add_response(tally: bytes, response: int) -> bytes:
    """Return a tally with one more response."""
    counts = unpack(tally)
    counts[response] = counts.get(response, 0) + 1
    return pack(counts)


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
            decisions = decide(
                self._kernel, self.state([tally for tally, _ in new]), kernel_indices
            )
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
        for response, count in unpack(extras).items():
            query = self._catalog.query(self._catalog.response(response).query)
            epsilon = query.ceiling(self._kernel.domain).enclosure.upper
            total = np.nextafter(total + np.nextafter(count * epsilon, np.inf), np.inf)
        return float(total)

    def state(self, tallies: Sequence[bytes]) -> State:
        """Return the state of subjects with these tallies."""
        state = self._kernel.start(len(tallies))
        sizes = np.array([len(tally) // 8 for tally in tallies], dtype=np.int64)
        pairs = np.frombuffer(b"".join(tallies), dtype="<u4").reshape(-1, 2).astype(np.int64)
        responses, counts = pairs[:, 0], pairs[:, 1]
        self._catalog.check_responses(responses)
        owners = np.repeat(np.arange(len(tallies)), sizes)
        questions = self._catalog.kernel_indices_of(responses) if len(responses) else responses
        distinct = {
            kernel_index: np.unique(responses[members])
            for kernel_index, members in groups(questions)
        }
        if any(len(members) * len(tallies) > _MAX_TABLE for members in distinct.values()):
            return self._fold(state, questions, responses, counts, owners)
        for kernel_index, members in groups(questions):
            rows = np.searchsorted(distinct[kernel_index], responses[members])
            table = np.zeros((len(distinct[kernel_index]), len(tallies)), dtype=np.int64)
            table[rows, owners[members]] = counts[members]
            positions = self._catalog.positions_of(distinct[kernel_index])
            state.load(self._kernel.questions[kernel_index], positions, table)
        return state

    def _fold(
        self, state: State, questions: Ints, responses: Ints, counts: Ints, owners: Ints
    ) -> State:
        """Add one response of each subject after the other, where a table would be too large."""
        questions, responses, owners = (
            np.repeat(column, counts) for column in (questions, responses, owners)
        )
        rank = np.arange(len(owners)) - np.searchsorted(owners, owners)
        for rank_count in range(int(rank.max(initial=-1)) + 1):
            members = np.flatnonzero(rank == rank_count)
            positions = self._catalog.positions_of(responses[members])
            self._kernel.fold(state, questions[members], positions, owners[members])
        return state


def decide(kernel: Kernel, state: State, questions: Ints) -> Verdicts:
    """Return what the filter says about one question per subject; -1 asks nothing."""
    uniform = len(questions) > 0 and (questions == questions[0]).all()
    return kernel.decide(state, int(questions[0]) if uniform else questions)


class SaturatingQueries:
    """Saturating queries by tally: each is made once for all subjects in the same state."""

    def __init__(self, kernel: Kernel, catalog: Catalog) -> None:
        self._kernel = kernel
        self._catalog = catalog
        self._saturating = Saturating(kernel.questions)
        self._tally_indices: dict[bytes, int] = {}
        self._revision = catalog.revision

    def queries(
        self, wanted: Wanted, tallies: Sequence[bytes]
    ) -> tuple[list[Query | None], Indices]:
        """Return the distinct queries for these tallies, and which of them each subject gets."""
        if len(self._tally_indices) > _MAX_TALLIES or self._revision != self._catalog.revision:
            self._saturating, self._tally_indices = Saturating(self._kernel.questions), {}
            self._revision = self._catalog.revision
        tally_indices = self._tally_indices
        indices = np.array(
            [tally_indices.setdefault(tally, len(tally_indices)) for tally in tallies], np.intp
        )
        self._tallies = list(tally_indices)
        return self._saturating.queries(wanted, indices, self)

    def summands(self, tally_index: int, questions: Questions) -> list[Summand]:
        """Return what a tally counts, as :class:`expost.panel.saturating.Told` needs it."""
        entries = [
            (self._catalog.response(response), count)
            for response, count in unpack(self._tallies[tally_index]).items()
        ]
        return [
            Summand(self._catalog.query(entry.query), entry.position, count)
            for entry, count in entries
        ]
