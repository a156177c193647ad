"""What a saturating query needs of the responses so far: the likelihood of what a budget protects.

That is the likelihood of the whole value, or at a level of protection that of the one unit which
the question is about. Proof: docs/theory/levels.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from expost.domains import Attributes, Domain, Variable, require_attributes
from expost.errors import InvalidInput
from expost.filters import Filter
from expost.filters._levels import EVERYTHING, Level, Steps, Unit, Window, unit_of_question
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.saturation._question import AnswerPartition
from expost.saturation._value_classes import (
    ValueLikelihoods,
    exchanges_of,
    likelihoods_after,
    rules_out_a_record,
)
from expost.solver import Effort
from expost.tally import Summand

__all__ = ["UnitState", "level_of", "unit_asked", "unit_state"]

_GRID = 10**10


@dataclass(frozen=True, eq=False)
class UnitState:
    """The likelihoods of the values of a unit, after the responses of one subject."""

    likelihoods: ValueLikelihoods
    #: The most that the other steps of one window have spent, rounded up.
    elsewhere: Fraction = Fraction(0)


def level_of(filter_: Filter | None) -> Level:
    """Return the level of the single filter of a study."""
    return EVERYTHING if filter_ is None else filter_.members[0].level


def unit_asked(level: Level, domain: Domain, partition: AnswerPartition) -> Unit | None:
    """Return the unit that a question is about; None if everything is protected."""
    if level == EVERYTHING:
        return None
    return unit_of_question(level, require_attributes(domain, "levels"), partition.variables)


def unit_state(
    domain: Domain, level: Level, unit: Unit | None, summands: Sequence[Summand]
) -> UnitState | None:
    """Return the state of a unit; None if the responses rule some value out.

    Raises:
        InvalidInput: An earlier query ties the unit to other variables.
    """
    if unit is None:
        likelihoods = likelihoods_after(domain, summands)
        return None if likelihoods is None else UnitState(likelihoods)
    domain = require_attributes(domain, "levels")
    if rules_out_a_record(domain, summands):
        return None
    around = unit
    if isinstance(unit, Window):
        assert isinstance(level, Steps)
        around = Window(unit.first - level.width + 1, 2 * level.width - 1)
    near = [
        (summand, variables)
        for summand in summands
        if around.touches(variables := summand.query.on(domain).variables)
    ]
    if not all(around.has(variable) for _, variables in near for variable in variables):
        raise InvalidInput(
            f"an earlier query ties {unit.label} to other attributes, so that no saturating query "
            "can be about it alone; use a query with an epsilon"
        )
    own = [summand for summand, variables in near if unit.touches(variables)]
    likelihoods = likelihoods_after(domain, own)
    assert likelihoods is not None
    return UnitState(likelihoods, _spent_elsewhere(domain, level, unit, near))


def _spent_elsewhere(
    domain: Attributes,
    level: Level,
    unit: Unit,
    near: Iterable[tuple[Summand, Sequence[Variable]]],
) -> Fraction:
    """Bound the loss of the other steps of a window that contains a step, at worst over windows."""
    if not isinstance(unit, Window) or not isinstance(level, Steps):
        return Fraction(0)
    by_step: dict[int, list[Summand]] = defaultdict(list)
    for summand, _ in near:
        if summand.query.step is not None and summand.query.step != unit.first:
            by_step[summand.query.step].append(summand)
    losses = {
        step: Fraction(
            AttributesLogLikelihood.of(domain, exchanges_of(domain, own)).loss(Effort()).upper
        )
        for step, own in by_step.items()
    }
    # A window that starts at a step without a query contains no more than a later one.
    starts = [unit.first, *(step for step in losses if step < unit.first)]
    most = max(
        sum(
            (loss for step, loss in losses.items() if first <= step < first + level.width),
            Fraction(0),
        )
        for first in starts
    )
    return Fraction(math.ceil(most * _GRID), _GRID)
