"""``expost doctor``: check what is installed, and suggest how to fix what does not work.

Heavy packages are imported only while they are checked, because they may be broken.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import click

from expost import __version__
from expost.cli._options import value_option
from expost.cli._outputs import Result, prints_result
from expost.errors import InvalidInput
from expost.files.regular import can_be_written, open_for_reading, others_may_read, others_may_write

__all__ = ["command"]

#: What each extra is for.
EXTRAS = {
    "excel": "spreadsheets in expost import",
    "frames": "Parquet files",
    "ledger": "ledgers on SQLite",
    "plot": "pictures",
    "postgres": "ledgers on PostgreSQL",
    "serve": "expost serve",
    "sklearn": "models of scikit-learn as queries",
}

# The modules of packages that are imported by another name than the package's own.
_MODULES = {
    "python-calamine": "python_calamine",
    "scikit-learn": "sklearn",
}
_COMPILER_PACKAGES = ("llvmlite", "numba")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[\w+\])?>=(?P<least>[\d.]+)(?P<marker>.*)")
_EXTRA = re.compile(r"extra == '(?P<extra>[\w-]+)'")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that does not work, or is not safe, and what to do about it."""

    problem: str
    fix: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package that expost, or one of its extras, needs; its version if it is installed."""

    name: str
    extra: str | None
    version: str | None
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class Kernels:
    """The machine code of the search over boxes.

    ``compiled_file`` is the one for this computer. It may be in any of ``directories``, and could
    be stored in those that are ``writable``. With ``jit_disabled`` (NUMBA_DISABLE_JIT) none is
    used.
    """

    jit_disabled: bool
    compiled_file: Path | None
    directories: tuple[Path, ...]
    writable: tuple[Path, ...]

    @property
    def problems(self) -> Iterator[Problem]:
        """Find what makes boxes slow, or lets others change the code that is run."""
        if self.compiled_file is None and not self.writable and not self.jit_disabled:
            where = " or ".join(map(str, self.directories))
            text = f"kernels cannot be kept in {where}, so every process compiles them for a minute"
            yield Problem(text, "set NUMBA_CACHE_DIR to a directory of your own")
        file = self.compiled_file
        for part in () if file is None else (file, *file.parents):
            if others_may_write(part.stat()):
                text = f"others may write to {part}, and so change the kernels that are run"
                yield Problem(text, f"chmod go-w {shlex.quote(str(part))}")


def check_packages() -> Iterator[Package]:
    """Import each package that the metadata of expost requires on this platform."""
    for requirement in metadata.requires("expost") or ():
        parts = _REQUIREMENT.match(requirement)
        if parts is not None and f"sys_platform != '{sys.platform}'" not in parts["marker"]:
            extra = _EXTRA.search(parts["marker"])
            yield _check_package(parts["name"], parts["least"], extra and extra["extra"])


def _check_package(name: str, least: str, extra: str | None) -> Package:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = None
    if extra is not None and version is None:
        return Package(name, extra, None, None)
    fix = f"pip install --upgrade '{name}>={least}'"
    try:
        import_module(_MODULES.get(name, name))
    except Exception as error:  # whatever a broken package raises
        text = f"{name} cannot be imported: {error or type(error).__name__}"
        boxes = (
            "; finite domains work without it, boxes do not" if name in _COMPILER_PACKAGES else ""
        )
        return Package(name, extra, version, Problem(text + boxes, fix))
    if version is not None and _parse_version(version) < _parse_version(least):
        text = f"{name} {version} is older than {least}, which expost needs"
        return Package(name, extra, version, Problem(text, fix))
    return Package(name, extra, version, None)


def _parse_version(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def find_kernels() -> Kernels | None:
    """Return the kernels that are stored on disk; None if they cannot be loaded."""
    try:
        from expost.solver.kernels import compiled

        directories = tuple(compiled.cache_directories())
        cached = compiled.find_cached(directories)
    except Exception:  # a broken package, which check_packages reports
        return None
    writable = tuple(filter(can_be_written, directories))
    return Kernels(compiled.jit_disabled(), cached and cached[0], directories, writable)


def transcript_problems(path: Path) -> Iterator[Problem]:
    """Find what keeps a transcript from being used, or lets others restore its budget."""
    try:
        from expost.transcript import load_transcript

        load_transcript(path)
    except ImportError as error:
        yield Problem(f"{path} cannot be read: {error}", "fix what is imported first")
        return
    except InvalidInput as error:
        fix = "fix it there; a fresh or an older file would give back what was spent"
        yield Problem(str(error), fix)
        return
    directory = path.resolve().parent
    for part in (path, directory):
        if others_may_write(part.stat()):
            text = f"others may write to {part}, and so give back a budget that was spent"
            yield Problem(text, f"chmod go-w {shlex.quote(str(part))}")
    if not can_be_written(directory):
        text = f"{path} cannot be replaced, so nothing can be asked: {directory} is not writable"
        yield Problem(text, "make its directory writable for you")


def secret_problems(path: Path) -> Iterator[Problem]:
    """Find who else may read a subject's value, without reading it."""
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
@value_option("--secret", "SECRET", "File with a subject's value.", type=_path)
@prints_result
def command(file: Path | None, secret: Path | None) -> Result:
    """Check the installation and suggest fixes.

    FILE is a transcript (JSON). Also check who may read or write FILE and SECRET. Exits with 1 if
    there is a problem.
    """
    try:
        installed, problems = list(check_packages()), []
    except metadata.PackageNotFoundError:
        text = "expost is imported but not installed, so what it needs is not known"
        installed, problems = [], [Problem(text, "pip install expost, or the path of its clone")]
    problems += [package.problem for package in installed if package.problem is not None]
    kernels = find_kernels()
    if kernels is not None:
        problems += kernels.problems
    if file is not None:
        problems += transcript_problems(file)
    if secret is not None:
        problems += secret_problems(secret)
    lines = _describe_installation(installed, kernels, problems)
    return Result(_to_tree(installed, kernels, problems), lines, exit_code=bool(problems))


