"""Accounting methods on a transcript: against formulas of their own, after every exchange."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import pytest

import expost as xp
from expost.numbers import Nats
from expost.report._comparison import budget_and_delta, composition_costs, composition_filters
from support import oracles

PAIR = xp.FiniteSet(["no", "yes"])
TENTH = xp.randomized_response(epsilon="0.1")
MILLIONTH = Fraction(1, 10**6)


def asked(*epsilons: str, filter_: xp.filters.Filter | None = None) -> xp.Transcript:
    transcript = xp.Transcript(PAIR, filter_)
    for index, epsilon in enumerate(epsilons):
        query = xp.randomized_response(epsilon=epsilon)
        transcript = transcript.add(query, ["no", "yes", "yes"][index % 3])
    return transcript


def rule_of(comparison: xp.report.Comparison, name: str) -> xp.filters.Rule:
    filter_ = comparison.standings[name].filter
    assert isinstance(filter_, xp.filters.CompositionFilter)
    return filter_.rule


def epsilon_of(comparison: xp.report.Comparison, name: str) -> float:
    spent = comparison.standings[name].spent
    assert isinstance(spent, float)
    return spent


def exponents(rule: xp.filters.Rule) -> list[tuple[Fraction, Fraction]]:
    assert isinstance(rule, xp.filters.Renyi | xp.filters.Mixture)
    return list(rule.components)


def accepts(name: str, rule: xp.filters.Rule, budget: float, spent: list[Fraction]) -> bool:
    """What the theorem of a rule says, in other words than the rule's."""
    limit, squares = mpmath.mpf(budget), sum((e**2 for e in spent), Fraction(0))
    if sum(spent) <= Fraction(budget):
        return True
    if name == "basic":
        return False
    if name == "whitehouse":
        return bool(oracles.whitehouse_budget(squares, MILLIONTH) <= limit)
    if name == "rogers":
        with mpmath.workdps(40):
            reals = [mpmath.mpf(e.numerator) / e.denominator for e in spent]
            mean = sum((e * mpmath.expm1(e) / 2 for e in reals), mpmath.mpf(0))
            exact_mean = Fraction(int(mean * 10**30), 10**30)
        return oracles.rogers_accepts(limit, squares, exact_mean, MILLIONTH)
    with mpmath.workdps(40):
        parts = []
        for weight, rate in exponents(rule):
            total = sum((oracles.cumulant(e, rate) for e in spent), mpmath.mpf(0))
            parts.append((weight, rate, Fraction(int(total * 10**30), 10**30)))
        return oracles.mixture_accepts(limit, parts, MILLIONTH)


COMPOSED = ["basic", "rogers", "whitehouse", "renyi", "mixture"]


@pytest.mark.parametrize("name", COMPOSED)
def test_an_epsilon_is_the_least_budget_that_the_theorem_allows(name: str) -> None:
    generator = random.Random(4)
    for _ in range(4):
        epsilons = [
            generator.choice(["0.1", "0.05", "1/3"]) for _ in range(generator.choice([5, 60]))
        ]
        comparison = xp.report.compare(xp.Odometer(asked(*epsilons)), epsilon=3, delta="1e-6")
        found, rule = epsilon_of(comparison, name), rule_of(comparison, name)
        spent = [Fraction(epsilon) for epsilon in epsilons]
        assert accepts(name, rule, found * (1 + 1e-9), spent)
        assert not accepts(name, rule, found * (1 - 1e-9), spent)


@pytest.mark.parametrize("name", COMPOSED)
def test_more_is_what_the_theorem_allows(name: str) -> None:
    spent = [Fraction("0.1")] * 30
    comparison = xp.report.compare(xp.Odometer(asked(*["0.1"] * 30)), epsilon="5.08", delta="1e-6")
    rule, repeats = rule_of(comparison, name), comparison.standings[name].repeats.count
    expected = 0
    while accepts(name, rule, 5.08, [*spent, *[Fraction("0.1")] * (expected + 1)]):
        expected += 1
    assert repeats == expected
    assert expected > 0


