"""How many more of a query a filter accepts: by enumeration of all responses."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import expost as xp
from expost.filters import WorstCase
from expost.filters._acceptance_limits import MOST_REPEATS, Repeats, most_repeats
from expost.numbers import Nats

PURE: list[type[xp.filters.Filter]] = [xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter]
MOST = 5


def by_enumeration(filter_: xp.filters.Filter, start: xp.Odometer, query: xp.queries.Query) -> int:
    """Ask until some sequence of responses leads to a refusal, or the limit is reached."""
    states, count = [start], 0
    while count < MOST and all(filter_.decide(state, query).accepted for state in states):
        count += 1
        after: dict[tuple[str, ...], xp.Odometer] = {}
        for state in states:
            for response in query.on(start.transcript.domain).responses:
                longer = state.add(query, response)
                latest = longer.transcript.exchanges[len(start) :]
                # The order of the responses does not matter to what was learned.
                after[tuple(sorted(str(step.response) for step in latest))] = longer
        states = list(after.values())
    return count


def some_query(generator: random.Random, size: int) -> xp.queries.Query:
    epsilon = generator.choice(["0.1", "1/3", "0.5", "1"])
    match generator.randrange(6):
        case 0:
            return xp.randomized_response(epsilon=epsilon)
        case 1:
            return xp.unary_encoding(epsilon=epsilon)
        case 2:
            scores = [generator.choice([0, 0, 1, 2]) for _ in range(size)]
            return xp.perturbation(scores, range=(0, 2), epsilon=epsilon)
        case _:
            weights = [[generator.choice([1, 1, 2, 3]) for _ in range(2)] for _ in range(size)]
            return xp.channel([[Fraction(w, sum(row)) for w in row] for row in weights])


def some_state(generator: random.Random) -> tuple[xp.Odometer, xp.queries.Query]:
    size = generator.choice([1, 2, 3, 3])
    domain = xp.FiniteSet(range(size))
    first, query = some_query(generator, size), some_query(generator, size)
    odometer = xp.Odometer(xp.Transcript(domain))
    for _ in range(generator.randrange(4)):
        odometer = odometer.add(first, generator.choice(list(first.on(domain).responses)))
    return odometer, generator.choice([first, query])


def some_filter(generator: random.Random, kind: type[xp.filters.Filter]) -> xp.filters.Filter:
    if generator.random() < 0.5:
        return kind(epsilon=generator.choice(["0.5", "1", "1.5"]))
    return kind(ratio=generator.choice(["4", "9/4", "8"]))


@pytest.mark.parametrize("kind", PURE, ids=lambda kind: str(kind.kind))
def test_over_a_finite_domain_it_is_what_all_responses_allow(kind: type[xp.filters.Filter]) -> None:
    generator = random.Random(7)
    for _ in range(40):
        odometer, query = some_state(generator)
        filter_ = some_filter(generator, kind)
        found = filter_.count_repeats(odometer, query)
        assert min(found.count, MOST) == by_enumeration(filter_, odometer, query)
        assert not found.undecided


RULES = [
    xp.filters.Sums(),
    xp.filters.Rogers(),
    xp.filters.Whitehouse("0.01"),
    xp.filters.Renyi(3),
    xp.filters.Mixture([2, 9], [0.9, 0.1]),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.kind))
def test_a_rule_is_asked_until_it_refuses(rule: xp.filters.Rule) -> None:
    generator = random.Random(8)
    for _ in range(8):
        odometer, query = some_state(generator)
        response = query.on(odometer.transcript.domain).responses[0]
        filter_, count, asked = xp.filters.CompositionFilter("2.5", "0.01", rule), 0, odometer
        while count < 30 and filter_.decide(asked, query).accepted:
            asked, count = asked.add(query, response), count + 1
        assert min(filter_.count_repeats(odometer, query).count, 30) == count


def test_a_rule_and_the_realized_loss_are_both_gone_by() -> None:
    generator = random.Random(9)
    for _ in range(6):
        odometer, query = some_state(generator)
        for rule in (xp.filters.Sums(), xp.filters.Renyi(3)):
            filter_ = xp.ApproximateFilter("1.5", "0.01", rule)
            found = filter_.count_repeats(odometer, query).count
            assert min(found, MOST) == by_enumeration(filter_, odometer, query)


def test_ties_are_accepted() -> None:
    # 2/3 against 1/3: ten of them are exactly 2^10, which no double tells from a little less.
    double = xp.channel([["2/3", "1/3"], ["1/3", "2/3"]])
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    for kind in PURE:
        assert kind(ratio=2**10).count_repeats(start, double).count == 10
        assert kind(ratio=2**10 - 1).count_repeats(start, double).count == 9
    third = xp.randomized_response(epsilon="1/3")
    assert (
        xp.filters.CompositionFilter(1, "1e-6", xp.filters.Sums()).count_repeats(start, third).count
        == 3
    )


def test_the_simplified_filter_goes_on_where_the_query_leaves_the_extremes_alone() -> None:
    # The extremes are "a" and "b", and the query tells only "c" from both.
    domain = xp.FiniteSet(["a", "b", "c"])
    first = xp.channel([["1/3", "2/3"], ["2/3", "1/3"], ["1/2", "1/2"]])
    other = xp.perturbation([0, 0, 1], epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(domain)).add(first, 1)
    # The loss is ln 2, which leaves room for two. But it stays there until "c" is 0.1 · m further
    # from "b" than ln 3/2, and before the last of four it is only ln 3/2 + 0.3.
    assert xp.SimplifiedFilter(epsilon="0.9").count_repeats(odometer, other).count == 4
    assert xp.SimplifiedFilter(epsilon="0.7").count_repeats(odometer, other).count == 0
    assert xp.BayesianFilter(epsilon="0.7").count_repeats(odometer, other).count == 2


def test_what_tells_nothing_is_counted_to_a_million() -> None:
    silent = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]])
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(["no", "yes"])))
    for filter_ in (xp.BasicFilter(1), xp.BayesianFilter(1), xp.SimplifiedFilter(1)):
        assert filter_.count_repeats(start, silent) == Repeats(MOST_REPEATS)
    tiny = xp.randomized_response(epsilon="1e-5")
    assert xp.BayesianFilter(1).count_repeats(start, tiny).count == 100_000
    assert xp.BasicFilter(1).count_repeats(start, tiny).count == 100_000


def test_a_filter_without_delta_accepts_no_query_with_one() -> None:
    slip = xp.channel([["0.9", "0.1", 0], ["0.9", 0, "0.1"]], delta="0.1")
    start = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    assert xp.BayesianFilter(1).count_repeats(start, slip) == Repeats(0)
    assert xp.filters.CompositionFilter(1, "0.3", xp.filters.Sums()).count_repeats(
        start, slip
    ) == Repeats(3)


def test_it_grows_with_the_budget() -> None:
    generator = random.Random(10)
    for _ in range(10):
        odometer, query = some_state(generator)
        for kind in PURE:
            counts = [
                kind(epsilon=e).count_repeats(odometer, query).count for e in ("0.5", "1", "2.5")
            ]
            assert counts == sorted(counts)


BOX = xp.Box(x=(-1, 1), y=(0, 1))
RISING = xp.logistic({"x": 1, "y": -0.5}, epsilon="0.5")
STRAIGHT = xp.linear({"x": 1}, range=(-1, 1), epsilon="0.4")


@pytest.mark.parametrize("query", [RISING, STRAIGHT], ids=["logistic", "linear"])
@pytest.mark.parametrize("kind", [xp.SimplifiedFilter, xp.BayesianFilter])
def test_over_a_box_it_is_what_all_responses_allow(
    kind: type[xp.filters.Filter], query: xp.queries.Query
) -> None:
    odometer = xp.Odometer(xp.Transcript(BOX)).add(RISING, 1).add(RISING, 1)
    for epsilon in ("0.6", "1.1", "1.7"):
        filter_ = kind(epsilon=epsilon)
        found = filter_.count_repeats(odometer, query).count
        assert min(found, MOST) == by_enumeration(filter_, odometer, query)


def test_over_a_box_a_search_without_an_end_counts_as_a_refusal() -> None:
    generator = random.Random(3)
    names = [f"x{index}" for index in range(6)]
    box = xp.Box(**dict.fromkeys(names, (-1, 1)))
    odometer = xp.Odometer(xp.Transcript(box), effort=xp.solver.Effort(nodes=1))
    for _ in range(12):
        weights = {name: generator.uniform(-4, 4) for name in names}
        query = xp.logistic(weights, epsilon="0.5")
        odometer = odometer.add(query, generator.randrange(2))
    found = xp.BayesianFilter(epsilon="6.2").count_repeats(odometer, query)
    assert found.undecided
    more = xp.Odometer(odometer.transcript, effort=xp.solver.Effort(nodes=2000))
    assert xp.BayesianFilter(epsilon="6.2").count_repeats(more, query).count >= found.count


def test_noise_with_many_responses_is_counted_by_its_epsilon() -> None:
    noisy = xp.piecewise({"x": 1}, range=(-1, 1), grid="0.125", epsilon="0.5")
    assert noisy.on(BOX).sufficient is None
    odometer = xp.Odometer(xp.Transcript(BOX))
    for kind in (xp.SimplifiedFilter, xp.BayesianFilter):
        assert kind(epsilon="1.6").count_repeats(odometer, noisy).count == 3


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 7, 8, 9, 1000, MOST_REPEATS - 1, MOST_REPEATS])
def test_the_search_finds_any_number(limit: int) -> None:
    tried = []

    def worst_case(times: int) -> WorstCase:
        tried.append(times)
        return WorstCase(xp.numbers.Enclosure(times, times))

    budget = Nats(Fraction(2 * limit + 1, 2))
    assert most_repeats(worst_case, budget) == Repeats(limit)
    assert len(tried) <= 45
    assert max(tried) <= MOST_REPEATS


def test_what_is_no_odometer_or_no_query_is_one_clear_line() -> None:
    transcript, filter_ = xp.Transcript(xp.FiniteSet([0, 1])), xp.BayesianFilter(epsilon=1)
    given: list[tuple[Any, Any]] = [
        (transcript.domain, xp.randomized_response(epsilon=1)),
        (xp.Odometer(transcript), "randomized_response"),
    ]
    for odometer, query in given:
        with pytest.raises(xp.InvalidInput):
            filter_.count_repeats(odometer, query)
