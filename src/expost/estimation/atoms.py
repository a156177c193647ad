"""What a distribution is estimated on: values, and how likely each makes a response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from expost._types import Floats
from expost.domains import FiniteSet
from expost.estimation.decoding import probabilities
from expost.queries import FiniteLikelihood, Query
from expost.queries.lifted import Lifted
from expost.queries.values.pairwise import Pairwise

__all__ = ["Atoms", "Seen", "SetAtoms", "seen_through"]


# Below this epsilon, responses hardly tell values apart.
_TELLING = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a query sees of the atoms."""

    responses: int
    """How many there are, perhaps astronomically many."""
    logs: Callable[[int], Floats]
    """The log-likelihood of a response at every atom, up to a constant."""
    chances: Callable[[], Floats]
    """The probability of every response, a row for each, at every atom."""
    apart: Floats | None = None
    """Rows that tell apart what all responses together do, where that is known."""


class Atoms(Protocol):
    """The values that a distribution gives probabilities to: of a set, of records, of a box."""

    def __len__(self) -> int:
        """How many there are."""

    def seen(self, query: Query) -> Seen:
        """What a query sees of them."""


@dataclass(frozen=True, slots=True, eq=False)
class SetAtoms:
    """The values of a finite set."""

    domain: FiniteSet

    def __len__(self) -> int:
        return len(self.domain)

    def seen(self, query: Query) -> Seen:
        likelihood = query.on(self.domain)
        if isinstance(likelihood, Lifted):
            return seen_through(likelihood.seen, likelihood.where)
        return seen_through(likelihood, slice(None))


def seen_through(likelihood: FiniteLikelihood, where: Any) -> Seen:
    """What a query sees of atoms, each of which is like one value of a set."""
    apart = None
    if isinstance(likelihood, Pairwise) and likelihood.chances and not likelihood.merging:
        telling = likelihood.epsilon.nearest > _TELLING
        apart = np.eye(len(likelihood.domain))[:, where][: None if telling else 0]
    return Seen(
        len(likelihood.responses),
        lambda position: _logs(likelihood, position)[where],
        lambda: probabilities(likelihood).T[:, where],
        apart,
    )


def _logs(likelihood: FiniteLikelihood, position: int) -> Floats:
    if isinstance(likelihood, Pairwise):
        # The same as its term, without exact weights for each of very many responses.
        return np.where(likelihood.speaks_for(position), likelihood.epsilon.nearest, 0.0)
    return likelihood.term(position).logs
