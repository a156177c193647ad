"""Ways of asking, a file for each."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from expost.designs.policies.approximate import Approximate
from expost.designs.policies.basic import Basic
from expost.designs.policies.filtered import Filtered
from expost.designs.policies.policy import Policy, Simulation
from expost.designs.policies.staged import Staged
from expost.designs.policies.tilted import Tilted
from expost.designs.policies.value_once import AnswersOnce, ValueOnce
from expost.designs.study import Arrival, Study

__all__ = [
    "AnswersOnce",
    "Approximate",
    "Basic",
    "Filtered",
    "Policy",
    "Simulation",
    "Staged",
    "Tilted",
    "ValueOnce",
    "policies_for",
]

_MULTIPLES = (Fraction(3, 2), Fraction(2), Fraction(3))
"""Of an equal share of the budget, at which a filter refuses nothing."""
_SHARES = (Fraction(1, 20), Fraction(1, 6), Fraction(1, 3))
"""Of the budget, for many rounds."""
_WHATEVER_COMES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))
"""Of the budget, where nobody knows how many questions there will be."""


def policies_for(study: Study) -> list[Policy]:
    """All ways of asking that make sense for a study, whether or not it can carry them out."""
    model = study.model
    return [policy for policy in _all(study, len(model.questions)) if policy.fits(model)]


def _all(study: Study, count: int) -> Iterator[Policy]:
    numbers = {1, count, *_between(float(study.epsilon), count)}
    yield from (Basic(asked, count) for asked in sorted(numbers, reverse=True))
    yield AnswersOnce()
    yield ValueOnce(0)
    yield ValueOnce(1)
    yield from _filtered(study, count)
    yield Staged(count)
    if count > 1:
        yield Tilted(count, count)
    if count > 3:
        yield Tilted(3, count)
    yield Tilted(None, count)
    if study.delta:
        yield from (Approximate(asked, count, study.delta) for asked in sorted(numbers))


def _between(epsilon: float, count: int) -> set[int]:
    """About epsilon / 2.18 unrelated questions are best; the numbers next to it."""
    best = epsilon / 2.18
    return {number for number in (int(best), int(best) + 1) if 1 < number < count}


def _filtered(study: Study, count: int) -> Iterator[Filtered]:
    """Parts of the budget for each question: with one round above an equal share."""
    if study.rounds > 1:
        yield from (Filtered(part, study.rounds, Arrival.TOGETHER) for part in _SHARES)
    elif study.arrival is Arrival.OPEN:
        yield from (Filtered(part, 1, Arrival.OPEN) for part in _WHATEVER_COMES)
    else:
        parts = sorted({each / count for each in _MULTIPLES if each <= count})
        yield from (Filtered(part, 1, Arrival.IN_TURN) for part in parts)
