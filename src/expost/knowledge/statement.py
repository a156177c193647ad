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
from expost.knowledge.belief import Belief
from expost.knowledge.grammar import predicate, rows_of
from expost.numbers import exact

__all__ = ["Statement", "check_belief", "confidence"]


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
                result[position] = _probability(says[value])
        return result
    if callable(says):
        return [_probability(says(value)) for value in _arguments(domain)]
    entries = items(says)
    if len(entries) != len(domain):
        raise InvalidInput(f"has {len(entries)} probabilities for {len(domain)} values")
    return each(entries, _probability)


def _arguments(domain: FiniteSet) -> list[Any]:
    if domain.names is None:
        return list(domain.values)
    return list(rows_of(domain, domain.values))


def _probability(entry: Any) -> Fraction:
    if isinstance(entry, (bool, np.bool_)):
        return Fraction(bool(entry))
    number = exact(int(entry) if isinstance(entry, np.integer) else entry)
    if not 0 <= number <= 1:
        raise InvalidInput("a probability must be between 0 and 1")
    return number


def confidence(belief: Belief, statement: Statement) -> Fraction:
    r"""How sure somebody with this belief is of a statement: its exact probability.

    .. math:: Q(f) = \sum_x P[f(x)] \, Q(x)

    (Paper, section 2.2.)

    >>> import expost as xp
    >>> from expost.knowledge.belief import Belief
    >>> ages = xp.FiniteSet([20, 40, 60])
    >>> confidence(Belief.uniform(ages), Statement(ages, "value >= 30"))
    Fraction(2, 3)
    """
    _check_pair(belief, statement)
    pairs = zip(belief.weights, statement.probabilities, strict=True)
    sure = sum((weight * p for weight, p in pairs if p), start=Fraction(0))
    return sure / belief.total


def check_belief(
    belief: Belief,
    event: Statement,
    probability: Any,
    *,
    given: Statement | None = None,
) -> None:
    """Raise an error if a belief contradicts a known Pr(event), or Pr(event | given).

    (Paper, section 2.1, properties 2 and 3 of a belief.)

    >>> import expost as xp
    >>> from expost.knowledge.belief import Belief
    >>> ages = xp.FiniteSet([20, 40, 60])
    >>> check_belief(Belief.uniform(ages), Statement(ages, "value >= 30"), "1/2")
    Traceback (most recent call last):
      ...
    expost.errors.InvalidInput: the belief has 2/3 here, not 1/2
    """
    with at("probability"):
        known = _probability(probability)
    found = confidence(belief, event)
    if given is not None:
        if not (event.is_predicate and given.is_predicate):
            raise InvalidInput("a condition needs statements that are true or false of each value")
        condition = confidence(belief, given)
        if condition == 0:
            raise InvalidInput("the belief rules out what is given")
        found = confidence(belief, _both(event, given)) / condition
    if found != known:
        raise InvalidInput(f"the belief has {_shown(found)} here, not {_shown(known)}")


def _both(first: Statement, second: Statement) -> Statement:
    pairs = zip(first.probabilities, second.probabilities, strict=True)
    return Statement(first.domain, [p * q for p, q in pairs])


def _check_pair(belief: Belief, statement: Statement) -> None:
    expect(belief, Belief, "a Belief")
    expect(statement, Statement, "a Statement")
    if belief.domain != statement.domain:
        raise InvalidInput("the statement and the belief have different domains")


def _shown(number: Fraction) -> str:
    return str(number) if number.denominator < 10**6 else f"about {float(number):.6g}"
