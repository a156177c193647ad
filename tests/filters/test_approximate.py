"""Filters with a delta: what they accept, that they are pure, and where they may not go."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import expost as xp
from expost.domains import Domain
from expost.filters import FILTERS
from expost.filters._approximate import ApproximateFilter
from expost.filters._composition import CompositionFilter
from expost.filters.rules import Total
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import Query

PAIR = xp.FiniteSet([0, 1])
TENTH = xp.randomized_response(epsilon="0.1")
MILLIONTH = "0.000001"
RULES = [
    xp.filters.Sums(),
    xp.filters.Rogers(),
    xp.filters.Whitehouse("5e-7"),
    xp.filters.Renyi("6.3"),
    xp.filters.Renyi("6.3", delta_prime="5e-7"),
    xp.filters.Mixture.for_budget("5.08", "1e-6"),
]
KINDS: list[type[CompositionFilter]] = [CompositionFilter, ApproximateFilter]
every_filter = pytest.mark.parametrize(
    "filter_", [kind("5.08", MILLIONTH, rule) for rule in RULES for kind in KINDS], ids=repr
)


def asked(*queries: Query, responses: list[int] | None = None) -> Odometer:
    odometer = Odometer(xp.Transcript(PAIR))
    for index, query in enumerate(queries):
        odometer = odometer.add(query, responses[index] if responses else index % 2)
    return odometer


def telling(delta: Fraction) -> Query:
    """Tells the value with probability delta, and nothing else: (0, delta)-LDP."""
    rows = [[1 - delta, delta, 0], [1 - delta, 0, delta]]
    return xp.channel(rows, delta=delta)


@pytest.mark.parametrize(
    ("rule", "count"), list(zip(RULES, [50, 50, 76, 100, 95, 99], strict=True))
)
def test_alone_a_rule_goes_as_far_as_its_theorem(rule: xp.filters.Rule, count: int) -> None:
    filter_, odometer = CompositionFilter("5.08", MILLIONTH, rule), asked()
    while filter_.decide(odometer, TENTH).accepted:
        odometer = odometer.add(TENTH, 1)
    assert len(odometer) == count
    assert filter_.holds(odometer)
    assert not filter_.holds(odometer.add(TENTH, 1))


def test_what_adds_up_to_the_budget_fits_exactly() -> None:
    third = xp.randomized_response(epsilon="1/3")
    for rule in (xp.filters.Sums(), xp.filters.Renyi(2), xp.filters.Mixture([1], [1])):
        filter_ = CompositionFilter("1", "0.001", rule)
        assert filter_.decide(asked(third, third), third).accepted
        assert not filter_.decide(asked(third, third, third), xp.randomized_response("1e-30"))
    doubling = xp.channel([["2/3", "1/3"], ["1/3", "2/3"]])
    filter_ = CompositionFilter(ratio=4, delta="0.001", rule=xp.filters.Sums())
    assert filter_.decide(asked(doubling), doubling).accepted
    assert not filter_.decide(asked(doubling, doubling), xp.randomized_response("1e-30"))


@every_filter
def test_every_beginning_of_what_was_accepted_would_have_been_accepted(
    filter_: CompositionFilter,
) -> None:
    generator, odometer = random.Random(1), asked()
    queries: list[Query] = []
    for _ in range(40):
        query = xp.randomized_response(epsilon=str(generator.choice([0.05, 0.3, 0.9])))
        if filter_.decide(odometer, query).accepted:
            odometer = odometer.add(query, generator.randint(0, 1))
            queries.append(query)
    assert len(queries) > 5
    again = asked()
    for exchange in odometer.transcript.exchanges:
        assert filter_.accepts(again, exchange.query)
        again = again.add(exchange.query, exchange.response)
        assert filter_.holds(again)


@every_filter
def test_a_refusal_and_dry_runs_change_nothing(filter_: CompositionFilter) -> None:
    odometer, large = asked(*[TENTH] * 30), xp.randomized_response(epsilon=6)
    before = filter_.decide(odometer, TENTH)
    assert not filter_.decide(odometer, large).accepted
    assert filter_.decide(odometer, TENTH) == before
    # The running sums are those of the transcript, however it came about.
    fresh = Odometer(odometer.transcript)
    assert filter_.decide(fresh, TENTH) == before
    assert fresh.total(filter_.rule) == odometer.total(filter_.rule)


@every_filter
def test_sums_do_not_depend_on_when_they_are_first_asked_for(filter_: CompositionFilter) -> None:
    early, late = asked(), asked()
    early.total(filter_.rule)
    for epsilon in ("0.1", "0.7", "1/3", "0.1"):
        query = xp.randomized_response(epsilon=epsilon)
        early, late = early.add(query, 0), late.add(query, 0)
    assert early.total(filter_.rule) == late.total(filter_.rule)


def test_where_the_rule_ends_the_realized_loss_goes_on() -> None:
    rule = xp.filters.Whitehouse(MILLIONTH)
    filter_, alone = (
        ApproximateFilter("5.08", MILLIONTH, rule),
        CompositionFilter("5.08", MILLIONTH, rule),
    )
    odometer = asked(*[TENTH] * 79)
    decision = filter_.decide(odometer, TENTH)
    assert not alone.decide(odometer, TENTH).accepted
    assert decision.accepted
    assert decision.loss == alone.loss(odometer)
    assert decision.loss_at_worst.upper == pytest.approx(0.2)
    assert decision.worst_response is not None
    later = odometer.add(TENTH, 1)
    assert filter_.loss(later) == later.loss
    assert filter_.holds(later)
    assert not alone.holds(later)
    # With answers that agree it ends where the Bayesian filter does.
    odometer = asked(*[TENTH] * 79, responses=[1] * 79)
    assert not filter_.decide(odometer, TENTH).accepted
    assert filter_.decide(odometer, TENTH).largest_epsilon is not None
    assert filter_.holds(odometer)
    assert not filter_.holds(odometer.add(TENTH, 1))


def test_the_rule_never_accepts_again_on_its_own_account() -> None:
    # ε_g = 1: RR(0.1) twice, answered 1 and 0, then RR(1), which only the Bayesian filter accepts,
    # then RR(0.1), which Whitehouse would accept alone. After all the excess would be 0.0182.
    one = xp.randomized_response(epsilon=1)
    rule = xp.filters.Whitehouse(MILLIONTH)
    filter_, alone = ApproximateFilter(1, MILLIONTH, rule), CompositionFilter(1, MILLIONTH, rule)
    odometer = asked(TENTH, TENTH, responses=[1, 0])
    assert not alone.decide(odometer, one).accepted
    assert filter_.decide(odometer, one).accepted
    assert alone.decide(odometer, TENTH).accepted
    assert not filter_.decide(odometer.add(one, 1), TENTH).accepted
    # ε_g = ln 8, sums: RR(ln 2) twice, answered 1 and 0, then RR(ln 8); RR(ln 2) would follow.
    two = xp.channel([["2/3", "1/3"], ["1/3", "2/3"]])
    eight = xp.channel([["8/9", "1/9"], ["1/9", "8/9"]])
    filter_ = ApproximateFilter(ratio=8, delta="0.001", inner=xp.filters.Sums())
    odometer = asked(two, two, responses=[1, 0])
    assert filter_.decide(odometer, eight).accepted
    assert not filter_.decide(odometer.add(eight, 1), two).accepted


LADDER = [Fraction(2), Fraction(4)]
MENU = [xp.channel([[r / (1 + r), 1 / (1 + r)], [1 / (1 + r), r / (1 + r)]]) for r in LADDER]


def game(
    filter_: CompositionFilter, odometer: Odometer, own: Fraction, other: Fraction
) -> Fraction:
    """The largest excess at e^ε = 8 of any analyst who asks up to five times from the menu."""
    best = max(Fraction(0), own - 8 * other)
    for query, r in zip(MENU, LADDER, strict=True):
        if len(odometer) < 5 and filter_.accepts(odometer, query):
            heavy, light = r / (1 + r), 1 / (1 + r)
            ways = (own * heavy, other * light), (own * light, other * heavy)
            after = (game(filter_, odometer.add(query, y), *way) for y, way in enumerate(ways))
            best = max(best, sum(after, Fraction(0)))
    return best


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rule",
    [
        xp.filters.Sums(),
        xp.filters.Whitehouse("0.1"),
        xp.filters.Renyi(4),
        xp.filters.Mixture([1, 4], ["0.5", "0.5"]),
    ],
    ids=repr,
)
def test_a_game_in_fractions_stays_within_delta(
    kind: type[CompositionFilter], rule: xp.filters.Rule
) -> None:
    filter_ = kind(None, "0.1", rule, ratio=8)
    assert game(filter_, asked(), Fraction(1), Fraction(1)) <= Fraction(1, 10)


@every_filter
def test_what_is_held_exactly_is_what_is_held(filter_: CompositionFilter) -> None:
    for count in (0, 30, 120):
        odometer = asked(*[TENTH] * count)
        assert filter_.exact_loss(odometer).nearest == pytest.approx(filter_.loss(odometer).upper)


def test_a_pure_filter_refuses_a_delta_with_a_clear_line() -> None:
    query = telling(Fraction(1, 10**7))
    for pure in (xp.BasicFilter(1), xp.SimplifiedFilter(1), xp.BayesianFilter(1)):
        with pytest.raises(xp.InvalidInput) as caught:
            pure.decide(asked(), query)
        assert str(caught.value) == "query: needs a filter with a delta, such as ApproximateFilter"
        # Not even one of which no response exceeds the budget.
        assert not pure.accepts(asked(), xp.channel([["1/2", "1/2"]] * 2, delta="0.1"))
        session = xp.Session(PAIR, 0, filter=pure)
        with pytest.raises(xp.InvalidInput):
            session.ask(query)
        assert len(session.transcript) == 0
    # And where one is in a transcript already, sums of epsilons say nothing of the loss.
    assert asked(query, responses=[0]).spent.upper == math.inf


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (xp.filters.Sums(), 10),
        (xp.filters.Rogers(), 5),
        (xp.filters.Whitehouse("4e-7"), 6),
        (xp.filters.Renyi(8), 0),
        (xp.filters.Renyi(8, delta_prime="3e-7"), 7),
        (xp.filters.Mixture([9], [1], delta_prime="1e-6"), 0),
    ],
    ids=repr,
)
def test_deltas_are_counted_up_to_what_was_set_aside(rule: xp.filters.Rule, most: int) -> None:
    filter_, odometer = CompositionFilter(2, MILLIONTH, rule), asked()
    query = telling(Fraction(1, 10**7))
    while filter_.decide(odometer, query).accepted:
        odometer = odometer.add(query, 0)
    assert len(odometer) == most
    assert filter_.decide(odometer, query).loss_at_worst.upper == math.inf


def test_gaussian_noise_counts_by_its_cumulant_where_that_is_better() -> None:
    person = xp.Box(age=(0, 100))
    query = xp.gaussian({"age": 1}, range=(0, 100), grid=10, sigma=1500, delta="1e-8")
    counts = []
    for rule in (
        xp.filters.Sums(),
        xp.filters.Whitehouse("5e-7"),
        xp.filters.Mixture.for_budget(2, MILLIONTH),
    ):
        filter_, odometer = CompositionFilter(2, MILLIONTH, rule), Odometer(xp.Transcript(person))
        while filter_.decide(odometer, query).accepted:
            odometer = odometer.add(query, 50)
        counts.append(len(odometer))
    assert counts == [6, 6, 39]


def test_a_session_and_its_file_work_with_such_a_filter(tmp_path: Path) -> None:
    filter_ = ApproximateFilter("0.5", "1e-3", xp.filters.Renyi(20))
    session = xp.Session(PAIR, 1, filter=filter_, source=xp.sampling.InsecureSource(1))
    for _ in range(4):
        session.ask(TENTH)
    assert session.remaining == filter_.remaining(session.odometer)
    path = tmp_path / "subject.json"
    session.transcript.save(path)
    again = xp.FileSession(path, 1, source=xp.sampling.InsecureSource(2))
    assert again.transcript.content_id == session.transcript.content_id
    assert again.decide(TENTH) == session.decide(TENTH)
    while again.decide(TENTH).accepted and len(again.transcript) < 60:
        again.ask(TENTH)
    assert filter_.holds(Odometer(xp.load_transcript(path)))


@every_filter
def test_a_file_names_the_filter_and_all_that_its_theorem_needs(filter_: CompositionFilter) -> None:
    transcript = xp.Transcript(PAIR, filter_).add(TENTH, 1)
    again = xp.Transcript.from_json(transcript.to_json())
    assert again == transcript
    assert again.content_id == transcript.content_id
    assert again.filter == filter_
    assert type(again.filter) is type(filter_)
    other = type(filter_)("5.08", "0.000002", filter_.rule)
    assert xp.Transcript(PAIR, other).content_id != xp.Transcript(PAIR, filter_).content_id


def test_a_fresh_process_decides_alike(tmp_path: Path) -> None:
    filter_ = ApproximateFilter("5.08", MILLIONTH)
    transcript = xp.Transcript(PAIR, filter_)
    for index in range(90):
        transcript = transcript.add(TENTH, int(index % 3 == 0))
    transcript.save(tmp_path / "subject.json")
    query = tmp_path / "query.json"
    query.write_text('{"kind": "randomized_response", "epsilon": "0.9"}')
    start = [sys.executable, "-c", "from expost.cli.main import main; main()"]
    arguments = ["decide", str(tmp_path / "subject.json"), "--query", str(query), "--json"]
    shown = subprocess.run([*start, *arguments], capture_output=True, check=True, text=True).stdout
    decision = filter_.decide(Odometer(transcript), xp.randomized_response(epsilon="0.9"))
    told = json.loads(shown)
    assert told["accepted"] is decision.accepted
    assert told["loss_at_worst"]["upper"] == decision.loss_at_worst.upper
    assert told["largest_epsilon"] == str(decision.largest_epsilon)


def test_many_different_queries_are_priced_twice_each(monkeypatch: pytest.MonkeyPatch) -> None:
    # Once to decide and once to add, so that time grows linearly; a clock would be less sure.
    price, priced = xp.filters.Mixture.price, list[Query]()

    def counted(rule: xp.filters.Mixture, query: Query, domain: Domain) -> Total:
        priced.append(query)
        return price(rule, query, domain)

    monkeypatch.setattr(xp.filters.Mixture, "price", counted)
    filter_, odometer = ApproximateFilter(20, MILLIONTH), asked()
    for n in range(300):
        query = xp.randomized_response(epsilon=Fraction(1, 20 + n))
        assert filter_.decide(odometer, query).accepted
        odometer = odometer.add(query, 0)
    assert len(priced) == 600


def test_a_filter_without_a_rule_takes_the_mixture_for_its_budget() -> None:
    assert ApproximateFilter("5.08", MILLIONTH).inner == xp.filters.Mixture.for_budget(
        "5.08", MILLIONTH
    )
    assert repr(ApproximateFilter(4, "1e-6", xp.filters.Renyi(8))) == (
        "ApproximateFilter(epsilon=4, delta=0.000001, Renyi(order=8))"
    )
    assert ApproximateFilter(ratio=3, delta="1e-6").budget == Nats(ratio=Fraction(3))


BAD = [
    ({"delta": "0"}, "filter.delta: must be between 0 and 1, not 0"),
    ({"delta": "1"}, "filter.delta: must be between 0 and 1, not 1"),
    ({"delta": "-1e-6"}, "filter.delta: must be between 0 and 1, not -1e-6"),
    ({"delta": float("nan")}, "filter.delta: must be a finite number, not NaN"),
    ({"delta": float("inf")}, "filter.delta: must be a finite number, not Infinity"),
    ({"delta": None}, "filter.delta: must be a number, not NoneType"),
    ({"epsilon": float("nan")}, "filter.epsilon: must be a finite number, not NaN"),
    ({"epsilon": "0"}, "filter.epsilon: must be greater than 0, not 0"),
    ({"ratio": 2}, "filter: give either epsilon or ratio"),
    ({"inner": None}, "filter.inner: must be an object"),
    ({"inner": {"kind": "renyi", "order": 1}}, "filter.inner.order: must be greater than 1, not 1"),
    (
        {"inner": {"kind": "whitehouse", "delta_prime": "2e-6"}},
        "filter.inner.delta_prime: must be at most delta",
    ),
    (
        {"inner": {"kind": "renyi", "order": 4, "delta_prime": "2e-6"}},
        "filter.inner.delta_prime: must be at most delta",
    ),
    ({"inner": {"kind": "rogers"}, "delta": "0.4"}, "filter.inner: needs a delta less than 1/e"),
    ({"rule": {"kind": "basic"}}, "filter.rule: unknown field; known here: "
     "kind, delta, inner, epsilon, ratio"),
    ({"kind": "bayesian"}, "filter.delta: unknown field; known here: "
     "kind, epsilon, ratio, protects"),
    ({"kind": "magic"}, "filter.kind: unknown filter; known: " + ", ".join(FILTERS)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_bad_file_gets_one_clear_line(change: dict[str, object], message: str) -> None:
    spec = {"kind": "approximate", "epsilon": "4", "delta": "1e-6", "inner": {"kind": "basic"}}
    document = {
        "version": 1,
        "domain": {"values": [0, 1]},
        "filter": {**spec, **change},
        "exchanges": [],
    }
    with pytest.raises(xp.InvalidInput) as caught:
        xp.Transcript.from_json(json.dumps(document))
    assert str(caught.value) == message


def test_bad_arguments_get_one_clear_line() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^delta: is missing$"):
        ApproximateFilter(4)
    with pytest.raises(xp.InvalidInput, match=r"^delta: must be between 0 and 1, not "):
        ApproximateFilter(4, 1)
    with pytest.raises(xp.InvalidInput, match=r"^delta: must be a finite number, not"):
        CompositionFilter(4, math.nan, xp.filters.Sums())
    with pytest.raises(xp.InvalidInput, match=r"^rule: must be a composition rule, such as .*str$"):
        CompositionFilter(4, "1e-6", "renyi")  # type: ignore[arg-type]
    with pytest.raises(xp.InvalidInput, match=r"^inner: must be a composition rule.*int$"):
        ApproximateFilter(4, "1e-6", 3)  # type: ignore[arg-type]
    with pytest.raises(xp.InvalidInput, match=r"^inner: needs a delta less than 1/e$"):
        ApproximateFilter(4, "0.3678794411714423216", xp.filters.Rogers())
    assert ApproximateFilter(4, "0.3678794411714423215", xp.filters.Rogers()).delta > 0


def test_on_a_box_the_rule_and_the_search_take_turns() -> None:
    person = xp.Box(age=(0, 100))
    query = xp.logistic({"age": 0.1}, intercept=-5, epsilon="0.3")
    filter_, odometer = (
        ApproximateFilter(1, "0.01", xp.filters.Renyi(8)),
        Odometer(xp.Transcript(person)),
    )
    answers = itertools.cycle([0, 1])
    while len(odometer) < 12 and (decision := filter_.decide(odometer, query)).accepted:
        odometer = odometer.add(query, next(answers))
    assert len(odometer) > len(list(itertools.takewhile(lambda n: n * 0.3 <= 1, range(1, 99)))) + 2
    assert decision.loss_at_worst.upper <= 1
    assert filter_.holds(odometer)
    assert filter_.largest_epsilon(odometer, query) is not None


@pytest.mark.parametrize("rule", [xp.filters.Rogers(), xp.filters.Renyi(order="8")])
def test_what_the_sum_of_epsilons_admits_is_what_the_rule_admits(rule: xp.filters.Rule) -> None:
    filter_ = xp.filters.CompositionFilter(epsilon="1", delta="1e-6", rule=rule)
    query, sure = xp.randomized_response(epsilon="0.1"), []
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    for _ in range(14):
        sure.append(filter_.surely_accepts(odometer, query))
        within = filter_.worst_case(odometer, query).within(filter_.budget)
        assert within or not sure[-1]
        assert filter_.accepts(odometer, query) == within
        odometer = odometer.add(query, 1)
    assert sure[:9] == [True] * 9
    assert not sure[-1]
