"""What an analyst will have of a subject: the likelihoods of all that may be seen, and how often.

Values that nothing which is seen tells apart are one *cell*. Tables have a column for each cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expost._types import Floats, Indices

__all__ = ["Group", "Kinds", "Outcomes", "Seen", "Subsets"]


Group = tuple[Floats, Floats]
"""A row of likelihoods for each kind of outcome that is there, and how many subjects have it."""

_DRAWN = 20_000
"""Subjects from whom the information of too many kinds of responses is worked out."""

_DIGITS = 12

# An estimate from subsets takes about so many products for each of a dozen steps.
_PRODUCTS = 300_000_000
_FEWEST = 8


class Outcomes(ABC):
    """What subjects with values from a population show under a strategy."""

    cells: Indices
    """The cell of each value of the support."""
    weights: Floats
    """The probability of each cell."""
    answering: tuple[float, ...]
    """The share of subjects who answer in each round."""
    answers: float
    """How many answers a subject gives, on average."""

    @property
    @abstractmethod
    def information(self) -> Floats:
        r"""Fisher's information of one subject, :math:`E[L_j L_k / (L \cdot p)^2]`."""

    @abstractmethod
    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[Group]:
        """Groups of so many subjects, at most as many as wanted, one after the other."""


@dataclass(frozen=True, eq=False)
class Kinds(Outcomes):
    """Few kinds of outcomes, each with its exact probability: a table of one channel."""

    cells: Indices
    weights: Floats
    table: Floats
    """Pr(outcome | cell): a row for each outcome."""
    answering: tuple[float, ...]
    answers: float

    @classmethod
    def of(
        cls, table: Floats, weights: Floats, answering: tuple[float, ...], answers: float
    ) -> Kinds:
        """The channel with a row for each outcome and a column for each value."""
        columns, cells = np.unique(np.round(table.T, _DIGITS), axis=0, return_inverse=True)
        cells = cells.reshape(-1)
        return cls(cells, _summed(cells, weights), columns.T.copy(), answering, answers)

    @cached_property
    def _chances(self) -> Floats:
        mixed = np.asarray(self.table @ self.weights)
        return np.asarray(mixed / mixed.sum())

    @cached_property
    def information(self) -> Floats:
        seen = self._chances > 0
        rows = self.table[seen]
        return np.asarray(rows.T @ (rows / self._chances[seen, None]))

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[Group]:
        for counts in generator.multinomial(subjects, self._chances, size=repetitions):
            seen = counts > 0
            yield self.table[seen], counts[seen].astype(np.float64)


@dataclass(frozen=True, eq=False)
class Subsets(Outcomes):
    """Sets of so many cells, of which there are too many to list: subset selection."""

    cells: Indices
    weights: Floats
    size: int
    ratio: float
    """How much likelier it is for a cell in the set."""
    answering: tuple[float, ...] = (1.0,)
    answers: float = 1.0

    @cached_property
    def information(self) -> Floats:
        rows, _ = self._group(_DRAWN, np.random.default_rng(0))
        scores = rows / (rows @ self.weights)[:, None]
        return np.asarray(scores.T @ scores) / _DRAWN

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[Group]:
        within = max(_FEWEST, _PRODUCTS // (subjects * len(self.weights) ** 2))
        for _ in range(min(repetitions, within)):
            yield self._group(subjects, generator)

    def _group(self, subjects: int, generator: np.random.Generator) -> Group:
        count, size = len(self.weights), self.size
        own = generator.choice(count, size=subjects, p=self.weights)
        keys = generator.random((subjects, count))
        heavy = size * self.ratio
        inside = generator.random(subjects) * (heavy + count - size) < heavy
        # The cell itself comes first where it is in, and last where it is not.
        keys[np.arange(subjects), own] = np.where(inside, -1.0, 2.0)
        chosen = np.argpartition(keys, size - 1, axis=1)[:, :size]
        rows = np.full((subjects, count), 1 / self.ratio)
        np.put_along_axis(rows, chosen, 1.0, axis=1)
        return rows, np.ones(subjects)


@dataclass(frozen=True, eq=False)
class Seen(Outcomes):
    """What subjects answered who were simulated one by one, by the kinds of their tallies."""

    cells: Indices
    weights: Floats
    table: Floats
    """A row of likelihoods for each kind, whose largest entry is one."""
    kinds: Indices
    """The kind of each subject."""
    answering: tuple[float, ...]
    answers: float

    @classmethod
    def of(
        cls,
        logs: Floats,
        kinds: Indices,
        weights: Floats,
        answering: tuple[float, ...],
        answers: float,
    ) -> Seen:
        """Log-likelihoods with a row for each kind and a column for each value."""
        columns, cells = np.unique(np.round(logs.T, _DIGITS), axis=0, return_inverse=True)
        cells, logs = cells.reshape(-1), columns.T
        table = np.exp(logs - logs.max(axis=1, keepdims=True))
        return cls(cells, _summed(cells, weights), table, kinds, answering, answers)

    @cached_property
    def information(self) -> Floats:
        scores = self.table / (self.table @ self.weights)[:, None]
        shares = np.bincount(self.kinds, minlength=len(self.table)) / len(self.kinds)
        return np.asarray(scores.T @ (scores * shares[:, None]))

    def groups(
        self, subjects: int, repetitions: int, generator: np.random.Generator
    ) -> Iterator[Group]:
        for group in range(min(repetitions, len(self.kinds) // subjects)):
            own = self.kinds[group * subjects : (group + 1) * subjects]
            counts = np.bincount(own, minlength=len(self.table))
            seen = counts > 0
            yield self.table[seen], counts[seen].astype(np.float64)


def _summed(cells: Indices, weights: Floats) -> Floats:
    """The weight of each cell."""
    return np.bincount(cells, weights).astype(np.float64)
