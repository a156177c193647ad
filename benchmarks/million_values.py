"""One decision on a million values against the bare NumPy passes that it needs.

A pass is ``ell + term``, its maximum and its minimum; a query needs one for each extreme term.
Randomized response needs none at all over the domain beyond finding the worst response.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

import expost as xp
from benchmarks.timing import best
from expost.queries import Query

SIZE = 1_000_000
LIMIT = 2.0

Array = NDArray[np.float64]


def bare_passes(ell: Array, terms: list[Array]) -> None:
    for term in terms:
        total = ell + term
        total.max()
        total.min()


def run() -> bool:
    generator = np.random.default_rng(1)
    domain = xp.FiniteSet(range(SIZE))
    history = xp.perturbation(generator.random(SIZE), epsilon=1)
    odometer = xp.Odometer(xp.Transcript(domain)).add(history, 1)
    filter_ = xp.BayesianFilter(epsilon=4)
    first = generator.uniform(0.3, 0.6, SIZE)
    second = generator.uniform(0.1, 0.3, SIZE)
    queries: dict[str, Query] = {
        "perturbation, 2 responses": xp.perturbation(generator.random(SIZE), epsilon=1),
        "channel, 3 responses": xp.channel(np.stack([first, second, 1 - first - second], axis=1)),
    }
    print(f"one decision on {SIZE:,} values, against the bare NumPy passes")
    within = True
    for name, query in queries.items():
        likelihood = query.on(domain)
        terms = [likelihood.term(i).logs for i in range(len(likelihood.responses))]
        ours = best(partial(filter_.decide, odometer, query))
        passes = best(partial(bare_passes, history.on(domain).term(1).logs, terms))
        ratio = ours / passes
        within &= ratio <= LIMIT
        print(f"  {name:<28} {ratio:5.2f} × the passes   (limit {LIMIT:g})")
    return within
