"""Composition rules: certified costs, against formulas in many digits and exact optima."""

from __future__ import annotations

import decimal
import json
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting import NeighboringRelation, RandomizedResponseDpEvent
from dp_accounting.pld.privacy_loss_distribution import from_randomized_response
from dp_accounting.rdp import RdpAccountant

import expost as xp
from expost.files.canonical import readable_tree
from expost.files.reading import parse
from expost.filters.rules import RULES, Total, rule_from_json
from expost.filters.rules._martingale import Exponential, least_budget
from expost.numbers import Enclosure, Nats
from expost.queries import Query, RandomizedResponse, randomized_response_cumulant
from support import oracles

PAIR = xp.FiniteSet([0, 1])
MILLIONTH = Fraction(1, 10**6)
TENTH = xp.randomized_response(epsilon="0.1")


@pytest.fixture(autouse=True)
def _many_digits() -> Any:
    with mpmath.workdps(60):
        yield


def rules(epsilon: str, delta: Fraction = MILLIONTH, each: str = "0.1") -> list[xp.filters.Rule]:
    return [
        xp.filters.Sums(),
        xp.filters.Rogers(),
        xp.filters.Whitehouse(delta),
        xp.filters.Renyi.for_plan(epsilon, delta, each),
        xp.filters.Mixture.for_budget(epsilon, delta),
    ]


def total(rule: xp.filters.Rule, *queries: Query) -> Total:
    return sum((rule.price(query, PAIR) for query in queries), start=Total())


def cost(rule: xp.filters.Rule, sums: Total, delta: Fraction = MILLIONTH) -> float:
    """What it takes of a budget, also by adding up."""
    upper = rule.cost(sums, delta).upper
    return min(upper, sums.epsilon.enclosure.upper)


def accepted(
    rule: xp.filters.Rule, query: RandomizedResponse, budget: str, delta: Fraction = MILLIONTH
) -> int:
    """How many fit, by halving: n times the sums over one query."""
    one = rule.price(query, PAIR)

    def fits(n: int) -> bool:
        amounts = tuple(n * amount for amount in one.amounts)
        if n * query.epsilon <= Fraction(budget):
            return True
        return rule.cost(Total(amounts=amounts), delta).upper <= float(budget)

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def rationals(seed: int, count: int) -> list[Fraction]:
    """Sizes from tiny to large, some with awkward denominators."""
    generator = random.Random(seed)
    return [
        Fraction(generator.randint(1, 999), generator.choice([1000, 997, 64]))
        * Fraction(10) ** generator.randint(-8, 1)
        for _ in range(count)
    ]


def contains(enclosure: Enclosure, value: mpmath.mpf, width: float = 1e-12) -> bool:
    lower, upper = mpmath.mpf(enclosure.lower), mpmath.mpf(enclosure.upper)
    return bool(lower <= value <= upper <= value * (1 + mpmath.mpf(width)) + mpmath.mpf(width))


# Cumulants


@pytest.mark.parametrize("seed", range(3))
def test_the_cumulant_is_rounded_up_and_by_next_to_nothing(seed: int) -> None:
    for epsilon, rate in zip(rationals(seed, 200), rationals(seed + 10, 200), strict=True):
        computed = mpmath.mpf(randomized_response_cumulant(Nats(epsilon), rate))
        real = oracles.cumulant(epsilon, rate)
        assert real <= computed <= real * (1 + mpmath.mpf(4) * mpmath.mpf(2) ** -53)


@pytest.mark.parametrize(
    ("epsilon", "rate"), [("1e-300", "1e-6"), ("1e-300", "1e9"), ("1e-9", "1e-6"), ("500", "1e9")]
)
def test_tiny_and_huge_cumulants_are_bounds_too(epsilon: str, rate: str) -> None:
    e, x = Fraction(epsilon), Fraction(rate)
    with mpmath.workdps(1300):
        assert randomized_response_cumulant(Nats(e), x) >= oracles.cumulant(e, x)


