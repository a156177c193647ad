"""The coverage of 95 % intervals, by simulation: ``make coverage``.

Subjects are drawn from a known distribution, and answer by the probabilities that the query
declares. A family named on the command line is done alone; ``means`` and perhaps names of families
do intervals for means, with their widths. It takes some minutes in all.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp

SIZES = {100: 4000, 10_000: 1000}
"""Numbers of subjects, and how often each is simulated."""
BOOTSTRAPS = 1000
DRAWN_AGAIN = 200
DOMAIN = xp.FiniteSet(range(4))
PRIORS = {"uniform": [0.25, 0.25, 0.25, 0.25], "skewed": [0.7, 0.2, 0.08, 0.02]}
SCORES = np.arange(4.0)

FREQUENCIES: dict[str, xp.queries.Query] = {
    "randomized_response": xp.randomized_response(epsilon=1),
    "unary_encoding, symmetric": xp.unary_encoding(variant="symmetric", epsilon=1),
    "unary_encoding, optimized": xp.unary_encoding(epsilon=1),
    "subset_selection, 2 values": xp.subset_selection(size=2, epsilon=1),
    "hadamard_response": xp.hadamard_response(order=8, epsilon=1),
    "local_hashing, 4 buckets": xp.local_hashing(seed="00", buckets=4, epsilon=1),
    "geometric": xp.geometric(range=(0, 3), sensitivity=3, epsilon=3),
    "exponential_mechanism": xp.exponential_mechanism(
        -np.abs(SCORES[:, None] - SCORES).astype(int), sensitivity=3, epsilon=6
    ),
    "channel": xp.channel(
        [
            ["0.6", "0.2", "0.1", "0.05", "0.05"],
            ["0.2", "0.4", "0.2", "0.1", "0.1"],
            ["0.1", "0.2", "0.4", "0.2", "0.1"],
            ["0.1", "0.1", "0.1", "0.2", "0.5"],
        ]
    ),
}
STEPS = xp.FiniteSet([index / 10 for index in range(31)])
"""The values that means are taken of, on the grid of the queries."""
RANGE, WEIGHTS = (0, 3), {"value": 1}
MEANS: dict[str, Callable[[str], xp.queries.Query]] = {
    "perturbation": lambda e: xp.perturbation([x / 10 for x in range(31)], range=RANGE, epsilon=e),
    "linear": lambda e: xp.linear(WEIGHTS, range=RANGE, epsilon=e),
    "logistic": lambda e: xp.logistic(WEIGHTS, intercept=-1, epsilon=e),
    "probit": lambda e: xp.probit(WEIGHTS, intercept=-1, epsilon=e),
    "duchi": lambda e: xp.queries.duchi(WEIGHTS, range=RANGE, epsilon=e),
    "piecewise": lambda e: xp.piecewise(WEIGHTS, range=RANGE, grid="0.1", epsilon=e),
    "laplace": lambda e: xp.laplace(WEIGHTS, range=RANGE, grid="0.1", epsilon=e),
    "gaussian": lambda e: xp.gaussian(WEIGHTS, range=RANGE, grid="0.1", sigma=3 / float(e)),
}
EPSILONS = ("0.5", "1", "2", "4", "8")
"""Of a Gaussian query, the range over sigma."""
GROUP_SIZES = (5, 20, 200, 1000)
VALUES: dict[str, list[int]] = {"spread": list(range(31)), "alike": [12], "at an end": [0]}
"""The values that subjects have, equally often."""
REPETITIONS = 1000

Hits = NDArray[np.bool_]
Trial = Callable[[Any, int, list[float]], Hits]


def _probabilities(query: xp.queries.Query, domain: xp.FiniteSet = DOMAIN) -> NDArray[np.float64]:
    """Tabulate Pr(response | value), a row per value."""
    likelihood = query.on(domain)
    positions = range(len(likelihood.responses))
    pmfs = [likelihood.pmf(position) for position in range(len(domain))]
    # Without reducing fractions, whose denominators may have 100,000 digits.
    return np.array([[pmf.weight(y) / pmf.total for y in positions] for pmf in pmfs])


class Group:
    """Subjects who answer one query each."""

    def __init__(self, query: xp.queries.Query) -> None:
        self.query = query
        self.responses = list(query.on(DOMAIN).responses)
        self._table = _probabilities(query)

    def answers(self, generator: Any, subjects: int, prior: list[float]) -> xp.Answers:
        chances = np.array(prior) @ self._table
        counts = generator.multinomial(subjects, chances / chances.sum()).tolist()
        pairs = zip(self.responses, counts, strict=True)
        responses = [response for response, count in pairs for _ in range(count)]
        table = {"subject": np.arange(subjects), "query": ["q"] * subjects, "response": responses}
        return xp.Answers(DOMAIN, {"q": self.query}, table)


class HashedGroup:
    """Subjects with different seeds, drawn again in every repetition out of very many."""

    def __init__(self, query: xp.queries.Query, seeds: int = 40_000) -> None:
        self._queries = {
            str(s): xp.local_hashing(seed=f"{s:08x}", buckets=4, epsilon=query.epsilon or 1)
            for s in range(seeds)
        }
        self._tables = np.cumsum([_probabilities(q) for q in self._queries.values()], axis=2)

    def answers(self, generator: Any, subjects: int, prior: list[float]) -> xp.Answers:
        seeds = generator.choice(len(self._queries), subjects, replace=False)
        values = generator.choice(len(prior), subjects, p=prior)
        uniform = generator.random((subjects, 1))
        responses = (uniform > self._tables[seeds, values]).sum(axis=1)
        keys = [str(seed) for seed in seeds.tolist()]
        table = {"subject": np.arange(subjects), "query": keys, "response": responses}
        return xp.Answers(DOMAIN, {key: self._queries[key] for key in keys}, table)


def _frequencies(query: xp.queries.Query) -> Trial:
    group = HashedGroup(query) if query.kind == "local_hashing" else Group(query)

    def trial(generator: Any, subjects: int, prior: list[float]) -> Hits:
        estimate = xp.estimation.estimate_frequencies(group.answers(generator, subjects, prior))
        return np.asarray((estimate.lower <= prior) & (prior <= estimate.upper))

    return trial


class MeanCoverage:
    """The coverage and the mean width of intervals for the mean of a score."""

    def __init__(self, query: xp.queries.Query) -> None:
        self._query = query
        self._responses = list(query.on(STEPS).responses)
        self._table = _probabilities(query, STEPS)
        self._estimates = np.array([query.meaning(STEPS).estimate(y) for y in self._responses])
        self._known: dict[tuple[int, ...], tuple[float, float]] = {}

    def measure(
        self, values: list[int], subjects: int, repetitions: int, generator: Any
    ) -> tuple[float, float]:
        """Simulate groups of subjects whose values are drawn from a list."""
        chances = self._table[values].mean(axis=0)
        truth = float(chances @ self._estimates.astype(float) / chances.sum())
        counts = generator.multinomial(subjects, chances / chances.sum(), repetitions)
        ends = np.array([self._interval(row) for row in counts])
        hits = (ends[:, 0] <= truth + 1e-9) & (truth - 1e-9 <= ends[:, 1])
        return float(hits.mean()), float(np.ptp(ends, axis=1).mean())

    def _interval(self, counts: NDArray[np.int64]) -> tuple[float, float]:
        given = np.flatnonzero(counts)
        key = (*given.tolist(), *counts[given].tolist())
        if key not in self._known:
            responses = np.repeat(given, counts[given]).tolist()
            table = {
                "subject": np.arange(len(responses)),
                "query": ["q"] * len(responses),
                "response": [self._responses[y] for y in responses],
            }
            answers = xp.Answers(STEPS, {"q": self._query}, table)
            estimate = xp.estimation.estimate_mean(answers, "q")
            self._known[key] = estimate.lower, estimate.upper
        return self._known[key]


def mean_cells(
    family: str, epsilon: str, sizes: tuple[int, ...], repetitions: int
) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the coverage and the mean width for each list of values and number of subjects."""
    coverage, cells = MeanCoverage(MEANS[family](epsilon)), {}
    for name, values in VALUES.items():
        for subjects in sizes:
            seed = zlib.crc32(f"{family} {epsilon} {name} {subjects}".encode())
            generator = np.random.default_rng(seed)
            cells[name, subjects] = coverage.measure(values, subjects, repetitions, generator)
    return cells


