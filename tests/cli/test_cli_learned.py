"""``expost explain --prior --statement``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]

AGES = xp.FiniteSet([{"age": age} for age in (20, 40, 60, 80)])
QUERY = xp.linear({"age": 1}, range=(20, 80), epsilon="0.5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "transcript.json"
    filter_ = xp.BayesianFilter(epsilon=1)
    xp.Transcript(AGES, filter_).add(QUERY, 80).add(QUERY, 20).add(QUERY, 80).save(
        file, overwrite=True
    )
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
The knowledge gain is 0.234 nats: 1.26 times as sure as before. Its odds have changed \
by a factor of 1.37.
For anyone who sees all of these answers, no statement about this subject can have gained or \
lost more than 0.5 nats: a factor of 1.65 of its odds.
"""
    )


def test_numbers_for_programs(run: Run, file: Path, prior: Path) -> None:
    code, out, _ = run("explain", file, "--prior", prior, "--statement", "age >= 60", "--json")
    result = json.loads(out)
    assert code == 0
    assert list(result) == [
        "statement", "before", "after", "gain", "gain_nats", "loss", "floor", "ceiling", "budget",
        "budget_respected", "first_refused", "peak",
    ]  # fmt: skip
    assert result["before"] == 0.23
    assert result["floor"] < result["before"] < result["after"] < result["ceiling"]
    assert result["gain_nats"] <= result["loss"]["upper"] <= result["budget"] == 1
    assert math.isclose(result["gain"], result["after"] / result["before"])
    assert math.isclose(math.log(result["gain"]), result["gain_nats"])
    assert result["floor"] == pytest.approx(0.23 / (0.23 + 0.77 * 2.718281828459045))


def test_without_a_filter_the_loss_is_the_limit(run: Run, file: Path, prior: Path) -> None:
    xp.Transcript(AGES).add(QUERY, 20).save(file, overwrite=True)
    code, out, _ = run("explain", file, "--prior", prior, "--statement", "age >= 60")
    assert code == 0
    assert out.splitlines()[0] == (
        "Before: 23 %. After these answers: 18 %. There is no budget; a loss as large as that of "
        "these answers allows between 15 % and 33 %."
    )


def test_a_budget_that_was_not_respected_allows_nothing_by_itself(
    run: Run, file: Path, prior: Path
) -> None:
    transcript = xp.Transcript(AGES, xp.BayesianFilter(epsilon="0.1")).add(QUERY, 20)
    transcript.save(file, overwrite=True)
    options = ("explain", file, "--prior", prior, "--statement", "age >= 60")
    out = run(*options)[1]
    assert out.startswith(
        "The budget of 0.1 (Bayesian filter) was not respected: the filter refuses "
    )
    assert "\nBefore: 23 %. After these answers: 18 %. A loss as large as at its peak, 0.5, " in out
    assert json.loads(run(*options, "--json")[1])["budget_respected"] is False


def test_after_a_breach_the_range_is_that_of_the_peak(
    run: Run, file: Path, prior: Path, tmp_path: Path
) -> None:
    """The loss at the end is 0, and would allow nothing but what was thought before."""
    older = xp.channel([["1/4", "3/4"]] * 2 + [["3/4", "1/4"]] * 2)
    transcript = xp.Transcript(AGES, xp.BayesianFilter(ratio=4))
    for response in (0, 0, 1, 1):
        transcript = transcript.add(older, response)
    transcript.save(file, overwrite=True)
    page = tmp_path / "page.html"
    options = ("explain", file, "--prior", prior, "--statement", "age >= 60")
    out = run(*options, "--html", page)[1]
    assert "The knowledge gain is 0 nats: as sure as before. Its odds have not changed." in out
    assert "A loss as large as at its peak, 2.19722, allows between 3.2 % and 73 %." in out
    result = checked(page.read_text(encoding="utf-8"))
    (lead,) = result.all("p", "breach")
    assert "was not respected: the filter refuses exchange 2." in lead.text
    assert result.facts["budget respected"] == "no: the filter refuses exchange 2"
    tree = json.loads(run(*options, "--json")[1])
    assert tree["ceiling"] == pytest.approx(0.23 * 9 / (0.23 * 9 + 0.77))


