"""Every kind of page, at every width, on light and dark screens and on paper."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import playwright.sync_api as playwright
import pypdfium2
import pytest

from browser.samples import SAMPLES

Open = Callable[..., playwright.Page]
Pages = Callable[[str], Path]

LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"
FOCUSED = """() => {
  const at = document.activeElement;
  if (at === document.body) return null;
  const style = getComputedStyle(at);
  const all = [...document.querySelectorAll('*')];
  return [all.indexOf(at), style.outlineStyle, parseFloat(style.outlineWidth)];
}"""
CONTROLS = """() => {
  const all = [...document.querySelectorAll('*')];
  return all.filter(each => each.matches('summary, a[href], button, input, [tabindex="0"]')
    && each.checkVisibility()).map(each => all.indexOf(each));
}"""
COUNTED = """() => [...document.querySelectorAll('svg.chart')].flatMap(chart => {
  const texts = [...chart.querySelectorAll('text')];
  const ticks = (mark, value) =>
    texts.filter(each => each.getAttribute(mark) === value).map(each => each.textContent);
  return [['subjects', 'dx', '-8'], ['responses given', 'dy', '18'], ['round', 'dy', '18'],
    ['number of the question', 'dy', '18']]
    .filter(([title]) => texts.some(each => each.matches('.title') && each.textContent === title))
    .map(([title, ...ticksOf]) => [title, ticks(...ticksOf)]);
})"""
MARKS = """() => [...document.querySelectorAll(
  'svg.chart :is(path, rect, circle, line):not(.grid, .allowed, .range)')].map(mark => {
  const style = getComputedStyle(mark);
  return style.stroke === 'none' ? style.fill : style.stroke;
})"""
PAPER = 718
"""The width of a sheet of A4 between margins of a centimetre, in pixels."""


def amiss(page: playwright.Page) -> dict[str, Any]:
    """What is wrong with how a page looks, by kind."""
    return {kind: faults for kind, faults in page.evaluate(LOOK).items() if faults}


def light(color: str) -> float:
    """The relative luminance of a color as browsers write it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def overlaps(page: playwright.Page) -> list[tuple[str, str]]:
    """Words that are printed over each other on sheets of A4."""
    edges = dict.fromkeys(("top", "bottom", "left", "right"), "1cm")
    sheets = pypdfium2.PdfDocument(page.pdf(format="A4", margin=edges))
    pairs = []
    for sheet in sheets:
        text = sheet.get_textpage()
        boxes = [text.get_rect(index) for index in range(text.count_rects())]
        for first, second in itertools.combinations(boxes, 2):
            # Left, bottom, right and top, in points; a T and its neighbor overlap a little.
            across = min(first[2], second[2]) - max(first[0], second[0])
            up = min(first[3], second[3]) - max(first[1], second[1])
            if across > 3 and up > 2:
                pairs.append((text.get_text_bounded(*first), text.get_text_bounded(*second)))
    return pairs


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 800, 1400])
@pytest.mark.parametrize("name", SAMPLES)
def test_everything_can_be_read(
    opened: Open, pages: Pages, name: str, width: int, scheme: str
) -> None:
    page = opened(pages(name), width, scheme)
    assert amiss(page) == {}
    page.evaluate(OPEN_ALL)
    assert amiss(page) == {}
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_is_on_the_first_screen_of_a_phone(
    opened: Open, pages: Pages, name: str, scheme: str
) -> None:
    page = opened(pages(name), 400, scheme)
    page.set_viewport_size({"width": 400, "height": 800})
    (verdict,) = page.query_selector_all("header .verdict")
    assert len(verdict.inner_text()) > 10
    box = verdict.bounding_box()
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 800
    assert box["x"] + box["width"] <= 400


@pytest.mark.parametrize("name", SAMPLES)
def test_axes_of_counts_have_whole_numbers(opened: Open, pages: Pages, name: str) -> None:
    for title, ticks in opened(pages(name), 400).evaluate(COUNTED):
        assert ticks, title
        assert all(tick.replace(",", "").isdigit() for tick in ticks), (title, ticks)


def test_some_axes_of_each_kind_were_looked_at(opened: Open, pages: Pages) -> None:
    titles = {
        title
        for name in ("audit", "study", "few_exchanges")
        for title, _ in opened(pages(name)).evaluate(COUNTED)
    }
    assert titles == {"subjects", "responses given", "round", "number of the question"}


@pytest.mark.parametrize("name", SAMPLES)
def test_marks_are_seen_on_a_dark_screen(opened: Open, pages: Pages, name: str) -> None:
    page = opened(pages(name), 800, "dark")
    paper = light(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    for color in set(page.evaluate(MARKS)):
        assert (light(color) + 0.05) / (paper + 0.05) >= 3, color


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SAMPLES)
def test_paper_is_white_and_has_the_numbers_that_were_opened(
    opened: Open, pages: Pages, name: str, scheme: str
) -> None:
    page = opened(pages(name), PAPER, scheme)
    page.emulate_media(media="print")
    hidden = "[...document.querySelectorAll('td')].filter(each => !each.checkVisibility()).length"
    assert amiss(page) == {}
    assert (page.evaluate(hidden) > 0) == (page.query_selector("figure details") is not None)
    assert page.query_selector(".facts details").is_visible()
    page.evaluate(OPEN_ALL)
    assert amiss(page) == {}
    assert page.evaluate(hidden) == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert overlaps(page) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(
    opened: Open, pages: Pages, name: str
) -> None:
    page = opened(pages(name), 400)
    page.evaluate(OPEN_ALL)
    expected, reached = page.evaluate(CONTROLS), []
    for _ in expected:
        page.keyboard.press("Tab")
        control, style, width = page.evaluate(FOCUSED)
        assert style == "solid"
        assert width >= 2
        reached.append(control)
    assert reached == expected
    for summary in page.query_selector_all("summary"):
        summary.focus()
        page.keyboard.press("Enter")
    assert page.query_selector("details[open]") is None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_picture_is_told_to_those_who_do_not_see_it(
    opened: Open, pages: Pages, name: str
) -> None:
    page = opened(pages(name))
    drawings = [
        element.get_attribute("aria-label") for element in page.query_selector_all("svg.chart")
    ]
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    exposed = [node for node in nodes if not node["ignored"]]
    images = [node["name"]["value"] for node in exposed if node["role"]["value"] == "image"]
    assert images == drawings
    assert all(len(name) > 20 for name in images)
    headings = [node for node in exposed if node["role"]["value"] == "heading"]
    levels = [element["value"]["value"] for node in headings for element in node["properties"]]
    assert levels.count(1) == 1
