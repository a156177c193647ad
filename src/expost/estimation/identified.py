"""What responses determine of a distribution, whatever the search for it found."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from expost._types import Floats
from expost.estimation.atoms import Seen
from expost.estimation.likeliest import curvature
from expost.estimation.observations import Observations

__all__ = ["determined", "outside"]


# A direction in which the likelihood has less relative curvature than this is not identified.
_FLAT = 1e-10
_OUTSIDE = 1e-6
_MOST_POSSIBLE = 1000

# A search from the inside leaves less than this where the true maximum is zero.
_DUST = 1e-6


def determined(observed: Observations, weights: Floats, asked: Iterable[Seen]) -> Floats:
    """What the responses determine: an orthonormal basis of the rows and of the sum, which is one.

    Responses that nobody gave count too, because their absence is informative. But it does not
    say how the probability of a group of alike values is shared among them.
    """
    alike = observed.alike
    size = len(alike)
    together = _together(alike, weights)
    possible: list[Floats] = []
    for seen in asked:
        if seen.apart is not None:
            # There may be astronomically many responses, which together tell all values apart.
            if len(seen.apart) == size and (seen.apart.sum(axis=1) == 1).all():
                return together
            possible += list(seen.apart)
            continue
        room = max(0, _MOST_POSSIBLE - len(possible))
        possible += [np.exp(seen.logs(y)) for y in range(min(room, seen.responses))]
    curved = np.ones((size, size))
    curved += _curvature(observed.table, observed.counts)[np.ix_(alike, alike)]
    if possible:
        curved += _curvature((np.array(possible) @ together) @ together.T, np.ones(len(possible)))
    sizes, directions = np.linalg.eigh(curved)
    return np.asarray(directions[:, sizes > _FLAT * sizes[-1]])


def outside(basis: Floats, wanted: Floats) -> NDArray[np.bool_]:
    """Which columns are not combinations of the basis."""
    rest = wanted - basis @ (basis.T @ wanted)
    lengths = np.linalg.norm(wanted, axis=0)
    return np.asarray(np.linalg.norm(rest, axis=0) > _OUTSIDE * np.where(lengths, lengths, 1.0))


def _curvature(rows: Floats, times: Floats) -> Floats:
    return curvature(rows, times / times.sum(), rows.mean(axis=1))


def _together(alike: NDArray[np.intp], sums: Floats) -> Floats:
    """An orthonormal basis of what is equal on each group of alike values with positive weight."""
    shared = sums[alike] > _DUST
    labels = np.where(shared, alike, len(sums) + np.arange(len(alike)))
    _, labels = np.unique(labels, return_inverse=True)
    members = np.eye(labels.max() + 1)[labels]
    return np.asarray(members / np.sqrt(members.sum(axis=0)))
