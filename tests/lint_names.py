"""A lint for names under src/expost, which ``make check`` runs.

It reports names that say nothing (of parameters, attributes, functions, classes and modules' own
variables), public classes that share a name, and docstrings that begin with "The same". A comment
``# name: the reason`` on the line makes an exception.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).resolve().parent.parent / "src" / "expost"

# fmt: off
VAGUE = frozenset(
    (
        "asked", "each", "found", "given", "known", "made", "many", "more", "number", "numbers",
        "one", "others", "own", "place", "places", "rest", "seen", "some", "told", "what",
        "which", "who", "whole", "whom", "whose",
    )
)

# Programs that stand alone: they share no code with the package, so they may share its words.
STANDALONE = frozenset(map(Path, ("device/device.py", "device/checks.py", "proof/verify.py")))
# fmt: on

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Finding(NamedTuple):
    """A complaint about one line of a file."""

    path: Path
    line: int
    complaint: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.complaint}"


class PublicClass(NamedTuple):
    """A class without an underscore, and the line of its name."""

    path: Path
    line: int
    name: str


def findings(root: Path) -> list[Finding]:
    """Return what is wrong with the names in all modules below a folder, in order."""
    complaints: list[Finding] = []
    classes: dict[str, list[PublicClass]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        source = path.read_text(encoding="utf-8")
        lines, tree = source.splitlines(), ast.parse(source)
        excused = {i for i, line in enumerate(lines, 1) if "# name: " in line}
        for line, name in _bound_names(tree):
            if name.strip("_").lower() in VAGUE and line not in excused:
                complaints.append(Finding(relative, line, f"{name!r} does not say what it is"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, *_DEFINITIONS)):
                text = ast.get_docstring(node) or ""
                if text.startswith("The same"):
                    line = node.body[0].lineno
                    complaints.append(Finding(relative, line, 'a docstring begins with "The same"'))
            if (
                isinstance(node, ast.ClassDef)
                and not node.name.startswith("_")
                and relative not in STANDALONE
                and node.lineno not in excused
            ):
                classes[node.name].append(PublicClass(relative, node.lineno, node.name))
    for namesakes in classes.values():
        first, *later = namesakes
        for path, line, name in later:
            where = f"{first.path}:{first.line}"
            complaints.append(Finding(path, line, f"class {name} has a namesake in {where}"))
    return sorted(complaints)


def _bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a reader meets away from where they are bound, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, _DEFINITIONS):
            yield node.lineno, node.name
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for statement in node.body:
                for part in _outside_functions(statement):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        yield part.lineno, part.id


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that bind names of its module or class."""
    if isinstance(node, (*_DEFINITIONS, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _outside_functions(child)


if __name__ == "__main__":
    complaints = findings(SOURCES)
    for complaint in complaints:
        print(f"src/expost/{complaint}")
    sys.exit(1 if complaints else 0)
