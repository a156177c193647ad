"""Windows of one score that touch become one, and the sum stays what it is."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import expost as xp
from expost.solver import BoxSpread, Effort
from expost.solver._problem import merge_windows
from expost.terms import EVERYWHERE, Link, ScoreTerm


def window(lo: float, hi: float, epsilon: float = 1.0, weight: float = 1.0) -> ScoreTerm:
    return ScoreTerm(Link.WINDOW, epsilon, (weight,), 0.0, 0.0, (lo, hi))


def total(terms: Counter[ScoreTerm], z: Fraction) -> Fraction:
    """The sum at a score that is at no jump."""
    result = Fraction(0)
    for term, times in terms.items():
        inside = term.window[0] < z * Fraction(term.weights[0]) < term.window[1]
        result += times * Fraction(term.epsilon) / 2 * (1 if inside else -1)
    return result


@pytest.mark.parametrize("seed", range(200))
def test_the_sum_is_the_same_everywhere_between_the_jumps(seed: int) -> None:
    generator = random.Random(seed)
    terms: Counter[ScoreTerm] = Counter()
    for _ in range(generator.randint(1, 8)):
        a, b = sorted(generator.sample(range(6), 2))
        lo = -math.inf if a == 0 else a + 0.5
        hi = math.inf if b == 5 else b + 0.5
        if (lo, hi) != EVERYWHERE:
            epsilon = generator.choice([1.0, 1.0, 0.1])
            weight = generator.choice([1.0, 1.0, 1.0, 2.0])
            terms[window(lo, hi, epsilon, weight)] += generator.choice([1, 1, 3])
    merged, constant = merge_windows(terms)
    for step in range(8):
        # Neither it nor its double is half an odd number.
        z = Fraction(step) + Fraction(1, 7)
        assert total(terms, z) == total(merged, z) + constant
    assert merged.total() <= terms.total()
    ends = {(t.weights, t.epsilon, t.window[1]) for t in merged}
    starts = {(t.weights, t.epsilon, t.window[0]) for t in merged}
    assert ends.isdisjoint(starts)


def test_other_terms_are_left_alone() -> None:
    terms = Counter([ScoreTerm(Link.LOGISTIC, 1.0, (1.0,), 0.0, 0.0), window(0.5, 1.5)])
    assert merge_windows(terms) == (terms, Fraction(0))


def test_a_score_is_in_one_of_two_windows_that_touch() -> None:
    box = xp.Box([(0, 1), (0, 1)])
    query = xp.piecewise([1, 0.5], range=(0, 2), grid="0.5", window=2, epsilon="1")
    transcript = xp.Transcript(box).add(query, 1).add(query, 3)
    # Steps 0 and 1, then 2 and 3: everywhere one of them but never both.
    assert xp.realized_loss(transcript).upper < 1e-9
    assert xp.realized_loss(transcript.add(query, 1)).upper == pytest.approx(1)


def test_bounds_of_both_sides_are_those_of_the_terms_as_they_were_given() -> None:
    box = xp.Box([(0, 10)])
    terms = [window(0.5, 2.5), window(2.5, 4.5), window(4.5, math.inf)]
    spread = BoxSpread(terms, box)
    spread.narrow(Effort(1e-6))
    grid = np.linspace(0, 10, 1001)
    sums = [float(total(Counter(terms), Fraction(z) + Fraction(1, 10**6))) for z in grid]
    largest, of_negative = spread.uppers
    assert largest >= max(sums) - 1e-12
    assert of_negative >= -min(sums) - 1e-12
    assert largest + of_negative == pytest.approx(max(sums) - min(sums))
