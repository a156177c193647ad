"""What was answered about one part of a record: ℓ over its combinations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Part, Variable
from expost.loss.exact_elimination import Bases, Found, Places, Rows
from expost.loss.on_set import SetLogLikelihood, finite
from expost.queries import PartLikelihood, Query
from expost.terms.on_set import Powers
from expost.transcript import Summand

__all__ = ["Table", "powers_of", "rank"]

_FEW = 8


def rank(variable: Variable) -> tuple[str, float]:
    """The order of variables, which is that of their names and then of their steps."""
    name, step = variable
    return name, float("-inf") if step is None else step


@dataclass(frozen=True, eq=False)
class Table:
    """ℓ of all responses about the same variables, which are named in the same order."""

    variables: tuple[Variable, ...]
    on_part: SetLogLikelihood

    @classmethod
    def flat(cls, likelihood: PartLikelihood) -> Table:
        """Before anything is asked about these variables."""
        return cls(likelihood.variables, SetLogLikelihood.flat(likelihood.part))

    def add(self, query: Query, position: int) -> Table:
        """The table after one more response to a query about the part."""
        return Table(self.variables, self.on_part.uncharged(query, position))

    @property
    def part(self) -> Part:
        """The combinations of the variables."""
        assert isinstance(self.on_part.domain, Part)
        return self.on_part.domain

    @property
    def step(self) -> int | None:
        """The step that it is about, if any of the variables changes."""
        return next((step for _, step in self.variables if step is not None), None)

    @cached_property
    def order(self) -> list[tuple[str, float]]:
        """Where it is among other tables."""
        return [rank(variable) for variable in self.variables]

    @cached_property
    def sorted(self) -> tuple[Variable, ...]:
        """The variables in the order of axes."""
        return tuple(sorted(self.variables, key=rank))

    @property
    def _axes(self) -> list[int]:
        return [self.variables.index(variable) for variable in self.sorted]

    @cached_property
    def signed(self) -> NDArray[np.float64]:
        """The doubles and their negatives, with an axis for each variable in the order of axes."""
        values = self.on_part.values.reshape(self.part.sizes).transpose(self._axes)
        return np.stack([values, -values])

    @property
    def magnitude(self) -> float:
        """The largest absolute value; combinations that are ruled out have none."""
        lowest = self.on_part.lowest
        if lowest == -math.inf:
            return float(np.abs(finite(self.on_part.values)).max(initial=0.0))
        return max(abs(self.on_part.highest), abs(lowest))

    def rows(self, axes: Sequence[Places], sign: int, bases: Bases) -> Rows:
        """The exponents of the exact likelihoods at some combinations."""
        different, which = self.powers(self._places(axes).tolist())
        return bases.matrix(different)[which]

    def traced(self, places: Sequence[int], sign: int, bases: Bases) -> Found:
        return dict(zip(self.sorted, places, strict=True))

    def at(self, found: Found) -> Counter[int]:
        """The exact likelihood at a combination, as exponents by their bases."""
        different, (which,) = self.powers([self.place(found)])
        return different[which]

    def place(self, found: Found) -> int:
        """Where a combination is in the part."""
        place = self.part.place([found[variable] for variable in self.variables])
        assert place is not None, "every place is there"
        return place

    def _places(self, axes: Sequence[Places]) -> Places:
        """Where combinations are in the part that are given by their places on sorted axes."""
        written: list[Places] = [axes[0]] * len(axes)
        for place, axis in zip(self._axes, axes, strict=True):
            written[place] = axis
        return np.asarray(np.ravel_multi_index(written, self.part.sizes), dtype=np.intp)

    @cached_property
    def _known(self) -> _Known:
        return _Known()

    def powers(self, places: Sequence[int]) -> tuple[list[Counter[int]], list[int]]:
        """The exact likelihoods at some combinations, as exponents by their bases.

        That is, all different ones that are known, and which one is where. They are kept: most
        tables are the same before and after an exchange.
        """
        known = self._known
        missing = [place for place in dict.fromkeys(places) if place not in known.where]
        if missing:
            total = [Counter[int]() for _ in missing]
            for summand in self.on_part.tally:
                found = powers_of(summand, self.part, missing)
                for counter, powers in zip(total, found, strict=True):
                    for base, power in powers:
                        counter[base] += power * summand.times
            for place, counter in zip(missing, total, strict=True):
                known.add(place, counter)
        return known.different, [known.where[place] for place in places]


class _Known:
    """The exact likelihoods of a table that were worked out so far."""

    def __init__(self) -> None:
        self.different: list[Counter[int]] = []
        self.where: dict[int, int] = {}
        self._numbers: dict[frozenset[tuple[int, int]], int] = {}

    def add(self, place: int, powers: Counter[int]) -> None:
        number = self._numbers.setdefault(frozenset(powers.items()), len(self.different))
        if number == len(self.different):
            self.different.append(powers)
        self.where[place] = number


def powers_of(summand: Summand, part: Part, places: Sequence[int]) -> list[Powers]:
    """The exact weights of a response at some combinations, for one of the times it was given.

    There can be many combinations, and few different weights.
    """
    likelihood = summand.query.on(part)
    if len(places) <= _FEW:
        return likelihood.powers(summand.position, places)
    alike = likelihood.alike(summand.position)[places]
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    known = likelihood.powers(summand.position, [places[k] for k in first])
    return [known[k] for k in which]
