"""What is seen of a subject who answers several questions whose noise is independent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, prod

import numpy as np

from expost._types import Floats, Indices
from expost.designs.outcomes import Kinds, Outcomes, Seen
from expost.designs.strategies._strategy import Simulation
from expost.designs.study import Model

__all__ = ["fixed_plan", "simulated", "tallied"]

_MOST_KINDS = 4_096
# Of subjects who are simulated one by one, with all that they are asked: on a box, where each
# decision is a search, and elsewhere.
_MOST_ANSWERS = {True: 150_000, False: 1_500_000}
_FEWEST_SUBJECTS = {True: 4_000, False: 20_000}


def fixed_plan(
    tables: Sequence[Floats], asked: int, model: Model, simulation: Simulation
) -> Outcomes:
    """Each subject is asked so many of the questions at random, whatever is answered.

    ``tables`` has Pr(response | value) of each question. Where there are few kinds of outcomes
    their probabilities are exact; else subjects are drawn.
    """
    count = len(tables)
    answering = (asked / count,) * count
    sizes = [len(table) for table in tables]
    chosen = comb(count, asked)
    if chosen * prod(sorted(sizes)[-asked:]) <= _MOST_KINDS:
        rows = [
            _product([tables[place] for place in places]) / chosen
            for places in combinations(range(count), asked)
        ]
        return Kinds.of(np.concatenate(rows), model.weights, answering, float(asked))
    return _drawn(tables, asked, model, simulation, answering)


def _product(tables: Sequence[Floats]) -> Floats:
    rows = tables[0]
    for table in tables[1:]:
        rows = (rows[:, None] * table[None]).reshape(-1, rows.shape[1])
    return rows


def _drawn(
    tables: Sequence[Floats],
    asked: int,
    model: Model,
    simulation: Simulation,
    answering: tuple[float, ...],
) -> Outcomes:
    generator = np.random.default_rng(simulation.seed)
    size = simulated(model, asked, simulation)
    values = generator.choice(len(model.weights), size=size, p=model.weights)
    order = generator.random((size, len(tables)))
    whom = order <= np.partition(order, asked - 1, axis=1)[:, asked - 1 : asked]
    starts = np.cumsum([0, *map(len, tables)])
    tally = np.zeros((size, starts[-1]), dtype=np.int16)
    for number, table in enumerate(tables):
        own = np.flatnonzero(whom[:, number])
        ends = np.cumsum(table, axis=0)[:, values[own]]
        drawn = (generator.random(len(own)) > ends).sum(axis=0)
        tally[own, starts[number] + np.minimum(drawn, len(table) - 1)] = 1
    logs = np.log(np.concatenate(tables))
    return tallied(tally, logs, model, answering)


def simulated(model: Model, questions: int, simulation: Simulation) -> int:
    """How many subjects are simulated one by one: whole groups, or enough for asymptotics."""
    searched = bool(model.support.domain.sides)
    fewest = _FEWEST_SUBJECTS[searched]
    most = max(fewest, _MOST_ANSWERS[searched] // questions)
    groups = min(simulation.repetitions, most // model.subjects)
    return max(groups * model.subjects, fewest)


def tallied(tally: Indices, logs: Floats, model: Model, answering: tuple[float, ...]) -> Seen:
    """Outcomes from how often each subject gave each response, and their log-likelihoods."""
    kept, kinds = np.unique(tally, axis=0, return_inverse=True)
    return Seen.of(
        kept @ logs,
        kinds.reshape(-1),
        model.weights,
        answering,
        float(tally.sum()) / len(tally),
    )
