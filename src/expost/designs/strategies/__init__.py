"""The strategies that a design compares, one file for each."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from expost.designs._reports import Mechanism
from expost.designs.strategies._strategy import Simulation, Strategy
from expost.designs.strategies.basic_composition import BasicComposition
from expost.designs.strategies.declared_plan import DeclaredPlan
from expost.designs.strategies.fixed_epsilon import FixedEpsilon
from expost.designs.strategies.full_value_report import FullValueReport
from expost.designs.strategies.joint_report import JointReport
from expost.designs.strategies.largest_epsilon import LargestEpsilon
from expost.designs.strategies.open_split import OpenSplit
from expost.designs.strategies.saturating_caps import SaturatingCaps
from expost.designs.study import Arrival, Study

__all__ = [
    "BasicComposition",
    "DeclaredPlan",
    "FixedEpsilon",
    "FullValueReport",
    "JointReport",
    "LargestEpsilon",
    "OpenSplit",
    "SaturatingCaps",
    "Simulation",
    "Strategy",
    "reasons_against",
    "strategies_for",
]

#: Multiples of an equal share of the budget, for each question once.
_MULTIPLES = (Fraction(3, 2), Fraction(2), Fraction(3))
#: Shares of the budget for each question, with many rounds.
_SHARES = (Fraction(1, 20), Fraction(1, 6), Fraction(1, 3))
#: Shares of the budget for each question, if the number of questions is unknown.
_WHATEVER_COMES = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4))


def strategies_for(study: Study) -> list[Strategy]:
    """Return all strategies that make sense for a study, whether or not it can use them."""
    return [strategy for strategy, reason in _with_reasons(study) if reason is None]


def reasons_against(study: Study) -> dict[str, str]:
    """Return why other strategies make no sense, by their names or that of a whole family."""
    kept_families = {strategy.family for strategy in strategies_for(study)}
    reasons: dict[str, str] = {}
    for strategy, reason in _with_reasons(study):
        if reason is not None:
            is_family = strategy.family not in kept_families
            reasons.setdefault(strategy.family if is_family else strategy.name, reason)
    return reasons


def _with_reasons(study: Study) -> list[tuple[Strategy, str | None]]:
    strategies = _all(study, len(study.model.questions))
    return [(s, s.reason_against(study.model, study.epsilon)) for s in strategies]


def _all(study: Study, questions: int) -> Iterator[Strategy]:
    sample_sizes = {1, questions, *_choose_sample_sizes(float(study.epsilon), questions)}
    yield from (
        BasicComposition(sampled, questions) for sampled in sorted(sample_sizes, reverse=True)
    )
    if study.arrival is Arrival.OPEN_ENDED:
        yield from (OpenSplit(share) for share in (*_WHATEVER_COMES, None))
    yield JointReport()
    yield from (FullValueReport(mechanism) for mechanism in Mechanism)
    yield from _list_fixed_epsilons(study, questions)
    yield LargestEpsilon(questions)
    if questions > 1:
        yield SaturatingCaps(questions, questions)
    if questions > 3:
        yield SaturatingCaps(3, questions)
    yield SaturatingCaps(None, questions)
    yield from (DeclaredPlan(sampled, questions, study.delta) for sampled in sorted(sample_sizes))


def _choose_sample_sizes(epsilon: float, count: int) -> set[int]:
    """Return the integers next to epsilon / 2.18, which is optimal for unrelated questions."""
    optimum = epsilon / 2.18
    return {
        sample_size for sample_size in (int(optimum), int(optimum) + 1) if 1 < sample_size < count
    }


def _list_fixed_epsilons(study: Study, count: int) -> Iterator[FixedEpsilon]:
    """Yield filters with fixed epsilons; with one round these are above an equal share."""
    if study.rounds > 1:
        yield from (FixedEpsilon(share, study.rounds, Arrival.UP_FRONT) for share in _SHARES)
    elif study.arrival is Arrival.OPEN_ENDED:
        yield from (FixedEpsilon(share, 1, Arrival.OPEN_ENDED) for share in _WHATEVER_COMES)
    else:
        shares = sorted({multiple / count for multiple in _MULTIPLES if multiple <= count})
        yield from (FixedEpsilon(share, 1, Arrival.SEQUENTIAL) for share in shares)
