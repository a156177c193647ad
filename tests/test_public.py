"""The public names, in one list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import expost as xp

NAMES = [
    "BasicFilter", "BayesianFilter", "Box", "BudgetExceeded", "Decision", "Effort",
    "Enclosure", "Exchange",
    "ExpostError", "Filter", "FiniteSet", "HALT", "Halt", "InsecureSource", "InvalidInput", "Nats",
    "Odometer", "OutsideDomain", "Progress",
    "Query", "Session", "SimplifiedFilter", "Source", "Transcript",
    "channel", "integers", "interact", "linear", "load", "logistic", "perturbation",
    "randomized_response", "realized_loss",
    "realized_losses", "utilization", "worst_case_loss",
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
