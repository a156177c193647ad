"""Gain functions: for each guess and each true value, what the guess is worth to an adversary."""

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
    """The goal of an adversary: g(w, x) in [0, 1] is the gain of the guess w if the value is x.

    Choose one of :class:`Identity`, :class:`Tries`, :class:`Property`, :class:`Nearness` and
    :class:`GainMatrix`, and hand it to a measure such as :func:`vulnerability` or
    :func:`capacity`.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> ages = xp.FiniteSet([30, 40, 50, 60])
    >>> [str(vulnerability(Belief.uniform(ages), goal)) for goal in (Identity(), Tries(2))]
    ['1/4', '1/2']
    """

    @abstractmethod
    def on(self, domain: FiniteSet) -> Guesses:
        """The guesses that an adversary with this goal has on a domain."""


@dataclass(frozen=True)
class Identity(Gain):
    r"""One guess at the value itself, worth 1 if it is right and 0 if not.

    .. math:: g(w, x) = 1[w = x]

    The vulnerability is then the probability of the likeliest value (Bayes vulnerability).

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> vulnerability(Belief(smokes, {"no": "3/4", "yes": "1/4"}), Identity())
    Fraction(3, 4)
    """

    def on(self, domain: FiniteSet) -> Guesses:
        return Classes(range(len(domain)))


@dataclass(frozen=True)
class Tries(Gain):
    """Several guesses at the value, worth 1 if one of them is right, as with a password.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> pin = xp.FiniteSet(range(10_000))
    >>> vulnerability(Belief.uniform(pin), Tries(3))
    Fraction(3, 10000)
    """

    count: int

    def __post_init__(self) -> None:
        with at("count"):
            object.__setattr__(self, "count", whole(self.count, at_least=1))

    def on(self, domain: FiniteSet) -> Guesses:
        return Subsets(min(self.count, len(domain)))


@dataclass(frozen=True, repr=False)
class Property(Gain):
    """One guess at a property of the value, worth 1 if it is right and 0 if not.

    ``labels`` gives the property of every value, in the order of the domain.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> ages = xp.FiniteSet([34, 52, 71])
    >>> old = Property([age >= 60 for age in ages.values])
    >>> vulnerability(Belief.uniform(ages), old)
    Fraction(2, 3)
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
    """Any gains: a row per guess with an entry per value, from 0 to 1 and exact as written.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> near = GainMatrix([[1, "1/2", 0], [0, "1/2", 1]])
    >>> near
    GainMatrix(2 guesses, 3 values)
    >>> vulnerability(Belief.uniform(xp.FiniteSet(["low", "middle", "high"])), near)
    Fraction(1, 2)
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
    r"""One guess at a number, worth more the nearer it is.

    .. math:: g(w, x) = \max(0,\ 1 - |w - x| / \text{reach})

    It is worth 1 if it is right, and nothing at a distance of ``reach`` or more. Guesses are the
    values of the domain. The distance of vectors is the sum over their coordinates.

    >>> import expost as xp
    >>> from expost.knowledge import Belief
    >>> from expost.leakage import vulnerability
    >>> ages = xp.FiniteSet([30, 35, 40])
    >>> vulnerability(Belief.uniform(ages), Nearness(10))
    Fraction(2, 3)
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
