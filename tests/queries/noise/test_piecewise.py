"""The piecewise mechanism: exact probabilities, fair estimates, and windows on boxes."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.domains import Integers
from expost.numbers import Nats
from expost.queries.noise.piecewise import Piecewise
from expost.report._explanation import explain
from expost.terms import BLUR, EVERYWHERE, Link, ScoreTerm
from support import oracles
from support.random_cases import table

Point = tuple[float, ...]
EPSILONS = ["1e-300", "1e-6", "0.1", "1/3", "1", "4", "30", "499"]
PERSON = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
AGE = xp.piecewise({"age": 1, "sex": 5}, range=(0, 120), grid=1, epsilon=1)


Case = tuple[xp.FiniteSet, Piecewise, list[int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A set of multiples of 1/8, a query whose shares are exact in doubles, and the steps."""
    cells, step = draw(st.sampled_from([1, 2, 4, 8])), Fraction(draw(st.sampled_from([1, 0.5, 2])))
    low = draw(st.integers(-3, 2)) * step
    eighths = draw(st.lists(st.integers(-40, 80), min_size=1, max_size=5, unique=True))
    query = xp.piecewise(
        {"value": 1},
        range=(float(low), float(low + cells * step)),
        grid=step,
        window=draw(st.integers(1, 9)),
        epsilon=draw(st.sampled_from(EPSILONS)),
    )
    # Halves go to the even neighbor.
    steps = [min(cells, max(0, round((Fraction(n, 8) - low) / step))) for n in eighths]
    return xp.FiniteSet([n / 8 for n in eighths]), query, steps


@given(cases())
def test_probabilities_are_those_of_the_formula(case: Case) -> None:
    domain, query, steps = case
    assert query.epsilon is not None
    odds = oracles.odds(query.epsilon)
    expected = oracles.piecewise(steps, query.cells, query.window, odds)
    assert table(query, domain) == expected
    likelihood, columns = query.on(domain), list(expected.values())
    assert likelihood.epsilon.ratio == oracles.epsilon_of(columns)
    assert likelihood.least_loss.ratio == min(max(column) / min(column) for column in columns)
    assert likelihood.epsilon <= Nats(query.epsilon)
    for position, column in enumerate(columns):
        loss = likelihood.term(position).loss
        assert loss.ratio == max(column) / min(column)


@settings(max_examples=200, deadline=None)
@given(cases(), st.lists(st.integers(0, 100), max_size=3), st.integers(0, 100))
def test_the_worst_case_is_the_largest_over_all_responses(
    case: Case, given_before: list[int], other: int
) -> None:
    domain, query, steps = case
    assert query.epsilon is not None
    if not 1e-9 < query.epsilon < 50:
        query = query.with_epsilon(Fraction(1, 2))
    odds = oracles.odds(query.epsilon)
    columns = oracles.piecewise(steps, query.cells, query.window, odds)
    before = xp.piecewise({"value": 1}, range=(-1, 2), grid=1, window=2, epsilon="0.7")
    earlier = table(before, domain)
    odometer, likelihoods = xp.Odometer(xp.Transcript(domain)), [Fraction(1)] * len(domain)
    for choice in given_before:
        response = choice % len(before.responses)
        odometer = odometer.add(before, response)
        likelihoods = [a * b for a, b in zip(likelihoods, earlier[response], strict=True)]
    response = other % len(query.responses)
    odometer = odometer.add(query, response)
    likelihoods = [a * b for a, b in zip(likelihoods, columns[response], strict=True)]
    after = {}
    for k, column in columns.items():
        products = [p * q for p, q in zip(likelihoods, column, strict=True)]
        after[k] = max(products) / min(products)
    worst = max(after.values())
    for limit in (worst, worst * (1 - Fraction(1, 10**25)), worst * (1 + Fraction(1, 10**25))):
        if limit > 1:
            decision = xp.BayesianFilter(ratio=limit).decide(odometer, query)
            assert decision.accepted is (worst <= limit)
            assert after[decision.worst_response] == worst
            alone = oracles.epsilon_of(list(columns.values()))
            assert alone is not None
            simple = max(likelihoods) / min(likelihoods) * alone
            accepted = xp.SimplifiedFilter(ratio=limit).decide(odometer, query).accepted
            assert accepted is (simple <= limit)


