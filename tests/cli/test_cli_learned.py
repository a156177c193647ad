"""``expost explain --prior --statement``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

AGES = xp.FiniteSet([{"age": age} for age in (20, 40, 60, 80)])
QUERY = xp.linear({"age": 1}, range=(20, 80), epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "transcript.json"
    guard = xp.BayesianFilter(epsilon=1)
    xp.Transcript(AGES, guard).add(QUERY, 80).add(QUERY, 20).add(QUERY, 80).save(file)
    return file


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    prior = tmp_path / "prior.csv"
    prior.write_text("age,probability\n20,0.4\n40,0.37\n60,0.15\n80,0.08\n")
    return prior


def test_one_sentence_for_people(run: Run, file: Path, prior: Path) -> None:
    code, out, err = run("explain", file, "--prior", prior, "--statement", "age >= 60")
    assert (code, err) == (0, "")
    assert (
        out
        == """\
Before: 23 %. After these answers: 29 %. The budget allows between 9.9 % and 45 %.
The knowledge gain is 0.234 nats: 1.26 times as sure as before.
For somebody who sees all of these answers, no statement about this person can have gained or \
lost more than 0.5.
"""
    )


def test_numbers_for_programs(run: Run, file: Path, prior: Path) -> None:
    code, out, _ = run("explain", file, "--prior", prior, "--statement", "age >= 60", "--json")
    result = json.loads(out)
    assert code == 0
    assert list(result) == [
        "statement", "before", "after", "gain", "gain_nats", "loss", "floor", "ceiling", "budget",
        "budget_kept", "first_refused", "peak",
    ]  # fmt: skip
    assert result["before"] == 0.23
    assert result["floor"] < result["before"] < result["after"] < result["ceiling"]
    assert result["gain_nats"] <= result["loss"]["upper"] <= result["budget"] == 1
    assert math.isclose(result["gain"], result["after"] / result["before"])
    assert math.isclose(math.log(result["gain"]), result["gain_nats"])
    assert result["floor"] == pytest.approx(0.23 / (0.23 + 0.77 * 2.718281828459045))


def test_without_a_filter_the_loss_is_the_limit(run: Run, file: Path, prior: Path) -> None:
    xp.Transcript(AGES).add(QUERY, 20).save(file)
    code, out, _ = run("explain", file, "--prior", prior, "--statement", "age >= 60")
    assert code == 0
    assert out.splitlines()[0] == (
        "Before: 23 %. After these answers: 18 %. There is no budget; a loss as large as that of "
        "these answers allows between 15 % and 33 %."
    )


def test_a_budget_that_was_not_kept_allows_nothing_by_itself(
    run: Run, file: Path, prior: Path
) -> None:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon="0.1")).add(QUERY, 20)
    transcript.save(file)
    options = ("explain", file, "--prior", prior, "--statement", "age >= 60")
    assert "The budget was not kept; a loss as large" in run(*options)[1]
    assert json.loads(run(*options, "--json")[1])["budget_kept"] is False


def test_what_is_ruled_out(run: Run, file: Path, prior: Path) -> None:
    sure = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"], ["1/2", "1/2"]])
    xp.Transcript(AGES).add(sure, 1).save(file)
    options = ("explain", file, "--prior", prior, "--statement")
    code, out, _ = run(*options, "age < 60")
    assert code == 0
    assert "After these answers: 0 %." in out
    assert "The answers rule the statement out.\nThe answers rule some value out" in out
    result = json.loads(run(*options, "age < 60", "--json")[1])
    assert (result["gain"], result["gain_nats"]) == (0, "-inf")
    assert (result["floor"], result["ceiling"]) == (0, 1)
    assert result["loss"] == {"lower": "inf", "upper": "inf"}
    assert "The prior rules the statement out" in run(*options, "age > 90")[1]
    assert json.loads(run(*options, "age > 90", "--json")[1])["gain"] is None


def test_samples_on_a_box_have_a_standard_error(run: Run, file: Path, prior: Path) -> None:
    box = xp.Box(age=(20, 80), region=xp.categories("north", "south"))
    xp.Transcript(box, xp.SimplifiedFilter(epsilon=1)).add(QUERY, 80).save(file)
    rows = [f"{20 + k % 60},{'north' if k % 3 else 'south'}\n" for k in range(300)]
    prior.write_text("age,region\n" + "".join(rows))
    options = ("explain", file, "--prior", prior, "--statement")
    code, out, _ = run(*options, 'age >= 60 and region == "north"')
    assert code == 0
    assert "(standard error " in out
    result = json.loads(run(*options, "age >= 60", "--json")[1])
    assert 0 < result["standard_error"] < 0.1
    assert result["before"] == pytest.approx(1 / 3)
    assert result["floor"] < result["after"] < result["ceiling"]


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [name for name, _ in attrs if name in ("src", "href", "xlink:href")]


def test_a_page_that_needs_nothing_from_outside(
    run: Run, file: Path, prior: Path, tmp_path: Path
) -> None:
    page = tmp_path / "out.html"
    options = ("explain", file, "--prior", prior, "--html", page, "--statement")
    code, out, err = run(*options, "age >= 60 and 1 < 2")
    assert (code, err) == (0, "")
    assert out.startswith("Before: 23 %.")
    text = page.read_text(encoding="utf-8")
    parser = _Links()
    parser.feed(text)
    assert {"html", "h1", "svg", "circle", "rect"} <= set(parser.tags)
    assert not {"script", "link", "img", "iframe"} & set(parser.tags)
    assert parser.outside == []
    assert "age &gt;= 60 and 1 &lt; 2" in text
    assert "Before: 23&nbsp;%. After these answers: 29&nbsp;%." in text


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        (xp.BayesianFilter(epsilon=1), "allowed"),
        (xp.BayesianFilter(epsilon="0.1"), "with such a loss"),
        (xp.ApproximateFilter(epsilon=1, delta="1e-6"), "with such a loss"),
        (None, "with such a loss"),
    ],
)
def test_the_drawing_says_allowed_only_of_a_budget_that_was_kept(
    run: Run, file: Path, prior: Path, tmp_path: Path, guard: xp.filters.Filter | None, words: str
) -> None:
    page = tmp_path / "out.html"
    xp.Transcript(AGES, guard).add(QUERY, 20).save(file)
    run("explain", file, "--prior", prior, "--statement", "age >= 60", "--html", page)
    text = page.read_text(encoding="utf-8")
    drawn = text[text.index("<svg") : text.index("</svg>")]
    assert f"{words} between " in drawn
    assert f">{words}: " in drawn
    assert ("allowed" in drawn) == (words == "allowed")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--prior", "PRIOR"], "give --prior PRIOR and --statement TEXT together"),
        (["--statement", "age > 1"], "give --prior PRIOR and --statement TEXT together"),
        (["--prior", "PRIOR", "--statement", "agee > 1"],
         "statement column 1: unknown name 'agee'; known here: age"),
        (["--prior", "PRIOR", "--statement", "age >"],
         "statement column 6: a number, a text or a name is missing before the end"),
        (["--prior", "PRIOR", "--statement", "__import__('os')"],
         "statement column 1: unknown name '__import__'; known here: age"),
        (["--prior", "PRIOR", "--statement", "age\n>\x1b[31m 1"],
         "statement column 6: is a character that statements do not have"),
        (["--prior", "none.csv", "--statement", "age > 1"],
         "none.csv: cannot be read: No such file or directory"),
        (["--prior", "PRIOR", "--statement", "age > 1", "--html", "no/such/folder.html"],
         "cannot write: No such file or directory: no/such/folder.html"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(
    run: Run, file: Path, prior: Path, options: list[str], line: str
) -> None:
    options = [str(prior) if option == "PRIOR" else option for option in options]
    code, out, err = run("explain", file, *options)
    assert (code, out, err) == (2, "", f"expost: {line}\n")


def test_whoever_saw_only_the_first_answers_is_told_of_the_peak(
    run: Run, file: Path, prior: Path
) -> None:
    xp.Transcript(AGES).add(QUERY, 80).add(QUERY, 80).add(QUERY, 20).save(file)
    out = run("explain", file, "--prior", prior, "--statement", "age >= 60")[1]
    assert out.splitlines()[-1] == "For somebody who saw only the first ones it is 1, the peak."


def test_a_page_is_not_written_over_what_is_read(run: Run, file: Path, prior: Path) -> None:
    for out in (file, prior):
        before = out.read_bytes()
        code, _, err = run(
            "explain", file, "--prior", prior, "--statement", "age >= 60", "--html", out
        )
        assert (code, err.count("\n")) == (2, 1)
        assert "would be written over" in err
        assert out.read_bytes() == before
