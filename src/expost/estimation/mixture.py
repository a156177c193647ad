"""The likeliest mixture of values, and what it says about means of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.estimation.atoms import Seen
from expost.estimation.identified import determined, outside
from expost.estimation.likeliest import Likeliest, likeliest
from expost.estimation.observations import Observations

__all__ = ["STEPS", "Mixture", "likeliest_mixture"]


STEPS = 1000

# A replicate with this gap, in nats, is off by a few hundredths of a standard error.
_ROUGH = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """What was observed, the likeliest weights of the groups of alike values, and their gap."""

    observed: Observations
    found: Likeliest
    basis: Floats
    """Orthonormal columns: the responses determine exactly the combinations of these."""

    @property
    def probabilities(self) -> Floats:
        """One per value; alike ones get equal shares."""
        return self._shared(self.found.weights)

    def unknown(self, wanted: Floats) -> NDArray[np.bool_]:
        """Which means the responses do not determine; a column of scores for each."""
        return outside(self.basis, wanted)

    def replicate(self, generator: np.random.Generator) -> Floats:
        """The probabilities from as many subjects, drawn again with replacement."""
        counts, weights = self.observed.counts, self.found.weights
        total = counts.sum()
        drawn = generator.multinomial(int(total), counts / total)
        seen = drawn > 0
        # Away from the edge, so that every value can get a positive probability again.
        start = np.asarray(0.99 * weights + 0.01 / len(weights), dtype=np.float64)
        table, again = self.observed.table[seen], drawn[seen].astype(np.float64)
        return self._shared(likeliest(table, again, gap=_ROUGH, steps=STEPS, start=start).weights)

    def _shared(self, weights: Floats) -> Floats:
        alike = self.observed.alike
        return np.asarray((weights / np.bincount(alike))[alike])


def likeliest_mixture(
    observed: Observations,
    asked: Iterable[Seen],
    *,
    gap: float,
    steps: int,
    progress: Callable[[int, float], None] | None = None,
) -> Mixture:
    """Search for the likeliest mixture, and work out what the responses determine of it."""
    found = likeliest(observed.table, observed.counts, gap=gap, steps=steps, progress=progress)
    basis = determined(observed, found.weights, asked)
    for array in (observed.table, observed.counts, observed.alike, found.weights, basis):
        array.setflags(write=False)
    return Mixture(observed, found, basis)