@pytest.mark.parametrize("epsilon", ["0.01", "1/3", "1", "6", "40"])
@pytest.mark.parametrize("window", [1, 2, 7, 12])
def test_estimates_are_right_on_average_at_every_step(epsilon: str, window: int) -> None:
    query = xp.piecewise([1], range=(-1.4, 5.6), grid="0.7", window=window, epsilon=epsilon)
    odds = oracles.odds(Fraction(epsilon))
    columns = oracles.piecewise(range(query.cells + 1), query.cells, window, odds)
    estimates = [Fraction(query.estimate(k)) for k in columns]
    for step in range(query.cells + 1):
        mean = sum(columns[k][step] * estimate for k, estimate in enumerate(estimates))
        # Each estimate is the nearest double to one that makes this exact.
        rounding = max(map(abs, estimates)) / 2**53
        assert abs(mean - (Fraction("-1.4") + step * Fraction("0.7"))) <= rounding


def test_the_usual_window_is_that_of_the_paper() -> None:
    """(C - 1)/(C + 1) of the steps, where C = (e^(ε/2) + 1)/(e^(ε/2) - 1)."""
    for epsilon, grid in itertools.product(["0.01", "1", "3", "20", "500"], ["100", "1", "0.01"]):
        query = xp.piecewise([1], range=(0, 1000), grid=grid, epsilon=epsilon)
        with mpmath.workdps(40):
            half = mpmath.exp(mpmath.mpf(epsilon) / 2)
            c = (half + 1) / (half - 1)
            assert query.window == max(1, int(mpmath.nint(query.cells * (c - 1) / (c + 1))))
        assert query.with_epsilon(Fraction(7)).window == query.window


def test_a_fine_grid_needs_no_memory() -> None:
    query = xp.piecewise([1], range=(0, 1), grid=Fraction(1, 2**24), epsilon=1)
    likelihood = query.on(xp.Box([(0, 1)]))
    assert len(likelihood.responses) == 2**24 + query.window
    pmf = likelihood.pmf((0.5,))
    source = xp.sampling.InsecureSource(3)
    draws = [pmf.pick(source.below(pmf.total)) for _ in range(2000)]
    inside = sum(2**23 <= k < 2**23 + query.window for k in draws)
    # About 0.62 of them, within six standard deviations.
    share = query.window * math.e / (query.window * math.e + 2**24)
    assert abs(inside - 2000 * share) < 6 * (2000 * share * (1 - share)) ** 0.5
    errors = [query.estimate(k) - 0.5 for k in draws]
    assert abs(np.mean(errors)) < 6 * np.std(errors) / 2000**0.5


def test_scores_beyond_the_range_count_as_its_ends() -> None:
    query = xp.piecewise([1], range=(0, 4), grid=1, window=2, epsilon=1)
    likelihood = query.on(xp.Box([(-1e300, 1e300)]))
    for outside, end in ((-1e300, 0.0), (-0.1, 0.0), (4.1, 4.0), (1e300, 4.0)):
        for k in query.responses:
            probabilities = {likelihood.pmf((x,)).probability(k) for x in (outside, end)}
            assert len(probabilities) == 1


# -- terms on boxes -------------------------------------------------------------------------------


