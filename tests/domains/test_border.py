"""The kind of a domain is asked in a few factories only; everything else calls protocols."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import expost as xp

KINDS = {
    "FiniteSet",
    "Attributes",
    "Box",
    "SetLogLikelihood",
    "AttributesLogLikelihood",
    "BoxLogLikelihood",
}
SOURCE = Path(xp.__file__).parent
MODULES = {
    str(path.relative_to(SOURCE)): ast.parse(path.read_text("utf-8"))
    for path in SOURCE.rglob("*.py")
}


def names_a_kind(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id in KINDS for part in ast.walk(node))


def type_checks(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of ``isinstance`` with a kind of domain."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in calls:
        if ast.unparse(call.func) == "isinstance" and names_a_kind(call.args[1]):
            yield call


def dispatches(tree: ast.Module) -> Iterator[ast.Match]:
    """Yield the ``match`` statements with a case for a kind of domain."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Match) and any(
            isinstance(case.pattern, ast.MatchClass) and names_a_kind(case.pattern.cls)
            for case in node.cases
        ):
            yield node


def test_few_modules_dispatch_on_the_kind_of_a_domain() -> None:
    factories = {name for name, tree in MODULES.items() if any(dispatches(tree))}
    assert len(factories) <= 20, sorted(factories)
    assert not [name for name in factories if name.startswith(("filters/", "report/", "solver/"))]


def test_every_dispatch_covers_all_kinds() -> None:
    for name, tree in MODULES.items():
        for match in dispatches(tree):
            assert isinstance(match.cases[-1].pattern, ast.MatchAs), f"{name}:{match.lineno}"


def test_few_modules_check_for_one_kind_of_domain() -> None:
    checks = {name: len(list(type_checks(tree))) for name, tree in MODULES.items()}
    for equality in ("domains/_box.py", "domains/_attributes.py"):
        assert checks.pop(equality) == 1
    checks = {name: count for name, count in checks.items() if count}
    assert sum(checks.values()) <= 17, checks
    assert not [name for name in checks if name.startswith(("filters/", "session/", "cli/"))]
    assert not [name for name in checks if name.startswith("report/")]
