"""Statements about a value, and how sure a belief is of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from expost._format import shorten
from expost.domains import MOST_COMBINATIONS, Attributes, Domain, FiniteSet, Variable, join_names
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.reading import as_list, read_list
from expost.knowledge._grammar import named_rows, parse_predicate
from expost.numbers import exact

__all__ = ["Statement", "locate_all", "read_probability"]


@dataclass(frozen=True, init=False, repr=False)
class Statement:
    """A statement about a value of a finite domain, which holds with a probability at each value.

    On :class:`Attributes`, the definition is a string about the attributes that it names:
    ``'region == "north" and smokes at 3 == "yes"'``.

    ``definition`` is one of

    - a text in the small language of :mod:`expost.knowledge._grammar`: ``"age >= 60"``;
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

    domain: FiniteSet | Attributes
    #: On attributes, the variables that it names; otherwise empty.
    variables: tuple[Variable, ...]
    #: The probability that the statement holds at each value, in the order of the domain.
    #:
    #: A plain predicate has only 0 and 1. On attributes there is one probability for each
    #: combination of the named variables; the last variable changes fastest.
    probabilities: tuple[Fraction, ...]

    def __init__(self, domain: FiniteSet | Attributes, definition: Any) -> None:
        expect(domain, FiniteSet | Attributes, "a FiniteSet or Attributes")
        with at("statement", " " if isinstance(definition, str) else "."):
            if isinstance(domain, Attributes):
                variables, probabilities = _about(domain, definition)
            else:
                variables, probabilities = (), _probabilities(domain, definition)
        vars(self).update(domain=domain, variables=variables, probabilities=tuple(probabilities))

    def __repr__(self) -> str:
        size = len(self.probabilities)
        return f"Statement(about {size} value{'s' if size > 1 else ''})"

    def __invert__(self) -> Statement:
        """Return the statement that this one is false."""
        return self._with([1 - p for p in self.probabilities])

    def __and__(self, other: Statement) -> Statement:
        """Return the conjunction; uncertain statements count as independent.

        Of attributes both have to be about the same ones; a text joins others with ``and``.
        """
        if (self.domain, self.variables) != (other.domain, other.variables):
            raise InvalidInput(
                "the statements differ in domain or attributes; join their texts with and"
            )
        pairs = zip(self.probabilities, other.probabilities, strict=True)
        return self._with([p * q for p, q in pairs])

    def _with(self, probabilities: Sequence[Fraction]) -> Statement:
        result = copy(self)
        vars(result).update(probabilities=tuple(probabilities))
        return result

    @property
    def is_predicate(self) -> bool:
        """True if it is certainly true or certainly false at every value."""
        return all(p in (0, 1) for p in self.probabilities)


def _about(domain: Attributes, definition: Any) -> tuple[tuple[Variable, ...], list[Fraction]]:
    """Read a text: the variables that it names, and where it holds."""
    if not isinstance(definition, str):
        raise InvalidInput("about attributes must be a string, such as 'age >= 60'")
    holds = parse_predicate(definition, domain)
    keys = holds.names
    variables = tuple((key, None) if isinstance(key, str) else key for key in keys)
    sets: list[Sequence[Any]] = [domain[name].values.values for name, _ in variables]
    if not sets:
        raise InvalidInput("names no attribute")
    if (size := math.prod(map(len, sets))) > MOST_COMBINATIONS:
        names = join_names([name for name, _ in variables])
        limit = f"at most {MOST_COMBINATIONS:,} can be looked at"
        raise InvalidInput(f"is about {names}, which have {size:,} combinations; {limit}")
    rows = (dict(zip(keys, values, strict=True)) for values in product(*sets))
    return variables, [Fraction(holds(row)) for row in rows]


def _probabilities(domain: FiniteSet, definition: Any) -> list[Fraction]:
    if isinstance(definition, str):
        holds = parse_predicate(definition, domain)
        return [Fraction(holds(row)) for row in named_rows(domain, domain.values)]
    if isinstance(definition, Mapping):
        result = [Fraction(0)] * len(domain)
        entries: list[Any] = list(definition.values())
        for index, position in enumerate(locate_all(domain, definition)):
            result[position] = read_at(f"[{index}]", read_probability, entries[index])
        return result
    if callable(definition):
        named = domain.names is not None
        arguments = named_rows(domain, domain.values) if named else domain.values
        return [read_probability(definition(argument)) for argument in arguments]
    entries = as_list(definition)
    if len(entries) != len(domain):
        raise InvalidInput(f"has {len(entries)} probabilities for {len(domain)} values")
    return read_list(entries, read_probability)


def locate_all(domain: Domain, values: Iterable[Any]) -> Iterator[Any]:
    """Yield the position of each value; refuse the first that is not in the domain."""
    for index, value in enumerate(values):
        position = domain.locate(value)
        if position is None:
            raise InvalidInput("is not a value of the domain", f"[{index}]")
        yield position


def read_probability(entry: Any) -> Fraction:
    """Read a probability exactly as written; True and False are 1 and 0."""
    if isinstance(entry, (bool, np.bool_)):
        return Fraction(bool(entry))
    probability = exact(entry)
    if not 0 <= probability <= 1:
        raise InvalidInput(f"a probability must be between 0 and 1, not {shorten(str(entry))}")
    return probability
