"""Frames of pandas and polars are known by what they can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost.files.frames import as_array, column_names, is_frame

COLUMNS = {"age": [34, 52], "sex": [0, 1]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_frame_has_names_and_rows(make: Callable[[Any], Any]) -> None:
    frame = make(COLUMNS)
    assert is_frame(frame)
    assert column_names(frame) == column_names(COLUMNS) == ["age", "sex"]
    assert as_array(frame).tolist() == [[34, 0], [52, 1]]
    assert as_array(frame["age"]).tolist() == [34, 52]
    assert as_array(COLUMNS["age"]) is COLUMNS["age"]


def test_what_is_no_table_has_no_columns() -> None:
    with pytest.raises(xp.InvalidInput, match="must be a frame or a mapping of columns, not list"):
        column_names([1, 2])


def test_a_lazy_frame_is_none_yet_and_nothing_of_it_is_worked_out() -> None:
    lazy = pl.DataFrame(COLUMNS).lazy()
    assert not is_frame(lazy)  # asking for its columns would warn, which fails here
    for make in (xp.FiniteSet, xp.channel):
        with pytest.raises(xp.InvalidInput, match="must be a list"):
            make(lazy)