def test_a_cumulant_knows_ratios_nothing_and_infinity() -> None:
    rate = Fraction(3)
    ratio = randomized_response_cumulant(Nats(ratio=Fraction(2)), rate)
    assert contains(Enclosure(0.0, ratio), mpmath.log((mpmath.mpf(16) + mpmath.mpf(1) / 8) / 3))
    assert randomized_response_cumulant(Nats(), rate) == 0
    assert randomized_response_cumulant(Nats(ratio=None), rate) == math.inf


def test_as_many_digits_as_are_read_are_no_trouble() -> None:
    rule = xp.filters.Renyi(order=2 + Fraction(1, 2**2998 + 1))
    query = xp.randomized_response(epsilon=Fraction(2**2998 + 1, 2**2999 + 3))
    (amount,) = rule.amounts(query, PAIR)
    assert amount == pytest.approx(randomized_response_cumulant(Nats(Fraction(1, 2)), Fraction(1)))


def test_a_cumulant_does_not_depend_on_the_callers_decimals() -> None:
    # Not cached yet, so that it is worked out with three digits all around.
    with decimal.localcontext(prec=3):
        coarse = randomized_response_cumulant(Nats(Fraction(123, 997)), Fraction(7, 3))
        paid = xp.filters.Whitehouse(MILLIONTH).cost(Total(amounts=(Fraction(1),)), MILLIONTH)
    assert coarse == pytest.approx(oracles.cumulant(Fraction(123, 997), Fraction(7, 3)), rel=1e-15)
    assert contains(paid, oracles.whitehouse_budget(Fraction(1), MILLIONTH))


def test_no_epsilon_ldp_pair_has_a_larger_cumulant_than_randomized_response() -> None:
    generator, tight_count = np.random.default_rng(5), 0
    for _ in range(400):
        epsilon, rate = generator.uniform(0.01, 3), generator.uniform(0.1, 9)
        # Factors within a window of width epsilon that reach both its ends, and then sum to one.
        p = generator.dirichlet(np.full(generator.integers(2, 6), 0.5))
        factors = generator.choice([0.0, 1.0, generator.uniform()], len(p)) * epsilon
        losses = factors + np.log(np.sum(p * np.exp(-factors)))
        assert abs(losses).max() <= epsilon * (1 + 1e-12)
        real = math.log(float(np.sum(p * np.exp(rate * losses))))
        bound = randomized_response_cumulant(Nats(Fraction(epsilon)), Fraction(rate))
        assert real <= bound + 1e-12
        tight_count += real > bound / 4
    assert tight_count > 20, "some must come near"


# Costs