def test_nothing_accepts_more_than_the_exact_optimum_allows() -> None:
    comparison = xp.report.compare(xp.Odometer(asked("0.1")), epsilon="5.08", delta="1e-6")
    possible = 111
    assert oracles.optimal_epsilon(Fraction("0.1"), possible, MILLIONTH) <= mpmath.mpf("5.08")
    assert oracles.optimal_epsilon(Fraction("0.1"), possible + 1, MILLIONTH) > mpmath.mpf("5.08")
    counts = {name: 1 + comparison.standings[name].repeats.count for name in COMPOSED}
    assert counts["basic"] == 50
    assert counts["whitehouse"] == 79
    assert counts["renyi"] >= 100
    assert all(count <= possible for count in counts.values())
    assert all(1 + standing.repeats.count >= 50 for standing in comparison.standings.values())


def test_no_rule_costs_more_than_the_sum_of_the_epsilons() -> None:
    for epsilons in (["1"] * 3, ["0.1"] * 10, ["1/3", "1/7"], ["0.01"] * 300):
        comparison = xp.report.compare(xp.Odometer(asked(*epsilons)), epsilon=4, delta="1e-6")
        exact = sum(map(Fraction, epsilons))
        assert epsilon_of(comparison, "basic") == float(exact)
        assert all(epsilon_of(comparison, name) <= float(exact) for name in COMPOSED)
    # Of three large ones they say so; by their own formulas it would be 10.9 and 10.6.
    comparison = xp.report.compare(xp.Odometer(asked(*["1"] * 3)), epsilon=4, delta="1e-6")
    for name in ("basic", "rogers", "whitehouse"):
        assert epsilon_of(comparison, name) == 3.0
        assert comparison.standings[name].repeats.count == 1


def test_the_realized_loss_stands_beside() -> None:
    odometer = xp.Odometer(asked("0.5", "0.5", "0.5"))
    comparison = xp.report.compare(odometer, epsilon=1)
    for name in ("simplified", "bayesian"):
        standing = comparison.standings[name]
        assert standing.spent == xp.realized_loss(odometer.transcript)
        assert standing.repeats.count == 1
    assert epsilon_of(comparison, "basic") == 1.5


def test_the_budget_and_the_delta_are_those_of_the_filter_if_none_are_given() -> None:
    pure = asked("0.5", filter_=xp.BayesianFilter(ratio=3))
    assert budget_and_delta(pure, None, None) == (Nats(ratio=Fraction(3)), MILLIONTH)
    filter_ = xp.ApproximateFilter(4, "0.001", xp.filters.Renyi(7))
    assert budget_and_delta(asked("0.5", filter_=filter_), None, None) == (
        Nats(Fraction(4)),
        Fraction(1, 1000),
    )
    assert budget_and_delta(asked("0.5", filter_=filter_), "2", "0.1") == (
        Nats(Fraction(2)),
        Fraction(1, 10),
    )
    with pytest.raises(xp.InvalidInput, match="names no filter, so there is no budget"):
        budget_and_delta(asked("0.5"), None, None)


def test_the_rule_of_the_filter_is_the_one_that_is_compared() -> None:
    for filter_ in (
        xp.filters.Renyi(7),
        xp.filters.Mixture([3], [1]),
        xp.filters.Whitehouse("1e-7"),
    ):
        transcript = asked("0.5", "0.5", filter_=xp.ApproximateFilter(4, "1e-6", filter_))
        comparison = xp.report.compare(xp.Odometer(transcript))
        assert rule_of(comparison, filter_.kind) == filter_
        assert rule_of(comparison, "renyi") in (
            filter_,
            xp.filters.Renyi.for_plan(4, "1e-6", "0.5"),
        )
    # A part of delta that is larger than delta is said to be, and nothing else fails.
    smaller = xp.report.compare(xp.Odometer(transcript), delta="1e-8")
    assert smaller.missing == {"whitehouse": "must be at most delta"}
    assert smaller.tree()["whitehouse"] is None


def test_a_theorem_that_does_not_allow_the_delta_is_left_out() -> None:
    comparison = xp.report.compare(xp.Odometer(asked("0.5")), epsilon=1, delta="0.4")
    assert comparison.missing == {"rogers": "needs a delta less than 1/e"}
    assert list(comparison.standings) == ["basic", "whitehouse", "renyi", "mixture",
                                          "simplified", "bayesian"]  # fmt: skip


