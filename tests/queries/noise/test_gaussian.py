"""Gaussian noise on a grid: what is sampled, what it is charged, and terms that are wide enough."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.domains import Domain
from expost.queries import GaussianNoise, NoisyInteger
from expost.solver import BoxSpread
from expost.terms import Link
from support import oracles
from support.box_cases import complaints, some_hills

BOX = xp.Box(age=(0, 100), share=(-1, 1))
QUERY = xp.gaussian({"age": 1, "share": 10}, intercept=10, range=(0, 120), grid=2, sigma=60)
CASES = [(0, 1, "0.05"), (-2, 5, "0.4"), (3, 4, "20"), (0, 8, "2"), (0, 6, "7.3"), (0, 12, "1")]


def noise_of(first: int, last: int, deviation: str) -> GaussianNoise:
    return GaussianNoise(first, last, Fraction(deviation))


def rows_of(noise: GaussianNoise) -> dict[int, list[int]]:
    """The weights of all responses, for each value."""
    responses = range(noise.low, noise.high + 1)
    values = range(noise.first, noise.last + 1)
    return {value: [noise.weight(value, k) for k in responses] for value in values}


# -- what is sampled -----------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last", "deviation"), [*CASES, (0, 100, "412.7")])
def test_weights_are_what_the_docs_say(first: int, last: int, deviation: str) -> None:
    noise = noise_of(first, last, deviation)
    weights = noise.weights
    sample = random.Random(1).sample(range(len(weights)), min(len(weights), 40))
    with mpmath.workdps(800):
        two_variances = 2 * mpmath.mpf(deviation) ** 2
        for z in (0, 1, len(weights) - 1, *sample):
            exact = mpmath.mpf(2) ** noise.bits * mpmath.exp(-mpmath.mpf(z * z) / two_variances)
            assert weights[z] == int(mpmath.floor(exact))
        assert mpmath.mpf(2) ** noise.bits < mpmath.exp(
            mpmath.mpf(len(weights)) ** 2 / two_variances
        )


@pytest.mark.parametrize(("first", "last", "deviation"), CASES)
def test_probabilities_are_those_of_a_discrete_gaussian_to_forty_bits(
    first: int, last: int, deviation: str
) -> None:
    noise = noise_of(first, last, deviation)
    with mpmath.workdps(60):
        two_variances = 2 * mpmath.mpf(deviation) ** 2
        reach = noise.reach + int(60 * float(deviation)) + 20
        mass = [mpmath.exp(-mpmath.mpf(z * z) / two_variances) for z in range(reach)]
        total_mass = 2 * sum(mass) - 1
        for value, row in rows_of(noise).items():
            assert sum(row) == noise.total
            for k, weight in zip(range(noise.low, noise.high + 1), row, strict=True):
                distance = abs(k - value)
                inside = noise.low < k < noise.high
                exact = (mass[distance] if inside else sum(mass[distance:])) / total_mass
                sampled = oracles.log(Fraction(weight, noise.total))
                assert abs(sampled - mpmath.log(exact)) < mpmath.mpf(2) ** -40


def test_a_session_draws_what_the_pmf_says() -> None:
    """Of 4,000 draws: a false alarm in one run of 10^8."""
    likelihood = xp.gaussian([1], range=(0, 4), grid=1, sigma="1.5").on(xp.Box([(0, 4)]))
    pmf = likelihood.pmf((1.0,))
    assert isinstance(pmf, NoisyInteger)
    source = xp.sampling.InsecureSource(5)
    draws = [likelihood.responses[pmf.pick(source.below(pmf.total))] for _ in range(4000)]
    for k in (-2, -1, 0, 1, 2, 3, 4):
        p = float(pmf.probability(likelihood.responses.index(k)))
        assert abs(draws.count(k) - 4000 * p) < 6.2 * (4000 * p * (1 - p)) ** 0.5


def test_every_draw_has_its_share_of_the_uniform_integers() -> None:
    noise = noise_of(0, 3, "0.4")
    for value in range(4):
        pmf, start = NoisyInteger(noise, value), 0
        for position in range(noise.high - noise.low + 1):
            weight = int(pmf.probability(position) * pmf.total)
            assert pmf.pick(start) == pmf.pick(start + weight - 1) == position
            start += weight
        assert start == pmf.total


# -- epsilon and delta ---------------------------------------------------------------------------


def brute_delta(noise: GaussianNoise, ratio: Fraction) -> Fraction:
    rows = rows_of(noise).values()
    pairs = itertools.permutations(rows, 2)
    sums = (
        sum(max(Fraction(0), p - ratio * q) for p, q in zip(*two, strict=True)) for two in pairs
    )
    return Fraction(max(sums)) / noise.total


@pytest.mark.parametrize(("first", "last", "deviation"), [CASES[i] for i in (0, 1, 3)])
def test_the_extreme_values_are_told_apart_best(first: int, last: int, deviation: str) -> None:
    noise = noise_of(first, last, deviation)
    domain = xp.FiniteSet(range(first, last + 1))
    query = xp.gaussian({"value": 1}, range=(first, last), grid=1, sigma=deviation)
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(20), Fraction(10**9)):
        assert xp.queries.delta_at(query, domain, ratio=ratio) == brute_delta(noise, ratio)


@pytest.mark.parametrize(("first", "last", "deviation"), [CASES[i] for i in (0, 1, 3)])
@pytest.mark.parametrize("delta", ["1e-12", "1e-3", "0.3", "0.99"])
def test_the_least_ratio_is_where_delta_is_reached(
    first: int, last: int, deviation: str, delta: str
) -> None:
    noise, spared = noise_of(first, last, deviation), Fraction(delta)
    ratio = noise.least_ratio(spared)
    assert brute_delta(noise, ratio) == spared or (
        ratio == 1 and brute_delta(noise, ratio) < spared
    )
    assert noise.least_ratio(Fraction(0)) == max(
        Fraction(p, q)
        for one, two in itertools.permutations(rows_of(noise).values(), 2)
        for p, q in zip(one, two, strict=True)
    )


@pytest.mark.parametrize("delta", ["1e-9", "1e-3", "0.5"])
def test_it_is_charged_just_the_epsilon_at_its_delta(delta: str) -> None:
    query = xp.gaussian({"value": 1}, range=(0, 20), grid=1, sigma=15, delta=delta)
    domain = xp.FiniteSet(range(21))
    charge = query.charge(domain)
    assert charge.ratio == 1
    assert query.delta == Fraction(delta)
    assert xp.queries.delta_at(query, domain, charge.rational).upper <= float(delta)
    if charge.rational:
        less = charge.rational * Fraction(99999, 100000)
        assert xp.queries.delta_at(query, domain, less).lower > float(delta)
    assert charge <= query.ceiling(domain)


def normal_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Of real Gaussian noise: Balle and Wang 2018, theorem 8."""
    near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return mpmath.ncdf(near) - mpmath.exp(epsilon) * mpmath.ncdf(far)


