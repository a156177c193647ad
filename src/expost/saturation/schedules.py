"""Schedules of caps: where the loss of a subject ends after each of several questions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count

from expost.errors import at
from expost.files.reading import whole
from expost.numbers import LARGEST_BUDGET, ExactLike, positive

__all__ = ["equal_caps", "third_of_the_rest"]


def equal_caps(epsilon: ExactLike, *, questions: int) -> tuple[Fraction, ...]:
    """Caps for a known number of questions: j·epsilon/K after the j-th of K.

    To ask each subject three random ones of many questions, which is better where the domain has
    more than twice as many values as there are questions, take ``questions=3``.

    >>> [str(cap) for cap in equal_caps("1", questions=3)]
    ['1/3', '2/3', '1']
    """
    budget = _read(epsilon)
    with at("questions"):
        number = whole(questions, at_least=1)
    return tuple(budget * j / number for j in range(1, number + 1))


def third_of_the_rest(epsilon: ExactLike) -> Iterator[Fraction]:
    """Caps for a number of questions that nobody knows: each spends a third of what remains.

    >>> caps = third_of_the_rest("1")
    >>> [str(next(caps)) for _ in range(3)]
    ['1/3', '5/9', '19/27']
    """
    budget = _read(epsilon)
    return (budget - budget * Fraction(2, 3) ** j for j in count(1))


def _read(epsilon: ExactLike) -> Fraction:
    with at("epsilon"):
        return positive(epsilon, at_most=LARGEST_BUDGET)
