"""Saturating queries for many subjects: each is made once for all who are in the same state.

A state is the likelihood of what somebody answered, up to a factor. Different transcripts lead to
the same one: after a saturating answer it is a set of values and a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, TypeVar

import numpy as np

from expost._types import Indices
from expost.answers import column_values, encode_parsed_column
from expost.errors import InvalidInput, at
from expost.panel._compiled_query import Questions
from expost.panel._kernel import Kernel
from expost.queries import Query
from expost.saturation._question import AnswerPartition, read_question
from expost.saturation._saturating import TableCache, read_cap, saturating_query
from expost.saturation._value_classes import ValueLikelihoods, likelihoods_after
from expost.tally import Summand

__all__ = ["Saturating", "Wanted"]


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What some subjects are to be asked, and where their losses are to end."""

    questions: Sequence[AnswerPartition]
    """One for everybody, or one for each public order of the answers."""
    which: Indices
    """Which of the questions, for each subject."""
    caps: Sequence[Fraction]
    cap_of: Indices
    """Which of the caps, for each subject."""

    @classmethod
    def read(cls, question: Any, cap: Any, seeds: Any, kernel: Kernel, count: int) -> Self:
        """What a person wants to ask so many subjects."""
        cap_of, caps = _each(cap, lambda each: read_cap(each, kernel.filter), count, "cap")
        which, orders = _each(seeds, lambda each: each, count, "seeds")
        questions = [read_question(kernel.domain, question, seed) for seed in orders]
        return cls(questions, which, caps, cap_of)


def _each(
    given: Any, read: Callable[[Any], T], count: int, name: str
) -> tuple[Indices, Sequence[T]]:
    """One for all of so many subjects, or a column of them: which it is for each, and all."""
    if isinstance(given, str) or not hasattr(given, "__len__"):
        return np.zeros(count, dtype=np.intp), [read(given)]
    with at(name):
        column = column_values(given)
        if len(column) != count:
            raise InvalidInput(f"there are {len(column):,} for {count:,} subjects")
    return encode_parsed_column(column, read, name)


class Saturating:
    """The queries that were made so far, by the state, the question and the cap."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._states: dict[tuple[object, ...], ValueLikelihoods] = {}
        self._of_tally: dict[int, ValueLikelihoods | None] = {}
        self._made: dict[tuple[object, ...], Query | None] = {}
        self._tables: TableCache = {}

    def queries(
        self, wanted: Wanted, numbers: Indices, summands: Callable[[int], list[Summand]]
    ) -> tuple[list[Query | None], Indices]:
        """The different queries for subjects with these tallies, and which of them is whose.

        It is None where none ends at the cap. ``summands`` returns the responses of a tally.
        """
        shape = int(numbers.max(initial=0)) + 1, len(wanted.questions), len(wanted.caps)
        code = np.ravel_multi_index((numbers, wanted.which, wanted.cap_of), shape)
        different, first, each = np.unique(code, return_index=True, return_inverse=True)
        found: list[Query | None] = []
        for own, row in zip(different.tolist(), first.tolist(), strict=True):
            number, which, cap = (int(part) for part in np.unravel_index(own, shape))
            try:
                known = self._known(number, summands)
                found.append(self._query(known, wanted.questions[which], wanted.caps[cap]))
            except InvalidInput as error:
                raise error.within(f"row {row + 1}", ": ") from None
        return found, each

    def _known(
        self, number: int, summands: Callable[[int], list[Summand]]
    ) -> ValueLikelihoods | None:
        if number not in self._of_tally:
            known = likelihoods_after(self._questions.domain, summands(number))
            if known is not None:
                known = self._states.setdefault(known.key, known)
            self._of_tally[number] = known
        return self._of_tally[number]

    def _query(
        self, known: ValueLikelihoods | None, question: AnswerPartition, cap: Fraction
    ) -> Query | None:
        if known is None:
            return None
        key = (id(known), question.key, cap)  # states are kept, so identities are not used twice
        if key not in self._made:
            domain = self._questions.domain
            self._made[key] = saturating_query(domain, known, question, cap, self._tables)
        return self._made[key]
