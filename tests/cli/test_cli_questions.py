"""Files that are given where another kind of file is meant, and one query of a file of queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

VALUES = xp.FiniteSet(["no", "yes"])
QUERIES = {"smokes": xp.randomized_response(epsilon="1"), "rare": xp.randomized_response("0.1")}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    xp.Transcript(VALUES, xp.BayesianFilter(epsilon=1)).save(tmp_path / "ann.json")
    xp.audits.save_queries(VALUES, QUERIES, tmp_path / "queries.json")
    return tmp_path / "ann.json"


def test_one_query_of_a_file_of_queries_is_named_by_its_id(run: Run, file: Path) -> None:
    code, out, err = run(
        "decide", file, "--query", f"{file.parent / 'queries.json'}#rare", "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["loss_at_worst"]["upper"] == pytest.approx(0.1)
    secret = file.with_name("secret.json")
    secret.write_text('"yes"')
    secret.chmod(0o600)
    arguments = [
        "ask",
        file,
        "--query",
        f"{file.parent / 'queries.json'}#smokes",
        "--secret",
        secret,
    ]
    assert run(*arguments)[0] == 0
    assert xp.load_transcript(file).exchanges[0].query == QUERIES["smokes"]


def test_a_file_may_have_such_a_name(run: Run, file: Path) -> None:
    named = file.with_name("queries.json#rare")
    named.write_text('{"kind": "randomized_response", "epsilon": "0.5"}')
    tree = json.loads(run("decide", file, "--query", named, "--json")[1])
    assert tree["loss_at_worst"]["upper"] == pytest.approx(0.5)


def test_a_table_or_a_folder_is_for_many(run: Run, file: Path) -> None:
    file.with_name("answers.csv").write_text("subject,query,response\n")
    for arguments, options in [("answers.csv", " --queries QUERIES"), ("", "")]:
        data = file.parent / arguments
        code, out, err = run("loss", data)
        assert (code, out) == (2, "")
        reason = "is not the transcript of one subject; for many subjects it is --many"
        assert err == f"expost: {data}: {reason} {data}{options}\n"


def test_a_table_with_semicolons_is_known(run: Run, file: Path) -> None:
    data = file.with_name("answers.csv")
    data.write_text("subject;query;response\na;smokes;no\n")
    code, _, err = run("estimate", data, "--queries", file.with_name("queries.json"))
    assert code == 2
    assert err.endswith("points in numbers: 1.5; expost import converts it\n")
    with pytest.raises(xp.InvalidInput, match=r"^queries: expected a file of queries; only a"):
        xp.load_answers(data)


def test_a_misspelt_command_is_known(run: Run) -> None:
    assert run("esitmate")[2] == "expost: no such command 'esitmate'; did you mean 'estimate'?\n"


def test_nothing_is_left_of_a_budget_that_is_spent(run: Run, file: Path) -> None:
    spent = xp.load_transcript(file).add(QUERIES["smokes"], "yes")
    spent.save(file)
    assert 0 < xp.BayesianFilter(epsilon=1).remaining(xp.Odometer(spent)) < 1e-9
    query = f"{file.with_name('queries.json')}#rare"
    for shown in (run("loss", file)[1], run("decide", file, "--query", query)[1]):
        assert ["remaining", "0"] in [line.split() for line in shown.splitlines()]
    resumed = xp.Session.resume(spent, "yes")
    assert resumed.loss.upper > 0.9
    assert '>remaining</th><td style="text-align: left">0<' in resumed._repr_html_()
    small = xp.Transcript(VALUES, xp.BayesianFilter(epsilon="1e-11"))
    small.save(file.with_name("small.json"))
    assert "remaining          1e-11" in run("loss", file.with_name("small.json"))[1]
