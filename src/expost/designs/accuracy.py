r"""How accurate estimates will be: by asymptotics, and by estimating from simulated groups.

For a goal :math:`g \cdot p`, with the information I of one subject, maximum likelihood has the
variance :math:`(g^\top I^+ g - (g \cdot p)^2) / n` in the limit of many subjects. With few of them
it can be better, because probabilities are not negative, or worse. So groups are simulated and
their distributions estimated. What each estimate would be in the limit is known, with its exact
variance: the simulation corrects it, and has to find no more than the difference (a control
variate). Proof: docs/theory/designs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from expost._types import Floats
from expost.designs.outcomes import Outcomes
from expost.estimation._mle import fit_mixture

__all__ = ["Accuracy", "Target", "accuracy"]

_GAP = 1e-3
_STEPS = 300
_FLAT = 1e-9
# A score that is told on a grid is determined but for its rounding.
_MISSED = 0.03
_FEWEST = 4
"""With fewer groups nothing can be said about the error of a simulation."""


@dataclass(frozen=True, eq=False)
class Target:
    """A goal on the support: linear functions of the distribution, and what their scale is."""

    rows: Floats
    """Several for a distribution: the error of the goal is the root of their mean square."""
    scale: float
    """The range of what is estimated: 1 for a share."""


@dataclass(frozen=True)
class Accuracy:
    """Standard errors of several goals, in their own units, and together relative to scales."""

    standard_errors: tuple[float, ...]
    asymptotic: tuple[float, ...]
    together: float
    """The root of the mean square over goals, each relative to its scale."""
    simulation_error: float
    """The standard error of that from the simulation; 0 where there was none."""
    groups: int
    """How many were simulated; 0 if there are only asymptotics."""


def accuracy(
    outcomes: Outcomes,
    targets: Sequence[Target],
    subjects: int,
    *,
    repetitions: int,
    generator: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> Accuracy:
    """What estimates by maximum likelihood from so many subjects will be off, as a rule."""
    inverse = _Inverse.of(outcomes.information)
    there = [_determined(outcomes, target, inverse) for target in targets]
    if not all(there):
        some = [target for target, known in zip(targets, there, strict=True) if known]
        if not some:
            return _without(Accuracy((), (), math.inf, 0.0, 0), there)
        known = accuracy(
            outcomes, some, subjects, repetitions=repetitions, generator=generator, tick=tick
        )
        return _without(known, there)
    rows = np.concatenate([_on_cells(target, outcomes) for target in targets])
    weights = outcomes.weights
    pulled = inverse.times(rows)
    parts = np.repeat(np.arange(len(targets)), [len(target.rows) for target in targets])
    scales = np.array([target.scale for target in targets])
    truth = rows @ weights
    limit = np.maximum(0.0, np.einsum("ij,ij->i", pulled, rows) - truth**2) / subjects
    off, off_in_limit = [], []
    for table, counts in outcomes.groups(subjects, repetitions, generator):
        start = 0.9 * weights + 0.1 / len(weights)
        heights = table.max(axis=1, keepdims=True)
        found = fit_mixture(table / heights, counts, gap=_GAP, steps=_STEPS, start=start)
        off.append((rows @ found.weights - truth) ** 2)
        slopes = (counts / (table @ weights)) @ table / subjects
        # Each slope is one on average, whatever subjects the information was worked out from.
        off_in_limit.append((pulled @ (slopes - 1)) ** 2)
        tick()
    means = np.array([limit[parts == goal].mean() for goal in range(len(targets))])
    asymptotic = tuple(np.sqrt(means).tolist())
    if len(off) < _FEWEST:
        together = math.sqrt(float((means / scales**2).mean()))
        return Accuracy(asymptotic, asymptotic, together, 0.0, 0)
    by_goal, errors = [], []
    shares = [(parts == goal) / (parts == goal).sum() for goal in range(len(targets))]
    in_all = np.array(shares).T @ (1 / scales**2) / len(targets)
    for share in [*shares, in_all]:
        square, error = _corrected(
            np.array(off) @ share, np.array(off_in_limit) @ share, float(limit @ share)
        )
        by_goal.append(math.sqrt(square))
        errors.append(error / (2 * math.sqrt(square)) if square else 0.0)
    return Accuracy(tuple(by_goal[:-1]), asymptotic, by_goal[-1], errors[-1], len(off))


def _corrected(squares: Floats, in_limit: Floats, limit: float) -> tuple[float, float]:
    """The mean of squares whose counterparts have a known mean, and its standard error."""
    spread = float(in_limit.var())
    shared = float(((squares - squares.mean()) * (in_limit - in_limit.mean())).mean())
    slope = min(1.0, max(0.0, shared / spread)) if spread else 0.0
    rest = squares - slope * in_limit
    # Never below a share of what was seen: a correction of noise could make it negative.
    mean = max(float(rest.mean()) + slope * limit, 0.1 * float(squares.mean()))
    return mean, float(rest.std(ddof=1)) / math.sqrt(len(rest))


def _on_cells(target: Target, outcomes: Outcomes) -> Floats:
    """A goal as a function of cells: its mean over each."""
    sizes = np.bincount(outcomes.cells)
    return np.array([np.bincount(outcomes.cells, row) / sizes for row in target.rows])


def _determined(outcomes: Outcomes, target: Target, inverse: _Inverse) -> bool:
    """Whether what is seen determines a goal at all."""
    rows = _on_cells(target, outcomes)
    missed = np.linalg.norm(rows[:, outcomes.cells] - target.rows, axis=1)
    if (missed > _MISSED * np.linalg.norm(target.rows, axis=1)).any():
        return False
    outside = np.linalg.norm(rows - inverse.seen(rows), axis=1)
    return bool((outside <= _MISSED * np.linalg.norm(rows, axis=1)).all())


@dataclass(frozen=True, eq=False)
class _Inverse:
    """The pseudo-inverse of an information."""

    sizes: Floats
    directions: Floats

    @classmethod
    def of(cls, information: Floats) -> _Inverse:
        sizes, directions = np.linalg.eigh(information)
        kept = sizes > _FLAT * sizes[-1]
        return cls(sizes[kept], directions[:, kept])

    def seen(self, rows: Floats) -> Floats:
        """What of the rows the outcomes determine."""
        return np.asarray(rows @ self.directions @ self.directions.T)

    def times(self, rows: Floats) -> Floats:
        return np.asarray((rows @ self.directions / self.sizes) @ self.directions.T)


def _without(found: Accuracy, there: Sequence[bool]) -> Accuracy:
    """The accuracy where some goals are not determined at all."""
    known, limits = iter(found.standard_errors), iter(found.asymptotic)
    return Accuracy(
        tuple(next(known) if each else math.inf for each in there),
        tuple(next(limits) if each else math.inf for each in there),
        math.inf,
        0.0,
        found.groups,
    )
