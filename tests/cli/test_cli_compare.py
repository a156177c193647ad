"""``expost compare``: what it prints, and how it fails."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp

Run = Callable[..., tuple[int, str, str]]

HALF = xp.randomized_response(epsilon="0.5")
ROWS = {"basic", "rogers", "whitehouse", "renyi", "mixture", "simplified", "bayesian"}


def saved(path: Path, filter_: xp.filters.Filter | None, *responses: str) -> Path:
    transcript = xp.Transcript(xp.FiniteSet(["no", "yes"]), filter_)
    for response in responses:
        transcript = transcript.add(HALF, response)
    transcript.save(path)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "t.json", xp.BayesianFilter(epsilon=2), "yes", "no", "yes")


def test_for_programs(run: Run, file: Path) -> None:
    code, out, err = run("compare", file, "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert set(result) > ROWS
    for name in ROWS - {"simplified", "bayesian"}:
        assert set(result[name]) == {"epsilon", "more"}
        assert isinstance(result[name]["epsilon"], float)
    for name in ("simplified", "bayesian"):
        assert set(result[name]) == {"loss", "more"}
        assert result[name]["loss"]["lower"] <= result[name]["loss"]["upper"] <= 0.5
    assert result["basic"] == {"epsilon": 1.5, "more": 1}
    assert result["bayesian"]["more"] == 3
    assert (result["budget"], result["delta"], result["exchanges"]) == (2.0, 1e-6, 3)
    assert result["rules"]["whitehouse"] == {"delta_prime": "0.000001"}
    assert result["rules"]["renyi"]["order"]


def test_a_rule_that_is_printed_can_be_written_into_a_filter(
    run: Run, file: Path, tmp_path: Path
) -> None:
    _, out, _ = run("compare", file, "--json")
    first = json.loads(out)
    for kind, rule in first["rules"].items():
        inner = {"kind": kind, **rule}
        filter_ = {"kind": "approximate", "epsilon": "2", "delta": "1e-6", "inner": inner}
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "filter": filter_}))
        code, again, _ = run("compare", other, "--json")
        assert code == 0
        assert json.loads(again)[kind] == first[kind]


def test_for_people(run: Run, file: Path) -> None:
    code, out, _ = run("compare", file)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "3 exchanges, budget 2 at delta 1e-06"
    assert [line.split()[0] for line in lines[3:8]] == [
        "basic", "rogers", "whitehouse", "renyi", "mixture",
    ]  # fmt: skip
    assert lines[9].split() == ["simplified", "0.5", "3"]
    assert lines[10].split() == ["bayesian", "0.5", "3"]
    assert lines[-1] == "The last query: the value itself, at epsilon 0.5."


def test_the_budget_and_the_delta_can_be_given(run: Run, file: Path) -> None:
    _, out, _ = run("compare", file, "--epsilon-budget", "3.5", "--delta", "1/1000", "--json")
    result = json.loads(out)
    assert (result["budget"], result["delta"]) == (3.5, 0.001)
    assert result["basic"]["more"] == 4


def test_what_a_delta_rules_out_is_null_with_a_reason(run: Run, file: Path) -> None:
    code, out, _ = run("compare", file, "--delta", "0.5", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["rogers"] is None
    assert result["missing"] == {"rogers": "needs a delta less than 1/e"}
    _, out, _ = run("compare", file, "--delta", "0.5")
    (line,) = [line for line in out.splitlines() if line.startswith("rogers")]
    assert line.split(maxsplit=1)[1] == "needs a delta less than 1/e"


def test_infinity_is_a_text(run: Run, tmp_path: Path) -> None:
    sure = xp.channel([[1, 0], ["1/2", "1/2"]])
    path = tmp_path / "t.json"
    xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(1)).add(sure, 1).save(path)
    code, out, _ = run("compare", path, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["basic"] == result["renyi"] == {"epsilon": "inf", "more": 0}
    assert result["bayesian"] == {"loss": {"lower": "inf", "upper": "inf"}, "more": 0}


def test_a_query_with_a_delta_is_refused_without_one(run: Run, tmp_path: Path) -> None:
    slip = xp.channel([["0.9", "0.1", 0], ["0.9", 0, "0.1"]], delta="0.1")
    path = tmp_path / "t.json"
    xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(1)).add(slip, 0).save(path)
    code, out, _ = run("compare", path, "--delta", "0.25")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert lines["bayesian"].endswith("without a delta, the last query is refused")
    assert lines["basic"].split()[1:] == ["0", "1"]


def test_what_tells_nothing_could_be_asked_for_ever(run: Run, tmp_path: Path) -> None:
    silent = xp.channel([["1/2", "1/2"], ["1/2", "1/2"]])
    path = tmp_path / "t.json"
    xp.Transcript(xp.FiniteSet([0, 1]), xp.BayesianFilter(1)).add(silent, 0).save(path)
    code, out, _ = run("compare", path)
    assert code == 0
    assert out.startswith("1 exchange, budget 1")
    assert out.count("1,000,000 or more") == 7


def test_without_a_budget_it_says_how_to_give_one(run: Run, tmp_path: Path) -> None:
    path = saved(tmp_path / "t.json", None, "yes")
    code, out, err = run("compare", path)
    assert (code, out) == (2, "")
    assert err.endswith("names no filter, so there is no budget; give --epsilon-budget\n")
    assert run("compare", path, "--epsilon-budget", "1")[0] == 0


def test_a_long_comparison_says_where_it_is(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("expost.cli._outputs._PATIENCE", 0.0)
    code, _, err = run("compare", file)
    assert code == 0
    assert err.startswith("accounting: basic\n")


def test_a_search_without_an_end_is_said_to_be_one(run: Run, tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    transcript = xp.Transcript(xp.Box(**dict.fromkeys(names, (-1, 1))))
    generator = random.Random(3)
    for _ in range(12):
        query = xp.logistic({name: generator.uniform(-4, 4) for name in names}, epsilon="0.5")
        transcript = transcript.add(query, generator.randrange(2))
    path = tmp_path / "t.json"
    transcript.save(path)
    options = ["--epsilon-budget", "6.2", "--nodes", "1"]
    code, out, _ = run("compare", path, *options)
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("bayesian")]
    assert line.endswith("the next was not decided within 1 nodes (--nodes)")
    _, out, _ = run("compare", path, *options, "--json")
    assert "bayesian" in json.loads(out)["undecided"]


def test_basic_composition_says_so_where_it_has_no_delta(run: Run, tmp_path: Path) -> None:
    query = {"kind": "gaussian", "weights": {"age": 1}, "range": [0, 100], "grid": 10,
             "sigma": 200, "delta": "1e-6"}  # fmt: skip
    transcript = {
        "version": 1,
        "domain": {"box": {"age": [0, 100]}},
        "exchanges": [{"query": query, "response": 3}],
    }
    file = tmp_path / "noisy.json"
    file.write_text(json.dumps(transcript))
    for command in ("loss", "explain"):
        code, out, _ = run(command, file)
        assert code == 0
        assert ", without any delta" in out
