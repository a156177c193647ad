"""One-bit perturbation: the paper's formula on an integer grid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import expost as xp
from expost.numbers import Nats
from expost.queries import one_bit_weights
from support import oracles

epsilons = st.fractions(min_value=Fraction(1, 10**9), max_value=400).filter(bool)
scores = st.lists(st.floats(-3, 5), min_size=1, max_size=6)


@given(scores, epsilons)
@example([4.999999999999999], Fraction("10.397238226"))
def test_probabilities_are_the_formula_up_to_the_rounding_of_a_share(
    values: list[float], epsilon: Fraction
) -> None:
    query = xp.perturbation(values, range=(-3, 5), epsilon=epsilon)
    likelihood = query.on(xp.FiniteSet(range(len(values))))
    assert likelihood.responses == (-3, 5)
    with mpmath.workdps(50):
        for index, score in enumerate(values):
            for position in (0, 1):
                mirrored = score if position else 2 - score
                expected = oracles.perturbation(mirrored, -3, 5, epsilon)
                computed = likelihood.pmf(index).probability(position)
                # A share of the range is a double: where the response is rare, its last bit counts.
                assert abs(oracles._mpf(computed) - expected) < 1e-12 * expected + 2.0**-52


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), epsilons)
def test_the_worst_case_never_exceeds_the_nominal_epsilon(
    values: list[float], epsilon: Fraction
) -> None:
    query = xp.perturbation([0.0, *values, 1.0], epsilon=epsilon)
    likelihood = query.on(xp.FiniteSet(range(len(values) + 2)))
    assert likelihood.epsilon <= Nats(epsilon)
    assert Nats(epsilon * (1 - Fraction(1, 10**11))) < likelihood.epsilon


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), epsilons)
def test_weights_are_monotone_and_share_one_total(values: list[float], epsilon: Fraction) -> None:
    low, high = one_bit_weights(np.array(sorted(values)), epsilon)
    ordered = [int(w) for w in high]
    assert ordered == sorted(ordered)
    assert len({int(a) + int(b) for a, b in zip(low, high, strict=True)}) == 1
    (zero, one), (one_again, zero_again) = one_bit_weights(np.array([1.0, 0.0]), epsilon)
    assert (int(zero), int(one)) == (int(zero_again), int(one_again))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [0, 2], "epsilon": 1}, r"scores\[1\]: is outside the range \[0, 1\]"),
        ({"scores": [float("nan")], "epsilon": 1}, r"scores\[0\]: must be a finite number"),
        ({"scores": np.array([np.nan]), "epsilon": 1}, r"scores\[0\]: is outside"),
        ({"scores": ["0.5"], "epsilon": 1}, r"scores\[0\]: must be a number"),
        ({"scores": [], "epsilon": 1}, "scores: must not be empty"),
        ({"scores": [0], "epsilon": 0}, "epsilon: must be greater than 0"),
        ({"scores": [0], "epsilon": 501}, "epsilon: must be at most 500, not 501"),
        ({"scores": [0], "epsilon": float("inf")}, "epsilon: must be a finite number"),
        ({"scores": [0], "range": (1, 0), "epsilon": 1}, "range: must be two ends"),
        ({"scores": [0], "range": (-1e308, 1e308), "epsilon": 1}, "range: must be two ends"),
        ({"scores": [0], "range": (0, 1, 2), "epsilon": 1}, "range: must be two ends"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.perturbation(**arguments)


def test_a_perturbation_needs_a_score_per_value() -> None:
    with pytest.raises(xp.InvalidInput, match="2 scores for a domain of 3 values"):
        xp.loss.worst_case_loss(xp.perturbation([0, 1], epsilon=1), xp.FiniteSet(list("abc")))
