"""Schedules of caps: where the loss of a subject ends after each of several questions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

from expost.answers import Subject
from expost.errors import InvalidInput, at
from expost.files.canonical import canonical, value_tree
from expost.files.reading import whole
from expost.numbers import LARGEST_BUDGET, ExactLike, positive
from expost.saturation.questions import read_seed

__all__ = ["Turn", "equal_caps", "some_of", "third_of_the_rest"]


def equal_caps(epsilon: ExactLike, *, questions: int) -> tuple[Fraction, ...]:
    """Caps for a known number of questions: j·epsilon/K after the j-th of K.

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


@dataclass(frozen=True, slots=True)
class Turn:
    """Who is asked one of several questions, and where the loss of each of them ends."""

    subjects: tuple[Subject, ...]
    caps: tuple[Fraction, ...]


def some_of(
    epsilon: ExactLike, *, questions: int, subjects: Iterable[Subject], seed: str, each: int = 3
) -> tuple[Turn, ...]:
    """For each of K questions who is asked it: every subject a few of them, drawn by a seed.

    The caps of a subject are i·epsilon/3 after the i-th of three. This is better than to ask
    everybody everything where the domain has more than twice as many values as there are questions.
    Whoever knows the seed can draw the same; it has to be fixed before anybody answers.

    >>> turns = some_of("1", questions=4, subjects=["ann", "bob"], seed="4f1c")
    >>> for turn in turns:
    ...     print(turn.subjects, [str(cap) for cap in turn.caps])
    ('bob',) ['1/3']
    ('ann', 'bob') ['1/3', '2/3']
    ('ann', 'bob') ['2/3', '1']
    ('ann',) ['1']
    """
    with at("questions"):
        number = whole(questions, at_least=1)
    with at("each"):
        few = whole(each, at_least=1)
        if few > number:
            raise InvalidInput(f"{few} of {number} questions are too many")
    caps, key = equal_caps(epsilon, questions=few), read_seed(seed)
    asked: list[list[Subject]] = [[] for _ in range(number)]
    until: list[list[Fraction]] = [[] for _ in range(number)]
    try:
        names = [(subject, canonical(value_tree(subject))) for subject in subjects]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be texts or integers", "subjects") from None
    for subject, name in names:
        digest = hashlib.sha256(key + name).digest()
        # 2^256 is so much larger that all combinations are equally likely.
        drawn = int.from_bytes(digest, "big") % math.comb(number, few)
        for question, cap in zip(_combination(number, few, drawn), caps, strict=True):
            asked[question].append(subject)
            until[question].append(cap)
    return tuple(Turn(tuple(who), tuple(own)) for who, own in zip(asked, until, strict=True))


@lru_cache(maxsize=1 << 12)
def _combination(size: int, few: int, number: int) -> tuple[int, ...]:
    """The combinations of so many out of a size, by number: in their alphabetical order."""
    found: list[int] = []
    for place in range(size):
        if len(found) == few:
            break
        following = math.comb(size - place - 1, few - len(found) - 1)
        if number < following:
            found.append(place)
        else:
            number -= following
    return tuple(found)


def _read(epsilon: ExactLike) -> Fraction:
    with at("epsilon"):
        return positive(epsilon, at_most=LARGEST_BUDGET)
