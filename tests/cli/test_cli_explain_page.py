"""``expost explain --html``: the page of a transcript."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]

VALUES = xp.FiniteSet(["never", "sometimes", "often"])
HALF = xp.randomized_response("0.5")
AMOUNT = xp.perturbation([0, 3, 10], range=(0, 10), epsilon="1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "subject.json"
    transcript = xp.Transcript(VALUES, xp.BayesianFilter(epsilon="2"))
    transcript = transcript.add(HALF, "sometimes").add(HALF, "never").add(AMOUNT, 0)
    transcript.add(HALF, "often").save(file)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return file


def test_the_page_of_a_transcript_has_all_that_it_is_about(run: Run, file: Path) -> None:
    page = file.with_name("page.html")
    code, out, err = run("explain", file, "--html", page)
    assert (code, err) == (0, "")
    assert out == run("explain", file)[1] + f"\nThe page is in {page}.\n"
    text = page.read_text(encoding="utf-8")
    result = checked(text)
    assert result.facts == {
        "file": "subject.json",
        "date": "2023-11-14, when the file was last written",
        "content id": xp.load_transcript(file).content_id,
        "expost version": xp.__version__,
        "domain": "one of 3: never, sometimes or often",
        "queries answered": "4",
        "realized loss": "1",
        "at its peak": "1.5, first after query 3",
        "basic composition": "2.5",
        "budget": "2 (Bayesian filter)",
        "budget respected": "yes, at every exchange",
        "remaining": "1",
    }
    arguments = "a score from 0 to 10: 0 for never, 3 for sometimes and 10 for often, at epsilon 1"
    assert ["3", arguments, "0", "1.5", "up"] in result.rows
    assert ["2", "the value itself, at epsilon 0.5", "never", "0.5", "as before"] in result.rows
    assert ["all of these responses", "1"] in result.rows
    assert ["only the first ones, however many", "1.5, the peak"] in result.rows
    assert result.rows[-1] == ["some of them, or only that a query was refused", "the budget, 2"]
    assert "each is drawn at random around the truth" in result.text
    assert result.all("h2")[-1].text == "Not covered by this page"
    assert len(result.all("main")[0].all("ul")[-1].all("li")) == 4
    assert result.alts == [
        "The realized loss after each of 4 responses: 1.5 at its peak and 1 now, the budget is 2."
    ]


@pytest.mark.parametrize(
    ("filter_", "bound"),
    [
        (None, "assume at least the sum of the epsilons, 1"),
        (xp.BayesianFilter(epsilon="0.5"), "assume at least the sum of the epsilons, 1"),
        (xp.BasicFilter(epsilon=3), "the budget, 3"),
        (
            xp.ApproximateFilter(epsilon=3, delta="1e-6"),
            "the budget, 3 at delta 1e-06; with a delta it bounds no single outcome",
        ),
    ],
)
def test_whoever_sees_a_part_is_bounded_by_a_budget_that_was_respected_and_no_loss(
    run: Run, tmp_path: Path, filter_: xp.filters.Filter | None, bound: str
) -> None:
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    xp.Transcript(VALUES, filter_).add(HALF, "never").add(HALF, "often").save(file)
    run("explain", file, "--html", page)
    result = checked(page.read_text(encoding="utf-8"))
    assert result.rows[-1] == ["some of them, or only that a query was refused", bound]


def test_a_peak_that_was_reached_twice_is_told_by_the_first(run: Run, tmp_path: Path) -> None:
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]))
    transcript.add(HALF, "no").add(HALF, "yes").add(HALF, "no").save(file)
    run("explain", file, "--html", page)
    facts = checked(page.read_text(encoding="utf-8")).facts
    assert facts["at its peak"] == "0.5, first after query 1"


def test_the_same_transcript_gives_the_same_page(run: Run, file: Path) -> None:
    pages = [file.with_name(f"{index}.html") for index in range(2)]
    for page in pages:
        assert run("explain", file, "--html", page, "--date", "14 November 2023")[0] == 0
    first, second = (page.read_bytes() for page in pages)
    assert first == second
    assert checked(first.decode()).facts["date"] == "14 November 2023"


def test_a_long_transcript_has_every_loss_behind_its_picture(run: Run, tmp_path: Path) -> None:
    transcript = xp.Transcript(VALUES)
    for index in range(20):
        transcript = transcript.add(HALF, VALUES.values[index % 3])
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    transcript.save(file)
    run("explain", file, "--html", page)
    result = checked(page.read_text(encoding="utf-8"))
    assert ["…", "10 more", "", "", ""] in result.rows
    assert ["13", "never", "0.5", "6.5"] in result.rows
    assert result.facts["budget"] == "none: the transcript names no filter"
    assert "remaining" not in result.facts


def test_nothing_asked_so_far_is_a_page_too(run: Run, tmp_path: Path) -> None:
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    xp.Transcript(VALUES, xp.BayesianFilter(epsilon="2")).save(file)
    assert run("explain", file, "--html", page)[0] == 0
    result = checked(page.read_text(encoding="utf-8"))
    assert (result.facts["queries answered"], result.facts["remaining"], result.alts) == (
        "0",
        "2",
        [],
    )


def test_on_a_box_the_peak_is_never_below_the_loss(run: Run, tmp_path: Path) -> None:
    box = xp.Box(age=(10, 100), pressure=(50, 200), region=xp.categories("north", "south"))
    transcript = xp.Transcript(box, xp.BayesianFilter(epsilon=4))
    north = xp.linear({"region": {"north": 1}}, range=(0, 1), epsilon="0.5")
    heart = xp.logistic({"age": -0.059, "pressure": -0.0134}, intercept=4, epsilon=1)
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    transcript.add(north, 1).add(heart, 1).add(north, 0).save(file)
    assert run("explain", file, "--html", page)[0] == 0
    result = checked(page.read_text(encoding="utf-8"))
    loss, peak = (result.facts[name] for name in ("realized loss", "at its peak"))
    assert float(peak.partition(",")[0]) >= float(loss)
    arguments = "a score from 0 to 1 of region (1 for north), at epsilon 0.5"
    assert [row[0] for row in result.rows if arguments in row] == ["1", "3"]


def test_a_label_is_text_and_not_part_of_the_page(run: Run, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x1b"
    file, page = tmp_path / "<b>.json", tmp_path / "page.html"
    xp.Transcript(xp.FiniteSet([hostile, "b"])).add(HALF, hostile).save(file)
    assert run("explain", file, "--html", page, "--date", "<i>")[0] == 0
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script|<b>|<i>|\x1b", text)
