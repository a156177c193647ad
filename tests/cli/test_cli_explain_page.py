"""``expost explain --html``: the page of a transcript."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

VALUES = xp.FiniteSet(["never", "sometimes", "often"])
HALF = xp.randomized_response("0.5")
AMOUNT = xp.perturbation([0, 3, 10], range=(0, 10), epsilon="1")


class Cells(HTMLParser):
    """The rows of all tables, and the texts that stand for pictures."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.alts: list[str] = []
        self.within = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.within = True
        elif tag == "img":
            self.alts.append(dict(attrs)["alt"] or "")

    def handle_endtag(self, tag: str) -> None:
        self.within = self.within and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.within:
            self.rows[-1][-1] += data

    @property
    def facts(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.rows if len(row) == 2}


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
    assert out == run("explain", file)[1]
    text = page.read_text(encoding="utf-8")
    found = Cells(text)
    assert found.facts == {
        "file": "subject.json",
        "date": "2023-11-14, when the file was last written",
        "content id": xp.load_transcript(file).content_id,
        "the value": "one of 3: never, sometimes or often",
        "queries answered": "4",
        "realized loss": "1",
        "at its peak": "1.5, after query 3",
        "basic composition": "2.5",
        "budget": "2 (bayesian filter)",
        "kept": "at every exchange",
        "left": "1",
    }
    asked = "a score from 0 to 10: 0 for never, 3 for sometimes and 10 for often, at epsilon 1"
    assert ["3", asked, "0", "1.5", "up"] in found.rows
    assert ["2", "the value itself, at epsilon 0.5", "never", "0.5", "as before"] in found.rows
    assert found.alts == [
        "The realized loss after each of 4 responses: 1.5 at its peak and 1 now, the budget is 2."
    ]
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "<script" not in text


def test_the_same_transcript_gives_the_same_page(run: Run, file: Path) -> None:
    pages = [file.with_name(f"{number}.html") for number in range(2)]
    for page in pages:
        assert run("explain", file, "--html", page, "--date", "14 November 2023")[0] == 0
    first, second = (page.read_bytes() for page in pages)
    assert first == second
    assert Cells(first.decode()).facts["date"] == "14 November 2023"


def test_a_long_transcript_has_every_loss_behind_its_picture(run: Run, tmp_path: Path) -> None:
    transcript = xp.Transcript(VALUES)
    for number in range(20):
        transcript = transcript.add(HALF, VALUES.values[number % 3])
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    transcript.save(file)
    run("explain", file, "--html", page)
    found = Cells(page.read_text(encoding="utf-8"))
    assert ["…", "10 more", "", "", ""] in found.rows
    assert ["13", "never", "0.5"] in found.rows
    assert found.facts["budget"] == "none: the transcript names no filter"
    assert "left" not in found.facts


def test_nothing_asked_so_far_is_a_page_too(run: Run, tmp_path: Path) -> None:
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    xp.Transcript(VALUES, xp.BayesianFilter(epsilon="2")).save(file)
    assert run("explain", file, "--html", page)[0] == 0
    found = Cells(page.read_text(encoding="utf-8"))
    assert (found.facts["queries answered"], found.facts["left"], found.alts) == ("0", "2", [])


def test_on_a_box_the_peak_is_never_below_the_loss(run: Run, tmp_path: Path) -> None:
    box = xp.Box(age=(10, 100), pressure=(50, 200), region=xp.categories("north", "south"))
    transcript = xp.Transcript(box, xp.BayesianFilter(epsilon=4))
    north = xp.linear({"region": {"north": 1}}, range=(0, 1), epsilon="0.5")
    heart = xp.logistic({"age": -0.059, "pressure": -0.0134}, intercept=4, epsilon=1)
    file, page = tmp_path / "subject.json", tmp_path / "page.html"
    transcript.add(north, 1).add(heart, 1).add(north, 0).save(file)
    assert run("explain", file, "--html", page)[0] == 0
    found = Cells(page.read_text(encoding="utf-8"))
    loss, peak = (found.facts[name] for name in ("realized loss", "at its peak"))
    assert float(peak.partition(",")[0]) >= float(loss)
    assert "a score from 0 to 1 of region (1 for north), at epsilon 0.5" in found.rows[11 + 1]


def test_a_label_is_text_and_not_part_of_the_page(run: Run, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x1b"
    file, page = tmp_path / "<b>.json", tmp_path / "page.html"
    xp.Transcript(xp.FiniteSet([hostile, "b"])).add(HALF, hostile).save(file)
    assert run("explain", file, "--html", page, "--date", "<i>")[0] == 0
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<script|<b>|<i>|\x1b", text)


def test_bad_input_is_one_line_and_nothing_is_lost(run: Run, file: Path) -> None:
    before = file.read_bytes()
    cases: list[tuple[list[object], str]] = [
        (["--html", file], "would be written over"),
        (["--date", "today"], "--date: goes with --html, without --prior"),
        (["--html", file.with_name("no") / "page.html"], "cannot write: No such file or directory"),
    ]
    for arguments, message in cases:
        code, out, err = run("explain", file, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
    assert file.read_bytes() == before
