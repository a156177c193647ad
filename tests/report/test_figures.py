"""The charts of results draw what was computed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost._format import format_percent
from expost.report._chart import Band, Polyline, VerticalBars
from expost.report._estimates import EstimateRow, largest_rows
from expost.report._figures import confidence_chart, losses_chart, odometer_chart

YES = xp.randomized_response(epsilon="0.5")
DOMAIN = xp.FiniteSet(["no", "yes"])


def marks_by_label(
    transcript: xp.Transcript, costs: dict[str, list[float]] | None = None
) -> dict[str, Any]:
    odometer = xp.Odometer(transcript)
    chart = odometer_chart(odometer, odometer.history, costs=costs)
    return {mark.label: mark for mark in chart.marks if mark.label}


def heights(line: Polyline) -> list[float]:
    return [height for _, height in line.points]


def answered(*responses: str, budget: xp.BayesianFilter | None = None) -> xp.Transcript:
    transcript = xp.Transcript(DOMAIN, budget)
    for response in responses:
        transcript = transcript.add(YES, response)
    return transcript


def test_the_lines_are_the_losses_the_charges_and_the_budget() -> None:
    transcript = answered("yes", "no", "yes", "yes", budget=xp.BayesianFilter(epsilon=1))
    marks = marks_by_label(transcript)
    realized = marks["realized loss: 4 answered"]
    assert heights(realized) == [loss.upper for loss in xp.Odometer(transcript).history]
    assert heights(marks["basic composition: stops after 2"]) == pytest.approx([0, 0.5, 1])
    assert marks["budget 1"].at == 1


def test_the_band_goes_from_lower_to_upper() -> None:
    losses = [xp.numbers.Enclosure(0, 0), xp.numbers.Enclosure(0.25, 0.75)]
    chart = odometer_chart(xp.Odometer(answered("yes")), losses)
    (band,) = [mark for mark in chart.marks if isinstance(mark, Band)]
    assert (band.lower[1], band.upper[1]) == ((1, 0.25), (1, 0.75))


def test_without_a_budget_basic_composition_is_drawn_to_its_end() -> None:
    transcript = answered("yes", "no", "yes")
    marks = marks_by_label(transcript)
    assert heights(marks["basic composition"]) == pytest.approx([0, 0.5, 1, 1.5])
    odometer = xp.Odometer(transcript)
    assert odometer_chart(odometer, odometer.history).y.high > 1.5
    assert not any(label.startswith("budget") for label in marks)


def test_an_empty_transcript_and_one_over_its_budget_are_drawn() -> None:
    empty = xp.Odometer(xp.Transcript(DOMAIN))
    axis = odometer_chart(empty, empty.history).y
    assert (axis.low, axis.high) == (0, 1)
    over = xp.Odometer(answered("yes", "yes", budget=xp.BayesianFilter(epsilon="0.1")))
    assert odometer_chart(over, over.history).y.high >= 1
    assert "basic composition: stops after 0" in marks_by_label(over.transcript)


def test_infinite_losses_end_the_line() -> None:
    query = xp.channel([[1, 0], ["1/2", "1/2"]])
    marks = marks_by_label(answered("yes").add(query, 1).add(YES, "no"))
    assert len(marks["realized loss: 3 answered"].points) == 2
    assert marks["infinite from here"].at == 1.5


@pytest.mark.parametrize("ratio", ["9/4", "100000000000000000001/100000000000000000000"])
def test_a_budget_of_many_digits_has_a_short_label(ratio: str) -> None:
    marks = marks_by_label(answered("yes", budget=xp.BayesianFilter(ratio=ratio)))
    (label,) = [label for label in marks if label.startswith("budget")]
    assert len(label) < 30


def test_composition_rules_are_drawn_until_they_stop() -> None:
    transcript = answered("yes", "no", "yes", "yes", budget=xp.BayesianFilter(epsilon=1))
    costs = {"basic": [0, 0.5, 1], "whitehouse": [0.0], "renyi": [0, 0.25, 0.5, 0.75, 0.9]}
    marks = marks_by_label(transcript, costs)
    assert heights(marks["basic composition: stops after 2"]) == costs["basic"]
    assert heights(marks["Whitehouse: stops after 0"]) == costs["whitehouse"]
    assert heights(marks["Rényi"]) == costs["renyi"]
    assert "realized loss: 4 answered" in marks
    assert marks["budget 1"].at == 1


HARD = xp.channel([[1, 0], [0, 1]])
SOFT = xp.randomized_response(epsilon=1)


def losses_of(table: dict[str, Any]) -> tuple[Any, list[str]]:
    answers = xp.Answers(xp.FiniteSet([0, 1]), {"hard": HARD, "soft": SOFT}, table)
    chart = losses_chart(xp.realized_losses(answers))
    bars = [mark for mark in chart.marks if isinstance(mark, VerticalBars)]
    subjects = sum(sum(bar.heights) for bar in bars)
    _, *notes = chart.x.label.split("\n")
    return subjects, [label for _, label in chart.legend] + notes


@pytest.mark.parametrize(
    ("queries", "drawn", "labels"),
    [
        (["soft"] * 4, 4, ["realized loss: 1 on average", "basic composition: 1"]),
        (
            ["hard", "soft", "soft", "hard"],
            2,
            ["realized loss: 1 on average", "basic composition: 1", "infinite, not shown: 2"],
        ),
        (["hard"] * 4, 0, ["infinite, not shown: 4"]),
    ],
)
def test_every_subject_is_in_the_histogram_or_counted_beside_it(
    queries: list[str], drawn: int, labels: list[str]
) -> None:
    table = {"subject": range(4), "query": queries, "response": [0, 1, 0, 1]}
    assert losses_of(table) == (drawn, labels)


def test_charges_that_differ_have_an_outline() -> None:
    table = {"subject": [1, 2, 2], "query": ["soft"] * 3, "response": np.array([0, 1, 0])}
    drawn, labels = losses_of(table)
    assert drawn == 2
    assert labels == ["realized loss: 0.5 on average", "basic composition: 1.5 on average"]


VALUES = xp.FiniteSet(["never", "sometimes", "often"])
HALF = xp.randomized_response("0.5")
SURE = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"]])


def odometer_labels(transcript: xp.Transcript, peak: int) -> list[str]:
    odometer = xp.Odometer(transcript)
    return [label for _, label in odometer_chart(odometer, odometer.history, peak=peak).legend]


def test_the_legend_says_how_far_both_came() -> None:
    transcript = xp.Transcript(VALUES, xp.BayesianFilter(epsilon="1"))
    transcript = transcript.add(HALF, "never").add(HALF, "often").add(HALF, "never")
    assert odometer_labels(transcript, 1) == [
        "basic composition: stops after 2", "realized loss: 3 answered", "peak 0.5", "budget 1",
    ]  # fmt: skip


def test_without_a_budget_nothing_stops() -> None:
    transcript = xp.Transcript(VALUES).add(HALF, "never").add(SURE, 1)
    assert odometer_labels(transcript, 2) == [
        "basic composition", "realized loss: 2 answered", "infinite from here",
    ]  # fmt: skip


def test_a_long_budget_is_shortened() -> None:
    filter_ = xp.BayesianFilter(ratio="123456789012345/16666666666666")
    assert (
        odometer_labels(xp.Transcript(VALUES, filter_).add(HALF, "never"), 1)[-1]
        == "budget 2.00248"
    )


def test_few_responses_have_a_mark_each_and_many_have_none() -> None:
    for count, marks in ((3, 2 * 4 + 1), (60, 1)):
        transcript = xp.Transcript(VALUES)
        for index in range(count):
            transcript = transcript.add(HALF, VALUES.values[index % 3])
        odometer = xp.Odometer(transcript)
        plot = odometer_chart(odometer, odometer.history, peak=1).plot()
        assert len(list(ElementTree.fromstring(f"<svg>{plot}</svg>").iter("circle"))) == marks


def test_responses_are_counted_in_whole_numbers() -> None:
    odometer = xp.Odometer(xp.Transcript(VALUES).add(HALF, "never"))
    chart = odometer_chart(odometer, odometer.history, peak=1)
    assert [text for _, text in chart.x.labeled] == ["0", "1"]


SHARES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.23, "23 %"), (0.0951, "9.5 %"), (0.94, "94 %"), (0.5, "50 %"),
     (0.004, "0.4 %"), (0.9997, "99.97 %"), (1e-300, "under 0.0001 %"), (1e-6, "0.0001 %"),
     (1 - 1e-9, "over 99.9999 %"), (0.29999999, "30 %")],
)  # fmt: skip
def test_a_share_for_people(share: float, text: str) -> None:
    assert format_percent(share) == text


@given(SHARES)
def test_only_what_is_certain_is_said_to_be(share: float) -> None:
    assert (format_percent(share) == "0 %") == (share == 0)
    assert (format_percent(share) == "100 %") == (share == 1)


@given(SHARES, st.none() | SHARES, SHARES, SHARES)
def test_marks_are_where_the_shares_are(
    before: float, after: float | None, lower: float, upper: float
) -> None:
    lower, upper = sorted((lower, upper))
    chart = confidence_chart(before, after, lower, upper)
    root = ElementTree.fromstring(f"<svg>{chart.plot()}</svg>")
    centres = [float(circle.attrib["cx"].rstrip("%")) for circle in root.iter("circle")]
    shares = [before] if after is None else [before, after]
    assert centres == pytest.approx([100 * share for share in shares], abs=1e-3)
    (allowed,) = root.iter("rect")
    start, width = (float(allowed.attrib[name].rstrip("%")) for name in ("x", "width"))
    assert (start, start + width) == pytest.approx((100 * lower, 100 * upper), abs=1e-3)
    assert f"before: {format_percent(before)}" in [label for _, label in chart.legend]


def test_the_scales_in_the_docs_are_what_their_script_draws() -> None:
    docs = Path(__file__).parents[2] / "docs"
    script = runpy.run_path(str(docs / "figures" / "knowledge.py"))
    for draw, name in (("by_confidence", "epsilon_of_2.svg"), ("by_epsilon", "epsilons.svg")):
        assert (docs / "_static" / name).read_text(encoding="utf-8") == script[draw]()


def test_equal_estimates_push_no_larger_one_out_of_the_largest() -> None:
    rows = [
        EstimateRow(name, size, 0.1, 0, 9) for name, size in zip("abcd", [1, 1, 1, 5], strict=True)
    ]
    assert [row.of for row in largest_rows(rows, 2)] == ["a", "d"]
    assert largest_rows(rows, 9) == rows
