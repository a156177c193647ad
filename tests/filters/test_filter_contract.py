"""The contract that every filter keeps, whatever its rule, checked against fractions.

The filters are those of ``support.filter_cases``: a new one joins by a line there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import expost as xp
from expost.files.canonical import json_text, readable_tree
from expost.files.reading import parse
from expost.filters import (
    FILTERS,
    BayesianFilter,
    Decision,
    Filter,
    SimplifiedFilter,
    filter_from_json,
)
from expost.filters.rules import RULES
from expost.loss import Odometer
from expost.numbers import exact
from expost.sampling import InsecureSource
from support.filter_cases import (
    CASES,
    DELTA,
    DOMAIN,
    QUERIES,
    RULE_CASES,
    USER_FILTERS,
    Half,
    HalfAfter,
)
from support.panel_cases import play
from support.random_cases import Menu, menus

History = tuple[tuple[str, int], ...]
"""Names of queries, and positions of responses."""

each_filter = pytest.mark.parametrize("name", CASES)

BUDGETS = [Fraction(11, 10), Fraction(2), Fraction(9, 4), Fraction(4)]
"""Ratios of likelihoods."""

HISTORIES: list[History] = [
    history
    for length in range(3)
    for history in itertools.product([("first", 0), ("second", 1), ("a little", 2)], repeat=length)
]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, filter_class in USER_FILTERS.items():
        monkeypatch.setitem(FILTERS, kind, filter_class)


def transcript_of(history: History, filter_: Filter | None = None) -> xp.Transcript:
    transcript = xp.Transcript(DOMAIN, filter=filter_)
    for name, position in history:
        transcript = transcript.add_position(QUERIES[name], position)
    return transcript


def odometer_of(history: History) -> Odometer:
    return Odometer(transcript_of(history))


def shown(decision: Decision) -> str:
    return repr(decision.tree())


def accepted(filter_: Filter, odometer: Odometer) -> list[bool]:
    """Which queries a filter accepts, in both ways of deciding."""
    results = [filter_.decide(odometer, query).accepted for query in QUERIES.values()]
    assert [filter_.accepts(odometer, query) for query in QUERIES.values()] == results
    return results


def test_every_filter_and_every_rule_is_in_the_table() -> None:
    filters = [make(1) for make in CASES.values()]
    assert {filter_.kind for filter_ in filters} == set(FILTERS)
    assert {rule.kind for rule in RULE_CASES.values()} == set(RULES)


@each_filter
def test_a_filter_is_read_as_it_was_written(name: str) -> None:
    for filter_ in (CASES[name]("0.7"), CASES[name](ratio="9/4")):
        document = {"kind": filter_.kind, **filter_.tree()}
        again = filter_from_json(parse(json_text(readable_tree(document))))
        assert again == filter_
        assert type(again) is type(filter_)


@each_filter
@pytest.mark.parametrize("budget", [0, -1, math.nan, math.inf, "x", True])
def test_a_budget_is_a_positive_number(name: str, budget: object) -> None:
    with pytest.raises(xp.InvalidInput, match="epsilon"):
        CASES[name](budget)


@each_filter
def test_nothing_more_than_a_tiny_budget_is_accepted_without_a_delta(name: str) -> None:
    filter_ = CASES[name]("1e-30")
    expected = [query == "nothing" for query in QUERIES]
    if filter_.pure:
        assert accepted(filter_, odometer_of(())) == expected


# -- the guarantee -------------------------------------------------------------------------------


def likelihoods(name: str) -> list[list[Fraction]]:
    """A row for each response: its probability for each value, as it is sampled."""
    likelihood = QUERIES[name].on(DOMAIN)
    pmfs = [likelihood.pmf(value) for value in range(len(DOMAIN))]
    positions = range(len(likelihood.responses))
    return [[Fraction(pmf.weight(y), pmf.total) for pmf in pmfs] for y in positions]


LIKELIHOODS = {name: likelihoods(name) for name in QUERIES}


def endings(
    filter_: Filter, odometer: Odometer, joint: list[Fraction], names: tuple[str, ...]
) -> Iterator[list[Fraction]]:
    """The probabilities of all transcripts of an analyst who asks so many queries in turn."""
    if not names:
        yield joint
        return
    query, following = QUERIES[names[0]], names[1:]
    if not filter_.decide(odometer, query).accepted:
        yield from endings(filter_, odometer, joint, following)
        return
    for position, column in enumerate(LIKELIHOODS[names[0]]):
        after = [p * q for p, q in zip(joint, column, strict=True)]
        if any(after):
            yield from endings(filter_, odometer.add_position(query, position), after, following)


@each_filter
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "names",
    [
        ("first", "second", "first", "second", "first"),
        ("a little", "three responses", "for certain", "first", "three responses"),
    ],
    ids=("in turn", "mixed"),
)
def test_no_analyst_learns_more_than_the_budget(
    name: str, budget: Fraction, names: tuple[str, ...]
) -> None:
    filter_ = CASES[name](ratio=budget)
    transcripts = list(endings(filter_, odometer_of(()), [Fraction(1)] * len(DOMAIN), names))
    assert [sum(column) for column in zip(*transcripts, strict=True)] == [1] * len(DOMAIN)
    for x, other in itertools.permutations(range(len(DOMAIN)), 2):
        excess = sum(max(Fraction(0), joint[x] - budget * joint[other]) for joint in transcripts)
        assert excess <= (0 if filter_.pure else exact(DELTA))


@each_filter
def test_a_larger_budget_accepts_no_less(name: str) -> None:
    for history in HISTORIES:
        odometer = odometer_of(history)
        by_budget = [accepted(CASES[name](ratio=budget), odometer) for budget in BUDGETS]
        for smaller, larger in itertools.pairwise(by_budget):
            assert all(a <= b for a, b in zip(smaller, larger, strict=True)), history


@each_filter
def test_more_of_a_query_never_costs_less(name: str) -> None:
    for history in HISTORIES:
        odometer, filter_ = odometer_of(history), CASES[name](ratio=4)
        for query in QUERIES.values():
            cases = [filter_.worst_case(odometer, query, times) for times in range(1, 5)]
            fits = [case.within(filter_.budget) for case in cases]
            assert fits == sorted(fits, reverse=True)
            count = filter_.count_repeats(odometer, query).count
            assert count is None or count >= 4 or fits == [times <= count for times in range(1, 5)]


@pytest.mark.parametrize(
    ("half", "of_half"), [(Half, SimplifiedFilter), (HalfAfter, BayesianFilter)]
)
def test_what_an_account_compares_with_half_of_a_budget_fits_into_that_half(
    half: type[Half], of_half: type[Filter]
) -> None:
    for ratio in range(2, 17):
        filter_ = half(ratio=ratio)
        alone = of_half.of(filter_.half)
        for history in HISTORIES:
            odometer = odometer_of(history)
            assert accepted(filter_, odometer) == accepted(alone, odometer)


def test_a_refusal_within_the_budget_says_that_the_filter_allows_less() -> None:
    session = xp.Session(xp.FiniteSet(["no", "yes"]), "no", filter=HalfAfter(2))
    with pytest.raises(
        xp.BudgetExceeded,
        match=r"could reach 1.5. That is within the budget of 2, but the filter allows less now.",
    ):
        session.ask(xp.randomized_response(epsilon="1.5"))


def test_a_refusal_over_any_budget_says_that_a_response_is_impossible() -> None:
    session = xp.Session(xp.FiniteSet(["no", "yes"]), "no", filter=BayesianFilter(1))
    with pytest.raises(
        xp.BudgetExceeded,
        match="a response that is impossible for some value would reveal without bound, over",
    ):
        session.ask(xp.channel([[1, 0], ["0.5", "0.5"]]))


# Each accepts whatever those before it do.
CHAINS = [
    ("basic", "simplified", "bayesian"),
    ("half", "simplified"),
    ("half", "half-after", "bayesian"),
    ("few", "bayesian"),
    ("basic", "composition sums"),
    *(
        chain
        for rule in RULE_CASES
        for chain in (
            ("bayesian", f"approximate {rule}"),
            (f"composition {rule}", f"approximate {rule}"),
        )
    ),
]


@pytest.mark.parametrize("names", CHAINS, ids=" < ".join)
@settings(max_examples=25, deadline=None)
@given(menu=menus(length=6), seed=st.integers(0, 2**32 - 1))
def test_a_better_filter_accepts_whatever_a_simpler_one_does(
    names: tuple[str, ...], menu: Menu, seed: int
) -> None:
    source, odometer = InsecureSource(seed), Odometer(xp.Transcript(menu.domain))
    limit = menu.budget
    budget = {"ratio": limit.ratio} if limit.ratio != 1 else {"epsilon": limit.rational}
    filters = [CASES[name](**budget) for name in names]
    for query in (*menu.queries, *menu.queries):
        fits = [filter_.decide(odometer, query).accepted for filter_ in filters]
        assert fits == sorted(fits)
        if fits[-1]:
            position = source.below(len(query.on(menu.domain).responses))
            odometer = odometer.add_position(query, position)


# -- a decision is a function of the transcript --------------------------------------------------


@each_filter
def test_a_decision_depends_on_nothing_but_the_transcript(name: str) -> None:
    filter_ = CASES[name](ratio=4)
    for history in HISTORIES[::4]:
        odometer = odometer_of(history)
        again = xp.Transcript.from_json(transcript_of(history, filter_).to_json())
        assert again.filter == filter_
        for query in QUERIES.values():
            first = shown(filter_.decide(odometer, query))
            for other in QUERIES.values():  # dry runs
                filter_.decide(odometer, other)
            assert shown(filter_.decide(odometer, query)) == first
            assert again.filter is not None
            assert shown(again.filter.decide(Odometer(again), query)) == first
            assert shown(filter_.decide(again, query)) == first


@each_filter
def test_the_order_of_exchanges_does_not_matter(name: str) -> None:
    filter_ = CASES[name](ratio=4)
    exchanges = [("first", 0), ("a little", 2), ("three responses", 1)]
    orders = [odometer_of(order) for order in itertools.permutations(exchanges)]
    assert len({tuple(accepted(filter_, odometer)) for odometer in orders}) == 1


@each_filter
@pytest.mark.parametrize("seed", range(4))
def test_a_replay_agrees_with_the_decisions_and_a_refusal_changes_nothing(
    name: str, seed: int
) -> None:
    filter_ = CASES[name](ratio=Fraction(9, 4))
    source = InsecureSource(seed)
    session = xp.Session(DOMAIN, 1, filter=filter_, source=source)
    names, refused = list(QUERIES), 0
    for _ in range(24):
        query = QUERIES[names[source.below(len(names))]]
        before, decision = session.transcript, filter_.decide(session.odometer, query)
        if decision.accepted:
            session.ask(query)
            assert len(session.transcript) == len(before) + 1
            continue
        refused += 1
        with pytest.raises(xp.BudgetExceeded):
            session.ask(query)
        assert session.transcript == before
        assert shown(filter_.decide(session.odometer, query)) == shown(decision)
        broken = xp.replay(before.add_position(query, 1))
        assert broken.first_refused == len(before) + 1
        assert not broken.respected
    assert refused
    assert xp.replay(session.transcript).respected
    assert xp.replay(session.transcript).first_refused is None


@each_filter
@pytest.mark.parametrize("seed", range(2))
def test_many_subjects_are_decided_as_each_alone(name: str, seed: int) -> None:
    play(CASES[name]("0.5"), subjects=8, seed=seed, size=3, rounds=8)
