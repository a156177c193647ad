"""Duchi's mechanism: right on average, and otherwise a linear query."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import expost as xp


@pytest.mark.parametrize("epsilon", ["0.01", "1", "6"])
def test_the_mean_of_the_responses_is_the_score(epsilon: str) -> None:
    generator = random.Random(1)
    box = xp.Box([(-5, 5)])
    likelihood = xp.queries.duchi([2], intercept=1, range=(-4, 8), epsilon=epsilon).on(box)
    for _ in range(50):
        x = generator.uniform(-5, 5)
        pmf = likelihood.pmf((x,))
        low, high = (Fraction(str(response)) for response in likelihood.responses)
        mean = pmf.probability(0) * low + pmf.probability(1) * high
        score = min(8.0, max(-4.0, 1 + 2 * x))
        assert abs(mean - Fraction(score)) <= (high - low) / 10**11


def test_its_loss_is_that_of_a_clipped_linear_query() -> None:
    box = xp.Box(a=(0, 1), b=(0, 2))
    options: dict[str, Any] = {"intercept": -0.5, "range": (0, 1), "epsilon": "1.5"}
    plain = xp.linear({"a": 1, "b": 2}, clip=True, **options)
    query = xp.queries.duchi({"a": 1, "b": 2}, **options)
    for position in (0, 1):
        first = xp.Transcript(box).add(plain, plain.on(box).responses[position])
        second = xp.Transcript(box).add(query, query.on(box).responses[position])
        assert xp.realized_loss(first) == xp.realized_loss(second)


def test_a_range_is_needed() -> None:
    with pytest.raises(xp.InvalidInput, match="range: must be two ends"):
        xp.queries.duchi([1], range=(2, 1), epsilon=1)
    text = '{"version": 1, "domain": {"box": [[0, 1]]}, "exchanges": [{"query": {"kind": "duchi", '
    text += '"weights": [1], "epsilon": 1}, "response": 1}]}'
    with pytest.raises(xp.InvalidInput, match="range"):
        xp.Transcript.from_json(text)


@pytest.mark.parametrize("domain", [xp.Box([(-1, 1)]), xp.FiniteSet([-1, 0, 1])])
def test_estimates_that_no_double_can_hold_are_refused_by_a_line(
    domain: xp.Box | xp.FiniteSet,
) -> None:
    weights: Any = [1] if isinstance(domain, xp.Box) else {"value": 1}
    query = xp.queries.duchi(weights, range=(-8e307, 8e307), epsilon="0.1")
    with pytest.raises(xp.InvalidInput, match=r"^epsilon: is too small for estimates in doubles$"):
        query.on(domain)
