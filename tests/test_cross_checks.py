"""Packages from outside agree: qif on channels, OpenDP on randomized response."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
import qif
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from support.random_cases import exact_rows

dp.enable_features("contrib")

Rows = list[list[Fraction]]


def doubles(rows: Rows) -> Any:
    return np.array([[float(p) for p in row] for row in rows])


def epsilon_by_qif(matrix: Any) -> float:
    # Under the discrete metric every two different secrets are at distance one.
    return float(qif.measure.d_privacy.smallest_epsilon(matrix, qif.metric.discrete()))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 5).flatmap(exact_rows))
def test_qif_finds_the_same_epsilon_of_a_channel(rows: Rows) -> None:
    ours = xp.loss.worst_case_loss(xp.channel(rows), xp.FiniteSet(range(len(rows))))
    assert epsilon_by_qif(doubles(rows)) == pytest.approx(ours.upper, rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4).flatmap(lambda n: st.tuples(exact_rows(n), exact_rows(n))))
def test_qif_composes_in_parallel_what_a_transcript_multiplies(pair: tuple[Rows, Rows]) -> None:
    first, second = pair
    domain = xp.FiniteSet(range(len(first)))
    queries = xp.channel(first), xp.channel(second)
    losses = [
        xp.realized_loss(xp.Transcript(domain).add(queries[0], a).add(queries[1], b)).upper
        for a in range(len(first[0]))
        for b in range(len(second[0]))
    ]
    composed = np.asarray(qif.channel.compose.parallel(doubles(first), doubles(second)))
    ratios = [math.log(column.max() / column.min()) for column in composed.T]
    assert sorted(losses) == pytest.approx(sorted(ratios), rel=1e-9, abs=1e-12)
    assert epsilon_by_qif(composed) == pytest.approx(max(losses), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5"])
@pytest.mark.parametrize("size", [2, 3, 10])
def test_opendp_finds_the_same_epsilon_of_randomized_response(epsilon: str, size: int) -> None:
    labels = [f"label {i}" for i in range(size)]
    query, domain = xp.randomized_response(epsilon=epsilon), xp.FiniteSet(labels)
    truth = float(query.on(domain).pmf(0).probability(0))
    theirs = dp.m.make_randomized_response(labels, prob=truth).map(d_in=1)
    assert theirs == pytest.approx(xp.loss.worst_case_loss(query, domain).upper, rel=1e-9)
