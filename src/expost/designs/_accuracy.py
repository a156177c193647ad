r"""The outcomes that subjects show, and the accuracy of estimates from them.

An outcome is everything that an analyst sees of a subject. Values with equal likelihoods for all
outcomes are one *cell*, and tables have a column for each cell.

For a goal :math:`g \cdot p`, with the information I of one subject, maximum likelihood has the
variance :math:`(g^\top I^+ g - (g \cdot p)^2) / n` in the limit of many subjects. With few of them
it can be better, because probabilities are not negative, or worse. So groups are simulated and
their distributions estimated. The limit of each estimate is known, with its exact variance: the
simulation corrects it, and only has to find the difference (a control variate). Proof:
docs/theory/saturating.md."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import ClassVar

import numpy as np

from expost._types import Floats, Indices
from expost.estimation._mle import fit_mixture

__all__ = [
    "Accuracy",
    "ExactOutcomes",
    "LikelihoodOutcomes",
    "ObservedGroup",
    "Outcomes",
    "SimulatedOutcomes",
    "Target",
    "affordable_groups",
    "predict_accuracy",
]


#: A row of likelihoods for each kind of outcome in a group, and the number of its subjects.
ObservedGroup = tuple[Floats, Floats]

_DIGITS = 12

# All estimates of a simulation take about so many products for each of a dozen steps.
_PRODUCTS = 100_000_000


def affordable_groups(rows: int, cells: int) -> int:
    """Count the groups that can be estimated by likelihood from so many rows."""
    return _PRODUCTS // ((rows + cells) * cells**2)


@dataclass(frozen=True, eq=False)
class Outcomes(ABC):
    """The outcomes that subjects from a population show under a strategy."""

    #: How the prediction is computed, in one or two words.
    method: ClassVar[str]
    #: The cell of each value of the support.
    cells: Indices
    #: The probability of each cell.
    weights: Floats
    #: The share of subjects who answer in each round.
    answering: tuple[float, ...]
    #: How many answers a subject gives, on average.
    answers: float

    @abstractmethod
    def determined_part(self, rows: Floats) -> Floats:
        """Project linear functions of the distribution on what the outcomes determine."""

    @abstractmethod
    def limit_variances(self, rows: Floats) -> Floats:
        """Compute the variances of their estimates in the limit, for one subject."""

    @abstractmethod
    def errors(
        self, rows: Floats, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield their errors in simulated groups, at most ``repetitions``, and those in the limit.

        The latter have exactly the limit's variances.
        """


