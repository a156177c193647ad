"""Two records that the responses tell apart most: where ℓ is largest and where it is smallest.

Only variables that were asked about are in them. What makes no difference is the same in both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from expost.domains import Attributes, Record, Variable
from expost.loss.component import Component
from expost.loss.exponents import Found
from expost.loss.tables import Table
from expost.numbers._exact_sum import ExactSum

__all__ = ["TwoRecords", "two_records"]


@dataclass(frozen=True, slots=True)
class TwoRecords:
    """A record for which the responses are likeliest, and one for which they are least likely."""

    likeliest: Record
    unlikeliest: Record
    ratio: Fraction
    """The likelihood of the second over that of the first, exactly; 0 if it is ruled out."""


def two_records(domain: Attributes, components: Sequence[Component]) -> TwoRecords | None:
    """The two records that are most apart; None if no record can have given the responses."""
    if any(part.extremes[0] == -math.inf for part in components):
        return None
    likeliest: Found = {}
    for part in components:
        likeliest |= part.extreme(1)
    ruled_out = _ruled_out(domain, components, likeliest)
    if ruled_out is not None:
        return TwoRecords(domain.record(likeliest), domain.record(ruled_out), Fraction(0))
    unlikeliest: Found = {}
    for part in components:
        own = {variable: likeliest[variable] for variable in part.sizes}
        unlikeliest |= _closer(domain, part, part.extreme(-1), own)
    tables = [table for part in components for table in part.tables]
    ratio = _ratio(tables, unlikeliest, likeliest).ratio
    return TwoRecords(domain.record(likeliest), domain.record(unlikeliest), ratio)


def _closer(domain: Attributes, part: Component, found: Found, other: Found) -> Found:
    """A combination that is as likely as one that was found, and more like another one."""
    about: dict[Variable, list[Table]] = {}
    for table in part.tables:
        for variable in table.variables:
            about.setdefault(variable, []).append(table)
    for group in _groups(part):
        changed = {variable: other[variable] for variable in group}
        closer = found | changed
        if closer == found:
            continue
        touched = list(dict.fromkeys(table for variable in group for table in about[variable]))
        if _ratio(touched, found, closer).sign == 0 and _allowed(domain, closer):
            found = closer
    return found


def _groups(part: Component) -> Iterator[list[Variable]]:
    """What to make alike at once: all of it, whole attributes, then variable by variable."""
    yield list(part.sizes)
    for name in dict.fromkeys(name for name, _ in part.sizes):
        yield [variable for variable in part.sizes if variable[0] == name]
    yield from ([variable] for variable in part.sizes)


def _ratio(tables: Sequence[Table], first: Found, second: Found) -> ExactSum:
    """How much likelier these tables are at one combination than at another, exactly."""
    powers: Counter[int] = Counter()
    for table in tables:
        powers.update(table.exactly.at(first))
        powers.subtract(table.exactly.at(second))
    return ExactSum.product(powers)


def _ruled_out(
    domain: Attributes, components: Sequence[Component], likeliest: Found
) -> Found | None:
    """A record that some response rules out, if there is one: much like the likeliest one."""
    for part in components:
        for table in part.tables:
            if table.on_part.lowest > -math.inf:
                continue
            places = np.flatnonzero(table.on_part.values == -math.inf)
            combinations = np.transpose(np.unravel_index(places, table.part.sizes))
            own = [likeliest[variable] for variable in table.variables]
            nearest = combinations[(combinations != own).sum(axis=1).argmin()]
            values = dict(zip(table.variables, map(int, nearest), strict=True))
            record = likeliest | values
            # A value that is kept throughout needs no change.
            constant = {name: place for (name, _), place in values.items()}
            held = {v: constant.get(v[0], place) for v, place in likeliest.items()}
            return record if _allowed(domain, record) else held
    return None


def _allowed(domain: Attributes, found: Found) -> bool:
    """Whether the values at the steps, which are in order, keep the limits of their attributes."""
    histories: dict[str, list[tuple[int, int]]] = {}
    for (name, step), place in found.items():
        if step is not None:
            histories.setdefault(name, []).append((step, place))
    for name, history in histories.items():
        attribute, moves = domain[name], list(pairwise(history))
        change = attribute.change
        assert change is not None, "only what changes has steps"
        if change.times is not None and sum(a != b for (_, a), (_, b) in moves) > change.times:
            return False
        if change.max_step is not None and any(
            abs(attribute.numbers[b] - attribute.numbers[a]) > change.max_step * (later - earlier)
            for (earlier, a), (later, b) in moves
        ):
            return False
    return True
