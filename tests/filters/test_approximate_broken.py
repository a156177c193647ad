"""Deliberately broken (epsilon, delta) filters: the value of some game exceeds delta.

Each is a small slip that a reviewer could miss. The game is a given one, or the first of some
random ones that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import pytest

import expost as xp
from expost.domains import Domain
from expost.filters._filter import Filter
from expost.filters.rules import Mixture, Renyi, Rule, Sums, Total, Whitehouse
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from support.adaptive_games import Accepts, History
from support.filter_games import PAIR, F, Play, around, coins, leaking, random_play, responses, told

# Rules.


class ForgetsDeltas(Sums):
    def charge(self, query: Query, domain: Domain) -> tuple[Nats, Fraction]:
        return query.charge(domain), F(0)


class SpendsDeltaTwice(Renyi):
    """All of it on the excess, and all of it on the deltas of the queries."""

    def allowance(self, delta: Fraction) -> Fraction:
        return delta


class SumsDivergences(Renyi):
    """And not cumulants, which are λ times as large."""

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        return [amount / float(self.order - 1) for amount in super().amounts(query, domain)]


class DividesByTheOrder(Renyi):
    """And not by the order less one."""

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        cost, factor = super().cost(total, delta), float((self.order - 1) / self.order)
        return Enclosure(cost.lower * factor, cost.upper * factor)


class LooksAtAGrid(Renyi):
    """Compares 1 - e^-u with δ e^(λ(ε + u) - S) at multiples of a quarter, and not for all u."""

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        exponent, reserve = float(self.order - 1), float(self.delta_prime or delta)
        summed = float(sum(total.amounts))
        least = max(
            (math.log(-math.expm1(-u) / reserve) + summed) / exponent - u
            for u in (step / 4 for step in range(1, 40))
        )
        return Enclosure(max(0.0, least), max(0.0, least))


class ForgetsWeights(Mixture):
    @property
    def components(self) -> Iterable[tuple[Fraction, Fraction]]:
        return ((F(1), exponent) for exponent in self.lambdas)


def is_caught(rule_of: Callable[[Play], Rule]) -> bool:
    """Whether some random game is worth more than delta."""
    plays = map(random_play, range(100))
    return any(play.share(play.composed(rule_of(play))) > 1 for play in plays)


@pytest.mark.parametrize(
    "kind", [SpendsDeltaTwice, SumsDivergences, DividesByTheOrder, LooksAtAGrid]
)
def test_a_slip_in_the_renyi_rule_is_caught(kind: type[Renyi]) -> None:
    assert is_caught(lambda play: kind(1 / play.delta, delta_prime=play.delta))


def test_forgotten_weights_are_caught() -> None:
    def rule_of(play: Play) -> Rule:
        exponent = 1 / play.reserve
        return ForgetsWeights([exponent, exponent + 1], ["1/2", "1/2"], delta_prime=play.reserve)

    assert is_caught(rule_of)


def test_forgotten_deltas_are_caught() -> None:
    delta = F(1, 10)
    play = Play(PAIR, (leaking(F(2), delta * F(2, 3)),), (2,), F(4), delta, delta)
    assert play.share(play.composed(ForgetsDeltas())) == F(4, 3) - delta * F(4, 9)
    assert play.share(play.composed(Sums())) == F(2, 3)


def test_some_order_fits_is_caught() -> None:
    """On one answer to RR(0.01) four large ones, on the other thirteen smaller ones."""
    queries = responses("0.01", "2.498", "0.777")
    for play in around(F(10), queries, (1, 4, 13), delta=F("7.33e-4")):
        large, small = play.ruled(Renyi(512)), play.ruled(Renyi(11))
        assert float(play.game.value(either(large, small))) == pytest.approx(1.0484e-3, abs=1e-7)
        for alone in (large, small):
            assert F(95, 100) < play.game.value(alone) / play.delta <= 1


def either(first: Accepts, second: Accepts) -> Accepts:
    return lambda history, q: first(history, q) or second(history, q)


def with_what_is_left(play: Play, order: Fraction) -> Accepts:
    """The excess gets what the deltas of the queries have left, and not a part fixed in advance."""

    def accepts(history: History, q: int) -> bool:
        asked = [*(number for number, _ in history), q]
        left = play.delta - sum(play.queries[number].delta for number in asked)
        martingale = left > 0 and play.ruled(Renyi(order, delta_prime=left))(history, q)
        return martingale or play.ruled(Sums())(history, q)

    return accepts


def test_a_reserve_that_is_not_fixed_in_advance_is_caught() -> None:
    """Where RR(1) speaks for a value comes RR(1.1823), and else what leaks: the sum is small."""
    delta = F("0.09326")
    queries = [*responses("1", "1.1823"), leaking(F(1), delta)]
    for play in around(F(2), queries, (1, 1, 1), delta=delta):
        value = play.game.value(with_what_is_left(play, F(6)))
        assert float(value) == pytest.approx(0.1183, abs=1e-4)
        for reserve in (delta / 2, delta * F(99, 100)):
            assert play.share(play.approximate(Renyi(6, delta_prime=reserve))) <= 1


# A rule and the Bayesian filter.


def interleaved(play: Play, rule: Rule) -> Accepts:
    """The rule counts what it accepted itself, and accepts again after the Bayesian filter did."""
    by_rule, bayesian = play.ruled(rule), play.accepted_by(play.bayesian)

    def accepts(history: History, q: int) -> bool:
        own: History = ()
        for event in history:
            own = (*own, event) if by_rule(own, event[0]) else own
        return by_rule(own, q) or bayesian(history, q)

    return accepts


def test_interleaving_is_caught_with_sums_inside() -> None:
    """RR(ln 2) answers 1 and 0; RR(ln 8) is for the Bayesian filter, and RR(ln 2) for the sum."""
    play = coins(F(2), F(8), times=[3, 1], ratio=F(8), delta=F(1, 10**6))
    assert play.ordered.value(interleaved(play, Sums())) == F(32, 243)
    assert play.share(play.approximate(Sums())) == 0


def test_interleaving_is_caught_with_whitehouse_inside() -> None:
    """RR(0.1) answers 1 and 0; RR(1) is for the Bayesian filter, and RR(0.1) for the rule."""
    for play in around(F(1), responses("1", "0.1"), (1, 3), delta=F(1, 10**6)):
        rule = Whitehouse(play.delta)
        value = play.ordered.value(interleaved(play, rule))
        assert float(value) == pytest.approx(0.0182157, abs=1e-7)
        assert play.share(play.approximate(rule)) <= 1


def with_bayesian(play: Play, rule: Rule, bayesian: Filter) -> Accepts:
    """The combined filter as it should be, but for the Bayesian filter."""
    return either(play.ruled(rule), play.accepted_by(bayesian))


def test_nats_in_place_of_a_ratio_are_caught() -> None:
    play = coins(F(2), F(8), times=[2, 1], ratio=F(8), delta=F(1, 10))
    assert play.game.value(with_bayesian(play, Sums(), xp.BayesianFilter(epsilon=8))) > play.delta
    assert play.game.value(with_bayesian(play, Sums(), xp.BayesianFilter(ratio=8))) == 0


def test_the_slip_in_the_print_of_algorithm_4_only_refuses_more() -> None:
    """L <= ε in place of log L <= ε: 3 for e^3."""
    for play in around(F(3), (told(F(4)), told(F(3, 2))), (3, 2), delta=F(1, 20)):
        rule = Whitehouse(play.delta)
        ours = play.accepted_by(play.approximate(rule))
        printed = with_bayesian(play, rule, xp.BayesianFilter(ratio=3))
        assert seen_by(play, ours, printed) == {(True, True), (True, False), (False, False)}
        assert play.game.value(printed) <= play.delta


def seen_by(play: Play, first: Accepts, second: Accepts) -> set[tuple[bool, bool]]:
    """The pairs of decisions that two filters take in the game of the first."""
    pairs = set()

    def accepts(history: History, q: int) -> bool:
        pairs.add((first(history, q), second(history, q)))
        return first(history, q)

    play.game.value(accepts)
    return pairs


# A phase that is stored, and not recomputed from the transcript.

NOTHING = xp.channel([[1], [1]])
"""A query with one response, in place of something else that an analyst can bring about."""


def stored(play: Play, rule: Rule, *, sums_too: bool) -> Accepts:
    """A flag says that the rule has halted. Saving and loading loses it, and perhaps the sums."""
    by_rule, bayesian = play.ruled(rule), play.accepted_by(play.bayesian)

    def accepts(history: History, q: int) -> bool:
        own: History = ()
        halted = False
        for event in history:
            if play.queries[event[0]] is NOTHING:
                own, halted = () if sums_too else own, False
            elif not halted and by_rule(own, event[0]):
                own = (*own, event)
            else:
                halted = True
        return (not halted and by_rule(own, q)) or bayesian(history, q)

    return accepts


@pytest.mark.parametrize(("sums_too", "value"), [(False, F(32, 243)), (True, F(56, 81))])
def test_a_phase_that_is_lost_on_loading_is_caught(sums_too: bool, value: Fraction) -> None:
    play = Play(PAIR, (told(F(2)), told(F(8)), NOTHING), (3, 2, 1), F(8), F(1, 100), F(1, 100))
    accepts = stored(play, Sums(), sums_too=sums_too)
    assert play.ordered.value(accepts) == value
    # What never loads is safe, and so is what has nothing to lose.
    assert replace(play.ordered, times=(3, 2, 0)).value(accepts) == 0
    assert play.ordered.value(play.accepted_by(play.approximate(Sums()))) == 0


def test_a_phase_that_a_refusal_ends_is_safe_but_makes_dry_runs_matter() -> None:
    """As Algorithm 4 is printed. Here NOTHING is to try a query that the rule refuses."""
    ratio, delta = F("7.101"), F(1, 10)
    play = Play(PAIR, (told(F(8)), told(F(3, 2)), NOTHING), (1, 2, 1), ratio, delta, delta)
    ours = play.accepted_by(play.approximate(Renyi(1 + ratio / (8 - ratio))))
    bayesian = play.accepted_by(play.bayesian)
    tried = (2, 0)

    def printed(history: History, q: int) -> bool:
        return bayesian(history, q) if tried in history else ours(history, q)

    assert F(99, 100) < play.ordered.value(printed) / delta <= 1
    assert ours((), 0) is ours((tried,), 0) is printed((), 0) is True
    assert not printed((tried,), 0)
