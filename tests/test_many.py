"""The losses of many subjects at once, against those of one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.domains import Domain
from expost.queries import Query


def one_at_a_time(domain: Domain, queries: list[Query], rows: Any) -> list[xp.Enclosure]:
    losses = []
    for row in rows:
        transcript = xp.Transcript(domain)
        for query, position in zip(queries, row, strict=True):
            transcript = transcript.add(query, query.on(domain).responses[position])
        losses.append(xp.realized_loss(transcript, gap=1e-6))
    return losses


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "6"])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_linear_queries_on_a_box(epsilon: str, size: int) -> None:
    generator = np.random.default_rng(size)
    box = xp.Box([(-1, 2)] * size)
    queries: list[Query] = [
        xp.linear(generator.uniform(-3, 3, size).tolist(), intercept=1, epsilon=epsilon)
        for _ in range(7)
    ]
    queries += queries[:2]  # asked twice
    rows = generator.integers(0, 2, (30, len(queries)))
    lower, upper = xp.realized_losses(box, queries, rows, gap=0.001)
    for low, high, loss in zip(lower, upper, one_at_a_time(box, queries, rows), strict=True):
        assert low <= loss.upper
        assert loss.lower <= high
        assert high - low <= 0.001


@pytest.mark.parametrize(
    "domain",
    [
        xp.FiniteSet([{"a": x, "b": y} for x in (-1, 0, 1) for y in (0, 1)]),
        xp.Box(a=(-1, 1), b=xp.integers(0, 1)),
    ],
)
def test_other_queries_and_domains(domain: Domain) -> None:
    queries: list[Query] = [
        xp.logistic({"a": 2, "b": -1}, epsilon=1),
        xp.linear({"a": 1, "b": 1}, range=(-0.5, 1.5), clip=True, epsilon=2),
        xp.logistic({"a": -5}, intercept=1, epsilon="0.5"),
    ]
    rows = [[0, 1, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]]
    lower, upper = xp.realized_losses(domain, queries, rows, gap=1e-6)
    alone = one_at_a_time(domain, queries, rows)
    assert lower.tolist() == [loss.lower for loss in alone]
    assert upper.tolist() == [loss.upper for loss in alone]


@pytest.mark.parametrize(
    ("responses", "message"),
    [
        ([0, 1], "responses: must be a table of integers, a column per query"),
        ([[0, 1]], "responses: must be a table of integers, a column per query"),
        ([[0.5]], "responses: must be a table of integers, a column per query"),
        ([[2]], "responses: there is a position that its query does not have"),
        ([[-1]], "responses: there is a position that its query does not have"),
    ],
)
def test_bad_tables_are_one_line(responses: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}$"):
        xp.realized_losses(xp.Box([(0, 1)]), [xp.linear([1], epsilon=1)], responses)
