"""What estimates are made from: a part of the answers is said to be one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import expost as xp

DOMAIN = xp.FiniteSet(["no", "yes"])
TABLE = {"subject": ["a", "b", "b"], "query": ["r", "r", "p"], "response": ["no", "yes", 1]}
QUERIES: dict[str, xp.queries.Query] = {
    "r": xp.randomized_response(epsilon=1),
    "p": xp.perturbation([0, 1], epsilon=1),
}

ESTIMATES: list[Callable[[Any], object]] = [
    lambda answers: xp.estimation.estimate_mean(answers, "p"),
    lambda answers: xp.estimation.estimate_frequencies(answers),
    lambda answers: xp.estimation.estimate_distribution(answers),
]


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_an_estimate_from_a_part_warns_and_one_from_all_does_not(
    estimate: Callable[[Any], object],
) -> None:
    whole, part = (xp.Answers(DOMAIN, QUERIES, TABLE, complete=all_) for all_ in (True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(whole)
    with pytest.warns(UserWarning, match="the answers are incomplete: .* can be biased$") as seen:
        estimate(part)
    assert len(seen) == 1
    # It names the line of whoever asked for the estimate.
    assert seen[0].filename == __file__
