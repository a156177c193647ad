"""Frames of pandas and polars are known by what they can do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost.files.tables import ResultTable, as_array, column_names, is_frame
from support.missing_packages import run_without

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


DOMAIN = xp.FiniteSet(["no", 1, 0.5])
QUERY = xp.randomized_response(epsilon=2)
ANSWERS = xp.Answers(
    DOMAIN,
    {"q": QUERY, "p": xp.perturbation([0, 1, 1], epsilon=1)},
    {"subject": ["a", "b", "c"], "query": ["q", "q", "p"], "response": ["no", 1, 1]},
)
TRANSCRIPT = xp.Transcript(DOMAIN, xp.BayesianFilter(3)).add(QUERY, "no").add(QUERY, 1)
SPREAD = xp.estimation.estimate_distribution(ANSWERS)


def around(found: xp.estimation.Distribution, scores: Any = None) -> xp.estimation.Intervals:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # so few subjects are fine for a table
        return found.intervals(scores, repetitions=50)


TABLES = [
    xp.realized_losses(ANSWERS),
    xp.estimation.estimate_mean(ANSWERS, "p"),
    xp.estimation.estimate_frequencies([(QUERY, "no"), (QUERY, 1)], domain=DOMAIN),
    SPREAD,
    around(SPREAD),
    around(SPREAD, [0, 1, 2]),
    xp.report.compare(TRANSCRIPT),
]
EACH = pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)


@EACH
def test_a_result_goes_into_frames_of_either_kind_and_through_arrow(table: ResultTable) -> None:
    columns = table.columns()
    polars, pandas, arrow = table.to_polars(), table.to_pandas(), pl.DataFrame(table)
    assert list(columns) == polars.columns == list(pandas) == arrow.columns
    for name, column in columns.items():
        expected = list(column)
        if name == "value":
            expected = ["no", "1", "0.5"]  # a column has one type
        assert polars[name].to_list() == pandas[name].tolist() == arrow[name].to_list() == expected


def test_numbers_are_numbers_in_a_frame_and_points_have_a_column_for_each_coordinate() -> None:
    def frame(domain: xp.FiniteSet) -> Any:
        pairs = [(QUERY, value) for value in domain.values]
        return xp.estimation.estimate_frequencies(pairs, domain=domain).to_polars()

    assert frame(xp.FiniteSet([0, 0.5]))["value"].to_list() == [0.0, 0.5]
    points = frame(xp.FiniteSet([{"a": 0, "lower": 1}, {"a": 0.5, "lower": 1}]))
    assert points["a"].to_list() == [0.0, 0.5]
    assert points["value_lower"].to_list() == [1, 1]
    assert list(points)[2].name == "frequency"


@pytest.mark.parametrize("make", ["distribution", "intervals", "frequencies"])
def test_an_estimate_of_several_attributes_has_a_column_for_each(make: str) -> None:
    person = xp.Attributes(smokes=["no", "yes"], age=[1, 2])
    query = {"q": QUERY.about("smokes", "age")}
    table = {"subject": [1, 2], "query": ["q", "q"], "response": [["no", 1], ["yes", 2]]}
    answers = xp.Answers(person, query, table).about("smokes", "age")
    found: Any = xp.estimation.estimate_frequencies(answers)
    if make != "frequencies":
        found = xp.estimation.estimate_distribution(answers)
    if make == "intervals":
        found = around(found)
    for frame in (found.to_polars(), pl.DataFrame(found), found.to_pandas()):
        assert list(frame["smokes"]) == ["no", "no", "yes", "yes"]
        assert list(frame["age"]) == [1, 2, 1, 2]
    assert found.tree()["value"][1] == ["no", 2]
    assert repr(found).splitlines()[1].split()[:2] == ["smokes", "age"]


@EACH
def test_a_result_shows_numbers_as_text_and_as_html(table: ResultTable) -> None:
    name = type(table).__name__
    title, head, *rows = repr(table).splitlines()
    assert title.startswith(f"{name}(")
    size = len(next(iter(table.columns().values())))
    assert all(any(c.isdigit() for c in row) for row in rows[:size])
    html: str = table._repr_html_()
    assert title in html
    assert all(cell in html for cell in [*head.split(), *rows[0].split()])


def test_a_long_result_shows_its_ends() -> None:
    table = {"subject": range(1000), "query": ["q"] * 1000, "response": ["no"] * 1000}
    lines = repr(xp.realized_losses(xp.Answers(DOMAIN, {"q": QUERY}, table))).splitlines()
    assert len(lines) == 13
    assert lines[7] == "… 990 more"
    assert lines[-1].startswith("999 ")


def test_a_loss_that_cancels_out_is_shown_as_zero() -> None:
    two = xp.FiniteSet(["no", "yes"])
    table = {"subject": [1, 1], "query": ["q"] * 2, "response": ["no", "yes"]}
    losses = xp.realized_losses(xp.Answers(two, {"q": QUERY}, table))
    assert 0 < losses.upper[0] < 1e-9  # or this test shows nothing
    assert repr(losses).splitlines() == [
        "Losses(1 subject, at most 0)",
        "subject  loss  exchanges  basic",
        "1        0     2          4",
    ]


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("to_polars()", "a frame of polars needs polars: pip install 'expost[frames]'"),
        ("to_pandas()", "a frame of pandas needs pandas: pip install 'pandas'"),
        ("__arrow_c_stream__()", "a table of Arrow needs polars: pip install 'expost[frames]'"),
    ],
)
def test_without_the_package_it_is_one_clear_line(asked: str, line: str) -> None:
    program = f"""
import expost as xp
two, query = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon=1)
found = xp.estimation.estimate_frequencies([(query, "no")], domain=two)
try:
    found.{asked}
except xp.InvalidInput as error:
    print(error)
"""
    done = run_without(["polars", "pandas", "pyarrow"], program)
    assert done.stdout.strip() == line, done.stderr
