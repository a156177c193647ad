"""Filters: exact decisions, their order, what they report, and their purity."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.filters import (
    OVER_ANY_BUDGET,
    Account,
    Decision,
    Filter,
    WorstCase,
)
from expost.loss import Odometer
from expost.numbers import Nats, exact
from expost.queries import Query
from support import oracles
from support.paper_example import ELEVEN, power
from support.random_cases import Menu, columns, menus

FILTERS: list[type[Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]
PAIR = xp.FiniteSet([0, 1])


def start(domain: xp.FiniteSet = PAIR) -> Odometer:
    return Odometer(xp.Transcript(domain))


def repeat(odometer: Odometer, query: Query, response: object, times: int) -> Odometer:
    for _ in range(times):
        odometer = odometer.add(query, response)
    return odometer


def test_example_3_ends_on_exactly_its_budget() -> None:
    filter_ = xp.BayesianFilter(ratio="9/4")
    odometer = start(ELEVEN)
    expected = [Fraction(3, 2), Fraction(55, 48), Fraction(3, 2), Fraction(9, 4)]
    for exponent, (response, ratio) in enumerate(zip((1, 0, 1, 1), expected, strict=True), start=1):
        assert filter_.decide(odometer, power(exponent)).accepted
        odometer = odometer.add(power(exponent), response)
        assert odometer.exact_loss.ratio == ratio
    for exponent in range(5, 12):
        assert not filter_.decide(odometer, power(exponent)).accepted


def test_example_3_is_one_ulp_of_a_ratio_away_from_refusal() -> None:
    odometer = start(ELEVEN).add(power(1), 1).add(power(2), 0).add(power(3), 1)
    below = Fraction(9, 4) - Fraction(1, 10**40)
    assert not xp.BayesianFilter(ratio=below).decide(odometer, power(4)).accepted
    assert xp.BayesianFilter(ratio=Fraction(9, 4)).decide(odometer, power(4)).accepted


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize(("epsilon", "budget", "times"), [("0.1", "0.3", 3), ("0.001", "1", 1000)])
def test_queries_that_add_up_to_the_budget_fit_it_and_no_more(
    kind: type[Filter], epsilon: str, budget: str, times: int
) -> None:
    filter_, query = kind(budget), xp.randomized_response(epsilon=epsilon)
    odometer = start()
    for _ in range(times):
        assert filter_.decide(odometer, query).accepted
        odometer = odometer.add(query, 1)
    assert not filter_.decide(odometer, query).accepted


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "2.5"])
def test_a_loss_within_1e_30_of_the_budget_is_decided_right(
    kind: type[Filter], side: int, epsilon: str
) -> None:
    # A channel whose ratio is e^epsilon to thirty digits, from the wrong or from the right side.
    with mpmath.workdps(80):
        near = Fraction(int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * 10**31)), 10**31)
    ratio = near + (Fraction(1, 10**31) if side > 0 else 0)
    query = xp.channel(
        [[ratio / (1 + ratio), 1 / (1 + ratio)], [1 / (1 + ratio), ratio / (1 + ratio)]]
    )
    assert kind(epsilon).decide(start(), query).accepted is (side < 0)


def test_at_the_limit_a_query_that_does_not_tell_the_extremes_apart_is_accepted() -> None:
    domain = xp.FiniteSet(list("abc"))
    first = xp.channel([["1/3", "2/3"], ["2/3", "1/3"], ["1/2", "1/2"]])
    second = xp.channel([["1/2", "1/2"], ["1/2", "1/2"], ["1/3", "2/3"]])
    odometer = start(domain).add(first, 1)
    assert odometer.exact_loss.ratio == 2
    assert xp.loss.worst_case_loss(second, domain).lower > 0.4
    assert xp.BayesianFilter(ratio=2).decide(odometer, second).accepted
    assert not xp.SimplifiedFilter(ratio=2).decide(odometer, second).accepted
    for response in (0, 1):
        assert odometer.add(second, response).exact_loss.ratio == 2


def test_largest_epsilon_of_a_bayesian_filter_can_exceed_what_remains() -> None:
    domain = xp.FiniteSet(list("abc"))
    first = xp.channel([["1/3", "2/3"], ["2/3", "1/3"], ["1/2", "1/2"]])
    odometer = start(domain).add(first, 1)
    query = xp.perturbation([0.5, 0.5, 1], epsilon=1)
    decision = xp.BayesianFilter(ratio=2).decide(odometer, query)
    assert decision.remaining < 1e-12
    assert decision.largest_epsilon is not None
    assert exact(decision.largest_epsilon) > Fraction(1, 2)
    _check_largest(xp.BayesianFilter(ratio=2), odometer, query, decision)


@settings(max_examples=60, deadline=None)
@given(menus(), st.data())
def test_largest_epsilon_is_accepted_and_a_billionth_more_is_not(
    menu: Menu, data: st.DataObject
) -> None:
    odometer = start(menu.domain)
    for query in menu.queries[:2]:
        responses = list(query.on(menu.domain).responses)
        odometer = odometer.add(query, data.draw(st.sampled_from(responses)))
    scores = data.draw(st.lists(st.floats(0, 1), min_size=4, max_size=4))[: len(menu.domain)]
    for query in (
        xp.randomized_response(epsilon=1),
        xp.perturbation([0, *scores[1:-1], 1], epsilon=1),
    ):
        for kind in FILTERS:
            filter_ = kind.of(menu.budget)
            _check_largest(filter_, odometer, query, filter_.decide(odometer, query))


def _check_largest(filter_: Filter, odometer: Odometer, query: Query, decision: Decision) -> None:
    largest = decision.largest_epsilon
    fits = Fraction(0) if largest is None else exact(largest)
    if largest is not None:
        variant = query.with_epsilon(fits)
        assert variant is not None
        assert filter_.decide(odometer, variant).accepted
    beyond = query.with_epsilon(fits + Fraction(1, 10**9))
    assert beyond is not None
    assert not filter_.decide(odometer, beyond).accepted


def test_largest_epsilon_is_none_for_a_channel_and_where_nothing_fits() -> None:
    query = xp.randomized_response(epsilon="0.1")
    full = repeat(start(), query, 1, 3)
    assert xp.BayesianFilter("0.3").decide(full, query).largest_epsilon is None
    assert xp.BayesianFilter("0.3").decide(start(), power_of_two()).largest_epsilon is None


def test_largest_epsilon_of_a_query_that_tells_nothing_is_the_largest_there_is() -> None:
    query = xp.perturbation([0.5, 0.5], epsilon=1)
    assert xp.BayesianFilter("0.3").decide(start(), query).largest_epsilon == 500


def power_of_two() -> Query:
    return xp.channel([["1/3", "2/3"], ["2/3", "1/3"]])


@pytest.mark.parametrize("kind", FILTERS)
def test_what_is_reported_before_anything_is_asked(kind: type[Filter]) -> None:
    decision = kind("0.3").decide(start(), xp.randomized_response(epsilon="0.1"))
    assert decision.accepted
    assert not decision.undecided
    assert decision.loss == xp.numbers.Enclosure(0.0, 0.0)
    assert decision.remaining == 0.3
    assert decision.largest_epsilon == Decimal("0.3")
    assert decision.loss_at_worst.upper == pytest.approx(0.1)


def test_the_worst_response_is_the_one_that_attains_the_loss_at_worst() -> None:
    filter_ = xp.BayesianFilter(4)
    odometer = start(ELEVEN).add(power(1), 1)
    decision = filter_.decide(odometer, power(2))
    assert decision.worst_response == 1
    worst = odometer.add(power(2), 1).loss
    assert decision.loss_at_worst.lower <= worst.upper
    assert worst.lower <= decision.loss_at_worst.upper
    query = xp.randomized_response(epsilon=1)
    assert filter_.decide(odometer, query).worst_response == 10


def test_impossible_and_revealing_responses() -> None:
    domain = xp.FiniteSet(list("ab"))
    harmless = xp.channel([[0, "1/2", "1/2"], [0, "1/2", "1/2"]])
    revealing = xp.channel([[0, 1], ["1/2", "1/2"]])
    for kind in FILTERS:
        assert kind("0.1").decide(start(domain), harmless).accepted
        decision = kind(400).decide(start(domain), revealing)
        assert not decision.accepted
        assert decision.loss_at_worst == xp.numbers.Enclosure(math.inf, math.inf)
        ruined = start(domain).add(revealing, 0)
        refused = kind(400).decide(ruined, harmless)
        assert not refused.accepted
        assert refused.remaining == 0
        assert refused.largest_epsilon is None


@settings(max_examples=200, deadline=None)
@given(menus(responses=16), st.data())
def test_the_simplified_filter_accepts_exactly_what_algorithm_3_accepts(
    menu: Menu, data: st.DataObject
) -> None:
    odometer, likelihoods = start(menu.domain), [Fraction(1)] * len(menu.domain)
    for query in menu.queries:
        worst, loss = oracles.epsilon_of(menu.columns(query)), oracles.ratio(likelihoods)
        assert worst is not None
        assert loss is not None
        accepted = xp.SimplifiedFilter.of(menu.budget).decide(odometer, query).accepted
        assert accepted is oracles.at_most(loss * worst, **menu.limits)
        position = data.draw(st.integers(0, len(menu.columns(query)) - 1))
        odometer = odometer.add(query, query.on(menu.domain).responses[position])
        column = menu.columns(query)[position]
        likelihoods = [p * q for p, q in zip(likelihoods, column, strict=True)]


@given(menus())
def test_reported_numbers_enclose_the_exact_ones(menu: Menu) -> None:
    odometer = start(menu.domain)
    first, second, _ = menu.queries
    odometer = odometer.add(first, first.on(menu.domain).responses[0])
    decision = xp.BayesianFilter.of(menu.budget).decide(odometer, second)
    table = columns(first, menu.domain)[0]
    ratios = [
        oracles.ratio([p * q for p, q in zip(table, column, strict=True)])
        for column in columns(second, menu.domain)
    ]
    worst = Nats(ratio=max(r for r in ratios if r is not None)).enclosure
    assert decision.loss_at_worst.lower <= worst.lower
    assert worst.upper <= decision.loss_at_worst.upper
    assert decision.loss_at_worst.width < 1e-12
    left = menu.budget.enclosure.lower - odometer.loss.upper
    assert 0 <= decision.remaining <= max(0.0, left)


def test_basic_adds_channels_and_nominal_epsilons_exactly() -> None:
    filter_ = xp.BasicFilter(ratio=4)
    odometer = start().add(power_of_two(), 0)
    assert filter_.decide(odometer, power_of_two()).accepted
    odometer = odometer.add(power_of_two(), 1)
    assert not filter_.decide(odometer, xp.randomized_response(epsilon="1e-10")).accepted
    assert filter_.decide(odometer, xp.channel([["1/2", "1/2"]] * 2)).accepted


def test_a_decision_can_be_sent_elsewhere() -> None:
    decision = xp.BayesianFilter(1).decide(start(), xp.randomized_response(epsilon="0.5"))
    again = pickle.loads(pickle.dumps(decision))
    assert again == decision
    assert again.largest_epsilon == decision.largest_epsilon == 1


def test_a_budget_is_one_thing_or_the_other() -> None:
    for budget in (Nats(Fraction(1), Fraction(2)), Nats(Fraction(-1)), Nats()):
        with pytest.raises(xp.InvalidInput, match="either an epsilon or a ratio"):
            xp.BayesianFilter.of(budget)


class Few(Filter):
    """As the Bayesian filter, and at most two queries."""

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        if len(account) + times > 2:
            return OVER_ANY_BUDGET
        return account.worst_after(query, times, self.budget)


def test_the_worst_case_is_all_that_a_filter_of_ones_own_has_to_give() -> None:
    query, filter_ = xp.randomized_response(epsilon="0.1"), Few(5)
    session = xp.Session(PAIR, 1, filter=filter_)
    session.ask(query)
    response = session.ask(query)
    with pytest.raises(xp.BudgetExceeded):
        session.ask(query)
    assert not filter_.accepts(session.odometer, query)
    assert filter_.count_repeats(start(), query).count == 2
    assert xp.replay(session.transcript).respected
    assert xp.replay(session.transcript.add(query, response)).first_refused == 3


def test_queries_made_by_hand_are_checked_too() -> None:
    for epsilon in (Fraction(0), Fraction(-1), Fraction(501)):
        with pytest.raises(xp.InvalidInput, match="epsilon"):
            xp.randomized_response(epsilon=1).with_epsilon(epsilon)