@pytest.mark.parametrize("seed", range(5))
def test_the_costs_are_enclosed_to_the_last_digits(seed: int) -> None:
    generator = random.Random(seed)
    delta = Fraction(generator.randint(1, 99), 100) * Fraction(10) ** generator.randint(-12, -1)
    queries = [xp.randomized_response(epsilon=epsilon) for epsilon in rationals(seed, 12)]
    whitehouse, rogers = xp.filters.Whitehouse(delta), xp.filters.Rogers()
    squares = sum((query.epsilon**2 for query in queries), Fraction(0))
    sums = total(whitehouse, *queries)
    (rounded,) = (Fraction(amount) for amount in sums.amounts)
    assert squares <= rounded <= squares * (1 + Fraction(1, 2**50))
    assert contains(whitehouse.cost(sums, delta), oracles.whitehouse_budget(rounded, delta))
    sums = total(rogers, *queries)
    first, second = (Fraction(amount) for amount in sums.amounts)
    exact_mean = sum(
        (oracles._mpf(q.epsilon) * mpmath.expm1(oracles._mpf(q.epsilon)) / 2 for q in queries),
        mpmath.mpf(0),
    )
    assert contains(Enclosure(0.0, float(second)), exact_mean)
    paid = rogers.cost(sums, delta)
    assert oracles.rogers_accepts(mpmath.mpf(paid.upper), first, second, delta)
    assert not oracles.rogers_accepts(mpmath.mpf(paid.lower), first, second, delta)
    assert paid.upper - paid.lower <= 1e-13 * paid.upper


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_of_a_mixture_is_where_the_inequality_begins_to_hold(seed: int) -> None:
    generator = random.Random(seed)
    delta = Fraction(generator.randint(1, 99), 100) * Fraction(10) ** generator.randint(-12, 0)
    size = generator.randint(1, 4)
    rates = [Fraction(generator.randint(1, 9999), 1000) * 7**j for j in range(size)]
    shares = [generator.randint(1, 99) for _ in rates]
    weights = [Fraction(share, sum(shares)) for share in shares]
    epsilons = rationals(seed, generator.randint(1, 9))
    with mpmath.workdps(30):
        cumulants = [
            sum(
                (Fraction(randomized_response_cumulant(Nats(e), rate)) for e in epsilons),
                Fraction(),
            )
            for rate in rates
        ]
        parts = list(zip(weights, rates, cumulants, strict=True))
        computed = least_budget([Exponential(*part) for part in parts], delta)
        assert oracles.mixture_accepts(mpmath.mpf(computed.upper), parts, delta)
        assert computed.upper - computed.lower <= 1e-14 * (1 + computed.upper)
        if computed.lower > 0:
            assert not oracles.mixture_accepts(
                mpmath.mpf(computed.lower) * (1 - mpmath.mpf(10) ** -14), parts, delta
            )


def test_the_renyi_rule_has_the_conversion_of_canonne_kamath_and_steinke() -> None:
    for order in ("1.01", "2", "6.33", "50", "10000"):
        rate, rule = Fraction(order) - 1, xp.filters.Renyi(order)
        sums = total(rule, *[TENTH] * 30)
        x = oracles._mpf(rate)
        spent = 30 * oracles.cumulant(Fraction(1, 10), rate) + mpmath.log(10**6)
        real = (spent + x * mpmath.log(x) - (x + 1) * mpmath.log(x + 1)) / x
        assert contains(rule.cost(sums, MILLIONTH), real)


@pytest.mark.parametrize("kind", range(5))
def test_costs_only_grow_with_more_queries(kind: int) -> None:
    rule = rules("2")[kind]
    sums, before = Total(), 0.0
    for epsilon in rationals(8, 60):
        sums = sums + rule.price(xp.randomized_response(epsilon=epsilon), PAIR)
        now = cost(rule, sums)
        assert now >= before
        before = now


def test_nothing_asked_costs_nothing_and_the_impossible_everything() -> None:
    certain = xp.channel([["1", "0"], ["1/2", "1/2"]])
    for rule in rules("1"):
        assert cost(rule, Total()) == 0
        assert cost(rule, total(rule, certain)) == math.inf
        assert cost(rule, total(rule, TENTH, certain, TENTH)) == math.inf


# What others found


@pytest.mark.parametrize(
    ("times", "optimum", "budget"),
    [(10, "0.999370906", "1"), (100, "4.774567588", "5.08"), (1000, "19.344671448", "20.46")],
)
def test_no_rule_is_below_the_exact_optimum(times: int, optimum: str, budget: str) -> None:
    real = oracles.optimal_epsilon(Fraction(1, 10), times, MILLIONTH)
    assert abs(real - mpmath.mpf(optimum)) < mpmath.mpf("1e-9")
    for rule in rules(budget):
        assert cost(rule, total(rule, *[TENTH] * times)) >= real


