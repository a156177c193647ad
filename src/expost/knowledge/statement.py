"""Statements about a value, and how sure a belief is of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from expost.domains import FiniteSet
from expost.errors import InvalidInput, at, expect
from expost.files.reading import each, items
from expost.knowledge.grammar import predicate, rows_of
from expost.numbers import exact

__all__ = ["Statement", "read_probability"]


@dataclass(frozen=True, init=False, repr=False)
class Statement:
    """A statement about a value of a finite domain, which holds with a probability at each value.

    ``says`` is one of

    - a text in the small language of :mod:`expost.knowledge.grammar`: ``"age >= 60"``;
    - a function of a value (of a dictionary, if coordinates have names) that returns True, False,
      or a probability;
    - a mapping from values to probabilities, in which missing values have probability 0, or a
      list of probabilities in the order of the domain.

    ``~statement`` is its negation.

    >>> import expost as xp
    >>> ages = xp.FiniteSet([20, 40, 60])
    >>> adult = Statement(ages, "value >= 30")
    >>> adult.probabilities == Statement(ages, lambda age: age >= 30).probabilities
    True
    """

    domain: FiniteSet
    probabilities: tuple[Fraction, ...]
    """Pr(f(x)) for every value, in the order of the domain; only 0 and 1 for a plain predicate."""

    def __init__(self, domain: FiniteSet, says: Any) -> None:
        expect(domain, FiniteSet, "a FiniteSet")
        with at("statement", " " if isinstance(says, str) else "."):
            object.__setattr__(self, "probabilities", tuple(_probabilities(domain, says)))
        object.__setattr__(self, "domain", domain)

    def __repr__(self) -> str:
        size = len(self.probabilities)
        return f"Statement(about {size} value{'s' if size > 1 else ''})"

    def __invert__(self) -> Statement:
        """The statement that this one is false."""
        return Statement(self.domain, [1 - p for p in self.probabilities])

    def __and__(self, other: Statement) -> Statement:
        """Both; what is true with a probability is true independently of the other."""
        pairs = zip(self.probabilities, other.probabilities, strict=True)
        return Statement(self.domain, [p * q for p, q in pairs])

    @property
    def is_predicate(self) -> bool:
        """Whether it is certainly true or certainly false at every value."""
        return all(p in (0, 1) for p in self.probabilities)


def _probabilities(domain: FiniteSet, says: Any) -> list[Fraction]:
    if isinstance(says, str):
        holds = predicate(says, domain)
        return [Fraction(holds(row)) for row in rows_of(domain, domain.values)]
    if isinstance(says, Mapping):
        result = [Fraction(0)] * len(domain)
        for index, value in enumerate(says):
            position = domain.locate(value)
            if position is None:
                raise InvalidInput("is not a value of the domain", f"[{index}]")
            with at(f"[{index}]"):
                result[position] = read_probability(says[value])
        return result
    if callable(says):
        return [read_probability(says(value)) for value in _arguments(domain)]
    entries = items(says)
    if len(entries) != len(domain):
        raise InvalidInput(f"has {len(entries)} probabilities for {len(domain)} values")
    return each(entries, read_probability)


def _arguments(domain: FiniteSet) -> list[Any]:
    if domain.names is None:
        return list(domain.values)
    return list(rows_of(domain, domain.values))


def read_probability(entry: Any) -> Fraction:
    """Read a probability exactly as written; True and False are 1 and 0."""
    if isinstance(entry, (bool, np.bool_)):
        return Fraction(bool(entry))
    number = exact(int(entry) if isinstance(entry, np.integer) else entry)
    if not 0 <= number <= 1:
        raise InvalidInput("a probability must be between 0 and 1")
    return number
