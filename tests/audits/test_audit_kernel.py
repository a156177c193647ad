"""The Arrow kernel: batches of whole subjects in, rows out, wherever batches were cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import polars
import pytest

import expost as xp
from expost.audits import _polars_engine
from expost.audits._decisions import schema
from expost.audits._plan import Plan
from expost.audits._spark_engine import HELD, audit_batches
from support.answer_logs import some_log

GUARD = xp.BayesianFilter(epsilon="0.6")
LOGGED = some_log(random.Random(21), "set", subjects=30)
PLAN = Plan(LOGGED.domain, LOGGED.queries, GUARD, xp.solver.Effort())
# Small integers, as others write them.
ROWS = LOGGED.frame().with_columns(polars.col("order").cast(polars.Int8))


def cut(frame: polars.DataFrame, *places: int) -> Iterator[polars.DataFrame]:
    ends = [0, *sorted(places), len(frame)]
    for start, stop in pairwise(ends):
        yield frame[start:stop]


def rows(*places: int, frame: polars.DataFrame = ROWS, held: int = HELD) -> polars.DataFrame:
    return polars.concat(audit_batches(cut(frame, *places), PLAN, held)).sort("subject")


def test_rows_come_in_any_order_and_in_any_batches() -> None:
    whole = rows()
    assert whole.columns == list(schema(polars.String(), PLAN.filter))
    assert whole["subject"].to_list() == sorted(LOGGED.subjects)
    generator = random.Random(4)
    for seed in range(5):
        shuffled = ROWS.sample(fraction=1, shuffle=True, seed=seed)
        places = [generator.randrange(len(ROWS)) for _ in range(generator.randrange(20))]
        for held in (0, 30, HELD):
            assert rows(*places, frame=shuffled, held=held).equals(whole)
    assert rows(*range(len(ROWS)), held=100).equals(whole)


def test_what_memory_does_not_hold_is_in_buckets_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = []
    load = _polars_engine.Buckets.load

    def record_load(self: _polars_engine.Buckets, index: int) -> polars.DataFrame | None:
        loaded.append(load(self, index))
        return loaded[-1]

    monkeypatch.setattr(_polars_engine.Buckets, "load", record_load)
    halves = len(ROWS) // 2
    assert rows(halves).equals(rows())
    assert loaded == []
    rows(halves, held=halves)
    sizes = [len(each) for each in loaded if each is not None]
    assert sum(sizes) == len(ROWS)
    assert max(sizes) < halves


def test_an_empty_partition_has_no_rows() -> None:
    assert list(audit_batches([], PLAN)) == []
    assert list(audit_batches([ROWS[:0]], PLAN)) == []


@pytest.mark.parametrize("held", [1, HELD])
def test_a_partition_that_lacks_a_row_is_refused(held: int) -> None:
    for row in range(0, len(ROWS), 17):
        lacking = polars.concat([ROWS[:row], ROWS[row + 1 :]])
        own = ROWS.row(row, named=True)
        if own["order"] == int((ROWS["subject"] == own["subject"]).sum()):
            continue  # what comes after the end of a log nobody can know
        with pytest.raises(xp.audits.BadRows, match="is missing"):
            list(audit_batches(cut(lacking, row), PLAN, held))
    twice = polars.concat([ROWS, ROWS[:1]])
    with pytest.raises(xp.audits.BadRows, match="appears twice"):
        list(audit_batches(cut(twice, 5), PLAN, held))


def test_a_plan_travels_as_text() -> None:
    again = Plan.from_texts(*PLAN.texts())
    assert again.digest == PLAN.digest
    assert polars.concat(audit_batches([ROWS], again)).sort("subject").equals(rows())
    guard, effort = xp.BayesianFilter(epsilon="0.7"), xp.solver.Effort()
    other = Plan(LOGGED.domain, LOGGED.queries, guard, effort)
    assert other.digest != PLAN.digest