@pytest.mark.parametrize(
    ("budget", "counts", "most"),
    [("5.08", [50, 50, 79, 100, 99], 111), ("20.46", [204, 487, 913, 1000, 997], 1091)],
)
def test_each_rule_accepts_what_it_should_and_no_more_than_is_possible(
    budget: str, counts: list[int], most: int
) -> None:
    assert [accepted(rule, TENTH, budget) for rule in rules(budget)] == counts
    tenth = Fraction(1, 10)
    assert oracles.optimal_epsilon(tenth, most, MILLIONTH) <= mpmath.mpf(budget)
    assert oracles.optimal_epsilon(tenth, most + 1, MILLIONTH) > mpmath.mpf(budget)


@pytest.mark.parametrize(("times", "google"), [(100, 5.0732), (1000, 20.4522)])
def test_googles_accountant_agrees(times: int, google: float) -> None:
    orders = [1 + x / 10 for x in range(1, 110)]
    accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE)
    # Its event answers at random with a probability, and truly else.
    noise = 2 / (math.exp(0.1) + 1)
    accountant.compose(RandomizedResponseDpEvent(noise_parameter=noise, num_buckets=2), times)
    theirs, order = accountant.get_epsilon_and_optimal_order(1e-6)
    rule = xp.filters.Renyi(str(order))
    assert theirs == pytest.approx(google, abs=1e-3)
    assert rule.cost(total(rule, *[TENTH] * times), MILLIONTH).upper == pytest.approx(
        theirs, rel=1e-9
    )


@pytest.mark.parametrize("times", [10, 100, 1000])
def test_googles_privacy_loss_distribution_agrees_with_the_exact_optimum(times: int) -> None:
    # Composed by the class itself, because its accountant forgets how often an event is repeated.
    step = 1e-4
    one = from_randomized_response(
        2 / (math.exp(0.1) + 1), 2, value_discretization_interval=step, pessimistic_estimate=True
    )
    theirs = one.self_compose(times).get_epsilon_for_delta(1e-6)
    exact = float(oracles.optimal_epsilon(Fraction(1, 10), times, MILLIONTH))
    assert exact <= theirs <= exact + (times + 1) * step


def test_the_best_orders_of_a_plan_are_those_of_the_notes() -> None:
    for budget, rate, best in (("5.08", 5.33, 5.07311), ("20.46", 1.62, 20.45038)):
        rule = xp.filters.Renyi.for_plan(budget, "1e-6", "0.1")
        assert float(rule.order) - 1 == pytest.approx(rate, rel=0.01)
        times = 100 if budget == "5.08" else 1000
        assert rule.cost(total(rule, *[TENTH] * times), MILLIONTH).upper == pytest.approx(
            best, abs=1e-5
        )


# The guarantee


def test_what_is_accepted_keeps_the_budget_in_fractions() -> None:
    generator, tried = random.Random(3), 0
    for _ in range(20):
        epsilon = Fraction(generator.choice(["0.5", "1", "2"]))
        delta = Fraction(generator.choice(["0.3", "0.1", "0.01"]))
        for rule in rules(str(float(epsilon)), delta, str(float(epsilon / 4))):
            sums, sizes = Total(), list[Fraction]()
            for _ in range(9):
                size = epsilon * Fraction(generator.choice(["0.1", "0.3", "0.6", "1", "1.2"]))
                longer = sums + rule.price(xp.randomized_response(epsilon=size), PAIR)
                if cost(rule, longer, delta) <= float(epsilon):
                    sums, sizes = longer, [*sizes, size]
            # e^epsilon rounded down makes the excess larger, if anything.
            assert oracles.excess([oracles.odds(s) for s in sizes], oracles.odds(epsilon)) <= delta
            tried += sum(sizes) > epsilon
    assert tried > 10, "some of them must be beyond the sums"


