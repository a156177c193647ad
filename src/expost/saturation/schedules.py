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
from expost.errors import InvalidInput, at, read_at
from expost.files.canonical import canonical_bytes, value_tree
from expost.files.reading import read_integer
from expost.numbers import LARGEST_BUDGET, ExactLike, positive
from expost.saturation._question import read_seed

__all__ = ["CapAssignment", "equal_caps", "geometric_caps", "sampled_caps"]


def equal_caps(epsilon: ExactLike, *, questions: int) -> tuple[Fraction, ...]:
    """Return caps for a known number of questions: j·epsilon/K after the j-th of K.

    >>> [str(cap) for cap in equal_caps("1", questions=3)]
    ['1/3', '2/3', '1']
    """
    budget = _read(epsilon)
    question_count = read_at("questions", read_integer, questions, at_least=1)
    return tuple(budget * j / question_count for j in range(1, question_count + 1))


def geometric_caps(epsilon: ExactLike) -> Iterator[Fraction]:
    """Yield caps for an unknown number of questions: each spends a third of the remaining budget.

    >>> caps = geometric_caps("1")
    >>> [str(next(caps)) for _ in range(3)]
    ['1/3', '5/9', '19/27']
    """
    budget = _read(epsilon)
    return (budget - budget * Fraction(2, 3) ** j for j in count(1))


@dataclass(frozen=True, slots=True)
class CapAssignment:
    """The subjects who are asked one of several questions, and the cap of each."""

    subjects: tuple[Subject, ...]
    caps: tuple[Fraction, ...]


def sampled_caps(
    epsilon: ExactLike,
    *,
    questions: int,
    subjects: Iterable[Subject],
    seed: str,
    per_subject: int = 3,
) -> tuple[CapAssignment, ...]:
    """Draw a few of K questions for every subject, with equal caps, by a public seed.

    The caps of a subject are i·epsilon/3 after the i-th of three. This is better than asking
    everyone everything if the domain has more than twice as many values as there are questions.

    Args:
        epsilon: The budget of each subject.
        questions: The number of questions, K.
        subjects: The names of all subjects.
        seed: Hexadecimal digits; anyone who knows them can repeat the draw. Fix the seed before
            the first answer.
        per_subject: The number of questions of each subject.

    Returns:
        For each question its subjects and their caps.

    >>> turns = sampled_caps("1", questions=4, subjects=["ann", "bob"], seed="4f1c")
    >>> for turn in turns:
    ...     print(turn.subjects, [str(cap) for cap in turn.caps])
    ('bob',) ['1/3']
    ('ann', 'bob') ['1/3', '2/3']
    ('ann', 'bob') ['2/3', '1']
    ('ann',) ['1']
    """
    question_count = read_at("questions", read_integer, questions, at_least=1)
    with at("per_subject"):
        sample_size = read_integer(per_subject, at_least=1)
        if sample_size > question_count:
            raise InvalidInput(f"{sample_size} of {question_count} questions are too many")
    caps, key = equal_caps(epsilon, questions=sample_size), read_seed(seed)
    subjects_by_question: list[list[Subject]] = [[] for _ in range(question_count)]
    caps_by_question: list[list[Fraction]] = [[] for _ in range(question_count)]
    try:
        encoded_subjects = [(subject, canonical_bytes(value_tree(subject))) for subject in subjects]
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("must be strings or integers", "subjects") from None
    for subject, encoded in encoded_subjects:
        digest = hashlib.sha256(key + encoded).digest()
        # 2^256 is so much larger that all combinations are equally likely.
        rank = int.from_bytes(digest, "big") % math.comb(question_count, sample_size)
        sampled_questions = _combination(question_count, sample_size, rank)
        for question, cap in zip(sampled_questions, caps, strict=True):
            subjects_by_question[question].append(subject)
            caps_by_question[question].append(cap)
    pairs = zip(subjects_by_question, caps_by_question, strict=True)
    return tuple(CapAssignment(tuple(names), tuple(name_caps)) for names, name_caps in pairs)


@lru_cache(maxsize=1 << 12)
def _combination(size: int, sample_size: int, rank: int) -> tuple[int, ...]:
    """Return the combination of a rank, in lexicographic order."""
    combination: list[int] = []
    for position in range(size):
        if len(combination) == sample_size:
            break
        remaining = math.comb(size - position - 1, sample_size - len(combination) - 1)
        if rank < remaining:
            combination.append(position)
        else:
            rank -= remaining
    return tuple(combination)


def _read(epsilon: ExactLike) -> Fraction:
    return read_at("epsilon", positive, epsilon, at_most=LARGEST_BUDGET)
