"""The knowledge gain, and what bounds it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.knowledge._gain import exp_above
from expost.numbers import INFINITE, Nats
from support import oracles, random_cases
from support.random_cases import Menu

TWO = xp.FiniteSet(["no", "yes"])
FLIP = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]], responses=["no", "yes"])


def beliefs(domain: xp.FiniteSet) -> st.SearchStrategy[xp.knowledge.Belief]:
    counts = st.lists(st.integers(0, 9), min_size=len(domain), max_size=len(domain))
    return counts.filter(any).map(lambda entries: xp.knowledge.Belief.from_counts(domain, entries))


def statements(domain: xp.FiniteSet) -> st.SearchStrategy[xp.knowledge.Statement]:
    """Predicates, and statements that are true with a probability."""
    chances = st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 3), Fraction(9, 10)])
    entries = st.lists(chances, min_size=len(domain), max_size=len(domain))
    return entries.map(lambda entries: xp.knowledge.Statement(domain, entries))


@st.composite
def learned(draw: st.DrawFn) -> tuple[xp.knowledge.Belief, xp.knowledge.Statement, xp.Transcript]:
    """Somebody who holds a statement possible, and what they get to see."""
    transcript = draw(random_cases.transcripts(most=5))
    domain = transcript.domain
    assert isinstance(domain, xp.FiniteSet)
    belief, statement = draw(beliefs(domain)), draw(statements(domain))
    if xp.knowledge.confidence(belief, statement) == 0:
        statement = ~statement
    return belief, statement, transcript


def by_hand(
    belief: xp.knowledge.Belief, statement: xp.knowledge.Statement, transcript: xp.Transcript
) -> Fraction:
    """Q(f | y) / Q(f) as section 2.2 has it, from the public probabilities."""
    domain = belief.domain
    prior = [belief.probability(x) for x in domain.values]
    likelihoods = oracles.product(
        [
            random_cases.table(exchange.query, domain)[exchange.response]
            for exchange in transcript.exchanges
        ],
        len(domain),
    )
    rows = list(zip(statement.probabilities, likelihoods, prior, strict=True))
    seen = Fraction(sum(p * q for _, p, q in rows))
    before = Fraction(sum(f * q for f, _, q in rows))
    return Fraction(sum(f * p * q for f, p, q in rows)) / seen / before


@given(learned())
def test_the_gain_is_that_of_the_paper_and_never_above_the_loss(
    case: tuple[xp.knowledge.Belief, xp.knowledge.Statement, xp.Transcript],
) -> None:
    _, _, transcript = case
    ratio = xp.knowledge.gain_ratio(*case)
    assert ratio == by_hand(*case)
    largest = xp.Odometer(transcript).exact_loss.ratio
    assert largest is not None
    assert 1 / largest <= ratio <= largest
    gain = xp.knowledge.knowledge_gain(*case)
    with mpmath.workdps(60):
        real = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert mpmath.mpf(gain.lower) <= real <= mpmath.mpf(gain.upper)
    assert gain.upper - gain.lower <= math.ulp(max(abs(gain.lower), 1e-300))
    loss = xp.realized_loss(transcript)
    assert -loss.upper <= gain.lower
    assert gain.upper <= loss.upper


@given(learned())
def test_the_confidence_ends_up_in_the_range_that_the_loss_allows(
    case: tuple[xp.knowledge.Belief, xp.knowledge.Statement, xp.Transcript],
) -> None:
    belief, statement, transcript = case
    before = xp.knowledge.confidence(belief, statement)
    after = xp.knowledge.confidence(belief.updated(transcript), statement)
    assert after in xp.knowledge.allowed_confidence(before, xp.Odometer(transcript).exact_loss)
    assert after in xp.knowledge.allowed_confidence(before, xp.realized_loss(transcript))


@given(random_cases.menus(), st.data())
def test_behind_a_filter_gain_and_loss_are_within_the_budget(
    menu: Menu, data: st.DataObject
) -> None:
    guard = xp.BayesianFilter(
        epsilon=menu.budget.rational or None,
        ratio=None if menu.budget.rational else menu.budget.ratio,
    )
    odometer = xp.Odometer(xp.Transcript(menu.domain, guard))
    belief, statement = data.draw(beliefs(menu.domain)), data.draw(statements(menu.domain))
    if xp.knowledge.confidence(belief, statement) == 0:
        statement = ~statement
    for query in menu.queries:
        if not guard.decide(odometer, query).accepted:
            continue
        response = data.draw(st.sampled_from(list(query.on(menu.domain).responses)))
        odometer = odometer.add(query, response)
        gain = Nats(ratio=xp.knowledge.gain_ratio(belief, statement, odometer.transcript))
        loss = xp.Odometer(odometer.transcript).exact_loss
        assert gain <= loss <= menu.budget
        assert gain + loss >= Nats()
        before = xp.knowledge.confidence(belief, statement)
        after = xp.knowledge.confidence(belief.updated(odometer.transcript), statement)
        assert after in xp.knowledge.allowed_confidence(before, menu.budget)


@given(st.integers(2, 4).flatmap(random_cases.queries), st.data())
def test_the_learning_limit_is_the_worst_case_and_holds_for_every_response(
    query: xp.queries.Query, data: st.DataObject
) -> None:
    size = next(size for size in (2, 3, 4) if _fits(query, size))
    domain = xp.FiniteSet(range(size))
    limit = xp.knowledge.learning_limit(query, domain)
    assert limit == xp.loss.worst_case_loss(query, domain)
    belief, statement = data.draw(beliefs(domain)), data.draw(statements(domain))
    if xp.knowledge.confidence(belief, statement) == 0:
        statement = ~statement
    for response in query.on(domain).responses:
        gain = xp.knowledge.knowledge_gain(
            belief, statement, xp.Transcript(domain).add(query, response)
        )
        assert -limit.upper <= gain.lower
        assert gain.upper <= limit.upper


def _fits(query: xp.queries.Query, size: int) -> bool:
    try:
        query.on(xp.FiniteSet(range(size)))
    except xp.InvalidInput:
        return False
    return True


def test_a_statement_that_is_ruled_out_has_lost_everything() -> None:
    sure = xp.channel([[1, 0], ["1/2", "1/2"]])
    transcript = xp.Transcript(TWO).add(sure, 1)
    belief = xp.knowledge.Belief.uniform(TWO)
    assert xp.knowledge.gain_ratio(belief, xp.knowledge.Statement(TWO, {"no": 1}), transcript) == 0
    assert xp.knowledge.knowledge_gain(
        belief, xp.knowledge.Statement(TWO, {"no": 1}), transcript
    ) == xp.numbers.Enclosure(-math.inf, -math.inf)
    assert xp.knowledge.gain_ratio(belief, xp.knowledge.Statement(TWO, {"yes": 1}), transcript) == 2


def test_there_is_no_gain_about_what_was_impossible_before() -> None:
    with pytest.raises(xp.InvalidInput, match=r"^the belief rules the statement out"):
        xp.knowledge.knowledge_gain(
            xp.knowledge.Belief(TWO, {"no": 1}),
            xp.knowledge.Statement(TWO, {"yes": 1}),
            xp.Transcript(TWO).add(FLIP, "no"),
        )


@given(st.fractions(0, 1, max_denominator=1000), st.fractions(1, 50, max_denominator=20))
def test_no_narrower_range_is_allowed(before: Fraction, largest: Fraction) -> None:
    """The two ends are reached by a channel whose responses tell the statement with this ratio."""
    p = largest / (1 + largest)
    query = xp.channel([[1 - p, p], [p, 1 - p]])
    belief = xp.knowledge.Belief(TWO, {"yes": before, "no": 1 - before})
    yes = xp.knowledge.Statement(TWO, {"yes": 1})
    allowed = xp.knowledge.allowed_confidence(before, Nats(ratio=largest))
    ends = [
        xp.knowledge.confidence(belief.updated(xp.Transcript(TWO).add(query, response)), yes)
        for response in (1, 0)
    ]
    assert ends[0] in allowed
    assert ends[1] in allowed
    assert float(min(ends)) == pytest.approx(allowed.lower, rel=1e-15)
    assert float(max(ends)) == pytest.approx(allowed.upper, rel=1e-15)


@given(st.fractions("1/1000", "999/1000"), st.fractions("1/1000", 800))
def test_the_range_holds_the_real_odds_times_e_to_the_epsilon(
    before: Fraction, epsilon: Fraction
) -> None:
    allowed = xp.knowledge.allowed_confidence(before, Nats(epsilon))
    with mpmath.workdps(500):
        p, e = mpmath.mpf(before.numerator) / before.denominator, mpmath.mpf(epsilon.numerator)
        factor = mpmath.exp(e / epsilon.denominator)
        low, high = p / (p + (1 - p) * factor), p * factor / (p * factor + 1 - p)
        assert mpmath.mpf(allowed.lower) <= low
        assert high <= mpmath.mpf(allowed.upper)
        assert low - mpmath.mpf(allowed.lower) <= max(low * mpmath.mpf(2) ** -51, 1e-300)
        assert mpmath.mpf(allowed.upper) - high <= mpmath.mpf(2) ** -51


@given(st.fractions("1/1000", 700), st.fractions(1, 9))
def test_the_factor_behind_a_range_is_not_too_small(epsilon: Fraction, ratio: Fraction) -> None:
    factor = exp_above(Nats(epsilon, ratio))
    assert factor is not None
    assert Nats(epsilon, ratio) < Nats(ratio=factor) < Nats(epsilon + Fraction(1, 10**20), ratio)


def test_the_range_at_the_edges() -> None:
    half = Fraction(1, 2)
    assert xp.knowledge.allowed_confidence(Fraction(0), Nats(Fraction(2))) == xp.numbers.Enclosure(
        0.0, 0.0
    )
    assert xp.knowledge.allowed_confidence(Fraction(1), INFINITE) == xp.numbers.Enclosure(1.0, 1.0)
    assert xp.knowledge.allowed_confidence(half, INFINITE) == xp.numbers.Enclosure(0.0, 1.0)
    assert xp.knowledge.allowed_confidence(
        half, xp.numbers.Enclosure(math.inf, math.inf)
    ) == xp.numbers.Enclosure(0.0, 1.0)
    assert xp.knowledge.allowed_confidence(half, Nats(Fraction(10**6))) == xp.numbers.Enclosure(
        0.0, 1.0
    )
    assert xp.knowledge.allowed_confidence(half, Nats()) == xp.numbers.Enclosure(0.5, 0.5)
    assert xp.knowledge.allowed_confidence(
        half, xp.numbers.Enclosure(0.0, 0.0)
    ) == xp.numbers.Enclosure(0.5, 0.5)
    with pytest.raises(xp.InvalidInput, match=r"^a confidence is between 0 and 1$"):
        xp.knowledge.allowed_confidence(Fraction(2), Nats())
