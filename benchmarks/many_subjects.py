"""The losses of many subjects, compared with bare NumPy.

Over a finite set the peer adds up, for every subject, the rows of logarithms that belong to the
responses, and takes the largest sum minus the smallest; rows and indices are ready beforehand, and
it certifies nothing. Over records it does that attribute by attribute; along a chain of pairs, and
from step to step, it is a bare recursion of sums and extremes. For linear queries on a box the
peer is the product of responses with the logarithms at all corners, which gives the smallest
log-likelihood only. Logistic queries have no such peer: they are searched, and the peer is to do
so subject by subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from benchmarks.instances import Instance, draw
from benchmarks.timing import best, once

FINITE_LIMIT = 3.0
RECORDS_LIMIT = 4.0
LINEAR_LIMIT = 1.0
LOGISTIC_LIMIT = 1.1

Codes = NDArray[np.int64]


def run() -> bool:
    return all([_finite(), *_records(), _linear(), _logistic("steep", 10), _logistic("smooth", 1)])


def table(responses: NDArray[Any], keys: list[str]) -> dict[str, Any]:
    """Write a row per response: subjects by index, each asked all queries."""
    subjects, queries = responses.shape
    return {
        "subject": np.repeat(np.arange(subjects), queries),
        "query": keys * subjects,
        "response": responses.reshape(-1),
    }


def _finite(subjects: int = 100_000, questions: int = 20, values: int = 16) -> bool:
    generator = np.random.default_rng(1)
    domain = xp.FiniteSet(range(values))
    queries: dict[str, xp.queries.Query] = {
        f"q{i}": xp.randomized_response(epsilon=f"0.{i + 1:02d}") for i in range(questions)
    }
    responses = generator.integers(0, values, (subjects, questions))
    read = partial(xp.Answers, domain, queries, table(responses, list(queries)))
    answers = read()
    logs = np.concatenate(
        [[query.on(domain).term(y).logs for y in range(values)] for query in queries.values()]
    )
    rows = responses + values * np.arange(questions)
    bare = best(lambda: _sums(logs, rows), runs=7)
    ours = best(lambda: xp.realized_losses(answers), runs=7) / bare
    reading = best(read, runs=3) / bare
    print(f"{subjects:,} subjects, {questions} randomized responses each, over {values} values")
    print(f"  certified losses  {ours:5.2f} × the bare sums and extremes (limit {FINITE_LIMIT:g})")
    print(f"  reading the table {reading:5.2f} × the same")
    return ours <= FINITE_LIMIT


def _sums(logs: NDArray[np.float64], rows: Codes) -> NDArray[np.float64]:
    total = logs[rows[:, 0]]
    for column in rows.T[1:]:
        total += logs[column]
    spread: NDArray[np.float64] = total.max(axis=1) - total.min(axis=1)
    return spread


def _records(subjects: int = 100_000) -> list[bool]:
    """Measure eight attributes, a chain of seven pairs, and twelve steps with two changes."""
    names, query = [f"a{i}" for i in range(8)], xp.randomized_response(epsilon="0.5")
    person = xp.Attributes({name: range(4) for name in names})
    steps = xp.Attributes(minutes=xp.changing(range(4), times=2))
    singles: dict[str, xp.queries.Query] = {name: query.about(name) for name in names}
    pairs = {f"{a}, {b}": query.about(a, b) for a, b in pairwise(names)}
    weeks = {f"{week}": query.about("minutes", at=week) for week in range(1, 13)}
    return [
        _beside("eight attributes asked singly", person, singles, subjects, _each_by_itself),
        _beside("a chain of seven pairs", person, pairs, subjects, _along_the_chain),
        _beside(
            "twelve steps with at most two changes", steps, weeks, subjects, _from_step_to_step
        ),
    ]


def _beside(
    description: str,
    domain: xp.Attributes,
    queries: Mapping[str, xp.queries.Query],
    subjects: int,
    peer: Callable[[list[NDArray[np.float64]]], NDArray[np.float64]],
) -> bool:
    generator = np.random.default_rng(1)
    likelihoods = [query.on(domain) for query in queries.values()]
    size = len(likelihoods[0].part)
    positions = generator.integers(0, size, (subjects, len(queries)))
    values = list(likelihoods[0].responses)
    answered = [values[position] for position in positions.ravel().tolist()]
    rows = {**table(positions, list(queries)), "response": answered}
    answers = xp.Answers(domain, queries, rows)
    logs = [
        np.array([likelihood.on_part.term(y).logs for y in range(size)])
        for likelihood in likelihoods
    ]
    bare = best(
        lambda: peer([log_table[positions[:, k]] for k, log_table in enumerate(logs)]), runs=5
    )
    ours = best(lambda: xp.realized_losses(answers), runs=5)
    print(f"{subjects:,} subjects, {description}: {1e6 * ours / subjects:.2f} µs a subject")
    print(f"  certified losses  {ours / bare:5.2f} × the bare recursion (limit {RECORDS_LIMIT:g})")
    return ours <= RECORDS_LIMIT * bare


def _each_by_itself(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.asarray(sum(table.max(axis=1) - table.min(axis=1) for table in tables))


def _along_the_chain(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    highs = lows = np.zeros((len(tables[0]), 4))
    for table in tables:
        pair = table.reshape(-1, 4, 4)
        highs = (highs[:, :, None] + pair).max(axis=1)
        lows = (lows[:, :, None] + pair).min(axis=1)
    spread: NDArray[np.float64] = highs.max(axis=1) - lows.min(axis=1)
    return spread


def _from_step_to_step(tables: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    ends = []
    for sign in (1, -1):
        sums = np.repeat(sign * tables[0][:, :, None], 3, axis=2)
        for table in tables[1:]:
            moved = sums.copy()
            changed = sums[:, :, :-1].max(axis=1, keepdims=True)
            np.maximum(sums[:, :, 1:], changed, out=moved[:, :, 1:])
            sums = moved + sign * table[:, :, None]
        ends.append(sums.max(axis=(1, 2)))
    return np.asarray(ends[0] + ends[1])


def _linear(subjects: int = 10_000) -> bool:
    instance = draw("linear", "linear", n=20, d=9, scale=10, seed=1)
    ones, responses = _responses(instance, subjects)
    ours = best(partial(xp.realized_losses, _answers(instance, responses)), runs=3)
    rows, offsets = ones.affine
    corners = np.array(list(product((-1.0, 1.0), repeat=9)))
    logs = np.log1p(ones.growth * ones.shares(corners @ rows.T + offsets)).T
    bare = best(lambda: responses.astype(np.float64) @ logs)
    print(f"{subjects:,} subjects, 20 linear queries each, d = 9")
    print(f"  {ours:.2f} s (limit {LINEAR_LIMIT:g}), {ours / bare:.1f} × the bare matrix product")
    return ours < LINEAR_LIMIT


def _logistic(name: str, scale: float, subjects: int = 1000) -> bool:
    instance = draw(name, "logistic", n=10, d=9, scale=scale, seed=1)
    _, responses = _responses(instance, subjects)
    answers = _answers(instance, responses)
    transcripts = [answers.transcript(subject) for subject in answers.subjects]
    ours = best(partial(xp.realized_losses, answers), runs=3)
    single = once(lambda: [xp.realized_loss(transcript) for transcript in transcripts])
    patterns = len(np.unique(responses, axis=0))
    print(f"{subjects:,} subjects, 10 {name} logistic queries each, d = 9: {patterns} patterns")
    print(f"  {1000 * ours / subjects:.2f} ms a subject, ", end="")
    print(f"{ours / single:.2f} × one at a time (limit {LOGISTIC_LIMIT:g})")
    return ours <= LOGISTIC_LIMIT * single


def _responses(instance: Instance, subjects: int) -> tuple[Instance, Codes]:
    """Draw the responses of all subjects; return them with the instance of responses 1 alone."""
    generator = np.random.default_rng(1)
    ones = replace(instance, responses=(1,) * len(instance))
    rows, offsets = ones.affine
    shares = ones.shares(generator.uniform(-1, 1, (subjects, rows.shape[1])) @ rows.T + offsets)
    probabilities = (1 + ones.growth * shares) / (2 + ones.growth)
    return ones, (generator.random(probabilities.shape) < probabilities).astype(np.int64)


def _answers(instance: Instance, responses: Codes) -> xp.Answers:
    box = instance.box
    queries = {f"q{i}": question.query() for i, question in enumerate(instance.questions)}
    ends = np.array([query.on(box).responses for query in queries.values()], dtype=object)
    answered = ends[np.arange(len(ends)), responses]
    return xp.Answers(box, queries, table(answered, list(queries)))
