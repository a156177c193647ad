"""A transcript in words."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given

import expost as xp
from expost._format import format_list
from expost.report._explanation import explain, explanation_sentences
from expost.report._formatting import query_in_words
from support.random_cases import transcripts

YES = xp.randomized_response(epsilon="0.5")
DOMAIN = xp.FiniteSet(["no", "yes"])
PLACES = xp.Box(region=xp.categories("n", "s", "w"), age=(0, 1))
BOX = xp.Box(age=(10, 100), sex=xp.integers(0, 1), bmi=(10, 50))


def told(
    domain: xp.FiniteSet | xp.Box, *exchanges: tuple[xp.queries.Query, object]
) -> xp.Transcript:
    transcript = xp.Transcript(domain, xp.BayesianFilter(epsilon=2))
    for query, response in exchanges:
        transcript = transcript.add(query, response)
    return transcript


@pytest.mark.parametrize(
    ("query", "domain", "text"),
    [
        (YES, DOMAIN, "the value itself, at epsilon 0.5"),
        (xp.channel([["1/3", "2/3"], ["2/3", "1/3"]], responses=["n", "y"]), DOMAIN,
         "a channel to n or y, at epsilon 0.693147"),
        (xp.perturbation([0, 12], range=(0, 12), epsilon=1), DOMAIN,
         "a score from 0 to 12: 0 for no and 12 for yes, at epsilon 1"),
        (xp.linear({"age": 1, "bmi": -2}, epsilon="1/3"), BOX,
         "a score of age (1) and bmi (-2), at epsilon 1/3"),
        (xp.linear({"age": 1, "sex": 0}, range=(0, 5), clip=True, epsilon=1), BOX,
         "a score from 0 to 5 of age (1), at epsilon 1"),
        (xp.logistic({"age": 1, "sex": 1, "bmi": 1}, epsilon=1), BOX,
         "a yes-or-no prediction from age (1), bmi (1) and sex (1), at epsilon 1"),
        (xp.logistic([1, 0], epsilon=1), xp.Box([(0, 1), (0, 1)]),
         "a yes-or-no prediction from [0] (1), at epsilon 1"),
        (xp.logistic({"age": 0}, epsilon=1), BOX,
         "a yes-or-no prediction from no coordinate, at epsilon 1"),
        (xp.piecewise({"age": 1}, range=(0, 100), grid=1, epsilon=1), BOX,
         "a score from 0 to 100 of age (1), with noise, at epsilon 1"),
        (xp.linear({"region": {"n": 1}}, range=(0, 1), epsilon=1), PLACES,
         "a score from 0 to 1 of region (1 for n), at epsilon 1"),
        (xp.linear({"region": {"s": 1, "w": -0.12345}}, epsilon=1), PLACES,
         "a score of region (1 for s, -0.1235 for w), at epsilon 1"),
        (xp.logistic({"region": {"n": 2, "s": 2, "w": 2}, "age": 1}, epsilon=1), PLACES,
         "a yes-or-no prediction from age (1), at epsilon 1"),
        (xp.linear({"a": 1, "b": -3}, epsilon=1),
         xp.FiniteSet([{"a": 0, "b": 5}, {"a": 9, "b": 4}]),
         "a score of a (1) and b (-3), at epsilon 1"),
        (xp.perturbation([0, 3, 1, 1, 1, 1], range=(0, 3), epsilon=1), xp.FiniteSet(list("abcdef")),
         "a score from 0 to 3, lowest for a, highest for b, at epsilon 1"),
        (xp.perturbation([1, 1, 0, 0, 0, 0, 0, 0], epsilon=1), xp.FiniteSet(list("abcdefgh")),
         "a score from 0 to 1, lowest for c, d, e, f and 2 more, highest for a and b, "
         "at epsilon 1"),
        (xp.perturbation([1, 1, 0, 0, 0, 0], epsilon=1),
         xp.FiniteSet([{"a": position, "b": 1} for position in range(6)]),
         "a score from 0 to 1, lowest for a=2, b=1 and 3 more, highest for a=0, b=1 and 1 more, "
         "at epsilon 1"),
        (xp.unary_encoding(epsilon=1), DOMAIN, "a noisy bit for each value, at epsilon 1"),
    ],
)  # fmt: skip
def test_queries_in_words(
    query: xp.queries.Query, domain: xp.FiniteSet | xp.Box, text: str
) -> None:
    assert query_in_words(query, domain) == text


def test_lists_are_short() -> None:
    assert format_list([]) == ""
    assert format_list(["a"]) == "a"
    assert format_list(["a", "b"]) == "a and b"
    assert format_list("abcde") == "a, b, c, d and e"
    assert format_list("abcdef") == "a, b, c, d and 2 more"
    assert format_list(range(10**9), "or") == "0, 1, 2, 3 or 999,999,996 more"
    assert len(format_list(["x" * 1000])) < 50


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (DOMAIN, "one of 2: no or yes"),
        (xp.FiniteSet([{"age": 1, "sex": 0}]), "one of 1 points, by age and sex"),
        (BOX, "a point of a box: age from 10 to 100, sex an integer from 0 to 1 "
              "and bmi from 10 to 50"),
        (xp.Box([(0, 1)]), "a point of a box: [0] from 0 to 1"),
    ],
)  # fmt: skip
def test_domains_in_words(domain: xp.FiniteSet | xp.Box, text: str) -> None:
    assert explain(xp.replay(xp.Transcript(domain))).domain == text


def exact_ratio(transcript: xp.Transcript, count: int) -> float | Fraction:
    """e^loss after the first exchanges: the largest over the smallest product of probabilities."""
    products = [Fraction(1)] * len(transcript.domain.values)
    for exchange in transcript.exchanges[:count]:
        assert isinstance(transcript.domain, xp.FiniteSet)
        weights = exchange.query.on(transcript.domain).weights(exchange.position)
        products = [p * int(w) for p, w in zip(products, weights, strict=True)]
    return math.inf if min(products) == 0 else max(products) / min(products)


@given(transcripts(most=16))
def test_every_step_that_is_told_has_the_loss_of_its_prefix(transcript: xp.Transcript) -> None:
    account = explain(xp.replay(transcript))
    assert account.left_out == len(transcript) - len(account.steps)
    # Both ends and the peak, which may be one of them.
    assert len(account.steps) in ((len(transcript),) if len(transcript) <= 11 else (10, 11))
    prefix, losses = xp.Transcript(transcript.domain), [xp.numbers.Enclosure(0, 0)]
    for exchange in transcript.exchanges:
        prefix = prefix.add(exchange.query, exchange.response)
        losses.append(xp.realized_loss(prefix))
    indices = [step.index for step in account.steps]
    assert indices == sorted(indices)
    assert {*range(1, 6), *range(len(transcript) - 4, len(transcript) + 1)} & set(
        range(1, len(transcript) + 1)
    ) <= set(indices)
    for step in account.steps:
        before, after = losses[step.index - 1], losses[step.index]
        assert step.exchange == transcript.exchanges[step.index - 1]
        assert step.loss.lower <= after.upper
        assert after.lower <= step.loss.upper
        was = exact_ratio(transcript, step.index - 1)
        became = exact_ratio(transcript, step.index)
        assert step.change == ("same" if was == became else "up" if became > was else "down")
        assert step.change != "up" or after.upper >= before.lower
    assert (account.filter, account.used, account.replay.respected) == (None, None, None)


def test_the_odometer_goes_up_and_down_in_words() -> None:
    account = explain(xp.replay(told(DOMAIN, (YES, "yes"), (YES, "no"), (YES, "no"))))
    assert [step.change for step in account.steps] == ["up", "down", "up"]
    assert account.used is not None
    assert account.used.lower <= 0.25 <= account.used.upper + 1e-12
    assert account.replay.respected is True
    assert account.basic == 1.5
    assert account.most_different is not None
    assert (account.most_different.likeliest, account.most_different.unlikeliest) == ("no", "yes")


def test_a_loss_that_is_nearly_the_same_is_not_as_before() -> None:
    near = xp.channel([[Fraction(1, 2) + Fraction(1, 10**18), Fraction(1, 2) - Fraction(1, 10**18)],
                       ["1/2", "1/2"]])  # fmt: skip
    account = explain(xp.replay(told(DOMAIN, (YES, "no"), (near, 0), (near, 1), (near, 0))))
    assert [step.change for step in account.steps] == ["up", "up", "down", "up"]
    lines = "\n".join(explanation_sentences(account))
    assert lines.count(", by less than is shown") == 3
    assert "as before" not in lines


def test_as_before_is_for_a_loss_that_is_exactly_what_it_was() -> None:
    values = xp.FiniteSet(["a", "b", "c"])
    account = explain(xp.replay(told(values, (YES, "a"), (YES, "b"), (YES, "c"))))
    assert [step.change for step in account.steps] == ["up", "same", "down"]


def test_on_a_box_enclosures_that_overlap_do_not_say_as_before() -> None:
    query = xp.logistic({"age": 0.1}, epsilon="0.001")
    blind = xp.linear({"age": 1e-9}, range=(0, 1000), epsilon="1")
    account = explain(xp.replay(told(BOX, (query, 1), (blind, 0), (query, 0))))
    assert [step.change for step in account.steps][1:] == ["unknown", "unknown"]
    assert "not told apart" in "\n".join(explanation_sentences(account))


def test_on_a_box_only_the_steps_that_are_told_are_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = xp.logistic({"age": 0.1}, epsilon="0.1")
    searched: list[int] = []
    search = xp.Odometer.loss_after

    def watched(odometer: xp.Odometer, count: int) -> xp.numbers.Enclosure:
        searched.append(count)
        return search(odometer, count)

    transcript = told(BOX, *[(query, i % 2) for i in range(30)])
    replayed = xp.replay(transcript)
    monkeypatch.setattr(xp.Odometer, "loss_after", watched)
    account = explain(replace(replayed, odometer=xp.Odometer(transcript)))
    assert account.left_out == 20
    # The replay has the last one already.
    assert sorted(searched) == [0, 1, 2, 3, 4, 5, 25, 26, 27, 28, 29]


def test_what_the_basic_filter_holds_is_what_is_used() -> None:
    transcript = xp.Transcript(DOMAIN, xp.BasicFilter(epsilon=2)).add(YES, "no").add(YES, "yes")
    account = explain(xp.replay(transcript))
    assert account.loss.upper < 1e-9
    assert account.used is not None
    assert 0.5 in account.used


def test_more_than_the_budget_is_more_than_all_of_it() -> None:
    transcript = told(DOMAIN, *[(YES, "yes")] * 5)
    assert xp.replay(transcript).respected is False
    used = explain(xp.replay(transcript)).used
    assert used is not None
    assert used.lower <= 1.25 <= used.upper + 1e-9
    assert used.lower > 1.24
    certain = told(DOMAIN, (xp.channel([[1, 0], [0, 1]]), 0))
    assert explain(xp.replay(certain)).used == xp.numbers.Enclosure(math.inf, math.inf)


def test_exactly_the_budget_is_all_of_it_and_no_more() -> None:
    third = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]])
    transcript = xp.Transcript(DOMAIN, xp.BayesianFilter(ratio=3)).add(third, 0)
    used = explain(xp.replay(transcript)).used
    assert used is not None
    assert used.upper == 1
