"""The public names, in one list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import expost as xp

NAMES = [
    "Answers", "ApproximateFilter", "BasicFilter", "BayesianFilter", "Belief", "Box",
    "BudgetExceeded", "Certificate", "ClientCheck", "Comparison", "Composite", "CompositionFilter",
    "Decision", "Distribution", "Effort", "Enclosure", "Exchange", "ExpostError", "FileSession",
    "Filter", "FiniteSet", "Frequencies", "GainEstimate", "HALT", "Halt", "InsecureSource",
    "Intervals", "InvalidInput", "Losses", "Mean", "Mixture", "Nats", "Odometer", "OutsideDomain",
    "Progress", "Query", "Renyi", "Replay", "Rogers", "Rule", "Samples", "Session",
    "SimplifiedFilter", "Source", "Statement", "Sums", "Transcript", "Whitehouse", "Witness",
    "allowed_confidence", "broken_limit", "categories", "certificate", "channel",
    "check_client", "compare", "confidence", "delta_at", "duchi", "estimate_distribution",
    "estimate_frequencies", "estimate_mean", "estimated_gain", "exponential_mechanism",
    "from_sklearn", "gain_ratio", "gaussian", "geometric", "hadamard_response", "integers",
    "interact", "knowledge_gain", "laplace", "learning_limit", "linear", "load", "load_answers",
    "load_prior", "local_hashing", "logistic", "perturbation", "piecewise", "probit",
    "randomized_response", "realized_loss", "realized_losses", "replay", "subset_selection",
    "unary_encoding", "utilization", "witness", "worst_case_loss",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert sorted(xp.__all__) == NAMES
    assert all(getattr(xp, name) is not None for name in NAMES)
    assert set(NAMES) <= set(dir(xp))


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(str(xp.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert sorted(imported) == NAMES


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = xp.missing  # type: ignore[attr-defined]


def test_importing_expost_imports_nothing_heavy() -> None:
    program = "import expost, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_what_make_installs_by_itself_has_a_version() -> None:
    lines = (Path(__file__).parent.parent / "Makefile").read_text().splitlines()
    (installed,) = (line for line in lines if "pip install" in line)
    assert re.search(r" uv==\$\(UV_VERSION\);", installed)
    assert any(re.fullmatch(r"UV_VERSION := \d+\.\d+\.\d+", line) for line in lines)
