"""Combinations of the attributes that were asked about, and the histories of those that change.

A distribution of chosen attributes is estimated together with all others that were asked about,
because under a filter the answers about these decide who is asked what. Proof:
docs/theory/estimates.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from expost._types import Indices
from expost.domains import Attributes, Variable
from expost.errors import InvalidInput
from expost.estimation.atoms import Seen, seen_through
from expost.estimation.observations import MOST_VALUES
from expost.knowledge.histories import allowed, copies
from expost.queries import Query
from expost.queries.words import listed

__all__ = ["RecordAtoms", "record_atoms"]


@dataclass(frozen=True, slots=True, eq=False)
class RecordAtoms:
    """All combinations of some attributes; of one that changes, all histories that are allowed."""

    domain: Attributes
    places: Mapping[Variable, Indices]
    """Where the value of each is, at every combination."""

    def __len__(self) -> int:
        return len(next(iter(self.places.values())))

    def seen(self, query: Query) -> Seen:
        likelihood = query.on(self.domain)
        return seen_through(likelihood.on_part, self.where(likelihood.variables))

    def where(self, variables: Sequence[Variable]) -> Indices:
        """For every combination, the place of a part of it."""
        sizes = [len(self.domain[name].values) for name, _ in variables]
        return np.ravel_multi_index([self.places[v] for v in variables], sizes).astype(np.intp)

    def in_words(self) -> str:
        """What they are combinations of."""
        return f"{_listed(self.domain, self.places)} together: {len(self):,} combinations"


def record_atoms(domain: Attributes, variables: Iterable[Variable]) -> RecordAtoms:
    """All combinations of what was asked about."""
    by_name: dict[str, list[Variable]] = {}
    for variable in variables:
        by_name.setdefault(variable[0], []).append(variable)
    places: dict[Variable, Indices] = {}
    size = 1
    for name, own in by_name.items():
        for together, rows in _ways(domain, name, own):
            size *= len(rows)
            if size > MOST_VALUES:
                raise InvalidInput(
                    f"{_listed(domain, [v for each in by_name.values() for v in each])} were asked "
                    f"about and have more than {MOST_VALUES:,} combinations, which is too many to "
                    "estimate together; where who was asked what did not depend on responses, "
                    "take answers.about(…, planned=True) first",
                    "domain",
                )
            places = {v: np.repeat(earlier, len(rows)) for v, earlier in places.items()}
            for column, variable in enumerate(together):
                places[variable] = np.tile(rows[:, column], size // len(rows))
    return RecordAtoms(domain, places)


def _ways(
    domain: Attributes, name: str, own: Sequence[Variable]
) -> list[tuple[list[Variable], Indices]]:
    """What an attribute may be, a row for each: its values, or its histories over some steps."""
    attribute = domain[name]
    if attribute.change is None or not attribute.change.limited:
        single = np.arange(len(attribute.values))[:, None]
        return [([variable], single) for variable in own]
    steps = sorted(step for _, step in own if step is not None)
    first, *moves = allowed(name, attribute, steps)
    rows = np.flatnonzero(first.weights)[:, None]
    for move in moves:
        earlier, later = np.nonzero(move.weights[rows[:, -1]])
        if len(earlier) > MOST_VALUES:
            raise InvalidInput(
                f"{name} has more than {MOST_VALUES:,} histories over the {len(steps)} steps that "
                "were asked about, which is too many to estimate together",
                "domain",
            )
        rows = np.column_stack([rows[earlier], later])
    return [([(name, step) for step in steps], rows // copies(attribute, steps))]


def _listed(domain: Attributes, variables: Iterable[Variable]) -> str:
    steps: dict[str, list[int]] = {}
    for name, step in variables:
        steps.setdefault(name, []).extend([] if step is None else [step])
    told = []
    for name in domain.names:
        if name in steps:
            when = listed(sorted(steps[name]))
            plural = "s" if len(steps[name]) > 1 else ""
            told.append(f"{name} at step{plural} {when}" if steps[name] else name)
    return listed(told)
