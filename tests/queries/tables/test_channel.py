"""Channels from every kind of table, exact or repaired."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from support import oracles
from support.random_cases import columns, exact_rows

PAIR = xp.FiniteSet([0, 1])


def rows(query: Any, domain: xp.FiniteSet = PAIR) -> list[list[Fraction]]:
    return [list(row) for row in zip(*columns(query, domain), strict=True)]


@pytest.mark.parametrize(
    "table",
    [
        [["2/5", "3/5"], ["1/2", "1/2"]],
        [[Fraction(2, 5), Fraction(3, 5)], [Fraction(1, 2), Fraction(1, 2)]],
        [[Decimal("0.4"), Decimal("0.6")], [Decimal("0.5"), Decimal("0.5")]],
        [[0.4, 0.6], [0.5, 0.5]],
        np.array([[0.4, 0.6], [0.5, 0.5]]),
        np.array([[0.4, 0.6], [0.5, 0.5]], dtype=np.float32),
        np.asfortranarray([[0.4, 0.6], [0.5, 0.5]]),
        pd.DataFrame({0: [0.4, 0.5], 1: [0.6, 0.5]}),
        pl.DataFrame({"0": [0.4, 0.5], "1": [0.6, 0.5]}),
    ],
    ids=lambda table: type(table).__name__,
)
def test_every_kind_of_table_means_the_same(table: Any) -> None:
    assert rows(xp.channel(table)) == [[Fraction(2, 5), Fraction(3, 5)], [Fraction(1, 2)] * 2]


def test_a_frame_names_its_responses() -> None:
    assert xp.channel(pl.DataFrame({"no": [0.5], "yes": [0.5]})).responses == ("no", "yes")
    assert xp.channel(pd.DataFrame({"no": [0.5], "yes": [0.5]})).responses == ("no", "yes")


def test_ten_tenths_are_one() -> None:
    assert rows(xp.channel([[0.1] * 10] * 2)) == [[Fraction(1, 10)] * 10] * 2


def test_floats_that_miss_one_give_the_rest_to_the_largest_entry() -> None:
    third = Fraction(1 / 3)
    assert rows(xp.channel([[1 / 3, 1 / 3, 1 / 3], [0.25, 0.5, 0.25]])) == [
        [1 - 2 * third, third, third],
        [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
    ]
    tiny = Fraction(1e-30)
    assert rows(xp.channel([[1e-30, 1.0], [0.5, 0.5]]))[0] == [tiny, 1 - tiny]


@given(st.lists(st.lists(st.floats(1e-3, 1), min_size=3, max_size=3), min_size=2, max_size=2))
def test_repaired_floats_sum_to_one_and_change_by_no_more_than_they_missed(
    entries: list[list[float]],
) -> None:
    table = np.array(entries) / np.sum(entries, axis=1, keepdims=True)
    for repaired, row in zip(rows(xp.channel(table)), table.tolist(), strict=True):
        assert sum(repaired) == 1
        miss = abs(1 - sum((Fraction(p) for p in row), start=Fraction(0)))
        # Or they were read as decimals, which moves an entry by less than a unit of roundoff.
        assert all(
            abs(new - Fraction(old)) <= miss + Fraction(old) / 2**53
            for new, old in zip(repaired, row, strict=True)
        )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([["2/5", "2/5"], ["1/2", "1/2"]], r"probabilities\[0\]: the row sums to 4/5, not to 1"),
        ([[0.5, 0.5], [0.5, 0.4999]], r"probabilities\[1\]: the row sums to 0.9999"),
        ([[0.5, 0.5], [1.5, -0.5]], r"probabilities\[1\]\[0\]: must be between 0 and 1"),
        ([["3/2", "-1/2"]], r"probabilities\[0\]\[0\]: must be between 0 and 1"),
        ([[float("nan"), 1.0]], r"probabilities\[0\]\[0\]"),
        ([[0.5, 0.5], [1.0]], r"probabilities\[1\]: has 1 entries, the first row 2"),
        ([[0.5, "1/2"]], "mixes floats with exact numbers"),
        ([["1/2", "x"]], r"probabilities\[0\]\[1\]: 'x' is not a number"),
        ([[True, False]], r"probabilities\[0\]\[0\]"),
        ([], "rows of numbers"),
        ([[]], "rows of numbers"),
        ([0.5, 0.5], r"probabilities\[0\]: must be a list"),
    ],
)
def test_bad_tables_are_refused_with_their_place(table: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.channel(table)


def test_responses_must_match_the_columns_and_differ() -> None:
    with pytest.raises(xp.InvalidInput, match="3 responses for 2 columns"):
        xp.channel([["1/2", "1/2"]], responses=["a", "b", "c"])
    with pytest.raises(xp.InvalidInput, match="listed twice"):
        xp.channel([["1/2", "1/2"]], responses=[1, 1.0])


def test_a_channel_needs_a_row_per_value() -> None:
    with pytest.raises(xp.InvalidInput, match="1 rows for a domain of 2 values"):
        xp.loss.worst_case_loss(xp.channel([["1/2", "1/2"]]), PAIR)


def test_denominators_without_end_are_refused() -> None:
    primes = [p for p in range(10**6, 10**6 + 4000) if all(p % d for d in range(2, 1010))]
    table = [[Fraction(1, p), 1 - Fraction(1, p)] for p in primes]
    with pytest.raises(xp.InvalidInput, match="more than 2000 bits"):
        xp.channel(table)


def test_changing_the_table_afterwards_changes_nothing() -> None:
    table = np.array([[0.4, 0.6], [0.5, 0.5]])
    query = xp.channel(table)
    table[:] = 0.5
    assert rows(query)[0] == [Fraction(2, 5), Fraction(3, 5)]
    with pytest.raises(ValueError, match="read-only"):
        query.weights[0, 0] = 7


@given(st.integers(2, 4).flatmap(lambda n: exact_rows(n, zeros=True)))
def test_epsilon_is_that_of_the_definition(table: list[list[Fraction]]) -> None:
    domain = xp.FiniteSet(range(len(table)))
    worst = oracles.epsilon_of([list(column) for column in zip(*table, strict=True)])
    assert xp.channel(table).on(domain).epsilon.ratio == worst


def test_equal_channels_have_equal_weights_however_they_were_given() -> None:
    floats = xp.channel([[0.5, 0.5], [0.25, 0.75]])
    fractions = xp.channel([["1/2", "1/2"], ["1/4", "3/4"]])
    assert floats == fractions
    assert floats.denominator == fractions.denominator == 4
    assert (floats.weights == fractions.weights).all()


def test_probabilities_at_the_edge_of_the_range_of_doubles() -> None:
    tiny = Fraction(1, 10**299)
    query = xp.channel([[tiny, 1 - tiny], ["1/2", "1/2"]])
    loss = xp.realized_loss(xp.Transcript(PAIR).add(query, 0))
    running = xp.Odometer(xp.Transcript(PAIR).add(query, 0)).loss
    assert running.lower <= loss.lower
    assert loss.upper <= running.upper
    assert loss.upper == pytest.approx(299 * np.log(10) - np.log(2))


def test_masked_entries_are_refused() -> None:
    masked = np.ma.array([[0.5, 0.5], [3, -2.0]], mask=[[False, False], [True, True]])
    with pytest.raises(xp.InvalidInput, match="masked"):
        xp.channel(masked)
    with pytest.raises(xp.InvalidInput, match=r"scores\[1\]"):
        xp.perturbation(np.ma.array([0.5, 1e13], mask=[False, True]), epsilon=1)


def test_a_row_index_is_refused_because_rows_go_by_position() -> None:
    frame = pd.DataFrame({"a": [0.5, 0.4], "b": [0.5, 0.6]}, index=["yes", "no"])
    with pytest.raises(xp.InvalidInput, match="row index"):
        xp.channel(frame)
    assert xp.channel(frame.reset_index(drop=True)).responses == ("a", "b")


def test_what_no_value_can_give_is_not_a_response() -> None:
    query = xp.channel([[0, "1/2", "1/2"], [0, "1/4", "3/4"]], responses=["never", "no", "yes"])
    with pytest.raises(xp.InvalidInput, match="is not a response"):
        xp.Transcript(PAIR).add(query, "never")
    assert query.on(PAIR).least_loss.ratio == Fraction(3, 2)


@given(st.data())
def test_a_channel_is_the_same_after_a_round_trip_at_the_edge_of_64_bits(
    data: st.DataObject,
) -> None:
    # Entries down to 2^-10 are multiples of 2^-62, the widest denominator that is tried first.
    entries = data.draw(st.lists(st.floats(2**-10, 0.5), min_size=2, max_size=2))
    query = xp.channel(np.array([[p, 1 - p] for p in entries]))
    again = xp.channel(rows(query))
    assert again == query
    assert again.weights.dtype == query.weights.dtype
    assert (again.weights == query.weights).all()


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=4), st.integers(0, 15))
def test_decimals_of_a_file_are_the_fractions_that_they_stand_for(
    parts: list[int], places: int
) -> None:
    shares = [Fraction(part // 10 ** (15 - places), 10**places) for part in parts]
    rows = [
        [f"{share:.15f}", f"{1 - share:.15f}"]
        for share in (Decimal(x.numerator) / x.denominator for x in shares)
    ]
    quotients = [[str(share), str(1 - share)] for share in shares]
    written, read = xp.channel(rows), xp.channel(quotients)
    assert written == read
    assert written.denominator == read.denominator
