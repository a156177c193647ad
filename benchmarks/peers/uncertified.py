"""SciPy's global searches, which are fast and give no bound on their error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, direct, dual_annealing

from benchmarks.instances import Instance
from benchmarks.peers.answer import Answer, inside

__all__ = ["SEARCHES", "search"]

SEARCHES: dict[str, Callable[..., Any]] = {
    "direct": direct,
    "dual_annealing": lambda function, bounds: dual_annealing(function, bounds, rng=1),
}


def search(instance: Instance, name: str) -> Answer:
    """The loss between the best points that a search found for the two sides."""
    box = Bounds(instance.lower, instance.upper)
    start = time.process_time()
    result = [
        SEARCHES[name](
            lambda x, sense=sense: -sense * instance.log_likelihood(inside(instance, x)), box
        ).fun
        for sense in (1, -1)
    ]
    seconds = time.process_time() - start
    return Answer(seconds, True, -float(result[0]) - float(result[1]), np.inf, name)
