"""``expost doctor``: what is installed here, what of it does not work, and how to fix it.

Nothing heavy is imported before it is looked at: it may be what is broken.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import click

from expost import __version__
from expost.cli._outputs import show_json, show_lines
from expost.errors import InvalidInput
from expost.files.regular import can_be_written, open_for_reading, others_may_read, others_may_write

__all__ = ["command"]

EXTRAS = {
    "frames": "Parquet files",
    "ledger": "ledgers on SQLite",
    "plot": "pictures",
    "postgres": "ledgers on PostgreSQL",
    "sklearn": "models of scikit-learn as queries",
}
"""What each extra is for."""

_MODULES = {"scikit-learn": "sklearn"}  # all others are imported by the name of their package
_COMPILER = ("llvmlite", "numba")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[\w+\])?>=(?P<least>[\d.]+)(?P<marker>.*)")
_EXTRA = re.compile(r"extra == '(?P<extra>[\w-]+)'")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work, or is not safe, and what to do about it."""

    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package that expost, or one of its extras, needs; its version if it is there."""

    name: str
    extra: str | None
    version: str | None
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Kernels:
    """The machine code of the search over boxes.

    ``kept`` is the file that has it for this computer, ``places`` are the directories where it may
    be, and ``writable`` those in which it could be kept; ``plain``: NUMBA_DISABLE_JIT does without.
    """

    plain: bool
    kept: Path | None
    places: tuple[Path, ...]
    writable: tuple[Path, ...]

    @property
    def problems(self) -> Iterator[Problem]:
        """What makes boxes slow, or lets others change what is run."""
        if self.kept is None and not self.writable and not self.plain:
            where = " or ".join(map(str, self.places))
            what = f"kernels cannot be kept in {where}, so every process compiles them for a minute"
            yield Problem(what, "set NUMBA_CACHE_DIR to a directory of your own")
        for part in (self.kept, *self.kept.parents) if self.kept is not None else ():
            if others_may_write(part.stat()):
                what = f"others may write to {part}, and so change the kernels that are run"
                yield Problem(what, f"chmod go-w {shlex.quote(str(part))}")


def packages() -> Iterator[Package]:
    """What the metadata of expost asks for on this platform, each imported to see if it works."""
    for requirement in metadata.requires("expost") or ():
        parts = _REQUIREMENT.match(requirement)
        if parts is not None and f"sys_platform != '{sys.platform}'" not in parts["marker"]:
            extra = _EXTRA.search(parts["marker"])
            yield _package(parts["name"], parts["least"], extra and extra["extra"])


def _package(name: str, least: str, extra: str | None) -> Package:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = None
    if extra is not None and version is None:
        return Package(name, extra, None, None)
    mend = f"pip install --upgrade '{name}>={least}'"
    try:
        import_module(_MODULES.get(name, name))
    except Exception as error:  # whatever a broken package raises
        why = f"{name} cannot be imported: {error or type(error).__name__}"
        boxes = "; finite domains work without it, boxes do not" if name in _COMPILER else ""
        return Package(name, extra, version, Problem(why + boxes, mend))
    if version is not None and _numbers(version) < _numbers(least):
        why = f"{name} {version} is older than {least}, which expost needs"
        return Package(name, extra, version, Problem(why, mend))
    return Package(name, extra, version, None)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def kernels() -> Kernels | None:
    """The kernels as they are kept on disk; None if what loads them does not work."""
    try:
        from expost.solver.kernels import compiled

        places = tuple(compiled.cache_directories())
        found = compiled.find_cached(places)
    except Exception:  # a broken package, of which its own line tells
        return None
    writable = tuple(filter(can_be_written, places))
    return Kernels(compiled.jit_disabled(), found and found[0], places, writable)


def transcript_problems(path: Path) -> Iterator[Problem]:
    """What keeps a transcript from being used, or lets others give its budget back."""
    try:
        from expost.transcript import load_transcript

        load_transcript(path)
    except ImportError as error:
        yield Problem(f"{path} cannot be read: {error}", "mend what is imported first")
        return
    except InvalidInput as error:
        mend = "mend it there; a fresh or an older file would give back what was spent"
        yield Problem(str(error), mend)
        return
    directory = path.resolve().parent
    for part in (path, directory):
        if others_may_write(part.stat()):
            what = f"others may write to {part}, and so give back a budget that was spent"
            yield Problem(what, f"chmod go-w {shlex.quote(str(part))}")
    if not can_be_written(directory):
        what = f"{path} cannot be replaced, so nothing can be asked: {directory} is not writable"
        yield Problem(what, "make its directory writable for you")


def secret_problems(path: Path) -> Iterator[Problem]:
    """Who else may read a subject's value, which is not looked at."""
    try:
        with open_for_reading(path) as file:
            status = os.fstat(file.fileno())
    except InvalidInput as error:
        yield Problem(f"{path}: {error}", "name a file that has the subject's value")
        return
    if others_may_read(status):
        yield Problem(f"others may read {path}", f"chmod 600 {shlex.quote(str(path))}")


