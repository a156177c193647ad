"""The delta of a query at an epsilon, against sums over all pairs of values and all responses."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.domains import Domain
from support import oracles

FIVE = xp.FiniteSet(["a", "b", "c", "d", "e"])
NUMBERS = xp.FiniteSet([0, 1, 2, 3])
QUERIES = {
    "randomized_response": (FIVE, xp.randomized_response(epsilon="1.3")),
    "unary_encoding": (FIVE, xp.unary_encoding(epsilon="1.3", variant="optimized")),
    "symmetric": (FIVE, xp.unary_encoding(epsilon="1.3", variant="symmetric")),
    "subset_selection": (FIVE, xp.subset_selection(size=2, epsilon="1.3")),
    "hadamard_response": (FIVE, xp.hadamard_response(order=8, epsilon="1.3")),
    "local_hashing": (FIVE, xp.local_hashing(seed="0b", buckets=3, epsilon="1.3")),
    "hashed_alike": (FIVE, xp.local_hashing(seed="00", buckets=2, epsilon="1.3")),
    "one_value": (xp.FiniteSet(["a"]), xp.randomized_response(epsilon="1.3")),
    "geometric": (NUMBERS, xp.geometric(range=(1, 2), sensitivity=3, epsilon="1.3")),
    "laplace": (NUMBERS, xp.laplace({"value": 1}, range=(0, 3), grid=1, epsilon="9")),
    "gaussian": (NUMBERS, xp.gaussian({"value": 1}, range=(0, 3), grid=1, sigma="0.7")),
    "piecewise": (
        NUMBERS,
        xp.piecewise({"value": 1}, range=(0, 3), grid="0.5", window=2, epsilon="1.3"),
    ),
    "perturbation": (NUMBERS, xp.perturbation([0, 1, 2, 5], range=(0, 5), epsilon="1.3")),
    "exponential_mechanism": (
        NUMBERS,
        xp.exponential_mechanism(
            [[3, 0], [2, 1], [1, 2], [0, 3]], responses=["low", "high"], sensitivity=3, epsilon=2
        ),
    ),
}


def rows_of(query: xp.queries.Query, domain: xp.FiniteSet) -> list[list[Fraction]]:
    likelihood = query.on(domain)
    pmfs = [likelihood.pmf(index) for index in range(len(domain))]
    positions = range(len(likelihood.responses))
    return [[pmf.probability(position) for position in positions] for pmf in pmfs]


def brute(rows: list[list[Fraction]], ratio: Fraction) -> Fraction:
    pairs = itertools.permutations(rows, 2)
    sums = [
        sum(max(Fraction(0), p - ratio * q) for p, q in zip(*two, strict=True)) for two in pairs
    ]
    return Fraction(max(sums, default=0))


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_the_largest_sum_of_what_exceeds(name: str) -> None:
    domain, query = QUERIES[name]
    rows = rows_of(query, domain)
    for ratio in map(Fraction, ("1", "1.1", "3/2", "3", "3.6692", "3.67", "100")):
        assert xp.queries.delta_at(query, domain, ratio=ratio) == brute(rows, ratio)


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_none_at_the_worst_case(name: str) -> None:
    domain, query = QUERIES[name]
    ratio = query.on(domain).epsilon.ratio
    assert ratio is not None
    assert xp.queries.delta_at(query, domain, ratio=ratio) == 0
    if ratio > 1:
        assert xp.queries.delta_at(query, domain, ratio=1 + (ratio - 1) * Fraction(99, 100)) > 0


@pytest.mark.parametrize("epsilon", ["0", "1e-9", "0.5", "1.29", "1.3", "2", "500"])
def test_an_epsilon_gives_an_enclosure(epsilon: str) -> None:
    for domain, query in QUERIES.values():
        delta = xp.queries.delta_at(query, domain, epsilon)
        rows = rows_of(query, domain)
        with mpmath.workdps(60):
            ratio = mpmath.exp(oracles._mpf(Fraction(epsilon)))
            exact = max(
                (
                    sum(
                        max(mpmath.mpf(0), oracles._mpf(p) - ratio * oracles._mpf(q))
                        for p, q in zip(*two, strict=True)
                    )
                    for two in itertools.permutations(rows, 2)
                ),
                default=mpmath.mpf(0),
            )
            blur = mpmath.mpf(10) ** -50
            assert delta.lower - blur <= exact <= delta.upper + blur
        assert delta.upper <= math.nextafter(math.nextafter(delta.lower, 2), 2)


def test_astronomically_many_responses_are_no_problem_where_they_are_alike() -> None:
    domain = xp.FiniteSet(range(2000))
    query = xp.unary_encoding(epsilon=1, variant="optimized")
    delta = xp.queries.delta_at(query, domain, ratio=1)
    # The two bits that differ are independent: the distance is that of one of them, times both.
    p, q = Fraction(1, 2), query.on(domain).pmf(0)
    assert p - delta == pytest.approx(1 / (math.e + 1), abs=1e-9)
    assert q.total > 0


@pytest.mark.parametrize(
    ("domain", "query", "options", "message"),
    [
        (NUMBERS, 3, {"epsilon": 1}, "must be a query"),
        (FIVE, xp.randomized_response(epsilon=1), {}, "give either epsilon or ratio"),
        (
            FIVE,
            xp.randomized_response(epsilon=1),
            {"epsilon": 1, "ratio": 2},
            "give either epsilon or ratio",
        ),
        (FIVE, xp.randomized_response(epsilon=1), {"epsilon": -1}, "epsilon: must be greater"),
        (FIVE, xp.randomized_response(epsilon=1), {"ratio": "1/2"}, "ratio: must be at least 1"),
        (
            xp.Box([(0, 1)]),
            xp.logistic([1], epsilon=1),
            {"epsilon": 1},
            "the delta of this query needs a finite domain, not a box",
        ),
        (
            xp.FiniteSet([x / 2000 for x in range(3000)]),
            xp.piecewise({"value": 1}, range=(0, 2), grid="0.0001", epsilon=1),
            {"epsilon": 1},
            "this query has too many responses here",
        ),
        (
            xp.FiniteSet([0, 1]),
            xp.laplace({"value": 1}, range=(0, 1), grid="0.001", epsilon=1),
            {"epsilon": 1},
            "the probabilities of this query have too many digits",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(
    domain: Domain, query: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(xp.InvalidInput, match=f"^{message}"):
        xp.queries.delta_at(query, domain, **options)


# -- channels with a delta -----------------------------------------------------------------------


def some_channel(generator: random.Random) -> list[list[Fraction]]:
    values, responses = generator.randint(1, 5), generator.randint(1, 5)
    rows = []
    for _ in range(values):
        weights = [generator.choice([0, 0, 1, 2, 7, 100]) for _ in range(responses)]
        weights[generator.randrange(responses)] += 1
        rows.append([Fraction(weight, sum(weights)) for weight in weights])
    return rows


def brute_ratio(rows: list[list[Fraction]], delta: Fraction) -> Fraction | None:
    """The least ratio over all pairs and all events, one by one."""
    needed = Fraction(1)
    for one, two in itertools.permutations(rows, 2):
        for event in itertools.product((0, 1), repeat=len(one)):
            p = sum((x for x, chosen in zip(one, event, strict=True) if chosen), Fraction(0))
            q = sum((x for x, chosen in zip(two, event, strict=True) if chosen), Fraction(0))
            if p <= delta:
                continue
            if q == 0:
                return None
            needed = max(needed, (p - delta) / q)
    return needed


@pytest.mark.parametrize("seed", range(5))
def test_a_channel_is_charged_the_least_epsilon_at_its_delta(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(60):
        rows = some_channel(generator)
        delta = Fraction(generator.randint(1, 199), 200)
        domain = xp.FiniteSet(range(len(rows)))
        charge = xp.channel(rows, delta=delta).charge(domain)
        assert charge == xp.numbers.Nats(ratio=brute_ratio(rows, delta))
        if charge.ratio is not None:
            assert xp.queries.delta_at(xp.channel(rows), domain, ratio=charge.ratio) <= delta


def test_a_delta_makes_zeros_affordable() -> None:
    rows = [["1/100", "99/100"], ["0", "1"]]
    domain = xp.FiniteSet(["ill", "well"])
    assert str(xp.channel(rows).charge(domain)) == "inf"
    leaky = xp.channel(rows, delta="1/100")
    assert leaky.charge(domain) == xp.numbers.Nats()
    half = xp.channel(rows, delta="1/200").charge(domain)
    assert str(half) == "inf"
    assert str(leaky.ceiling(domain)) == "inf"
    assert leaky.cumulant(domain, Fraction(2)) == math.inf
    assert leaky.approximate
    assert not xp.channel(rows).approximate


def test_files_keep_the_delta_of_a_channel() -> None:
    domain = xp.FiniteSet([0, 1])
    query = xp.channel([["1/4", "3/4"], ["3/4", "1/4"]], delta="1/3")
    transcript = xp.Transcript(domain).add(query, 1)
    again = xp.Transcript.from_json(transcript.to_json())
    assert again == transcript
    assert again.exchanges[0].query.delta == Fraction(1, 3)
    assert repr(query) == "Channel(2 values, 2 responses, delta=1/3)"
    assert query != xp.channel([["1/4", "3/4"], ["3/4", "1/4"]])
    assert (
        again.content_id
        != xp.Transcript(domain).add(xp.channel(query.tree()["probabilities"]), 1).content_id
    )


@pytest.mark.parametrize("delta", [0, 1, "-1/2", "nan", "x", True])
def test_a_delta_is_between_0_and_1(delta: Any) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^delta: (must be|.x. is not a number)"):
        xp.channel([[1]], delta=delta)
