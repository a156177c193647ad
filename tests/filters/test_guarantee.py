"""The guarantee itself: every transcript that any adaptive analyst can reach, in rationals.

The game tree goes over all accepted queries of a menu and all their outcomes, until nothing is
accepted. Losses can fall, so with queries that may be asked for ever some trees never end. The
trees of 500 menus are therefore walked to their end with every query on offer twice, and those of
some more menus for thousands of transcripts with no such limit.

What is checked is Theorem 4.1 of the paper: the likelihood of everything that the analyst saw,
refusals included, never differs by more than e^budget between two values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from unittest.mock import ANY

import pytest
from hypothesis import HealthCheck, given, settings

import expost as xp
from expost.filters._filter import Filter
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import Query
from support import oracles
from support.random_cases import Menu, menus, vectors

FILTERS: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]

Outcome = tuple[Odometer, list[Fraction]]
"""The odometer after an outcome, and the probability of the outcome for each value."""
Step = Callable[[Menu, Odometer, Query], Iterator[Outcome]]
"""What an analyst can see after giving a query: nothing if it is refused beforehand."""


def guarded(accepts: Callable[[Menu, Odometer, Query], bool]) -> Step:
    """Check, then sample, then record."""

    def step(menu: Menu, odometer: Odometer, query: Query) -> Iterator[Outcome]:
        if accepts(menu, odometer, query):
            yield from outcomes(menu, odometer, query)

    return step


def outcomes(menu: Menu, odometer: Odometer, query: Query) -> Iterator[Outcome]:
    responses = query.on(menu.domain).responses
    for response, column in zip(responses, menu.columns(query), strict=True):
        yield odometer.add(query, response), column


@dataclass(frozen=True)
class Exploration:
    """How many transcripts were reached, how many break the guarantee, and whether that was all."""

    reached: int
    broken: int
    complete: bool


def explore(menu: Menu, step: Step, *, most: int = 10**6, times: int = 10**6) -> Exploration:
    """Walk the game tree: at most so many transcripts, each query on offer so many times."""
    start = (Odometer(xp.Transcript(menu.domain)), [Fraction(1)] * len(menu.domain))
    reached: dict[tuple[int, ...], Outcome] = {(): start}
    frontier = deque(reached)
    broken = 0
    while frontier and len(reached) < most:
        history = frontier.popleft()
        odometer, likelihoods = reached[history]
        for number, query in enumerate(menu.queries):
            if sum(event // 100 == number for event in history) == times:
                continue
            for outcome, (after, column) in enumerate(step(menu, odometer, query)):
                # Likelihood and decisions depend on what happened, not on the order of it.
                key = tuple(sorted((*history, 100 * number + outcome)))
                if key not in reached:
                    joint = [p * q for p, q in zip(likelihoods, column, strict=True)]
                    reached[key] = after, joint
                    frontier.append(key)
                    broken += not oracles.at_most(oracles.ratio(joint), **menu.limits)
    return Exploration(len(reached), broken, not frontier)


@pytest.mark.parametrize("kind", FILTERS)
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(menu=menus(asymmetric=True, responses=3))
def test_no_adaptive_analyst_ever_exceeds_the_budget(kind: type[Filter], menu: Menu) -> None:
    filter_ = kind.of(menu.budget)
    step = guarded(lambda _, odometer, query: filter_.accepts(odometer, query))
    assert explore(menu, step, times=2) == Exploration(ANY, broken=0, complete=True)


@pytest.mark.parametrize("kind", FILTERS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(menu=menus())
def test_nor_does_a_patient_one(kind: type[Filter], menu: Menu) -> None:
    filter_ = kind.of(menu.budget)
    step = guarded(lambda _, odometer, query: filter_.accepts(odometer, query))
    assert explore(menu, step, most=2500).broken == 0


@settings(max_examples=300, deadline=None)
@given(menu=menus(responses=16))
def test_the_bayesian_filter_accepts_exactly_what_algorithm_2_accepts(menu: Menu) -> None:
    filter_ = xp.BayesianFilter.of(menu.budget)

    def accepts(menu: Menu, odometer: Odometer, query: Query) -> bool:
        likelihoods = oracles.product(vectors(odometer.transcript), len(menu.domain))
        expected = oracles.bayesian_accepts(likelihoods, menu.columns(query), **menu.limits)
        decision = filter_.decide(odometer, query)
        assert decision.accepted is expected
        return expected

    assert explore(menu, guarded(accepts), most=60).broken == 0


# Deliberately broken filters. Each is a small slip that a reviewer could miss.


def off_by_one_response(menu: Menu, odometer: Odometer, query: Query) -> bool:
    *but_the_last, _ = query.on(menu.domain).responses
    return all(_after(odometer, query, response) <= menu.budget for response in but_the_last)


def forgets_an_exchange(menu: Menu, odometer: Odometer, query: Query) -> bool:
    remembered = Odometer(xp.Transcript(menu.domain))
    for exchange in odometer.transcript.exchanges[1:]:
        remembered = remembered.add(exchange.query, exchange.response)
    return xp.BayesianFilter.of(menu.budget).accepts(remembered, query)


def compares_with_the_wrong_budget(menu: Menu, odometer: Odometer, query: Query) -> bool:
    wrong = menu.budget + Nats(ratio=Fraction(3, 2))
    return xp.BayesianFilter.of(wrong).accepts(odometer, query)


def sums_the_wrong_way(menu: Menu, odometer: Odometer, query: Query) -> bool:
    loss, epsilon = odometer.exact_loss, query.on(menu.domain).epsilon
    return max(loss, epsilon) <= menu.budget


def decides_after_sampling(menu: Menu, odometer: Odometer, query: Query) -> Iterator[Outcome]:
    """Releases a response if that one is harmless, and says so if it is not."""
    refused = [Fraction(0)] * len(menu.domain)
    for after, column in outcomes(menu, odometer, query):
        if after.exact_loss <= menu.budget:
            yield after, column
        else:
            refused = [p + q for p, q in zip(refused, column, strict=True)]
    if any(refused):
        yield odometer, refused


def _after(odometer: Odometer, query: Query, response: object) -> Nats:
    return odometer.add(query, response).exact_loss


BROKEN: dict[str, Step] = {
    "off by one response": guarded(off_by_one_response),
    "forgets an exchange": guarded(forgets_an_exchange),
    "wrong budget": guarded(compares_with_the_wrong_budget),
    "sums the wrong way": guarded(sums_the_wrong_way),
    "decides after sampling": decides_after_sampling,
}


@pytest.fixture(scope="module")
def menu() -> Menu:
    """Three values, three asymmetric queries of ratios 3/2 to 3, a budget of ln 4."""
    rows = [
        [("1/2", "1/2"), ("1/4", "3/4"), ("1/3", "2/3")],
        [("1/5", "4/5"), ("2/5", "3/5"), ("3/10", "7/10")],
        [("1/3", "2/3"), ("1/2", "1/2"), ("1/6", "5/6")],
    ]
    return Menu(
        xp.FiniteSet(list("abc")), tuple(xp.channel(r) for r in rows), Nats(ratio=Fraction(4))
    )


@pytest.mark.parametrize("step", BROKEN.values(), ids=BROKEN)
def test_the_check_catches_every_broken_filter(step: Step, menu: Menu) -> None:
    assert explore(menu, step, most=2000).broken > 0


def test_the_menu_of_the_broken_filters_is_safe_in_good_hands(menu: Menu) -> None:
    filter_ = xp.BayesianFilter.of(menu.budget)
    exploration = explore(menu, guarded(lambda _, o, q: filter_.accepts(o, q)), most=4000)
    assert exploration.broken == 0
    assert exploration.reached > 1000


def test_the_tree_of_the_basic_filter_is_walked_to_its_end(menu: Menu) -> None:
    filter_ = xp.BasicFilter.of(menu.budget)
    exploration = explore(menu, guarded(lambda _, o, q: filter_.accepts(o, q)), most=4000)
    assert exploration == Exploration(ANY, broken=0, complete=True)
    assert exploration.reached > 10
