"""Counts of queries that a budget of 1 lasts for: a subject is asked until a refusal."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

import expost as xp
from benchmarks.budget_lifetime.analysts import Next
from expost.sampling import draw
from expost.solver import NODES

__all__ = ["BASIC", "BAYESIAN", "SIMPLIFIED", "Accepted", "Case", "Run", "accepted", "run"]

BASIC, SIMPLIFIED, BAYESIAN = (
    kind(epsilon=1) for kind in (xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter)
)


@dataclass(frozen=True)
class Case:
    """Whom to ask, who asks, and when to stop asking even if the filter does not refuse."""

    name: str
    domain: xp.FiniteSet | xp.Box
    analyst: Callable[[np.random.Generator], Next]
    runs: int = 20
    most: int = 300


@dataclass(frozen=True)
class Run:
    """The number of queries before each filter's first refusal; all see the same responses."""

    basic: int
    simplified: int
    bayesian: int
    undecided: int
    """Of the two refusals at the ends, those for want of nodes."""


@dataclass(frozen=True)
class Accepted:
    """All runs of a case."""

    case: Case
    runs: list[Run]

    def percentiles(self, kind: str) -> list[int]:
        """The 10th, the 50th and the 90th; each is the count of some run."""
        counts = [getattr(counts_of_run, kind) for counts_of_run in self.runs]
        ends = np.percentile(counts, [10, 50, 90], method="inverted_cdf")
        return [int(end) for end in ends]

    @property
    def basic(self) -> int:
        # Every query of a case has the same epsilon.
        (count,) = {run.basic for run in self.runs}
        return count

    @property
    def undecided(self) -> int:
        return sum(run.undecided for run in self.runs)


def _secret(domain: xp.FiniteSet | xp.Box, generator: np.random.Generator) -> Any:
    """A uniform value, as a pmf wants it."""
    if isinstance(domain, xp.FiniteSet):
        return int(generator.integers(len(domain)))
    return domain.locate(generator.uniform(-1, 1, len(domain.columns)).tolist())


def run(case: Case, index: int) -> Run:
    """One subject; a function of the case and the number alone."""
    generator = np.random.default_rng([zlib.crc32(case.name.encode()), index])
    source = xp.sampling.InsecureSource(int(generator.integers(2**62)))
    value, following = _secret(case.domain, generator), case.analyst(generator)
    # As many nodes as it takes: the question is what fits, not how soon that is known.
    odometer = xp.Odometer(xp.Transcript(case.domain), effort=xp.solver.Effort(nodes=NODES))
    stopped: dict[str, int] = {}
    undecided = 0
    for count in range(case.most):
        query = following(odometer)
        # A query that passes one of them passes those after it.
        for filter_ in (BASIC, SIMPLIFIED, BAYESIAN):
            if filter_.kind not in stopped:
                decision = filter_.decide(odometer, query)
                if decision.accepted:
                    break
                stopped[filter_.kind] = count
                undecided += decision.undecided
        if BAYESIAN.kind in stopped:
            break
        likelihood = query.on(case.domain)
        response = likelihood.responses[draw(likelihood.pmf(value), source)]
        odometer = odometer.add(query, response)
    basic, simplified, bayesian = (
        stopped.get(filter_.kind, case.most) for filter_ in (BASIC, SIMPLIFIED, BAYESIAN)
    )
    return Run(basic, simplified, bayesian, undecided)


def accepted(cases: Iterable[Case], workers: int | None = None) -> list[Accepted]:
    """All runs of all cases; they are the same with any number of workers."""
    cases = list(cases)
    run_ = [(case, index) for case in cases for index in range(case.runs)]
    if workers is None:
        done = iter([run(case, index) for case, index in run_])
    else:
        with ProcessPoolExecutor(workers) as pool:
            done = iter(list(pool.map(run, *zip(*run_, strict=True))))
    return [Accepted(case, list(islice(done, case.runs))) for case in cases]
