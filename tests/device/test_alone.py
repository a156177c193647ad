"""``device.py`` stays what it is: one readable file that needs nothing but Python."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from expost.device import checks, device

TREES = {
    path: ast.parse(path.read_text("utf-8"))
    for path in (Path(device.__file__), Path(checks.__file__))
}


def imported(tree: ast.AST) -> set[str]:
    """The packages that a file imports from."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add((node.module or "").partition(".")[0])
    return found


def test_it_imports_the_standard_library_alone() -> None:
    for tree in TREES.values():
        assert imported(tree) <= sys.stdlib_module_names


def test_its_randomness_is_that_of_the_operating_system() -> None:
    assert not imported(TREES[Path(device.__file__)]) & {"random", "secrets", "time"}
    assert device.Device.__init__.__defaults__ == (os.urandom,)


def test_decisions_use_no_doubles() -> None:
    """Doubles are for scores, for numbers of domains and responses, and nowhere in a decision."""
    named = {"is_within", "log_bounds", "decimal_bounds", "scaled_exp", "two_weights", "decide"}
    named |= {"worst_cases", "refusing", "total", "eliminate", "project", "join"}
    named |= {"class_likelihoods", "largest_quotient", "rows"}
    functions = [
        node
        for node in ast.walk(TREES[Path(device.__file__)])
        if isinstance(node, ast.FunctionDef) and node.name in named
    ]
    assert {node.name for node in functions} == named
    for function in functions:
        for node in ast.walk(function):
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
            assert not (isinstance(node, ast.Name) and node.id == "float")
