"""Probit queries: weights and terms against the formula, and the portable normal distribution."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.numbers.portable import NORMAL_ERROR, normal
from support import oracles


def test_the_normal_distribution_is_within_its_error() -> None:
    generator = random.Random(1)
    points = [generator.uniform(-10, 10) for _ in range(500)]
    points += [s * 10.0**e for e in range(-300, 3, 7) for s in (1, -1)]
    points += [0.0, 8.5, -8.5, np.nextafter(8.5, 9), 1e300, -1e300]
    with mpmath.workdps(40):
        for x, computed in zip(points, normal(np.array(points)).tolist(), strict=True):
            assert 0 <= computed <= 1
            exact = oracles.normal_share(Fraction(x))
            assert abs(mpmath.mpf(computed) - exact) <= mpmath.mpf(float(NORMAL_ERROR))


def test_its_two_halves_add_up_to_one() -> None:
    x = np.linspace(0, 9, 2000)
    assert (normal(x) + normal(-x) == 1).all()


@pytest.mark.parametrize("epsilon", ["0.001", "1", "8"])
def test_probabilities_are_those_of_the_formula(epsilon: str) -> None:
    box = xp.Box([(-3, 3), (-1, 2)])
    query = xp.probit([1.5, -0.5], intercept=0.25, epsilon=epsilon)
    likelihood = query.on(box)
    generator = random.Random(2)
    with mpmath.workdps(40):
        for _ in range(50):
            point = generator.uniform(-3, 3), generator.uniform(-1, 2)
            share = oracles.normal_share(oracles.affine((1.5, -0.5), 0.25, point))
            p = oracles.one_bit(share, Fraction(epsilon))
            computed = likelihood.pmf(point).probability(1)
            assert abs(oracles.log(computed) - mpmath.log(p)) < 1e-9


def test_terms_are_within_their_errors_of_what_is_sampled() -> None:
    generator = random.Random(3)
    with mpmath.workdps(40):
        for _ in range(60):
            box = xp.Box([(-1, 1)] * 2)
            weights = [generator.gauss(0, generator.choice([0.1, 1, 10])) for _ in range(2)]
            epsilon = generator.choice(["0.01", "0.5", "2", "8"])
            likelihood = xp.probit(weights, intercept=generator.gauss(0, 1), epsilon=epsilon).on(
                box
            )
            for position in (0, 1):
                term = likelihood.term(position)
                points = [tuple(generator.uniform(-1, 1) for _ in range(2)) for _ in range(8)]
                gaps = []
                for point in points:
                    z = oracles.affine(term.weights, term.offset, point)
                    sampled = oracles.log(likelihood.pmf(point).probability(position))
                    gaps.append(sampled - oracles.probit_link(z, term.epsilon))
                assert max(gaps) - min(gaps) <= 2 * mpmath.mpf(term.error)


def test_it_works_on_finite_sets_and_in_files() -> None:
    domain = xp.FiniteSet([[0, 1], [2, -1]], names=["a", "b"])
    query = xp.probit({"a": 1, "b": 0.5}, epsilon=1)
    transcript = xp.Transcript(domain).add(query, 1)
    assert 0 < xp.realized_loss(transcript).upper < 1
    assert repr(query) == "Probit(2 weights, epsilon=1)"
    assert query.with_epsilon(Fraction(2)).epsilon == 2
