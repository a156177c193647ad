"""Filters ask an account, whichever it is: all responses together, or the paper's groups."""

from __future__ import annotations

import pytest
from examples.paper.groups import GROUP, Groups

import expost as xp
from expost.filters import FILTERS, Account

BOX = xp.Box([(-1, 1)] * 2)
QUERIES = [xp.linear([w, 1], epsilon="0.1") for w in (0.5, -0.25, 2)]


def both(count: int) -> tuple[xp.Odometer, Groups]:
    whole = xp.Odometer(xp.Transcript(BOX))
    groups = Groups.start(whole)
    for index in range(count):
        query = QUERIES[index % 3]
        response = query.on(BOX).responses[index % 2]
        whole, groups = whole.add(query, response), groups.add(query, response)
    return whole, groups


def test_a_transcript_holds_its_filter() -> None:
    for kind in FILTERS.values():
        delta = () if kind.pure else ("1e-6", xp.filters.Renyi(8))
        filter_ = xp.AllOf(xp.BasicFilter(1)) if kind is xp.AllOf else kind(1, *delta)
        assert xp.Transcript(BOX, filter_).filter is filter_
        assert xp.Transcript(BOX, filter_).required_filter is filter_
    with pytest.raises(xp.InvalidInput, match="the transcript names no filter"):
        _ = xp.Transcript(BOX).required_filter


def test_groups_are_an_account_that_is_never_below_the_whole() -> None:
    whole, groups = both(GROUP + 3)
    account: Account
    for account in (whole, groups):
        assert account.exact_spent.enclosure.upper >= account.loss.lower
        for kind in (xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter):
            assert kind(5).decide(account, QUERIES[0]).accepted
            assert not kind("0.01").decide(account, QUERIES[0]).accepted
    assert groups.loss.upper >= whole.loss.lower
    worst = [filter_.decide(groups, QUERIES[0]).loss_at_worst.upper
             for filter_ in (xp.SimplifiedFilter(5), xp.BayesianFilter(5))]  # fmt: skip
    assert worst[1] <= worst[0]
    assert xp.filters.CompositionFilter(5, "1e-6", xp.filters.Sums()).holds(groups)


def test_groups_accept_what_basic_composition_accepts() -> None:
    _, groups = both(4)
    for kind in (xp.SimplifiedFilter, xp.BayesianFilter):
        assert kind("0.5").decide(groups, QUERIES[0]).accepted


def test_the_groups_before_the_last_query_are_those_that_were() -> None:
    _, groups = both(GROUP + 1)
    before, query = groups.without_last()
    assert query is QUERIES[GROUP % 3]
    assert before.loss == both(GROUP)[1].loss
