"""The drawing of a confidence on a scale."""

from __future__ import annotations

import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost._format import format_percent
from expost.report._figures import scale

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
    chart = scale(before, after, lower, upper)
    root = ElementTree.fromstring(f"<svg>{chart.plot()}</svg>")
    places = [float(each.attrib["cx"].rstrip("%")) for each in root.iter("circle")]
    shares = [before] if after is None else [before, after]
    assert places == pytest.approx([100 * share for share in shares], abs=1e-3)
    (allowed,) = root.iter("rect")
    left, width = (float(allowed.attrib[name].rstrip("%")) for name in ("x", "width"))
    assert (left, left + width) == pytest.approx((100 * lower, 100 * upper), abs=1e-3)
    assert f"before: {format_percent(before)}" in [label for _, label in chart.legend]


def test_the_scales_in_the_docs_are_what_their_script_draws() -> None:
    docs = Path(__file__).parents[2] / "docs"
    script = runpy.run_path(str(docs / "figures" / "knowledge.py"))
    for draw, name in (("by_confidence", "epsilon_of_2.svg"), ("by_epsilon", "epsilons.svg")):
        assert (docs / "_static" / name).read_text(encoding="utf-8") == script[draw]()
