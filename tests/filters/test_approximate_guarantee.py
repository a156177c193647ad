"""The (epsilon, delta) guarantee itself: the best of all adaptive analysts, in rational numbers.

Budgets are ratios e^ε, so that the value of every game is exact (see games.py). It never exceeds
delta, for rules alone and for rules inside of an ApproximateFilter: with queries of mixed sizes,
some of them with a delta of their own, on budgets that are met in some transcripts and not in
others. And some values come near to delta.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pytest

import expost as xp
from expost.filters.rules import Mixture, Renyi, Rogers, Sums, Whitehouse
from support import oracles
from support.adaptive_games import Accepts, Game, History, coin, repeated
from support.filter_games import PAIR, RULES, F, Play, coins, leaking, random_play, rule_for, told

by_rule = pytest.mark.parametrize("kind", RULES)


@pytest.fixture(scope="module", autouse=True)
def costs_are_kept() -> Iterator[None]:
    """The cost of a sum is a pure function, and games ask for the same sums again and again."""
    with pytest.MonkeyPatch.context() as patch:
        for rule in (Rogers, Whitehouse, Renyi, Mixture):
            patch.setattr(rule, "cost", lru_cache(1 << 16)(rule.cost))
        yield


# The check itself.


def analysts(play: Play, accepts: Accepts, history: History = ()) -> Iterator[list[History]]:
    """Every strategy, written out: the histories at which it ends."""
    yield [history]
    for number, channel in enumerate(play.game.channels):
        used = sum(event[0] == number for event in history)
        if used < play.times[number] and accepts(history, number):
            branches = (
                analysts(play, accepts, (*history, (number, response)))
                for response in range(len(channel.columns))
            )
            for ends in itertools.product(*branches):
                yield list(itertools.chain(*ends))


def excess(play: Play, ends: Sequence[History], value: int, other: int) -> Fraction:
    def likelihood(history: History, at: int) -> Fraction:
        steps = ((play.game.channels[q], y) for q, y in history)
        return math.prod((F(c.columns[y][at], c.total) for c, y in steps), start=F(1))

    over = (likelihood(end, value) - play.ratio * likelihood(end, other) for end in ends)
    return sum((max(F(0), amount) for amount in over), F(0))


@pytest.mark.parametrize("ordered", [True, False])
def test_the_value_of_a_game_is_that_of_the_best_of_all_analysts(ordered: bool) -> None:
    loose = xp.channel([["1/2", "1/2"], ["1/3", "2/3"]])
    play = Play(PAIR, (told(F(2)), loose), (2, 1), F(3, 2), F(1, 10), F(1, 10))
    game = play.ordered if ordered else play.game
    for limit, count in ((F(6, 5), 1), (F(2), 3), (F(3), 19), (F(4), 35)):
        accepts = play.accepted_by(xp.BayesianFilter(ratio=limit))
        every = list(analysts(play, accepts))
        assert len(every) == count
        for pair in ((0, 1), (1, 0)):
            best = max(excess(play, ends, *pair) for ends in every)
            assert game.value_for(accepts, *pair) == best
            assert (best > 0) == (count > 1)


def test_equal_responses_are_worth_their_binomial_sums() -> None:
    for odds, times, ratio in itertools.product([F(2), F(3, 2)], [1, 4, 7], [F(1), F(2), F(5, 2)]):
        game = Game((coin(odds),), (times,), ratio)
        value = game.value(lambda history, query: True)
        assert value == repeated(odds, times, ratio) == oracles.excess([odds] * times, ratio)


# No analyst exceeds delta.


@by_rule
def test_no_adaptive_analyst_exceeds_delta_against_a_rule(kind: str) -> None:
    for seed in range(60):
        play = random_play(seed)
        assert play.share(play.composed(rule_for(kind, play, seed))) <= 1, seed


@by_rule
def test_nor_against_a_rule_and_then_the_bayesian_filter(kind: str) -> None:
    for seed in range(60):
        play = random_play(seed)
        assert play.share(play.approximate(rule_for(kind, play, seed))) <= 1, seed


@pytest.mark.parametrize("kind", ["sums", "whitehouse", "renyi", "mixture"])
def test_nor_with_gaussian_noise(kind: str) -> None:
    """Which has a delta that some rules count, and a cumulant that others count."""
    values = []
    for sigma, ratio, delta in itertools.product(["1.5", "2"], [F(3), F(5)], [F(1, 20), F(1, 5)]):
        noisy = xp.gaussian({"value": 1}, range=(0, 1), grid=1, sigma=sigma)
        queries = (replace(noisy, delta=delta / 4), told(F(3, 2)))
        play = Play(PAIR, queries, (2, 2), ratio, delta, delta / 2)
        value = play.game.value(play.ruled(rule_for(kind, play, 3)))
        assert value <= delta
        values.append(value)
    assert any(values)


@by_rule
def test_games_do_not_depend_on_the_order_of_what_was_answered(kind: str) -> None:
    for seed in range(6):
        play = random_play(seed)
        play = replace(play, times=(2, *(1 for _ in play.times[1:])))
        accepts = play.accepted_by(play.approximate(rule_for(kind, play, seed)))
        assert play.ordered.value(accepts) == play.game.value(accepts)


@by_rule
def test_a_rule_never_looks_at_a_response(kind: str) -> None:
    for seed in range(4):
        play = random_play(seed)
        rule = rule_for(kind, play, seed)
        play.game.value(agreeing(play.accepted_by(play.composed(rule)), play.ruled(rule)))


def agreeing(first: Accepts, second: Accepts) -> Accepts:
    def accepts(history: History, q: int) -> bool:
        accepted = first(history, q)
        assert second(history, q) is accepted
        return accepted

    return accepts


@pytest.mark.parametrize("kind", ["sums", "renyi"])
def test_rules_end_above_and_below_the_budget_in_these_games(kind: str) -> None:
    plays = map(random_play, range(12))
    ends = {end for seed, play in enumerate(plays) for end in ends_of(play, kind, seed)}
    # Above the budget nothing is accepted any more; below it some queries are.
    assert ends == {(False, False), (True, False), (True, True)}


def ends_of(play: Play, kind: str, seed: int) -> set[tuple[bool, bool]]:
    """Where the rule ends: whether the loss is within the budget, and whether more is accepted."""
    ends = set()
    rule = rule_for(kind, play, seed)
    alone, both = play.composed(rule), play.accepted_by(play.approximate(rule))
    ruled = play.ruled(rule)

    def accepts(history: History, q: int) -> bool:
        odometer = play.odometer(history)
        if not ruled(history, q) and alone.holds(odometer):
            ends.add((odometer.exact_loss <= alone.budget, both(history, q)))
        return both(history, q)

    play.game.value(accepts)
    return ends


def test_sums_and_a_martingale_may_be_mixed() -> None:
    """One answer is followed by sums up to the very budget, the other by the martingale."""
    nearest = F(0)
    for seed in range(25):
        generator = random.Random(seed)
        first, each = generator.choice([F(101, 100), F(6, 5), F(3)]), generator.choice([F(2), F(4)])
        delta, count = F(1, generator.choice([5, 10, 50])), generator.choice([1, 2])
        ratio = first * each**count
        room = delta * generator.choice([F(1, 2), F(9, 10), F(99, 100)])
        large = (ratio + room) / (1 - room)
        play = coins(first, each, large, times=[1, count, 1], ratio=ratio, delta=delta)
        exponent = ratio / (large - ratio) * generator.choice([F(1, 2), F(1), F(1), F(2)])
        for rule in (Renyi(1 + exponent), Mixture([exponent, 2 * exponent], ["0.9", "0.1"])):
            share = play.share(play.composed(rule))
            assert share <= 1
            nearest = max(nearest, share)
    assert nearest > F(9, 10)


@pytest.mark.parametrize("kind", ["rogers", "whitehouse", "renyi", "mixture"])
def test_equal_responses_keep_delta_as_long_as_they_are_accepted(kind: str) -> None:
    more_than_sums = False
    settings = itertools.product([F(6, 5), F(2)], [F(3), F(50)], [F(1, 100), F(1, 5)])
    for odds, ratio, delta in settings:
        play = coins(odds, times=[0], ratio=ratio, delta=delta)
        accepts = play.ruled(rule_for(kind, play, 3))
        times = next(k for k in itertools.count() if not accepts(((0, 0),) * k, 0))
        assert repeated(odds, times, ratio) <= delta
        more_than_sums = more_than_sums or odds**times > ratio
    assert more_than_sums


# How near the games come to delta. A check that never does would prove little.


@pytest.mark.parametrize("kind", ["renyi", "mixture"])
def test_one_large_response_comes_near_delta(kind: str) -> None:
    """Its excess is (8 - ratio) / 9, and the order is that at which it is at its worst."""
    ratio, delta = F("7.101"), F(1, 10)
    exponent = ratio / (8 - ratio)
    rules = {"renyi": Renyi(1 + exponent), "mixture": Mixture([exponent, 1], ["0.999", "0.001"])}
    play = coins(F(8), F(3, 2), times=[1, 2], ratio=ratio, delta=delta)
    assert F(998, 1000) < play.share(play.approximate(rules[kind])) <= 1


def test_the_deltas_of_queries_reach_delta() -> None:
    delta = F(1, 10)
    play = Play(PAIR, (leaking(F(6, 5), delta), told(F(2))), (2, 1), F(8), delta, delta)
    assert play.share(play.approximate(Sums())) == 1
    halves = replace(play, queries=(leaking(F(6, 5), delta / 2), told(F(2))), times=(3, 1))
    assert halves.share(halves.approximate(Sums())) == 1 - delta / 4
    for rule in (Rogers(), Whitehouse(delta / 2), Renyi(4, delta_prime=delta / 2)):
        assert halves.share(halves.approximate(rule)) == F(1, 2)


def test_whitehouse_bounds_a_probability_and_so_stays_below() -> None:
    """That the loss exceeds the budget at all, which is more than the excess."""
    play = coins(F(3, 2), times=[0], ratio=F(2700), delta=F(1, 5))
    assert play.ruled(Whitehouse(play.delta))(((0, 0),) * 39, 0)
    assert F(7, 100) < repeated(F(3, 2), 40, play.ratio) / play.delta < F(8, 100)
