"""The rule for a declared plan: its cost by all outcomes, its guarantee by all analysts."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import pytest

import expost as xp
from expost.errors import InvalidInput
from expost.filters.rules import Declared, rule_from_json
from support import oracles
from support.adaptive_games import Accepts, History
from support.filter_games import Play, coins, just_above

F = Fraction
YES_NO = xp.FiniteSet(["no", "yes"])


def accepted(rule: Declared, **asked: int) -> bool:
    """Whether so many queries of each epsilon are all accepted, one after the other."""
    filter_, odometer = xp.filters.CompositionFilter("5.08", "1e-6", rule), fresh()
    for hundredths, times in asked.items():
        query = xp.randomized_response(epsilon=F(int(hundredths[1:]), 100))
        for _ in range(times):
            if not filter_.decide(odometer, query):
                return False
            odometer = odometer.add(query, "no")
    return True


def fresh() -> xp.Odometer:
    return xp.Odometer(xp.Transcript(YES_NO))


def test_it_accepts_all_of_the_largest_plan_that_fits() -> None:
    largest = Declared.most("5.08", "1e-6", "0.1")
    assert largest == Declared({"0.1": 111})
    assert accepted(largest, e10=111)
    assert not accepted(largest, e10=112)
    mixed = Declared({"0.1": 60, "0.2": 14})
    assert accepted(mixed, e10=60, e20=14)
    assert accepted(mixed, e20=14, e10=60)
    assert not accepted(mixed, e10=60, e20=15)


def test_a_plan_that_does_not_fit_is_worth_no_more_than_sums() -> None:
    too_large = Declared({"0.1": 112})
    assert accepted(too_large, e10=50)
    assert not accepted(too_large, e10=51)


def test_a_small_query_may_take_a_larger_place_and_not_the_other_way_round() -> None:
    plan = Declared({"0.1": 60, "0.2": 14})
    assert accepted(plan, e10=74)
    assert accepted(plan, e05=30, e15=14, e10=30)
    assert not accepted(plan, e05=10, e10=65)
    assert not accepted(plan, e10=61, e20=14)


def test_outside_of_the_plan_sums_decide_alone() -> None:
    plan = Declared({"0.1": 60, "0.2": 14})
    assert accepted(plan, e20=25)
    assert accepted(plan, e20=15, e10=20)
    assert not accepted(plan, e20=15, e10=21)


def test_what_tells_nothing_takes_no_place() -> None:
    rule = Declared({"0.1": 1})
    nothing = rule.price(xp.channel([["1/2", "1/2"], ["1/2", "1/2"]]), YES_NO)
    once = rule.price(xp.randomized_response(epsilon="0.1"), YES_NO)
    assert rule.cost(nothing * 5 + once, F(1, 10)).upper < math.inf
    assert rule.cost(once * 2, F(1, 10)).upper == math.inf


def test_the_cost_of_a_plan_encloses_that_over_all_outcomes() -> None:
    generator = random.Random(7)
    for _ in range(40):
        plan = {
            F(generator.randint(1, 300), 100): generator.randint(1, 3)
            for _ in range(generator.randint(1, 2))
        }
        delta = F(1, generator.choice([3, 10, 1000, 10**9]))
        cost = Declared(plan).cost(xp.filters.rules.Total(), delta)
        least = least_budget([e for e, times in plan.items() for _ in range(times)], delta)
        assert cost.lower <= least <= cost.upper
        assert cost.upper - cost.lower < 1e-15 * (1 + cost.upper)


def least_budget(epsilons: list[Fraction], delta: Fraction) -> mpmath.mpf:
    """By bisection over the definition, with 60 digits."""
    with mpmath.workdps(60):
        sizes = [mpmath.mpf(e.numerator) / e.denominator for e in epsilons]
        target = mpmath.mpf(delta.numerator) / delta.denominator
        outcomes = []
        for signs in itertools.product((1, -1), repeat=len(sizes)):
            signed = [sign * size for sign, size in zip(signs, sizes, strict=True)]
            chance = mpmath.fprod(1 / (1 + mpmath.exp(-each)) for each in signed)
            outcomes.append((chance, sum(signed)))

        def keeps(budget: mpmath.mpf) -> bool:
            over = ((chance, loss) for chance, loss in outcomes if loss > budget)
            excess = sum(chance * (1 - mpmath.exp(budget - loss)) for chance, loss in over)
            return bool(excess <= target)

        low, high = mpmath.mpf(0), sum(sizes)
        if keeps(low):
            return low
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (low, middle) if keeps(middle) else (middle, high)
        return high


# The guarantee: the best of all adaptive analysts, exactly.


def test_no_analyst_exceeds_delta_and_the_whole_plan_reaches_it() -> None:
    generator, nearest = random.Random(3), []
    for _ in range(20):
        small, large = generator.choice([F(6, 5), F(3, 2)]), generator.choice([F(2), F(4)])
        times = (generator.randint(1, 2), 1)
        odds = [small] * times[0] + [large] * times[1]
        ratio = generator.choice([F(11, 10), F(3, 2), large, large * small])
        # Levels are a little above the odds, which is what the little more of delta is for.
        delta = oracles.excess(odds, ratio) + F(1, 10**7)
        rule = Declared({just_above(small): times[0], just_above(large): times[1]})
        play = coins(small, large, times=(times[0] + 1, 2), ratio=ratio, delta=delta)
        nearest.append(play.share(play.composed(rule)))
        assert play.share(play.approximate(rule)) <= 1
    assert max(nearest) <= 1
    assert sorted(nearest)[10] > F(999, 1000)


def valued(play: Play, accepts: Accepts) -> Fraction:
    return play.game.value(accepts) / play.delta


def test_accepting_whatever_would_fit_without_a_plan_is_caught() -> None:
    """Exact composition of what was asked so far: by the answer, one analyst has two plans."""
    odds = (F(3, 2), F(2), F(4))
    plans = [[odds[0], *[odds[1]] * 3], [odds[0], odds[2]]]
    ratio = F(3)
    delta = max(oracles.excess(plan, ratio) for plan in plans)
    play = coins(*odds, times=(1, 3, 1), ratio=ratio, delta=delta)

    def accepts(history: History, q: int) -> bool:
        asked = [odds[number] for number, _ in history] + [odds[q]]
        return oracles.excess(asked, ratio) <= delta

    assert valued(play, accepts) > F(6, 5)
    for plan in plans:
        rule = Declared({just_above(o): plan.count(o) for o in set(plan)})
        assert valued(play, play.ruled(rule)) <= 1 + F(1, 10**6)


def test_counting_queries_and_not_their_sizes_is_caught() -> None:
    play = coins(
        F(3, 2), F(4), times=(2, 2), ratio=F(3), delta=oracles.excess([F(3, 2), F(4)], F(3))
    )

    def accepts(history: History, q: int) -> bool:
        return len(history) < 2

    assert valued(play, accepts) > 1


# Input.


def test_a_plan_comes_back_from_json() -> None:
    tree = {
        "kind": "declared",
        "plan": [{"epsilon": "0.2", "times": 14}, {"epsilon": "1/10", "times": 60}],
    }
    rule = rule_from_json(tree)
    assert rule == Declared({"0.1": 60, "0.2": 14})
    assert rule.tree() == {
        "plan": [{"epsilon": F(1, 10), "times": 60}, {"epsilon": F(1, 5), "times": 14}]
    }
    assert Declared({"0.1": 3, "0.10": 4}).plan == ((F(1, 10), 7),)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({}, "plan: has no queries"),
        ({"0": 3}, "plan.epsilon: must be greater than 0"),
        ({"0.1": 0}, "plan.times: must be at least 1"),
        ({"0.1": 100_001}, "plan.times: must be at most 100,000"),
        ({"0.1": 9999, "0.2": 99, "0.3": 1}, "plan: has more than 1,000,000 outcomes"),
        ([("0.1", 3)], "plan: must be numbers of queries by epsilon"),
    ],
)
def test_what_is_no_plan_is_an_error(plan: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Declared(plan)


def test_a_query_of_its_own_delta_needs_a_part_of_delta() -> None:
    leaks = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]], delta="1e-7")
    for reserve, fits in ((None, False), ("5e-7", True)):
        filter_ = xp.filters.CompositionFilter(1, "1e-6", Declared({"0.1": 3}, delta_prime=reserve))
        assert bool(filter_.decide(fresh(), leaks)) is fits
