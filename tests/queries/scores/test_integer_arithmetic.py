"""What is worked out with integers over one denominator is what fractions give."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import expost as xp
from expost.queries import BoxScore, SetScore
from support import oracles

SIZES = st.sampled_from([1e-320, 1e-9, 0.1, 1.0, 3.0, 1e9, 1e150])
NUMBERS = st.builds(lambda size, share: size * share, SIZES, st.floats(-1, 1))
SIDES = st.tuples(NUMBERS, NUMBERS).map(sorted)


@st.composite
def scores(draw: st.DrawFn) -> BoxScore:
    sides = draw(st.lists(SIDES, min_size=1, max_size=3))
    weights = draw(st.lists(NUMBERS, min_size=len(sides), max_size=len(sides)))
    return BoxScore(tuple(weights), draw(NUMBERS), xp.Box(sides))


@given(scores())
def test_the_ends_of_a_score_are_its_extremes_over_all_corners(score: BoxScore) -> None:
    sides = [(column.lower, column.upper) for column in score._box.columns]
    at_corners = [
        oracles.affine(score.weights, score.intercept, corner) for corner in product(*sides)
    ]
    low, high, under = score.ends
    assert (Fraction(low, under), Fraction(high, under)) == (min(at_corners), max(at_corners))


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6, unique=True),
    st.tuples(NUMBERS, NUMBERS),
    NUMBERS,
)
@example([(0.1, 5.0), (0.1, 7.0), (0.3, 5.0)], (3.0, 0.0), 1.0)  # two that tie
@example([(0.1, 0.2), (0.2, 0.1), (0.3, 0.0)], (1.0, 1.0), 0.0)  # two that rounding hides
def test_the_ends_of_a_score_on_a_set_are_its_extremes_over_all_values(
    rows: list[tuple[float, float]], weights: tuple[float, float], intercept: float
) -> None:
    score = SetScore(weights, intercept, xp.FiniteSet(rows, names=["x", "y"]))
    low, high, under = score.ends
    exact = [oracles.affine(weights, intercept, row) for row in rows]
    assert (Fraction(low, under), Fraction(high, under)) == (min(exact), max(exact))


@given(scores())
def test_a_score_is_constant_if_its_doubles_are_equal_at_both_corners(score: BoxScore) -> None:
    assert score.is_constant == (score.at(score.corner(1)) == score.at(score.corner(-1)))


FACTORS = st.integers(-(2**60), 2**60).filter(bool)


@given(scores(), FACTORS, st.integers(-(2**60), 2**60), st.integers(1, 2**60))
def test_a_form_in_doubles_is_off_by_what_the_theory_says(
    score: BoxScore, scale: int, shift: int, under: int
) -> None:
    form = score.form(scale, shift, under)
    factor, added = Fraction(scale, under), Fraction(shift, under)
    largest = max(abs(factor * Fraction(w)) for w in (*score.weights, 1.0))
    if form is None:  # because of a coefficient, or of what products with coordinates reach
        reached = (len(score.weights) + 8) * abs(factor) * score.magnitude
        assert max(largest, abs(factor * Fraction(score.intercept) + added), reached) > 2**1023
        return
    assert form.weights == tuple(float(factor * Fraction(w)) for w in score.weights)
    assert form.offset == float(factor * Fraction(score.intercept) + added)
    unit, smallest = Fraction(1, 2**53), Fraction(1, 2**1074)
    least = (
        abs(factor)
        * (
            oracles.score_rounding(score.weights, score.intercept, score.reach)
            + unit * score.magnitude
        )
        + unit * abs(added)
        + smallest * (1 + sum(map(Fraction, score.reach)))
    )
    assert least <= form.moved <= least * (1 + Fraction(1, 2**28)) + Fraction(1, 2**1040)


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("clip", [False, True])
def test_the_error_of_a_linear_term_is_the_sum_of_its_parts(position: int, clip: bool) -> None:
    box = xp.Box([(0.1, 0.7), (-3, 1e-3)])
    query = xp.linear([0.3, -1.7], intercept=0.2, range=(-3, 9), clip=clip, epsilon="0.3")
    likelihood = query.on(box)
    (light, heavy), epsilon = _weights(query.epsilon), Fraction(3, 10)
    growth = Fraction(heavy - light, light)
    score, scale, shift = query.score.on_box(box), Fraction(2, 12), Fraction(6, 12)
    unit, smallest = Fraction(1, 2**53), Fraction(1, 2**1074)
    moved = (
        scale
        * (
            oracles.score_rounding(score.weights, score.intercept, score.reach)
            + unit * score.magnitude
        )
        + unit * shift
    )
    moved += smallest * (1 + sum(map(Fraction, score.reach)))
    error = (
        growth / 2 * moved
        + 5 * unit * (min(growth, Fraction(1)) if position else growth)
        + Fraction(1, 2 * light)
        + Fraction(1, heavy)
        + abs(Fraction(0.3) - epsilon)
    )
    computed = likelihood.term(position).error
    assert error <= computed <= error * (1 + Fraction(1, 2**28))


def _weights(epsilon: Fraction) -> tuple[int, int]:
    light = 2**42  # 40 bits, and 2 more for an epsilon above a quarter
    return light, math.floor(light * Fraction(_exp(epsilon)))


def _exp(epsilon: Fraction) -> str:
    with localcontext() as context:
        context.prec = 60
        return str((Decimal(epsilon.numerator) / epsilon.denominator).exp())
