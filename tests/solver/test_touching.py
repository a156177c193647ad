"""Parabolas that touch their terms: bounds that hold for any, and are small in small nodes."""

from __future__ import annotations

import random

import mpmath
import numpy as np
import pytest

from expost.solver.kernels.layout import BoxProblem, Workspace
from expost.solver.kernels.links import LOGISTIC
from expost.terms import Link, ScoreTerm
from support.optimizer_parts import (
    exact_dual,
    exact_sum,
    highest,
    kernels,
    links_of,
    make_node,
    make_sides,
    relax,
    single,
    some_point,
)


def smooth_side(generator: random.Random, d: int, n: int, epsilon: float) -> BoxProblem:
    terms = [
        ScoreTerm(
            Link.LOGISTIC,
            epsilon,
            tuple(generator.uniform(-1, 1) * generator.choice([1, -1]) for _ in range(d)),
            generator.uniform(-1, 1),
            0.0,
        )
        for _ in range(n)
    ]
    return make_sides(terms, [-1.0] * d, [1.0] * d)[generator.randrange(2)]


def small_node(side: BoxProblem, generator: random.Random, width: float) -> Workspace:
    lo = np.array(
        [generator.uniform(a, b - width * (b - a)) for a, b in zip(side.lo, side.hi, strict=True)]
    )
    work = make_node(side, lo, lo + width * (side.hi - side.lo))
    assert kernels.propagate(side, work, 1)
    work.centre[:] = 0.5 * (work.l + work.u)
    return work


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 2.5, 8.0])
def test_a_touching_bound_is_above_the_largest_value(epsilon: float) -> None:
    generator, finite, negative = random.Random(5), 0, 0
    for _ in range(30):
        side = single(LOGISTIC, epsilon, generator.choice([1, 1, 7]))
        lo = generator.gauss(0, 3)
        hi = lo + 10.0 ** generator.uniform(-3, 1.2)
        mid = generator.choice([lo, hi, generator.uniform(lo, hi), generator.uniform(lo, hi)])
        here = [float(side.m[0] * kernels.second_derivative(side.par, 0, t)) for t in (mid, lo, hi)]
        q = here[0] + generator.choice([1e-9, 0.02, 0.5]) * generator.random() * max(map(abs, here))
        q = generator.choice([q, q, q, -q, generator.choice(here)])
        if q == 0:
            continue
        lam = float(side.m[0] * kernels.slope(side.link, side.par, 0, mid))
        lam *= 1 + generator.choice([0.0, 0.0, 1e-15, 0.1, -3.0])
        second_contact = generator.uniform(lo - 1, hi + 1)
        bound = float(
            kernels.touching_bound(links_of(side), 0, lam, q, mid, lo, hi, second_contact)
        )
        most = highest(side, 0, lam, lo, hi, q, mid)
        reach = abs(lo) + abs(hi) + 1
        allowed = 2.0**-53 * (side.error[0] + 8 * reach * (abs(lam) + abs(q) * reach))
        assert bound + mpmath.mpf(allowed) >= most, (lam, q, mid, lo, hi, second_contact)
        finite += bound < float("inf")
        negative += bound < float("inf") and q < 0
    assert finite > 10
    assert negative > 1


@pytest.mark.parametrize("width", [1.0, 0.3, 0.05])
def test_the_bound_of_touching_parabolas_is_that_of_its_multipliers(width: float) -> None:
    generator = random.Random(7)
    for epsilon in (0.1, 1.0, 6.0):
        side = smooth_side(generator, 3, 6, epsilon)
        work = small_node(side, generator, width)
        assert kernels.fit_parabolas(side, work)
        for _ in range(2):
            bound = kernels.touching_parabola_bound(side, work, 3)
            assert exact_dual(side, work) <= bound < float("inf")
            for _ in range(10):
                assert exact_sum(side, some_point(work, side, generator)) <= bound


def test_in_a_small_node_touching_parabolas_are_closer_than_hulls() -> None:
    generator = random.Random(8)
    for _ in range(3):
        side = smooth_side(generator, 4, 40, 0.1)
        work = small_node(side, generator, 0.25)
        work.beta[:] = 0.3
        hulls = float("inf")
        for _ in range(3):
            assert kernels.set_curvatures(side, work)
            relax(side, work)
            hulls = min(hulls, float(kernels.dual_bound(side, work, False)))
            kernels.adapt_curvatures(side, work)
        assert kernels.fit_parabolas(side, work)
        bound = float(kernels.touching_parabola_bound(side, work, 4))
        value = float(kernels.evaluate(side, work.centre, work.grad))
        assert bound - value < 0.5 * (hulls - value)
