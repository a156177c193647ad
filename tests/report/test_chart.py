"""Charts: where marks are, and which numbers stand at the axes."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost.report._chart import (
    EDGES,
    MARKS,
    Axis,
    Band,
    Chart,
    Dots,
    FullLine,
    HorizontalBars,
    Mark,
    Polyline,
    VerticalBars,
)
from expost.report._page import STYLE

X, Y = Axis("across", 0, 10), Axis("up", 0, 4)


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(f"<svg>{chart.plot()}</svg>")


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_there_are_two_to_five_round_numbers_and_each_is_on_the_axis(
    low: float, width: float
) -> None:
    high = low + width
    if not high > low or width < 1e-6 * abs(low):
        return
    ticks = Axis("", low, high).labeled
    assert 1 <= len(ticks) <= 5
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= tick <= high + slack for tick, _ in ticks)
    steps = {round((b - a) / width, 6) for (a, _), (b, _) in pairwise(ticks)}
    assert len(steps) <= 1


@pytest.mark.parametrize(
    ("high", "texts"),
    [
        (1.05, ["0", "0.25", "0.5", "0.75", "1"]),
        (29, ["0", "10", "20"]),
        (1_200, ["0", "250", "500", "750", "1,000"]),
        (4e6, ["0", "1 M", "2 M", "3 M", "4 M"]),
        (1e-5, ["0", "2.5e-06", "5e-06", "7.5e-06", "1e-05"]),
    ],
)
def test_numbers_at_an_axis_are_for_people(high: float, texts: list[str]) -> None:
    assert [text for _, text in Axis("", 0, high).labeled] == texts


def test_marks_are_where_their_numbers_are() -> None:
    chart = Chart(
        X,
        Y,
        [
            Dots([(2.5, 1)], "realized"),
            VerticalBars([0, 5, 10], [4, 2], "basic"),
            Polyline([(0, 0), (10, 4)], "realized"),
        ],
    )
    root = drawn(chart)
    (circle,) = root.iter("circle")
    assert (circle.attrib["cx"], circle.attrib["cy"]) == ("25%", "75%")
    plot, half = ([r.attrib[n] for n in ("x", "y", "width", "height")] for r in root.iter("rect"))
    assert plot == ["0%", "0%", "50%", "100%"]
    assert half == ["50%", "50%", "50%", "50%"]
    (path,) = root.iter("path")
    assert path.attrib["d"] == "M0 1000L1000 0"


def test_rows_lie_around_whole_numbers() -> None:
    (bar,) = drawn(
        Chart(X, Axis("", -0.5, 0.5, ()), [HorizontalBars([(2, 4)], "basic", "", 1)])
    ).iter("rect")
    assert [bar.attrib[n] for n in ("x", "y", "width", "height")] == ["20%", "0%", "20%", "100%"]


def test_only_what_has_a_label_is_in_the_legend() -> None:
    marks: list[Mark] = [
        Polyline([(0, 0), (1, 1)], "realized", "a line"),
        Band([(0, 0)], [(0, 1)], "realized"),
        Dots([(0, 0)], "ink", "a dot", "diamond"),
        FullLine(2, "ink", "the budget", "6 4", horizontal=True),
        FullLine(2, "basic"),
    ]
    legend = Chart(X, Y, marks).legend
    assert [label for _, label in legend] == ["a line", "a dot", "the budget"]
    for swatch, _ in legend:
        ElementTree.fromstring(f"<svg>{swatch}</svg>")


def test_a_label_is_text_and_not_part_of_the_drawing() -> None:
    hostile = "<script>&"
    axis = Axis(hostile, 0, 1, [(0, hostile)])
    texts = [element.text for element in drawn(Chart(axis, axis, [])).iter("text")]
    assert texts == [hostile] * 4


def test_every_class_and_margin_of_a_chart_is_in_the_style_sheet() -> None:
    assert all(f".{name} {{" in STYLE for name in MARKS)
    assert all(f".chart.{margin} {{" in STYLE for margin in EDGES)
    margins = [
        Chart(X, Axis("", 0, 1, ticks), []).margin
        for ticks in ((), [(0.0, "0.5")], [(0.0, "1 0 0 12")])
    ]
    above = Chart(X, Axis("", 0, 1, [(0.0, "a name")]), [], names_above=True)
    assert [*margins, above.margin] == list(EDGES)


def test_names_above_their_bars_are_drawn_from_the_left_edge_without_a_line() -> None:
    rows = Axis("", -0.5, 0.5, [(0.0, "a design")])
    svg = drawn(Chart(X, rows, [HorizontalBars([(0, 1)], "grey")], names_above=True))
    (name,) = [text for text in svg.iter("text") if text.text == "a design"]
    assert "x" not in name.attrib
    assert float(name.attrib["dy"]) < 0
    assert all(line.attrib["y1"] == "100%" for line in svg.iter("line"))
