"""The losses of many subjects, beside the bare NumPy that nobody can avoid.

Over a finite set the peer adds up, for every subject, the rows of logarithms that belong to the
responses, and takes the largest sum minus the smallest; rows and indices are ready beforehand, and
it certifies nothing. For linear queries on a box the peer is the product of responses with the
logarithms at all corners, which gives the smallest log-likelihood only. Logistic queries have no
such peer: they are searched, and the peer is to do so subject by subject.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from benchmarks.instances import Instance, draw
from benchmarks.timing import best, once

FINITE_LIMIT = 3.0
LINEAR_LIMIT = 1.0
LOGISTIC_LIMIT = 1.1

Codes = NDArray[np.int64]


def run() -> bool:
    return all([_finite(), _linear(), _logistic("steep", 10), _logistic("smooth", 1)])


def table(responses: NDArray[Any], keys: list[str]) -> dict[str, Any]:
    """A row per response: subjects by number, each asked all queries."""
    subjects, queries = responses.shape
    return {
        "subject": np.repeat(np.arange(subjects), queries),
        "query": keys * subjects,
        "response": responses.reshape(-1),
    }


def _finite(subjects: int = 100_000, asked: int = 20, values: int = 16) -> bool:
    generator = np.random.default_rng(1)
    domain = xp.FiniteSet(range(values))
    queries: dict[str, xp.queries.Query] = {
        f"q{i}": xp.randomized_response(epsilon=f"0.{i + 1:02d}") for i in range(asked)
    }
    responses = generator.integers(0, values, (subjects, asked))
    read = partial(xp.Answers, domain, queries, table(responses, list(queries)))
    answers = read()
    logs = np.concatenate(
        [[query.on(domain).term(y).logs for y in range(values)] for query in queries.values()]
    )
    rows = responses + values * np.arange(asked)
    bare = best(lambda: _sums(logs, rows), runs=7)
    ours = best(lambda: xp.realized_losses(answers), runs=7) / bare
    reading = best(read, runs=3) / bare
    print(f"{subjects:,} subjects, {asked} randomized responses each, over {values} values")
    print(f"  certified losses  {ours:5.2f} × the bare sums and extremes (limit {FINITE_LIMIT:g})")
    print(f"  reading the table {reading:5.2f} × the same")
    return ours <= FINITE_LIMIT


def _sums(logs: NDArray[np.float64], rows: Codes) -> NDArray[np.float64]:
    total = logs[rows[:, 0]]
    for column in rows.T[1:]:
        total += logs[column]
    spread: NDArray[np.float64] = total.max(axis=1) - total.min(axis=1)
    return spread


def _linear(subjects: int = 10_000) -> bool:
    asked = draw("linear", "linear", n=20, d=9, scale=10, seed=1)
    ones, responses = _responses(asked, subjects)
    ours = best(partial(xp.realized_losses, _answers(asked, responses)), runs=3)
    rows, offsets = ones.affine
    corners = np.array(list(product((-1.0, 1.0), repeat=9)))
    logs = np.log1p(ones.growth * ones.shares(corners @ rows.T + offsets)).T
    bare = best(lambda: responses.astype(np.float64) @ logs)
    print(f"{subjects:,} subjects, 20 linear queries each, d = 9")
    print(f"  {ours:.2f} s (limit {LINEAR_LIMIT:g}), {ours / bare:.1f} × the bare matrix product")
    return ours < LINEAR_LIMIT


def _logistic(name: str, scale: float, subjects: int = 1000) -> bool:
    asked = draw(name, "logistic", n=10, d=9, scale=scale, seed=1)
    _, responses = _responses(asked, subjects)
    answers = _answers(asked, responses)
    transcripts = [answers.transcript(subject) for subject in answers.subjects]
    ours = best(partial(xp.realized_losses, answers), runs=3)
    single = once(lambda: [xp.realized_loss(transcript) for transcript in transcripts])
    patterns = len(np.unique(responses, axis=0))
    print(f"{subjects:,} subjects, 10 {name} logistic queries each, d = 9: {patterns} patterns")
    print(f"  {1000 * ours / subjects:.2f} ms a subject, ", end="")
    print(f"{ours / single:.2f} × one at a time (limit {LOGISTIC_LIMIT:g})")
    return ours <= LOGISTIC_LIMIT * single


def _responses(asked: Instance, subjects: int) -> tuple[Instance, Codes]:
    """Everybody's responses to the questions; and the instance in which all responses are 1."""
    generator = np.random.default_rng(1)
    ones = replace(asked, responses=(1,) * len(asked))
    rows, offsets = ones.affine
    shares = ones.shares(generator.uniform(-1, 1, (subjects, rows.shape[1])) @ rows.T + offsets)
    probabilities = (1 + ones.growth * shares) / (2 + ones.growth)
    return ones, (generator.random(probabilities.shape) < probabilities).astype(np.int64)


def _answers(asked: Instance, responses: Codes) -> xp.Answers:
    box = asked.box
    queries = {f"q{i}": question.query() for i, question in enumerate(asked.questions)}
    ends = np.array([query.on(box).responses for query in queries.values()], dtype=object)
    given = ends[np.arange(len(ends)), responses]
    return xp.Answers(box, queries, table(given, list(queries)))
