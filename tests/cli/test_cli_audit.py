"""``expost audit``: exit codes, what is printed, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars
import pytest

import expost as xp
from support.logs import Logged, Rows

Run = Callable[..., tuple[int, str, str]]

GUARD = xp.BayesianFilter(epsilon="1")


def some_honest(subjects: int, cheats: int = 0) -> Logged:
    """Losses go up to 1 and not beyond, but for some whose clients had no filter."""
    rows: Rows = []
    for number in range(subjects):
        answers = ["no", "yes", "no", "no"] if number >= cheats else ["no"] * 4 + ["yes"] * 4
        rows += [(f"s{number:03}", order, "q", each) for order, each in enumerate(answers, 1)]
    queries = {"q": xp.randomized_response(epsilon="0.5")}
    return Logged(xp.FiniteSet(["no", "yes"]), queries, rows)


def files(logged: Logged, folder: Path) -> list[Any]:
    logged.frame().write_csv(folder / "log.csv")
    queries, policy = folder / "queries.json", folder / "policy.json"
    logged.save_queries(queries)
    xp.audits.save_policy(GUARD, policy)
    return ["audit", folder / "log.csv", "--queries", queries, "--policy", policy]


def test_an_audit_of_those_who_kept_their_budgets_writes_what_it_found(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, told, err = run(*files(some_honest(20), tmp_path), "-o", out)
    assert (code, err) == (0, "")
    assert "kept               20 subjects, at every exchange" in told
    assert "not kept           nobody" in told
    names = ["audit.html", "losses.parquet", "summary.json"]
    assert sorted(file.name for file in out.iterdir()) == names
    table = polars.read_parquet(out / "losses.parquet")
    assert table.columns == [
        "subject", "exchanges", "lower", "upper", "peak", "basic", "budget_kept", "first_refused",
        "remaining",
    ]  # fmt: skip
    assert table["subject"].to_list() == [f"s{number:03}" for number in range(20)]


def test_a_budget_that_was_broken_is_exit_code_1_and_the_first_hundred_are_named(
    run: Run, tmp_path: Path
) -> None:
    code, told, err = run(*files(some_honest(200, cheats=150), tmp_path), "--json")
    found = json.loads(told)
    assert (code, err) == (1, "")
    assert (found["subjects"], found["kept"], found["undecided"]) == (200, 50, 0)
    assert found["broken"] == [f"s{number:03}" for number in range(100)]
    assert found["broken_number"] == 150
    assert sum(found["histogram"]["counts"]) == 200
    assert len(found["worst"]) == 10
    assert found["worst"][0]["first_refused"] == 3


def test_a_bad_row_is_listed_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    arguments, out = files(some_honest(5), tmp_path), tmp_path / "out"
    with (tmp_path / "log.csv").open("a") as log:
        log.write("s001,9,q,no\ns002,5,other,no\n")
    code, told, err = run(*arguments, "-o", out)
    assert (code, told) == (2, "")
    first, last = err.splitlines()
    assert first.startswith(f"expost: {tmp_path / 'log.csv'}: row 22: query: there is no query")
    assert last.startswith("expost: 1 row cannot be used, so nobody was audited: ")
    assert not list(out.glob("*"))


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("{}", "policy.json: 'version' is missing"),
        ('{"version": 1, "filter": {"kind": "bayesian"}}', "policy.json: filter: "),
        ('{"version": 1, "filter": {"kind": "other"}}', "policy.json: filter.kind: "),
    ],
)
def test_a_policy_that_is_none_is_bad_input(
    policy: str, reason: str, run: Run, tmp_path: Path
) -> None:
    arguments = files(some_honest(2), tmp_path)
    (tmp_path / "policy.json").write_text(policy)
    code, _, err = run(*arguments)
    assert code == 2
    assert reason in err


def test_what_is_written_is_not_put_into_the_log(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    arguments = files(some_honest(2), tmp_path)
    (tmp_path / "log.csv").rename(folder / "log.csv")
    arguments[1] = folder
    for out in (folder, folder / "out"):
        code, _, err = run(*arguments, "-o", out)
        assert code == 2
        assert "is in the folder that is audited; choose another one" in err


def test_what_is_missing_or_no_size_is_said(run: Run, tmp_path: Path) -> None:
    command, log, *_, policy = files(some_honest(2), tmp_path)
    code, _, err = run(command, log, "--policy", policy)
    assert code == 2
    assert "give --queries QUERIES too; only a folder of transcripts needs none" in err
    code, _, err = run(command, tmp_path / "nothing.csv", "--policy", policy)
    assert (code, err.count("\n")) == (2, 1)
    assert "nothing.csv: cannot be read: No such file or directory" in err
    arguments = files(some_honest(2), tmp_path)
    for size in ("much", "-1G", ""):
        code, _, err = run(*arguments, "--memory", size)
        assert code == 2
        assert "--memory: must be a size, such as 500M or 2G" in err
    assert run(*arguments, "--memory", "0.5M")[0] == 0


def test_a_folder_of_transcripts_is_audited_by_the_policy(run: Run, tmp_path: Path) -> None:
    logged, folder = some_honest(3, cheats=1), tmp_path / "devices"
    *_, policy = files(logged, tmp_path)
    folder.mkdir()
    for subject in logged.subjects:
        # They name a filter that allowed more than was promised.
        more = xp.BayesianFilter(epsilon="9")
        logged.transcript(subject, more).save(folder / f"{subject}.json")
    code, told, _ = run("audit", folder, "--policy", policy, "-o", tmp_path / "out", "--json")
    assert code == 1
    assert json.loads(told)["broken"] == ["s000"]


class Page(HTMLParser):
    """What a page has, by its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_says_what_was_found_in_words_figures_and_tables(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = files(some_honest(30, cheats=2), tmp_path)
    assert run(*arguments, "-o", out, "--date", "2026-11-17")[0] == 1
    text = (out / "audit.html").read_text("utf-8")
    page = Page(text)
    assert "2 people's budgets were not kept" in page.words
    assert "For 28 of 30 people the budget was kept at every question." in page.words
    assert "a factor of 2.72" in page.words
    charts = [attributes for tag, attributes in page.tags if attributes.get("role") == "img"]
    assert len(charts) == 3
    assert all(attributes["aria-label"] for attributes in charts)
    assert "no, from question 3" in page.words
    assert "s001" in page.words
    assert "http" not in text.replace("http-equiv", "")
    # The same log gives the same page.
    assert run(*arguments, "-o", out, "--date", "2026-11-17")[0] == 1
    assert (out / "audit.html").read_text("utf-8") == text