def test_what_is_ruled_out(run: Run, file: Path, prior: Path) -> None:
    sure = xp.channel([[1, 0], [1, 0], ["1/2", "1/2"], ["1/2", "1/2"]])
    xp.Transcript(AGES).add(sure, 1).save(file, overwrite=True)
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
    xp.Transcript(box, xp.SimplifiedFilter(epsilon=1)).add(QUERY, 80).save(file, overwrite=True)
    rows = [f"{20 + k % 60},{'north' if k % 3 else 'south'}\n" for k in range(300)]
    prior.write_text("age,region\n" + "".join(rows), encoding="utf-8")
    options = ("explain", file, "--prior", prior, "--statement")
    code, out, _ = run(*options, 'age >= 60 and region == "north"')
    assert code == 0
    assert "(standard error " in out
    result = json.loads(run(*options, "age >= 60", "--json")[1])
    assert 0 < result["standard_error"] < 0.1
    assert result["before"] == pytest.approx(1 / 3)
    assert result["floor"] < result["after"] < result["ceiling"]


def test_a_page_that_needs_nothing_from_outside(
    run: Run, file: Path, prior: Path, tmp_path: Path
) -> None:
    page = tmp_path / "out.html"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    options = ("explain", file, "--prior", prior, "--html", page, "--statement")
    code, out, err = run(*options, "age >= 60 and 1 < 2")
    assert (code, err) == (0, "")
    assert out.startswith("Before: 23 %.")
    text = page.read_text(encoding="utf-8")
    result = checked(text)
    assert result.facts == {
        "file": "transcript.json",
        "date": "2023-11-14, when the file was last written",
        "content id": xp.load_transcript(file).content_id,
        "expost version": xp.__version__,
        "budget": "1 (Bayesian filter)",
        "budget respected": "yes, at every exchange",
        "prior": "prior.csv",
        "realized loss": "0.5",
        "at its peak": "0.5",
        "queries answered": "3",
    }
    assert result.alts == ["Before 23 %, after 29 %, allowed between 9.9 % and 45 %."]
    assert ["allowed, at most", "45\xa0%"] in result.rows
    assert "age &gt;= 60 and 1 &lt; 2" in text
    assert "Before: 23&nbsp;%. After these answers: 29&nbsp;%." in text


@pytest.mark.parametrize(
    ("filter_", "text"),
    [
        (xp.BayesianFilter(epsilon=1), "allowed"),
        (xp.BayesianFilter(epsilon="0.1"), "with the loss at its peak"),
        (xp.ApproximateFilter(epsilon=1, delta="1e-6"), "with such a loss"),
        (None, "with such a loss"),
    ],
)
def test_the_drawing_says_allowed_only_of_a_budget_that_was_respected(
    run: Run, file: Path, prior: Path, tmp_path: Path, filter_: xp.filters.Filter | None, text: str
) -> None:
    page = tmp_path / "out.html"
    xp.Transcript(AGES, filter_).add(QUERY, 20).save(file, overwrite=True)
    run("explain", file, "--prior", prior, "--statement", "age >= 60", "--html", page)
    (figure,) = checked(page.read_text(encoding="utf-8")).all("figure", "drawn")
    (svg,) = figure.all("svg", "chart")
    assert f"{text} between " in svg.attributes["aria-label"]
    assert figure.text.startswith(f"{text}: ")
    assert ("allowed" in figure.text) == (text == "allowed")


def test_whoever_saw_only_the_first_answers_is_told_of_the_peak(
    run: Run, file: Path, prior: Path
) -> None:
    xp.Transcript(AGES).add(QUERY, 80).add(QUERY, 80).add(QUERY, 20).save(file, overwrite=True)
    out = run("explain", file, "--prior", prior, "--statement", "age >= 60")[1]
    assert out.splitlines()[-1] == "For anyone who saw only the first ones it is 1, the peak."


def test_a_page_is_not_written_over_what_is_read(run: Run, file: Path, prior: Path) -> None:
    for out in (file, prior):
        before = out.read_bytes()
        code, _, err = run(
            "explain", file, "--prior", prior, "--statement", "age >= 60", "--html", out
        )
        assert (code, err.count("\n")) == (2, 1)
        assert "would overwrite" in err
        assert out.read_bytes() == before