def _select_versions(installed: list[Package], extra: str | None) -> dict[str, str | None]:
    """Return the versions of the packages of an extra, or with None of the ones always needed."""
    return {package.name: package.version for package in installed if package.extra == extra}


def _to_tree(
    installed: list[Package], kernels: Kernels | None, problems: list[Problem]
) -> dict[str, Any]:
    kernels_tree = None
    if kernels is not None:
        kernels_tree = {
            "compiled": kernels.compiled_file is not None,
            "file": None if kernels.compiled_file is None else str(kernels.compiled_file),
            "cache": [
                {"directory": str(directory), "writable": directory in kernels.writable}
                for directory in kernels.directories
            ],
            "disabled": kernels.jit_disabled,
        }
    return {
        "expost": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": _select_versions(installed, None),
        "extras": {extra: _select_versions(installed, extra) for extra in EXTRAS},
        "kernels": kernels_tree,
        "problems": [asdict(problem) for problem in problems],
    }


def _describe_installation(
    installed: list[Package], kernels: Kernels | None, problems: list[Problem]
) -> Iterator[tuple[str, str]]:
    yield "expost", __version__
    yield "Python", f"{platform.python_version()} on {platform.platform()}"
    for name, version in _select_versions(installed, None).items():
        yield name, version or "missing"
    yield "kernels", _describe_kernels(kernels)
    if kernels is not None:
        for directory in kernels.directories:
            yield "cache", f"{directory}{_describe_cache(directory, kernels)}"
    for extra, purpose in EXTRAS.items():
        versions = [
            f"{name} {version}"
            for name, version in _select_versions(installed, extra).items()
            if version
        ]
        text = ", ".join(versions) or f"not installed: pip install 'expost[{extra}]'"
        yield f"extra {extra}", f"{text} (for {purpose})"
    for problem in problems:
        yield "problem", problem.problem
        yield "fix", problem.fix
    if not problems:
        yield "problems", "none"


def _describe_kernels(kernels: Kernels | None) -> str:
    if kernels is None:
        return "cannot be loaded, so there are no boxes"
    if kernels.jit_disabled:
        return "plain Python, slow, because NUMBA_DISABLE_JIT says so"
    if kernels.compiled_file is None:
        return "not compiled yet; python -m expost.solver.warm_up does it, in about a minute"
    return "compiled for this computer"


def _describe_cache(directory: Path, kernels: Kernels) -> str:
    if kernels.compiled_file is not None and kernels.compiled_file.parent == directory:
        return " (in use)"
    return "" if directory in kernels.writable else " (not writable)"
