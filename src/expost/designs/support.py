"""The values that a design reckons with: of a finite set all, of records those that differ.

Of a box it is a sample of points. Each has a probability from the population.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, assert_never

from expost._types import Floats, Indices
from expost.designs.populations import Population
from expost.domains import Attributes, Box, Domain, FiniteSet, Scalar, Variable, join_names
from expost.errors import InvalidInput
from expost.knowledge import named_rows

__all__ = ["MOST_VALUES", "Support", "numbered", "support_of"]

MOST_VALUES = 1_500
"""An estimate by likelihood takes as many."""

Row = Mapping[Any, Scalar]


@dataclass(frozen=True, eq=False)
class Support:
    """Values with their probabilities, on the domain on which a panel simulates them."""

    domain: Domain
    """Of a finite kind it has the numbers of the values: it tells apart what they tell apart."""
    values: Sequence[Any]
    """As a panel takes them."""
    rows: Sequence[Row]
    """As statements read them."""
    weights: Floats
    whole: bool
    """Whether one query can be about all that a value is: not on a box, nor of several steps."""

    def __len__(self) -> int:
        return len(self.weights)

    def taken(self, places: Indices) -> Any:
        """The values at some places, as a panel takes them: numbers all at once."""
        if isinstance(self.values, range):
            return places
        return [self.values[place] for place in places.tolist()]


def support_of(
    domain: Domain, population: Population, variables: Iterable[Variable], seed: int
) -> Support:
    """The support of a study whose goals are about these attributes."""
    match domain:
        case FiniteSet():
            _check(len(domain), "values")
            rows = list(named_rows(domain, domain.values))
            return numbered(rows, population.on_set(domain), whole=True)
        case Attributes():
            return _record_support(domain, population, tuple(dict.fromkeys(variables)))
        case Box():
            points, weights = population.on_box(domain, seed)
            return Support(domain, points, list(named_rows(domain, points)), weights, whole=False)
        case _:
            assert_never(domain)


def _record_support(
    domain: Attributes, population: Population, variables: tuple[Variable, ...]
) -> Support:
    by_name: dict[str, list[int | None]] = {}
    for name, step in variables:
        by_name.setdefault(name, []).append(step)
    steps = {name: tuple(sorted(s for s in own if s is not None)) for name, own in by_name.items()}
    histories = [_histories(domain, name, steps[name]) for name in by_name]
    size = math.prod(map(len, histories))
    _check(size, f"combinations of {join_names(list(by_name))}")
    rows = []
    for combination in product(*histories):
        row: dict[Any, Scalar] = {}
        for name, history in zip(by_name, combination, strict=True):
            row |= (
                {(name, step): x for step, x in zip(steps[name], history, strict=True)}
                if steps[name]
                else {name: history[0]}
            )
        rows.append(row)
    whole = len({step for own in steps.values() for step in own}) <= 1
    return numbered(rows, population.on_rows(domain, rows), whole=whole)


def numbered(rows: Sequence[Row], weights: Floats, *, whole: bool) -> Support:
    """A finite support, whose values go by their numbers."""
    numbers = range(len(rows))
    return Support(FiniteSet(numbers), numbers, rows, weights, whole)


def _check(size: int, what: str) -> None:
    if size > MOST_VALUES:
        raise InvalidInput(f"there are {size:,} {what}; a design takes at most {MOST_VALUES:,}")


def _histories(domain: Attributes, name: str, steps: Sequence[int]) -> list[tuple[Scalar, ...]]:
    """All values of an attribute at some steps that its limits allow, in order."""
    attribute = domain[name]
    values = [x for x in attribute.values.values if not isinstance(x, tuple)]
    if not steps:
        return [(x,) for x in values]
    if len(values) ** min(len(steps), 24) > 1 << 24:
        _check(len(values) ** len(steps), f"histories of {name}")
    change = attribute.change
    assert change is not None
    found: list[tuple[Scalar, ...]] = [()]
    for number, step in enumerate(steps):
        found = [(*before, x) for before in found for x in values]
        if change.times is not None:
            times = change.times
            found = [h for h in found if sum(a != b for a, b in pairwise(h)) <= times]
        if change.max_step is not None and number:
            far = change.max_step * (step - steps[number - 1])
            found = [h for h in found if abs(Fraction(h[-1]) - Fraction(h[-2])) <= far]
        _check(len(found), f"histories of {name}")
    return found