def means(wanted: list[str]) -> None:
    """Print the coverage of intervals for means, and in brackets their mean width."""
    heads = [f"{values}, n = {size:,}" for values in VALUES for size in GROUP_SIZES]
    print(f"| | epsilon | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}", flush=True)
    for family in wanted or MEANS:
        for epsilon in EPSILONS:
            cells = mean_cells(family, epsilon, GROUP_SIZES, REPETITIONS)
            texts = [f"{100 * share:.1f} ({width:.2g})" for share, width in cells.values()]
            print(f"| {family} | {epsilon} | {' | '.join(texts)} |", flush=True)


def _likeliest(query: xp.queries.Query) -> Trial:
    group = Group(query)

    def trial(generator: Any, subjects: int, prior: list[float]) -> Hits:
        distribution = xp.estimation.estimate_distribution(
            group.answers(generator, subjects, prior)
        )
        seed = int(generator.integers(1 << 30))
        intervals = distribution.intervals(repetitions=DRAWN_AGAIN, seed=seed)
        return np.asarray((intervals.lower <= prior) & (prior <= intervals.upper))

    return trial


def _trials() -> Iterator[tuple[str, Callable[[], Trial], dict[int, int]]]:
    for name, query in FREQUENCIES.items():
        yield name, partial(_frequencies, query), SIZES
    query, fewer = FREQUENCIES["randomized_response"], dict.fromkeys(SIZES, BOOTSTRAPS)
    yield "likeliest distribution, bootstrap", partial(_likeliest, query), fewer


def _cell(name: str, trial: Trial, repetitions: int, subjects: int, prior: str) -> str:
    # No two cells share their draws.
    generator = np.random.default_rng(zlib.crc32(f"{name} {prior} {subjects}".encode()))
    hits = np.array([trial(generator, subjects, PRIORS[prior]) for _ in range(repetitions)])
    share = float(hits.mean())
    error = float(hits.mean(axis=1).std(ddof=1)) / math.sqrt(repetitions)
    mark = "" if abs(share - 0.95) <= 3 * error else " *"
    return f"{100 * share:.1f} ± {100 * error:.1f} ({100 * hits.mean(axis=0).min():.1f}){mark}"


def main(wanted: list[str]) -> None:
    heads = [f"{name}, n = {size:,}" for size in SIZES for name in PRIORS]
    print(f"| | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}", flush=True)
    for name, make, sizes in _trials():
        if wanted and not any(word in name for word in wanted):
            continue
        trial = make()
        cells = [
            _cell(name, trial, repetitions, size, prior)
            for size, repetitions in sizes.items()
            for prior in PRIORS
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] != ["means"]:
        main(words)
    if not words or words[0] == "means":
        means(words[1:])
