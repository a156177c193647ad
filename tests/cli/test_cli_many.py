"""``expost loss --many``: a table of answers in, a loss per subject out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

QUERIES: dict[str, Any] = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "queries": {
        "smokes": {"kind": "randomized_response", "epsilon": "0.5"},
        "drinks": {"kind": "randomized_response", "epsilon": "1"},
    },
}
DATA = """subject,query,response
ann,smokes,yes
ann,drinks,no
bob,smokes,yes
ann,smokes,yes
"""


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(QUERIES))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    return path


def test_losses_as_json(run: Run, data: Path, queries: Path) -> None:
    code, out, err = run("loss", "--many", data, "--queries", queries, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert [row["subject"] for row in result["losses"]] == ["ann", "bob"]
    assert [row["exchanges"] for row in result["losses"]] == [3, 1]
    losses = xp.realized_losses(xp.load_answers(data, queries))
    assert result["losses"] == list(losses.rows())
    assert result["largest"] == losses.upper.max()
    assert (result["subjects"], result["exchanges"], result["basic"]) == (2, 4, 1.25)


def test_losses_for_people(run: Run, data: Path, queries: Path) -> None:
    code, out, _ = run("loss", "--many", data, "--queries", queries)
    assert code == 0
    assert [line.split("  ")[-1].strip() for line in out.splitlines()] == [
        "2", "4", "0.25", "0.25", "0.5", "0.5 to 2",
    ]  # fmt: skip


def test_losses_go_to_a_file(run: Run, data: Path, queries: Path, tmp_path: Path) -> None:
    saved = tmp_path / "losses.csv"
    code, out, _ = run("loss", "--many", data, "--queries", queries, "-o", saved, "--json")
    assert code == 0
    assert "losses" not in json.loads(out)
    with saved.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["subject"] for row in rows] == ["ann", "bob"]
    assert 0 <= float(rows[0]["lower"]) <= float(rows[0]["upper"]) < 1e-12


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_histogram_is_drawn(
    run: Run, data: Path, queries: Path, tmp_path: Path, suffix: str
) -> None:
    picture = tmp_path / f"losses.{suffix}"
    code, _, _ = run("loss", "--many", data, "--queries", queries, "--plot", picture)
    assert code == 0
    assert picture.read_bytes().lstrip()[:5] in (b"\x89PNG\r", b"<svg ")


def test_infinite_losses_are_counted_and_drawn_beside(
    run: Run, tmp_path: Path, queries: Path
) -> None:
    hard = {"kind": "channel", "responses": [0, 1], "probabilities": [[1, 0], [0, 1]]}
    queries.write_text(json.dumps({**QUERIES, "queries": {"hard": hard}}), encoding="utf-8")
    data, picture = tmp_path / "data.csv", tmp_path / "losses.png"
    data.write_text("subject,query,response\nann,hard,1\nbob,hard,0\n")
    code, out, _ = run("loss", "--many", data, "--queries", queries, "--plot", picture)
    assert code == 0
    assert "unbounded          2 subjects" in out
    code, out, _ = run("loss", "--many", data, "--queries", queries, "--json")
    assert json.loads(out)["losses"][0]["upper"] == "inf"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DATA + "eve,sleeps,no\n", "row 5 below the header: query: unknown query"),
        (
            DATA + "eve,smokes,\n",
            "row 5 below the header: response: is empty: there is no response to",
        ),
        (
            "subject,response\nann,no\n",
            "column 'query' is missing; there are 'subject', 'respo",
        ),
        ("", "is empty"),
    ],
)
def test_bad_rows_are_one_line_and_nothing_is_lost(
    run: Run, data: Path, queries: Path, tmp_path: Path, text: str, message: str
) -> None:
    data.write_text(text, encoding="utf-8")
    saved = tmp_path / "losses.csv"
    saved.write_text("subject,lower,upper,exchanges,basic\n")
    picture = tmp_path / "losses.png"
    code, out, err = run(
        "loss", "--many", data, "--queries", queries, "-o", saved, "--plot", picture
    )
    assert (code, out) == (2, "")
    assert err.startswith(f"expost: {data}: {message}")
    assert err.count("\n") == 1
    assert saved.read_text("utf-8") == "subject,lower,upper,exchanges,basic\n"
    assert data.read_text("utf-8") == text
    assert not picture.exists()


def test_many_subjects_who_take_long_get_a_bar(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from expost.cli import _outputs

    monkeypatch.setattr(_outputs, "_PATIENCE", 0.0)
    queries, data = tmp_path / "queries.json", tmp_path / "data.csv"
    question = {"kind": "logistic", "weights": [1, -2], "epsilon": "1"}
    box = {"version": 1, "domain": {"box": [[-1, 1]] * 2}, "queries": {"q": question}}
    queries.write_text(json.dumps(box))
    data.write_text("subject,query,response\n" + "".join(f"{i},q,{i % 2}\n" for i in range(9)))
    code, out, err = run("loss", "--many", data, "--queries", queries)
    assert code == 0
    assert err.splitlines()[0] == "[#############.................] 4 of 9 subjects"
    assert "subjects" in out


def test_losses_are_not_written_over_answers(run: Run, data: Path, queries: Path) -> None:
    before = data.read_bytes()
    for option in ("-o", "--plot"):
        code, _, err = run("loss", "--many", data, "--queries", queries, option, data)
        assert (code, err.count("\n")) == (2, 1)
        assert "would overwrite" in err
    assert data.read_bytes() == before


def test_subjects_over_a_budget_are_counted_by_the_end(
    run: Run, data: Path, queries: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "losses.csv"
    arguments = ["loss", "--many", data, "--queries", queries, "--budget", "0.4"]
    code, out, err = run(*arguments, "-o", saved)
    assert (code, err) == (0, "")
    assert out.splitlines()[-3:] == [
        "budget              0.4 (Bayesian filter)",
        "over it at the end  1 subject",
        "budget respected    not looked at here; for each transcript, expost loss FILE says it",
    ]
    with saved.open(newline="") as file:
        assert [(row["subject"], row["over"]) for row in csv.DictReader(file)] == [
            ("ann", "no"), ("bob", "yes"),
        ]  # fmt: skip
    tree = json.loads(run(*arguments, "--json")[1])
    assert tree["at_the_end"] == {"budget": 0.4, "filter": "bayesian", "over": 1, "undecided": 0}
    assert [row["over"] for row in tree["losses"]] == [False, True]
    code, out, err = run(*arguments[:-1], "none")
    reason = "--budget: 'none' is not a number; write 0.5 or 1/3"
    assert (code, out, err) == (2, "", f"expost: {reason}\n")


def test_a_folder_of_transcripts_needs_no_queries_and_has_its_own_budget(
    run: Run, tmp_path: Path
) -> None:
    folder, saved = tmp_path / "subjects", tmp_path / "losses.csv"
    folder.mkdir()
    half = xp.randomized_response("0.5")
    start = xp.Transcript(xp.FiniteSet(["no", "yes"]), xp.BasicFilter(epsilon="0.5"))
    start.save(folder / "ann.json")
    start.add(half, "no").save(folder / "bob.json")
    start.add(half, "no").add(half, "yes").save(folder / "eve.json")
    code, out, err = run("loss", "--many", folder, "-o", saved)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].endswith("  2, and 1 who were asked nothing")
    assert "budget              0.5 (basic filter)\nover it at the end  1 subject\n" in out
    assert "eve,0.0," in saved.read_text("utf-8")
    out = run("loss", "--many", folder, "--budget", "0.5")[1]
    assert "budget              0.5 (Bayesian filter)\nover it at the end  0 subjects\n" in out
    xp.Transcript(start.domain).add(half, "no").save(folder / "zoe.json")
    out = run("loss", "--many", folder)[1]
    assert out.splitlines()[-1].endswith("name different ones; --budget gives one for all")
