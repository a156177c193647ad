"""The answer of a solver about a loss: two sides, by the best of its formulations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.instances import Array, Instance

__all__ = ["Answer", "Extreme", "Solve", "ask", "inside"]

# Short runs are repeated, because noise only ever adds; ours are too.
SHORT, RUNS = 0.3, 3


@dataclass(frozen=True)
class Extreme:
    """The end of one run: a point, and a bound that holds for all points."""

    seconds: float
    finished: bool
    bound: float
    point: Array | None


Solve = Callable[[Instance, str, int, float], Extreme]
"""Of an instance, in a formulation, the maximum (+1) or the minimum (-1), within some seconds."""


@dataclass(frozen=True)
class Answer:
    """A loss between what two points prove and what the bounds allow.

    ``seconds`` is "at least" where the solver did not finish.
    """

    seconds: float
    finished: bool
    proven: float
    bound: float
    form: str = ""


def inside(instance: Instance, point: Sequence[float] | Array) -> Array:
    """The point of the box that a solver means."""
    rounded = np.where(instance.integer, np.round(point), point)
    return np.clip(rounded, instance.lower, instance.upper)


def ask(instance: Instance, solve: Solve, forms: Sequence[str], seconds: float) -> Answer:
    """The fastest formulation; ``seconds`` is the limit for each side."""
    answers: list[Answer] = []
    for form in forms:
        # Whoever is slower than the best so far need not finish.
        limit = min([seconds, *(answer.seconds for answer in answers if answer.finished)])
        answer = _both_sides(instance, solve, form, limit)
        for _ in range(1, RUNS):
            if answer.finished and answer.seconds < SHORT:
                answer = min(answer, _both_sides(instance, solve, form, limit), key=_order)
        answers.append(answer)
    best = min(answers, key=_order)
    if best.finished:
        return best
    # None finished: the faster of them takes at least as long as the one that was stopped first.
    return replace(best, seconds=min(answer.seconds for answer in answers))


def _order(answer: Answer) -> tuple[bool, float, float]:
    return not answer.finished, answer.seconds if answer.finished else answer.bound, answer.seconds


def _both_sides(instance: Instance, solve: Solve, form: str, seconds: float) -> Answer:
    high, low = (solve(instance, form, sense, seconds) for sense in (1, -1))
    proven = 0.0
    if high.point is not None and low.point is not None:
        most, least = instance.log_likelihood(np.stack([high.point, low.point])).tolist()
        proven = max(0.0, most - least)
    finished = high.finished and low.finished
    return Answer(high.seconds + low.seconds, finished, proven, high.bound - low.bound, form)
