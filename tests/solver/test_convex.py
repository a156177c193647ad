"""Convex sums with many corners: the bound at the best corner, and searches among corners.

The oracle looks at every corner, in doubles first and then, where that is close, in mpmath.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.solver._methods import (
    BranchAndBound,
    ConvexMaximizer,
    CornerEnumeration,
    choose_maximizer,
)
from expost.solver.kernels.branching import CORNERS
from expost.solver.kernels.layout import FOOT, TIGHTENED, BoxProblem, PackedProblem, Workspace
from expost.solver.kernels.links import FALLING
from expost.terms import Link, ScoreTerm
from support.optimizer_parts import (
    curvature_left,
    exact_dual,
    exact_sum,
    highest,
    is_positive_semidefinite,
    kernels,
    links_of,
    make_node,
    make_packed,
    plain_kernels,
    single,
    solver_of,
)

EPSILONS = [0.01, 0.1, 0.5, 1.0, 2.5, 8.0]


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with mpmath.workdps(50), np.errstate(all="ignore"):  # as compiled code does
        yield


def falling(
    generator: random.Random, d: int, n: int, epsilon: float, kind: str = "plain"
) -> PackedProblem:
    """The smallest sum of linear queries over a box, of a kind that may be hard."""
    terms: list[ScoreTerm] = []
    lo, hi = [-1.0] * d, [1.0] * d
    size = {"huge": 1e12, "small": 1e-12}.get(kind, 1.0)
    if kind in ("huge", "small"):
        lo, hi = [-size] * d, [3 * size] * d
    if kind == "fixed":
        hi = [generator.choice([1.0, -1.0]) for _ in range(d)]
    if kind == "integer":
        lo, hi = [0.0] * d, [float(generator.choice([1, 2, 7])) for _ in range(d)]
    reach = [max(map(abs, ends)) for ends in zip(lo, hi, strict=True)]
    for _ in range(n):
        weights = [generator.gauss(0, 1) / r for r in reach]
        if kind == "alike":
            weights = [generator.choice([-1.0, 1.0])] * d
        total = sum(abs(w) * r for w, r in zip(weights, reach, strict=True))
        scale = generator.choice([1.0, 1.0, 0.3]) / (total * (1 + 1e-14))
        form = tuple(w * scale for w in weights)
        term = ScoreTerm(Link.CLIPPED, epsilon, form, 0.0, 0.0)
        terms += [term] * generator.choice([1, 1, 1, 3])
        if kind == "both ways":
            terms.append(ScoreTerm(Link.CLIPPED, epsilon, tuple(-w for w in form), 0.0, 0.0))
    _, lowest = make_packed(terms, lo, hi, [kind == "integer"] * d)
    return lowest


KINDS = ["plain", "both ways", "alike", "fixed", "integer", "huge", "small"]


def at_corners(side: BoxProblem) -> mpmath.mpf:
    """The largest sum at a corner, exactly."""
    corners = np.array(list(itertools.product(*zip(side.lo, side.hi, strict=True))))
    scores = np.clip(corners @ side.A.T + side.c, -1, 1)
    sums = -np.log1p((1 - scores) / side.par[:, FOOT]) @ side.m
    best = np.unique(corners[sums >= sums.max() - 1e-11], axis=0)[:4]
    return max(exact_sum(side, tuple(corner.tolist())) for corner in best)


def corner_node(side: BoxProblem, generator: random.Random) -> Workspace:
    """Some coordinates fixed at an end, and a corner of what is left."""
    lo, hi = side.lo.copy(), side.hi.copy()
    for j in range(len(lo)):
        fate = generator.random()
        lo[j], hi[j] = (hi[j], hi[j]) if fate < 0.15 else (lo[j], lo[j] if fate > 0.85 else hi[j])
    work = make_node(side, lo, hi)
    kernels.propagate(side, work, 1)
    ends = zip(lo, hi, strict=True)
    work.centre[:] = [generator.choice(pair) for pair in ends]
    return work


# -- the bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_term_with_its_chord_is_below_its_bound(epsilon: float) -> None:
    generator = random.Random(21)
    side = single(FALLING, epsilon, times=2)
    links = links_of(side)
    for _ in range(15):
        lo = generator.choice([-1.0, -1.5, generator.uniform(-1, 1)])
        hi = max(lo, generator.choice([1.0, 1.0 + 1e-15, 1.3, generator.uniform(lo, 1)]))
        mid = generator.choice([lo, hi, generator.uniform(lo, hi)])
        G = side.par[0, FOOT] + 1 - min(1.0, mid)  # noqa: N806
        lam = 2 / G * generator.choice([1.0, 1.0, 1.0 + 1e-9, 0.7, -0.2])
        q = 2 / G**2 * generator.choice([1.0, 1.0 + 1e-6, generator.uniform(0, 4)])
        bound = kernels.chord_bound(links, 0, lam, q, mid, lo, hi)
        # Its own rounding is left to the sum, as for all terms.
        allowed = 4 * kernels.UNIT * (side.error[0] + 4 * abs(lam) + 20 * q)
        assert highest(side, 0, lam, lo, hi, q, mid) <= bound + allowed


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_chord_meets_its_term_at_the_corner_and_at_the_far_end(epsilon: float) -> None:
    generator = random.Random(22)
    for _ in range(20):
        side = falling(generator, 3, 5, epsilon).views
        work = corner_node(side, generator)
        kernels.corner_majorant(side, work)
        links = links_of(side)
        for i in range(len(side.m)):
            lam, q, mid = (float(x[i]) for x in (work.lam, work.q, work.middle))
            bound = kernels.chord_bound(links, i, lam, q, mid, work.L[i], work.U[i])
            tight = side.m[i] * kernels.value(side.link, side.par, i, mid) - lam * mid
            reach = float(work.U[i] - work.L[i])
            assert bound <= tight + 1e-5 * q * reach**2 + 1e-13


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_diagonal_at_a_corner_is_above_the_curvatures(epsilon: float) -> None:
    generator = random.Random(23)
    for kind in KINDS:
        for _ in range(4):
            side = falling(generator, generator.randint(1, 6), 8, epsilon, kind).views
            work = corner_node(side, generator)
            kernels.corner_majorant(side, work)
            assert work.q.min() > 0
            assert is_positive_semidefinite(curvature_left(side, work))


def test_the_bound_at_a_corner_is_that_of_its_multipliers_and_above_all_corners() -> None:
    generator = random.Random(24)
    for step in range(14):
        epsilon, kind = EPSILONS[step % 6], KINDS[step % 7]
        side = falling(generator, 3, 3, epsilon, kind).views
        work = corner_node(side, generator)
        kernels.corner_majorant(side, work)
        bound = kernels.dual_bound(side, work, False)
        assert exact_dual(side, work) <= bound
        ends = [sorted(set(pair)) for pair in zip(work.l, work.u, strict=True)]
        for corner in itertools.product(*ends):
            assert exact_sum(side, corner) <= bound


def test_what_is_fixed_loses_no_corner_above_the_cut() -> None:
    generator, lost = random.Random(25), 0
    for step in range(60):
        side = falling(generator, 4, 5, EPSILONS[step % 6], KINDS[step % 7]).views
        work = corner_node(side, generator)
        kernels.improve_corner(side, work)
        kernels.corner_majorant(side, work)
        bound = kernels.dual_bound(side, work, False)
        ends = [sorted(set(pair)) for pair in zip(work.l, work.u, strict=True)]
        corners = list(itertools.product(*ends))
        values = {corner: exact_sum(side, corner) for corner in corners}
        cut = float(max(values.values())) * (1 + 1e-15) - generator.choice([0.0, 0.0, 0.02])
        kernels.fix_coordinates(side, work, bound, cut)
        gone = [
            values[corner]
            for corner in corners
            if not all(work.l <= corner) or not all(corner <= work.u)
        ]
        assert max(gone, default=cut) <= cut
        lost += bool(gone)
    assert lost > 10


# -- searches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_search_among_corners_encloses_the_largest_exact_one(epsilon: float, kind: str) -> None:
    generator = random.Random(f"{epsilon} {kind}")
    for step in range(6):
        d, n = generator.randint(1, 9), generator.choice([2, 6, 20])
        packed = falling(generator, d, n, epsilon, kind)
        exact = at_corners(packed.views)
        search = BranchAndBound(packed, [CORNERS])
        for nodes in (1, 3, 10, 4000):
            search.advance(generator.choice([1e-3, 0.1]) if step % 2 else 1e-4, nodes)
            assert search.lower <= exact <= search.upper
        search.advance(1e-4, 4000)
        assert search.upper - search.lower <= 1e-4 + 1e-8
        assert search.nodes <= 2 * 4000


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_twelve_coordinates_are_enclosed_as_well(epsilon: float) -> None:
    packed = falling(random.Random(26), 12, 30, epsilon)
    exact = at_corners(packed.views)
    for nodes in (1, 20, 20_000):
        search = BranchAndBound(packed)
        search.advance(1e-3, nodes)
        assert search.lower <= exact <= search.upper


def test_where_a_search_takes_long_all_corners_are_looked_at() -> None:
    generator = random.Random(27)
    easy, hard = falling(generator, 13, 20, 0.1), falling(generator, 13, 20, 4.0)
    for packed, enumerated in ((easy, False), (hard, True)):
        convex, corners = choose_maximizer(packed), CornerEnumeration(packed)
        assert isinstance(convex, ConvexMaximizer)
        convex.advance(1e-4, 2)
        assert convex.lower <= corners.upper
        assert corners.lower <= convex.upper
        convex.advance(1e-4, 1000)
        assert convex.upper - convex.lower <= 1e-4
        assert (convex.upper == corners.upper) == enumerated
        assert convex.nodes <= 8 + 2 + enumerated


def test_linear_queries_in_thirty_coordinates_are_settled_in_a_few_nodes() -> None:
    # The search with secants needs thousands of nodes for most of these, and many end open.
    generator = random.Random(28)
    for epsilon, most in ((0.1, 3), (0.5, 5), (1.0, 50)):
        for _ in range(4):
            search = BranchAndBound(falling(generator, 30, 130, epsilon))
            search.advance(0.005, 1000)
            assert search.upper - search.lower <= 0.005 + 1e-9
            assert search.nodes <= most


def test_the_loss_of_linear_queries_in_thirty_coordinates_takes_few_nodes() -> None:
    generator, box = random.Random(31), xp.Box([(-1, 1)] * 30)
    transcript = xp.Transcript(box)
    for _ in range(130):
        query = xp.linear([generator.uniform(-1, 1) for _ in range(30)], epsilon="0.1")
        transcript = transcript.add(query, generator.choice(query.on(box).responses))
    loss = xp.realized_loss(transcript, gap=0.01, nodes=20)
    assert loss.upper - loss.lower <= 0.01


# -- broken on purpose ---------------------------------------------------------------------------


def half_of_the_diagonal(module: Any) -> None:
    original = module.dominating_diagonal

    def halved(work: Any, mass: float, sweeps: int) -> bool:
        good = original(work, mass, sweeps)
        work.D[:] *= 0.5
        return bool(good)

    module.dominating_diagonal = halved


def forgetting_what_was_fixed(module: Any) -> None:
    original = module.fix_coordinates

    def forgetful(side: Any, work: Any, bound: float, cut: float) -> bool:
        fixed = bool(original(side, work, bound, cut))
        work.outcome[TIGHTENED] = 0.0
        return fixed

    module.fix_coordinates = forgetful


def curvatures_of_the_corner_alone(module: Any) -> None:
    """As if ψ'' did not rise, and nobody looked at the far end."""
    original = module.chord_bound

    def near(links: Any, i: int, lam: float, q: float, mid: float, lo: float, hi: float) -> float:
        return float(original(links, i, lam, q, mid, mid, mid))

    def weak(side: Any, work: Any) -> None:
        corner_majorant(side, work)
        work.q[:] = side.m / (side.par[:, FOOT] + 1 - work.middle) ** 2
        work.D[:] *= 0.7

    corner_majorant, module.chord_bound, module.corner_majorant = module.corner_majorant, near, weak


def a_fixed_end_too_many(module: Any) -> None:
    original = module.fix_coordinates
    module.fix_coordinates = lambda side, work, bound, cut: original(side, work, bound, cut + 5.0)


def nothing(module: Any) -> None:
    """As it is."""


def wrong(broken: Callable[[Any], None]) -> int:
    """How many enclosures of a search do not hold the largest sum.

    Flips would most often find the largest corner at once, and no bound is below what was found.
    """
    module, generator, failures = plain_kernels(), random.Random(29), 0
    module.improve_corner = lambda side, work: None
    broken(module)
    with solver_of(module):
        for step in range(24):
            packed = falling(generator, 4, 5, 4.0, "both ways" if step % 2 else "plain")
            exact = at_corners(packed.views)
            search = BranchAndBound(packed, [CORNERS])
            search.advance(generator.choice([1e-3, 0.3, 2.0]), 30)
            failures += not search.lower <= exact <= search.upper
    return failures


def test_a_search_without_flips_is_worse_and_right() -> None:
    assert wrong(nothing) == 0


@pytest.mark.parametrize(
    "broken",
    [
        half_of_the_diagonal,
        forgetting_what_was_fixed,
        curvatures_of_the_corner_alone,
        a_fixed_end_too_many,
    ],
)
def test_a_bound_that_is_none_is_flagged(broken: Callable[[Any], None]) -> None:
    assert wrong(broken) > 0