def test_the_default_mixture_is_never_behind_whitehouse_nor_far_behind_the_best_order() -> None:
    for budget in ("0.1", "1", "5", "50"):
        for delta in (Fraction(1, 10**12), MILLIONTH, Fraction(1, 100)):
            mixture, whitehouse = (
                xp.filters.Mixture.for_budget(budget, delta),
                xp.filters.Whitehouse(delta),
            )
            for pieces in (2, 5, 20, 100, 1000):
                query = xp.randomized_response(epsilon=Fraction(budget) / pieces)
                best = xp.filters.Renyi.for_plan(budget, delta, query.epsilon)
                counts = [
                    accepted(rule, query, budget, delta) for rule in (mixture, whitehouse, best)
                ]
                assert counts[0] >= counts[1]
                assert counts[0] >= 0.9 * counts[2] - 1


def test_a_mixture_is_never_behind_whitehouse_on_mixed_sizes() -> None:
    generator = random.Random(4)
    for _ in range(20):
        budget = Fraction(generator.randint(1, 500), 10)
        delta = Fraction(1, 10 ** generator.randint(2, 12))
        mixture, whitehouse = (
            xp.filters.Mixture.for_budget(budget, delta),
            xp.filters.Whitehouse(delta),
        )
        sums = Total(), Total()
        for _ in range(40):
            query = xp.randomized_response(epsilon=budget * Fraction(generator.randint(1, 90), 300))
            longer = [
                s + r.price(query, PAIR) for s, r in zip(sums, (mixture, whitehouse), strict=True)
            ]
            if cost(whitehouse, longer[1], delta) <= float(budget):
                sums = longer[0], longer[1]
        assert cost(mixture, sums[0], delta) <= float(budget)


def test_deltas_are_held_against_a_part_that_is_fixed_in_advance() -> None:
    # Charging them against what is left of delta is unsound. λ = 5, ε_g = 2: RR(1); then RR(ε₂) to
    # the point of the largest excess if it was answered by the truth, else a query that tells all
    # with probability δ_g. The rule of order 6 fits the first, and sums the second, but in all:
    rate, first = mpmath.mpf(5), mpmath.mpf(1)
    u = mpmath.log((rate + 1) / rate)
    second = 2 + u - first
    cumulants = sum(oracles.cumulant(Fraction(str(e)), Fraction(5)) for e in (first, second))
    gain = (rate + 1) * mpmath.log(rate + 1) - rate * mpmath.log(rate)
    delta = mpmath.exp(cumulants - rate * 2 - gain)
    true, truer = 1 / (1 + mpmath.exp(-first)), 1 / (1 + mpmath.exp(-second))
    excess = true * truer * (1 - mpmath.exp(-u)) + (1 - true) * delta
    assert excess > mpmath.mpf("1.26") * delta
    # So nothing is left for them unless it was set aside.
    assert xp.filters.Renyi(6).allowance(MILLIONTH) == 0
    assert xp.filters.Renyi(6, delta_prime="6e-7").allowance(MILLIONTH) == Fraction(4, 10**7)
    assert xp.filters.Rogers().allowance(MILLIONTH) == MILLIONTH / 2
    assert xp.filters.Whitehouse("9e-7").allowance(MILLIONTH) == Fraction(1, 10**7)
    assert xp.filters.Sums().allowance(MILLIONTH) == MILLIONTH


# Files and slips


