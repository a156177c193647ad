"""Large budgets: a person who sets one reads what it means, once."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

import expost as xp
from expost.errors import LargeBudgetWarning
from expost.filters._large_budgets import sure_text
from expost.numbers import Nats

Run = Callable[..., tuple[int, str, str]]

SURE = "is very large: someone undecided (50 %) may become 100 % sure"
QUERY = xp.randomized_response(epsilon=1)
DOMAIN = xp.FiniteSet(["no", "yes"])


@pytest.mark.parametrize("epsilon", ["1", "10.5", "11", "12", "13.5"])
def test_how_sure_someone_may_become_is_the_posterior(epsilon: str) -> None:
    with mpmath.workdps(50):
        sure = mpmath.exp(mpmath.mpf(epsilon)) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        text = sure_text(Nats(Fraction(epsilon))).split(" become ")[1].split(" %")[0]
        doubt = 100 * (1 - sure)
        # Two digits of the doubt are right.
        assert abs(mpmath.mpf(text) - 100 * sure) <= doubt / 10


@pytest.mark.parametrize(
    ("epsilon", "sure"), [("20", "over 99.9999 %"), ("100", "100 %"), ("1000000", "100 %")]
)
def test_no_more_than_a_handful_of_nines_is_printed(epsilon: str, sure: str) -> None:
    assert sure_text(Nats(Fraction(epsilon))).endswith(f"may become {sure} sure")


@pytest.mark.parametrize(
    "make",
    [
        lambda: xp.BayesianFilter(epsilon=100),
        lambda: xp.BasicFilter(100),
        lambda: xp.SimplifiedFilter(ratio=10**50),
        lambda: xp.ApproximateFilter(100, "1e-6"),
        lambda: xp.filters.CompositionFilter(100, "1e-6", xp.filters.Renyi(5)),
    ],
)
def test_a_filter_with_a_large_budget_warns_at_the_line_that_makes_it(
    make: Callable[[], object],
) -> None:
    with pytest.warns(LargeBudgetWarning, match="100 % sure") as caught:
        make()
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("epsilon", ["0.1", "4", "10"])
def test_a_budget_up_to_ten_passes_without_a_warning(epsilon: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xp.BayesianFilter(epsilon=epsilon)


def test_subjects_and_files_do_not_repeat_the_warning(tmp_path: Path) -> None:
    with pytest.warns(LargeBudgetWarning):
        filter_ = xp.BayesianFilter(epsilon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(3):
            file = tmp_path / f"{number}.json"
            xp.Session(DOMAIN, "yes", filter=filter_).transcript.save(file)
            xp.load_transcript(file)
        xp.Panel(DOMAIN, filter=filter_, subjects=["ann", "bob"])


def test_a_simulation_prints_the_warning_once(tmp_path: Path) -> None:
    program = tmp_path / "simulation.py"
    program.write_text(
        "import expost as xp\nfor _ in range(1_000):\n    xp.BayesianFilter(epsilon=100)\n"
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == ""
    assert done.stderr.count("LargeBudgetWarning") == 1
    assert f"{program}:3: LargeBudgetWarning: a budget of 100 {SURE}" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["new", "ann.json", "--values", "no,yes", "--budget", "100"],
        ["new", "ann.json", "--values", "no,yes", "--budget", "100", "--json"],
        ["new", "ann.json", "--values", "no,yes", "--budget", "100", "--delta", "1e-6"],
        ["ledger", "create", "study.db", "--values", "no,yes", "--budget", "100"],
        ["design", "study.json", "--repetitions", "8"],
    ],
)
def test_a_command_that_sets_a_large_budget_warns_on_standard_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", float("inf"))
    study = {"version": 1, "domain": {"values": ["no", "yes"]}, "subjects": 50, "epsilon": "100"}
    Path("study.json").write_text(
        json.dumps({**study, "goals": ['value == "yes"']}), encoding="utf-8"
    )
    code, out, err = run(*command)
    assert (code, err) == (0, f"expost: warning: a budget of 100 {SURE}\n")
    assert "warning" not in out


def test_a_command_that_writes_a_query_with_a_large_epsilon_warns(run: Run) -> None:
    code, out, err = run("query", "randomized_response", "--epsilon", "500")
    assert (code, err) == (0, f"expost: warning: an epsilon of 500 {SURE}\n")
    assert json.loads(out)["epsilon"] == "500"
    assert run("query", "randomized_response", "--epsilon", "10")[2] == ""


def test_reports_explain_a_large_budget(run: Run, tmp_path: Path) -> None:
    file, page = tmp_path / "ann.json", tmp_path / "ann.html"
    start = xp.Transcript(DOMAIN, xp.BayesianFilter(epsilon=100))
    for transcript in (start, start.add(QUERY, "yes")):
        transcript.save(file)
        code, out, err = run("explain", file, "--html", page)
        assert (code, err) == (0, "")
        assert f"The budget of 100 {SURE}.\n" in out
        assert "100 (Bayesian filter), very large" in page.read_text(encoding="utf-8").replace(
            "\xa0", " "
        )
    page.unlink()
    code, out, err = run("loss", "--many", tmp_path)
    assert (code, err) == (0, "")
    assert f"100 (Bayesian filter), {SURE.removeprefix('is ')}" in out


def test_a_design_with_a_large_budget_warns() -> None:
    with pytest.warns(LargeBudgetWarning, match="a budget of 100 is very large"):
        xp.design(DOMAIN, subjects=100, epsilon=100, goals=['value == "yes"'], repetitions=8)