@dataclass(frozen=True, eq=False)
class LikelihoodOutcomes(Outcomes):
    """Outcomes from which goals are estimated by maximum likelihood."""

    @property
    @abstractmethod
    def scores(self) -> Floats:
        r"""Rows whose products sum to Fisher's information of one subject.

        That is :math:`E[L_j L_k / (L \cdot p)^2]`.
        """

    @property
    def information(self) -> Floats:
        """Fisher's information of one subject."""
        return np.asarray(self.scores.T @ self.scores)

    @cached_property
    def _inverse(self) -> _PseudoInverse:
        return _PseudoInverse.of(self.scores)

    def determined_part(self, rows: Floats) -> Floats:
        return self._inverse.project(rows)

    def limit_variances(self, rows: Floats) -> Floats:
        squares = np.einsum("ij,ij->i", self._inverse.times(rows), rows)
        return np.asarray(np.maximum(0.0, squares - (rows @ self.weights) ** 2))

    @abstractmethod
    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[ObservedGroup]:
        """Yield simulated groups of so many subjects, at most ``repetitions``."""

    def errors(
        self, rows: Floats, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[tuple[Floats, Floats]]:
        weights = self.weights
        efficient = self._inverse.times(rows)
        most_rows = min(subjects, self.kind_count)
        repetitions = min(repetitions, affordable_groups(most_rows, len(weights)))
        for table, counts in self.groups(subjects, repetitions, generator):
            start = 0.9 * weights + 0.1 / len(weights)
            table = table / table.max(axis=1, keepdims=True)
            fit = fit_mixture(table, counts, gap=_FIT_GAP, steps=_FIT_STEPS, start=start)
            slopes = (counts / (table @ weights)) @ table / subjects
            # Each slope is one on average, whatever subjects gave the information.
            yield rows @ (fit.weights - weights), efficient @ (slopes - 1)

    @property
    @abstractmethod
    def kind_count(self) -> int:
        """The number of kinds of outcomes, at most."""


@dataclass(frozen=True, eq=False)
class ExactOutcomes(LikelihoodOutcomes):
    """Outcomes of few kinds, with exact probabilities: the table of one channel."""

    method: ClassVar[str] = "exact"
    #: Pr(outcome | cell): a row for each outcome.
    table: Floats

    @classmethod
    def of(
        cls, table: Floats, weights: Floats, answering: tuple[float, ...], answers: float
    ) -> ExactOutcomes:
        """Make it from a channel with a row for each outcome and a column for each value."""
        columns, cells, cell_weights = _merge_columns(table, weights)
        return cls(cells, cell_weights, answering, answers, columns.copy())

    @cached_property
    def _chances(self) -> Floats:
        mixed = np.asarray(self.table @ self.weights)
        return np.asarray(mixed / mixed.sum())

    @cached_property
    def scores(self) -> Floats:
        possible = self._chances > 0
        return np.asarray(self.table[possible] / np.sqrt(self._chances[possible, None]))

    @property
    def kind_count(self) -> int:
        return len(self.table)

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[ObservedGroup]:
        for counts in generator.multinomial(subjects, self._chances, size=repetitions):
            yield _observe_group(self.table, counts)


@dataclass(frozen=True, eq=False)
class SimulatedOutcomes(LikelihoodOutcomes):
    """Outcomes of subjects who were simulated one by one, by the kinds of their tallies."""

    method: ClassVar[str] = "simulated"
    #: A row of likelihoods for each kind, whose largest entry is one.
    table: Floats
    #: The kind of each subject.
    kinds: Indices

    @classmethod
    def of(
        cls,
        logs: Floats,
        kinds: Indices,
        weights: Floats,
        answering: tuple[float, ...],
        answers: float,
    ) -> SimulatedOutcomes:
        """Make it from log-likelihoods, with a row for each kind and a column for each value."""
        columns, cells, cell_weights = _merge_columns(logs, weights)
        table = np.exp(columns - columns.max(axis=1, keepdims=True))
        return cls(cells, cell_weights, answering, answers, table, kinds)

    @cached_property
    def scores(self) -> Floats:
        shares = np.bincount(self.kinds, minlength=len(self.table)) / len(self.kinds)
        factors = np.sqrt(shares) / (self.table @ self.weights)
        return np.asarray(self.table * factors[:, None])

    @property
    def kind_count(self) -> int:
        return len(self.table)

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[ObservedGroup]:
        for group in range(min(repetitions, len(self.kinds) // subjects)):
            group_kinds = self.kinds[group * subjects : (group + 1) * subjects]
            yield _observe_group(self.table, np.bincount(group_kinds, minlength=len(self.table)))


def _merge_columns(table: Floats, weights: Floats) -> tuple[Floats, Indices, Floats]:
    """Merge equal columns; return them, the cell of each value, and the weight of each cell."""
    columns, cells = np.unique(np.round(table.T, _DIGITS), axis=0, return_inverse=True)
    cells = cells.reshape(-1)
    return columns.T, cells, np.bincount(cells, weights).astype(np.float64)


def _observe_group(table: Floats, counts: Indices) -> ObservedGroup:
    """Return the rows that occur in a group, and how often."""
    occurring = counts > 0
    return table[occurring], counts[occurring].astype(np.float64)


_FIT_GAP = 1e-3
_FIT_STEPS = 300
_FLAT = 1e-9
# A score on a grid is determined except for its rounding.
_RELATIVE_MISS = 0.03
#: With fewer groups the error of a simulation is unknown.
_FEWEST_GROUPS = 4


@dataclass(frozen=True, eq=False)
class Target:
    """A goal on the support: linear functions of the distribution, and their scale."""

    #: One row, or several for a distribution; the error is then the root of their mean square.
    rows: Floats
    #: The range of the estimate: 1 for a share.
    scale: float


@dataclass(frozen=True)
class Accuracy:
    """Standard errors of several goals in their units, and combined relative to their scales."""

    standard_errors: tuple[float, ...]
    asymptotic: tuple[float, ...]
    #: The root of the mean square over goals, each relative to its scale.
    combined: float
    #: The standard error of ``combined`` from the simulation; 0 without one.
    simulation_error: float
    #: The number of simulated groups; 0 if there are only asymptotics.
    groups: int


def predict_accuracy(
    outcomes: Outcomes,
    targets: Sequence[Target],
    subjects: int,
    *,
    repetitions: int,
    generator: np.random.Generator,
) -> Accuracy:
    """Predict the standard errors of maximum-likelihood estimates from so many subjects.

    They are infinite for goals that the outcomes do not determine at all.
    """
    determined = [_is_determined(outcomes, target) for target in targets]
    if not all(determined):
        errors, groups = np.full((2, len(targets)), math.inf), 0
        if any(determined):
            targets = list(compress(targets, determined))
            partial = predict_accuracy(
                outcomes, targets, subjects, repetitions=repetitions, generator=generator
            )
            errors[:, determined] = partial.standard_errors, partial.asymptotic
            groups = partial.groups
        all_errors, limits = map(tuple, errors.tolist())
        return Accuracy(all_errors, limits, math.inf, 0.0, groups)
    rows = np.concatenate([_cell_means(target, outcomes) for target in targets])
    target_of_row = np.repeat(np.arange(len(targets)), [len(target.rows) for target in targets])
    scales = np.array([target.scale for target in targets])
    limit_variances = outcomes.limit_variances(rows) / subjects
    squared_errors, squared_limit_errors = [], []
    for errors, limit_errors in outcomes.errors(rows, subjects, repetitions, generator):
        squared_errors.append(errors**2)
        squared_limit_errors.append(limit_errors**2)
    goal_rows = [target_of_row == goal for goal in range(len(targets))]
    means = np.array([limit_variances[is_of_goal].mean() for is_of_goal in goal_rows])
    asymptotic = tuple(np.sqrt(means).tolist())
    if len(squared_errors) < _FEWEST_GROUPS:
        combined = math.sqrt(float((means / scales**2).mean()))
        return Accuracy(asymptotic, asymptotic, combined, 0.0, 0)
    standard_errors, simulation_errors = [], []
    weights_by_goal = [is_of_goal / is_of_goal.sum() for is_of_goal in goal_rows]
    combined_weights = np.array(weights_by_goal).T @ (1 / scales**2) / len(targets)
    for row_weights in [*weights_by_goal, combined_weights]:
        square, error = _control_variate_mean(
            np.array(squared_errors) @ row_weights,
            np.array(squared_limit_errors) @ row_weights,
            float(limit_variances @ row_weights),
        )
        standard_errors.append(math.sqrt(square))
        simulation_errors.append(error / (2 * math.sqrt(square)) if square else 0.0)
    return Accuracy(
        tuple(standard_errors[:-1]),
        asymptotic,
        standard_errors[-1],
        simulation_errors[-1],
        len(squared_errors),
    )


def _control_variate_mean(
    squares: Floats, limit_squares: Floats, limit_mean: float
) -> tuple[float, float]:
    """Estimate the mean of squares with a control variate of known mean; return its error too."""
    variance = float(limit_squares.var())
    covariance = float(((squares - squares.mean()) * (limit_squares - limit_squares.mean())).mean())
    slope = min(1.0, max(0.0, covariance / variance)) if variance else 0.0
    residuals = squares - slope * limit_squares
    # Never below a share of the observed mean: a correction of noise could make it negative.
    mean = max(float(residuals.mean()) + slope * limit_mean, 0.1 * float(squares.mean()))
    return mean, float(residuals.std(ddof=1)) / math.sqrt(len(residuals))


def _cell_means(target: Target, outcomes: Outcomes) -> Floats:
    """Average a goal over each cell."""
    sizes = np.bincount(outcomes.cells)
    return np.array([np.bincount(outcomes.cells, row) / sizes for row in target.rows])


def _is_determined(outcomes: Outcomes, target: Target) -> bool:
    """Return whether the outcomes determine a goal at all."""
    rows = _cell_means(target, outcomes)
    missed_norms = np.linalg.norm(rows[:, outcomes.cells] - target.rows, axis=1)
    if (missed_norms > _RELATIVE_MISS * np.linalg.norm(target.rows, axis=1)).any():
        return False
    outside = np.linalg.norm(rows - outcomes.determined_part(rows), axis=1)
    return bool((outside <= _RELATIVE_MISS * np.linalg.norm(rows, axis=1)).all())


@dataclass(frozen=True, eq=False)
class _PseudoInverse:
    """The pseudo-inverse of an information matrix."""

    sizes: Floats
    directions: Floats

    @classmethod
    def of(cls, scores: Floats) -> _PseudoInverse:
        is_wide = scores.shape[0] < scores.shape[1]
        sizes, directions = np.linalg.eigh(scores @ scores.T if is_wide else scores.T @ scores)
        positive = sizes > _FLAT * sizes[-1]
        sizes, directions = sizes[positive], directions[:, positive]
        return cls(sizes, scores.T @ directions / np.sqrt(sizes) if is_wide else directions)

    def project(self, rows: Floats) -> Floats:
        """Project rows on what the outcomes determine."""
        return np.asarray(rows @ self.directions @ self.directions.T)

    def times(self, rows: Floats) -> Floats:
        return np.asarray((rows @ self.directions / self.sizes) @ self.directions.T)
