"""ℓ over attributes that are tied together and of which some change a limited number of times.

What was answered about one step is a table over the values at that step. The extremes for the
values at one step are those of this step's tables, of all that came before and of all that comes
after. Steps that nobody asked about need not be there. Proof: docs/theory/changing.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from expost.domains import Attributes, Part, Variable
from expost.loss.component import Component, Marginals, sum_error
from expost.loss.elimination import eliminate, plan
from expost.loss.exact_elimination import Exactly
from expost.loss.sweeps import Around, At, Floats, State, Sweep
from expost.loss.tables import Table, rank

__all__ = ["Chained"]


@dataclass(frozen=True, eq=False)
class Chained(Component):
    """Tables about the steps of some attributes, and about others that are tied to these."""

    domain: Attributes

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 4 * len(self._steps) + 2 * len(self.sizes))

    @cached_property
    def _steps(self) -> list[int]:
        """The steps that were asked about."""
        return sorted({step for _, step in self.sizes if step is not None})

    def check(self) -> None:
        self._whole  # noqa: B018  whatever is too large is noticed on the way

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        state = self._state([*self.sizes, *variables])
        state.check()
        steps = [step for _, step in variables if step is not None]
        # Where no step is asked about, any of them will do.
        here = steps[0] if steps else self._steps[0]
        before = [self._at(state, step) for step in self._steps if step < here]
        after = [self._at(state, step) for step in reversed(self._steps) if step > here]
        around = Around(
            Sweep(state, before, here, self.error),
            Sweep(state, after, here, self.error),
            state,
            self.error,
        )
        # Tables about no step are taken here, and nowhere else.
        tables = [table for table in self.tables if table.step in (None, here)]
        return self._eliminated(tables, (state.front(here), around.best, around), variables, part)

    def _state(self, variables: Sequence[Variable]) -> State:
        """What ties steps together: all that has one value, or a limit to its changes."""
        changes = {name: self.domain[name].change for name, _ in variables}
        return State(
            self.domain,
            tuple(
                sorted(name for name, change in changes.items() if change is None or change.limited)
            ),
        )

    def _at(self, state: State, step: int) -> At:
        """What was answered about a step, over its values."""
        tables = [table for table in self.tables if table.step == step]
        front = state.front(step)
        flat = np.zeros((2, *state.values))
        return At(step, self._eliminated(tables, (front, flat, None), front, None))

    def _eliminated(
        self,
        tables: Sequence[Table],
        more: tuple[tuple[Variable, ...], Floats, Exactly | None],
        target: tuple[Variable, ...],
        part: Part | None,
    ) -> Marginals:
        """What some tables and one more say about a target, all at one step."""
        scope, floats, exactly = more
        ordered = tuple(sorted(target, key=rank))
        sizes = {v: len(self.domain[v[0]].values) for v in (*scope, *target)}
        for table in tables:
            sizes.update(zip(table.variables, table.part.sizes, strict=True))
        flat = np.zeros((2, *(sizes[variable] for variable in ordered)))
        # All steps are alike, so the plan leaves them out.
        scopes = (*(_plain(table.sorted) for table in tables), _plain(scope), _plain(ordered))
        plain = tuple((_plain([v])[0], sizes[v]) for v in sorted(sizes, key=rank))
        sums = eliminate(
            plan(plain, scopes, _plain(ordered)), [*(t.signed for t in tables), floats, flat]
        )
        return Marginals.of(sums, [*tables, exactly, None], self.error, target)


def _plain(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    return tuple((name, None) for name, _ in variables)
