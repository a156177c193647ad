"""ℓ over attributes that questions tie together, each of which has one value.

Proof: docs/theory/attributes.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from expost.domains import Part, Variable
from expost.loss.component import Component, Marginals, sum_error
from expost.loss.elimination import eliminate, plan
from expost.loss.exact_table import rank
from expost.loss.tables import Table

__all__ = ["Tied"]


@dataclass(frozen=True, eq=False)
class Tied(Component):
    """Tables over attributes that have one value each, or one at a certain step."""

    follows_steps: ClassVar[bool] = False

    def with_table(self, table: Table) -> Tied:
        return Tied(self.tables_with(table))

    @cached_property
    def error(self) -> float:
        return sum_error(self.tables, 2 * len(self.sizes))

    def check(self) -> None:
        plan(tuple(self.sizes.items()), (*(table.sorted for table in self.tables), ()), ())

    def marginals(self, variables: tuple[Variable, ...], part: Part | None) -> Marginals:
        sizes, target = self.sizes_with(variables, part), tuple(sorted(variables, key=rank))
        scopes = (*(table.sorted for table in self.tables), target)
        flat = np.zeros((2, *(sizes[variable] for variable in target)))
        sums = eliminate(
            plan(tuple(sizes.items()), scopes, target),
            [*(table.signed for table in self.tables), flat],
        )
        return Marginals.of(
            sums, [*(table.exactly for table in self.tables), None], self.error, variables
        )
