"""Where numba is missing, finite domains work, and a box says what to install."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.missing_packages import COMMAND_LINE, run_without

COMPILER = ("numba", "llvmlite")

FINITE = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "filter": {"kind": "bayesian", "epsilon": "1"},
    "exchanges": [
        {"query": {"kind": "randomized_response", "epsilon": "0.5"}, "response": "yes"},
    ],
}
BOX = {
    "version": 1,
    "domain": {"box": {"x": [-1, 1], "y": [0, 3]}},
    "filter": {"kind": "bayesian", "epsilon": "4"},
    "exchanges": [
        {"query": {"kind": "logistic", "weights": {"x": 2, "y": 1}, "epsilon": "1"}, "response": 0},
        {"query": {"kind": "logistic", "weights": {"x": 1, "y": 3}, "epsilon": "1"}, "response": 1},
    ],
}


@pytest.fixture
def finite(tmp_path: Path) -> Path:
    path = tmp_path / "finite.json"
    path.write_text(json.dumps(FINITE))
    return path


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "box.json"
    path.write_text(json.dumps(BOX))
    return path


def test_a_session_on_a_finite_domain_needs_no_numba() -> None:
    result = run_without(COMPILER, "from support.installation_programs import finite\nfinite()")
    assert result.returncode == 0, result.stderr


def test_all_rooms_can_be_imported_without_numba() -> None:
    program = "import expost as xp\nfor name in xp.__all__: getattr(xp, name)"
    result = run_without(COMPILER, program)
    assert result.returncode == 0, result.stderr


def test_commands_on_a_finite_domain_need_no_numba(finite: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    commands = (
        ["loss", finite],
        ["explain", finite],
        ["compare", finite],
        ["certify", finite, "--out", proof],
        ["verify", finite, proof],
        ["reproduce", "examples", "--quick", "--out", tmp_path / "reproduced"],
    )
    program = (
        "import json\n"
        "from expost.cli.main import main\n"
        "for sys.argv in json.loads(sys.argv[1]):\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, (sys.argv, end.code)\n"
    )
    lines = [["expost", *map(str, command)] for command in commands]
    result = run_without(COMPILER, program, json.dumps(lines))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("hidden", [("numba",), COMPILER])
def test_without_numba_a_box_says_in_one_line_what_to_install(
    hidden: tuple[str, ...], box: Path, tmp_path: Path
) -> None:
    # An empty cache: code that was kept by numba is loaded without it.
    result = run_without(hidden, COMMAND_LINE, "loss", box, NUMBA_CACHE_DIR=str(tmp_path / "new"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "expost: a search over a box needs numba, which cannot be imported (No module named "
        f"'{hidden[-1]}'): pip install --upgrade numba llvmlite, "
        "or set NUMBA_DISABLE_JIT=1 to search slowly without it\n"
    )


def test_without_numba_a_box_is_searched_slowly_if_told_so(box: Path) -> None:
    result = run_without(COMPILER, COMMAND_LINE, "loss", box, NUMBA_DISABLE_JIT="1")
    assert result.returncode == 0, result.stderr
    assert "realized loss" in result.stdout
