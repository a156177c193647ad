"""The command line on transcripts over a box."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., tuple[int, str, str]]

HEALTH: dict[str, Any] = {
    "version": 1,
    "domain": {
        "box": {
            "age": [10, 100],
            "sex": {"integers": [0, 1]},
            "pressure": [50, 200],
            "bmi": [10, 50],
        }
    },
    "filter": {"kind": "bayesian", "epsilon": "4"},
    "exchanges": [
        {
            "query": {
                "kind": "logistic",
                "weights": {"age": -0.059, "sex": -1.456, "pressure": -0.0134},
                "intercept": 6.177,
                "epsilon": "1",
            },
            "response": 1,
        },
        {
            "query": {
                "kind": "linear",
                "weights": {"age": 0.0855, "sex": 0.4617, "pressure": -0.07},
                "intercept": 12.323,
                "range": [0, 12],
                "clip": True,
                "epsilon": "1",
            },
            "response": 12,
        },
    ],
}
HARD: dict[str, Any] = {
    "version": 1,
    "domain": {"box": [[-1, 1]] * 6},
    "exchanges": [
        {
            "query": {
                "kind": "logistic",
                "weights": [((7 * i + 3 * j) % 21 - 10) / 1.0 for j in range(6)],
                "intercept": (5 * i) % 21 - 10,
                "epsilon": "0.1",
            },
            "response": i % 2,
        }
        for i in range(40)
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "health.json"
    path.write_text(json.dumps(HEALTH))
    return path


def test_the_loss_of_a_box_transcript_is_within_the_gap(run: Run, file: Path) -> None:
    code, out, err = run("loss", file, "--gap", "0.0001", "--json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result["loss"]["lower"] <= result["loss"]["upper"] <= result["loss"]["lower"] + 0.0001
    assert result["loss"]["upper"] < result["basic"] == 2
    assert result["budget_respected"] is True
    assert result["first_refused"] is None


def test_two_threads_print_the_same_as_one(run: Run, file: Path) -> None:
    first = run("loss", file, "--json")
    assert run("loss", file, "--threads", "2", "--json") == first


def test_a_decision_on_a_box(run: Run, file: Path, tmp_path: Path) -> None:
    query = tmp_path / "query.json"
    query.write_text(json.dumps(HEALTH["exchanges"][0]["query"]))
    code, out, _ = run("decide", file, "--query", query, "--json")
    result = json.loads(out)
    assert code == 0
    assert (result["accepted"], result["undecided"]) == (True, False)
    assert result["loss_at_worst"]["upper"] <= 4
    query.write_text(json.dumps({**HEALTH["exchanges"][0]["query"], "epsilon": "9"}))
    code, out, _ = run("decide", file, "--query", query, "--json")
    refused = json.loads(out)
    assert (code, refused["accepted"], refused["undecided"]) == (0, False, False)
    assert refused["loss_at_worst"]["lower"] > 4
    assert 1 < float(refused["largest_epsilon"]) < 9


def test_a_search_that_ends_at_its_nodes_says_so(run: Run, tmp_path: Path) -> None:
    path, query = tmp_path / "hard.json", tmp_path / "query.json"
    path.write_text(json.dumps(HARD))
    code, out, _ = run("loss", path, "--nodes", "20")
    assert code == 0
    assert "more nodes (--nodes), or less coarse grids of noise, may narrow it" in out
    limit = {"kind": "bayesian", "epsilon": "2"}
    path.write_text(json.dumps({**HARD, "filter": limit}))
    query.write_text(json.dumps(HARD["exchanges"][0]["query"]))
    code, out, _ = run("decide", path, "--query", query, "--nodes", "20")
    assert code == 0
    assert "refused: not decided within 20 nodes (--nodes)" in out


def test_a_search_that_takes_long_shows_its_progress(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "hard.json"
    path.write_text(json.dumps(HARD))
    code, _, err = run("loss", path, "--gap", "0.000001", "--nodes", "40000")
    assert code == 0
    assert "nodes  lower " in err.splitlines()[0]


def test_a_finite_transcript_never_imports_the_compiler(tmp_path: Path) -> None:
    path = tmp_path / "finite.json"
    exchange = {"query": {"kind": "randomized_response", "epsilon": "1"}, "response": 1}
    finite = {"version": 1, "domain": {"values": [0, 1]}, "exchanges": [exchange]}
    path.write_text(json.dumps(finite))
    program = (
        "import sys; from expost.cli.main import main; sys.argv = ['expost', 'loss', sys.argv[1]]\n"
        "try: main()\n"
        "finally: print('llvmlite' in sys.modules, 'expost.solver.kernels' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "False False"
