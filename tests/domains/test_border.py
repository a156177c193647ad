"""Which kind a domain is, is asked at the border: where ℓ is built and where files are read."""

from __future__ import annotations

import ast
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


def questions(path: Path) -> int:
    """How often a file asks whether something is a finite set or a box."""
    calls = [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    ]
    asked = [call for call in calls if isinstance(call.func, ast.Name)]
    return sum(
        call.func.id == "isinstance"
        and any(isinstance(n, ast.Name) and n.id in KINDS for n in ast.walk(call.args[1]))
        for call in asked
        if isinstance(call.func, ast.Name)
    )


def test_few_places_ask_for_the_kind_of_a_domain() -> None:
    found = {str(path.relative_to(SOURCE)): questions(path) for path in SOURCE.rglob("*.py")}
    for own in ("domains/_box.py", "domains/_attributes.py"):  # where they say what equals them
        assert found.pop(own) == 1
    assert sum(found.values()) <= 10, {path: count for path, count in found.items() if count}
    inside = [
        path for path in found if path.startswith(("filters/", "session/", "cli/", "report/"))
    ]
    assert sum(found[path] for path in inside) == 0
    assert not [path for path, n in found.items() if n and path.startswith("loss/")]
