"""The Arrow kernel: batches of whole subjects in, rows out, wherever batches were cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import polars
import pytest

import expost as xp
from expost.audits.kernel import COLUMNS, ENOUGH, audited_batches
from expost.audits.plan import Plan
from support.logs import some_log

GUARD = xp.BayesianFilter(epsilon="0.6")
LOGGED = some_log(random.Random(21), "set", subjects=30)
PLAN = Plan(LOGGED.domain, LOGGED.queries, GUARD, xp.solver.Effort())
# Small integers, as others write them.
SORTED = LOGGED.frame().sort("subject", "order").with_columns(polars.col("order").cast(polars.Int8))


def cut(frame: polars.DataFrame, *places: int) -> Iterator[polars.DataFrame]:
    ends = [0, *sorted(places), len(frame)]
    for start, stop in pairwise(ends):
        yield frame[start:stop]


def rows(*places: int, enough: int = ENOUGH) -> polars.DataFrame:
    return polars.concat(audited_batches(cut(SORTED, *places), PLAN, enough))


def test_a_subject_may_straddle_any_number_of_batches() -> None:
    whole = rows()
    assert whole.columns == list(COLUMNS)
    assert whole["subject"].to_list() == sorted(LOGGED.subjects)
    generator = random.Random(4)
    for _ in range(5):
        places = [generator.randrange(len(SORTED)) for _ in range(generator.randrange(20))]
        for enough in (1, 30, ENOUGH):
            assert rows(*places, enough=enough).equals(whole)
    assert rows(*range(len(SORTED)), enough=1).equals(whole)


def test_an_empty_partition_has_no_rows() -> None:
    assert list(audited_batches([], PLAN)) == []
    assert list(audited_batches([SORTED[:0]], PLAN)) == []


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_batches_that_are_not_in_order_are_refused(size: int) -> None:
    first = int((SORTED["subject"] == SORTED["subject"][0]).sum())
    scrambled = {
        "subjects": polars.concat([SORTED[first:], SORTED[:first]]),
        "a subject again": polars.concat([SORTED, SORTED[:1]]),
        "orders": SORTED.sort("subject", "order", descending=[False, True]),
    }
    for frame in scrambled.values():
        batches = [frame[start : start + size] for start in range(0, len(frame), size)]
        with pytest.raises(AssertionError, match=r"not in order|not in ascending order"):
            list(audited_batches(batches, PLAN, enough=size))


def test_a_plan_travels_as_text() -> None:
    again = Plan.from_texts(*PLAN.texts())
    assert again.digest == PLAN.digest
    assert polars.concat(audited_batches([SORTED], again)).equals(rows())
    guard, effort = xp.BayesianFilter(epsilon="0.7"), xp.solver.Effort()
    other = Plan(LOGGED.domain, LOGGED.queries, guard, effort)
    assert other.digest != PLAN.digest
