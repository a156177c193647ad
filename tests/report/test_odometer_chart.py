"""The odometer on a page."""

from __future__ import annotations

from xml.etree import ElementTree

import expost as xp
from expost.report._figures import odometer_chart

VALUES = xp.FiniteSet(["never", "sometimes", "often"])
HALF = xp.randomized_response("0.5")
SURE = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"]])


def labels(transcript: xp.Transcript, peak: int) -> list[str]:
    odometer = xp.Odometer(transcript)
    return [label for _, label in odometer_chart(odometer, odometer.history, peak=peak).legend]


def test_the_legend_says_how_far_both_came() -> None:
    transcript = xp.Transcript(VALUES, xp.BayesianFilter(epsilon="1"))
    transcript = transcript.add(HALF, "never").add(HALF, "often").add(HALF, "never")
    assert labels(transcript, 1) == [
        "basic composition: stops after 2", "realized loss: 3 answered", "peak 0.5", "budget 1",
    ]  # fmt: skip


def test_without_a_budget_nothing_stops() -> None:
    transcript = xp.Transcript(VALUES).add(HALF, "never").add(SURE, 1)
    assert labels(transcript, 2) == [
        "basic composition", "realized loss: 2 answered", "infinite from here",
    ]  # fmt: skip


def test_a_long_budget_is_shortened() -> None:
    guard = xp.BayesianFilter(ratio="123456789012345/16666666666666")
    assert labels(xp.Transcript(VALUES, guard).add(HALF, "never"), 1)[-1] == "budget 2.00248"


def test_few_responses_have_a_mark_each_and_many_have_none() -> None:
    for count, marks in ((3, 2 * 4 + 1), (60, 1)):
        transcript = xp.Transcript(VALUES)
        for number in range(count):
            transcript = transcript.add(HALF, VALUES.values[number % 3])
        odometer = xp.Odometer(transcript)
        plot = odometer_chart(odometer, odometer.history, peak=1).plot()
        assert len(list(ElementTree.fromstring(f"<svg>{plot}</svg>").iter("circle"))) == marks


def test_responses_are_counted_in_whole_numbers() -> None:
    odometer = xp.Odometer(xp.Transcript(VALUES).add(HALF, "never"))
    chart = odometer_chart(odometer, odometer.history, peak=1)
    assert [text for _, text in chart.x.labelled] == ["0", "1"]
