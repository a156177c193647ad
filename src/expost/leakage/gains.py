"""Gain functions: what a guess is worth to an adversary, from 0 to 1, for each value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from expost.domains import FiniteSet
from expost.errors import InvalidInput, at
from expost.files.reading import each, items, whole
from expost.leakage.guesses import Classes, Guesses, Subsets, Table
from expost.numbers import ExactLike, exact

__all__ = ["Gain", "GainMatrix", "Identity", "Nearness", "Property", "Tries"]

_MOST_VALUES = 2000


class Gain(ABC):
    """A gain function g(w, x) between 0 and 1: what the guess w gains if the value is x."""

    @abstractmethod
    def on(self, domain: FiniteSet) -> Guesses:
        """The guesses on a domain."""


@dataclass(frozen=True)
class Identity(Gain):
    """One guess at the value itself: 1 if it is right, else 0. Its vulnerability is Bayes'."""

    def on(self, domain: FiniteSet) -> Guesses:
        return Classes(range(len(domain)))


@dataclass(frozen=True)
class Tries(Gain):
    """Several guesses at the value: 1 if one of them is right, as with a password.

    >>> Tries(3)
    Tries(count=3)
    """

    count: int

    def __post_init__(self) -> None:
        with at("count"):
            object.__setattr__(self, "count", whole(self.count, at_least=1))

    def on(self, domain: FiniteSet) -> Guesses:
        return Subsets(min(self.count, len(domain)))


@dataclass(frozen=True, repr=False)
class Property(Gain):
    """One guess at a property of the value: ``labels`` says for each value which one it has.

    >>> ages = FiniteSet([34, 52, 71])
    >>> Property([age >= 60 for age in ages.values])
    Property(3 values, 2 kinds)
    """

    labels: Sequence[Hashable]

    def __post_init__(self) -> None:
        with at("labels"):
            labels = tuple(items(self.labels))
            try:
                hash(labels)
            except TypeError:
                raise InvalidInput("must be texts, numbers or the like") from None
        object.__setattr__(self, "labels", labels)

    def __repr__(self) -> str:
        return f"Property({len(self.labels)} values, {len(set(self.labels))} kinds)"

    def on(self, domain: FiniteSet) -> Guesses:
        if len(self.labels) != len(domain):
            raise InvalidInput(f"{len(self.labels)} for a domain of {len(domain)} values", "labels")
        return Classes(self.labels)


@dataclass(frozen=True, repr=False)
class GainMatrix(Gain):
    """Any gains: a row per guess with an entry from 0 to 1 per value, exact as written.

    >>> GainMatrix([[1, "1/2", 0], [0, "1/2", 1]])
    GainMatrix(2 guesses, 3 values)
    """

    rows: Sequence[Sequence[ExactLike]]

    def __post_init__(self) -> None:
        with at("rows"):
            read = [each(row, _gain, f"[{i}]") for i, row in enumerate(each(self.rows, items))]
            if not read or not read[0]:
                raise InvalidInput("must be rows of numbers, one row per guess")
            for i, row in enumerate(read):
                if len(row) != len(read[0]):
                    raise InvalidInput(
                        f"has {len(row)} entries, the first row {len(read[0])}", f"[{i}]"
                    )
        object.__setattr__(self, "rows", tuple(map(tuple, read)))

    def __repr__(self) -> str:
        return f"GainMatrix({len(self.rows)} guesses, {len(self.rows[0])} values)"

    def on(self, domain: FiniteSet) -> Guesses:
        if len(self.rows[0]) != len(domain):
            raise InvalidInput(
                f"have {len(self.rows[0])} entries for a domain of {len(domain)} values", "rows"
            )
        return Table.of([list(map(exact, row)) for row in self.rows])


@dataclass(frozen=True)
class Nearness(Gain):
    r"""One guess at a number, worth more the nearer it is: 1 if right, 0 from ``reach`` on.

    .. math:: g(w, x) = \max(0,\ 1 - |w - x| / \text{reach})

    Guesses are the values of the domain. The distance of vectors is the sum over coordinates.

    >>> Nearness("2.5")
    Nearness(reach=Fraction(5, 2))
    """

    reach: ExactLike

    def __post_init__(self) -> None:
        with at("reach"):
            reach = exact(self.reach)
            if reach <= 0:
                raise InvalidInput("must be greater than 0")
        object.__setattr__(self, "reach", reach)

    def on(self, domain: FiniteSet) -> Guesses:
        if len(domain) > _MOST_VALUES:
            raise InvalidInput(
                f"the distances of {len(domain)} values are too many: of at most {_MOST_VALUES}"
            )
        values = [value if isinstance(value, tuple) else (value,) for value in domain.values]
        if any(isinstance(x, str) for value in values for x in value):
            raise InvalidInput("labels have no distance; a GainMatrix can say what is near")
        points = [tuple(exact(x) for x in value) for value in values]
        return Table.of([[self._gain(w, x) for x in points] for w in points])

    def _gain(self, first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
        distance = sum(abs(a - b) for a, b in zip(first, second, strict=True))
        return max(Fraction(0), 1 - distance / exact(self.reach))


def _gain(entry: ExactLike) -> Fraction:
    value = exact(entry)
    if not 0 <= value <= 1:
        raise InvalidInput("must be between 0 and 1")
    return value
