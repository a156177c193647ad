"""``expost design`` and ``expost forecast``: what they print and write, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.device.device import Device
from support.page_checks import checked

Run = Callable[..., tuple[int, str, str]]

STUDY: dict[str, Any] = {
    "version": 1,
    "domain": {"values": ["never", "sometimes", "often", "daily"]},
    "subjects": 500,
    "epsilon": "2",
    "goals": ['value == "daily"', 'value == "never" or value == "often"'],
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "study.json"
    file.write_text(json.dumps(STUDY), encoding="utf-8")
    return file


def test_people_get_a_table_a_recommendation_and_why(run: Run, study: Path) -> None:
    code, out, _ = run("design", study, "--repetitions", 8)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["standard", "error", "method", "answers", "possible"]
    assert any(line.startswith("left out  ") for line in lines)
    assert "A budget with a delta: the study has no delta." in out
    assert sum(line.endswith("recommended") for line in lines) == 1
    assert any(line.startswith("recommended  ") for line in lines)
    assert 'value == "daily": standard error 0.0' in out


def test_programs_get_all_numbers(run: Run, study: Path) -> None:
    code, out, _ = run("design", study, "--json", "--repetitions", 8)
    result = json.loads(out)
    assert code == 0
    names = [row["strategy"] for row in result["strategies"]]
    assert result["recommended"] in names
    assert {"one sampled question", "basic composition, all 2"} <= set(names)
    first = result["strategies"][0]
    assert first["error"] <= min(row["error"] or 1 for row in result["strategies"])
    assert len(first["standard_errors"]) == len(first["asymptotic"]) == 2
    assert result["by_budget"] == []
    assert {row["method"] for row in result["strategies"]} >= {"exact", "frequencies"}
    assert result["left_out"]["a budget with a delta"] == "the study has no delta"


def test_a_meeting_gets_a_page(run: Run, study: Path, tmp_path: Path) -> None:
    page = tmp_path / "study.html"
    code, out, _ = run("design", study, "--html", page, "--repetitions", 8, "--date", "2026-11-17")
    assert code == 0
    assert str(page) in out
    result = checked(page.read_text(encoding="utf-8"))
    assert result.facts["budget"] == "2 nats for each subject"
    assert len(result.alts) == 2
    titles = [title.text for title in result.all("h2")]
    assert titles[:2] == ["Why", "Accuracy and budget"]
    assert "A budget with a delta: the study has no delta." in result.text
    # What cannot be carried out is in both tables of all designs, not in the one by budgets.
    assert [cell.text for cell in result.all("td")].count("joint report") == 2
    # The same study gives the same page.
    before = page.read_bytes()
    run("design", study, "--html", page, "--repetitions", 8, "--date", "2026-11-17")
    assert page.read_bytes() == before


@pytest.mark.parametrize(("epsilon", "shown"), [("0.01", 2), ("400", 3)])
def test_a_page_shows_the_other_budgets_that_a_study_can_have(
    run: Run, study: Path, tmp_path: Path, epsilon: str, shown: int
) -> None:
    study.write_text(json.dumps({**STUDY, "epsilon": epsilon}), encoding="utf-8")
    arguments = ("design", study, "--html", tmp_path / "page.html", "--repetitions", 8, "--json")
    code, out, _ = run(*arguments)
    assert code == 0
    assert len({point["epsilon"] for point in json.loads(out)["by_budget"]}) == shown


def test_what_was_found_is_shown_where_the_page_cannot_be_written(
    run: Run, study: Path, tmp_path: Path
) -> None:
    page = tmp_path / "nowhere" / "study.html"
    code, out, err = run("design", study, "--html", page, "--repetitions", 8)
    assert code == 2
    assert "recommended" in out
    assert "written to" not in out
    assert "cannot write" in err


def test_a_forecast_from_a_table(run: Run, tmp_path: Path) -> None:
    query = xp.randomized_response(epsilon="0.5")
    domain = xp.FiniteSet(["no", "yes"])
    queries = tmp_path / "queries.json"
    queries.write_text(xp.answers.queries_to_json(domain, {"q": query}), encoding="utf-8")
    answers = tmp_path / "answers.csv"
    rows = [f"{name},q,{'yes' if name % 2 else 'no'}" for name in range(20)]
    answers.write_text("subject,query,response\n" + "\n".join([*rows, *rows[:10]]) + "\n")
    filter_file = tmp_path / "filter.json"
    filter_file.write_text('{"version": 1, "filter": {"kind": "bayesian", "epsilon": "1"}}')
    arguments = (
        "forecast",
        answers,
        "--queries",
        queries,
        "--query",
        f"{queries}#q",
        "--rounds",
        3,
    )
    code, out, _ = run(*arguments, "--filter", filter_file, "--json")
    assert code == 0
    assert json.loads(out)["now"] == 10  # who answered alike twice has used up the budget
    code, out, _ = run(*arguments, "--filter", filter_file)
    assert out.splitlines()[1].endswith("10 answer")
    code, _, err = run(*arguments)
    assert code == 2
    assert "DATA does not name one filter" in err


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a ledger may be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    result: str = request.getfixturevalue("postgres")
    return result


def test_a_forecast_from_a_ledger_and_from_a_folder_says_who_is_not_counted(
    run: Run, tmp_path: Path, place: str
) -> None:
    domain, query = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon="0.5")
    filter_ = xp.BayesianFilter(epsilon="1")
    queries = tmp_path / "queries.json"
    queries.write_text(xp.answers.queries_to_json(domain, {"q": query}), encoding="utf-8")
    folder = tmp_path / "transcripts"
    folder.mkdir()
    with xp.Ledger.create(place, domain, filter=filter_, queries={"habit": query}) as ledger:
        ledger.register(range(7), kind="imported")
        ledger.register(range(7, 12))
        for key, names in {"first": range(7), "again": range(4), "more": range(2)}.items():
            ledger.record(query, ["yes"] * len(names), list(names), key=key)
        Device.create(str(tmp_path / "7.store"), ledger.policy.to_json(), 7, '"yes"')
        device = Device(str(tmp_path / "7.store"))
        ledger.reserve(query, [7], key="first")
        request = device.sync()
        while request:
            request = device.take(ledger.sync([request])[0].to_json())
        ledger.reserve(query, [7], key="waiting")
        for name in ledger.subjects:
            ledger.transcript(name).save(folder / f"{name}.json")
    arguments = ("--query", f"{queries}#q", "--rounds", 2)
    code, out, _ = run("forecast", place, *arguments, "--json")
    printed = json.loads(out)
    assert code == 0
    assert (printed["subjects"], printed["now"]) == (8, 4)  # subjects with one answer
    assert (printed["not_asked"], printed["held_back"]) == (4, 1)
    code, out, _ = run("forecast", place, *arguments)
    assert "4 who have not answered anything so far" in out
    assert "1 suspended, unconfirmed or with an open reservation" in out
    code, out, _ = run("forecast", folder, *arguments, "--json")
    assert {**printed, "held_back": 0} == json.loads(out)
    code, out, _ = run("forecast", place, "--query", "habit", "--rounds", 2, "--json")
    assert printed == json.loads(out)
    filter_file = tmp_path / "filter.json"
    filter_file.write_text('{"version": 1, "filter": {"kind": "bayesian", "epsilon": "2"}}')
    code, _, err = run("forecast", place, *arguments, "--filter", filter_file)
    assert (code, err) == (2, "expost: a ledger has its own filter; leave --filter out\n")


def test_a_forecast_of_a_ledger_whose_checkpoint_is_elsewhere(run: Run, tmp_path: Path) -> None:
    place, checkpoint = tmp_path / "study.db", tmp_path / "elsewhere"
    query = xp.randomized_response(epsilon="0.5")
    with xp.Ledger.create(
        place, xp.FiniteSet(["no", "yes"]), filter=xp.BayesianFilter(epsilon="1"),
        queries={"habit": query}, checkpoint=checkpoint,
    ) as ledger:  # fmt: skip
        ledger.register(range(3), kind="imported")
        ledger.record(query, ["yes"] * 3)
    arguments = ("forecast", place, "--query", "habit", "--json")
    assert run(*arguments)[0] == 1
    code, out, _ = run(*arguments, "--checkpoint", checkpoint)
    assert (code, json.loads(out)["now"]) == (0, 3)


@pytest.mark.parametrize("name", ["there is none.csv", "postgresql://127.0.0.1:1/study"])
def test_a_forecast_of_what_is_not_there(
    run: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, out, err = run("forecast", name, "--query", "query.json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    reason = "opened: connection" if name.startswith("postgresql:") else "read: No such file"
    assert err.startswith(f"expost: {name}: cannot be {reason}")
