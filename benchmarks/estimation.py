"""The likeliest distribution of 100,000 subjects, compared with bare passes over its table.

A pass is a product of the table of likelihoods with the probabilities and one with the quotients:
what a single step of EM needs, without anything to make the table from. Unary encoding is the
worst case: hardly two subjects answer alike, so nothing can be put together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from benchmarks.timing import best, timed

LIMIT = 10.0
"""Seconds."""
PASSES = 600.0


def run(subjects: int = 100_000, values: int = 50) -> bool:
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.full(values, 0.5))
    drawn = generator.choice(values, subjects, p=shares)
    bare = _pass(subjects, values)
    print(f"{subjects:,} subjects over {values} values, a gap of 1e-6 nats")
    unary = _measure("unary encoding, epsilon 1", _unary(generator, drawn, values), bare)
    repeated = _measure("20 randomized responses each", _repeated(generator, drawn, values), bare)
    return unary and repeated


def _pass(subjects: int, values: int) -> float:
    generator = np.random.default_rng(2)
    table = generator.uniform(0.3, 1, (subjects, values))
    flat = np.full(values, 1 / values)

    def both() -> NDArray[np.float64]:
        quotients: NDArray[np.float64] = 1 / (table @ flat)
        return quotients @ table

    return best(both, runs=9)


def _measure(name: str, answers: xp.Answers, bare: float) -> bool:
    distribution, seconds = timed(lambda: xp.estimation.estimate_distribution(answers))
    print(f"  {name}: {seconds:.1f} s (limit {LIMIT:g}), {distribution.steps} steps, ", end="")
    print(f"gap {distribution.gap:.1e}, {seconds / bare:.0f} × a bare pass (limit {PASSES:g})")
    return seconds < LIMIT and seconds < PASSES * bare and distribution.gap <= 1e-6


def _unary(generator: Any, drawn: NDArray[np.int64], values: int) -> xp.Answers:
    domain, query = xp.FiniteSet(range(values)), xp.unary_encoding(epsilon=1)
    bits = generator.random((len(drawn), values)) < 1 / (np.e + 1)
    bits[np.arange(len(drawn)), drawn] = generator.random(len(drawn)) < 0.5
    texts = (bits + ord("0")).astype(np.uint8).view(f"S{values}").ravel().astype(f"U{values}")
    table = {"subject": np.arange(len(drawn)), "query": ["q"] * len(drawn), "response": texts}
    return xp.Answers(domain, {"q": query}, table)


def _repeated(
    generator: Any, drawn: NDArray[np.int64], values: int, questions: int = 20
) -> xp.Answers:
    domain = xp.FiniteSet(range(values))
    queries: dict[str, xp.queries.Query] = {
        f"q{i}": xp.randomized_response(epsilon=f"0.{i + 5:02d}") for i in range(questions)
    }
    responses = generator.integers(0, values, (len(drawn), questions))
    for column, query in zip(responses.T, queries.values(), strict=True):
        # True with (e^epsilon - 1)/(e^epsilon + k - 1), else any value.
        growth = np.expm1(float(query.epsilon or 0))
        true = generator.random(len(drawn)) < growth / (growth + values)
        column[true] = drawn[true]
    table = {
        "subject": np.repeat(np.arange(len(drawn)), questions),
        "query": list(queries) * len(drawn),
        "response": responses.reshape(-1),
    }
    return xp.Answers(domain, queries, table)
