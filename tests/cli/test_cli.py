"""The command line: what it prints, how it fails, how fast it starts."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import expost as xp
from expost.cli._lazy_group import LazyGroup
from expost.cli.commands import group

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    filter_ = xp.BayesianFilter(epsilon="0.3")
    query = xp.randomized_response(epsilon="0.1")
    path = tmp_path / "transcript.json"
    xp.Transcript(xp.FiniteSet([0, 1]), filter_).add(query, 1).add(query, 1).save(path)
    return path


@pytest.fixture
def query(tmp_path: Path) -> Callable[[Any], Path]:
    def write(content: Any) -> Path:
        path = tmp_path / "query.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


RR = {"kind": "randomized_response", "epsilon": "0.1"}


def test_loss_as_json(run: Run, transcript: Path) -> None:
    code, out, err = run("loss", transcript, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result["loss"]["lower"] <= result["loss"]["upper"] <= 0.2
    assert result["basic"] == 0.2
    assert result["exchanges"] == 2
    assert result["content_id"] == xp.load_transcript(transcript).content_id


def test_loss_for_people(run: Run, transcript: Path) -> None:
    code, out, _ = run("loss", transcript)
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[:3]] == ["2", "0.2", "0.2"]


def test_an_infinite_loss_is_printed_as_inf(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    xp.Transcript(xp.FiniteSet(list("ab"))).add(xp.channel([[1, 0], [0, 1]]), 0).save(path)
    _, out, _ = run("loss", path, "--json")
    result = json.loads(out)
    assert result["loss"] == {"lower": "inf", "upper": "inf"}
    assert result["basic"] == "inf"
    assert "inf" in run("loss", path)[1]
    code, out, _ = run("loss", path)
    assert (code, "share of basic     undefined" in out) == (0, True)


def test_decide_accepts_and_refuses_with_exit_code_0(
    run: Run, transcript: Path, query: Callable[[Any], Path]
) -> None:
    code, out, err = run("decide", transcript, "--query", query(RR), "--json")
    accepted = json.loads(out)
    assert (code, err) == (0, "")
    assert list(accepted) == [
        "accepted", "undecided", "loss", "loss_at_worst", "worst_response", "remaining",
        "largest_epsilon",
    ]  # fmt: skip
    assert accepted["accepted"] is True
    assert accepted["undecided"] is False
    assert accepted["worst_response"] == 1
    assert accepted["largest_epsilon"] == "0.1"
    code, out, _ = run("decide", transcript, "--query", query({**RR, "epsilon": 0.11}), "--json")
    assert code == 0
    assert json.loads(out)["accepted"] is False
    code, out, _ = run("decide", transcript, "--query", query({**RR, "epsilon": 0.11}))
    assert code == 0
    assert out.startswith("decision         refused")


def test_what_is_no_loss_is_not_called_one(
    run: Run, tmp_path: Path, query: Callable[[Any], Path]
) -> None:
    # All "yes" under a rule: 5.06 is its cost, and the realized loss is 9.9.
    path, filter_ = tmp_path / "t.json", xp.ApproximateFilter("5.08", "1e-6")
    domain, rr = xp.FiniteSet(["no", "yes"]), xp.randomized_response(epsilon="0.1")
    transcript = xp.Transcript(domain, filter_)
    for _ in range(99):
        transcript = transcript.add(rr, "yes")
    transcript.save(path)
    _, out, _ = run("decide", path, "--query", query(RR))
    assert "cost now         5.06243\ncost at worst" in out
    assert "loss" not in out
    with pytest.raises(xp.BudgetExceeded, match=r"^query refused: cost is 5\.06"):
        xp.Session.resume(transcript, "yes").ask(rr)


def test_the_demo_tells_the_story_and_saves_its_picture_where_it_was_sent(
    run: Run, tmp_path: Path
) -> None:
    picture = tmp_path / "picture"
    start = time.process_time()
    code, out, _ = run("demo", "--out", picture)
    assert code == 0
    assert time.process_time() - start < 10
    assert "2.2500" in out
    assert "stops after 5 responses" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["picture"]


def test_the_demo_gains_over_basic_composition_at_its_best_and_loses_to_asking_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("demo", "--json", "--seed", 4)
    result = json.loads(out)
    assert code == 0
    assert result["example"] == [True, True, True, True, False]
    ways = [result[name] for name in ("basic", "basic_at_best", "filter", "one_shot")]
    assert [way["answered"] for way in ways if way is not result["filter"]] == [5, 1, 1]
    assert result["filter"]["answered"] > 20
    shares = [way["right"] for way in ways]
    assert shares == sorted(shares)
    # Of three facts, randomized response over all eight combinations.
    truth = math.exp(2) / (math.exp(2) + 7)
    assert shares[-1] == pytest.approx(truth + (1 - truth) * 3 / 7)
    assert result["picture"] is None
    assert list(tmp_path.iterdir()) == []


def test_help_is_instant_and_imports_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['expost', '--help']\n"
        "from expost.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "decide" in result.stdout


def test_a_loss_on_a_set_imports_only_what_it_needs(transcript: Path) -> None:
    program = (
        "import sys\n"
        "from expost.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "loss", str(transcript)], capture_output=True, text=True
    )
    imported = set(result.stderr.split())
    assert {"numpy", "expost.cli.loss"} <= imported
    rooms = ("audits", "client_checks", "estimation", "knowledge", "proof", "session")
    heavy = {"matplotlib", "numba", "pandas", "polars", "pydantic", "rich"}
    assert not imported & {*heavy, *(f"expost.{room}" for room in rooms)}


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for name, summary in group.summaries.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.name == name
        assert command.help is not None
        assert " ".join(command.help.split()).startswith(summary.rstrip("."))


def _all_commands(parent: LazyGroup) -> Iterator[click.Command]:
    context = click.Context(parent)
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, LazyGroup):
            yield from _all_commands(command)


def test_every_option_and_every_argument_has_help() -> None:
    silent = [
        f"{command.name} {parameter.name}"
        for command in _all_commands(group)
        for parameter in command.params
        if not (
            parameter.help
            if isinstance(parameter, click.Option)
            else str(parameter.metavar).strip("[].") in str(command.help).split()
        )
    ]
    assert silent == []


def test_help_lists_the_commands_by_task(run: Run) -> None:
    lines = [line for line in run("--help")[1].splitlines() if line.strip()]
    tasks = ["Start:", "One subject:", "Many subjects:", "Check:", "Setup:"]
    starts = [lines.index(task) for task in tasks]
    assert starts == sorted(starts)
    assert [lines[start + 1].split()[0] for start in starts] == [
        "demo", "decide", "ledger", "loss", "doctor"
    ]  # fmt: skip


def test_the_reference_begins_with_all_commands_by_task() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/command_line.md").read_text("utf-8")
    table = page.partition("## Commands by task")[2].partition("\n## ")[0]
    named = [name.split()[0] for name in re.findall(r"`([^`]+)`", table)]
    assert set(named) == set(group.summaries)


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version")[:2] == (0, "expost 0.1.0\n")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "expost", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "expost 0.1.0\n"


def test_a_loss_without_a_filter_says_that_there_is_no_budget(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "free.json"
    xp.Transcript(xp.FiniteSet(["y", "n"])).add(xp.randomized_response(1), "y").save(path)
    out = run("loss", path)[1]
    assert out.endswith("\nbudget             none: the transcript names no filter\n")


def test_a_budget_that_was_broken_on_the_way_is_broken_whatever_the_end(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "lucky.json"
    transcript = xp.Transcript(xp.FiniteSet(["y", "n"]), xp.BayesianFilter(epsilon=1))
    for response in "yyynnn":
        transcript = transcript.add(xp.randomized_response(1), response)
    transcript.save(path)
    for command in ("loss", "explain"):
        printed = json.loads(run(command, path, "--json")[1])
        assert (printed["budget_respected"], printed["first_refused"]) == (False, 2)
        assert printed["loss"]["upper"] < 1e-9
        assert 2.99 < printed["peak"]["lower"] <= printed["peak"]["upper"] < 3.01
        assert "within_budget" not in printed
    assert "the filter refuses exchange 2" in run("loss", path)[1]
    text = run("explain", path)[1]
    assert "was not respected: the filter refuses exchange 2." in text
    assert "At its peak the loss was 3 nats; its current value of 0 does not undo that." in text


def test_labels_cannot_write_to_the_terminal(
    run: Run, tmp_path: Path, query: Callable[[Any], Path]
) -> None:
    path = tmp_path / "t.json"
    filter_ = xp.BayesianFilter(epsilon=1)
    xp.Transcript(xp.FiniteSet(["a\n\x1b[31m", "b"]), filter_).save(path)
    _, out, _ = run("decide", path, "--query", query(RR))
    assert "\x1b" not in out
    assert len(out.splitlines()) == 6


@pytest.mark.parametrize("shown", [False, True])
def test_an_error_of_ours_has_an_exit_code_of_its_own_and_shows_no_value(
    run: Run, transcript: Path, monkeypatch: pytest.MonkeyPatch, shown: bool
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        value = "the-secret-label"
        raise KeyError(value)

    monkeypatch.setattr("expost.cli.loss.load_transcript", broken)
    monkeypatch.setenv("EXPOST_TRACEBACK", "1" if shown else "")
    code, out, err = run("loss", transcript)
    assert (code, out) == (70, "")
    *trace, line = err.splitlines()
    assert line.startswith(
        "expost: this is an error of expost and not of yours: KeyError in test_cli"
    )
    assert ("EXPOST_TRACEBACK=1" in line) is not shown
    assert bool(trace) is shown
    assert shown == ("in broken" in err)
    assert "the-secret-label" not in err


def test_without_arguments_there_is_help(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "Usage: expost" in out


COMMAND = [sys.executable, "-c", "from expost.cli.main import main; main()"]


@pytest.mark.parametrize("module", ["click", "expost.cli.loss", "expost.solver", "numpy"])
def test_an_interrupt_is_one_line_even_while_modules_are_imported(
    transcript: Path, module: str
) -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        f"{COMMAND[2]}\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, "loss", str(transcript)], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr.strip() == "expost: interrupted"


def test_a_terminal_without_unicode_still_gets_the_story() -> None:
    result = subprocess.run(
        [*COMMAND, "demo"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert result.returncode == 0, result.stderr
    assert b"stops after 5 responses" in result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_written_is_one_line_and_exit_code_2(transcript: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = subprocess.run(
            [*COMMAND, "loss", str(transcript)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 2
    assert result.stderr.startswith("expost: cannot write: ")
    assert result.stderr.count("\n") == 1
