"""Adaptive games against the filters of expost, through real transcripts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache

import expost as xp
from expost.filters._approximate import ApproximateFilter
from expost.filters._composition import CompositionFilter
from expost.filters._filter import Filter
from expost.filters.rules import Declared, Mixture, Renyi, Rogers, Rule, Sums, Whitehouse
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import Query
from support.adaptive_games import Accepts, Channel, Game, History, exponential
from support.random_cases import columns

F = Fraction
PAIR = xp.FiniteSet([0, 1])


@dataclass(frozen=True, eq=False)
class Play:
    """What may be asked how often, the budget, and the transcripts that were met so far."""

    domain: xp.FiniteSet
    queries: tuple[Query, ...]
    times: tuple[int, ...]
    ratio: Fraction
    delta: Fraction
    reserve: Fraction
    """The part of delta that is for the excess, and not for the deltas of the queries."""
    epsilon: Fraction | None = None
    """The budget in nats; the ratio is then a rational near to e^epsilon."""

    @cached_property
    def game(self) -> Game:
        channels = tuple(Channel.of(columns(query, self.domain)) for query in self.queries)
        return Game(channels, self.times, self.ratio)

    @property
    def ordered(self) -> Game:
        """The game in which a filter is told the order of what happened."""
        return replace(self.game, ordered=True)

    @property
    def bayesian(self) -> xp.BayesianFilter:
        return xp.BayesianFilter.of(Nats.budget(**self._budget))

    def composed(self, rule: Rule) -> CompositionFilter:
        return CompositionFilter(**self._budget, delta=self.delta, rule=rule)

    def approximate(self, rule: Rule) -> ApproximateFilter:
        return ApproximateFilter(**self._budget, delta=self.delta, inner=rule)

    @property
    def _budget(self) -> dict[str, Fraction]:
        return {"epsilon": self.epsilon} if self.epsilon else {"ratio": self.ratio}

    def odometer(self, history: History) -> Odometer:
        known = self._odometers
        if history not in known:
            number, response = history[-1]
            query = self.queries[number]
            answer = query.on(self.domain).responses[response]
            known[history] = self.odometer(history[:-1]).add(query, answer)
        return known[history]

    @cached_property
    def _odometers(self) -> dict[History, Odometer]:
        return {(): Odometer(xp.Transcript(self.domain))}

    def accepted_by(self, guard: Filter) -> Accepts:
        return cache(lambda history, q: guard.accepts(self.odometer(history), self.queries[q]))

    def ruled(self, rule: Rule) -> Accepts:
        """A rule never looks at a response, so neither need the question."""
        asked = self.accepted_by(self.composed(rule))
        return lambda history, q: asked(tuple(sorted((number, 0) for number, _ in history)), q)

    def share(self, guard: Filter) -> Fraction:
        """The value of the game as a share of delta."""
        return self.game.value(self.accepted_by(guard)) / self.delta


# Queries, by the odds of the truth.


def told(odds: Fraction, size: int = 2) -> Query:
    """Randomized response."""
    rest = odds + size - 1
    return xp.channel([[(odds if x == y else 1) / rest for y in range(size)] for x in range(size)])


def leaking(odds: Fraction, delta: Fraction, size: int = 2) -> Query:
    """Randomized response that gives everything away with probability delta."""
    rest = odds + size - 1
    rows = [
        [(1 - delta) * (odds if x == y else 1) / rest for y in range(size)]
        + [delta if x == y else F(0) for y in range(size)]
        for x in range(size)
    ]
    return xp.channel(rows, delta=delta)


def any_channel(generator: random.Random, size: int, delta: Fraction | None) -> Query:
    """Small integer weights in no order; with a delta some of them can be zero."""
    width = generator.randint(2, 3)
    least = 0 if delta else 1
    rows = [[generator.randint(least, 6) for _ in range(width)] for _ in range(size)]
    rows = [row if any(row) else [1] * width for row in rows]
    return xp.channel([[F(w, sum(row)) for w in row] for row in rows], delta=delta)


def responses(*epsilons: str) -> list[Query]:
    return [xp.randomized_response(epsilon=epsilon) for epsilon in epsilons]


# Plays.


def coins(*odds: Fraction, times: Sequence[int], ratio: Fraction, delta: Fraction) -> Play:
    return Play(PAIR, tuple(map(told, odds)), tuple(times), ratio, delta, delta)


def around(
    epsilon: Fraction, queries: Sequence[Query], times: Sequence[int], *, delta: Fraction
) -> list[Play]:
    """A budget in nats: the game at rationals below and above e^ε, and so at a value around."""
    below, above = exponential(epsilon)
    play = Play(PAIR, tuple(queries), tuple(times), below, delta, delta, epsilon)
    return [play, replace(play, ratio=above)]


@lru_cache(1 << 10)
def random_play(seed: int) -> Play:
    """A large query with about as much excess as allowed, smaller ones, and some with a delta."""
    generator = random.Random(seed)
    size = generator.choice([2, 2, 3])
    delta = F(1, generator.choice([5, 10, 20, 100]))
    large = generator.choice([F(4), F(6), F(8), F(12)])
    small = generator.choice([F(6, 5), F(3, 2), F(2)])
    part = delta * generator.choice([F(0), F(0), F(1, 3), F(1, 2), F(9, 10)])
    queries, times = [told(small, size), told(large, size)], [generator.choice([2, 3]), 1]
    if generator.random() < 0.3:
        queries[0] = any_channel(generator, size, None)
    if part:
        often = generator.choice([1, 2])
        spared = part / often
        candidates = [leaking(small, spared, size), any_channel(generator, size, spared)]
        queries.append(generator.choice(candidates))
        times.append(often)
    room = (delta - part) * generator.choice([F(1, 2), F(9, 10), F(99, 100), F(3, 2), F(2)])
    # The excess of randomized response is (large - ratio) / (large + size - 1).
    ratio = large - room * (large + size - 1)
    ratio *= generator.choice([F(1), F(1), F(1), small, small**2])
    domain = xp.FiniteSet(range(size))
    return Play(domain, tuple(queries), tuple(times), ratio, delta, delta - part)


# Rules, by the part of delta that is for the excess.

RuleOf = Callable[[random.Random, Fraction], Rule]


def some_renyi(generator: random.Random, reserve: Fraction) -> Rule:
    return Renyi(generator.choice([F(3, 2), F(3), F(6), 1 / reserve]), delta_prime=reserve)


def some_mixture(generator: random.Random, reserve: Fraction) -> Rule:
    lambdas = generator.choice([[F(1), F(4)], [F(1, 2), F(2), F(8)], [1 / reserve - 1, F(1000)]])
    share = generator.choice([F(1, 2), F(9, 10)])
    rest = [(1 - share) / (len(lambdas) - 1)] * (len(lambdas) - 1)
    return Mixture(lambdas, [share, *rest], delta_prime=reserve)


def just_above(odds: Fraction) -> Fraction:
    """A decimal that is hardly above the logarithm of some odds."""
    return F(math.ceil(math.log(odds) * 10**9) + 1, 10**9)


def some_declared(generator: random.Random, reserve: Fraction) -> Rule:
    """Places for queries of the sizes in random plays, which may be too few or too small."""
    plan = {just_above(generator.choice([F(4), F(6), F(8), F(12)])): 1}
    if generator.random() < 0.5:
        plan[just_above(generator.choice([F(6, 5), F(3, 2), F(2)]))] = generator.choice([1, 2, 3])
    return Declared(plan, delta_prime=reserve)


RULES: dict[str, RuleOf] = {
    "sums": lambda _, reserve: Sums(),
    "rogers": lambda _, reserve: Rogers(),
    "whitehouse": lambda _, reserve: Whitehouse(reserve),
    "renyi": some_renyi,
    "mixture": some_mixture,
    "declared": some_declared,
}


def rule_for(kind: str, play: Play, seed: int) -> Rule:
    return RULES[kind](random.Random(seed), play.reserve)
