"""Classes of values that nothing tells apart: not the question, and not what was answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np

from expost._types import Indices
from expost.domains import MOST_COMBINATIONS, Attributes, Box, Domain, FiniteSet, Part, Variable
from expost.errors import InvalidInput
from expost.queries import Query
from expost.saturation.known import Known, Listed, ordered, steps_of
from expost.saturation.questions import Question

__all__ = ["MOST_CLASSES", "Classes", "Kinds", "classes_of"]

Kinds = tuple[tuple[int, Fraction, Fraction, int], ...]
"""The answer, the smallest and the largest likelihood, and the size of each class."""

MOST_CLASSES = 256
"""A query has a row for each class, and about as many responses."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes, numbered by their first values."""

    seen: tuple[Variable, ...]
    """What a query on them is about, of records; otherwise empty."""
    of: Indices
    """The class of each value, or of each combination of what is seen."""
    answers: tuple[int, ...]
    """For each class, what its values answer to the question."""
    sizes: tuple[int, ...]
    lows: tuple[Fraction, ...]
    """The smallest likelihood of what is seen as a value of each class, up to a common factor."""
    highs: tuple[Fraction, ...]
    """The largest, up to the same factor: the same where all that was asked about is seen."""
    exact: bool
    """Otherwise each is within 2^-150 of itself."""

    @property
    def sorted(self) -> tuple[Kinds, list[int]]:
        """What counts of each class, in an order of its own, and where each class is in that.

        Of more than two answers, those come first that are less likely so far; the public order is
        for those that are equally likely. Then queries with different orders have the same table,
        but for the order of its rows.
        """
        own = list(zip(self.lows, self.highs, self.sizes, strict=True))
        answers = self.answers
        if max(answers) > 1:
            alike: dict[int, list[tuple[Fraction, Fraction, int]]] = {}
            for answer, kind in zip(answers, own, strict=True):
                alike.setdefault(answer, []).append(kind)
            ranked = sorted(sorted(alike), key=lambda answer: sorted(alike[answer]))
            rank = {answer: place for place, answer in enumerate(ranked)}
            answers = tuple(rank[answer] for answer in answers)
        kinds = [(answer, *kind) for answer, kind in zip(answers, own, strict=True)]
        order = sorted(range(len(kinds)), key=kinds.__getitem__)
        places = [0] * len(order)
        for place, number in enumerate(order):
            places[number] = place
        return tuple(kinds[number] for number in order), places

    @property
    def all_apart(self) -> bool:
        """Whether each value is a class of its own."""
        return len(self.sizes) == len(self.of)

    def asked(self, query: Query) -> Query:
        """A query on what is seen, as one on the domain."""
        if not self.seen:
            return query
        step = next(iter(steps_of(self.seen)), None)
        return query.about(*(name for name, _ in self.seen), at=step)


def classes_of(domain: Domain, known: Known, question: Question) -> Classes:
    """Values with the same answer and equal likelihoods."""
    match domain:
        case FiniteSet():
            assert known.listed is not None, "a finite set is listed"
            return _listed((), question.answers, known.listed.of, known.listed)
        case Attributes():
            return _record_classes(domain, known, question)
        case Box():
            raise AssertionError("no question on a box is read")
        case _:
            assert_never(domain)


def _record_classes(domain: Attributes, known: Known, question: Question) -> Classes:
    own, before = question.variables, known.variables
    if len(steps_of(own)) > 1:
        raise InvalidInput("is about several steps, and a query is about one", "question")
    seen, listed = ordered(domain, (*own, *before)), known.listed
    size = math.prod(len(domain[name].values) for name, _ in seen)
    if listed is not None and len(steps_of(seen)) <= 1 and size <= MOST_COMBINATIONS:
        part = _part(domain, seen)
        answers, of = question.answers[_lifted(part, own)], _lifted(part, before)
        try:
            return _listed(seen, answers, listed.of[of], listed)
        except _TooMany:
            if own == before:
                raise
    return _by_extremes(domain, known, question)


def _by_extremes(domain: Attributes, known: Known, question: Question) -> Classes:
    """Join the classes of what the question is about, with everything else at its worst."""
    seen = ordered(domain, question.variables)
    part = _part(domain, seen)
    answers = question.answers[_lifted(part, question.variables)]
    found = known.extremes(domain, seen, part)
    kinds: dict[tuple[int, Fraction, Fraction], int] = {}
    rows = zip(answers.tolist(), found.lows, found.highs, strict=True)
    of = np.array([kinds.setdefault(row, len(kinds)) for row in rows], dtype=np.intp)
    if len(kinds) > MOST_CLASSES:
        raise _TooMany(len(kinds))
    of.setflags(write=False)
    own, lows, highs = zip(*kinds, strict=True)
    return Classes(seen, of, own, tuple(np.bincount(of).tolist()), lows, highs, found.exact)


class _TooMany(InvalidInput):
    """There are more classes than a query takes."""

    def __init__(self, found: int) -> None:
        super().__init__(
            f"the question and the answers so far tell {found:,} classes of values apart; "
            f"a saturating query takes at most {MOST_CLASSES}"
        )


def _listed(
    seen: tuple[Variable, ...], answers: Indices, before: Indices, known: Listed
) -> Classes:
    """From the answer of each value that is seen, and the class of what is known of it."""
    code = answers * len(known.likelihoods) + before
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    if len(first) > MOST_CLASSES:
        raise _TooMany(len(first))
    order = np.argsort(first)
    classes = np.argsort(order)[of].astype(np.intp)
    classes.setflags(write=False)
    places = first[order]
    likelihoods = tuple(known.likelihoods[number] for number in before[places].tolist())
    return Classes(
        seen,
        classes,
        tuple(answers[places].tolist()),
        tuple(np.bincount(classes).tolist()),
        likelihoods,
        likelihoods,
        known.exact,
    )


def _part(domain: Attributes, variables: Sequence[Variable]) -> Part:
    return domain.part(tuple(name for name, _ in variables))


def _lifted(part: Part, variables: Sequence[Variable]) -> Indices:
    """Where each combination is among those of some attributes."""
    if not variables:
        return np.zeros(len(part), dtype=np.intp)
    axes = np.unravel_index(np.arange(len(part)), part.sizes)
    places = [part.about.index(name) for name, _ in variables]
    sizes = [part.sizes[place] for place in places]
    return np.ravel_multi_index([axes[place] for place in places], sizes).astype(np.intp)
