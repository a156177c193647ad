"""The kernels one by one, because the slack of a whole search hides a single mistake.

Oracles are in mpmath at 50 digits and in fractions; nothing here has a tolerance of its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from expost.solver import BoxColumns, TermArrays, pack_both_directions
from expost.solver.kernels.layout import BoxProblem, Workspace
from expost.solver.kernels.links import (
    BOWL,
    FALLING,
    HILL,
    HOLE,
    LOGISTIC,
    MIRRORED,
    PROBIT,
    RISING,
    TENT,
    VALLEY,
    WINDOW,
)
from expost.terms import BLUR, Link, ScoreTerm
from support import oracles
from support.box_cases import EPSILONS, some_case, some_hills
from support.optimizer_parts import (
    UNIT,
    curvature_left,
    exact_dual,
    exact_link,
    exact_sum,
    highest,
    is_positive_semidefinite,
    kernels,
    links_of,
    make_node,
    make_sides,
    plain_kernels,
    relax,
    score,
    sides_of,
    single,
    some_node,
    some_point,
    without_rounding,
)

KINDS = {
    "logistic": LOGISTIC,
    "rising": RISING,
    "falling": FALLING,
    "probit": PROBIT,
    "mirrored": MIRRORED,
    "tent": TENT,
    "valley": VALLEY,
    "window": WINDOW,
    "hole": HOLE,
}
SHARP = [1e-9, 1e-3, 0.1, 1.0, 2.5, 8.0, 30.0, 100.0]

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(autouse=True)
def fifty_digits() -> Iterator[None]:
    with mpmath.workdps(50), np.errstate(all="ignore"):  # as compiled code does
        yield


def arguments(generator: random.Random, epsilon: float, count: int) -> list[float]:
    """Scores of all sizes, and next to where a link bends or breaks."""
    corners = [0.0, 1.0, -1.0, epsilon / 2, -epsilon / 2]
    near = [math.nextafter(t, s) for t in corners for s in (-math.inf, math.inf)]
    sizes = [10.0 ** generator.uniform(-18, 3) for _ in range(count)]
    large = [700.0, 745.0, 800.0, 1e5, 1e300]
    near_corners = [
        c + generator.choice([-1, 1]) * 10.0 ** generator.uniform(-17, 0) for c in corners
    ]
    return [s * t for t in [*corners, *near, *near_corners, *sizes, *large] for s in (1.0, -1.0)]


@every_kind
@pytest.mark.parametrize("epsilon", SHARP)
def test_links_are_within_their_error(kind: int, epsilon: float) -> None:
    side = single(kind, epsilon)
    for t in arguments(random.Random(1), epsilon, 60):
        computed = kernels.value(side.link, side.par, 0, t)
        assert abs(computed - exact_link(side, 0, Fraction(t))) <= UNIT * side.error[0]


@pytest.mark.parametrize("epsilon", SHARP)
def test_slopes_of_a_logistic_link_are_within_their_errors(epsilon: float) -> None:
    side = single(LOGISTIC, epsilon)
    for t in arguments(random.Random(2), epsilon, 60):
        first, second = oracles.logistic_slopes(Fraction(t), epsilon)
        # What plain_bound and curved_bound allow for; below normal numbers nothing is relative.
        assert abs(kernels.slope(side.link, side.par, 0, t) - first) <= 32 * UNIT * first + 1e-300
        assert abs(kernels.second_derivative(side.par, 0, t) - second) <= 1e-14 * epsilon / 2


@pytest.mark.parametrize("kind", [RISING, FALLING])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 2.5, 8.0])
def test_slopes_of_a_linear_link_are_those_of_a_score_next_to_it(kind: int, epsilon: float) -> None:
    side = single(kind, epsilon)
    foot = 2 / mpmath.expm1(mpmath.mpf(epsilon))
    for t in arguments(random.Random(3), epsilon, 60):
        computed = kernels.slope(side.link, side.par, 0, t)
        if abs(t) > 1:
            assert computed == 0
            continue
        below = foot + 1 + (t if kind == RISING else -t)
        assert abs(1 / mpmath.mpf(computed) - below) <= 4 * UNIT * (1 + foot + below)


# -- bounds of one term --------------------------------------------------------------------------


def allowance(side: BoxProblem, lam: float, lo: float, hi: float, q: float, mid: float) -> float:
    """What dual_bound adds for a term on its own."""
    work = make_node(side)
    work.L[0], work.U[0], work.lam[0], work.q[0], work.middle[0] = lo, hi, lam, q, mid
    work.l[0] = work.u[0] = work.D[0] = 0.0
    work.knots[0] = 1
    work.knot[0, 0] = lo
    if q == 0:
        return float(
            kernels.dual_bound(side, work, False)
            - kernels.plain_bound(links_of(side), 0, lam, lo, hi)
        )
    bound = kernels.curved_bound(links_of(side), 0, lam, q, mid, lo, hi, lo)
    return float(kernels.dual_bound(side, work, False) - bound)


def some_interval(generator: random.Random) -> tuple[float, float]:
    shape = generator.random()
    middle = generator.choice([0.0, 1.0, -1.0, generator.gauss(0, 1), generator.gauss(0, 20)])
    if shape < 0.1:
        return middle, middle
    width = 10.0 ** generator.uniform(-17 if shape < 0.3 else -1, 1.2)
    share = generator.choice([0.0, 1.0, generator.random()])
    return middle - share * width, middle + (1 - share) * width


def some_multiplier(generator: random.Random, side: BoxProblem, lo: float, hi: float) -> float:
    """Of any sign and size, and often a slope that the term has somewhere."""
    shape = generator.random()
    if shape < 0.15:
        return float(generator.choice([0, 1, -1]) * 10.0 ** generator.uniform(-12, 6))
    slope = float(side.m[0] * kernels.slope(side.link, side.par, 0, generator.uniform(lo, hi)))
    return slope * (1 + generator.choice([0.0, 0.0, 1e-15, -1e-9, 0.1]))


@every_kind
@pytest.mark.parametrize("epsilon", [1e-9, *(float(Fraction(e)) for e in EPSILONS[::2]), 30.0])
def test_a_plain_bound_is_above_the_largest_value(kind: int, epsilon: float) -> None:
    generator = random.Random(4)
    for _ in range(60):
        side = single(kind, epsilon, generator.choice([1, 1, 7]))
        lo, hi = some_interval(generator)
        lam = some_multiplier(generator, side, lo, hi)
        bound = float(kernels.plain_bound(links_of(side), 0, lam, lo, hi))
        allowed = allowance(side, lam, lo, hi, 0.0, 0.0)
        assert bound + mpmath.mpf(allowed) >= highest(side, 0, lam, lo, hi), (lam, lo, hi)


@pytest.mark.parametrize("kind", [HILL, BOWL])
def test_a_plain_bound_of_a_parabola_is_above_its_largest_value(kind: int) -> None:
    generator = random.Random(6)
    for _ in range(400):
        lo, hi = some_interval(generator)
        side = single(kind, 1.0, generator.choice([1, 1, 7]), (lo, hi))
        for t in (lo, hi, generator.uniform(lo, hi)):
            computed = kernels.value(side.link, side.par, 0, t)
            assert abs(computed - exact_link(side, 0, Fraction(t))) <= UNIT * side.error[0]
        lam = some_multiplier(generator, side, lo, hi)
        a, b = sorted(generator.choice([lo, hi, generator.uniform(lo, hi)]) for _ in range(2))
        bound = float(kernels.plain_bound(links_of(side), 0, lam, a, b))
        allowed = allowance(side, lam, a, b, 0.0, 0.0)
        most = highest(side, 0, lam, a, b)
        assert most <= bound + mpmath.mpf(allowed) <= most + 2 * allowed, (lam, a, b)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 2.5, 8.0])
def test_a_curved_bound_is_above_the_largest_value(epsilon: float) -> None:
    generator = random.Random(5)
    tried = 0
    while tried < 40:
        side = single(LOGISTIC, epsilon, generator.choice([1, 1, 7]))
        lo, hi = some_interval(generator)
        if not 0 < hi - lo <= 20:
            continue
        peak = min(hi, max(lo, -float(side.par[0, kernels.PEAK])))
        most = float(
            side.m[0] * max(kernels.second_derivative(side.par, 0, t) for t in (lo, peak, hi))
        )
        q = (generator.uniform(0.03, 1) if most > 0 else 0.5) * most
        if q == 0:
            continue
        tried += 1
        mid = generator.choice([lo, hi, generator.uniform(lo, hi)])
        lam = some_multiplier(generator, side, lo, hi) - q * (generator.uniform(lo, hi) - mid)
        start = generator.choice([lo, hi, generator.uniform(lo, hi)])
        bound = float(kernels.curved_bound(links_of(side), 0, lam, q, mid, lo, hi, start))
        allowed = allowance(side, lam, lo, hi, q, mid)
        most_there = highest(side, 0, lam, lo, hi, q, mid)
        assert bound + mpmath.mpf(allowed) >= most_there, (lam, q, mid, lo, hi)


# -- the dual bound ------------------------------------------------------------------------------


def some_side(generator: random.Random, queries: int = 5) -> BoxProblem:
    while True:
        draw_case = some_hills if generator.random() < 0.25 else some_case
        case = draw_case(generator, coordinates=4, queries=queries)
        if any(any(term.weights) for term in case.terms):
            return sides_of(case)[generator.randrange(2)]


def disturb(work: Workspace, generator: random.Random) -> None:
    """Make multipliers of any quality."""
    how = generator.random()
    for i in range(len(work.lam)):
        if how < 0.3:
            work.lam[i] = generator.gauss(0, 1) * 10.0 ** generator.uniform(-6, 6)
        elif how < 0.6:
            work.lam[i] *= 1 + 0.1 * generator.gauss(0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_the_dual_bound_holds_for_any_multipliers(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(60):
        side = some_side(generator)
        work = some_node(side, generator)
        curved = generator.random() < 0.5 and kernels.set_curvatures(side, work)
        if not curved:
            work.q[:] = work.D[:] = 0.0
        relax(side, work)
        disturb(work, generator)
        bound = float(kernels.dual_bound(side, work, False))
        assert bound >= exact_dual(side, work)
        for _ in range(4):
            assert bound >= exact_sum(side, some_point(work, side, generator))


def exact_scores(generator: random.Random) -> tuple[BoxProblem, tuple[float, ...]]:
    """A side and a point of it, with scores that are exact in doubles."""
    d = generator.randint(1, 4)
    point = tuple(generator.randint(-64, 64) / 32 for _ in range(d))
    terms = [
        ScoreTerm(
            generator.choice([Link.LOGISTIC, Link.CLIPPED]),
            generator.choice([0.1, 1.0, 4.0]),
            tuple(generator.randint(-64, 64) / 64 for _ in range(d)),
            generator.randint(-64, 64) / 32,
            0.0,
        )
        for _ in range(generator.randint(1, 6))
    ]
    lo, hi = [x - generator.choice([0, 1]) for x in point], [x + 1 for x in point]
    side = make_sides(terms, lo, hi)[generator.randrange(2)]
    # Coordinates of a side are scaled by powers of two.
    ends = zip(lo, hi, side.lo.tolist(), side.hi.tolist(), strict=True)
    scales = [top / high if high else bottom / low for low, high, bottom, top in ends]
    return side, tuple(x * scale for x, scale in zip(point, scales, strict=True))


def pinned(side: BoxProblem, point: tuple[float, ...], generator: random.Random) -> Workspace:
    """A node of one point, whose dual function is the sum there whatever the multipliers are."""
    work = make_node(side, np.array(point), np.array(point))
    for i in range(len(side.m)):
        work.L[i] = work.U[i] = float(score(side, i, point))
        work.lam[i] = generator.gauss(0, 1) * 10.0 ** generator.uniform(-1, 8)
    return work


def below_the_sum(dual_bound: Any, seeds: range) -> int:
    """How many nodes of one point have a bound below the value there."""
    broken = 0
    for seed in seeds:
        generator = random.Random(seed)
        side, point = exact_scores(generator)
        work = pinned(side, point, generator)
        broken += float(dual_bound(side, work, False)) < exact_sum(side, point)
    return broken


def test_large_multipliers_cancel_and_the_dual_bound_allows_for_it() -> None:
    assert below_the_sum(kernels.dual_bound, range(500)) == 0


def test_without_its_rounding_the_dual_bound_is_caught() -> None:
    plain = plain_kernels()
    assert below_the_sum(plain.dual_bound, range(200)) == 0
    assert below_the_sum(without_rounding(plain, "dual_bound"), range(200)) > 20


# -- curvature -----------------------------------------------------------------------------------


def some_curved_node(generator: random.Random) -> tuple[BoxProblem, Workspace]:
    while True:
        d = generator.randint(1, 6)
        scale = 10.0 ** generator.choice([-6, 0, 0, 3])
        steep = generator.choice([0.3, 1.0, 5.0])
        terms = [
            ScoreTerm(
                Link.LOGISTIC,
                generator.choice([0.1, 1.0, 4.0]),
                tuple(generator.gauss(0, steep) / scale for _ in range(d)),
                generator.gauss(0, 2),
                0.0,
            )
            for _ in range(generator.randint(1, 9))
        ]
        side = make_sides(terms, [-scale] * d, [generator.choice([1, 1, -1]) * scale] * d)[0]
        work = some_node(side, generator)
        work.beta[:] = [generator.uniform(0.03, 1) for _ in terms]
        for j in range(d):
            work.centre[j] = generator.uniform(work.l[j], work.u[j])
        if kernels.set_curvatures(side, work) and work.q.any():
            return side, work


def test_curvature_is_covered_by_its_diagonal_in_rational_numbers() -> None:
    generator = random.Random(6)
    for _ in range(300):
        side, work = some_curved_node(generator)
        assert is_positive_semidefinite(curvature_left(side, work))


def test_a_diagonal_that_is_a_tenth_too_small_is_caught() -> None:
    generator = random.Random(6)
    caught = 0
    for _ in range(100):
        side, work = some_curved_node(generator)
        work.D[:] *= 0.9
        caught += not is_positive_semidefinite(curvature_left(side, work))
    assert caught > 30


# -- intervals -----------------------------------------------------------------------------------


def keeps(side: BoxProblem, work: Workspace, point: tuple[float, ...], propagate: Any) -> bool:
    """Whether a point that satisfies all constraints of a node is still there afterwards."""
    return bool(propagate(side, work, 3)) and holds(side, work, point)


def holds(side: BoxProblem, work: Workspace, point: tuple[float, ...]) -> bool:
    """Whether a point is in a node, with all its scores."""
    inside = all(lo <= x <= hi for lo, x, hi in zip(work.l, point, work.u, strict=True))
    scores = [score(side, i, point) for i in range(len(side.m))]
    limits = zip(work.L.tolist(), scores, work.U.tolist(), strict=True)
    return inside and all(low <= t <= high for low, t, high in limits)


def tight_node(generator: random.Random) -> tuple[BoxProblem, Workspace, tuple[float, ...]]:
    """Limits on scores as close to a point as doubles allow, on one side or on both."""
    side = some_side(generator, queries=6)
    work = make_node(side)
    point = some_point(work, side, generator)
    for i in range(len(side.m)):
        t = score(side, i, point)
        nearest = float(t)
        if generator.random() < 0.7:
            work.L[i] = nearest if nearest <= t else math.nextafter(nearest, -math.inf)
        if generator.random() < 0.7:
            work.U[i] = nearest if nearest >= t else math.nextafter(nearest, math.inf)
    return side, work, point


def test_propagation_never_cuts_off_a_point_that_satisfies_all_constraints() -> None:
    generator = random.Random(7)
    for _ in range(1500):
        side, work, point = tight_node(generator)
        assert keeps(side, work, point, kernels.propagate)


def test_nor_one_that_is_exactly_on_the_boundary() -> None:
    for seed in range(500):
        generator = random.Random(seed)
        side, point = exact_scores(generator)
        work = make_node(side)
        for i in range(len(side.m)):
            work.L[i] = work.U[i] = float(score(side, i, point))
        assert keeps(side, work, point, kernels.propagate)


def lost(how: Any, sides: Any = lambda side: side) -> int:
    generator = random.Random(7)
    count = 0
    for _ in range(300):
        side, work, point = tight_node(generator)
        count += not keeps(sides(side), work, point, how)
    return count


def test_propagation_without_slack_is_caught() -> None:
    plain = plain_kernels()
    assert lost(plain.propagate) == 0
    assert lost(plain.propagate, lambda side: side._replace(slack=0 * side.slack)) > 10


def test_propagation_that_takes_every_coordinate_for_an_integer_is_caught() -> None:
    def whole(side: BoxProblem) -> BoxProblem:
        return side._replace(integer=np.ones_like(side.integer))

    assert lost(plain_kernels().propagate, whole) > 10


def test_integers_use_that_they_are_integers() -> None:
    term = ScoreTerm(Link.LOGISTIC, 1.0, (1.0,), 0.0, 0.0)
    side, _ = make_sides([term], [0.0], [9.0], [True])
    work = make_node(side)
    work.L[0], work.U[0] = 2.5, 6.5
    assert kernels.propagate(side, work, 3)
    assert (work.l[0], work.u[0]) == (3.0, 6.0)
    work.L[0], work.U[0] = 3.2, 3.8
    assert not kernels.propagate(side, work, 3)


def cut_off(tighten: Any, seeds: range) -> tuple[int, int]:
    """How many points above a cut were dropped, of how many nodes that became smaller."""
    dropped = smaller = 0
    for seed in seeds:
        generator = random.Random(seed)
        side = some_side(generator)
        work = some_node(side, generator)
        work.q[:] = work.D[:] = 0.0
        relax(side, work)
        if generator.random() < 0.3:
            disturb(work, generator)
        bound = float(kernels.dual_bound(side, work, False))
        points = [some_point(work, side, generator) for _ in range(12)]
        values = [exact_sum(side, point) for point in points]
        # Right below the best of them, or below some other one.
        cut = math.nextafter(float(max(values[: generator.choice([1, 4, 12])])), -math.inf)
        if bound <= cut:
            continue
        before = work.l.copy(), work.u.copy()
        tighten(side, work, bound, cut)
        smaller += bool((work.l > before[0]).any() or (work.u < before[1]).any())
        for point, value in zip(points, values, strict=True):
            dropped += value > cut and not holds(side, work, point)
    return dropped, smaller


def test_tightening_never_cuts_off_a_point_above_the_cut() -> None:
    dropped, smaller = cut_off(kernels.tighten, range(400))
    assert dropped == 0
    assert smaller > 50


@pytest.mark.parametrize("kind", [LOGISTIC, RISING, FALLING, PROBIT, MIRRORED])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_tightening_drops_no_score_that_may_be_above_the_cut(kind: int, epsilon: float) -> None:
    generator = random.Random(11)
    smaller = 0
    for _ in range(400):
        side = single(kind, epsilon, generator.choice([1, 3]))
        work = make_node(side)
        work.L[0], work.U[0] = before = some_interval(generator)
        work.lam[0] = lam = some_multiplier(generator, side, *before)
        bound = float(kernels.dual_bound(side, work, False))
        cut = bound - generator.choice([1e-3, 0.1, 1.0]) * generator.random() * epsilon
        best = work.part[0]
        kernels.tighten(side, work, bound, cut)
        smaller += (work.L[0], work.U[0]) != before
        # With the score at t the bound is less by what t loses against the best score.
        for t in [*np.linspace(*before, 60), 0.0, 1.0, -1.0]:
            if before[0] <= t <= before[1] and not work.L[0] <= t <= work.U[0]:
                there = side.m[0] * exact_link(side, 0, Fraction(float(t))) - lam * float(t)
                assert bound - best + there <= cut, (lam, before, bound - cut, t)
    assert smaller > 20


def test_tightening_towards_the_wrong_end_is_caught() -> None:
    plain = plain_kernels()

    def wrong(side: BoxProblem, work: Workspace, bound: float, cut: float) -> None:
        work.w[:] *= -1
        plain.tighten(side, work, bound, cut)

    def greedy(side: BoxProblem, work: Workspace, bound: float, cut: float) -> None:
        plain.tighten(side, work, cut + (bound - cut) / 2, cut)

    assert cut_off(wrong, range(150))[0] > 5
    assert cut_off(greedy, range(150))[0] > 5


# -- points --------------------------------------------------------------------------------------


def test_a_sum_in_doubles_is_within_its_error() -> None:
    generator = random.Random(8)
    for _ in range(300):
        side = some_side(generator, queries=12)
        gradient = np.empty(len(side.lo))
        for _ in range(4):
            point = some_point(make_node(side), side, generator)
            computed = kernels.evaluate(side, np.array(point), gradient)
            assert abs(computed - exact_sum(side, point)) <= side.facts[kernels.TOTAL_ERROR]


def test_the_slack_of_a_score_is_enough_and_needed() -> None:
    generator = random.Random(9)
    worst = 0.0
    for _ in range(400):
        side = some_side(generator)
        point = some_point(make_node(side), side, generator)
        for i in range(len(side.m)):
            t = side.c[i]
            for j, x in enumerate(point):
                t += side.A[i, j] * x
            off = abs(Fraction(float(t)) - score(side, i, point))
            assert off <= side.slack[i]
            worst = max(worst, float(off / Fraction(float(side.slack[i] or 1.0))))
    assert worst > 0.05


# -- jumps and categories ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [WINDOW, HOLE])
def test_points_that_are_found_count_for_no_more_than_is_sure(kind: int) -> None:
    side = single(kind, 1.0)
    gradient = np.empty(1)
    slack = float(side.slack[0])
    for edge in (-1.0, 1.0):
        for off in (0.0, BLUR, -BLUR, BLUR + slack, -BLUR - slack, 3 * BLUR, -3 * BLUR):
            t = edge + off
            computed = float(kernels.evaluate(side, np.array([t / side.A[0, 0]]), gradient))
            assert computed <= float(kernels.value(side.link, side.par, 0, t))
            # Within the blur of a jump a response may be the likelier one, or not.
            if abs(off) <= BLUR + slack / 2:
                assert computed == -0.5
            if abs(off) == 3 * BLUR:
                assert computed == float(exact_link(side, 0, Fraction(t)))


def test_one_category_is_chosen_and_only_one() -> None:
    groups = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0]])
    term = ScoreTerm(Link.LOGISTIC, 1.0, (1.0, 2.0, 3.0, 4.0, 5.0), 0.0, 0.0)
    zeros, ones = np.zeros(5), np.ones(5)
    whole = np.array([1, 1, 0, 1, 1])
    packed, _ = pack_both_directions(
        TermArrays.of([(term, 1)], range(5)), BoxColumns(zeros, ones, whole, groups)
    )
    side = packed.views
    point = np.array([1.0, 1.0, 0.25, 0.0, 0.0])
    kernels.choose_categories(side, np.array([0.4, 0.6, 0.25, 0.5, 0.5]), point)
    assert point.tolist() == [0, 1, 0.25, 1, 0]
