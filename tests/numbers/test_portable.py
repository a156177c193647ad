"""exp and the logistic function, against mpmath."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest

from expost.numbers.portable import EXP_ERROR, SIGMOID_ERROR, exp, sigmoid
from support import oracles

SMALLEST_NORMAL = 2.0**-1022
SMALLEST = 2.0**-1074


def arguments() -> list[float]:
    """All sizes and both signs, the ends, and where the range reduction changes its mind."""
    generator = random.Random(1)
    ends = [745.0, 745.2, 709.7, 708.4, 700.0, 1.0, 1e-8, 1e-300, 5e-324, 0.0]
    spread = [generator.uniform(0, 745) for _ in range(3000)]
    tiny = [10.0 ** generator.uniform(-320, 0) for _ in range(1000)]
    ties = [(k + 0.5) * 0.6931471805599453 for k in range(1075)]
    magnitudes = [*ends, *spread, *tiny, *ties, *np.nextafter(ties, 0.0).tolist()]
    return [*magnitudes, *(-x for x in magnitudes)]


def relative_error(computed: float, expected: mpmath.mpf) -> mpmath.mpf:
    return abs(computed / expected - 1)


def test_exp_is_within_its_bound() -> None:
    points = arguments()
    with mpmath.workdps(60):
        for x, computed in zip(points, exp(np.array(points)).tolist(), strict=True):
            expected = mpmath.exp(x)
            if computed == np.inf:
                assert expected > np.finfo(float).max
            elif expected >= SMALLEST_NORMAL:
                assert relative_error(computed, expected) <= EXP_ERROR
            else:
                assert abs(computed - expected) <= SMALLEST


def test_the_logistic_function_is_within_its_bound_however_small() -> None:
    points = arguments()
    with mpmath.workdps(400):
        for x, computed in zip(points, sigmoid(np.array(points)).tolist(), strict=True):
            expected = oracles.sigmoid(x)
            if expected >= SMALLEST_NORMAL:
                assert relative_error(computed, expected) <= SIGMOID_ERROR
            else:
                assert abs(computed - expected) <= SMALLEST


def test_shares_never_leave_the_unit_interval() -> None:
    shares = sigmoid(np.array([*arguments(), 1e300, -1e300]))
    assert shares.min() == 0
    assert shares.max() == 1


@pytest.mark.parametrize(
    ("x", "bits"),
    [
        (0.0, "0x1.0000000000000p+0"),
        (1.0, "0x1.5bf0a8b14576ap+1"),
        (-1.0, "0x1.78b56362cef38p-2"),
        (-700.0, "0x1.14f2b0fb9307fp-1010"),
    ],
)
def test_the_bits_are_these_on_every_machine(x: float, bits: str) -> None:
    assert exp(np.array([x]))[0].hex() == bits
