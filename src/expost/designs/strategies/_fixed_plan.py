"""Outcomes of subjects who answer several questions with independent noise."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np

from expost._types import Floats, Indices
from expost.designs._accuracy import ExactOutcomes, Outcomes, SimulatedOutcomes
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import StudyModel

__all__ = [
    "fixed_plan",
    "outcomes_from_tallies",
    "reason_against_plan",
    "reason_against_simulation",
    "simulated_subject_count",
]

_MOST_KINDS = 4_096
#: The largest number of unknowns of an estimate by likelihood, in values or in outcomes.
_MOST_CELLS = 256
# Of subjects who are simulated one by one, with all that they are asked: on a box, where each
# decision is a search, and elsewhere.
_MOST_ANSWERS = {True: 150_000, False: 1_000_000}
#: The largest number of simulated subjects × questions × values.
_MOST_ENTRIES = 50_000_000
_FEWEST_SUBJECTS = 8_000


def reason_against_simulation(model: StudyModel) -> str | None:
    """Return why no strategy with many kinds of outcomes is predicted, or None."""
    if model.cell_count <= _MOST_CELLS:
        return None
    return (
        f"the answers tell {model.cell_count:,} groups of values apart; a likelihood of so many "
        f"outcomes is predicted for at most {_MOST_CELLS}"
    )


def reason_against_plan(model: StudyModel, sampled: int) -> str | None:
    """Return why a fixed plan is not predicted, or None."""
    responses = sum(max(2, int(question.answers.max()) + 1) for question in model.questions)
    is_short = sampled == 1 and min(responses, model.cell_count) <= _MOST_CELLS
    return None if is_short else reason_against_simulation(model)


def fixed_plan(
    model: StudyModel, epsilons: Sequence[Fraction], sampled: int, simulation: Simulation
) -> Outcomes:
    """Return the outcomes if each subject is asked so many sampled questions, in a fixed plan.

    Where there are few kinds of outcomes their probabilities are exact; else subjects are drawn.

    Args:
        model: The study.
        epsilons: The epsilon of each question; if there are fewer, the other questions are not
            asked.
        sampled: The number of these questions that each subject is asked.
        simulation: Its size and seed.
    """
    tables = [
        question.best_table(model.support, epsilon)
        for question, epsilon in zip(model.questions, epsilons, strict=False)
    ]
    count = len(tables)
    answering = (sampled / count,) * count + (0.0,) * (len(model.questions) - count)
    sizes = [len(table) for table in tables]
    plan_count = comb(count, sampled)
    if plan_count * prod(sorted(sizes)[-sampled:]) <= _MOST_KINDS:
        rows = [
            _product([tables[index] for index in indices]) / plan_count
            for indices in combinations(range(count), sampled)
        ]
        return ExactOutcomes.of(np.concatenate(rows), model.weights, answering, float(sampled))
    return _draw_outcomes(tables, sampled, model, simulation, answering)


def _product(tables: Sequence[Floats]) -> Floats:
    rows = tables[0]
    for table in tables[1:]:
        rows = (rows[:, None] * table[None]).reshape(-1, rows.shape[1])
    return rows


def _draw_outcomes(
    tables: Sequence[Floats],
    sampled: int,
    model: StudyModel,
    simulation: Simulation,
    answering: tuple[float, ...],
) -> Outcomes:
    generator = np.random.default_rng(simulation.seed)
    size = simulated_subject_count(model, sampled, simulation)
    values = generator.choice(len(model.weights), size=size, p=model.weights)
    order = generator.random((size, len(tables)))
    is_asked = order <= np.partition(order, sampled - 1, axis=1)[:, sampled - 1 : sampled]
    starts = np.cumsum([0, *map(len, tables)])
    tally = np.zeros((size, starts[-1]), dtype=np.int16)
    for question, table in enumerate(tables):
        subjects = np.flatnonzero(is_asked[:, question])
        ends = np.cumsum(table, axis=0)[:, values[subjects]]
        responses = (generator.random(len(subjects)) > ends).sum(axis=0)
        tally[subjects, starts[question] + np.minimum(responses, len(table) - 1)] = 1
    return outcomes_from_tallies(tally, np.log(np.concatenate(tables)), model, answering)


def simulated_subject_count(model: StudyModel, questions: int, simulation: Simulation) -> int:
    """Count the subjects to simulate one by one: full groups, or enough for asymptotics."""
    on_box = bool(model.support.domain.sides)
    affordable = _MOST_ENTRIES // (questions * len(model.support))
    fewest = min(_FEWEST_SUBJECTS, max(_FEWEST_SUBJECTS // 4, affordable))
    most = max(fewest, min(affordable, _MOST_ANSWERS[on_box] // questions))
    groups = min(simulation.repetitions, most // model.subjects)
    return max(groups * model.subjects, fewest)


def outcomes_from_tallies(
    tally: Indices, logs: Floats, model: StudyModel, answering: tuple[float, ...]
) -> SimulatedOutcomes:
    """Return the outcomes of simulated tallies, from the log-likelihoods of their responses."""
    distinct, kinds = np.unique(tally, axis=0, return_inverse=True)
    return SimulatedOutcomes.of(
        distinct @ logs,
        kinds.reshape(-1),
        model.weights,
        answering,
        float(tally.sum()) / len(tally),
    )
