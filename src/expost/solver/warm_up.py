"""The kernels, compiled. The first use ever says so; from then on they come from the disk.

``python -m expost.solver.warm_up`` compiles them ahead of time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from numba.core import event

from expost.solver.branch_and_bound import Search
from expost.solver.corners import Corners
from expost.solver.problem import Sides, Terms, both_sides
from expost.solver.summit import Summit
from expost.terms.on_box import Link, ScoreTerm

__all__ = ["announced", "ready"]


@cache
def ready() -> None:
    """Compile or load all kernels, and say so if they are compiled."""
    with announced():
        term = ScoreTerm(Link.CLIPPED, 1.0, (1.0,), 0.0, 0.0)
        sides = Sides(np.array([-1.0]), np.array([1.0]), np.array([0]))
        highest, lowest = both_sides(Terms.of([(term, 1)], [0]), sides)
        Search(highest).pursue(0.1, 1)
        Corners.of(lowest)
        Summit(highest, 0.0).pursue(0.1, 1)


@contextmanager
def announced() -> Iterator[None]:
    """A line as soon as something is compiled. What comes from the disk is not."""
    with event.install_listener("numba:compile", _Announcement()):
        yield


class _Announcement(event.Listener):  # type: ignore[misc]
    """Speaks up once: a kernel brings others with it."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: event.Event) -> None:
        if not self._said:
            message = "compiling the optimizer, once; this takes about a minute"
            logging.getLogger("expost").warning(message)
            self._said = True

    def on_end(self, event: event.Event) -> None:
        pass


if __name__ == "__main__":
    ready()
