"""Tight bounds on every variable that a peer may introduce, which help solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.instances import Instance

__all__ = ["Bounds"]

Pair = tuple[float, float]
# Room for what the solver's own arithmetic loses.
SLACK = 1e-9


@dataclass(frozen=True)
class Bounds:
    """Of one term: its v, the share that the link makes of it, and its log-likelihood."""

    v: Pair
    share: Pair
    log: Pair
    clips: bool

    @classmethod
    def of(cls, instance: Instance) -> Iterator[Bounds]:
        """The bounds of all terms, in order."""
        v = instance.ranges
        shares = instance.shares(v[0]), instance.shares(v[1])
        logs = np.log1p(instance.growth * shares)
        outside = ~instance.logistic & ((v[0] < -SLACK) | (v[1] > 1 + SLACK))
        for i, clips in enumerate(outside.tolist()):
            yield cls(
                (float(v[0][i]) - SLACK, float(v[1][i]) + SLACK),
                (float(shares[0][i]), float(shares[1][i])),
                (float(logs[0, i]) - SLACK, float(logs[1, i]) + SLACK),
                clips,
            )
