"""``expost doctor``: versions, extras, kernels and permissions, and what is wrong with them."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from expost import __version__
from expost.cli.installation import (
    EXTRAS,
    Kernels,
    Package,
    Problem,
    kernels,
    packages,
    secret_problems,
    transcript_problems,
)
from expost.cli.show import show_json, show_lines

__all__ = ["command"]

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