@pytest.mark.parametrize(
    "rule",
    [
        xp.filters.Sums(),
        xp.filters.Rogers(),
        xp.filters.Whitehouse("1e-7"),
        xp.filters.Renyi("12.5"),
        xp.filters.Renyi("7/3", delta_prime="1e-9"),
        xp.filters.Mixture(["1/3", 2], ["0.25", "0.75"]),
        xp.filters.Mixture.for_budget(3, "1e-6"),
    ],
    ids=repr,
)
def test_a_rule_survives_its_file(rule: xp.filters.Rule) -> None:
    document = json.dumps({"kind": rule.kind, **readable_tree(rule.tree())})
    again = rule_from_json(parse(document))
    assert again == rule
    assert hash(again) == hash(rule)
    assert type(again) is RULES[rule.kind]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("3", "must be an object"),
        ('{"order": 2}', "'kind' is missing"),
        (
            '{"kind": "magic"}',
            "kind: unknown rule; known: basic, rogers, whitehouse, renyi, mixture, declared",
        ),
        ('{"kind": "basic", "order": 2}', "order: unknown field; known here: "),
        ('{"kind": "renyi"}', "'order' is missing"),
        ('{"kind": "renyi", "order": 1}', "order: must be greater than 1, not 1"),
        ('{"kind": "renyi", "order": 0.5}', "order: must be greater than 1, not 0.5"),
        ('{"kind": "renyi", "order": NaN}', "order: must be a finite number, not NaN"),
        (
            '{"kind": "renyi", "order": "1.0000001"}',
            "order: must be from 1.000001 to 1e9, not 1.0000001",
        ),
        (
            '{"kind": "renyi", "order": 3, "delta_prime": 0}',
            "delta_prime: must be between 0 and 1, not 0",
        ),
        (
            '{"kind": "renyi", "order": 3, "delta_prime": null}',
            "delta_prime: must be a number, not NoneType",
        ),
        (
            '{"kind": "mixture", "lambdas": [1], "weights": [1], "delta_prime": null}',
            "delta_prime: must be a number, not NoneType",
        ),
        ('{"kind": "whitehouse"}', "'delta_prime' is missing"),
        ('{"kind": "whitehouse", "delta_prime": 1}', "delta_prime: must be between 0 and 1, not 1"),
        (
            '{"kind": "whitehouse", "delta_prime": null}',
            "delta_prime: must be a number, not NoneType",
        ),
        (
            '{"kind": "mixture", "lambdas": [], "weights": []}',
            "lambdas: must be from 1 to 4, not 0",
        ),
        ('{"kind": "mixture", "lambdas": [1, 1], "weights": [1, 1]}', "lambdas: must be distinct"),
        (
            '{"kind": "mixture", "lambdas": [0], "weights": [1]}',
            "lambdas[0]: must be greater than 0, not 0",
        ),
        ('{"kind": "mixture", "lambdas": [1, 2], "weights": [1]}', "weights: 1 for 2 lambdas"),
        (
            '{"kind": "mixture", "lambdas": [1, 2], "weights": [1.5, -0.5]}',
            "weights[1]: must be greater than 0, not -0.5",
        ),
        (
            '{"kind": "mixture", "lambdas": [1, 2], "weights": ["1/3", 0.6667]}',
            "weights: must sum to exactly one",
        ),
        ('{"kind": "mixture", "lambdas": "12", "weights": [1]}', "lambdas: must be a list"),
    ],
)
def test_a_slip_gets_one_clear_line(document: str, message: str) -> None:
    with pytest.raises(xp.InvalidInput) as caught:
        rule_from_json(parse(document))
    assert str(caught.value) == message


def test_a_plan_and_a_budget_are_checked() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^query_epsilon: must be greater than 0, not"):
        xp.filters.Renyi.for_plan(1, "1e-6", 0)
    with pytest.raises(xp.InvalidInput, match=r"^delta: must be between 0 and 1, not "):
        xp.filters.Mixture.for_budget(1, 1)
    with pytest.raises(xp.InvalidInput, match=r"^epsilon: must be a finite number, not"):
        xp.filters.Mixture.for_budget(math.nan, "1e-6")


def test_a_multiple_of_a_price_is_a_sum_of_prices() -> None:
    for rule in (
        xp.filters.Sums(),
        xp.filters.Rogers(),
        xp.filters.Whitehouse(MILLIONTH),
        xp.filters.Renyi(5),
        xp.filters.Mixture([1], [1]),
    ):
        price = rule.price(xp.randomized_response("0.3"), PAIR)
        for times in (1, 2, 7):
            added, multiple = sum([price] * times, start=Total()), price * times
            assert (multiple.delta, multiple.amounts) == (added.delta, added.amounts)
            assert Fraction("0.3") * times in multiple.epsilon.enclosure
