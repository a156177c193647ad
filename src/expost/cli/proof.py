"""``expost certify`` and ``expost verify``: write a proof of a loss, and check one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from expost.certificates import certificate
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput, at
from expost.extrema import Effort
from expost.files import check_apart, read_text
from expost.transcript import load
from expost.verify import NOT_SHOWN, Failed, Verdict, read_file, rounded_up, verify

__all__ = ["certify", "check"]


def certify(file: Path, out: Path, effort: Effort, *, as_json: bool) -> None:
    check_apart(out, file)
    transcript = load(file)
    with progress_line() as line:
        proof = certificate(
            transcript,
            gap=effort.gap,
            nodes=effort.nodes,
            progress=lambda leaves: line.stage(f"leaves: {leaves:,}"),
        )
    size = proof.save(out)
    if as_json:
        show_json({**_found(proof.verdict), "bytes": size})
        return
    show_lines(
        [
            *_lines(proof.verdict),
            ("leaves", f"{proof.leaves:,}"),
            ("proof", f"{out}, {size:,} bytes"),
        ]
    )


def check(file: Path, proof: Path, *, as_json: bool) -> None:
    with at(str(file)):
        transcript = read_text(file)
    try:
        with progress_line() as line:
            verdict = verify(
                transcript,
                _text(proof),
                lambda leaves: line.stage(f"leaves checked: {leaves:,}"),
            )
    except Failed as error:
        if as_json:
            show_json({"verified": False, "failed_at": str(error)})
        else:
            typer.echo(f"expost: the proof fails at {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        show_json({"verified": True, **_found(verdict)})
    else:
        show_lines(_lines(verdict))
    if verdict.shows_end_within_budget is False:
        raise typer.Exit(NOT_SHOWN)


def _found(verdict: Verdict) -> dict[str, Any]:
    return {
        "loss": float(rounded_up(verdict.loss)),
        "leaves": verdict.leaves,
        "shows_end_within_budget": verdict.shows_end_within_budget,
    }


def _lines(verdict: Verdict) -> list[tuple[str, str]]:
    proved = ("proved", f"the realized loss is at most {rounded_up(verdict.loss)}")
    return [proved, ("budget", verdict.about_budget)] if verdict.about_budget else [proved]


def _text(path: Path) -> str:
    try:
        return read_file(str(path))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None
