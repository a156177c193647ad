"""The template of all pages, and every kind of page as text; tests/browser looks at them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

import expost
from browser.samples import SAMPLES
from expost.report._chart import Axis, Chart, Dots
from expost.report._page import (
    bullets,
    figure,
    note,
    page,
    paragraph,
    section,
    side_by_side,
    table,
)
from support.page_checks import checked, parsed

HEAD: dict[str, Any] = {
    "title": "What a page is about",
    "verdict": "In a sentence.",
    "file": "study.json",
    "date": "2026-11-17",
    "ids": [("content id", "0123456789ab" + "c" * 52, "The digest; sha256sum FILE prints it too.")],
    "budget": "2 (Bayesian filter)",
    "facts": [("subjects", "12")],
}
CHART = Chart(Axis("x", 0, 1), Axis("y", 0, 1), [Dots([(0, 1)], "realized", "a dot")])


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"paper"}))
def test_every_page_is_complete_and_needs_nothing_else(name: str, tmp_path: Path) -> None:
    checked(SAMPLES[name](tmp_path))


def test_a_page_starts_with_what_it_is_about() -> None:
    parsed = checked(page(paragraph("Body."), lead=["A line.", "Another line."], **HEAD))
    assert parsed.facts == {
        "file": "study.json",
        "date": "2026-11-17",
        "content id": "0123456789ab" + "c" * 52,
        "budget": "2 (Bayesian filter)",
        "subjects": "12",
        "expost version": expost.__version__,
    }
    lines = parsed.all("header")[0].all("p")
    assert [line.text for line in lines] == ["In a sentence.", "A line.", "Another line."]
    assert parsed.all("main")[0].text.strip() == "Body."


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    parsed = checked(page(**HEAD))
    (style,) = parsed.all("style")
    digest = base64.b64encode(hashlib.sha256(style.text.encode()).digest()).decode()
    (policy,) = (m for m in parsed.all("meta") if "http-equiv" in m.attributes)
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_text_is_never_part_of_the_page() -> None:
    hostile = "<script>alert('&')</script>\"' ε = 1, 5 %"
    parts = [
        section(hostile, paragraph(hostile), note(hostile), bullets([hostile])),
        table([hostile], [[hostile]], caption=hostile),
        side_by_side(
            figure(CHART, alt=hostile, caption=hostile, data_table=table(["a"], [[hostile]]))
        ),
    ]
    head: dict[str, Any] = {
        **dict.fromkeys(HEAD, hostile),
        "facts": [(hostile, hostile)],
        "ids": [(hostile, hostile, hostile)],
    }
    tree = parsed(page(*parts, **head))
    assert not tree.all("script")
    shown = hostile.replace("ε = ", "ε\xa0=\xa0").replace(" %", "\xa0%")
    for tag in ("h1", "h2", "p", "li", "td", "figcaption"):
        assert shown in [element.text for element in tree.all(tag)]
    assert tree.all("svg", "chart")[0].attributes["aria-label"] == hostile
    assert tree.all("title")[0].text == hostile


def test_a_figure_has_its_legend_words_and_numbers() -> None:
    alt_text = "One dot at the top of the left side."
    data = table(["x", "y"], [[0, 1]])
    parsed = checked(page(figure(CHART, alt=alt_text, caption="A dot.", data_table=data), **HEAD))
    (drawn,) = parsed.all("figure", "drawn")
    assert [item.text for item in drawn.all("li")] == ["a dot"]
    assert parsed.alts == [alt_text]
    assert drawn.all("details")[0].rows == [["x", "y"], ["0", "1"]]


@pytest.mark.parametrize(
    "fault",
    ['<img src="a.png">', '<p style="color: red">a</p>', "<script></script>", "<p>open",
     '<svg class="chart" role="img" aria-label=""></svg>', "<p>see https://example.org</p>"],
)  # fmt: skip
def test_a_page_with_a_fault_is_not_let_through(fault: str) -> None:
    with pytest.raises(AssertionError):
        checked(page(fault, **HEAD))