_path = click.Path(path_type=Path)


@click.command("doctor")
@click.argument("file", type=_path, metavar="[FILE]", required=False)
@click.option("--secret", type=_path, metavar="SECRET", help="A file with a subject's value.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def command(file: Path | None, secret: Path | None, as_json: bool) -> None:
    """What is installed here, what of it does not work, and how to mend it.

    FILE is a transcript. Of it, and of SECRET, is said who else may read or write them. Exit code 1
    if something is wrong.
    """
    try:
        found, problems = list(packages()), []
    except metadata.PackageNotFoundError:
        what = "expost is imported but not installed, so what it needs is not known"
        found, problems = [], [Problem(what, "pip install expost, or the path of its clone")]
    problems += [package.problem for package in found if package.problem is not None]
    code = kernels()
    if code is not None:
        problems += code.problems
    if file is not None:
        problems += transcript_problems(file)
    if secret is not None:
        problems += secret_problems(secret)
    if as_json:
        show_json(_tree(found, code, problems))
    else:
        show_lines(_lines(found, code, problems))
    if problems:
        raise click.exceptions.Exit(1)


def _tree(found: list[Package], code: Kernels | None, problems: list[Problem]) -> dict[str, Any]:
    return {
        "expost": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {each.name: each.version for each in found if each.extra is None},
        "extras": {
            extra: {each.name: each.version for each in found if each.extra == extra}
            for extra in EXTRAS
        },
        "kernels": None
        if code is None
        else {
            "compiled": code.kept is not None,
            "file": None if code.kept is None else str(code.kept),
            "cache": [
                {"directory": str(each), "writable": each in code.writable} for each in code.places
            ],
            "disabled": code.plain,
        },
        "problems": [{"what": each.what, "mend": each.mend} for each in problems],
    }


def _lines(
    found: list[Package], code: Kernels | None, problems: list[Problem]
) -> list[tuple[str, str]]:
    lines = [
        ("expost", __version__),
        ("Python", f"{platform.python_version()} on {platform.platform()}"),
    ]
    lines += [(each.name, each.version or "missing") for each in found if each.extra is None]
    lines.append(("kernels", _state(code)))
    if code is not None:
        lines += [("cache", f"{place}{_use(place, code)}") for place in code.places]
    for extra, purpose in EXTRAS.items():
        there = [
            f"{each.name} {each.version}" for each in found if each.extra == extra and each.version
        ]
        how = ", ".join(there) or f"not installed: pip install 'expost[{extra}]'"
        lines.append((f"extra {extra}", f"{how} (for {purpose})"))
    for problem in problems:
        lines += [("wrong", problem.what), ("to mend", problem.mend)]
    return lines if problems else [*lines, ("wrong", "nothing")]


def _state(code: Kernels | None) -> str:
    if code is None:
        return "cannot be loaded, so there are no boxes"
    if code.plain:
        return "plain Python, slow, because NUMBA_DISABLE_JIT says so"
    if code.kept is None:
        return "not compiled yet; python -m expost.solver.warm_up does it, in about a minute"
    return "compiled for this computer"


def _use(place: Path, code: Kernels) -> str:
    if code.kept is not None and code.kept.parent == place:
        return " (in use)"
    return "" if place in code.writable else " (not writable)"
