"""The coverage of 95 % intervals, by simulation: ``make coverage``.

Subjects are drawn from a known distribution, and answer by the probabilities that the query
declares. A family named on the command line is done alone. It takes some minutes in all.
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
MEANS: dict[str, xp.queries.Query] = {
    "perturbation": xp.perturbation(SCORES, range=(0, 3), epsilon=1),
    "linear": xp.linear({"value": 1}, range=(0, 3), epsilon=1),
    "logistic": xp.logistic({"value": 1}, intercept=-1, epsilon=1),
    "probit": xp.probit({"value": 1}, intercept=-1, epsilon=1),
    "duchi": xp.queries.duchi({"value": 1}, range=(0, 3), epsilon=1),
    "piecewise": xp.piecewise({"value": 1}, range=(0, 3), grid="0.1", epsilon=1),
    "laplace": xp.laplace({"value": 1}, range=(0, 3), grid="0.1", epsilon=1),
}

Hits = NDArray[np.bool_]
Trial = Callable[[Any, int, list[float]], Hits]


def _probabilities(query: xp.queries.Query) -> NDArray[np.float64]:
    """Tabulate Pr(response | value), a row per value."""
    likelihood = query.on(DOMAIN)
    positions = range(len(likelihood.responses))
    pmfs = [likelihood.pmf(position) for position in range(len(DOMAIN))]
    return np.array([[float(pmf.probability(y)) for y in positions] for pmf in pmfs])


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


def _mean(query: xp.queries.Query) -> Trial:
    group = Group(query)
    worth = np.array([float(query.meaning(DOMAIN).estimate(y)) for y in group.responses])
    scores = _probabilities(query) @ worth

    def trial(generator: Any, subjects: int, prior: list[float]) -> Hits:
        estimate = xp.estimation.estimate_mean(group.answers(generator, subjects, prior), "q")
        truth = float(scores @ prior)
        return np.array([estimate.lower <= truth <= estimate.upper])

    return trial


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
    for name, query in MEANS.items():
        yield f"mean, {name}", partial(_mean, query), SIZES
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
    main(sys.argv[1:])
