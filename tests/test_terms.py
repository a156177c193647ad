"""The logarithms of weights: every one within its stated error."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.terms import Term, as_weights
from support import oracles

sizes = st.sampled_from([10, 2**20, 2**40, 2**53, 2**62 - 1, 2**80, 2**900])


@settings(max_examples=1000)
@given(sizes.flatmap(lambda m: st.lists(st.integers(0, m), min_size=1, max_size=8)))
def test_every_log_is_within_the_error(weights: list[int]) -> None:
    assume(any(weights))
    term = Term.of(as_weights(weights, max(weights)))
    with mpmath.workdps(60):
        # The common constant is unknown, so differences are compared; each has two errors.
        exact = {w: oracles.log(Fraction(w)) for w in weights if w}
        for w, log in zip(weights, term.logs.tolist(), strict=True):
            if w == 0:
                assert log == -math.inf
                continue
            for v, other in zip(weights, term.logs.tolist(), strict=True):
                if v:
                    difference = exact[w] - exact[v] - (mpmath.mpf(log) - mpmath.mpf(other))
                    assert abs(difference) <= 2 * term.error


@given(st.integers(1, 2**61), st.integers(1, 2**20))
def test_neighbors_are_told_apart_or_covered_by_the_error(weight: int, step: int) -> None:
    term = Term.of(as_weights([weight, weight + step], weight + step))
    with mpmath.workdps(60):
        truth = oracles.log(Fraction(weight + step, weight))
        gap = mpmath.mpf(term.logs[1]) - mpmath.mpf(term.logs[0])
        assert abs(truth - gap) <= 2 * term.error


def test_equal_weights_have_no_error() -> None:
    for weight in (1, 2**61, 2**100):
        term = Term.of(as_weights([weight] * 3, weight))
        assert term.error == 0
        assert (term.logs == 0).all()


def test_a_difference_below_the_range_of_doubles_is_still_covered() -> None:
    # Two weights next to each other at 2^1900: their quotient is one in doubles, but no loss is 0.
    ratio = 1 + Fraction(1, 2**1900)
    truth = ratio / (1 + ratio)
    query = xp.channel([[truth, 1 - truth], [1 - truth, truth]])
    guard = xp.BayesianFilter.of(Nats(ratio=ratio**2))
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    accepted = 0
    while accepted < 5 and guard.decide(odometer, query).accepted:
        odometer = odometer.add(query, 1)
        accepted += 1
    assert accepted == 2


def test_logs_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Term.of(np.array([1, 2])).logs[0] = 0
