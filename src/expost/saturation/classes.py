"""Classes of values that nothing tells apart: not the question, and not what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from expost.domains import Attributes, Domain, FiniteSet, Part, Variable
from expost.errors import InvalidInput
from expost.queries import Query
from expost.saturation.known import Known, Places, one_step, ordered
from expost.saturation.questions import Question

__all__ = ["MOST_CLASSES", "Classes", "classes_of"]

MOST_CLASSES = 256
"""A query has a row for each class, and about as many responses."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes, numbered by their first values."""

    seen: tuple[Variable, ...]
    """What a query on them is about, of records; otherwise empty."""
    of: Places
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
    def all_apart(self) -> bool:
        """Whether each value is a class of its own."""
        return len(self.sizes) == len(self.of)

    def asked(self, query: Query) -> Query:
        """A query on what is seen, as one on the domain."""
        if not self.seen:
            return query
        return query.about(*(name for name, _ in self.seen), at=one_step(self.seen))


def classes_of(domain: Domain, known: Known, question: Question) -> Classes:
    """Values with the same answer and equal likelihoods."""
    seen, answers, before = domain.asked(_Joining(known, question))
    code = answers * len(known.likelihoods) + before
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    if len(first) > MOST_CLASSES:
        raise InvalidInput(
            f"the question and the answers so far tell {len(first):,} classes of values apart; "
            f"a saturating query takes at most {MOST_CLASSES}"
        )
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


@dataclass(frozen=True)
class _Joining:
    """What both are about: the variables, and for each combination its answer and its class."""

    known: Known
    question: Question

    def on_set(self, domain: FiniteSet) -> tuple[tuple[Variable, ...], Places, Places]:
        return (), self.question.answers, self.known.of

    def on_attributes(self, domain: Attributes) -> tuple[tuple[Variable, ...], Places, Places]:
        own, before = self.question.variables, self.known.variables
        one_step((*own, *before))
        seen = ordered(domain, (*own, *before))
        part = domain.part(tuple(name for name, _ in seen))
        answers = self.question.answers[_lifted(part, own)]
        return seen, answers, self.known.of[_lifted(part, before)]

    def on_box(self, domain: Domain) -> tuple[tuple[Variable, ...], Places, Places]:
        raise AssertionError("no question on a box is read")


def _lifted(part: Part, variables: Sequence[Variable]) -> Places:
    """Where each combination is among those of some attributes."""
    if not variables:
        return np.zeros(len(part), dtype=np.intp)
    axes = np.unravel_index(np.arange(len(part)), part.sizes)
    places = [part.about.index(name) for name, _ in variables]
    sizes = [part.sizes[place] for place in places]
    return np.ravel_multi_index([axes[place] for place in places], sizes).astype(np.intp)
