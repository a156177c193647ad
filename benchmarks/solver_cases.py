"""The cases on which optimizers are compared, from easy to hard."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.instances import Instance, draw, health_table

__all__ = ["QUICK", "Case", "cases"]

# EXPOST_BENCH_QUICK=1 makes a short pass: fewer cases and seeds, and little patience.
QUICK = bool(os.environ.get("EXPOST_BENCH_QUICK"))


@dataclass(frozen=True)
class Case:
    """Instances of one kind; the slower a peer, the fewer of them it is given."""

    label: str
    instances: list[Instance]
    for_gurobi: int
    for_scip: int


def cases() -> list[Case]:
    steep = partial(draw, "steep", "logistic", scale=10)
    smooth = partial(draw, "smooth", "logistic", scale=1)
    linear = partial(draw, "linear", "linear", scale=10)
    health = health_table()
    table = Case("health table", health, len(health), len(health))
    if QUICK:
        return [
            *(_seeded(steep, n, 9, seeds=2, scip=1) for n in (10, 15, 20)),
            _seeded(smooth, 10, 9, seeds=1, scip=1),
            _seeded(linear, 20, 9, seeds=1, scip=1),
            table,
        ]
    return [
        _seeded(steep, 10, 9, seeds=5, scip=3),
        _seeded(steep, 15, 9, seeds=5, scip=3),
        _seeded(steep, 20, 9, seeds=5, scip=1),
        _seeded(steep, 25, 9, seeds=3, scip=0),
        _seeded(steep, 30, 9, seeds=3, gurobi=1, scip=0),
        _seeded(smooth, 10, 9, seeds=3, scip=2),
        _seeded(smooth, 20, 9, seeds=3, scip=1),
        _seeded(smooth, 40, 9, seeds=3, gurobi=1, scip=0),
        _seeded(steep, 90, 2, seeds=2, scip=1),
        _seeded(steep, 90, 3, seeds=2, gurobi=1, scip=0),
        _seeded(steep, 90, 4, seeds=2, gurobi=1, scip=0),
        _seeded(linear, 20, 9, seeds=3, scip=2),
        _seeded(linear, 100, 9, seeds=3, scip=1),
        table,
    ]


def _seeded(
    family: Callable[..., Instance],
    n: int,
    d: int,
    *,
    seeds: int,
    scip: int,
    gurobi: int | None = None,
) -> Case:
    instances = [family(n=n, d=d, seed=seed) for seed in range(1, seeds + 1)]
    label = f"{instances[0].family}, d = {d}, n = {n}"
    return Case(label, instances, seeds if gurobi is None else gurobi, scip)
