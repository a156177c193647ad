"""The kernels, compiled. The first use ever says so; from then on they come from the disk.

``python -m expost.extrema.ready`` compiles them ahead of time.
"""

from __future__ import annotations

import logging
import threading
from functools import cache

import numpy as np

from expost.extrema.branch_and_bound import Search
from expost.extrema.corners import Corners
from expost.extrema.side import Sides, Terms, both_sides
from expost.extrema.summit import Summit
from expost.queries.score_term import Link, ScoreTerm

__all__ = ["ready"]

_PATIENCE = 3.0  # seconds; from the disk they come sooner


@cache
def ready() -> None:
    """Compile or load all kernels, and say so if it takes long."""
    message = "compiling the optimizer, once; this takes about a minute"
    timer = threading.Timer(_PATIENCE, logging.getLogger("expost").warning, [message])
    timer.daemon = True
    timer.start()
    try:
        term = ScoreTerm(Link.CLIPPED, 1.0, (1.0,), 0.0, 0.0)
        sides = Sides(np.array([-1.0]), np.array([1.0]), np.array([0]))
        highest, lowest = both_sides(Terms.of([(term, 1)], [0]), sides)
        Search(highest).pursue(0.1, 1)
        Corners.of(lowest)
        Summit(highest, 0.0).pursue(0.1, 1)
    finally:
        timer.cancel()


if __name__ == "__main__":
    ready()