def slip(delta: str) -> xp.queries.Query:
    """Tells the value with probability delta, and nothing else."""
    complement = 1 - Fraction(delta)
    return xp.channel([[complement, delta, 0], [complement, 0, delta]], delta=delta)


def test_queries_with_a_delta_get_half_of_it() -> None:
    transcript = xp.Transcript(PAIR).add(TENTH, "yes").add(slip("1e-7"), 0)
    comparison = xp.report.compare(xp.Odometer(transcript), epsilon=2, delta="1e-6")
    half = Fraction(1, 2 * 10**6)
    for name in ("whitehouse", "renyi", "mixture"):
        assert rule_of(comparison, name).tree()["delta_prime"] == half
    longer = {name: standing.repeats.count for name, standing in comparison.standings.items()}
    # Sums may use all of it, and a filter without delta none.
    assert longer == {"basic": 9, "rogers": 4, "whitehouse": 4, "renyi": 4, "mixture": 4,
                    "simplified": 0, "bayesian": 0}  # fmt: skip
    spent = xp.report.compare(xp.Odometer(transcript.add(slip("1e-6"), 0)), epsilon=2, delta="1e-6")
    assert epsilon_of(spent, "basic") == math.inf
    assert spent.standings["basic"].repeats.count == 0


def test_gaussian_noise_counts_by_its_cumulant_and_needs_no_part_of_delta() -> None:
    box = xp.Box(age=(0, 120))
    query = xp.gaussian({"age": 1}, range=(0, 120), grid=1, sigma=1000)
    transcript = xp.Transcript(box).add(query, 50).add(query, 60)
    comparison = xp.report.compare(xp.Odometer(transcript), epsilon=2, delta="1e-6")
    rule = rule_of(comparison, "renyi")
    assert isinstance(rule, xp.filters.Renyi)
    assert rule.delta_prime is None
    # Two of them are one with a μ of 0.12·√2; about the same order is best for that.
    rate, mu = rule.order - 1, Fraction(120, 1000)
    loss = 2 * float(rate * (rate + 1) * mu**2 / 2) + math.log(1e6)
    loss += float(rate) * math.log(rate) - float(rate + 1) * math.log(rate + 1)
    assert epsilon_of(comparison, "renyi") == pytest.approx(loss / float(rate), rel=1e-6)
    assert comparison.standings["renyi"].repeats.count > comparison.standings["basic"].repeats.count


@pytest.mark.parametrize(
    "first",
    [
        xp.channel([["1/2", "1/2"], ["1/2", "1/2"]]),
        xp.channel([[1, 0], ["1/2", "1/2"]]),
        xp.channel([["1e-250", Fraction(1) - Fraction("1e-250")], ["1/2", "1/2"]]),
        xp.randomized_response(epsilon=500),
        xp.randomized_response(epsilon="1e-30"),
    ],
)
def test_any_first_query_leads_to_some_order(first: xp.queries.Query) -> None:
    transcript = xp.Transcript(PAIR).add(first, first.on(PAIR).responses[1])
    comparison = xp.report.compare(xp.Odometer(transcript.add(TENTH, "yes")), epsilon="0.5")
    assert set(comparison.standings) == {*COMPOSED, "simplified", "bayesian"}


def test_the_costs_of_a_transcript_are_those_of_its_beginnings() -> None:
    epsilons = ["0.1", "1/3", "0.05", "0.5", "0.1"] * 3
    transcript = asked(*epsilons)
    budget = Nats.budget("2.2")
    guards, missing = composition_filters(transcript, budget, MILLIONTH)
    assert missing == {}
    assert list(guards) == COMPOSED
    history = list(composition_costs(xp.Odometer(transcript), list(guards.values())))
    assert len(history) == len(epsilons) + 1
    for count in range(1, len(epsilons) + 1, 4):
        comparison = xp.report.compare(xp.Odometer(asked(*epsilons[:count])), epsilon="2.2")
        for name, case in zip(guards, history[count], strict=True):
            assert case.exact is not None
            assert case.exact().nearest == epsilon_of(comparison, name)
    for before, after in itertools.pairwise(history):
        for earlier, later in zip(before, after, strict=True):
            assert earlier.loss.lower <= later.loss.upper