def some_term(generator: random.Random) -> tuple[xp.Box, Piecewise, int]:
    """A box, a query about a score on it, and a response."""
    size = 10.0 ** generator.choice([-3, 0, 0, 0, 2, 5, 9, 12])
    sides: list[Any] = []
    for _ in range(generator.randint(1, 4)):
        low = generator.uniform(-1, 1) * size
        integers = xp.integers(generator.randint(-5, 0), generator.randint(1, 9))
        sides.append(
            integers if generator.random() < 0.2 else (low, low + generator.random() * size)
        )
    weights = [generator.gauss(0, 1) / 10.0 ** generator.choice([0, 0, 1, 5]) for _ in sides]
    cells = generator.choice([1, 2, 3, 10, 1000, 2**20, 2**24])
    unit = 2.0 ** generator.randint(-8, 12)
    grid = Fraction(unit) / generator.choice([1, 10])
    start = grid * generator.randint(-cells, 0)
    query = xp.piecewise(
        weights,
        intercept=generator.choice([0, 1, 0.3]) * unit,
        range=(float(start), float(start + cells * grid)),
        grid=grid,
        window=generator.choice([1, 2, max(1, cells // 2), min(cells + 3, 2**24)]),
        epsilon=generator.choice(["1e-30", "1e-3", "0.1", "1", "5", "100"]),
    )
    last = len(query.responses) - 1
    edges = [0, 1, query.window - 1, query.window, query.cells - 1, query.cells, last]
    return xp.Box(sides), query, min(last, generator.choice([*edges, generator.randint(0, last)]))


def near_an_edge(generator: random.Random, box: xp.Box, term: ScoreTerm) -> Point:
    """A point whose form is at an end of the window, or a few doubles or blurs away from it."""
    point = [
        float(generator.randint(side.lower, side.upper))
        if isinstance(side, Integers)
        else generator.choice([side.lower, side.upper, generator.uniform(side.lower, side.upper)])
        for side in box.columns
    ]
    edges = [edge for edge in term.window if math.isfinite(edge)]
    free = [
        j
        for j, side in enumerate(box.columns)
        if term.weights[j] and not isinstance(side, Integers)
    ]
    if edges and free:
        j, blurs = generator.choice(free), generator.choice(["0", "0", "0.5", "0.99", "1.01", "2"])
        goal = Fraction(generator.choice(edges))
        goal += generator.choice([-1, 1]) * Fraction(blurs) * Fraction(BLUR)
        slope = Fraction(term.weights[j])
        offset = oracles.affine(term.weights, term.offset, point) - slope * Fraction(point[j])
        x = float((goal - offset) / slope)
        for _ in range(generator.randint(0, 2)):
            x = math.nextafter(x, generator.choice([-math.inf, math.inf]))
        point[j] = min(box.columns[j].upper, max(box.columns[j].lower, x))
    return tuple(point)


def where(term: ScoreTerm, point: Point) -> set[bool]:
    """Whether a term says heavy, light, or either of them."""
    z, (low, high) = oracles.affine(term.weights, term.offset, point), term.window
    blur = Fraction(BLUR)
    above = z - Fraction(low) if low > -math.inf else blur
    below = Fraction(high) - z if high < math.inf else blur
    inside = min(above, below)
    if inside >= blur:
        return {True}
    return {False} if inside <= -blur else {True, False}


@pytest.mark.parametrize("seed", range(6))
def test_what_is_sampled_is_what_the_term_says_also_next_to_the_edges(seed: int) -> None:
    generator = random.Random(seed)
    tried = blurred = flat = 0
    for _ in range(250):
        box, query, k = some_term(generator)
        likelihood, (heavy, light) = query.on(box), query.two_weights
        term = likelihood.term(k)
        if not any(term.weights):
            flat += 1
            assert term.error >= float(query.epsilon) * 0.499
            continue
        with mpmath.workdps(60):
            separation = oracles.log(Fraction(heavy, light)) - mpmath.mpf(term.epsilon)
            assert abs(separation) <= 2 * mpmath.mpf(term.error)
            assert term.error < 1e-12 * float(query.epsilon)
        points = [near_an_edge(generator, box, term) for _ in range(12)]
        weights = likelihood.weights(k, [np.array(c) for c in zip(*points, strict=True)])
        for point, weight in zip(points, weights.tolist(), strict=True):
            pmf = likelihood.pmf(point)
            assert Fraction(weight, pmf.total) == pmf.probability(k)
            assert weight in (heavy, light)
            meant = where(term, point)
            assert (weight == heavy) in meant, (query.tree(), box, k, point)
            tried, blurred = tried + 1, blurred + (len(meant) > 1)
    assert tried > 1000
    assert blurred > 10
    assert flat > 3


def test_a_term_is_the_window_in_steps() -> None:
    box = xp.Box([(0, 1), (0, 1)])
    query = xp.piecewise([3, 0], intercept=1, range=(0, 2), grid="1/4", window=3, epsilon=1)
    likelihood = query.on(box)
    first, middle, last = (likelihood.term(k) for k in (2, 5, 8))
    assert (middle.link, middle.weights, middle.offset) == (Link.WINDOW, (12.0, 0.0), 4.0)
    assert [term.window for term in (first, middle, last)] == [
        (-math.inf, 2.5), (2.5, 5.5), (5.5, math.inf),
    ]  # fmt: skip
    assert middle == replace(first, window=(2.5, 5.5))
    assert len({hash(term) for term in (first, middle, last)}) == 3
    elsewhere = xp.piecewise([3, 0], intercept=1, range=(0, 4), grid="1/4", window=3, epsilon=1)
    assert elsewhere.on(box).term(5).rounding_key != middle.rounding_key
    wide = xp.piecewise([3, 0], range=(0, 2), grid="1/4", window=20, epsilon=1).on(box)
    assert wide.term(12).window == EVERYWHERE


@pytest.mark.parametrize("weight", [1e9, 1e290])
def test_where_doubles_do_not_tell_steps_apart_the_term_is_a_constant(weight: float) -> None:
    query = xp.piecewise([weight, -weight], range=(0, 1), grid="0.1", epsilon=3)
    likelihood = query.on(xp.Box([(0, 1), (0, 1)]))
    term = likelihood.term(4)
    assert (term.weights, term.offset, term.window) == ((0.0, 0.0), 0.0, EVERYWHERE)
    assert 1.4999 < term.error < 1.5001
    transcript = xp.Transcript(xp.Box([(0, 1), (0, 1)])).add(query, 4)
    assert 2.999 < xp.realized_loss(transcript).upper <= 3


# -- losses on boxes ------------------------------------------------------------------------------


def pieces(transcript: xp.Transcript, box: xp.Box) -> Iterator[Point]:
    """A point of every piece of an interval between the edges of windows, and those edges."""
    (side,) = box.columns
    cuts = {float(side.lower), float(side.upper)}
    for exchange in transcript.exchanges:
        likelihood = exchange.query.on(box)
        term = likelihood.term(likelihood.position(exchange.response) or 0)
        for edge in term.window:
            if term.weights[0] and math.isfinite(edge):
                x = float((Fraction(edge) - Fraction(term.offset)) / Fraction(term.weights[0]))
                cuts |= {x} if side.lower < x < side.upper else set()
    if isinstance(side, Integers):
        yield from ((float(x),) for x in range(side.lower, side.upper + 1))
        return
    for x, y in itertools.pairwise(sorted(cuts)):
        yield from ((x,), (math.nextafter(x, y),), ((x + y) / 2,), (math.nextafter(y, x),), (y,))


def exact_loss(transcript: xp.Transcript, points: Iterator[Point]) -> mpmath.mpf:
    """By the probabilities that are sampled."""
    box = transcript.domain
    assert isinstance(box, xp.Box)
    likelihoods = []
    for point in points:
        factors = (
            exchange.query.on(box).pmf(point).probability(int(str(exchange.response)))
            for exchange in transcript.exchanges
        )
        likelihoods.append(math.prod(factors, start=Fraction(1)))
    return oracles.log(max(likelihoods) / min(likelihoods))


def on_an_interval(generator: random.Random) -> xp.Transcript:
    low = generator.choice([0, -1, generator.uniform(-5, 5)])
    side: Any = (low, low + generator.choice([1, 2, generator.uniform(0.1, 20)]))
    if generator.random() < 0.2:
        side = xp.integers(math.floor(low), math.floor(low) + generator.choice([1, 3, 20]))
    box = xp.Box([side])
    transcript = xp.Transcript(box)
    queries: list[Piecewise] = []
    for _ in range(generator.randint(1, 7)):
        if not queries or generator.random() < 0.6:
            cells = generator.choice([1, 2, 3, 8, 40])
            grid = Fraction(1, generator.choice([1, 2, 4, 10]))
            start = grid * generator.randint(-cells - 3, 3)
            queries.append(
                xp.piecewise(
                    [generator.choice([1, -1, 0.5, generator.gauss(0, 2)])],
                    intercept=generator.choice([0, 0.25, generator.gauss(0, 1)]),
                    range=(float(start), float(start + cells * grid)),
                    grid=grid,
                    window=generator.choice([None, 1, 2, 5]),
                    epsilon=generator.choice(["0.1", "1/3", "1", "2"]),
                )
            )
        query = generator.choice(queries)
        transcript = transcript.add(query, generator.randrange(len(query.responses)))
    return transcript


@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_an_interval_exceeds_a_loss(seed: int) -> None:
    generator = random.Random(seed)
    tight_count = 0
    for _ in range(100):
        transcript = on_an_interval(generator)
        assert isinstance(transcript.domain, xp.Box)
        nodes = generator.choice([1, 5, 1000])
        loss = xp.realized_loss(transcript, gap=1e-6, nodes=nodes)
        with mpmath.workdps(40):
            exact = exact_loss(transcript, pieces(transcript, transcript.domain))
            assert loss.lower <= exact <= mpmath.mpf(loss.upper) + mpmath.mpf(10) ** -35
            tight_count += bool(loss.upper - exact < 1e-5)
    assert tight_count > 60


def test_losses_that_are_multiples_of_epsilon_just_fit_their_budget() -> None:
    box = xp.Box([(0, 1)])
    query = xp.piecewise([1], range=(0, 1), grid="0.01", epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(box))
    guard = xp.BayesianFilter(epsilon="0.5")
    for response in (10, 20, 30, 150, 140, 130, 40, 50, 60, 70):
        assert guard.decide(odometer, query).accepted
        odometer = odometer.add(query, response)
    # Four times a tenth, seen from seven responses for and three against.
    assert odometer.loss.upper <= 0.5
    assert len(odometer) == 10


def test_windows_that_touch_are_told_apart_within_a_query_and_not_between_queries() -> None:
    """Where one window ends and another begins, a score may count as in both or in neither."""
    box = xp.Box([(0, 1)])
    query = xp.piecewise([1], range=(0, 1), grid="0.25", window=2, epsilon=1)
    transcript = xp.Transcript(box).add(query, 1).add(query, 3).add(query, 5)
    # Steps 0 and 1, 2 and 3, and 4: every score is in exactly one window.
    with mpmath.workdps(40):
        assert exact_loss(transcript, pieces(transcript, box)) == 0
    assert xp.realized_loss(transcript).upper < 1e-10
    other = xp.piecewise([1], range=(0, 2), grid="0.25", window=2, epsilon=1)
    transcript = xp.Transcript(box).add(query, 1).add(other, 3).add(query, 5)
    with mpmath.workdps(40):
        assert exact_loss(transcript, pieces(transcript, box)) == 0
    assert xp.realized_loss(transcript).upper < 2.0001


def test_windows_of_two_queries_may_both_miss_a_score_although_their_forms_are_the_same() -> None:
    """Halves and thirds of a step: 0.651 times the next double above 1/2 is rounded down."""
    box = xp.Box([(0, 1)])
    first = xp.piecewise([1], range=(0, 3), grid=1, window=1, epsilon=1)
    second = xp.piecewise([0.651], range=(0, 1.953), grid="0.651", window=1, epsilon=1)
    low, high = first.on(box).term(0), second.on(box).term(1)
    assert (low.weights, low.offset, low.window[1]) == (high.weights, high.offset, high.window[0])
    transcript = xp.Transcript(box).add(first, 0).add(second, 1)
    with mpmath.workdps(40):
        exact = exact_loss(transcript, pieces(transcript, box))
        assert exact > 0.99
        assert exact <= xp.realized_loss(transcript).upper


# -- what else there is to a query ----------------------------------------------------------------


def test_it_charges_epsilon_and_uses_all_of_it_or_nothing() -> None:
    worst = xp.loss.worst_case_loss(AGE, PERSON)
    assert 1 - 1e-11 < worst.lower <= worst.upper <= 1
    # Nobody has a score of 0, and the first response speaks for nobody else.
    assert xp.loss.share_of_basic(AGE, PERSON).upper < 1e-10
    full = xp.piecewise({"age": 1, "sex": 5}, range=(20, 90), grid=1, epsilon=1)
    assert xp.loss.share_of_basic(full, PERSON).lower > 1 - 1e-11
    still = xp.piecewise({"sex": 1}, range=(5, 9), grid=1, epsilon=1)
    assert xp.loss.worst_case_loss(still, PERSON).upper < 1e-10
    wide = xp.piecewise({"age": 1}, range=(20, 90), grid=10, window=8, epsilon=1)
    assert xp.loss.share_of_basic(wide, PERSON).upper < 1e-10


@pytest.mark.parametrize(
    ("box", "weights", "full"),
    [
        (xp.Box([xp.integers(0, 10)]), [1], True),
        (xp.Box([xp.integers(0, 5)]), [2], True),
        (xp.Box([xp.integers(0, 3)]), [4], False),
        (xp.Box([xp.integers(0, 2)]), [5], False),
        (xp.Box([xp.integers(0, 2), (0, 3)]), [5, 1], True),
        (xp.Box([xp.integers(0, 1), xp.integers(0, 5)]), [7, 1], True),
        (xp.Box([xp.integers(0, 1), xp.integers(0, 1)]), [9, 1], False),
        (xp.Box([xp.categories("a", "b", "c")]), [{"b": 6, "c": 10}], False),
        (xp.Box([xp.categories("a", "b", "c"), (0, 4)]), [{"b": 6, "c": 10}, 1], True),
    ],
)
def test_a_window_between_two_scores_speaks_for_nobody(
    box: xp.Box, weights: Any, full: bool
) -> None:
    """A gap of more than three steps has room for a window of three."""
    query = xp.piecewise(weights, range=(0, 10), grid=1, window=3, epsilon=1)
    share = xp.loss.share_of_basic(query, box)
    assert share.upper == 1
    assert (share.lower > 1 - 1e-11) is full
    alone = (xp.realized_loss(xp.Transcript(box).add(query, k)) for k in query.responses)
    assert any(loss.upper < 0.5 for loss in alone) is not full


def test_a_filter_on_a_box_adds_epsilon_to_the_loss() -> None:
    odometer = xp.Odometer(xp.Transcript(PERSON)).add(AGE, 50).add(AGE, 150)
    loss = odometer.loss
    assert 0.99 < loss.upper < 1.01
    decision = xp.BayesianFilter(epsilon="1.9").decide(odometer, AGE)
    assert not decision.accepted
    assert not decision.undecided
    assert decision.loss_at_worst.upper == pytest.approx(2, abs=1e-9)
    assert decision.largest_epsilon is not None
    assert 0.89 < float(decision.largest_epsilon) <= 0.9
    again = AGE.with_epsilon(Fraction(str(decision.largest_epsilon)))
    assert xp.BayesianFilter(epsilon="1.9").decide(odometer, again).accepted
    assert xp.BayesianFilter(epsilon=2).decide(odometer, AGE).accepted


def test_a_session_asks_until_the_budget_is_used_and_can_be_explained() -> None:
    guard = xp.BayesianFilter(epsilon=2)
    session = xp.Session(
        PERSON, {"age": 34, "sex": 1}, filter=guard, source=xp.sampling.InsecureSource(4)
    )
    query = xp.piecewise({"age": 1, "sex": 5}, range=(0, 120), grid="0.1", epsilon="0.5")
    while len(session.transcript) < 8 and session.decide(query).accepted:
        assert session.ask(query) in query.responses
    assert len(session.transcript) >= 4
    assert session.loss.upper <= 2
    account = explain(xp.replay(session.transcript))
    assert account.replay.respected
    assert (
        account.steps[0].question
        == "a score from 0 to 120 of age (1) and sex (5), with noise, at epsilon 0.5"
    )
    separation = session.odometer.log_likelihood.extreme_pair(xp.solver.Effort())
    assert separation is not None
    assert separation.difference <= session.loss.upper + 1e-9


def test_a_file_is_asked_from_the_command_line(tmp_path: Path, run: Any) -> None:
    transcript = xp.Transcript(PERSON, xp.BayesianFilter(epsilon=1))
    transcript.save(tmp_path / "t.json")
    query = xp.piecewise({"age": 1}, range=(20, 90), grid=1, epsilon=1)  # nothing says nothing
    tree = json.loads(transcript.add(query, 3).to_json())["exchanges"][0]["query"]
    assert (tree["window"], tree["grid"]) == (42, "1")
    (tmp_path / "q.json").write_text(json.dumps(tree))
    (tmp_path / "s.json").write_text('{"age": 40, "sex": 1}')
    files = [str(tmp_path / name) for name in ("t.json", "q.json", "s.json")]
    command = ["ask", files[0], "--query", files[1], "--secret", files[2], "--json"]
    code, out, _ = run(*command)
    assert code == 0
    assert json.loads(out)["response"] in query.responses
    assert run(*command)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 0}, "grid: must be greater than 0"),
        ({"grid": 7}, "grid: the end 120 of the range is not on the grid"),
        ({"range": (0.5, 120)}, "grid: the end 0.5 of the range is not on the grid"),
        ({"range": (5, 1)}, "range: must be two ends"),
        ({"grid": "1e-6"}, "grid: is too fine: more than 16777216 steps"),
        ({"grid": "1e-290"}, "grid: is too fine: more than 16777216 steps"),
        ({"window": 0}, "window: must be at least 1"),
        ({"window": 1.5}, "window: must be an integer"),
        ({"window": 2**25}, "window: must be at most 16777216"),
        ({"window": True}, "window: must be an integer"),
        ({"epsilon": 0}, "epsilon: must be greater than 0"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    options = {"range": (0, 120), "grid": 1, "epsilon": 1, **arguments}
    with pytest.raises(xp.InvalidInput, match=message):
        xp.piecewise({"age": 1}, **options)


@pytest.mark.parametrize("response", [-1, 193, 0.5, "3", None, (3,)])
def test_what_is_no_response_is_refused(response: Any) -> None:
    with pytest.raises(xp.InvalidInput, match="response"):
        xp.Transcript(PERSON).add(AGE, response)
    with pytest.raises(xp.InvalidInput, match="response: must be"):
        AGE.estimate(response)


def test_an_estimate_that_is_too_large_for_a_double_is_refused() -> None:
    query = xp.piecewise([1], range=(0, 2**53), grid=2**53, epsilon="1e-300")
    with pytest.raises(xp.InvalidInput, match="epsilon: is too small for an estimate"):
        query.estimate(0)


def test_the_window_must_be_in_a_file() -> None:
    tree = {"kind": "piecewise", "weights": [1], "range": [0, 1], "grid": 1, "epsilon": 1}
    file = {
        "version": 1,
        "domain": {"box": [[0, 1]]},
        "exchanges": [{"query": tree, "response": 0}],
    }
    with pytest.raises(xp.InvalidInput, match="'window' is missing"):
        xp.Transcript.from_json(json.dumps(file))
    tree["window"] = None
    with pytest.raises(xp.InvalidInput, match="window: must be an integer"):
        xp.Transcript.from_json(json.dumps(file))


def test_many_subjects_are_accounted_one_by_one() -> None:
    box = xp.Box([(0, 1)])
    query = xp.piecewise([1], range=(0, 1), grid="0.1", window=3, epsilon=1)
    subjects, responses = [1, 1, 2, 3, 4], [0, 1, 5, 12, 0]
    answers = {"subject": subjects, "query": ["q"] * 5, "response": responses}
    losses = xp.realized_losses(xp.Answers(box, {"q": query}, answers))
    for subject, upper in zip(losses.subjects, losses.upper, strict=True):
        transcript = xp.Transcript(box)
        for who, response in zip(subjects, responses, strict=True):
            if who == subject:
                transcript = transcript.add(query, response)
        assert xp.realized_loss(transcript).upper == upper