@pytest.mark.parametrize("epsilon", ["0", "0.3", "1", "4"])
def test_on_a_fine_grid_it_is_what_real_gaussian_noise_has(epsilon: str) -> None:
    query = xp.gaussian([1], range=(0, 1), grid="0.001", sigma=1)
    delta = xp.queries.delta_at(query, xp.Box([(0, 1)]), epsilon)
    with mpmath.workdps(40):
        exact = normal_delta(mpmath.mpf(1), mpmath.mpf(epsilon))
        assert abs(delta.upper / exact - 1) < 1e-5
    assert delta.width <= 1e-15 * delta.upper


@pytest.mark.parametrize("cells", [1, 7, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.2", "1e-3"), ("12", "1e-10")])
def test_the_sigma_for_an_epsilon_and_a_delta_is_the_smallest_of_four_digits(
    cells: int, epsilon: str, delta: str
) -> None:
    grid = Fraction(1, cells)
    options: dict[str, Any] = {"range": (0, 1), "grid": grid, "delta": delta}
    query = xp.gaussian([1], epsilon=epsilon, **options)
    box = xp.Box([(0, 1)])
    assert query.charge(box) <= xp.numbers.Nats(Fraction(epsilon))
    digits = f"{float(query.sigma):.3e}"
    assert Fraction(digits) == query.sigma
    unit = Fraction(10) ** (int(digits.split("e")[1]) - 3)
    smaller = xp.gaussian([1], sigma=query.sigma - unit, **options)
    assert smaller.charge(box) > xp.numbers.Nats(Fraction(epsilon))


def test_where_any_noise_will_do_it_is_the_least_there_is() -> None:
    query = xp.gaussian([1], range=(0, 1), grid="0.1", epsilon=400, delta="0.1")
    assert query.sigma == Fraction(1, 20)


# -- cumulants -----------------------------------------------------------------------------------


def exact_cumulant(noise: GaussianNoise, order: Fraction) -> mpmath.mpf:
    largest = mpmath.mpf("-inf")
    power = mpmath.mpf(order.numerator) / order.denominator
    for one, two in itertools.permutations(rows_of(noise).values(), 2):
        total = sum(
            mpmath.mpf(p) * (mpmath.mpf(p) / mpmath.mpf(q)) ** power
            for p, q in zip(one, two, strict=True)
        )
        largest = max(largest, mpmath.log(total / noise.total))
    return largest


@pytest.mark.parametrize("order", ["1e-6", "0.3", "1", "7.5", "60"])
@pytest.mark.parametrize(("first", "last", "deviation"), [CASES[i] for i in (0, 1, 2, 3)])
def test_no_pair_of_values_is_above_the_cumulant(
    first: int, last: int, deviation: str, order: str
) -> None:
    query = xp.gaussian([1], range=(first, last), grid=1, sigma=deviation)
    bound = query.cumulant(xp.Box([(first, last)]), Fraction(order))
    with mpmath.workdps(60):
        exact = exact_cumulant(noise_of(first, last, deviation), Fraction(order))
        assert exact <= mpmath.mpf(bound)
        if deviation == "20":
            assert mpmath.mpf(bound) - exact < mpmath.mpf("1e-9") + exact / 10**6


# -- finite domains ------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last", "deviation"), CASES)
def test_of_all_responses_the_ends_tell_most_and_the_middle_least(
    first: int, last: int, deviation: str
) -> None:
    rows = rows_of(noise_of(first, last, deviation))
    query = xp.gaussian({"value": 1}, range=(first, last), grid=1, sigma=deviation)
    for chosen in ([first, last], [first + 1, last], list(range(first, last + 1))):
        likelihood = query.on(xp.FiniteSet(list(dict.fromkeys(chosen))))
        values = list(dict.fromkeys(chosen))
        for one, two in itertools.permutations(values, 2):
            ratios = [Fraction(p, q) for p, q in zip(rows[one], rows[two], strict=True)]
            assert max(ratios) == max(ratios[0], ratios[-1])
        columns = list(zip(*(rows[value] for value in values), strict=True))
        losses = [xp.numbers.Nats(ratio=Fraction(max(column), min(column))) for column in columns]
        assert likelihood.epsilon == max(losses)
        assert likelihood.least_loss == min(losses)
        assert likelihood.epsilon <= query.ceiling(likelihood.domain)


def test_on_a_finite_set_the_loss_is_exact() -> None:
    domain = xp.FiniteSet([0, 1, 2, 5])
    query = xp.gaussian({"value": 1}, range=(0, 5), grid=1, sigma=4)
    loss = xp.realized_loss(xp.Transcript(domain).add(query, 7))
    assert loss.lower == pytest.approx((7**2 - 2**2) / 32, abs=1e-11)
    assert xp.realized_loss(
        xp.Transcript(domain).add(query, 7).add(query, -2)
    ).upper == pytest.approx(0.375)


# -- boxes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", ["0.4", "2", "30"])
def test_terms_are_within_their_errors_of_what_is_sampled(sigma: str) -> None:
    generator = random.Random(1)
    box = xp.Box([(-1, 1), (-1, 1)])
    likelihood = xp.gaussian([2, 1.5], range=(-4, 4), grid="0.1", sigma=sigma).on(box)
    last = len(likelihood.responses) - 1
    positions = [likelihood.position(k) for k in (-44, -8, -3, 0, 5, 8, 41)]
    with mpmath.workdps(40):
        for position in (0, 1, last - 1, last, *positions):
            assert position is not None
            term = likelihood.term(position)
            assert term.link is Link.HILL
            gaps = []
            for _ in range(60):
                point = (
                    generator.choice([-1, 1, generator.uniform(-1, 1)]),
                    generator.uniform(-1, 1),
                )
                z = oracles.affine(term.weights, term.offset, point)
                assert term.window[0] <= z <= term.window[1]
                sampled = oracles.log(likelihood.pmf(point).probability(position))
                gaps.append(sampled + oracles._mpf(z * z / 2))
            assert max(gaps) - min(gaps) <= 2 * mpmath.mpf(term.error)


def test_terms_are_as_wide_as_half_a_step() -> None:
    likelihood = xp.gaussian([1], range=(0, 1), grid="0.001", sigma=2).on(xp.Box([(0, 1)]))
    position = likelihood.position(3000)
    assert position is not None
    assert likelihood.term(position).error == pytest.approx(3 / 2 * 0.0005 / 2, rel=1e-3)


def test_a_score_that_is_the_same_everywhere_gives_nothing_away() -> None:
    box = xp.Box([(1, 1), (0, 1)])
    query = xp.gaussian([1, 0], range=(0, 2), grid=1, sigma=1)
    assert xp.realized_loss(xp.Transcript(box).add(query, 11)).upper < 1e-300


def test_weights_at_many_points_are_those_of_the_pmf() -> None:
    likelihood = QUERY.on(BOX)
    points = [(0.0, -1.0), (50.0, 0.3), (100.0, 1.0)]
    for position in (0, 70, len(likelihood.responses) - 1):
        weights = likelihood.weights(
            position, [np.array(column) for column in zip(*points, strict=True)]
        )
        for point, weight in zip(points, weights.tolist(), strict=True):
            pmf = likelihood.pmf(point)
            assert Fraction(weight, pmf.total) == pmf.probability(position)


@pytest.mark.parametrize("seed", range(6))
def test_no_point_is_above_the_loss(seed: int) -> None:
    generator = random.Random(seed)
    for step in range(8):
        case = some_hills(generator, queries=8)
        gap, nodes = generator.choice([1e-3, 0.01, 0.1]), generator.choice([1, 2, 5, 300])
        loss = xp.realized_loss(case.transcript, gap=gap, nodes=nodes)
        assert not complaints(case, loss, step), (case, gap, nodes, loss)


@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_reached_but_for_the_grid(seed: int) -> None:
    generator = random.Random(100 + seed)
    for _ in range(8):
        case = some_hills(generator, coordinates=3)
        loss = xp.realized_loss(case.transcript, gap=0.01, nodes=20_000)
        assert loss.width <= 0.0101 + 2 * BoxSpread(case.terms, case.box).error


def test_contradictory_responses_meet_in_the_middle() -> None:
    """-(x - 3)²/2 - (x + 3)²/2 = -x² - 9 on [-1, 1]."""
    box = xp.Box([(-1, 1)])
    query = xp.gaussian([1], range=(-1, 1), grid="0.0005", sigma=1)
    transcript = xp.Transcript(box).add(query, 6000).add(query, -6000)
    loss = xp.realized_loss(transcript, gap=1e-3)
    assert loss.lower <= 1 <= loss.upper
    assert loss.width < 0.01


def test_the_worst_case_on_a_box_is_what_no_response_exceeds() -> None:
    box = xp.Box([(0, 1)])
    query = xp.gaussian([1], range=(0, 1), grid="0.01", sigma=2, delta="1e-5")
    worst = xp.loss.worst_case_loss(query, box)
    assert worst.upper <= query.ceiling(box).nearest < 1.05 * worst.lower
    assert xp.loss.share_of_basic(query, box).upper < 0.1


# -- files and bad input -------------------------------------------------------------------------


def test_files_keep_it() -> None:
    for query in (QUERY, xp.gaussian([1, 2], range=(0, 4), grid="1/2", sigma=9, delta="1e-6")):
        box = BOX if query is QUERY else xp.Box([(0, 1), (0, 1)])
        transcript = xp.Transcript(box).add(query, -3)
        again = xp.Transcript.from_json(transcript.to_json())
        assert again == transcript
        assert again.exchanges[0].query.delta == query.delta
    tree = json.loads(xp.Transcript(BOX).add(QUERY, -3).to_json())["exchanges"][0]
    assert "delta" not in tree["query"]
    assert (tree["query"]["sigma"], tree["response"]) == ("60", -3)
    assert repr(QUERY) == "Gaussian(2 weights in [0, 120], grid=2, sigma=60)"
    assert repr(query).endswith("sigma=9, delta=0.000001)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 0}, "grid: must be greater than 0"),
        ({"grid": 7}, "grid: the end 120 of the range is not on the grid"),
        ({"range": (0, 100)}, "range: the score reaches 120 at age=100, share=1, 20 above"),
        ({"range": (5, 1)}, "range: must be two ends"),
        ({"grid": "0.001"}, "grid: is too fine for this sigma; use at least 4 times as much"),
        ({"sigma": 0}, "sigma: must be greater than 0"),
        ({"sigma": -1}, "sigma: must be greater than 0"),
        ({"sigma": float("nan")}, "sigma: must be a finite number"),
        ({"sigma": "5.9"}, "sigma: must be at least 6, a 20th of the range"),
        ({"sigma": None}, "give either sigma, or epsilon and delta"),
        ({"epsilon": 1}, "give either sigma, or epsilon and delta"),
        ({"sigma": None, "epsilon": 1}, "give either sigma, or epsilon and delta"),
        ({"sigma": None, "epsilon": 0, "delta": "1e-6"}, "epsilon: must be greater than 0"),
        ({"delta": 0}, "delta: must be between 0 and 1"),
        ({"delta": 1}, "delta: must be between 0 and 1"),
        ({"delta": "x"}, "delta: 'x' is not a number"),
    ],
)
def test_bad_parameters_are_refused_with_their_place(
    arguments: dict[str, Any], message: str
) -> None:
    options = {"intercept": 10, "range": (0, 120), "grid": 1, "sigma": 60, **arguments}
    with pytest.raises(xp.InvalidInput, match=f"^{message}"):
        xp.gaussian({"age": 1, "share": 10}, **options).on(BOX)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": "1"}, "epsilon: unknown"),
        ({"delta": 0}, "delta: must be between 0 and 1"),
        ({"sigma": "nan"}, "sigma: must be a finite number"),
        ({"sigma": True}, "sigma: must be a number"),
    ],
)
def test_files_are_read_strictly(fields: dict[str, Any], message: str) -> None:
    query = {"kind": "gaussian", "weights": [1], "range": [0, 1], "grid": "0.1", "sigma": 1}
    tree = {"version": 1, "domain": {"box": [[0, 1]]}, "exchanges": []}
    tree["exchanges"] = [{"query": {**query, **fields}, "response": 0}]
    with pytest.raises(xp.InvalidInput, match=rf"^exchanges\[0\].query.*{message}"):
        xp.Transcript.from_json(json.dumps(tree))


def test_what_is_no_response_is_refused() -> None:
    for response in (0.5, "x", 10**9, None):
        with pytest.raises(xp.InvalidInput, match="response"):
            xp.Transcript(BOX).add(QUERY, response)


def test_responses_are_integers_that_a_double_can_hold() -> None:
    query = xp.gaussian([1], range=(1e15, 1e15 + 1), grid="0.1", sigma=1)
    with pytest.raises(xp.InvalidInput, match=r"^grid: is too fine for responses up to 2\^53$"):
        query.on(xp.Box([(1e15, 1e15 + 1)]))


@pytest.mark.parametrize("domain", [xp.Box([(0, 1)]), xp.FiniteSet([0, 1])])
def test_no_certificate_speaks_of_it(domain: Domain) -> None:
    weights: Any = [1] if isinstance(domain, xp.Box) else {"value": 1}
    query = xp.gaussian(weights, range=(0, 1), grid="0.1", sigma=1)
    transcript = xp.Transcript(domain).add(query, 3)
    with pytest.raises(xp.InvalidInput, match=r"^exchanges\[0\].query: there are no certificates"):
        xp.proof.certificate(transcript)
