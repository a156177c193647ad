"""Saturating queries for many subjects: each is made once for all who are in the same state.

A state is the likelihood of a subject's answers, up to a factor. Different transcripts lead to
the same one: after a saturating answer it is a set of values and a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np

from expost._types import Indices
from expost.answers import column_values, encode_parsed_column
from expost.errors import InvalidInput, at
from expost.filters._levels import Unit
from expost.panel._kernel import Kernel
from expost.queries import Query
from expost.saturation._question import AnswerPartition, read_question
from expost.saturation._saturating import TableCache, read_cap, saturating_query
from expost.saturation._unit_state import UnitState, level_of, unit_asked, unit_state
from expost.saturation._value_classes import ValueLikelihoods
from expost.tally import Summand

__all__ = ["SaturatingQueryCache", "SaturatingRequest"]


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class SaturatingRequest:
    """The questions to ask some subjects, and the caps where their losses are to end."""

    #: One for all subjects, or one for each public order of the answers.
    questions: Sequence[AnswerPartition]
    #: For each subject, the index of its question.
    question_of: Indices
    caps: Sequence[Fraction]
    #: For each subject, the index of its cap.
    cap_of: Indices

    @classmethod
    def read(cls, question: Any, cap: Any, seeds: Any, kernel: Kernel, count: int) -> Self:
        """Read a request about so many subjects, as a caller writes it."""
        cap_of, caps = _read_column(cap, lambda value: read_cap(value, kernel.filter), count, "cap")
        question_of, orders = _read_column(seeds, lambda value: value, count, "seeds")
        questions = [read_question(kernel.domain, question, seed) for seed in orders]
        return cls(questions, question_of, caps, cap_of)

    def of_rows(self, rows: Indices) -> Self:
        """Return the request of some of the subjects."""
        return replace(self, question_of=self.question_of[rows], cap_of=self.cap_of[rows])


def _read_column(
    column_or_value: Any, read: Callable[[Any], T], count: int, name: str
) -> tuple[Indices, Sequence[T]]:
    """Read one entry for all subjects, or a column: an index for each, and the entries."""
    if isinstance(column_or_value, str) or not hasattr(column_or_value, "__len__"):
        return np.zeros(count, dtype=np.intp), [read(column_or_value)]
    with at(name):
        column = column_values(column_or_value)
        if len(column) != count:
            raise InvalidInput(f"got {len(column):,} for {count:,} subjects")
    return encode_parsed_column(column, read, name)


class SaturatingQueryCache:
    """The queries that were made so far, by the state, the question and the cap."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._likelihoods: dict[tuple[object, ...], ValueLikelihoods] = {}
        self._of_tally: dict[tuple[int, Unit | None], UnitState | None] = {}
        self._queries: dict[tuple[object, ...], Query | None] = {}
        self._tables: TableCache = {}

    def queries(
        self, request: SaturatingRequest, tallies: Indices, summands: Callable[[int], list[Summand]]
    ) -> tuple[list[Query | None], Indices]:
        """Return the different queries for subjects with these tallies, and the index of each.

        It is None where none ends at the cap. ``summands`` returns the responses of a tally.
        """
        shape = int(tallies.max(initial=0)) + 1, len(request.questions), len(request.caps)
        code = np.ravel_multi_index((tallies, request.question_of, request.cap_of), shape)
        distinct, first, value = np.unique(code, return_index=True, return_inverse=True)
        queries: list[Query | None] = []
        for code, row in zip(distinct.tolist(), first.tolist(), strict=True):
            tally, question_of, cap = (int(part) for part in np.unravel_index(code, shape))
            try:
                question = request.questions[question_of]
                state = self._state_of(tally, question, summands)
                queries.append(self._query(state, question, request.caps[cap]))
            except InvalidInput as error:
                raise error.within(f"row {row + 1}", ": ") from None
        return queries, value

    def _state_of(
        self, tally: int, question: AnswerPartition, summands: Callable[[int], list[Summand]]
    ) -> UnitState | None:
        domain, level = self._kernel.domain, level_of(self._kernel.filter)
        key = tally, unit_asked(level, domain, question)
        if key not in self._of_tally:
            state = unit_state(domain, level, key[1], summands(tally))
            if state is not None:
                likelihoods = state.likelihoods
                likelihoods = self._likelihoods.setdefault(likelihoods.key, likelihoods)
                state = replace(state, likelihoods=likelihoods)
            self._of_tally[key] = state
        return self._of_tally[key]

    def _query(
        self, state: UnitState | None, question: AnswerPartition, cap: Fraction
    ) -> Query | None:
        if state is None:
            return None
        # Likelihoods are stored, so identities are not used twice.
        key = (id(state.likelihoods), question.key, cap - state.elsewhere)
        if key not in self._queries:
            domain = self._kernel.domain
            self._queries[key] = saturating_query(domain, state, question, cap, self._tables)
        return self._queries[key]