def test_it_is_a_pure_function() -> None:
    odometer = xp.Odometer(asked("0.1", "0.2", "0.3"))
    first, second = (xp.report.compare(odometer, epsilon=1).tree() for _ in range(2))
    assert first == second
    assert odometer.transcript == asked("0.1", "0.2", "0.3")
    # Which responses were given changes the realized losses alone.
    other = xp.Transcript(PAIR)
    for epsilon in ("0.1", "0.2", "0.3"):
        other = other.add(xp.randomized_response(epsilon=epsilon), "yes")
    third = xp.report.compare(xp.Odometer(other), epsilon=1).tree()
    assert {name: third[name] for name in COMPOSED} == {name: first[name] for name in COMPOSED}
    assert third["bayesian"] != first["bayesian"]


def test_it_says_which_accounting_is_next() -> None:
    stages: list[str] = []
    comparison = xp.report.compare(xp.Odometer(asked("0.1")), epsilon=1, stage=stages.append)
    assert stages == list(comparison.standings)


def test_an_empty_transcript_has_no_last_query() -> None:
    with pytest.raises(xp.InvalidInput, match="has no exchanges"):
        xp.report.compare(xp.Odometer(asked()), epsilon=1)


@pytest.mark.parametrize(
    "filter_", [xp.BasicFilter(1), xp.filters.CompositionFilter(1, "1e-6", xp.filters.Sums())]
)
def test_a_sum_of_epsilons_is_said_without_dust(filter_: xp.filters.Filter) -> None:
    nine, ten = (xp.Odometer(asked(*["0.1"] * count)) for count in (9, 10))
    decision = filter_.decide(nine, TENTH)
    assert decision.loss == Nats(Fraction(9, 10)).enclosure
    assert decision.loss_at_worst == xp.numbers.Enclosure(1.0, 1.0)
    assert ten.spent == filter_.loss(ten) == xp.numbers.Enclosure(1.0, 1.0)
    assert filter_.remaining(ten) == 0.0


def test_an_order_is_for_small_queries_where_sums_accept_as_many_anyway() -> None:
    """With 16 of 1/4 on a budget of 4 every order accepts 16, and which is best is by accident."""

    def accepted(order: Fraction, epsilon: str) -> int:
        filter_ = xp.filters.CompositionFilter(4, MILLIONTH, xp.filters.Renyi(order))
        query = xp.randomized_response(epsilon=epsilon)
        return filter_.count_repeats(xp.Odometer(xp.Transcript(PAIR)), query).count

    chosen, by_accident = xp.filters.Renyi.for_plan(4, MILLIONTH, "0.25").order, Fraction("97.19")
    assert accepted(chosen, "0.25") == accepted(by_accident, "0.25") == 16
    small = [accepted(order, "0.01") for order in (by_accident, chosen - 1, chosen, chosen + 1)]
    assert small[2] == max(small) > 6 * small[0]
    # Where an order accepts more than sums do, it is the best.
    best = xp.filters.Renyi.for_plan(4, MILLIONTH, "0.1").order
    assert best != chosen
    assert accepted(best, "0.1") >= accepted(chosen, "0.1") > 40


def test_parameters_are_shown_wherever_a_comparison_is() -> None:
    comparison = xp.report.compare(asked("0.1", "0.2"), epsilon=5, delta="1e-6")
    order = f"order {float(rule_of(comparison, 'renyi').order):.6g}"  # type: ignore[attr-defined]
    assert comparison.columns()["parameters"][2:4] == ["delta' 1e-06", order]
    assert order in repr(comparison)
    assert order in comparison._repr_html_()
    assert "lambdas from" in repr(comparison)
    assert comparison.beyond == ""
    assert "note" not in repr(comparison)


def test_rules_that_are_made_for_a_budget_say_so_beyond_it() -> None:
    comparison = xp.report.compare(asked(*["0.25"] * 107), epsilon=4)
    said = "above the budget renyi and mixture show little of how good the rule is"
    assert comparison.beyond.startswith(said)
    assert f"note: {said}" in repr(comparison)
    assert epsilon_of(comparison, "renyi") < 20  # 26.195 at the order that is best for 16 of them
