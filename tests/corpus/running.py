"""Command lines, run in this process in a directory of their own."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from corpus.cases import Case, Command, Outcome

# All that is known of the package: its checker, which is a program of its own. The command line is
# whatever pyproject.toml says that it is.
from expost.proof.verify import main as checker

__all__ = ["outcomes"]

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_LONGEST = 4000
_PICTURES = (".png", ".svg", ".pdf")
_HEAD = re.compile(rb"<head>.*</head>", re.DOTALL)


def outcomes(case: Case) -> Iterator[tuple[Command, Outcome]]:
    """Run the commands of a case one after the other, on its files."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in case.files.items():
            path = Path(name)
            path.write_text(text, encoding="utf-8", newline="")
            path.chmod(0o600)  # so that nothing is said about who may read a secret
        for command in case.commands:
            before = _files()
            code, out, err = _run(command)
            changed = {
                name: content
                for name, content in _files().items()
                if before.get(name) != content and name not in case.files
            }
            wrote = {name: _shorten(name, content) for name, content in changed.items()}
            yield command, Outcome(code, out, _without_progress(err), wrote)


def _check(arguments: Sequence[str]) -> None:
    """What ``verify.py`` does when it is run as a program."""
    sys.exit(checker(list(arguments)))


def _run(command: Command) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    program: Callable[[], object] = _command_line()
    if command[0] == "verify.py":
        program = partial(_check, command[1:])
    code: object = 0
    with (
        patch.object(sys, "argv", list(command)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        try:
            program()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int)
    return code, out.getvalue(), err.getvalue()


def _command_line() -> Callable[[], object]:
    """What the console script ``expost`` runs."""
    scripts = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
    module, name = scripts["expost"].split(":")
    program: Callable[[], object] = getattr(import_module(module), name)
    return program


def _files() -> dict[str, bytes]:
    """What is there; hidden files, such as locks, are nobody's result."""
    paths = sorted(path for path in Path().iterdir() if not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in paths}


def _without_progress(err: str) -> str:
    """Standard error without progress, which depends on how fast the machine is."""
    return "".join(
        line for line in err.splitlines(keepends=True) if line.startswith(("expost:", "verify:"))
    )


def _shorten(name: str, content: bytes) -> str:
    """A file as it is kept: short ones whole, long ones by digest, of pictures that they exist.

    A page is kept without its head: what it says, and not how that looks.
    """
    if name.endswith(_PICTURES):
        return "a picture"
    if name.endswith(".html"):
        content = _HEAD.sub(b"", content)
    if len(content) <= _LONGEST:
        return content.decode()
    return f"{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}"
