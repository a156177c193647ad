"""Solvers that are broken on purpose, each by name: the check of the suite flags every one.

They run on a copy of the kernels that is not compiled, so that single functions can be replaced.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.solver.kernels.layout import TIGHTENED
from support.box_cases import Ask, Case, Side, complaints
from support.optimizer_parts import plain_kernels, solver_of

Break = Callable[[Any], None]


def cases(count: int) -> list[Case]:
    generator = random.Random(11)
    result = []
    for _ in range(count):
        sides = (Side(-1.0, 1.0), Side(-1.0, 1.0))
        asks = []
        for _ in range(5):
            weights = (generator.gauss(0, 4), generator.gauss(0, 4))
            high = generator.random() < 0.5
            asks.append(Ask("logistic", weights, generator.gauss(0, 2), "2", high))
        result.append(Case(sides, tuple(asks)))
    return result


def flagged(broken: Break, count: int, **options: Any) -> int:
    """How many of the cases the check complains about."""
    module = plain_kernels()
    broken(module)
    flagged_count = 0
    with solver_of(module):
        for seed, case in enumerate(cases(count)):
            try:
                loss = xp.realized_loss(case.transcript, **options)
            except ValueError:  # its ends are the wrong way round
                flagged_count += 1
            else:
                flagged_count += bool(complaints(case, loss, seed, count=100))
    return flagged_count


def poor_points(module: Any) -> None:
    """Always the same corner: little is found, but nothing is wrong with that."""

    def stay(side: Any, work: Any, from_here: float, worth: float) -> float:
        return float(module.evaluate(side, side.lo, work.grad))

    module.ascend = stay


def the_trap(module: Any) -> None:
    """A tightened node is taken for all of what it was before."""
    poor_points(module)
    original = module.grow_node

    def forgetful(*arguments: Any) -> float:
        bound = original(*arguments)
        arguments[1].outcome[TIGHTENED] = 0.0
        return float(bound)

    module.grow_node = forgetful


def the_value_of_the_relaxed_point(module: Any) -> None:
    """A bound that is only the value at an approximate optimum."""

    def value(side: Any, work: Any, touching: bool) -> float:
        x = np.clip(work.x, work.l, work.u)
        work.w[:] = work.weight[:] = 0.0
        return float(module.evaluate(side, x, work.grad))

    module.dual_bound = value


def half_of_the_diagonal(module: Any) -> None:
    """Curvature that is not paid for."""
    original = module.set_curvatures

    def cheap(side: Any, work: Any) -> bool:
        fine = original(side, work)
        work.D[:] = 0.0
        return bool(fine)

    module.set_curvatures = cheap


def noise_for_multipliers(module: Any) -> None:
    """Multipliers that have nothing to do with the problem: useless, and right all the same."""
    original, generator = module.simplex, np.random.default_rng(3)

    def noisy(side: Any, work: Any, limit: int) -> None:
        original(side, work, limit)
        work.lam[:] = generator.normal(size=len(work.lam)) * 0.3

    module.simplex = noisy


def nothing(module: Any) -> None:
    """As it is."""


@pytest.mark.parametrize("harmless", [nothing, poor_points, noise_for_multipliers])
def test_what_only_makes_a_bound_worse_is_not_flagged(harmless: Break) -> None:
    assert flagged(harmless, 6, gap=1.0, nodes=20) == 0


@pytest.mark.parametrize("broken", [the_value_of_the_relaxed_point, half_of_the_diagonal])
def test_a_bound_that_is_none_is_flagged(broken: Break) -> None:
    assert flagged(broken, 4, gap=0.05, nodes=30) > 0


def test_forgetting_what_tightening_dropped_is_flagged() -> None:
    assert flagged(the_trap, 30, gap=1.0, nodes=40) > 0
